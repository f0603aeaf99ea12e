//! Timers: one for retransmission, probes and reordering, as Linux has; one for delayed ACKs; pacing's.

use crate::endpoint::{Endpoint, State, TimerKind, bit};
use units::Time;

/// Minimum time of a probe or a reordering timeout beyond its RTTs, µs (Linux: two ticks or 2 ms).
pub(crate) const TIMEOUT_MIN_US: u64 = 2_000;
/// When a timer that is set at `now` fires by a clock that ticks: the delay counts in whole ticks, and the tick that has begun does not count.
fn on_tick(now: Time, delay: Time, tick: Time) -> Time {
    let ticks = now.as_ps() / tick.as_ps() + delay.as_ps().div_ceil(tick.as_ps()) + 1;
    Time::from_ps(ticks.saturating_mul(tick.as_ps()))
}

/// Timeout of a probe before the first RTT sample, µs.
const PROBE_INITIAL_US: u64 = 1_000_000;
/// Retransmission timeouts in a row until the connection is given up (Linux: tcp_retries2).
const RETRIES_MAX: u8 = 15;
/// Doublings of the timeout; `rto_max` comes before it.
const BACKOFF_MAX: u8 = 20;

impl Endpoint {
    /// To be called when [`Endpoint::poll_timeout`] has come; harmless when early.
    pub fn on_timer(&mut self, now: Time) {
        self.refresh_clock(now);
        if self.ack_at <= now {
            self.ack_at = Time::NEVER;
            self.on_delayed_ack_timer();
        }
        if self.busy.work().is_some_and(|work| work.timer_at <= now) {
            let kind = self.timer;
            self.disarm();
            match kind {
                TimerKind::None => {}
                TimerKind::Retransmit => self.on_retransmit_timer(now),
                TimerKind::Probe => self.on_probe_timer(now),
                TimerKind::Reorder => self.on_reorder_timer(now),
                TimerKind::Persist => self.on_persist_timer(now),
            }
        }
    }

    /// Sets the timer to `delay_us` from now, later by what pacing delays the next segment.
    #[inline]
    pub(crate) fn arm(&mut self, kind: TimerKind, now: Time, delay_us: u64) {
        let paced_ns = self.sock.tcp_wstamp_ns.saturating_sub(self.sock.tcp_clock_cache);
        self.timer = kind;
        let delay = Time::from_ps(delay_us.saturating_mul(1_000_000) + paced_ns * 1_000);
        self.busy.make(&self.sock).timer_at = if self.config.timer_tick == Time::ZERO {
            now.saturating_add(delay)
        } else {
            on_tick(now, delay, self.config.timer_tick)
        };
    }

    #[inline]
    pub(crate) fn disarm(&mut self) {
        self.timer = TimerKind::None;
        if let Some(work) = self.busy.work_mut() {
            work.timer_at = Time::NEVER;
        }
    }

    /// µs until the oldest segment's timeout; negative once it is over.
    fn rto_left_us(&self) -> i64 {
        let elapsed = (self.sock.tcp_mstamp as u32).wrapping_sub(self.busy.at(0).sent_us);
        self.rto_us() as i64 - elapsed as i64
    }

    /// The retransmission timer anew; what a probe or reordering timer has waited counts.
    pub(crate) fn rearm_rto(&mut self, now: Time) {
        if self.sock.packets_out == 0 {
            self.disarm();
            return;
        }
        let delay_us = match self.timer {
            TimerKind::Probe | TimerKind::Reorder => self.rto_left_us().max(1) as u64,
            _ => self.rto_us(),
        };
        self.arm(TimerKind::Retransmit, now, delay_us);
    }

    /// A tail-loss probe in two RTTs, or with the timeout where that is sooner (RFC 8985 7.2). `advancing`: an ACK has just
    /// moved the timeout.
    #[inline]
    pub(crate) fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        let sock = &self.sock;
        let calm = matches!(sock.icsk_ca_state, congestion::sock::TCP_CA_OPEN | congestion::sock::TCP_CA_CWR);
        if !self.config.tlp || sock.packets_out == 0 || !self.has(bit::SACK) || !calm {
            return false;
        }
        let mut delay_us = if sock.srtt_us == 0 {
            PROBE_INITIAL_US
        } else {
            // one segment alone may be waiting for a delayed ACK
            let grace = if sock.packets_out == 1 { self.rto_min_us() as u64 } else { TIMEOUT_MIN_US };
            (sock.srtt_us >> 2) as u64 + grace
        };
        let rto_left = if advancing { self.rto_us() as i64 } else { self.rto_left_us() };
        if rto_left > 0 {
            delay_us = delay_us.min(rto_left as u64);
        }
        self.arm(TimerKind::Probe, now, delay_us);
        true
    }

    /// After an ACK of new data.
    #[inline]
    pub(crate) fn set_xmit_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    fn on_retransmit_timer(&mut self, now: Time) {
        match self.state {
            State::SynSent | State::SynReceived => return self.on_syn_timer(now),
            State::Listen | State::Closed | State::TimeWait => return,
            _ => {}
        }
        if self.sock.packets_out == 0 {
            return;
        }
        if self.sock.icsk_retransmits >= RETRIES_MAX {
            return self.finish(State::Closed);
        }
        self.enter_loss();
        self.sock.icsk_retransmits += 1;
        let rare = self.rare_mut();
        rare.stats.rtos += 1;
        rare.retransmit_head = true;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        let rto_us = self.rto_us();
        self.arm(TimerKind::Retransmit, now, rto_us);
        self.bits |= bit::RETRANSMIT;
    }

    /// SYN or SYN-ACK again.
    fn on_syn_timer(&mut self, now: Time) {
        if self.sock.icsk_retransmits as u32 >= self.config.syn_retries {
            return self.finish(State::Closed);
        }
        self.sock.icsk_retransmits += 1;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.rare_mut().stats.syn_retransmits += 1;
        self.bits |= bit::SPECIAL;
        let rto_us = self.rto_us();
        self.arm(TimerKind::Retransmit, now, rto_us);
    }

    /// Two RTTs of silence: one more segment, new or the last one again, so that the receiver says what is missing.
    fn on_probe_timer(&mut self, now: Time) {
        let outstanding = self.busy.rare().is_some_and(|rare| rare.tlp_high_seq.is_some());
        if self.sock.packets_out == 0 || outstanding {
            return self.rearm_rto(now);
        }
        self.rare_mut().probe_now = true;
        self.bits |= bit::RETRANSMIT;
        // until the probe is sent, the timeout holds
        self.rearm_rto(now);
    }

    /// RACK's reordering window is over: what is missing is lost.
    fn on_reorder_timer(&mut self, now: Time) {
        let in_flight = self.sock.packets_in_flight();
        let lost = self.sock.lost;
        self.detect_losses();
        if in_flight != self.sock.packets_in_flight() {
            if self.sock.icsk_ca_state != congestion::sock::TCP_CA_RECOVERY {
                self.enter_recovery(false);
                if !self.has_cong_control() && self.config.prr {
                    let newly_lost = self.sock.lost.wrapping_sub(lost);
                    self.reduce_window(1, newly_lost, 0);
                }
            }
            self.bits |= bit::RETRANSMIT;
        }
        if self.timer != TimerKind::Retransmit {
            self.timer = TimerKind::Reorder;
            self.rearm_rto(now);
        }
    }

    /// The window is still closed: ask.
    fn on_persist_timer(&mut self, now: Time) {
        if self.sock.packets_out > 0 || self.sendable() == 0 {
            self.backoff = 0;
            return;
        }
        self.rare_mut().stats.window_probes += 1;
        self.bits |= bit::SPECIAL;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        let delay_us = self.persist_us();
        self.arm(TimerKind::Persist, now, delay_us);
    }

    /// Time until the next probe of a closed window, µs.
    pub(crate) fn persist_us(&self) -> u64 {
        self.rto_us().max(self.rto_min_us() as u64)
    }

    /// RTO of segments in flight, ms, for what Linux compares with its ticks.
    #[inline]
    pub(crate) fn rto_ms(&self) -> u32 {
        (self.rto_us() / 1000) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_on_ticks_fires_after_its_delay_within_two_ticks() {
        let at =
            |now_us, delay_us| on_tick(Time::from_us(now_us), Time::from_us(delay_us), Time::from_ms(4)).as_ns() / 1000;
        // the shortest reordering timeout, 2 ms and something, takes 4 to 8 ms
        assert_eq!([at(0, 2_100), at(1, 2_100), at(3_999, 2_100), at(4_000, 2_100)], [8_000, 8_000, 8_000, 12_000]);
        assert_eq!([at(0, 4_000), at(0, 4_001)], [8_000, 12_000]);
    }
}
