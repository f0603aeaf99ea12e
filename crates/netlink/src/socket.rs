//! A socket by which one request at a time is made.

#[cfg(test)]
mod tests;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// How often a dump is asked for that others' changes interrupt.
const TRIES: usize = 8;

/// What a dump has brought.
#[derive(Debug, PartialEq, Eq)]
pub struct Dump<M> {
    /// If it is not whole, those of all tries, so with repetitions.
    pub messages: Vec<M>,
    /// No change interrupted it: what is not in it was not there.
    pub is_whole: bool,
}

/// One answer: its messages, and whether the kernel has marked it as interrupted by a change (`NLM_F_DUMP_INTR`): it may lack what was there all
/// the time, and have other things twice.
#[derive(Debug)]
struct Answer<M> {
    messages: Vec<M>,
    is_interrupted: bool,
}

/// A netlink socket of the network namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    /// The number by which the kernel knows it.
    port: u32,
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

    /// The number by which the kernel knows it: announcements of changes name it.
    pub fn port(&self) -> u32 {
        self.port
    }

    pub(crate) fn open_for(protocol: isize) -> io::Result<Netlink> {
        let mut socket = Socket::new(protocol)?;
        let port = socket.bind_auto()?.port_number();
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, port, sequence: 0 })
    }

    /// Sends a request, with `NLM_F_*` flags, and waits for the whole answer; a successful change has an empty one.
    ///
    /// # Errors
    /// The kernel's error; [`io::ErrorKind::ResourceBusy`] of a dump that changes interrupt each time.
    pub fn ask(&mut self, flags: u16, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.exchange(flags, message)
    }

    /// Asks for a dump, again while changes interrupt it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn dump(&mut self, message: &RouteNetlinkMessage) -> io::Result<Dump<RouteNetlinkMessage>> {
        repeated(|| self.exchange_once(NLM_F_DUMP, message.clone()))
    }

    pub(crate) fn exchange<M>(&mut self, flags: u16, message: M) -> io::Result<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>> + Clone,
    {
        if flags & NLM_F_DUMP != NLM_F_DUMP {
            return self.exchange_once(flags, message).map(|answer| answer.messages);
        }
        match repeated(|| self.exchange_once(flags, message.clone()))? {
            Dump { messages, is_whole: true } => Ok(messages),
            Dump { is_whole: false, .. } => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }

    fn exchange_once<M>(&mut self, flags: u16, message: M) -> io::Result<Answer<M>>
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
        let mut answer = Answer { messages: Vec::new(), is_interrupted: false };
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            if answer.take(&datagram, self.sequence)? {
                return Ok(answer);
            }
        }
    }
}

impl<M: NetlinkDeserializable> Answer<M> {
    /// Takes what has come; whether that was all.
    fn take(&mut self, datagram: &[u8], sequence: u32) -> io::Result<bool> {
        let mut rest = datagram;
        while !rest.is_empty() {
            let length = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?.length() as usize;
            let message = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
            // messages are aligned to four bytes
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            if message.header.sequence_number != sequence {
                continue;
            }
            self.is_interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
            match message.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::InnerMessage(message) => self.messages.push(message),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Repeats `once` while changes interrupt it.
fn repeated<M>(mut once: impl FnMut() -> io::Result<Answer<M>>) -> io::Result<Dump<M>> {
    let mut all = Vec::new();
    for _ in 0..TRIES {
        let answer = once()?;
        if !answer.is_interrupted {
            return Ok(Dump { messages: answer.messages, is_whole: true });
        }
        all.extend(answer.messages);
    }
    Ok(Dump { messages: all, is_whole: false })
}
