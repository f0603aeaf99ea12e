//! The engine's interface to the outside: ports where hosts' packets enter and leave, and a clock.
//!
//! The engine never parses a packet; only an enforcer does, which takes it from the port. A port describes each packet ([`Head`])
//! and keeps the bytes; so the engine runs the same on TAP devices and on lists in memory.

use crate::slowdown::Slowdown;
use net::Ecn;
use packet_io::OwnedFrame;
use units::Time;

/// The engine's description of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the sending host.
    pub src: u32,
    /// The number of the destination host.
    pub dst: u32,
    /// What ECMP hashes.
    pub hash: u32,
    /// Length of the IP packet, bytes.
    pub ip_len: u16,
    /// The ECN bits of its IP header.
    pub ecn: Ecn,
    /// The scenario's flow that it belongs to; `None` for other traffic.
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

    /// Moves the packet's bytes out of the port, which forgets it.
    fn lift(&mut self, packet: Self::Packet) -> OwnedFrame;

    /// Gives the port another packet.
    fn lower(&mut self, frame: OwnedFrame) -> Self::Packet;

    /// Delivers the packet to host number `host`, at once or at the next [`flush`](Ports::flush).
    fn release(&mut self, host: u32, packet: Self::Packet);

    /// The packet is gone: dropped, or lost with a link.
    fn discard(&mut self, packet: Self::Packet);

    /// Whether [`release`](Ports::release) delays packets until [`flush`](Ports::flush), so that neighbours can leave
    /// as one.
    fn holds_back(&self) -> bool;

    /// Delivers the delayed packets of `host`.
    fn flush(&mut self, host: u32);

    /// Reads the next packets that hosts have sent, up to a limit of the port's own, and gives each to `take` in order,
    /// with its description. False if there was none.
    fn receive(&mut self, take: &mut impl FnMut(&mut Self, Self::Packet, Head)) -> bool;
}

/// The time since the run began.
pub trait Clock {
    /// Now; never less than before.
    fn now(&self) -> Time;

    /// A span of real time on this clock.
    fn of_real(&self, span: Time) -> Time {
        span
    }
}

/// The network's clock by the wall clock, zero when made.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    began: std::time::Instant,
    slowdown: Slowdown,
}

impl WallClock {
    /// A clock that shows zero now.
    pub fn start(slowdown: Slowdown) -> WallClock {
        WallClock { began: std::time::Instant::now(), slowdown }
    }

    /// How slow it is.
    pub fn slowdown(&self) -> Slowdown {
        self.slowdown
    }
}

impl Clock for WallClock {
    #[inline]
    fn now(&self) -> Time {
        self.of_real(Time::from_ns(self.began.elapsed().as_nanos() as u64))
    }

    #[inline]
    fn of_real(&self, span: Time) -> Time {
        self.slowdown.of_real(span)
    }
}
