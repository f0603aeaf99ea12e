//! What is sent: new data as far as the windows allow, retransmissions, ACKs.

use crate::endpoint::{Endpoint, State, TimerKind, bit};
use crate::rate;
use crate::scoreboard::mark;
use crate::segment::{Ecn, Segment, flags};
use crate::seq::after;
use congestion::CaEvent;
use congestion::sock::{TCP_CA_CWR, TCP_CA_RECOVERY, ack_pending, ecn};
use units::Time;

/// Timestamps start at 1 ms: an echo of 0 means that there is none.
const TIMESTAMP_OFFSET_MS: u32 = 1;

impl Endpoint {
    /// The next segment to send, written into `out`; false when there is none now. Call it after every input, until it
    /// says false; a host whose own queue is full may stop earlier and continue later.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, out: &mut Segment) -> bool {
        self.refresh_clock(now);
        let out_of_turn = (self.sock.cc_ack_wanted != 0) | self.has(bit::RETRANSMIT | bit::SPECIAL);
        if out_of_turn && self.poll_special(now, out) {
            return true;
        }
        if self.burst_left > 0 && self.next_of_burst(out) {
            return true;
        }
        if self.has_new() && self.send_new(now, out) {
            return true;
        }
        self.burst_left = 0;
        if self.has(bit::SENT) {
            self.end_batch(now);
        }
        if self.sock.icsk_ack_pending & ack_pending::NOW != 0 && self.is_synchronized() {
            self.emit_ack(out);
            return true;
        }
        false
    }

    /// Is a call of [`Endpoint::poll_transmit`] useful? False: it would return false and change nothing. A host that asks
    /// this first needs no room for a segment in most cases, such as after most data that arrives.
    #[inline]
    pub fn wants_transmit(&self) -> bool {
        let owed = self.sock.cc_ack_wanted | (self.sock.icsk_ack_pending & ack_pending::NOW);
        (owed != 0) | self.has(bit::RETRANSMIT | bit::SPECIAL | bit::SENT) || self.has_new()
    }

    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    #[inline]
    fn may_send_data(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }

    /// What goes before new data.
    fn poll_special(&mut self, now: Time, out: &mut Segment) -> bool {
        if self.sock.cc_ack_wanted != 0 {
            self.emit_algorithm_ack(out);
            return true;
        }
        if self.has(bit::SPECIAL) {
            self.bits &= !bit::SPECIAL;
            return match self.state {
                State::SynSent | State::SynReceived => self.emit_syn(now, out),
                State::Closed | State::Listen | State::TimeWait => false,
                _ => self.emit_window_probe(now, out),
            };
        }
        self.has(bit::RETRANSMIT) && self.retransmit(now, out)
    }

    /// Bytes written and not sent, of a connection that has not sent FIN.
    #[inline]
    fn unsent_bytes(&self) -> u64 {
        let outstanding = self.sock.snd_nxt.wrapping_sub(self.sock.snd_una);
        self.app_end() - self.sock.bytes_acked - outstanding as u64
    }

    /// Is there new data, or FIN, to be sent when the windows allow it?
    #[inline]
    fn has_new(&self) -> bool {
        self.may_send_data() && (self.unsent_bytes() != 0 || self.has(bit::FIN_QUEUED))
    }

    /// Bytes in the send buffer that were not sent.
    #[inline]
    pub(crate) fn sendable(&self) -> u64 {
        let buffered = self.app_end().min(self.sock.bytes_acked + self.config.send_buffer as u64);
        buffered.saturating_sub(self.sent_end())
    }

    /// Bytes that the peer's window has left.
    #[inline]
    pub(crate) fn window_left(&self) -> u32 {
        self.snd_wnd.saturating_sub(self.sock.snd_nxt.wrapping_sub(self.sock.snd_una))
    }

    /// Does the next segment fit the peer's window?
    pub(crate) fn window_allows_next(&self) -> bool {
        self.sendable().min(self.sock.mss_cache as u64) <= self.window_left() as u64
    }

    /// The next segment of new data, or FIN, if windows and pacing allow it.
    fn send_new(&mut self, now: Time, out: &mut Segment) -> bool {
        let unsent = self.unsent_bytes();
        let outstanding = self.sock.snd_nxt.wrapping_sub(self.sock.snd_una);
        let sendable = unsent.min((self.config.send_buffer as u64).saturating_sub(outstanding as u64));
        if sendable == 0 && unsent > 0 {
            return false;
        }
        let begun = self.burst_left > 0;
        if !begun {
            let segments = self.next_burst(sendable);
            if segments == 0 {
                self.nothing_sent(now);
                return false;
            }
            self.burst_left = segments.min(u8::MAX as u32) as u8;
            self.pace(sendable, segments);
        }
        self.burst_left -= 1;
        let ends_burst = begun && self.burst_left == 0;
        self.emit_new(now, out, sendable.min(self.sock.mss_cache as u64) as u16, ends_burst);
        true
    }

    /// The next segment of a burst under way. It asks neither windows nor pacing: [`Endpoint::next_burst`] did so for the whole
    /// burst, and since then ACKs can only have made room. False: it is the last that was written, or the first in
    /// flight, and takes the long way.
    #[inline]
    fn next_of_burst(&mut self, out: &mut Segment) -> bool {
        let mss = self.sock.mss_cache;
        if self.unsent_bytes() <= mss as u64 || self.sock.packets_in_flight() == 0 {
            return false;
        }
        self.burst_left -= 1;
        let ends_burst = self.burst_left == 0;
        self.emit_amid(out, mss as u16, ends_burst);
        true
    }

    /// How many segments leave back to back now: what Linux sends as one TSO packet.
    #[inline]
    fn next_burst(&mut self, sendable: u64) -> u32 {
        let sock = &self.sock;
        if self.pacing_blocks() {
            return 0;
        }
        let in_flight = sock.packets_in_flight();
        if in_flight >= sock.snd_cwnd {
            if sendable > 0 {
                self.note_window_limited();
            }
            return 0;
        }
        let mss = sock.mss_cache as u64;
        let window_left = self.window_left();
        if sendable <= mss {
            // a writer that blocks will fill the segment up, unless nothing comes back to wake it
            let more_to_come = self.app_end() > self.sock.bytes_acked + self.config.send_buffer as u64;
            let waits = more_to_come && sendable < mss && sock.packets_out > 0;
            return (!waits && sendable <= window_left as u64) as u32;
        }
        if (window_left as u64) < mss {
            return 0;
        }
        let room = sock.snd_cwnd - in_flight;
        let largest = self.largest_burst();
        let first = self.first_buffer(sendable);
        if self.defers_burst(sendable, first, room, &largest) {
            return 0;
        }
        let segments = largest.segments(self.sock.mss_cache).min(room).min((self.sock.snd_cwnd >> 1).max(1));
        // whole segments that there are, and that fit the peer's window: no less as a rule, which is found without dividing
        let bytes = first.min(window_left as u64);
        if segments as u64 * mss <= bytes { segments } else { (bytes / mss) as u32 }
    }

    /// What is left of the first buffer that waits to be sent, of `sendable` bytes in all: Linux cuts a stream into buffers as
    /// long as one TSO packet may be, and no packet has bytes of two.
    #[inline]
    fn first_buffer(&self, sendable: u64) -> u64 {
        let mss = self.sock.mss_cache;
        let whole = (self.sock.sk_gso_max_size / mss).max(1) * mss;
        let sent = (self.sent_end() % whole as u64) as u32;
        // after the end of a burst that was no whole segment, the next one begins where it would have without
        sendable.min((whole - (sent - sent % mss)) as u64)
    }

    /// Nothing may leave now: a closed window is probed.
    fn nothing_sent(&mut self, now: Time) {
        if self.sock.packets_out == 0 && self.timer == TimerKind::None && !self.pacing_blocks() {
            let delay_us = self.persist_us();
            self.arm(TimerKind::Persist, now, delay_us);
        }
    }

    /// A full segment within a stream: something is in flight, and more waits to be sent. So there is no FIN, no
    /// timer to start, no algorithm to tell that sending begins; the rest is what [`Endpoint::emit_new`] does.
    #[inline]
    fn emit_amid(&mut self, out: &mut Segment, len: u16, ends_burst: bool) {
        let now_ms = self.now_ms();
        let seq = self.sock.snd_nxt;
        let mut bits = if ends_burst { flags::ACK | flags::PSH } else { flags::ACK };
        let capable = self.sock.ecn_flags & ecn::OK != 0;
        if self.sock.ecn_flags & ecn::QUEUE_CWR != 0 && capable {
            self.sock.ecn_flags &= !ecn::QUEUE_CWR;
            bits |= flags::CWR;
        }
        self.fill(out, seq, len, bits, capable);
        self.bits |= bit::SENT;
        self.count_data(len, now_ms);
        let sock = &mut self.sock;
        sock.tcp_wstamp_ns = sock.tcp_wstamp_ns.max(sock.tcp_clock_cache);
        let record = rate::record_amid(sock, seq, len, 0);
        let work = self.busy.make(sock);
        work.ring.push(sock.packets_out, record);
        sock.snd_nxt = seq.wrapping_add(len as u32);
        sock.packets_out += 1;
        if matches!(sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            work.make_rare().prr_out += 1;
        }
        self.ack_is_sent();
    }

    /// New data, or FIN alone. The connection has not sent FIN.
    fn emit_new(&mut self, now: Time, out: &mut Segment, len: u16, ends_burst: bool) {
        let now_ms = self.now_ms();
        let seq = self.sock.snd_nxt;
        let ends = self.unsent_bytes() == len as u64;
        let fin = ends && self.has(bit::FIN_QUEUED);
        let mut bits = flags::ACK;
        if len > 0 && (ends || ends_burst) {
            bits |= flags::PSH;
        }
        let mut marks = 0;
        if fin {
            bits |= flags::FIN;
            marks |= mark::FIN;
        }
        self.bits |= bit::SENT;
        self.count_sent(len, now_ms);
        let capable = len > 0 && self.sock.ecn_flags & ecn::OK != 0;
        if capable && self.sock.ecn_flags & ecn::QUEUE_CWR != 0 {
            self.sock.ecn_flags &= !ecn::QUEUE_CWR;
            bits |= flags::CWR;
        }
        self.fill(out, seq, len, bits, capable);
        let first = self.enter_new(len, marks);
        if fin {
            self.bits |= bit::FIN_SENT;
            self.state = if self.state == State::CloseWait { State::LastAck } else { State::FinWait1 };
        }
        if first {
            self.rearm_rto(now);
        }
        self.ack_is_sent();
    }

    /// New data in flight, from snd_nxt on. True: it is the first.
    #[inline]
    pub(crate) fn enter_new(&mut self, len: u16, marks: u8) -> bool {
        let packets_out = self.sock.packets_out;
        let seq = self.sock.snd_nxt;
        let record = rate::first_record(&mut self.sock, seq, len, marks);
        self.sock.snd_nxt = record.end_seq();
        self.busy.make(&self.sock).ring.push(packets_out, record);
        self.sock.packets_out = packets_out + 1;
        if self.in_reduction() {
            self.rare_mut().prr_out += 1;
        }
        packets_out == 0
    }

    #[inline]
    pub(crate) fn in_reduction(&self) -> bool {
        matches!(self.sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY)
    }

    /// A segment leaves: the clocks and counts, and the algorithm if nothing was in flight.
    #[inline]
    pub(crate) fn count_sent(&mut self, len: u16, now_ms: u32) {
        let sock = &mut self.sock;
        sock.tcp_wstamp_ns = sock.tcp_wstamp_ns.max(sock.tcp_clock_cache);
        if len == 0 {
            return;
        }
        if sock.packets_in_flight() == 0 {
            sock.ca_cwnd_event(CaEvent::TxStart);
        }
        self.count_data(len, now_ms);
    }

    /// Payload leaves: how much, and when; if soon after data came, the flow is two-way.
    #[inline]
    fn count_data(&mut self, len: u16, now_ms: u32) {
        self.sock.lsndtime = now_ms;
        self.sock.bytes_sent += len as u64;
        self.data_segments_sent += 1;
        if self.ato_ms > 0 && self.ms_since_data(now_ms) < self.ato_ms as u32 {
            self.bits |= bit::PINGPONG;
        }
    }

    /// After the last segment of a batch.
    pub(crate) fn end_batch(&mut self, now: Time) {
        self.bits &= !bit::SENT;
        let limited = self.sock.packets_in_flight() >= self.sock.snd_cwnd;
        self.validate_window(limited);
        if !self.schedule_probe(now, false) && self.timer == TimerKind::Probe {
            self.rearm_rto(now);
        }
    }

    /// A retransmission or probe that is due.
    fn retransmit(&mut self, now: Time, out: &mut Segment) -> bool {
        if self.forget_retransmissions() {
            return false;
        }
        if std::mem::take(&mut self.rare_mut().probe_now) {
            self.emit_probe(now, out);
            return true;
        }
        if self.retransmit_head(out) {
            return true;
        }
        if self.rare_mut().frto_new {
            if self.has_new() && self.send_new(now, out) {
                return true;
            }
            if self.end_frto_test() {
                return false;
            }
        }
        self.retransmit_lost(now, out)
    }

    /// With nothing in flight there is nothing to retransmit. True: that is so.
    pub(crate) fn forget_retransmissions(&mut self) -> bool {
        if self.sock.packets_out > 0 && self.busy.rare().is_some() {
            return false;
        }
        if let Some(rare) = self.busy.rare_mut() {
            rare.probe_now = false;
            rare.retransmit_head = false;
            rare.frto_new = false;
        }
        self.bits &= !bit::RETRANSMIT;
        true
    }

    /// The oldest segment, if it is to leave whatever the window.
    pub(crate) fn retransmit_head(&mut self, out: &mut Segment) -> bool {
        if std::mem::take(&mut self.rare_mut().retransmit_head) && !self.busy.at(0).is(mark::SACKED | mark::RETRANS) {
            self.emit_retransmission(out, 0);
            return true;
        }
        false
    }

    /// There is no more new data for F-RTO's test. True: what was sent decides it; false: the timeout was none to test.
    pub(crate) fn end_frto_test(&mut self) -> bool {
        self.rare_mut().frto_new = false;
        if after(self.sock.snd_nxt, self.sock.high_seq) {
            self.bits &= !bit::RETRANSMIT;
            return true;
        }
        self.rare_mut().frto = false;
        false
    }

    /// The next segment that is lost, if window and pacing allow it.
    pub(crate) fn retransmit_lost(&mut self, now: Time, out: &mut Segment) -> bool {
        if self.pacing_blocks() {
            return false;
        }
        let Some(index) = self.next_lost() else {
            self.bits &= !bit::RETRANSMIT;
            return false;
        };
        self.emit_retransmission(out, index);
        if self.in_reduction() {
            self.rare_mut().prr_out += 1;
        }
        if index == 0 && self.timer != TimerKind::Reorder {
            self.timer = TimerKind::Retransmit;
            self.rearm_rto(now);
        }
        true
    }

    /// The first lost record that was not retransmitted, if the window has room for it.
    fn next_lost(&mut self) -> Option<u32> {
        let sock = &self.sock;
        if sock.retrans_out >= sock.lost_out || sock.packets_in_flight() >= sock.snd_cwnd {
            return None;
        }
        let len = sock.packets_out;
        let hint = self.busy.rare().map_or(sock.snd_una, |rare| rare.retransmit_hint);
        let mut index = if after(hint, sock.snd_una) { self.busy.ring().find(len, hint) } else { 0 };
        while index < len {
            let run = self.busy.ring_mut().sacked_run(len, index);
            if run > 0 {
                index += run;
                continue;
            }
            let record = self.busy.at(index);
            if record.flags & (mark::LOST | mark::RETRANS) == mark::LOST {
                let seq = record.seq;
                self.rare_mut().retransmit_hint = seq;
                return Some(index);
            }
            index += 1;
        }
        None
    }

    fn emit_retransmission(&mut self, out: &mut Segment, index: u32) {
        self.send_again(out, index);
        let stamp = self.timestamp();
        let record = self.busy.at_mut(index);
        record.flags |= mark::RETRANS;
        let sock = &mut self.sock;
        sock.retrans_out += 1;
        sock.undo_retrans = sock.undo_retrans.max(0) + 1;
        let rare = self.rare_mut();
        rare.retrans_stamp.get_or_insert(stamp);
    }

    /// The segment of a record once more.
    fn send_again(&mut self, out: &mut Segment, index: u32) {
        let mut record = *self.busy.at(index);
        let mut bits = flags::ACK;
        if record.is(mark::FIN) {
            bits |= flags::FIN;
        }
        self.count_sent(record.len, self.now_ms());
        rate::on_sent(&mut self.sock, &mut record);
        record.flags |= mark::EVER_RETRANS;
        *self.busy.at_mut(index) = record;
        self.note_retransmitted(record.seq);
        self.pace(record.len as u64, 1);
        self.fill(out, record.seq, record.len, bits, false);
        self.rare_mut().stats.retransmits += 1;
        self.ack_is_sent();
    }

    /// The tail-loss probe: new data if there is any, else the last segment again (RFC 8985 7.3).
    pub(crate) fn emit_probe(&mut self, now: Time, out: &mut Segment) {
        let sendable = self.sendable();
        let fresh = sendable > 0 && self.may_send_data() && self.window_allows_next();
        if fresh {
            self.burst_left = 0;
            self.emit_new(now, out, sendable.min(self.sock.mss_cache as u64) as u16, false);
            // the timer is set below, not by the batch's end
            self.bits &= !bit::SENT;
            let limited = self.sock.packets_in_flight() >= self.sock.snd_cwnd;
            self.validate_window(limited);
        } else {
            let last = self.sock.packets_out - 1;
            self.send_again(out, last);
        }
        self.note_probe(now, fresh);
    }

    /// A tail-loss probe has left; `fresh`: with new data.
    pub(crate) fn note_probe(&mut self, now: Time, fresh: bool) {
        let high = self.sock.snd_nxt;
        let rare = self.rare_mut();
        rare.tlp_high_seq = Some(high);
        rare.tlp_retrans = !fresh;
        rare.stats.tlp_probes += 1;
        self.update_slow_ack();
        self.bits &= !bit::RETRANSMIT;
        self.disarm();
        self.rearm_rto(now);
    }

    /// A closed window is probed by a segment below it, which the peer must answer, or by what little fits.
    fn emit_window_probe(&mut self, now: Time, out: &mut Segment) -> bool {
        let fits = self.sendable().min(self.window_left() as u64).min(self.sock.mss_cache as u64) as u16;
        if fits > 0 && self.may_send_data() {
            self.burst_left = 0;
            self.emit_new(now, out, fits, false);
        } else {
            let seq = self.sock.snd_una.wrapping_sub(1);
            self.fill(out, seq, 0, flags::ACK, false);
        }
        true
    }

    /// The timestamp of now, ms.
    #[inline]
    pub(crate) fn timestamp(&self) -> u32 {
        self.now_ms().wrapping_add(TIMESTAMP_OFFSET_MS)
    }

    /// The timestamp that a segment sent at this µs carried.
    pub(crate) fn timestamp_of(&self, sent_us: u32) -> u32 {
        (rate::full_us(self.sock.tcp_mstamp, sent_us) / 1000) as u32 + TIMESTAMP_OFFSET_MS
    }

    /// The header. `capable`: new data of a flow that negotiated ECN.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "once a packet, and the call would be half of the work")]
    pub(crate) fn fill(&mut self, out: &mut Segment, seq: u32, len: u16, bits: u8, capable: bool) {
        let window = self.select_window();
        let (tsval, tsecr) = if self.has(bit::TIMESTAMPS) { (self.timestamp(), self.ts_recent) } else { (0, 0) };
        let ecn_flags = self.sock.ecn_flags;
        let echo = ecn_flags & (ecn::OK | ecn::DEMAND_CWR) == ecn::OK | ecn::DEMAND_CWR;
        let bits = if echo { bits | flags::ECE } else { bits };
        // an algorithm that lives on marks has everything marked
        let ect = capable || (ecn_flags & ecn::OK != 0 && self.ops().needs_ecn());
        // field by field: the slot is the caller's, and blocks beyond sack_count mean nothing
        out.seq = seq;
        out.ack = self.sock.rcv_nxt;
        out.window = window;
        out.tsval = tsval;
        out.tsecr = tsecr;
        out.len = len;
        out.mss = 0;
        out.flags = bits;
        out.ecn = if ect { self.config.ect() } else { Ecn::NotEct };
        out.has_timestamp = self.has(bit::TIMESTAMPS);
        out.sack_permitted = false;
        out.window_scale = 0;
        out.sack_count = 0;
        out.ace = 0;
        if ecn_flags & ecn::ACCURATE != 0 {
            self.fill_accurate(out);
        }
    }

    /// A pure ACK.
    pub(crate) fn emit_ack(&mut self, out: &mut Segment) {
        let seq = self.sock.snd_nxt;
        self.fill(out, seq, 0, flags::ACK, false);
        self.add_sack_blocks(out);
        self.count_quick_ack();
        self.sock.icsk_ack_pending = 0;
        self.ack_at = Time::NEVER;
    }

    /// The ACK that the algorithm asked for, as things stood then (DCTCP's receiver, RFC 8257 3.2).
    fn emit_algorithm_ack(&mut self, out: &mut Segment) {
        self.sock.cc_ack_wanted = 0;
        let now_flags = std::mem::replace(&mut self.sock.ecn_flags, self.sock.cc_ack_ecn_flags);
        let seq = self.sock.snd_nxt;
        let (wup, wnd) = (self.rcv_wup, self.rcv_wnd);
        self.fill(out, seq, 0, flags::ACK, false);
        self.sock.ecn_flags = now_flags;
        out.ack = self.sock.cc_ack_seq;
        (self.rcv_wup, self.rcv_wnd) = (wup, wnd);
        self.bits |= bit::NARROW;
    }

    /// A segment with data left: it acknowledged all there was, SACK blocks excepted.
    #[inline]
    fn ack_is_sent(&mut self) {
        if self.sock.icsk_ack_pending == 0 {
            return;
        }
        let blocks =
            self.busy.rare().is_some_and(|rare| rare.dsack.is_some() || rare.out_of_order.recent().next().is_some());
        if !blocks {
            self.count_quick_ack();
            self.sock.icsk_ack_pending = 0;
            self.ack_at = Time::NEVER;
        }
    }

    /// The application writes: notes that it was the limit, and restarts after an idle time. As in Linux the clock that
    /// algorithms see moves only with the transmission that follows.
    pub(crate) fn before_write(&mut self, now: Time) {
        if !self.may_send_data() {
            return;
        }
        self.check_app_limited();
        if self.config.slow_start_after_idle && self.sock.packets_out == 0 && !self.has_cong_control() {
            let now_ms = (now.as_us() / 1000) as u32;
            let idle_ms = now_ms.wrapping_sub(self.sock.lsndtime);
            if idle_ms > self.rto_ms() {
                self.restart_window(now_ms, idle_ms);
            }
        }
    }
}
