//! The congestion window between ACKs: pacing, bursts, validation, restart after idle.

use crate::endpoint::Endpoint;
use congestion::CaEvent;
use congestion::sock::TCP_CA_OPEN;
use units::Time;

/// The shorter the RTT, the larger a burst may be: it halves per 512 µs of minimum RTT.
const BURST_RTT_SHIFT: u32 = 9;
/// A burst of less than a third of the window may wait to grow.
const BURST_WINDOW_DIVISOR: u32 = 3;
/// The first segments of a connection are not paced.
const UNPACED_SEGMENTS: u32 = 10;
/// Most bytes of an unpaced flow in the host's queue (Linux: tcp_limit_output_bytes).
const OUTPUT_LIMIT_BYTES: u64 = 4 << 20;
const NS_PER_MS: u64 = 1_000_000;
/// Percent of cwnd/srtt at which a flow is paced: in slow start, and after.
const PACING_SLOW_START: u64 = 200;
const PACING_AVOIDANCE: u64 = 120;

/// How large a burst may be.
pub(crate) struct Burst {
    /// Whole segments of so many bytes.
    bytes: u32,
    /// But no less segments than this,
    least: u32,
    /// and no more than this.
    most: u32,
}

impl Burst {
    #[inline]
    pub(crate) fn segments(&self, mss: u32) -> u32 {
        (self.bytes / mss).max(self.least).min(self.most)
    }

    /// `segments() <= whole`, without dividing: it is asked at every ACK, and the answer is mostly no.
    #[inline]
    fn is_within(&self, whole: u32, mss: u32) -> bool {
        let fits = self.least <= whole && (self.bytes as u64) < (whole as u64 + 1) * mss as u64;
        fits || self.most <= whole
    }
}

impl Endpoint {
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        self.sock.sk_pacing_status != 0 && self.config.pacing != crate::config::PacingMode::Off
    }

    #[inline]
    pub(crate) fn pacing_blocks(&self) -> bool {
        self.is_paced() && self.sock.tcp_wstamp_ns > self.sock.tcp_clock_cache
    }

    /// When pacing lets the next segment leave, if there is one waiting.
    pub(crate) fn pacing_at(&self) -> Time {
        // a relay sends one even if an algorithm allows for none
        let waits = self.sock.packets_in_flight() < self.sock.snd_cwnd.max(1)
            && (self.sendable() > 0 || self.sock.lost_out > self.sock.retrans_out);
        if self.pacing_blocks() && waits { Time::from_ns(self.sock.tcp_wstamp_ns) } else { Time::NEVER }
    }

    /// A burst of `segments` of the `sendable` bytes leaves: when may the next one?
    #[inline]
    pub(crate) fn pace(&mut self, sendable: u64, segments: u32) {
        if !self.is_paced() {
            return;
        }
        let sock = &mut self.sock;
        let prior_ns = sock.tcp_wstamp_ns;
        sock.tcp_wstamp_ns = prior_ns.max(sock.tcp_clock_cache);
        let rate = sock.sk_pacing_rate;
        if rate == u64::MAX || rate == 0 || self.data_segments_sent < UNPACED_SEGMENTS {
            return;
        }
        let bytes = sendable.min(segments as u64 * sock.mss_cache as u64);
        let mut len_ns = bytes * 1_000_000_000 / rate;
        // what an idle or late sender did not use is credit for half of the gap
        len_ns -= (len_ns / 2).min(sock.tcp_wstamp_ns - prior_ns);
        sock.tcp_wstamp_ns += len_ns;
    }

    /// 2 × cwnd/srtt in slow start, 1.2 × after, bytes/s.
    #[inline]
    pub(crate) fn update_pacing_rate(&mut self) {
        let sock = &mut self.sock;
        let percent = if sock.snd_cwnd < sock.snd_ssthresh / 2 { PACING_SLOW_START } else { PACING_AVOIDANCE };
        // mss · cwnd / srtt, srtt in µs << 3, percent
        let window = sock.snd_cwnd.max(sock.packets_out) as u64;
        let mut rate = (sock.mss_cache as u64 * (10_000 << 3) * percent).saturating_mul(window);
        if sock.srtt_us != 0 {
            rate /= sock.srtt_us as u64;
        }
        sock.sk_pacing_rate = rate.min(sock.sk_max_pacing_rate);
    }

    /// Most bytes of this flow that may wait in the host's own queue; the host stops polling above that (Linux: TCP
    /// small queues). About 1 ms of the pacing rate, at least two segments.
    pub fn output_limit_bytes(&self) -> u32 {
        if !self.config.limit_output {
            return u32::MAX;
        }
        let mut limit = (self.sock.sk_pacing_rate >> self.sock.sk_pacing_shift).max(2 * self.config.mtu as u64);
        if self.sock.sk_pacing_status == 0 {
            limit = limit.min(OUTPUT_LIMIT_BYTES);
        }
        limit.min(u32::MAX as u64) as u32
    }

    /// The largest burst now: 1 ms of the pacing rate, more on short paths.
    #[inline]
    pub(crate) fn largest_burst(&mut self) -> Burst {
        let most = self.config.tso_segments.max(1);
        if most == 1 {
            return Burst { bytes: 0, least: 1, most };
        }
        let least = if self.ops().has_min_tso_segs() { self.sock.ca_min_tso_segs() } else { 2 };
        let sock = &self.sock;
        let gso_max = sock.sk_gso_max_size as u64;
        let halvings = sock.min_rtt_us() >> BURST_RTT_SHIFT;
        let mut bytes = gso_max;
        if halvings > 0 {
            let more = if halvings < u32::BITS { gso_max >> halvings } else { 0 };
            bytes = (sock.sk_pacing_rate >> sock.sk_pacing_shift).saturating_add(more).min(gso_max);
        }
        Burst { bytes: bytes as u32, least, most }
    }

    /// Is it better to wait for an ACK that lets a larger burst leave (Linux: tcp_tso_should_defer)? Of `sendable` bytes that wait,
    /// `first` are in the first buffer.
    #[inline]
    pub(crate) fn defers_burst(&mut self, sendable: u64, first: u64, room: u32, largest: &Burst) -> bool {
        let sock = &self.sock;
        // a third of the window, or a whole burst: go
        let third = self.snd_wnd.min(sock.snd_cwnd.saturating_mul(sock.mss_cache)) / BURST_WINDOW_DIVISOR;
        let room_bytes = room.saturating_mul(sock.mss_cache);
        let window_left = self.window_left();
        let limit = window_left.min(room_bytes);
        let whole = if room_bytes <= window_left { room } else { window_left / sock.mss_cache };
        let is_whole = first < sendable && limit as u64 >= first;
        if limit >= third || is_whole || largest.is_within(whole, sock.mss_cache) {
            return false;
        }
        if sock.icsk_ca_state >= congestion::sock::TCP_CA_RECOVERY || sock.packets_out == 0 {
            return false;
        }
        // only a sender that is at it waits
        if sock.tcp_clock_cache.saturating_sub(sock.tcp_wstamp_ns) > NS_PER_MS {
            return false;
        }
        let head_us = crate::rate::full_us(sock.tcp_mstamp, self.busy.at(0).sent_us);
        let srtt_ns = sock.srtt_us as u64 * 125;
        let expected_ns = head_us * 1000 + srtt_ns;
        if expected_ns.saturating_sub(sock.tcp_clock_cache) > (srtt_ns / 2).min(NS_PER_MS) {
            return false;
        }
        if room_bytes < window_left && room_bytes as u64 <= sendable {
            self.note_window_limited();
        }
        true
    }

    fn is_cwnd_limited(&self) -> bool {
        let sock = &self.sock;
        sock.is_cwnd_limited != 0 || (sock.in_slow_start() && sock.snd_cwnd < 2 * sock.max_packets_out)
    }

    /// It was the congestion window that limited what is sent.
    #[inline]
    pub(crate) fn note_window_limited(&mut self) {
        let now_ms = self.now_ms();
        let sock = &mut self.sock;
        sock.is_cwnd_limited = 1;
        sock.max_packets_out = sock.packets_out;
        sock.cwnd_usage_seq = sock.snd_nxt;
        self.note_window_used(now_ms);
    }

    #[inline]
    fn note_window_used(&mut self, now_ms: u32) {
        if let Some(rare) = self.busy.rare_mut() {
            rare.cwnd_used = 0;
        }
        self.sock.snd_cwnd_stamp = now_ms;
    }

    /// After sending: was it the window that limited it? A window that is not used for an RTO decays (RFC 7661's cause).
    pub(crate) fn validate_window(&mut self, limited: bool) {
        if limited {
            return self.note_window_limited();
        }
        let now_ms = self.now_ms();
        let sock = &mut self.sock;
        let exceeded = sock.is_cwnd_limited == 0 && sock.packets_out > sock.max_packets_out;
        if exceeded || !crate::seq::before(sock.snd_una, sock.cwnd_usage_seq) {
            sock.is_cwnd_limited = 0;
            sock.max_packets_out = sock.packets_out;
            sock.cwnd_usage_seq = sock.snd_nxt;
        }
        if self.is_cwnd_limited() { self.note_window_used(now_ms) } else { self.starve(now_ms) }
    }

    /// The application does not fill the window.
    fn starve(&mut self, now_ms: u32) {
        let packets_out = self.sock.packets_out;
        // below the initial window it makes no difference how much
        if packets_out > self.config.initial_cwnd || self.busy.rare().is_some() {
            let rare = self.rare_mut();
            rare.cwnd_used = rare.cwnd_used.max(packets_out);
        }
        let unused_ms = now_ms.wrapping_sub(self.sock.snd_cwnd_stamp);
        if !self.config.slow_start_after_idle || unused_ms < self.rto_ms() || self.has_cong_control() {
            return;
        }
        let blocked = self.app_end() > self.sock.bytes_acked + self.config.send_buffer as u64;
        if self.sock.icsk_ca_state == TCP_CA_OPEN && !blocked {
            let used = self.busy.rare().map_or(0, |rare| rare.cwnd_used).max(self.config.initial_cwnd);
            if used < self.sock.snd_cwnd {
                self.sock.snd_ssthresh = self.current_ssthresh();
                self.sock.snd_cwnd = self.sock.snd_cwnd.midpoint(used);
            }
            if let Some(rare) = self.busy.rare_mut() {
                rare.cwnd_used = 0;
            }
        }
        self.sock.snd_cwnd_stamp = now_ms;
    }

    /// RFC 5681 4.1: after an idle time of more than an RTO the window halves per RTO, down to the restart window.
    pub(crate) fn restart_window(&mut self, now_ms: u32, idle_ms: u32) {
        self.sock.ca_cwnd_event(CaEvent::CwndRestart);
        self.sock.snd_ssthresh = self.current_ssthresh();
        let restart = self.config.initial_cwnd.min(self.sock.snd_cwnd);
        let rto_ms = self.rto_ms().max(1) as i64;
        let mut left_ms = idle_ms as i64 - rto_ms;
        let mut cwnd = self.sock.snd_cwnd;
        while left_ms > 0 && cwnd > restart {
            cwnd >>= 1;
            left_ms -= rto_ms;
        }
        self.sock.snd_cwnd = cwnd.max(restart);
        self.sock.snd_cwnd_stamp = now_ms;
        if let Some(rare) = self.busy.rare_mut() {
            rare.cwnd_used = 0;
        }
    }

    /// Samples of what is in flight from here on say less than the path could carry.
    pub(crate) fn check_app_limited(&mut self) {
        let sock = &self.sock;
        let in_flight = sock.packets_in_flight();
        if self.sendable() < sock.mss_cache as u64 && in_flight < sock.snd_cwnd && sock.lost_out <= sock.retrans_out {
            self.sock.app_limited = sock.delivered.wrapping_add(in_flight).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_compared_as_it_is_counted() {
        for bytes in [0, 999, 1000, 1999, 2000, 5001, 65_160] {
            for (least, most) in [(1, 1), (2, 44), (2, 3), (5, 4)] {
                let burst = Burst { bytes, least, most };
                for whole in 0..70 {
                    let counted = burst.segments(1000) <= whole;
                    assert_eq!(burst.is_within(whole, 1000), counted, "{bytes} {least} {most} {whole}");
                }
            }
        }
    }
}
