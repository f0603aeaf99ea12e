//! Round-trip time: the estimator of RFC 6298 as Linux has it, and the windowed minimum.
//!
//! Linux keeps srtt << 3 and mdev << 2, and takes for the variance term the largest deviation of the last round trip,
//! never less than rto_min: the timeout of a steady path is srtt + rto_min, not max(srtt, rto_min).

use crate::endpoint::{Endpoint, State};
use crate::seq::after;
use congestion::{MinMax, MinMaxSample};

/// Window of the minimum RTT, ms: Linux's 300 s.
const RTT_MIN_WINDOW_MS: u32 = 300_000;

/// The timeout when the handshake gave no sample (RFC 6298 5.7), µs.
const RTO_FALLBACK_US: u64 = 3_000_000;

/// Enters `v`, measured at `t`, and keeps the minimum of the last `window`: the best value, and the best ones that came
/// later, which take its place when it expires.
pub(crate) fn running_min(m: &mut MinMax, window: u32, t: u32, v: u32) {
    let sample = MinMaxSample { t, v };
    if v <= m.s[0].v || t.wrapping_sub(m.s[2].t) > window {
        m.s = [sample; 3];
        return;
    }
    if v <= m.s[1].v {
        m.s[1] = sample;
        m.s[2] = sample;
    } else if v <= m.s[2].v {
        m.s[2] = sample;
    }
    let age = t.wrapping_sub(m.s[0].t);
    if age > window {
        m.s = [m.s[1], m.s[2], sample];
        if t.wrapping_sub(m.s[0].t) > window {
            m.s = [m.s[1], m.s[2], sample];
        }
    } else if m.s[1].t == m.s[0].t && age > window / 4 {
        m.s[1] = sample;
        m.s[2] = sample;
    } else if m.s[2].t == m.s[1].t && age > window / 2 {
        m.s[2] = sample;
    }
}

impl Endpoint {
    /// The minimum RTO, µs.
    #[inline]
    pub(crate) fn rto_min_us(&self) -> u32 {
        self.config.rto_min.as_us() as u32
    }

    /// The retransmission timeout, doubled as often as it has expired, µs.
    #[inline]
    pub(crate) fn rto_us(&self) -> u64 {
        let base = if self.sock.srtt_us != 0 {
            (self.sock.srtt_us >> 3) as u64 + self.rttvar_us as u64
        } else if matches!(self.state, State::SynSent | State::SynReceived) {
            self.config.syn_rto.as_us()
        } else {
            self.config.rto_initial.as_us().max(RTO_FALLBACK_US)
        };
        (base << self.backoff).min(self.config.rto_max.as_us())
    }

    /// Enters one sample of the round-trip time into srtt, mdev and the variance term.
    #[inline]
    pub(crate) fn estimate_rtt(&mut self, rtt_us: u32) {
        let rto_min = self.rto_min_us();
        let sock = &mut self.sock;
        if sock.srtt_us == 0 {
            sock.srtt_us = (rtt_us << 3).max(1);
            sock.mdev_us = rtt_us << 1;
            self.rttvar_us = sock.mdev_us.max(rto_min);
            self.mdev_max_us = self.rttvar_us;
            if let Some(work) = self.busy.work_mut() {
                work.rtt_seq = sock.snd_nxt;
            }
            return;
        }
        // srtt = 7/8 srtt + 1/8 rtt
        let error = rtt_us as i32 - (sock.srtt_us >> 3) as i32;
        sock.srtt_us = (sock.srtt_us.wrapping_add_signed(error)).max(1);
        // mdev = 3/4 mdev + 1/4 |error|, but 31/32 and 1/32 when the RTT falls and the deviation grows by it
        let mut change = error.abs() - (sock.mdev_us >> 2) as i32;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        sock.mdev_us = sock.mdev_us.wrapping_add_signed(change);
        if sock.mdev_us > self.mdev_max_us {
            self.mdev_max_us = sock.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if let Some(work) = self.busy.work_mut()
            && after(sock.snd_una, work.rtt_seq)
        {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
            }
            work.rtt_seq = sock.snd_nxt;
            self.mdev_max_us = rto_min;
        }
    }

    /// Enters a sample into the windowed minimum; one of a delayed ACK only if it is lower.
    #[inline]
    pub(crate) fn update_rtt_min(&mut self, rtt_us: u32, maybe_delayed: bool) {
        if maybe_delayed && rtt_us > self.sock.min_rtt_us() {
            return;
        }
        let now_ms = self.now_ms();
        running_min(&mut self.sock.rtt_min, RTT_MIN_WINDOW_MS, now_ms, rtt_us.max(1));
    }

    /// RTT by the echoed timestamp, µs, at the timestamps' resolution of 1 ms.
    pub(crate) fn timestamp_rtt_us(&self, tsecr: u32) -> Option<u32> {
        let delta = self.timestamp().wrapping_sub(tsecr);
        (tsecr != 0 && delta < i32::MAX as u32 / 1000).then(|| delta.max(1) * 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::endpoint::NO_RTT_MIN;
    use congestion::Algorithm;
    use std::sync::Arc;

    fn endpoint() -> Endpoint {
        let config = Config::linux(Algorithm::named("newreno").expect("built in"));
        Endpoint::connect(&Arc::new(config), 1000, 1)
    }

    #[test]
    fn the_first_sample_sets_srtt_and_half_of_it_as_deviation() {
        let mut e = endpoint();
        e.estimate_rtt(20_000);
        // srtt << 3 = 160000; mdev << 2 = 40000, that is 10 ms; the variance term is rto_min's 200 ms
        assert_eq!((e.sock.srtt_us, e.sock.mdev_us, e.rttvar_us), (160_000, 40_000, 200_000));
        e.state = State::Established;
        assert_eq!(e.rto_us(), 220_000);
        e.backoff = 2;
        assert_eq!(e.rto_us(), 880_000);
        e.backoff = 20;
        assert_eq!(e.rto_us(), 120_000_000);
    }

    #[test]
    fn later_samples_move_srtt_by_an_eighth() {
        let mut e = endpoint();
        e.estimate_rtt(20_000);
        e.estimate_rtt(28_000);
        // srtt: 20000 + 8000/8 = 21000; mdev<<2: 40000 + (8000 - 10000) = 38000
        assert_eq!((e.sock.srtt_us >> 3, e.sock.mdev_us), (21_000, 38_000));
        e.estimate_rtt(1000);
        // error -20000, its excess over mdev 9500 is 10500, an eighth of it 1312
        assert_eq!(e.sock.mdev_us, 39_312);
    }

    #[test]
    fn the_minimum_expires_with_its_window() {
        let mut m = NO_RTT_MIN;
        running_min(&mut m, 1000, 0, 50);
        running_min(&mut m, 1000, 100, 60);
        assert_eq!(m.s[0].v, 50);
        running_min(&mut m, 1000, 600, 70);
        running_min(&mut m, 1000, 1001, 80);
        assert_eq!(m.s[0].v, 70, "of the values within 1000, 60 was not kept: 70 came in a later part");
        running_min(&mut m, 1000, 1002, 10);
        assert_eq!(m.s[0].v, 10);
    }
}
