//! The congestion state machine: Open, Disorder, CWR, Recovery, Loss; what enters, leaves and undoes them.

use crate::ack::{Ack, found};
use crate::endpoint::{Endpoint, TimerKind, bit};
use crate::rare::REORDERING_INITIAL;
use crate::scoreboard::{mark, mark_lost};
use crate::segment::{SACK_BLOCKS_MAX, SackBlock};
use crate::seq::{after, before};
use congestion::CaEvent;
use congestion::sock::{
    TCP_CA_CWR, TCP_CA_DISORDER, TCP_CA_LOSS, TCP_CA_OPEN, TCP_CA_RECOVERY, TCP_INFINITE_SSTHRESH, ecn,
};

/// Minimum time until the sender acts on a receiver's reneging, µs; half of an RTT if that is more.
const RENEGING_DELAY_MIN_US: u64 = 10_000;

impl Endpoint {
    pub(crate) fn set_ca_state(&mut self, state: u8) {
        self.sock.ca_set_state(state);
        self.sock.icsk_ca_state = state;
    }

    /// The threshold that undoing a reduction restores.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        let sock = &self.sock;
        if matches!(sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            sock.snd_ssthresh
        } else {
            sock.snd_ssthresh.max((sock.snd_cwnd >> 1) + (sock.snd_cwnd >> 2))
        }
    }

    /// An ACK out of the ordinary, or in a state out of the ordinary.
    pub(crate) fn alert(&mut self, ack: &mut Ack, duplicates: u32) {
        self.rare_mut();
        if self.sock.packets_out == 0 {
            self.sock.sacked_out = 0;
        }
        if ack.found & found::ECE != 0 {
            // the reduction is required: nothing to undo
            self.sock.prior_ssthresh = 0;
        }
        if ack.found & found::RENEGED != 0 {
            // the receiver reneged: a timeout, soon, retransmits from the queue as it is
            ack.found &= !found::SET_TIMER;
            let delay_us = (self.sock.srtt_us as u64 >> 4).max(RENEGING_DELAY_MIN_US);
            return self.arm(TimerKind::Retransmit, ack.now, delay_us);
        }
        if self.sock.icsk_ca_state == TCP_CA_OPEN {
            self.rare_mut().retrans_stamp = None;
        } else if !before(self.sock.snd_una, self.sock.high_seq) && self.leave_episode(ack) {
            return;
        }
        match self.sock.icsk_ca_state {
            TCP_CA_RECOVERY => self.in_recovery(ack, duplicates),
            TCP_CA_LOSS => self.in_loss(ack, duplicates),
            _ => self.out_of_recovery(ack, duplicates),
        }
    }

    /// high_seq is acknowledged. True: the state stays, and nothing else is to be done.
    fn leave_episode(&mut self, ack: &Ack) -> bool {
        match self.sock.icsk_ca_state {
            // CWR ends above high_seq: the segment that bears CWR must have arrived
            TCP_CA_CWR if self.sock.snd_una != self.sock.high_seq => {
                self.end_reduction();
                self.set_ca_state(TCP_CA_OPEN);
            }
            TCP_CA_RECOVERY => {
                if !self.has(bit::SACK) {
                    self.sock.sacked_out = 0;
                }
                if self.try_undo_recovery(ack) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    fn in_recovery(&mut self, ack: &mut Ack, duplicates: u32) {
        if ack.found & found::UNA_ADVANCED == 0 {
            if !self.has(bit::SACK) {
                self.add_reno_sacks(duplicates, ack.found);
            }
        } else if self.try_undo_partial(ack) {
            return;
        }
        if self.try_undo_dsack() {
            self.try_to_open(ack.found);
        }
        self.identify_losses(ack);
        if self.sock.icsk_ca_state != TCP_CA_RECOVERY {
            if self.sock.lost_out == 0 {
                return;
            }
            self.enter_recovery(ack.found & found::ECE != 0);
        }
        if !self.config.prr && ack.found & found::UNA_ADVANCED != 0 && self.sock.lost_out > self.sock.retrans_out {
            // RFC 6582: a partial acknowledgment is answered with a retransmission at once
            self.rare_mut().retransmit_head = true;
        }
        self.bits |= bit::RETRANSMIT;
    }

    fn in_loss(&mut self, ack: &mut Ack, duplicates: u32) {
        let retransmit = self.process_loss(ack, duplicates);
        self.identify_losses(ack);
        if self.sock.icsk_ca_state != TCP_CA_OPEN && ack.found & found::LOST_RETRANS == 0 {
            self.bits |= if retransmit { bit::RETRANSMIT } else { 0 };
            return;
        }
        // the window was restored, or retransmissions were lost
        self.out_of_recovery(ack, duplicates);
    }

    fn out_of_recovery(&mut self, ack: &mut Ack, duplicates: u32) {
        if !self.has(bit::SACK) {
            if ack.found & found::UNA_ADVANCED != 0 {
                self.sock.sacked_out = 0;
            }
            self.add_reno_sacks(duplicates, ack.found);
        }
        if self.sock.icsk_ca_state <= TCP_CA_DISORDER {
            self.try_undo_dsack();
        }
        self.identify_losses(ack);
        if self.sock.lost_out == 0 {
            return self.try_to_open(ack.found);
        }
        self.enter_recovery(ack.found & found::ECE != 0);
        self.bits |= bit::RETRANSMIT;
    }

    fn identify_losses(&mut self, ack: &mut Ack) {
        if self.sock.packets_out == 0 {
            return;
        }
        if !self.has(bit::SACK) {
            return self.mark_losses_by_duplicates(ack.found & found::UNA_ADVANCED != 0);
        }
        if !self.config.rack {
            return self.mark_losses_by_sacks();
        }
        let prior_retrans = self.sock.retrans_out;
        if self.mark_losses_by_rack(ack.now) {
            ack.found &= !found::SET_TIMER;
        }
        if prior_retrans > self.sock.retrans_out {
            ack.found |= found::LOST_RETRANS;
        }
    }

    /// The window is to be reduced: remembers what it was, asks the algorithm what it shall be.
    pub(crate) fn init_reduction(&mut self) {
        let sock = &mut self.sock;
        sock.high_seq = sock.snd_nxt;
        sock.snd_cwnd_cnt = 0;
        sock.prior_cwnd = sock.snd_cwnd;
        let rare = self.rare_mut();
        rare.tlp_high_seq = None;
        rare.prr_delivered = 0;
        rare.prr_out = 0;
        self.sock.snd_ssthresh = self.sock.ca_ssthresh();
        self.queue_cwr();
        self.update_slow_ack();
    }

    fn queue_cwr(&mut self) {
        if self.sock.ecn_flags & (ecn::OK | ecn::ACCURATE) == ecn::OK {
            self.sock.ecn_flags |= ecn::QUEUE_CWR;
        }
    }

    /// Without PRR the window is what the threshold is, at once.
    fn reduce_at_once(&mut self) {
        if !self.config.prr && !self.has_cong_control() {
            self.sock.snd_cwnd = self.sock.snd_ssthresh;
        }
    }

    fn end_reduction(&mut self) {
        if self.has_cong_control() {
            return;
        }
        let sock = &self.sock;
        if sock.snd_ssthresh < TCP_INFINITE_SSTHRESH && (sock.icsk_ca_state == TCP_CA_CWR || sock.undo_marker != 0) {
            self.sock.snd_cwnd = self.sock.snd_ssthresh;
            self.sock.snd_cwnd_stamp = self.now_ms();
        }
        self.sock.ca_cwnd_event(CaEvent::CompleteCwr);
    }

    fn init_undo(&mut self) {
        self.sock.undo_marker = self.sock.snd_una;
        let probe = self.busy.rare().is_some_and(|rare| rare.tlp_high_seq.is_some() && rare.tlp_retrans);
        let retransmissions = self.sock.retrans_out as i32 + probe as i32;
        // 0 means "all retransmissions were spurious", which is not valid before the first one
        self.sock.undo_retrans = if retransmissions == 0 { -1 } else { retransmissions };
    }

    pub(crate) fn enter_recovery(&mut self, ece: bool) {
        self.sock.prior_ssthresh = 0;
        self.init_undo();
        if !matches!(self.sock.icsk_ca_state, TCP_CA_CWR | TCP_CA_RECOVERY) {
            if !ece {
                self.sock.prior_ssthresh = self.current_ssthresh();
            }
            self.init_reduction();
        }
        self.set_ca_state(TCP_CA_RECOVERY);
        self.reduce_at_once();
        let prr = self.config.prr;
        let rare = self.rare_mut();
        rare.stats.recoveries += 1;
        rare.retransmit_head |= !prr;
    }

    /// ECN echo: the window is reduced once a round trip (RFC 3168 6.1.2).
    fn enter_cwr(&mut self) {
        self.sock.prior_ssthresh = 0;
        if self.sock.icsk_ca_state < TCP_CA_CWR {
            self.sock.undo_marker = 0;
            self.init_reduction();
            self.set_ca_state(TCP_CA_CWR);
            self.reduce_at_once();
        }
    }

    /// A retransmission timeout.
    pub(crate) fn enter_loss(&mut self) {
        let state = self.sock.icsk_ca_state;
        let new_episode = state < TCP_CA_RECOVERY;
        self.rare_mut();
        self.mark_lost_by_timeout();
        let reduce = state <= TCP_CA_DISORDER
            || !after(self.sock.high_seq, self.sock.snd_una)
            || (state == TCP_CA_LOSS && self.sock.icsk_retransmits == 0);
        if reduce {
            self.sock.prior_ssthresh = self.current_ssthresh();
            self.sock.prior_cwnd = self.sock.snd_cwnd;
            self.sock.snd_ssthresh = self.sock.ca_ssthresh();
            self.sock.ca_cwnd_event(CaEvent::Loss);
            self.init_undo();
        }
        self.sock.snd_cwnd = self.sock.packets_in_flight() + 1;
        self.sock.snd_cwnd_cnt = 0;
        self.sock.snd_cwnd_stamp = self.now_ms();
        let (sacked_out, retransmits) = (self.sock.sacked_out, self.sock.icsk_retransmits);
        let frto = self.config.frto && (new_episode || retransmits > 0);
        let rare = self.rare_mut();
        if state <= TCP_CA_DISORDER && sacked_out >= REORDERING_INITIAL {
            rare.reordering = rare.reordering.min(REORDERING_INITIAL);
        }
        rare.tlp_high_seq = None;
        rare.frto = frto;
        rare.frto_new = false;
        self.set_ca_state(TCP_CA_LOSS);
        self.sock.high_seq = self.sock.snd_nxt;
        self.queue_cwr();
        self.update_slow_ack();
    }

    /// At a timeout all is lost but what was sent within the last round trip.
    fn mark_lost_by_timeout(&mut self) {
        let reneged = self.busy.at(0).is(mark::SACKED);
        let sack = self.has(bit::SACK);
        if reneged || !sack {
            self.sock.sacked_out = 0;
        }
        self.rare_mut().reneged |= reneged;
        let now_us = self.sock.tcp_mstamp as u32;
        let rtt_us = self.sock.srtt_us >> 3;
        for index in 0..self.sock.packets_out {
            let mut record = *self.busy.at(index);
            if reneged {
                record.flags &= !mark::SACKED;
            }
            let recent = now_us.wrapping_sub(record.sent_us) < rtt_us;
            if index == 0 || !recent || reneged {
                mark_lost(&mut self.sock, &mut record);
            }
            *self.busy.at_mut(index) = record;
        }
        let head = self.sock.snd_una;
        let rare = self.rare_mut();
        rare.retransmit_hint = head;
        rare.rack.frontier = None;
        rare.entered = [SackBlock::default(); SACK_BLOCKS_MAX];
    }

    /// In Loss. True: lost segments are retransmitted now.
    fn process_loss(&mut self, ack: &Ack, duplicates: u32) -> bool {
        let recovered = !before(self.sock.snd_una, self.sock.high_seq);
        let advanced = ack.found & found::UNA_ADVANCED != 0;
        if advanced && self.try_undo_loss(ack, false) {
            return false;
        }
        if self.rare_mut().frto {
            // RFC 5682 3.b: what was never retransmitted has arrived, so the timeout was spurious
            if ack.found & found::ORIG_SACK_ACKED != 0 && self.try_undo_loss(ack, true) {
                return false;
            }
            if after(self.sock.snd_nxt, self.sock.high_seq) {
                if ack.found & found::DATA_SACKED != 0 || duplicates > 0 {
                    self.rare_mut().frto = false;
                }
            } else if advanced && !recovered {
                self.sock.high_seq = self.sock.snd_nxt;
                // 2.b: try new data first
                if self.sendable() > 0 && self.window_allows_next() {
                    self.rare_mut().frto_new = true;
                    self.bits |= bit::RETRANSMIT;
                    return false;
                }
                self.rare_mut().frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(ack);
            return false;
        }
        if !self.has(bit::SACK) {
            if after(self.sock.snd_nxt, self.sock.high_seq) && duplicates > 0 {
                self.add_reno_sacks(duplicates, ack.found);
            } else if advanced {
                self.sock.sacked_out = 0;
            }
        }
        true
    }

    /// An ECE or nothing at all: Open, Disorder or CWR.
    fn try_to_open(&mut self, found_flags: u32) {
        if !self.any_retransmission_left() {
            self.rare_mut().retrans_stamp = None;
        }
        if found_flags & found::ECE != 0 {
            self.enter_cwr();
        }
        if self.sock.icsk_ca_state != TCP_CA_CWR {
            self.keep_open();
        }
    }

    pub(crate) fn keep_open(&mut self) {
        let disorder = self.sock.left_out() > 0 || self.any_retransmission_left();
        let state = if disorder { TCP_CA_DISORDER } else { TCP_CA_OPEN };
        if self.sock.icsk_ca_state != state {
            self.set_ca_state(state);
            self.sock.high_seq = self.sock.snd_nxt;
        }
    }

    pub(crate) fn any_retransmission_left(&self) -> bool {
        self.sock.retrans_out > 0 || (self.sock.packets_out > 0 && self.busy.at(0).is(mark::EVER_RETRANS))
    }

    /// A tail-loss probe is answered (RFC 8985 7.4).
    pub(crate) fn resolve_probe(&mut self, ack: &Ack) {
        let Some((high, retransmission)) =
            self.busy.rare().and_then(|rare| Some((rare.tlp_high_seq?, rare.tlp_retrans)))
        else {
            return;
        };
        if before(ack.number, high) {
            return;
        }
        let harmless = !retransmission
            || ack.found & found::DSACK_TLP != 0
            || (!after(ack.number, high)
                && ack.found & (found::UNA_ADVANCED | found::NOT_DUP | found::DATA_SACKED) == 0);
        if harmless {
            self.rare_mut().tlp_high_seq = None;
        } else if after(ack.number, high) {
            // only the probe arrived: there was a loss, and it is repaired
            self.init_reduction();
            self.set_ca_state(TCP_CA_CWR);
            self.end_reduction();
            self.keep_open();
        }
        self.update_slow_ack();
    }

    /// ACKs take the fast path again once no probe is outstanding.
    pub(crate) fn update_slow_ack(&mut self) {
        let probe = self.busy.rare().is_some_and(|rare| rare.tlp_high_seq.is_some());
        if probe {
            self.bits |= bit::SLOW_ACK;
        } else {
            self.bits &= !bit::SLOW_ACK;
        }
    }

    /// A duplicate ACK without SACK says that one segment arrived.
    fn add_reno_sacks(&mut self, duplicates: u32, found_flags: u32) {
        if duplicates == 0 {
            return;
        }
        let prior = self.sock.sacked_out;
        self.sock.sacked_out += duplicates;
        self.limit_reno_sacks();
        let newly = self.sock.sacked_out.saturating_sub(prior);
        self.count_delivered(newly, found_flags);
    }

    /// More duplicates than could have arrived: that is reordering.
    fn limit_reno_sacks(&mut self) {
        let holes = self.sock.lost_out.max(1).min(self.sock.packets_out);
        if self.sock.sacked_out + holes > self.sock.packets_out {
            self.sock.sacked_out = self.sock.packets_out - holes;
        }
    }

    /// One of `acked` filled the hole, the others had been counted as duplicates.
    pub(crate) fn remove_reno_sacks(&mut self, acked: u32, ack: &mut Ack) {
        let prior = self.sock.sacked_out;
        self.count_delivered(acked.saturating_sub(prior).max(1), ack.found);
        self.sock.sacked_out = prior.saturating_sub(acked - 1);
        self.limit_reno_sacks();
        if ack.found & found::RETRANS_DATA_ACKED != 0 {
            ack.found &= !found::ORIG_SACK_ACKED;
        }
    }
}
