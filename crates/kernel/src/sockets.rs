//! Which algorithms the sockets of this network namespace use, asked of the kernel over netlink.

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::collections::BTreeMap;
use std::io;

/// Sockets of the network namespace that the calling thread is in, by the kernel's name of their algorithm. Listening
/// sockets count; those in TIME_WAIT, and those that are neither bound nor connected, have none that the kernel tells.
///
/// # Errors
/// The kernel has no socket diagnosis (CONFIG_INET_DIAG), or answers with an error.
pub fn sockets_by_algorithm() -> io::Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for (family, unspecified) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        match count(family, unspecified, &mut counts) {
            // Without IPv6 there are no sockets of it.
            Err(error) if family == AF_INET6 && error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    Ok(counts)
}

fn count(family: u8, socket_id: SocketId, counts: &mut BTreeMap<String, usize>) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(family, socket_id), 0)?;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        if count_datagram(&datagram, counts)? {
            return Ok(());
        }
    }
}

/// Adds the sockets that a datagram tells of; whether it was the last one.
fn count_datagram(mut rest: &[u8], counts: &mut BTreeMap<String, usize>) -> io::Result<bool> {
    while !rest.is_empty() {
        let length = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?.length() as usize;
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                for nla in response.nlas {
                    if let Nla::Congestion(name) = nla {
                        *counts.entry(name).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
        // Messages stand at multiples of four bytes.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn request(family: u8, socket_id: SocketId) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::CONG,
        states: StateFlags::all(),
        socket_id,
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
