//! A segment arrives: the ordinary ones by a short way, all others by that of RFC 9293 3.10.7.

use crate::endpoint::{Endpoint, State, bit};
use crate::segment::{Segment, flags};
use crate::seq::{after, before};
use congestion::sock::{ack_pending, ecn};
use units::Time;

/// Flags that distinguish an ordinary segment: of these, it has ACK alone. ECE is handled later.
const PLAIN: u8 = flags::SYN | flags::FIN | flags::RST | flags::ACK | flags::CWR;

impl Endpoint {
    /// A segment has arrived.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment) {
        self.set_clock(now);
        if self.state == State::Established
            && segment.flags & PLAIN == flags::ACK
            && segment.seq == self.sock.rcv_nxt
            && segment.has_timestamp == self.has(bit::TIMESTAMPS)
        {
            let done = if segment.len == 0 {
                self.fast_ack(now, segment)
            } else {
                segment.flags & flags::ECE == 0
                    && segment.ack == self.sock.snd_una
                    && segment.sack_count == 0
                    && self.fast_data(now, segment)
            };
            if done {
                return;
            }
        }
        self.on_any_segment(now, segment);
    }

    fn on_any_segment(&mut self, now: Time, segment: &Segment) {
        self.burst_left = 0;
        match self.state {
            State::Closed => {}
            State::Listen => self.on_listen(segment),
            State::SynSent => self.on_syn_sent(now, segment),
            State::TimeWait => {
                if segment.seq_len() > 0 {
                    self.sock.icsk_ack_pending |= ack_pending::NOW;
                }
            }
            State::SynReceived => {
                if self.on_syn_received(now, segment) && segment.seq_len() > 0 {
                    self.on_synchronized(now, segment);
                }
            }
            _ => self.on_synchronized(now, segment),
        }
    }

    fn on_synchronized(&mut self, now: Time, segment: &Segment) {
        if !self.is_in_window(segment) {
            return self.answer_out_of_window(segment);
        }
        if segment.flags & flags::RST != 0 {
            return self.finish(State::Closed);
        }
        if segment.flags & flags::SYN != 0 || segment.flags & flags::ACK == 0 {
            self.sock.icsk_ack_pending |= ack_pending::NOW;
            return;
        }
        let recent = !after(segment.seq, self.rcv_wup);
        if segment.has_timestamp && recent && !before(segment.tsval, self.ts_recent) {
            self.ts_recent = segment.tsval;
        }
        if !self.slow_ack(now, segment) {
            self.sock.icsk_ack_pending |= ack_pending::NOW;
            return;
        }
        if segment.len == 0 && self.sock.ecn_flags & ecn::ACCURATE != 0 {
            self.count_ce(segment);
        }
        self.after_own_fin();
        if self.is_closed() {
            return;
        }
        if segment.seq_len() > 0 {
            if self.sock.ecn_flags & ecn::OK != 0 {
                self.accept_cwr(segment);
            }
            let out_of_order = self.take_data(segment);
            self.decide_ack(now, out_of_order);
        }
    }

    /// RFC 9293 3.4, with the bounds of the last ACK that was sent.
    pub(crate) fn is_in_window(&self, segment: &Segment) -> bool {
        let right = self.rcv_wup.wrapping_add(self.rcv_wnd);
        let right = if before(right, self.sock.rcv_nxt) { self.sock.rcv_nxt } else { right };
        !before(segment.end_seq(), self.rcv_wup) && !after(segment.seq, right)
    }

    /// What lies outside of the window is answered with an ACK: the peer's last one was lost, or it probes.
    fn answer_out_of_window(&mut self, segment: &Segment) {
        if segment.flags & flags::RST != 0 {
            return;
        }
        if segment.len > 0 && before(segment.seq, self.sock.rcv_nxt) {
            self.take_data(segment);
        }
        self.sock.icsk_ack_pending |= ack_pending::NOW;
    }

    /// Is this side's FIN acknowledged?
    fn after_own_fin(&mut self) {
        if !self.has(bit::FIN_SENT) || self.sock.snd_una != self.sock.snd_nxt {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.busy.free(&self.sock);
            }
            State::Closing => self.finish(State::TimeWait),
            State::LastAck => self.finish(State::Closed),
            _ => {}
        }
    }

    /// The peer's FIN is next in order.
    pub(crate) fn take_fin(&mut self) {
        self.sock.rcv_nxt = self.sock.rcv_nxt.wrapping_add(1);
        self.sock.icsk_ack_pending |= ack_pending::SCHED;
        match self.state {
            State::Established => {
                self.state = State::CloseWait;
                self.bits |= bit::PINGPONG;
            }
            State::FinWait1 => {
                self.state = State::Closing;
                self.sock.icsk_ack_pending |= ack_pending::NOW;
            }
            State::FinWait2 => {
                self.finish(State::TimeWait);
                self.sock.icsk_ack_pending |= ack_pending::NOW;
            }
            _ => {}
        }
    }
}
