//! What the engine needs of the outside: ports at which hosts' packets come and go, and a clock.
//!
//! The engine never looks into a packet, but for an enforcer, which takes it out of the port's hands. A port says what it must know ([`Head`]) and keeps the bytes; so the engine runs
//! the same on TAP devices and on lists in memory.

use net::Ecn;
use packet_io::OwnedFrame;
use units::Time;

/// What the engine knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The host that it comes from, by number.
    pub src: u32,
    /// The host that it goes to, by number.
    pub dst: u32,
    /// What ECMP hashes.
    pub hash: u32,
    /// Length of the IP packet, bytes.
    pub ip_len: u16,
    /// The ECN bits of its IP header.
    pub ecn: Ecn,
    /// Which of the scenario's flows it belongs to; none for what others send.
    pub flow: Option<FlowPacket>,
}

/// A packet of one of the scenario's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPacket {
    /// The flow's number.
    pub flow: u32,
    /// From its sender to its receiver, or back.
    pub forward: bool,
    /// Its payload, bytes.
    pub payload: u16,
    /// It carries the TCP flag ECE (outside of the handshake).
    pub ece: bool,
}

/// Where hosts are attached.
///
/// The engine calls [`mark`](Ports::mark) any number of times on a packet, and then exactly one of
/// [`release`](Ports::release), [`discard`](Ports::discard) and [`lift`](Ports::lift).
pub trait Ports {
    /// A packet that the engine holds.
    type Packet;

    /// Sets the packet to "congestion experienced", in its real header.
    fn mark(&mut self, packet: &mut Self::Packet);

    /// Takes the packet's bytes out of the port's hands: it exists no more.
    fn lift(&mut self, packet: Self::Packet) -> OwnedFrame;

    /// Gives the port another packet.
    fn lower(&mut self, frame: OwnedFrame) -> Self::Packet;

    /// Hands the packet to host number `host`, at once or at the next [`flush`](Ports::flush).
    fn release(&mut self, host: u32, packet: Self::Packet);

    /// The packet is gone: dropped, or lost with a link.
    fn discard(&mut self, packet: Self::Packet);

    /// Whether [`release`](Ports::release) keeps packets back until [`flush`](Ports::flush), so that neighbours can leave
    /// as one.
    fn holds_back(&self) -> bool;

    /// Hands over what was kept back for `host`.
    fn flush(&mut self, host: u32);

    /// Takes the next packets that hosts have sent, up to a bound of the port's own, and gives each to `take` in order,
    /// with what the engine must know. False if there was nothing.
    fn receive(&mut self, take: &mut impl FnMut(&mut Self, Self::Packet, Head)) -> bool;
}

/// The time since the run began.
pub trait Clock {
    /// Now; never less than before.
    fn now(&self) -> Time;
}

/// The wall clock, zero when made.
#[derive(Clone, Copy, Debug)]
pub struct WallClock(std::time::Instant);

impl WallClock {
    /// A clock that shows zero now.
    pub fn start() -> WallClock {
        WallClock(std::time::Instant::now())
    }
}

impl Clock for WallClock {
    #[inline]
    fn now(&self) -> Time {
        Time::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}
