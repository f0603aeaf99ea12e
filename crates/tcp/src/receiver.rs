//! The receiver's half: what arrives in order and out of order, when to acknowledge it, the window, ECN.

use crate::endpoint::{Endpoint, bit};
use crate::segment::{Ecn, SACK_BLOCKS_MAX, SackBlock, Segment, flags};
use crate::seq::{after, before};
use congestion::CaEvent;
use congestion::sock::{ack_pending, ecn};
use units::Time;

/// Linux's minimum delay of an ACK and the first estimate of the time between segments, ms.
const ATO_MIN_MS: u8 = 40;
/// Its largest, ms.
const ATO_MAX_MS: u32 = 200;
/// Most quick ACKs in a row.
const QUICK_ACKS_MAX: u8 = 16;
/// Gaps between segments of up to this are the ordinary case, ms.
const TICK_MS: u32 = 4;
impl Endpoint {
    /// The next data in order, of a connection with nothing out of order. False: it is not that, and nothing was changed.
    #[inline]
    pub(crate) fn fast_data(&mut self, now: Time, segment: &Segment) -> bool {
        let len = segment.len as u32;
        if self.has(bit::SLOW_DATA) || len > self.window_right().wrapping_sub(self.sock.rcv_nxt) {
            return false;
        }
        self.note_timestamp(segment);
        self.sock.rcv_nxt = self.sock.rcv_nxt.wrapping_add(len);
        self.received += len as u64;
        self.note_data(segment);
        self.decide_ack(now, false);
        true
    }

    /// Of a segment in order: the timestamp to echo is that of the first that the next ACK acknowledges (RFC 7323 4.3).
    #[inline]
    #[allow(clippy::needless_bitwise_bool, reason = "see below")]
    pub(crate) fn note_timestamp(&mut self, segment: &Segment) {
        // every second segment is the first after an ACK: no branch, which would be mispredicted as often
        let first = segment.has_timestamp & (self.sock.rcv_nxt == self.rcv_wup);
        let newer = first & !before(segment.tsval, self.ts_recent);
        self.ts_recent = if newer { segment.tsval } else { self.ts_recent };
    }

    /// The number after the last that the peer may send.
    #[inline]
    pub(crate) fn window_right(&self) -> u32 {
        self.rcv_wup.wrapping_add(self.rcv_wnd)
    }

    /// Ticks of Linux's clock at HZ = 250.
    #[inline]
    fn ticks(now_ms: u32) -> u16 {
        (now_ms / TICK_MS) as u16
    }

    /// ms since data last arrived.
    pub(crate) fn ms_since_data(&self, now_ms: u32) -> u32 {
        Self::ticks(now_ms).wrapping_sub(self.lrcvtime_ticks) as u32 * TICK_MS
    }

    /// Data arrived: an ACK is pending, and the time until the next data is estimated.
    #[inline]
    fn note_data(&mut self, segment: &Segment) {
        self.sock.icsk_ack_pending |= ack_pending::SCHED;
        if segment.len >= self.rcv_mss {
            self.rcv_mss = segment.len;
        }
        if segment.flags & flags::PSH != 0 {
            self.sock.icsk_ack_pending |= ack_pending::PUSHED;
        }
        let ticks = Self::ticks(self.now_ms());
        let gap_ms = ticks.wrapping_sub(self.lrcvtime_ticks) as u32 * TICK_MS;
        self.lrcvtime_ticks = ticks;
        if self.ato_ms == 0 {
            self.add_quick_acks(QUICK_ACKS_MAX);
            self.ato_ms = ATO_MIN_MS;
        } else if gap_ms <= (ATO_MIN_MS / 2) as u32 {
            self.ato_ms = (self.ato_ms >> 1) + ATO_MIN_MS / 2;
        } else if gap_ms < self.ato_ms as u32 {
            self.ato_ms = ((self.ato_ms >> 1) as u32 + gap_ms).min(ATO_MAX_MS) as u8;
        } else if gap_ms > self.rto_ms() {
            // the sender did not restart its window: help it with quick ACKs
            self.add_quick_acks(QUICK_ACKS_MAX);
        }
        if self.sock.ecn_flags & ecn::OK != 0 {
            self.check_ce(segment);
        }
    }

    /// ECN of a data segment: echo until CWR (RFC 3168 6.1.3), or whatever the algorithm does (RFC 8257).
    #[inline]
    fn check_ce(&mut self, segment: &Segment) {
        if self.sock.ecn_flags & ecn::ACCURATE != 0 {
            if segment.len > 0 {
                self.count_ce(segment);
            }
            return;
        }
        let needs = self.ops().needs_ecn();
        match segment.ecn {
            Ecn::NotEct => {
                // ECT was seen before, so this is a retransmission
                if self.sock.ecn_flags & ecn::SEEN != 0 {
                    self.enter_quick_acks(2);
                }
                return;
            }
            Ecn::Ce => {
                self.rare_mut().stats.ce_received += 1;
                if needs {
                    self.sock.ca_cwnd_event(CaEvent::EcnIsCe);
                }
                if self.sock.ecn_flags & ecn::DEMAND_CWR == 0 {
                    // the sender's window may be very small
                    self.enter_quick_acks(2);
                    self.sock.ecn_flags |= ecn::DEMAND_CWR;
                }
            }
            Ecn::Ect0 | Ecn::Ect1 => {
                if needs {
                    self.sock.ca_cwnd_event(CaEvent::EcnNoCe);
                }
            }
        }
        self.sock.ecn_flags |= ecn::SEEN;
    }

    /// The peer has reduced its window.
    pub(crate) fn accept_cwr(&mut self, segment: &Segment) {
        if segment.flags & flags::CWR != 0 {
            self.sock.ecn_flags &= !ecn::DEMAND_CWR;
            if segment.len > 0 {
                self.sock.icsk_ack_pending |= ack_pending::NOW;
            }
        }
    }

    fn add_quick_acks(&mut self, most: u8) {
        if !self.config.delayed_ack.quickack {
            return;
        }
        let quick = self.rcv_wnd / (2 * self.rcv_mss.max(1) as u32);
        let quick = if quick == 0 { 2 } else { quick.min(most as u32) as u8 };
        self.quick = self.quick.max(quick);
    }

    fn enter_quick_acks(&mut self, most: u8) {
        self.add_quick_acks(most);
        self.bits &= !bit::PINGPONG;
        self.ato_ms = ATO_MIN_MS;
    }

    /// An ACK leaves.
    #[inline]
    pub(crate) fn count_quick_ack(&mut self) {
        if self.quick > 0 && self.sock.icsk_ack_pending & ack_pending::SCHED != 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato_ms = ATO_MIN_MS;
            }
        }
    }

    /// Is the owed ACK sent now, or may it wait for more data?
    #[inline]
    #[allow(clippy::needless_bitwise_bool, reason = "see below")]
    pub(crate) fn decide_ack(&mut self, now: Time, out_of_order: bool) {
        let pending = self.sock.icsk_ack_pending;
        if pending & (ack_pending::SCHED | ack_pending::NOW) == 0 {
            return;
        }
        let unacknowledged = self.sock.rcv_nxt.wrapping_sub(self.rcv_wup);
        let bearable = (self.config.delayed_ack.segments.max(1) - 1) * self.rcv_mss as u32;
        // the application reads at once, and Linux acknowledges a segment with PSH once all is read (tcp_cleanup_rbuf)
        let pushed =
            (pending & ack_pending::PUSHED != 0) & self.config.delayed_ack.quickack & !self.has(bit::SLOW_DATA);
        let quick = ((self.quick > 0) | pushed) & !self.has(bit::PINGPONG);
        let at_once = (unacknowledged > bearable) | quick | out_of_order | (pending & ack_pending::NOW != 0);
        if !at_once & (pending & ack_pending::TIMER != 0) {
            return self.delay_ack_further(now);
        }
        // every second segment is acknowledged at once: no branch, which would be mispredicted as often
        let delayed_to = now.saturating_add(self.ack_delay());
        self.ack_at = if at_once { self.ack_at } else { delayed_to };
        let more = if at_once { ack_pending::NOW } else { ack_pending::SCHED | ack_pending::TIMER };
        self.sock.icsk_ack_pending = pending | more;
    }

    /// The timer runs already.
    fn delay_ack_further(&mut self, now: Time) {
        let delay = self.ack_delay();
        if self.ack_at <= now.saturating_add(delay / 4) {
            // it would expire in a moment
            self.sock.icsk_ack_pending |= ack_pending::NOW;
            return;
        }
        self.ack_at = self.ack_at.min(now.saturating_add(delay));
        self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::TIMER;
    }

    /// Linux adapts the delay to the time between segments; a stack without quick ACKs has a fixed one.
    #[inline]
    fn ack_delay(&self) -> Time {
        let adapts = (self.ato_ms > ATO_MIN_MS) & self.config.delayed_ack.quickack;
        if adapts { self.adapted_delay() } else { self.config.delayed_ack.timeout }
    }

    fn adapted_delay(&self) -> Time {
        let least = self.config.delayed_ack.timeout;
        let mut most_ms = ATO_MAX_MS;
        if self.sock.srtt_us > 0 {
            most_ms = most_ms.min((self.sock.srtt_us >> 3) / 1000).max(ATO_MIN_MS as u32);
        }
        Time::from_ms((self.ato_ms as u32).min(most_ms) as u64).min(self.config.delayed_ack.timeout_max).max(least)
    }

    pub(crate) fn on_delayed_ack_timer(&mut self) {
        if self.sock.icsk_ack_pending & ack_pending::SCHED == 0 {
            return;
        }
        if self.has(bit::PINGPONG) {
            self.bits &= !bit::PINGPONG;
            self.ato_ms = ATO_MIN_MS;
        } else {
            // no second segment came in time: wait longer
            let rto_ms = self.rto_ms().min(ATO_MAX_MS);
            self.ato_ms = (self.ato_ms as u32 * 2).min(rto_ms).max(1) as u8;
        }
        self.sock.icsk_ack_pending |= ack_pending::NOW;
    }

    /// The window to announce; the right edge never moves back. A window that is withdrawn is announced as closed, and what was sent
    /// before the sender knows is taken.
    #[inline]
    pub(crate) fn select_window(&mut self) -> u32 {
        if self.has(bit::SLOW_DATA | bit::NARROW) {
            return self.measure_window();
        }
        self.rcv_wup = self.sock.rcv_nxt;
        self.rcv_wnd
    }

    /// The window anew: the whole buffer, which is no less than any earlier window, if nothing is held or unread.
    #[cold]
    fn measure_window(&mut self) -> u32 {
        let scale = self.bits & bit::WSCALE_MASK;
        let largest = 65_535_u32 << scale;
        let round = (1_u32 << scale) - 1;
        let round_up = |bytes: u32| (bytes.saturating_add(round) & !round).min(largest);
        let most = self.config.receive_buffer.min(self.config.window_clamp);
        let left = self.window_right().wrapping_sub(self.sock.rcv_nxt);
        if !self.has(bit::SLOW_DATA) && (left > largest || left <= round_up(most)) {
            self.rcv_wup = self.sock.rcv_nxt;
            self.rcv_wnd = round_up(most);
            self.bits &= !bit::NARROW;
            return self.rcv_wnd;
        }
        let mut window = round_up(self.free_window());
        if left <= largest && window < left {
            window = round_up(left);
        }
        self.rcv_wup = self.sock.rcv_nxt;
        self.rcv_wnd = window;
        self.bits |= bit::NARROW;
        if self.config.window_clamp == 0 { 0 } else { window }
    }

    /// What the buffer has free; nothing when that is too little to be worth a segment (RFC 9293 3.8.6.2.2).
    pub(crate) fn free_window(&self) -> u32 {
        let Some(rare) = self.busy.rare() else {
            return self.config.receive_buffer.min(self.config.window_clamp);
        };
        let full = self.config.receive_buffer;
        let free = full.saturating_sub(rare.out_of_order.held().saturating_add(rare.unread));
        let mss = (self.rcv_mss as u32).min(full);
        if free < full / 2 && (free < full / 16 || free < mss) { 0 } else { free.min(self.config.window_clamp) }
    }

    /// Data, in order or not, of which at least a part is new or within the window.
    pub(crate) fn take_data(&mut self, segment: &Segment) -> bool {
        let (start, end) = (segment.seq, segment.seq.wrapping_add(segment.len as u32));
        let fin = segment.flags & flags::FIN != 0;
        let rcv_nxt = self.sock.rcv_nxt;
        if !after(segment.end_seq(), rcv_nxt) {
            if segment.len > 0 && self.sock.ecn_flags & ecn::ACCURATE != 0 {
                self.count_ce(segment);
            }
            self.note_duplicate(start, end);
            return false;
        }
        if after(end, self.window_right()) {
            // beyond the window: the ACK says how far it goes
            self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::NOW;
            return false;
        }
        if after(start, rcv_nxt) {
            self.take_out_of_order(segment, start, end, fin);
            return true;
        }
        if before(start, rcv_nxt) && self.has(bit::SACK) {
            self.rare_mut().dsack = Some(SackBlock { start, end: rcv_nxt });
        }
        if segment.len > 0 {
            self.advance(end);
            self.note_data(segment);
        }
        if fin {
            self.take_fin();
        }
        self.take_from_queue();
        self.update_slow_data();
        false
    }

    /// rcv_nxt moves to `end`.
    fn advance(&mut self, end: u32) {
        let len = end.wrapping_sub(self.sock.rcv_nxt);
        self.sock.rcv_nxt = end;
        match self.busy.rare_mut() {
            Some(rare) if rare.not_reading => rare.unread += len,
            _ => self.received += len as u64,
        }
    }

    fn note_duplicate(&mut self, start: u32, end: u32) {
        self.enter_quick_acks(QUICK_ACKS_MAX);
        if self.has(bit::SACK) && before(start, end) {
            self.rare_mut().dsack = Some(SackBlock { start, end });
        }
        self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::NOW;
    }

    fn take_out_of_order(&mut self, segment: &Segment, start: u32, end: u32, fin: bool) {
        if self.sock.ecn_flags & ecn::OK != 0 {
            self.check_ce(segment);
        }
        self.sock.icsk_ack_pending |= ack_pending::SCHED;
        self.bits |= bit::SLOW_DATA;
        let sack = self.has(bit::SACK);
        let rare = self.rare_mut();
        if fin {
            rare.fin_seq = Some(end);
        }
        if segment.len == 0 {
            return;
        }
        let twice = rare.out_of_order.insert(SackBlock { start, end });
        if sack && twice.is_some() {
            rare.dsack = twice;
        }
    }

    /// Data beyond the gap is in order now.
    fn take_from_queue(&mut self) {
        let Some(rare) = self.busy.rare_mut() else {
            return;
        };
        let had = !rare.out_of_order.is_empty();
        let end = rare.out_of_order.take(self.sock.rcv_nxt);
        let empty = rare.out_of_order.is_empty();
        let fin = rare.fin_seq == Some(end);
        if after(end, self.sock.rcv_nxt) {
            self.advance(end);
        }
        if had && empty {
            // RFC 5681 4.2
            self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::NOW;
        }
        if fin && empty {
            self.rare_mut().fin_seq = None;
            self.take_fin();
        }
    }

    /// Data may take the fast path again.
    pub(crate) fn update_slow_data(&mut self) {
        let slow = self.busy.rare().is_some_and(|rare| {
            rare.not_reading || rare.unread > 0 || !rare.out_of_order.is_empty() || rare.fin_seq.is_some()
        });
        if slow {
            self.bits |= bit::SLOW_DATA;
        } else {
            self.bits &= !bit::SLOW_DATA;
        }
    }

    /// The application reads all there is; a window that was closed is announced anew.
    pub(crate) fn drain_unread(&mut self) {
        let Some(rare) = self.busy.rare_mut() else {
            return;
        };
        rare.not_reading = false;
        self.received += std::mem::take(&mut rare.unread) as u64;
        self.update_slow_data();
        let left = self.window_right().wrapping_sub(self.sock.rcv_nxt);
        // Linux announces a window that has at least doubled
        if left <= self.free_window() / 2 {
            self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::NOW;
        }
    }

    /// D-SACK first, then the blocks that grew last (RFC 2883 4, RFC 2018 4).
    pub(crate) fn add_sack_blocks(&mut self, out: &mut Segment) {
        if !self.has(bit::SACK) {
            return;
        }
        let Some(rare) = self.busy.rare_mut() else {
            return;
        };
        let mut count = 0;
        if let Some(twice) = rare.dsack.take() {
            out.sack[0] = twice;
            count = 1;
        }
        for block in rare.out_of_order.recent().take(SACK_BLOCKS_MAX - count) {
            out.sack[count] = *block;
            count += 1;
        }
        out.sack_count = count as u8;
    }
}
