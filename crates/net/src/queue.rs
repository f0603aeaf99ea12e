//! Queue disciplines: how long a queue may get, and which packets are marked or dropped before that.

use crate::ecn::Ecn;
use crate::mix::SplitMix64;
use crate::pie::PieSpec;
use crate::scheduler::SchedulerSpec;
use crate::verdict::Verdict;
use units::{Bytes, Rate, Time};

/// The queue in front of a link: a limit, and optionally active management below the limit.
///
/// A queue's length counts the packet that is being sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSpec {
    /// Beyond this, arrivals are dropped ("drop-tail").
    pub limit: Limit,
    /// Marks or drops before the limit is reached.
    pub aqm: Aqm,
}

/// How long a queue may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No limit: a host's own interface, where the sender waits instead of dropping.
    Unlimited,
    /// This many packets, at least one.
    Packets(u32),
    /// This many bytes: a packet that would exceed it is dropped.
    Bytes(Bytes),
}

/// A queue length at which something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(Bytes),
}

/// Active queue management.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aqm {
    /// None: drop-tail alone.
    None,
    /// DCTCP's switch (RFC 8257 section 3.1): an ECN-capable packet that finds at least this much in the queue is
    /// marked. Others are dropped only at the limit.
    Threshold(Depth),
    /// Random early detection.
    Red(RedSpec),
    /// The proportional integral controller enhanced.
    Pie(PieSpec),
    /// One that decides when a packet departs: the link holds its packets ([`LinkTable::hold`](crate::LinkTable::hold)).
    Held(SchedulerSpec),
}

/// Random early detection (Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM
/// ToN 1993), thresholds in packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedSpec {
    /// Average queue, in packets, below which nothing happens.
    pub min_th: f64,
    /// Average queue, in packets, from which every packet is marked or dropped (with `gentle`, from twice this).
    pub max_th: f64,
    /// Probability at `max_th`, in (0, 1].
    pub max_p: f64,
    /// Weight of the newest sample in the average, in (0, 1]; the paper uses 0.002.
    pub w_q: f64,
    /// Between `max_th` and twice that the probability rises from `max_p` to 1, instead of jumping to 1 at `max_th`
    /// (Floyd, "Recommendation on using the gentle variant of RED", 2000).
    pub gentle: bool,
    /// Mark ECN-capable packets where others are dropped early.
    pub ecn: bool,
    /// Drop ECN-capable packets too where the probability has reached 1 (RFC 3168 section 7); the 1993 paper marks
    /// them.
    pub hard_drop: bool,
    /// Length, in bytes on the wire, of the packets that an idle link could have sent: the average decays over idle
    /// time as if that many packets had found the queue empty.
    pub mean_packet: u16,
}

/// How the ports of one switch share its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BufferSpec {
    /// Each port has its own, given by its queue's limit.
    Private,
    /// One memory for all.
    Shared(SharedSpec),
}

/// A switch's memory, as in switch chips: each port has its reserve, and the rest is a pool with dynamic thresholds (Choudhury and
/// Hahne, IEEE/ACM ToN 1998). What a port has queued beyond its reserve is in the pool. A packet that does not fit the reserve is
/// accepted if the pool has room, and if the port then holds at most alpha × (the pool's free part) of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedSpec {
    /// All of the memory.
    pub total: Bytes,
    /// How much of the pool's free part one port may take, above zero; switches use 1/8 to 8.
    pub alpha: f64,
    /// The same for packets that are not ECN-capable: a class that is dropped earlier or later than the other.
    pub alpha_not_ect: f64,
    /// Of each port alone.
    pub reserve: Bytes,
    /// The part of the pool, from 0 to below 1, that ports beyond an equal share of the pool leave free: room for bursts at others.
    pub headroom: f64,
}

impl SharedSpec {
    /// A pool alone, with one threshold.
    pub const fn new(total: Bytes, alpha: f64) -> SharedSpec {
        SharedSpec { total, alpha, alpha_not_ect: alpha, reserve: Bytes::new(0), headroom: 0.0 }
    }
}

impl QueueSpec {
    /// Drop-tail with a limit in packets.
    pub const fn drop_tail(packets: u32) -> QueueSpec {
        QueueSpec { limit: Limit::Packets(packets), aqm: Aqm::None }
    }

    /// Drop-tail with a limit in bytes.
    pub const fn drop_tail_bytes(bytes: Bytes) -> QueueSpec {
        QueueSpec { limit: Limit::Bytes(bytes), aqm: Aqm::None }
    }

    /// A queue that never drops.
    pub const fn unlimited() -> QueueSpec {
        QueueSpec { limit: Limit::Unlimited, aqm: Aqm::None }
    }

    /// This queue, marking from `depth` on.
    #[must_use]
    pub fn marking(self, depth: Depth) -> QueueSpec {
        QueueSpec { aqm: Aqm::Threshold(depth), ..self }
    }

    /// This queue, with another discipline.
    #[must_use]
    pub fn with(self, aqm: Aqm) -> QueueSpec {
        QueueSpec { aqm, ..self }
    }

    /// This queue, with random early detection.
    #[must_use]
    pub fn red(self, red: RedSpec) -> QueueSpec {
        QueueSpec { aqm: Aqm::Red(red), ..self }
    }
}

impl RedSpec {
    /// What is wrong with the parameters, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let unit = |x: f64| x > 0.0 && x <= 1.0;
        if !(self.min_th >= 0.0 && self.max_th > self.min_th && self.max_th.is_finite()) {
            Some("RED's thresholds must be 0 <= min_th < max_th")
        } else if !unit(self.max_p) {
            Some("RED's max_p is a probability: above 0, at most 1")
        } else if !unit(self.w_q) {
            Some("RED's w_q is a weight: above 0, at most 1")
        } else if self.mean_packet == 0 {
            Some("RED's mean_packet is zero; give the usual length of a packet in bytes")
        } else {
            None
        }
    }
}

/// The state of random early detection at one queue.
#[derive(Debug, Clone)]
pub(crate) struct Red {
    spec: RedSpec,
    /// Average queue, in packets.
    avg: f64,
    /// Packets since the last mark or drop while the average is between the thresholds; -1 below `min_th`.
    count: i64,
    /// Time that one packet of `mean_packet` bytes takes, in picoseconds.
    packet_ps: f64,
    random: SplitMix64,
}

impl Red {
    pub fn new(spec: &RedSpec, rate: Rate, random: SplitMix64) -> Red {
        let packet_ps = rate.serialization(u64::from(spec.mean_packet)).as_ps() as f64;
        Red { spec: *spec, avg: 0.0, count: -1, packet_ps, random }
    }

    /// Average queue, in packets.
    pub fn average(&self) -> f64 {
        self.avg
    }

    /// A packet arrives and finds `queued` packets; if none, the link has been idle for `idle`.
    pub fn on_arrival(&mut self, queued: u32, idle: Time, ecn: Ecn) -> Verdict {
        self.average_in(queued, idle);
        let p_b = self.probability();
        if p_b <= 0.0 {
            self.count = if self.avg < self.spec.min_th { -1 } else { self.count + 1 };
            return Verdict::Pass;
        }
        self.count += 1;
        if p_b >= 1.0 {
            self.count = 0;
            return self.notify(ecn, self.spec.hard_drop);
        }
        // Section 7, method 2: p_a = p_b / (1 - count * p_b) makes the gaps between marks uniform.
        let spread = 1.0 - self.count as f64 * p_b;
        if spread > 0.0 && self.random.unit() * spread >= p_b {
            return Verdict::Pass;
        }
        self.count = 0;
        self.notify(ecn, false)
    }

    /// avg = (1 - w_q) avg + w_q q, or after idling for m packet times avg = (1 - w_q)^m avg (figure 2 of the paper).
    fn average_in(&mut self, queued: u32, idle: Time) {
        let w = self.spec.w_q;
        if queued == 0 {
            self.avg *= libm::pow(1.0 - w, idle.as_ps() as f64 / self.packet_ps);
        } else {
            self.avg += w * (f64::from(queued) - self.avg);
        }
    }

    /// p_b: 0 below `min_th`, rising to `max_p` at `max_th`, then 1 (or rising to 1 at twice `max_th`).
    fn probability(&self) -> f64 {
        let RedSpec { min_th, max_th, max_p, gentle, .. } = self.spec;
        if self.avg < min_th {
            0.0
        } else if self.avg < max_th {
            max_p * (self.avg - min_th) / (max_th - min_th)
        } else if gentle && self.avg < 2.0 * max_th {
            max_p + (1.0 - max_p) * (self.avg - max_th) / max_th
        } else {
            1.0
        }
    }

    fn notify(&self, ecn: Ecn, hard_drop: bool) -> Verdict {
        if self.spec.ecn && ecn.is_capable() && !hard_drop { Verdict::Mark } else { Verdict::Drop }
    }
}
