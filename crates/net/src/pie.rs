//! PIE, the proportional integral controller enhanced (RFC 8033).
//!
//! Every `update` the drop probability moves by
//!
//! ```text
//! p += alpha (delay - target) + beta (delay - old delay)      delays in seconds
//! ```
//!
//! in smaller steps while it is small (section 4.2), and each arrival is dropped or marked with that probability. The
//! link has one rate, so the delay is what it has to send, and known at every instant (section 4.3 estimates it where the
//! rate is unknown). It only changes by arrivals and by time, so the timer needs no event: what it would have done is
//! done at the next arrival, with the delays of those instants.

use crate::ecn::Ecn;
use crate::mix::SplitMix64;
use crate::verdict::Verdict;
use units::Time;

/// Parameters of PIE; the defaults are those of RFC 8033.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieSpec {
    /// The delay to hold (QDELAY_REF).
    pub target: Time,
    /// How often the probability changes (T_UPDATE), above zero.
    pub update: Time,
    /// After an idle time nothing is dropped for so long (MAX_BURST).
    pub burst: Time,
    /// Weight of the deviation from the target, per second.
    pub alpha: f64,
    /// Weight of the delay's change, per second.
    pub beta: f64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Above this probability they are dropped nevertheless (section 5.1).
    pub mark_max: f64,
    /// Length, in bytes on the wire, of a full packet: two of them are always accepted.
    pub mean_packet: u16,
}

impl Default for PieSpec {
    fn default() -> PieSpec {
        PieSpec {
            target: Time::from_ms(15),
            update: Time::from_ms(15),
            burst: Time::from_ms(150),
            alpha: 0.125,
            beta: 1.25,
            ecn: false,
            mark_max: 0.1,
            mean_packet: 1538,
        }
    }
}

impl PieSpec {
    /// What is wrong with the parameters, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let weight = |x: f64| x > 0.0 && x.is_finite();
        if self.target == Time::ZERO || self.update == Time::ZERO {
            Some("PIE's target and update are spans above zero")
        } else if !weight(self.alpha) || !weight(self.beta) {
            Some("PIE's alpha and beta are weights above zero")
        } else if self.mean_packet == 0 {
            Some("PIE's mean_packet is zero; give the usual length of a packet in bytes")
        } else {
            None
        }
    }
}

/// The state of PIE at one queue.
#[derive(Debug, Clone)]
pub(crate) struct Pie {
    spec: PieSpec,
    drop_prob: f64,
    /// Sum of the probabilities since the last drop: keeps drops apart, and from being too far apart (section 5.4).
    accu_prob: f64,
    /// What is left of the burst during which nothing is dropped.
    allowance: Time,
    /// The delay at the last update.
    old: Time,
    next_update: Time,
    random: SplitMix64,
}

impl Pie {
    pub fn new(spec: &PieSpec, random: SplitMix64) -> Pie {
        Pie {
            spec: *spec,
            drop_prob: 0.0,
            accu_prob: 0.0,
            allowance: spec.burst,
            old: Time::ZERO,
            next_update: spec.update,
            random,
        }
    }

    /// The drop probability as of the last arrival.
    pub fn probability(&self) -> f64 {
        self.drop_prob
    }

    /// A packet arrives at `now` at a queue of `bytes`, which without it would be empty at `busy_until`.
    pub fn on_arrival(&mut self, now: Time, busy_until: Time, bytes: u64, ecn: Ecn) -> Verdict {
        self.catch_up(now, busy_until);
        let half = self.spec.target.as_ps() / 2;
        let delay = busy_until.saturating_sub(now);
        if self.drop_prob == 0.0 && delay.as_ps() < half && self.old.as_ps() < half {
            self.allowance = self.spec.burst;
        }
        if self.allowance > Time::ZERO || !self.strikes(bytes) {
            return Verdict::Pass;
        }
        self.accu_prob = 0.0;
        if self.spec.ecn && ecn.is_capable() && self.drop_prob <= self.spec.mark_max {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// A packet did not fit.
    pub fn on_overflow(&mut self) {
        self.accu_prob = 0.0;
    }

    /// drop_early of the RFC.
    fn strikes(&mut self, bytes: u64) -> bool {
        let is_short = self.old.as_ps() < self.spec.target.as_ps() / 2 && self.drop_prob < 0.2;
        if is_short || bytes <= 2 * u64::from(self.spec.mean_packet) {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            false
        } else if self.accu_prob >= 8.5 {
            true
        } else {
            self.random.unit() < self.drop_prob
        }
    }

    /// Does the updates that were due by `now`: nothing has arrived since the last.
    fn catch_up(&mut self, now: Time, busy_until: Time) {
        while self.next_update <= now {
            let delay = busy_until.saturating_sub(self.next_update);
            if delay == Time::ZERO && self.is_at_rest() {
                // more updates change nothing
                let missed = (now - self.next_update).as_ps() / self.spec.update.as_ps() + 1;
                self.next_update += Time::from_ps(missed * self.spec.update.as_ps());
                return;
            }
            self.update(delay);
            self.next_update += self.spec.update;
        }
    }

    fn is_at_rest(&self) -> bool {
        self.drop_prob == 0.0 && self.old == Time::ZERO && self.allowance == Time::ZERO
    }

    /// calculate_drop_prob of the RFC.
    fn update(&mut self, delay: Time) {
        let (now_s, target_s, old_s) = (delay.as_secs_f64(), self.spec.target.as_secs_f64(), self.old.as_secs_f64());
        let step = self.spec.alpha * (now_s - target_s) + self.spec.beta * (now_s - old_s);
        let step = step / self.divisor();
        // section 5.5: no large steps while the probability is high
        let step = if self.drop_prob >= 0.1 { step.min(0.02) } else { step };
        self.drop_prob = (self.drop_prob + step).clamp(0.0, 1.0);
        if delay == Time::ZERO && self.old == Time::ZERO {
            self.drop_prob = (self.drop_prob * 0.98).clamp(0.0, 1.0);
        }
        self.old = delay;
        self.allowance = self.allowance.saturating_sub(self.spec.update);
    }

    /// The table of section 4.2, extended as in the RFC's appendix.
    fn divisor(&self) -> f64 {
        const STEPS: [(f64, f64); 6] =
            [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
        STEPS.iter().find(|(below, _)| self.drop_prob < *below).map_or(1.0, |(_, divisor)| *divisor)
    }
}
