//! What the enforcer asks of a packet, and what it answers.

use std::net::{IpAddr, Ipv6Addr};
use tcp::{Ecn, SackBlock, Segment};

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the hosts whose sending is enforced, the servers, to the others.
    Out,
    /// From the others, the clients, to them.
    In,
}

/// What becomes of a packet that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<P> {
    /// It goes on as it came.
    Forward(P),
    /// It goes on with another window, or without what the server must not see.
    Rewritten(P),
    /// The enforcer has it: it leaves by [`crate::Enforcer::poll_transmit`] when its time has come, or its like already has.
    Held,
    /// It goes no further.
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

    /// The address as it was written.
    pub fn ip(&self) -> IpAddr {
        self.address.to_canonical()
    }
}

/// What the headers of a TCP packet say.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Who sent it.
    pub source: End,
    /// Whom to.
    pub destination: End,
    /// Its VLAN, 0 for none: the same ends in two VLANs are two connections.
    pub vlan: u16,
    /// The differentiated services code point.
    pub dscp: u8,
    /// It is signed (TCP-MD5, RFC 2385; TCP-AO, RFC 5925): changed it would be refused. Or it is a SYN that asks for what acknowledgments
    /// carry beside their number (Multipath TCP, RFC 8684; accurate ECN, RFC 9768), so that none may be kept from the server.
    pub untouchable: bool,
    /// The TCP header and its options. The window is asked for apart ([`Packet::window`]), since it takes the connection's
    /// scale. Payload of a super-packet counts whole.
    pub segment: Segment,
}

/// A packet that the enforcer can look at, change, keep and cut. What it changes, checksums follow.
pub trait Packet: Clone {
    /// What it is; `None` if it is not TCP, is a fragment, is malformed or its checksum is wrong.
    fn header(&self) -> Option<Header>;

    /// The window, bytes, of a connection with this scale.
    fn window(&self, scale: u8) -> u32;

    /// Another window, as it is written in the header, of a connection with this scale.
    fn set_window(&mut self, written: u16, scale: u8);

    /// Another sequence number.
    fn set_seq(&mut self, seq: u32);

    /// Another acknowledgment number.
    fn set_ack(&mut self, ack: u32);

    /// Other timestamps, of a packet that has them.
    fn set_timestamps(&mut self, tsval: u32, tsecr: u32);

    /// Other flags ([`tcp::flags`]).
    fn set_flags(&mut self, flags: u8);

    /// Another ECN field.
    fn set_ecn(&mut self, ecn: Ecn);

    /// Payload bytes of each of the packets that it will be on the way, but for a shorter last one.
    fn each(&self) -> u32;

    /// Addresses of the link, destination and source.
    fn link(&self) -> [u8; 12];

    /// Other ones.
    fn set_link(&mut self, link: [u8; 12]);

    /// Takes the SACK blocks out.
    fn strip_sack(&mut self);

    /// This SACK block alone, of a packet without payload whose options leave room for it; false: there is none.
    fn set_sack(&mut self, block: SackBlock) -> bool;

    /// The `len` sequence numbers from the `from`th on, FIN being the last: header and a part of the payload.
    #[must_use]
    fn part(&self, from: u32, len: u32) -> Self;

    /// Its header with no payload, and with no flag but ACK.
    #[must_use]
    fn bare(&self) -> Self;

    /// The memory that it takes, bytes.
    fn bytes(&self) -> usize;
}
