//! The sender's half of an arriving segment: what its acknowledgment says, accounted in Linux's order.

use crate::endpoint::{Endpoint, State, TimerKind, bit};
use crate::rare::REORDERING_INITIAL;
use crate::rate;
use crate::scoreboard::mark;
use crate::segment::{Segment, flags};
use crate::seq::{after, before};
use congestion::sock::{TCP_CA_CWR, TCP_CA_OPEN, TCP_CA_RECOVERY, ack_flags};
use congestion::{AckSample, CongestionOps, RateSample, TcpSock};
use units::Time;

/// What was found out about one ACK.
pub(crate) mod found {
    /// It came with payload, SYN or FIN.
    pub const DATA: u32 = 1;
    /// It changed the window, or moved it.
    pub const WIN_UPDATE: u32 = 2;
    /// It acknowledged data.
    pub const DATA_ACKED: u32 = 4;
    /// Some of that had been retransmitted.
    pub const RETRANS_DATA_ACKED: u32 = 8;
    /// It acknowledged the SYN.
    pub const SYN_ACKED: u32 = 0x10;
    /// New SACK blocks.
    pub const DATA_SACKED: u32 = 0x20;
    /// ECN echo.
    pub const ECE: u32 = 0x40;
    /// A retransmission was found lost.
    pub const LOST_RETRANS: u32 = 0x80;
    /// The header was not as predicted.
    pub const SLOW_PATH: u32 = 0x100;
    /// Data of before the episode arrived in its first transmission.
    pub const ORIG_SACK_ACKED: u32 = 0x200;
    /// snd_una moved.
    pub const UNA_ADVANCED: u32 = 0x400;
    /// A D-SACK.
    pub const DSACK: u32 = 0x800;
    /// The timer is to be set anew.
    pub const SET_TIMER: u32 = 0x1000;
    /// The receiver dropped what it had SACKed.
    pub const RENEGED: u32 = 0x2000;
    /// It may bring a timestamp to echo.
    pub const UPDATE_TS_RECENT: u32 = 0x4000;
    /// The receiver has probably delayed it.
    pub const MAYBE_DELAYED: u32 = 0x10000;
    /// The D-SACK is for the tail-loss probe.
    pub const DSACK_TLP: u32 = 0x20000;

    /// What an ACK of whole segments in order brings.
    pub const IN_ORDER: u32 = UNA_ADVANCED | WIN_UPDATE | DATA_ACKED | SET_TIMER;
    pub const NOT_DUP: u32 = DATA | WIN_UPDATE | DATA_ACKED;
    pub const ALERT: u32 = DATA_SACKED | ECE | DSACK;
}

/// One ACK while it is accounted.
pub(crate) struct Ack {
    pub now: Time,
    pub number: u32,
    /// [`found`].
    pub found: u32,
    pub prior_una: u32,
    pub tsecr: u32,
    pub rs: RateSample,
    /// When the first and the last newly SACKed segments were sent, µs.
    pub sacked_us: Option<(u32, u32)>,
    /// Segments that SACK blocks newly reported, D-SACKed ones included.
    pub sack_delivered: u32,
    /// Start of the lowest segment that arrived after a later one.
    pub reorder_seq: u32,
}

impl Ack {
    fn new(now: Time, segment: &Segment, sock: &TcpSock) -> Ack {
        Ack {
            now,
            number: segment.ack,
            found: found::SLOW_PATH | found::UPDATE_TS_RECENT | if segment.seq_len() > 0 { found::DATA } else { 0 },
            prior_una: sock.snd_una,
            tsecr: if segment.has_timestamp { segment.tsecr } else { 0 },
            rs: NO_SAMPLE(),
            sacked_us: None,
            sack_delivered: 0,
            reorder_seq: sock.snd_nxt,
        }
    }
}

/// A sample that nothing was entered into yet.
const NO_SAMPLE: fn() -> RateSample = || RateSample { delivered: 0, interval_us: 0, ..RateSample::default() };

impl Endpoint {
    pub(crate) fn ops(&self) -> &'static CongestionOps {
        self.sock.icsk_ca_ops.expect("an endpoint always has an algorithm")
    }

    pub(crate) fn has_cong_control(&self) -> bool {
        self.ops().has_cong_control()
    }

    /// The ordinary ACK: new data acknowledged in order, nothing lost. False: it is not that, and nothing was changed.
    #[inline]
    pub(crate) fn fast_ack(&mut self, now: Time, segment: &Segment) -> bool {
        let sock = &self.sock;
        let newly = segment.ack.wrapping_sub(sock.snd_una);
        // packets_out > 0 follows from snd_una < ack <= snd_nxt, FIN being outstanding in other states only
        if newly == 0
            || newly > sock.snd_nxt.wrapping_sub(sock.snd_una)
            || segment.sack_count | segment.ace != 0
            || segment.window == 0
            || !matches!(sock.icsk_ca_state, TCP_CA_OPEN | TCP_CA_CWR)
            || sock.sacked_out | sock.lost_out | sock.retrans_out != 0
            || self.has(bit::SLOW_ACK | bit::FIN_SENT)
        {
            return false;
        }
        let (n, marks) = self.busy.ring().acknowledged(sock.packets_out, segment.ack);
        let marked = segment.flags & flags::ECE != 0 || sock.icsk_ca_state == TCP_CA_CWR;
        if marks & mark::EVER_RETRANS != 0 || (marked && !self.is_plain_but_marked(n)) {
            return false;
        }
        self.note_timestamp(segment);
        if marked {
            self.marked_ack(now, segment, n);
            return true;
        }
        let mut rs = NO_SAMPLE();
        self.move_una(segment, &mut rs);
        if n > 0 {
            self.take_in_order(n, newly, false, &mut rs);
        }
        self.after_fast_ack(now, segment.ack, n, rs);
        true
    }

    /// Takes an ACK with an echo, or one of the CWR state, the short way too?
    fn is_plain_but_marked(&self, n: u32) -> bool {
        let negotiated = self.sock.ecn_flags & congestion::sock::ecn::OK != 0;
        n > 0 && negotiated && self.has(bit::SACK) && self.busy.at(0).seq == self.sock.snd_una
    }

    /// The ACK with an echo, or one while an echo has the window reduced, that is otherwise ordinary: all that
    /// [`Endpoint::slow_ack`] does where nothing is lost, reordered or retransmitted.
    fn marked_ack(&mut self, now: Time, segment: &Segment, n: u32) {
        let ece = segment.flags & flags::ECE != 0;
        let prior_una = self.sock.snd_una;
        let mut rs = NO_SAMPLE();
        if ece {
            self.rare_mut().stats.ece_acks += 1;
        }
        self.burst_left = 0;
        self.move_una(segment, &mut rs);
        let last = *self.busy.at(n - 1);
        self.take_in_order(n, segment.ack.wrapping_sub(prior_una), ece, &mut rs);
        self.advance_rack(&last);
        if self.ops().has_pkts_acked() {
            self.call_pkts_acked(n, &rs);
        }
        self.update_reo_wnd(rs.prior_delivered);
        if self.ops().has_in_ack_event() {
            let echo = if ece { ack_flags::ECE } else { 0 };
            self.sock.ca_in_ack_event(ack_flags::WIN_UPDATE | ack_flags::SLOWPATH | echo);
        }
        if self.goes_on_reducing(ece) {
            self.after_marked_ack(now, segment, n, rs);
        } else {
            let ack = Ack { prior_una, rs, ..Ack::new(now, segment, &self.sock) };
            self.alert_marked(segment, n, ack);
        }
    }

    /// The rest of a marked ACK that the state machine has to see.
    fn alert_marked(&mut self, segment: &Segment, n: u32, mut ack: Ack) {
        let (prior_delivered, prior_lost) = (self.sock.delivered.wrapping_sub(n), self.sock.lost);
        ack.found |= found::IN_ORDER;
        if segment.flags & flags::ECE != 0 {
            ack.found |= found::ECE;
        }
        self.alert(&mut ack, 0);
        self.finish_ack(&mut ack, prior_delivered, prior_lost);
    }

    /// The part of [`Endpoint::finish_ack`] that applies where nothing was lost and the reduction continues.
    #[inline]
    fn after_marked_ack(&mut self, now: Time, segment: &Segment, n: u32, mut rs: RateSample) {
        self.set_xmit_timer(now);
        let reneged = self.busy.rare().is_some_and(|rare| rare.reneged);
        rate::generate(&mut self.sock, &mut rs, n, 0, reneged);
        if self.has_cong_control() {
            let mut found = Ack::new(now, segment, &self.sock).found | found::IN_ORDER;
            if segment.flags & flags::ECE != 0 {
                found |= found::ECE;
            }
            self.control_with_sample(segment.ack, found, rs);
            return;
        }
        if self.config.prr {
            self.reduce_window(n, 0, found::UNA_ADVANCED);
        }
        self.update_pacing_rate();
    }

    /// During a reduction, without reordering: then [`Endpoint::alert`] would decide nothing, and what it would
    /// note is noted here. False: nothing was changed.
    #[inline]
    fn goes_on_reducing(&mut self, ece: bool) -> bool {
        let sock = &mut self.sock;
        let Some(work) = self.busy.work_mut() else {
            return false;
        };
        let Some(rare) = &mut work.rare else {
            return false;
        };
        if sock.icsk_ca_state != TCP_CA_CWR || !before(sock.snd_una, sock.high_seq) || sock.packets_out == 0 {
            return false;
        }
        let oldest = work.ring.at(0);
        if rare.rack.overtook(oldest) || oldest.is(mark::EVER_RETRANS) {
            return false;
        }
        if ece {
            sock.prior_ssthresh = 0;
        }
        rare.retrans_stamp = None;
        rare.rack.advanced = false;
        true
    }

    /// The left edge and the window are the segment's.
    #[inline]
    fn move_una(&mut self, segment: &Segment, rs: &mut RateSample) {
        self.sock.icsk_retransmits = 0;
        self.backoff = 0;
        rs.prior_in_flight = self.sock.packets_out;
        self.sock.bytes_acked += segment.ack.wrapping_sub(self.sock.snd_una) as u64;
        self.sock.snd_una = segment.ack;
        self.snd_wnd = segment.window;
    }

    /// Takes the `n` oldest segments, delivered in order, off the queue: RTT, delivery, sample.
    #[inline]
    fn take_in_order(&mut self, n: u32, newly: u32, ece: bool, rs: &mut RateSample) {
        let ring = self.busy.ring_mut();
        let first_us = ring.at(0).sent_us;
        let last = *ring.at(n - 1);
        ring.drop_front(n);
        let sock = &mut self.sock;
        sock.packets_out -= n;
        sock.delivered = sock.delivered.wrapping_add(n);
        if ece {
            sock.delivered_ce = sock.delivered_ce.wrapping_add(n);
        }
        rate::on_delivered(sock, &last, rs);
        let now_us = sock.tcp_mstamp as u32;
        let ca_rtt_us = now_us.wrapping_sub(last.sent_us);
        let alone = n == 1 && newly < sock.mss_cache && rs.prior_delivered.wrapping_add(1) == sock.delivered;
        rs.is_ack_delayed = alone && !ece;
        rs.rtt_us = ca_rtt_us as i64;
        let maybe_delayed = rs.is_ack_delayed;
        self.update_rtt_min(ca_rtt_us, maybe_delayed);
        self.estimate_rtt(now_us.wrapping_sub(first_us));
    }

    #[inline]
    fn after_fast_ack(&mut self, now: Time, number: u32, n: u32, mut rs: RateSample) {
        let ops = self.ops();
        if ops.has_pkts_acked() {
            self.call_pkts_acked(n, &rs);
        }
        if ops.has_in_ack_event() {
            self.sock.ca_in_ack_event(ack_flags::WIN_UPDATE);
        }
        if self.sock.packets_out == 0 {
            self.disarm();
            self.forget_idle_ring();
        } else if n > 0 {
            self.set_xmit_timer(now);
        }
        rate::generate(&mut self.sock, &mut rs, n, 0, false);
        if ops.has_cong_control() {
            let found = if n > 0 { found::IN_ORDER } else { found::UNA_ADVANCED | found::WIN_UPDATE };
            self.control_with_sample(number, found, rs);
        } else {
            if n > 0 {
                self.avoid_congestion(number, n);
            }
            self.update_pacing_rate();
        }
    }

    /// The sample is passed by value so that it is not built for algorithms that do not take it.
    #[inline(never)]
    fn control_with_sample(&mut self, number: u32, found: u32, rs: RateSample) {
        let delayed = if rs.is_ack_delayed { found::MAYBE_DELAYED } else { 0 };
        self.sock.ca_cong_control(number, found | delayed, &rs);
    }

    #[inline]
    fn avoid_congestion(&mut self, number: u32, delivered: u32) {
        self.sock.ca_cong_avoid(number, delivered);
        self.sock.snd_cwnd_stamp = self.now_ms();
    }

    /// A queue that is empty because there is no data frees its memory.
    #[inline]
    pub(crate) fn forget_idle_ring(&mut self) {
        if self.app_end() == self.sock.bytes_acked {
            self.busy.free(&self.sock);
        }
    }

    #[inline]
    fn call_pkts_acked(&mut self, n: u32, rs: &RateSample) {
        let sock = &mut self.sock;
        let in_flight = sock.mss_cache.wrapping_mul(sock.delivered.wrapping_sub(rs.prior_delivered));
        let sample = AckSample { pkts_acked: n, rtt_us: rs.rtt_us as i32, in_flight };
        sock.ca_pkts_acked(&sample);
    }

    fn call_in_ack_event(&mut self, ack: &Ack) {
        let mut event = 0;
        if ack.found & found::WIN_UPDATE != 0 {
            event |= ack_flags::WIN_UPDATE;
        }
        if ack.found & found::SLOW_PATH != 0 {
            event |= ack_flags::SLOWPATH;
        }
        if ack.found & found::ECE != 0 {
            event |= ack_flags::ECE;
        }
        self.sock.ca_in_ack_event(event);
    }

    /// Any ACK. False: it acknowledges what was never sent.
    pub(crate) fn slow_ack(&mut self, now: Time, segment: &Segment) -> bool {
        let number = segment.ack;
        let prior_una = self.sock.snd_una;
        if after(number, self.sock.snd_nxt) {
            return false;
        }
        if self.acknowledges_nothing(segment) {
            if self.is_window_newer(segment) {
                self.snd_wnd = segment.window;
            }
            return true;
        }
        let mut ack = Ack::new(now, segment, &self.sock);
        let prior_delivered = self.sock.delivered;
        let prior_lost = self.sock.lost;
        if before(number, prior_una) {
            self.old_ack(&mut ack, segment);
            return true;
        }
        if after(number, prior_una) {
            ack.found |= found::UNA_ADVANCED;
            self.sock.icsk_retransmits = 0;
        }
        let prior_packets = self.sock.packets_out;
        let prior_highest = self.highest_sack_seq();
        ack.rs.prior_in_flight = self.sock.packets_in_flight();
        self.update_window(&mut ack, segment);
        if segment.sack_count > 0 && self.has(bit::SACK) {
            self.tag_sacked(&mut ack, segment);
        }
        if segment.flags & flags::ECE != 0 && self.sock.ecn_flags & congestion::sock::ecn::OK != 0 {
            ack.found |= found::ECE;
            self.rare_mut().stats.ece_acks += 1;
        }
        self.count_delivered(ack.sack_delivered, ack.found);
        if prior_packets == 0 {
            self.ack_with_nothing_in_flight(&mut ack);
            return true;
        }
        self.clean_queue(&mut ack, prior_highest);
        if self.sock.ecn_flags & congestion::sock::ecn::ACCURATE != 0 {
            self.accurate_ack(&mut ack, segment, self.sock.delivered.wrapping_sub(prior_delivered));
        }
        self.update_reo_wnd(ack.rs.prior_delivered);
        self.call_in_ack_event(&ack);
        self.resolve_probe(&ack);
        if self.is_dubious(&ack) {
            let dup = ack.found & (found::UNA_ADVANCED | found::NOT_DUP | found::DSACK) == 0;
            self.alert(&mut ack, dup as u32);
        }
        self.finish_ack(&mut ack, prior_delivered, prior_lost);
        true
    }

    /// Does it acknowledge nothing, as data from a peer to which nothing is sent? Then at most the window changes, and no hook
    /// is called.
    #[inline]
    fn acknowledges_nothing(&self, segment: &Segment) -> bool {
        let sock = &self.sock;
        sock.packets_out == 0
            && segment.ack == sock.snd_una
            && segment.sack_count == 0
            && segment.flags & flags::ECE == 0
            && self.timer != TimerKind::Persist
            && !self.has(bit::SLOW_ACK)
            && !self.ops().has_in_ack_event()
    }

    /// Is its window that of the newest segment, if it moves no left edge (RFC 9293 3.10.7.4)? A closed one counts in any case, as in
    /// Linux since 6.6.
    #[inline]
    fn is_window_newer(&self, segment: &Segment) -> bool {
        let newer = segment.seq_len() > 0 && segment.seq == self.sock.rcv_nxt;
        newer || segment.window > self.snd_wnd || segment.window == 0
    }

    /// What was delivered and lost is accounted: timer, rate sample, window.
    fn finish_ack(&mut self, ack: &mut Ack, prior_delivered: u32, prior_lost: u32) {
        if ack.found & found::SET_TIMER != 0 {
            self.set_xmit_timer(ack.now);
        }
        let delivered = self.sock.delivered.wrapping_sub(prior_delivered);
        let lost = self.sock.lost.wrapping_sub(prior_lost);
        let reneged = self.busy.rare().is_some_and(|rare| rare.reneged);
        rate::generate(&mut self.sock, &mut ack.rs, delivered, lost, reneged);
        self.control_congestion(ack, delivered);
        if self.sock.packets_out == 0 && self.state == State::Established {
            self.forget_idle_ring();
        }
    }

    /// An ACK that was overtaken may still bring SACK blocks.
    fn old_ack(&mut self, ack: &mut Ack, segment: &Segment) {
        if segment.sack_count == 0 || !self.has(bit::SACK) {
            return;
        }
        ack.rs.prior_in_flight = self.sock.packets_in_flight();
        self.tag_sacked(ack, segment);
        self.count_delivered(ack.sack_delivered, ack.found);
        self.alert(ack, 0);
    }

    fn ack_with_nothing_in_flight(&mut self, ack: &mut Ack) {
        self.call_in_ack_event(ack);
        // the last of the duplicates that show a reduction to have been wrong may come after everything is acknowledged
        if ack.found & found::DSACK != 0 {
            self.alert(ack, 0);
        }
        // the window may have opened, or still be closed
        if self.timer == TimerKind::Persist {
            if self.window_allows_next() {
                self.backoff = 0;
                self.disarm();
            } else {
                let delay_us = self.persist_us();
                self.arm(TimerKind::Persist, ack.now, delay_us);
            }
        }
        self.resolve_probe(ack);
    }

    /// RFC 9293 3.10.7.4: the window of the newest segment counts.
    fn update_window(&mut self, ack: &mut Ack, segment: &Segment) {
        let advanced = ack.found & found::UNA_ADVANCED != 0;
        if advanced || self.is_window_newer(segment) {
            ack.found |= found::WIN_UPDATE;
            self.snd_wnd = segment.window;
        }
        if advanced {
            let newly = segment.ack.wrapping_sub(self.sock.snd_una);
            let fin_acked = self.has(bit::FIN_SENT) && segment.ack == self.sock.snd_nxt && self.fin_outstanding();
            self.sock.bytes_acked += (newly - fin_acked as u32) as u64;
            self.sock.snd_una = segment.ack;
        }
    }

    pub(crate) fn count_delivered(&mut self, n: u32, found: u32) {
        self.sock.delivered = self.sock.delivered.wrapping_add(n);
        if found & found::ECE != 0 {
            self.sock.delivered_ce = self.sock.delivered_ce.wrapping_add(n);
        }
    }

    /// Takes what is acknowledged cumulatively off the queue.
    fn clean_queue(&mut self, ack: &mut Ack, prior_highest: u32) {
        let sack = self.has(bit::SACK);
        let prior_sacked = self.sock.sacked_out;
        let len = self.sock.packets_out;
        let mut sent_us: Option<(u32, u32)> = None;
        // lowest start of what arrived in its first transmission, unSACKed; a hole that a retransmission fills is no reordering
        let mut reorder_seq = self.sock.snd_nxt;
        let mut n = 0;
        while n < len {
            let record = *self.busy.at(n);
            if after(record.end_seq(), self.sock.snd_una) {
                break;
            }
            n += 1;
            if record.is(mark::EVER_RETRANS) {
                if record.is(mark::RETRANS) {
                    self.sock.retrans_out -= 1;
                }
                ack.found |= found::RETRANS_DATA_ACKED;
            } else if !record.is(mark::SACKED) {
                sent_us = Some((sent_us.map_or(record.sent_us, |(first, _)| first), record.sent_us));
                if before(record.seq, reorder_seq) {
                    reorder_seq = record.seq;
                }
                if !after(record.end_seq(), self.sock.high_seq) {
                    ack.found |= found::ORIG_SACK_ACKED;
                }
            }
            if record.is(mark::SACKED) {
                self.sock.sacked_out -= 1;
            } else if sack {
                self.count_delivered(1, ack.found);
                if !self.is_spurious_retransmission(&record, ack.tsecr) {
                    self.advance_rack(&record);
                }
            }
            if record.is(mark::LOST) {
                self.sock.lost_out -= 1;
            }
            rate::on_delivered(&mut self.sock, &record, &mut ack.rs);
            ack.found |= found::DATA_ACKED;
        }
        self.busy.ring_mut().drop_front(n);
        self.sock.packets_out -= n;
        if n < len && self.busy.at(0).is(mark::SACKED) {
            ack.found |= found::RENEGED;
        }
        let rtt_updated = self.measure_rtt(ack, sent_us, n, prior_sacked);
        if n > 0 {
            ack.found |= found::SET_TIMER;
            if !sack {
                self.remove_reno_sacks(n, ack);
            } else if before(reorder_seq, prior_highest) {
                self.note_reordering(reorder_seq, prior_highest);
            }
        } else if let (Some((first, _)), true) = (ack.sacked_us, rtt_updated && len > 0)
            && before(first, self.busy.at(0).sent_us)
        {
            // the oldest was retransmitted over an RTT ago: if SACKs of others moved the timeout, it would never expire
            ack.found |= found::SET_TIMER;
        }
        self.call_pkts_acked_if_any(n, ack);
    }

    fn call_pkts_acked_if_any(&mut self, n: u32, ack: &Ack) {
        if self.ops().has_pkts_acked() {
            self.call_pkts_acked(n, &ack.rs);
        }
    }

    /// RTT of the first and last segments newly delivered; from the echoed timestamp where retransmission makes those
    /// ambiguous. True if there was a sample.
    fn measure_rtt(&mut self, ack: &mut Ack, sent_us: Option<(u32, u32)>, n: u32, prior_sacked: u32) -> bool {
        let now_us = self.sock.tcp_mstamp as u32;
        let mut seq_rtt = None;
        let mut ca_rtt = None;
        if let (Some((first, last)), 0) = (sent_us, ack.found & found::RETRANS_DATA_ACKED) {
            seq_rtt = Some(now_us.wrapping_sub(first));
            ca_rtt = Some(now_us.wrapping_sub(last));
            let newly = self.sock.snd_una.wrapping_sub(ack.prior_una);
            ack.rs.is_ack_delayed = n == 1
                && prior_sacked == 0
                && newly < self.sock.mss_cache
                && ack.rs.prior_delivered.wrapping_add(1) == self.sock.delivered
                && ack.found & found::ALERT == 0;
        }
        if let Some((first, last)) = ack.sacked_us {
            seq_rtt = seq_rtt.or(Some(now_us.wrapping_sub(first)));
            ca_rtt = Some(now_us.wrapping_sub(last));
        }
        if seq_rtt.is_none() && n > 0 && self.has(bit::TIMESTAMPS) {
            seq_rtt = self.timestamp_rtt_us(ack.tsecr);
            ca_rtt = seq_rtt;
        }
        ack.rs.rtt_us = ca_rtt.map_or(-1, i64::from);
        let (Some(seq_rtt), Some(ca_rtt)) = (seq_rtt, ca_rtt) else {
            return false;
        };
        self.update_rtt_min(ca_rtt, ack.rs.is_ack_delayed);
        self.estimate_rtt(seq_rtt);
        self.backoff = 0;
        true
    }

    fn is_dubious(&self, ack: &Ack) -> bool {
        ack.found & found::NOT_DUP == 0 || ack.found & found::ALERT != 0 || self.sock.icsk_ca_state != TCP_CA_OPEN
    }

    /// The window after this ACK: the algorithm's, or what recovery leaves of it.
    fn control_congestion(&mut self, ack: &Ack, delivered: u32) {
        if self.has_cong_control() {
            let delayed = if ack.rs.is_ack_delayed { found::MAYBE_DELAYED } else { 0 };
            self.sock.ca_cong_control(ack.number, ack.found | delayed, &ack.rs);
            return;
        }
        if matches!(self.sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            if self.config.prr {
                self.reduce_window(delivered, ack.rs.losses as u32, ack.found);
            }
        } else if self.may_raise_window(ack.found) {
            self.avoid_congestion(ack.number, delivered);
        }
        self.update_pacing_rate();
    }

    fn may_raise_window(&self, found: u32) -> bool {
        let reordered = self.busy.rare().is_some_and(|rare| rare.reordering > REORDERING_INITIAL);
        let progress = found::DATA_ACKED | if reordered { found::DATA_SACKED } else { 0 };
        found & progress != 0
    }
}
