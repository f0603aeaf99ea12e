//! SYN, SYN-ACK and what they negotiate.

use crate::accecn;
use crate::ack::found;
use crate::config::EcnMode;
use crate::endpoint::{Endpoint, State, TIMESTAMP_BYTES, TimerKind, bit};
use crate::rate;
use crate::scoreboard::mark;
use crate::segment::{Ecn, Segment, flags};
use congestion::sock::{TCP_CA_OPEN, ack_flags, ack_pending, ecn};
use congestion::{AckSample, RateSample};
use units::Time;

/// MSS of a peer that announces none (RFC 9293 3.7.1).
const MSS_DEFAULT: u32 = 536;

impl Endpoint {
    /// SYN, or SYN-ACK, the first time or again.
    pub(crate) fn emit_syn(&mut self, now: Time, out: &mut Segment) -> bool {
        let again = self.sock.icsk_retransmits > 0;
        let iss = self.sock.snd_una;
        let active = self.state == State::SynSent;
        let mut bits = flags::SYN;
        let mut ace = 0;
        if active {
            bits |= self.syn_ecn(again);
            if self.sock.ecn_flags & ecn::ACCURATE != 0 {
                ace = accecn::REQUEST;
            }
            self.record_syn(again);
        } else {
            bits |= flags::ACK | if self.sock.ecn_flags & ecn::OK != 0 { flags::ECE } else { 0 };
            if self.sock.ecn_flags & ecn::ACCURATE != 0 {
                let (answer, all) = self.accurate_answer();
                (bits, ace) = (flags::SYN | flags::ACK | answer, all);
            }
            if !again {
                // of use for nothing else before there is data: the SYN-ACK's RTT begins here
                self.sock.first_tx_mstamp = self.sock.tcp_mstamp;
            }
        }
        self.sock.snd_nxt = iss.wrapping_add(1);
        self.fill(out, iss, 0, bits, false);
        (out.flags, out.ace) = (bits, ace);
        // the window of a SYN is not scaled
        out.window = self.config.receive_buffer.min(self.config.window_clamp).min(65_535);
        self.rcv_wnd = out.window;
        self.bits |= bit::NARROW;
        if active {
            out.ack = 0;
        }
        out.mss = (self.config.mtu - 40) as u16;
        out.sack_permitted = self.has(bit::SACK);
        out.window_scale = if self.config.window_scaling && (active || self.bits & bit::NO_WSCALE == 0) {
            self.scale() + 1
        } else {
            0
        };
        // with AccECN a SYN is not ECT (RFC 9768 3.2.1)
        let classic = self.sock.ecn_flags & (ecn::OK | ecn::ACCURATE) == ecn::OK;
        out.ecn = if classic && self.ops().needs_ecn() { self.config.ect() } else { Ecn::NotEct };
        if self.timer == TimerKind::None {
            let rto_us = self.rto_us();
            self.arm(TimerKind::Retransmit, now, rto_us);
        }
        true
    }

    /// ECN is requested with the first SYN only: a path that drops such SYNs still works (RFC 3168 6.1.1.1).
    fn syn_ecn(&mut self, again: bool) -> u8 {
        let wanted = match self.config.ecn {
            EcnMode::Off => false,
            EcnMode::On | EcnMode::Accurate => true,
            EcnMode::Auto => self.ops().needs_ecn(),
        };
        let ask = wanted && !again;
        let accurate = if self.wants_accurate() { ecn::ACCURATE } else { 0 };
        self.sock.ecn_flags = if ask { ecn::OK | accurate } else { 0 };
        if ask { flags::ECE | flags::CWR } else { 0 }
    }

    /// Is AccECN asked for, and accepted?
    fn wants_accurate(&self) -> bool {
        self.config.ecn == EcnMode::Accurate || (self.config.ecn != EcnMode::Off && self.ops().wants_accecn())
    }

    fn record_syn(&mut self, again: bool) {
        if again && self.sock.packets_out == 1 {
            let sent_us = self.sock.tcp_mstamp as u32;
            let record = self.busy.at_mut(0);
            record.sent_us = sent_us;
            record.flags |= mark::EVER_RETRANS;
            return;
        }
        self.sock.packets_out = 1;
        let seq = self.sock.snd_una;
        let record = rate::first_record(&mut self.sock, seq, 0, mark::SYN | mark::SAMPLED);
        self.busy.make(&self.sock).ring.push(0, record);
    }

    fn scale(&self) -> u8 {
        (self.bits & bit::WSCALE_MASK) as u8
    }

    /// What both ends can do.
    fn negotiate(&mut self, segment: &Segment) {
        if !segment.sack_permitted {
            self.bits &= !bit::SACK;
        }
        if segment.has_timestamp && self.has(bit::TIMESTAMPS) {
            self.ts_recent = segment.tsval;
        } else {
            self.bits &= !bit::TIMESTAMPS;
        }
        if segment.window_scale == 0 {
            self.bits = (self.bits & !bit::WSCALE_MASK) | bit::NO_WSCALE;
        }
        let theirs = if segment.mss == 0 { MSS_DEFAULT } else { segment.mss as u32 };
        let options = if self.has(bit::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
        self.sock.mss_cache = theirs.min(self.config.mtu - 40) - options;
        self.sock.rcv_nxt = segment.seq.wrapping_add(1);
        self.rcv_wup = self.sock.rcv_nxt;
        self.snd_wnd = segment.window;
        self.rcv_mss = MSS_DEFAULT.min(self.sock.mss_cache).min(self.config.receive_buffer / 2) as u16;
    }

    /// A passive end gets a SYN.
    pub(crate) fn on_listen(&mut self, segment: &Segment) {
        if segment.flags & (flags::SYN | flags::ACK | flags::RST) != flags::SYN {
            return;
        }
        let offered = segment.flags & (flags::ECE | flags::CWR) == flags::ECE | flags::CWR;
        let needs = self.ops().needs_ecn();
        // a SYN that is itself ECT comes from a stack such as DCTCP's; only such a stack may accept ECN
        let accepted = self.config.ecn != EcnMode::Off && (segment.ecn == Ecn::NotEct || needs);
        self.sock.ecn_flags = if offered && accepted { ecn::OK } else { 0 };
        if segment.ace == accecn::REQUEST && accepted && self.wants_accurate() {
            self.begin_accurate(segment.ecn, false);
        }
        self.negotiate(segment);
        self.state = State::SynReceived;
        self.bits |= bit::SPECIAL;
    }

    /// A passive end gets the answer to its SYN-ACK. False: it is not that.
    pub(crate) fn on_syn_received(&mut self, now: Time, segment: &Segment) -> bool {
        if segment.flags & flags::RST != 0 {
            self.finish(State::Closed);
            return false;
        }
        if segment.flags & flags::SYN != 0 {
            self.bits |= bit::SPECIAL;
            return false;
        }
        if segment.flags & flags::ACK == 0 || segment.ack != self.sock.snd_nxt {
            return false;
        }
        self.disarm();
        self.sock.ca_set_state(TCP_CA_OPEN);
        self.sock.snd_una = segment.ack;
        self.snd_wnd = segment.window;
        if self.sock.ecn_flags & ecn::ACCURATE != 0 {
            self.accurate_answered(segment);
        }
        self.sock.ca_in_ack_event(ack_flags::SLOWPATH | ack_flags::WIN_UPDATE);
        self.sock.delivered += 1;
        let rtt_us = if self.sock.icsk_retransmits == 0 {
            Some((self.sock.tcp_mstamp - self.sock.first_tx_mstamp) as u32)
        } else if self.has(bit::TIMESTAMPS) {
            self.timestamp_rtt_us(segment.tsecr)
        } else {
            None
        };
        if let Some(rtt_us) = rtt_us {
            self.update_rtt_min(rtt_us, false);
            self.estimate_rtt(rtt_us);
        }
        self.establish(now);
        true
    }

    /// An active end gets the answer to its SYN.
    pub(crate) fn on_syn_sent(&mut self, now: Time, segment: &Segment) {
        if segment.flags & flags::ACK == 0 || segment.ack != self.sock.snd_nxt {
            return;
        }
        if segment.flags & flags::RST != 0 {
            return self.finish(State::Closed);
        }
        if segment.flags & flags::SYN == 0 {
            return;
        }
        if self.sock.ecn_flags & ecn::ACCURATE != 0 && segment.ace != 0 {
            self.begin_accurate(segment.ecn, true);
        } else if segment.flags & (flags::ECE | flags::CWR) == flags::ECE {
            self.sock.ecn_flags &= !ecn::ACCURATE;
        } else {
            self.sock.ecn_flags = 0;
        }
        self.negotiate(segment);
        let record = *self.busy.at(0);
        let mut rs = RateSample { delivered: 0, interval_us: 0, prior_in_flight: 1, ..RateSample::default() };
        self.sock.snd_una = segment.ack;
        self.sock.delivered += 1;
        self.sock.packets_out = 0;
        self.busy.ring_mut().drop_front(1);
        let rtt_us = if !record.is(mark::EVER_RETRANS) {
            Some((self.sock.tcp_mstamp as u32).wrapping_sub(record.sent_us))
        } else if self.has(bit::TIMESTAMPS) {
            self.timestamp_rtt_us(segment.tsecr)
        } else {
            None
        };
        if let Some(rtt_us) = rtt_us {
            rs.rtt_us = rtt_us as i64;
            self.update_rtt_min(rtt_us, false);
            self.estimate_rtt(rtt_us);
        }
        self.disarm();
        let in_flight = self.sock.mss_cache * (self.sock.delivered - rs.prior_delivered);
        self.sock.ca_pkts_acked(&AckSample { pkts_acked: 1, rtt_us: rs.rtt_us as i32, in_flight });
        self.sock.ca_in_ack_event(ack_flags::SLOWPATH | ack_flags::WIN_UPDATE);
        rate::generate(&mut self.sock, &mut rs, 1, 0, false);
        if self.has_cong_control() {
            let brought =
                found::SLOW_PATH | found::SYN_ACKED | found::UNA_ADVANCED | found::WIN_UPDATE | found::SET_TIMER;
            self.sock.ca_cong_control(segment.ack, brought, &rs);
        }
        self.establish(now);
        self.sock.icsk_ack_pending |= ack_pending::SCHED | ack_pending::NOW;
    }

    /// The connection is open: the algorithm begins.
    pub(crate) fn establish(&mut self, now: Time) {
        // RFC 5681 3.1: a SYN that was lost twice says that the path is congested
        let lost_twice = self.busy.rare().is_some_and(|rare| rare.stats.syn_retransmits > 1);
        self.establish_with(now, if lost_twice { 1 } else { self.config.initial_cwnd });
    }

    /// The same with a window of its own, segments.
    pub(crate) fn establish_with(&mut self, now: Time, cwnd: u32) {
        self.state = State::Established;
        self.sock.snd_cwnd = cwnd;
        self.sock.icsk_retransmits = 0;
        self.backoff = 0;
        self.sock.lsndtime = self.now_ms();
        self.sock.snd_cwnd_stamp = self.now_ms();
        self.sock.cwnd_usage_seq = self.sock.snd_nxt;
        if !self.has_cong_control() {
            self.update_pacing_rate();
        }
        self.sock.ca_init();
        if self.app_end() > 0 {
            // a writer has been waiting
            self.before_write(now);
        } else {
            self.busy.free(&self.sock);
        }
    }
}
