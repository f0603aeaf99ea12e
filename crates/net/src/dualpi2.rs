//! DualPI2, two queues with coupled congestion signals (RFC 9332, appendix A).
//!
//! Packets with ECT(1) or CE go to the low-latency queue L, which marks each packet that has waited for longer than a step;
//! all others go to the classic queue C. A proportional integral controller moves a base probability p' by C's delay, as
//! PIE does. C drops or marks with p'², because classic TCP's rate goes with the root of it; L marks with at least k p',
//! because a scalable control's rate goes with its inverse. So both have about the same rate per flow.
//!
//! L is served first, but C has a share of the link. Signals are spread evenly instead of drawn at random (`recur` of the
//! RFC). Under overload, when k p' reaches 1, L drops as well.

use crate::ecn::Ecn;
use crate::fifo::{Fifo, QueuedPacket, Taken};
use units::Time;

/// Parameters of DualPI2; the defaults are those of RFC 9332.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualPi2Spec {
    /// The delay of C to hold.
    pub target: Time,
    /// The longest round-trip time for which the controller is stable with a margin.
    pub rtt_max: Time,
    /// L marks each packet that has waited for longer.
    pub step: Time,
    /// k: how much stronger the signal in L is.
    pub coupling: f64,
    /// The share of the link that C has when L takes all that it can, in (0, 1).
    pub classic_share: f64,
    /// Length, in bytes on the wire, of a full packet: L does not mark by the step a packet that waits alone.
    pub max_packet: u16,
}

impl Default for DualPi2Spec {
    fn default() -> DualPi2Spec {
        DualPi2Spec {
            target: Time::from_ms(15),
            rtt_max: Time::from_ms(100),
            step: Time::from_ms(1),
            coupling: 2.0,
            classic_share: 0.1,
            max_packet: 1538,
        }
    }
}

impl DualPi2Spec {
    /// What is wrong with the parameters, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.update() == Time::ZERO {
            Some("DualPI2's target and rtt_max are spans above zero")
        } else if !(self.coupling >= 1.0 && self.coupling.is_finite()) {
            Some("DualPI2's coupling is at least 1")
        } else if !(self.classic_share > 0.0 && self.classic_share < 1.0) {
            Some("DualPI2's classic_share is above 0 and below 1")
        } else {
            None
        }
    }

    /// How often the base probability changes.
    fn update(&self) -> Time {
        self.target.min(Time::from_ps(self.rtt_max.as_ps() / 3))
    }

    /// Weight of the deviation from the target, per second.
    fn alpha(&self) -> f64 {
        let rtt_max = self.rtt_max.as_secs_f64();
        0.1 * self.update().as_secs_f64() / (rtt_max * rtt_max)
    }

    /// Weight of the delay's change, per second.
    fn beta(&self) -> f64 {
        0.3 / self.rtt_max.as_secs_f64()
    }

    /// The classic probability at which both queues drop what they would mark.
    fn overload(&self) -> f64 {
        (1.0 / (self.coupling * self.coupling)).min(1.0)
    }
}

/// One of the two queues.
#[derive(Debug, Clone, Default)]
struct Half {
    fifo: Fifo,
    /// Probability collected towards the next signal.
    collected: f64,
}

impl Half {
    /// Whether the next signal is due: as often as `likelihood` says, evenly spread.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.collected += likelihood;
        let due = self.collected > 1.0;
        self.collected -= if due { 1.0 } else { 0.0 };
        due
    }
}

/// The state of DualPI2 at one link.
#[derive(Debug, Clone)]
pub(crate) struct DualPi2 {
    spec: DualPi2Spec,
    low: Half,
    classic: Half,
    /// p', from 0 to 1.
    base: f64,
    /// The delay at the last update.
    old: Time,
    next_update: Time,
    /// Bytes that L may take, times C's share, before it is C's turn.
    credit: f64,
}

impl DualPi2 {
    pub fn new(spec: &DualPi2Spec) -> DualPi2 {
        DualPi2 {
            spec: *spec,
            low: Half::default(),
            classic: Half::default(),
            base: 0.0,
            old: Time::ZERO,
            next_update: spec.update(),
            credit: 0.0,
        }
    }

    pub fn packets(&self) -> u32 {
        self.low.fifo.packets() + self.classic.fifo.packets()
    }

    pub fn bytes(&self) -> u64 {
        self.low.fifo.bytes() + self.classic.fifo.bytes()
    }

    pub fn clear(&mut self, gone: &mut Vec<QueuedPacket>) {
        self.low.fifo.clear(gone);
        self.classic.fifo.clear(gone);
    }

    pub fn enqueue(&mut self, now: Time, packet: QueuedPacket) {
        self.catch_up(now);
        let half = if matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce) { &mut self.low } else { &mut self.classic };
        half.fifo.push(now, packet);
    }

    pub fn dequeue(&mut self, now: Time, dropped: &mut Vec<QueuedPacket>) -> Option<Taken> {
        self.catch_up(now);
        loop {
            let taken = if self.is_lows_turn() { self.take_low(now) } else { self.take_classic() }?;
            match taken {
                (packet, Signal::None) => return Some(Taken { packet, mark: false }),
                (packet, Signal::Mark) => return Some(Taken { packet, mark: true }),
                (packet, Signal::Drop) => dropped.push(packet),
            }
        }
    }

    fn take_low(&mut self, now: Time) -> Option<(QueuedPacket, Signal)> {
        let alone = self.low.fifo.bytes() <= u64::from(self.spec.max_packet);
        let first = self.low.fifo.pop()?;
        self.credit -= self.spec.classic_share * f64::from(first.packet.len);
        let coupled = self.spec.coupling * self.base;
        let own = if !alone && now.saturating_sub(first.since) > self.spec.step { 1.0 } else { 0.0 };
        let signal = if coupled >= 1.0 && self.low.recurs(self.base * self.base) {
            Signal::Drop
        } else if own >= 1.0 || coupled >= 1.0 || self.low.recurs(coupled) {
            Signal::Mark
        } else {
            Signal::None
        };
        Some((first.packet, signal))
    }

    fn take_classic(&mut self) -> Option<(QueuedPacket, Signal)> {
        let first = self.classic.fifo.pop()?;
        self.credit += (1.0 - self.spec.classic_share) * f64::from(first.packet.len);
        let likelihood = self.base * self.base;
        let signal = match self.classic.recurs(likelihood) {
            false => Signal::None,
            true if first.packet.ecn.is_capable() && likelihood < self.spec.overload() => Signal::Mark,
            true => Signal::Drop,
        };
        Some((first.packet, signal))
    }

    /// L goes first while it has credit; the credit only counts while both queues have packets.
    fn is_lows_turn(&mut self) -> bool {
        if self.low.fifo.is_empty() || self.classic.fifo.is_empty() {
            self.credit = f64::from(self.spec.max_packet) * self.spec.classic_share;
            return !self.low.fifo.is_empty();
        }
        self.credit > 0.0
    }

    /// Does the updates that were due by `now`: no packet has come or left since the last.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let delay = self.classic.fifo.sojourn(at).max(self.low.fifo.sojourn(at));
            if delay == Time::ZERO && self.old == Time::ZERO && self.base == 0.0 {
                // more updates change nothing
                let update = self.spec.update().as_ps();
                self.next_update += Time::from_ps(((now - at).as_ps() / update + 1) * update);
                return;
            }
            let (delay_s, old_s, target_s) =
                (delay.as_secs_f64(), self.old.as_secs_f64(), self.spec.target.as_secs_f64());
            let step = self.spec.alpha() * (delay_s - target_s) + self.spec.beta() * (delay_s - old_s);
            self.base = (self.base + step).clamp(0.0, 1.0);
            self.old = delay;
            self.next_update += self.spec.update();
        }
    }
}

/// What a departing packet tells its sender.
enum Signal {
    None,
    Mark,
    Drop,
}
