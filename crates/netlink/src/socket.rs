//! A socket by which one request at a time is made.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// A netlink socket of the network namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens it in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Netlink> {
        Netlink::open_for(NETLINK_ROUTE)
    }

    pub(crate) fn open_for(protocol: isize) -> io::Result<Netlink> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Sends a request, with `NLM_F_*` flags, and waits for the whole answer; a successful change has an empty one.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ask(&mut self, flags: u16, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.exchange(flags, message)
    }

    pub(crate) fn exchange<M>(&mut self, flags: u16, message: M) -> io::Result<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
    {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        // a dump has an end message
        let end = if flags & NLM_F_DUMP == NLM_F_DUMP { 0 } else { NLM_F_ACK };
        header.flags = NLM_F_REQUEST | flags | end;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, message.into());
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let length = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?.length() as usize;
                let answer = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
                // messages are aligned to four bytes
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                match answer.payload {
                    _ if answer.header.sequence_number != self.sequence => {}
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::InnerMessage(message) => answers.push(message),
                    _ => {}
                }
            }
        }
    }
}
