//! The enforcer's interface to packets.

use std::net::{IpAddr, Ipv6Addr};
use tcp::{Ecn, SackBlock, Segment};

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From servers, whose sending is enforced, to clients.
    Out,
    /// From clients to servers.
    In,
}

/// What to do with a packet that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<P> {
    /// Forward it unchanged.
    Forward(P),
    /// Forward it with another window, or without what the server must not see.
    Rewritten(P),
    /// The enforcer has taken it: [`crate::Enforcer::poll_transmit`] returns it in time, or its copy was already sent.
    Held,
    /// Drop it.
    Dropped,
}

/// One end of a connection: its address, an IPv4 one as IPv6 writes it (RFC 4291 2.5.5.2), and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The address.
    pub address: Ipv6Addr,
    /// The port.
    pub port: u16,
}

impl End {
    /// The end at `address` and `port`.
    pub fn new(address: IpAddr, port: u16) -> End {
        let address = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        End { address, port }
    }

    /// The address in its own family.
    pub fn ip(&self) -> IpAddr {
        self.address.to_canonical()
    }
}

/// The headers of a TCP packet.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The sender.
    pub source: End,
    /// The receiver.
    pub destination: End,
    /// Its VLAN, 0 for none: the same ends in two VLANs are two connections.
    pub vlan: u16,
    /// The differentiated services code point.
    pub dscp: u8,
    /// It is signed (TCP-MD5, RFC 2385; TCP-AO, RFC 5925): a changed one would be refused. Or it is a SYN for options that use ACKs
    /// for more than their number (Multipath TCP, RFC 8684; accurate ECN, RFC 9768), so that no ACK may be dropped.
    pub untouchable: bool,
    /// The TCP header and its options. The window has a method of its own ([`Packet::window`]), since it needs the connection's
    /// scale. Payload of a super-segment counts whole.
    pub segment: Segment,
}

/// A packet that the enforcer can read, change, buffer and cut. Changes update its checksums.
pub trait Packet: Clone {
    /// Its headers; `None` if it is not TCP, is a fragment, is malformed or its checksum is wrong.
    fn header(&self) -> Option<Header>;

    /// The window of a connection with this scale, bytes.
    fn window(&self, scale: u8) -> u32;

    /// Sets the window, of a connection with this scale.
    fn set_window(&mut self, written: u16, scale: u8);

    /// Sets the sequence number.
    fn set_seq(&mut self, seq: u32);

    /// Sets the acknowledgment number.
    fn set_ack(&mut self, ack: u32);

    /// Sets the timestamps of a packet that has them.
    fn set_timestamps(&mut self, tsval: u32, tsecr: u32);

    /// Sets the flags ([`tcp::flags`]).
    fn set_flags(&mut self, flags: u8);

    /// Sets the ECN field.
    fn set_ecn(&mut self, ecn: Ecn);

    /// Payload bytes of each wire packet that it becomes, except a shorter last one.
    fn each(&self) -> u32;

    /// Link addresses, destination and source.
    fn link(&self) -> [u8; 12];

    /// Sets them.
    fn set_link(&mut self, link: [u8; 12]);

    /// Removes the SACK blocks.
    fn strip_sack(&mut self);

    /// Sets this SACK block alone, on a packet without payload whose options have room for it; false: there is none.
    fn set_sack(&mut self, block: SackBlock) -> bool;

    /// The `len` sequence numbers from the `from`th on, a FIN being the last: header and a part of the payload.
    #[must_use]
    fn part(&self, from: u32, len: u32) -> Self;

    /// Its header without payload, and with only the flag ACK.
    #[must_use]
    fn bare(&self) -> Self;

    /// Its memory, bytes.
    fn bytes(&self) -> usize;
}
