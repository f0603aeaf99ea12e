//! This network namespace's sockets and available algorithms, queried from the kernel over netlink (sock_diag(7)).

use netlink_packet_core::{
    Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla as _,
    Parseable,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetResponse, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::{fs, io};

/// The older of the kernel's two requests for sockets. It scans the table of all connections once for both families; the
/// newer one, SOCK_DIAG_BY_FAMILY, scans it once for each, and on a large machine the scan is most of the cost.
const TCPDIAG_GETSOCK: u16 = 18;
/// Length of a request, bytes: netlink's header and `struct inet_diag_req`.
const REQUEST_BYTES: usize = 16 + 60;
/// Of linux/inet_diag.h.
const INET_DIAG_CGROUP_ID: u16 = 21;
/// Bit of `tcpi_options`: both ends agreed on ECN.
const TCPI_OPT_ECN: u8 = 8;

/// An open connection, as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The remote end.
    pub remote: IpAddr,
    /// Port here.
    pub local_port: u16,
    /// Port there.
    pub remote_port: u16,
    /// The kernel's name of its congestion control.
    pub algorithm: String,
    /// RTO, microseconds.
    pub rto_us: u32,
    /// Longest delay of the next ACK, microseconds.
    pub ato_us: u32,
    /// Smoothed round-trip time, microseconds.
    pub srtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Largest receive window that it advertises now, bytes.
    pub rcv_ssthresh: u32,
    /// Largest sending rate, bytes a second; the largest number: no limit.
    pub max_pacing_rate: u64,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    /// Since data came last, milliseconds; `None`: none has.
    pub heard_ms: Option<u32>,
    /// The number of its cgroup of version 2, which is the inode of its folder; `None`: a kernel before 5.9.
    pub cgroup: Option<u64>,
    /// Its socket's inode, by which a process knows its own (proc_pid_fd(5)).
    pub inode: u32,
}

/// The names that a socket can choose now.
pub(crate) fn available() -> io::Result<Vec<String>> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(names.split_whitespace().map(str::to_string).collect())
}

/// Connections of the network namespace that the calling thread is in, from established to half closed.
///
/// # Errors
/// As [`sockets_by_algorithm`].
pub fn connections() -> io::Result<Vec<Connection>> {
    let states = StateFlags::ESTABLISHED | StateFlags::CLOSE_WAIT | StateFlags::FIN_WAIT1;
    let mut all = Vec::new();
    each(&(ExtensionFlags::INFO | ExtensionFlags::CONG), &states, |response| all.extend(connection(response)))?;
    Ok(all)
}

fn connection(response: InetResponse) -> Option<Connection> {
    let id = response.header.socket_id;
    let (mut info, mut algorithm, mut cgroup) = (None, String::new(), None);
    for nla in response.nlas {
        match nla {
            Nla::TcpInfo(bytes) => info = Some(bytes),
            Nla::Congestion(name) => algorithm = name,
            Nla::Other(other) if other.kind() == INET_DIAG_CGROUP_ID => {
                let mut bytes = [0; 8];
                if other.value_len() == bytes.len() {
                    other.emit_value(&mut bytes);
                    cgroup = Some(u64::from_ne_bytes(bytes));
                }
            }
            _ => {}
        }
    }
    // of linux/tcp.h's `struct tcp_info`, which has only ever grown at its end
    let info = info.filter(|info| info.len() >= 120)?;
    let word = |at: usize| info[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let received = info.get(128..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    Some(Connection {
        remote: id.destination_address.to_canonical(),
        local_port: id.source_port,
        remote_port: id.destination_port,
        algorithm,
        rto_us: word(8),
        ato_us: word(12),
        rcv_ssthresh: word(64),
        srtt_us: word(68),
        cwnd: word(80),
        max_pacing_rate: info[112..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes)),
        ecn: info[5] & TCPI_OPT_ECN != 0,
        heard_ms: (received > 0).then(|| word(52)),
        cgroup,
        inode: response.header.inode,
    })
}

/// Sockets of the network namespace that the calling thread is in, by the kernel's name of their algorithm. Listening
/// sockets count. Sockets in TIME_WAIT, and those neither bound nor connected, have none that the kernel reports.
///
/// # Errors
/// The kernel has no socket diagnosis (CONFIG_INET_DIAG), or answers with an error.
pub fn sockets_by_algorithm() -> io::Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    each(&ExtensionFlags::CONG, &StateFlags::all(), |response| {
        for nla in response.nlas {
            if let Nla::Congestion(name) = nla {
                *counts.entry(name).or_default() += 1;
            }
        }
    })?;
    Ok(counts)
}

/// Calls `take` with every socket.
fn each(extensions: &ExtensionFlags, states: &StateFlags, mut take: impl FnMut(InetResponse)) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(extensions, states), 0)?;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        if take_datagram(&datagram, &mut take)? {
            return Ok(());
        }
    }
}

/// Reads the sockets in a datagram; whether it was the last one.
fn take_datagram(mut rest: &[u8], take: &mut impl FnMut(InetResponse)) -> io::Result<bool> {
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
        if message.message_type() == TCPDIAG_GETSOCK {
            take(InetResponse::parse(message.payload()).map_err(io::Error::other)?);
        } else {
            match NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?.payload {
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
        }
        // Messages are aligned to four bytes.
        rest = rest.get((message.length() as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Requests all sockets (`struct inet_diag_req` of linux/inet_diag.h).
fn request(extensions: &ExtensionFlags, states: &StateFlags) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    let mut header = NetlinkHeader::default();
    header.length = REQUEST_BYTES as u32;
    header.message_type = TCPDIAG_GETSOCK;
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    header.emit(&mut bytes);
    let body = &mut bytes[header.buffer_len()..];
    body[3] = extensions.bits();
    body[52..56].copy_from_slice(&states.bits().to_ne_bytes());
    bytes
}
