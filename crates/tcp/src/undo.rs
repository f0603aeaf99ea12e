//! Taking back a reduction that proves wrong: by timestamps (Eifel, RFC 3522), D-SACK (RFC 3708), F-RTO (RFC 5682).

use crate::ack::Ack;
use crate::endpoint::{Endpoint, bit};
use crate::rack::REO_WND_PERSIST;
use crate::scoreboard::mark;
use crate::seq::before;
use congestion::sock::{TCP_CA_OPEN, ecn};

impl Endpoint {
    /// The ACK was caused by an original, not by a retransmission.
    fn original_arrived(&self, ack: &Ack) -> bool {
        match self.busy.rare().and_then(|rare| rare.retrans_stamp) {
            Some(stamp) => self.echo_precedes(ack.tsecr, stamp),
            // nothing was retransmitted yet; without SACK the stamp may have been cleared at the end of the episode
            None => self.has(bit::SACK) || before(self.sock.snd_una, self.sock.high_seq),
        }
    }

    fn may_undo(&self, ack: &Ack) -> bool {
        self.sock.undo_marker != 0 && (self.sock.undo_retrans == 0 || self.original_arrived(ack))
    }

    fn undo_reduction(&mut self, unmark_lost: bool) {
        if unmark_lost {
            for index in 0..self.sock.packets_out {
                self.busy.at_mut(index).flags &= !mark::LOST;
            }
            self.sock.lost_out = 0;
        }
        if self.sock.prior_ssthresh != 0 {
            self.sock.snd_cwnd = self.sock.ca_undo_cwnd();
            if self.sock.prior_ssthresh > self.sock.snd_ssthresh {
                self.sock.snd_ssthresh = self.sock.prior_ssthresh;
                self.sock.ecn_flags &= !ecn::QUEUE_CWR;
            }
            self.rare_mut().stats.undos += 1;
        }
        self.sock.snd_cwnd_stamp = self.now_ms();
        self.sock.undo_marker = 0;
        // losses are to be looked for again, among all
        let rack = &mut self.rare_mut().rack;
        rack.advanced = true;
        rack.frontier = None;
    }

    /// Without SACK, high_seq itself must be exceeded: a duplicate ACK of it would start a false recovery (RFC 6582 3.2).
    fn holds_on(&mut self) -> bool {
        let holds = !self.has(bit::SACK) && self.sock.snd_una == self.sock.high_seq;
        if holds && !self.any_retransmission_left() {
            self.rare_mut().retrans_stamp = None;
        }
        holds
    }

    /// All of the episode is acknowledged. True: the state holds on.
    pub(crate) fn try_undo_recovery(&mut self, ack: &Ack) -> bool {
        if self.may_undo(ack) {
            self.undo_reduction(false);
        } else {
            let rack = &mut self.rare_mut().rack;
            rack.reo_wnd_persist = rack.reo_wnd_persist.saturating_sub(1);
        }
        if self.holds_on() {
            return true;
        }
        self.set_ca_state(TCP_CA_OPEN);
        self.rare_mut().reneged = false;
        false
    }

    /// A partial acknowledgment. True: the hole was filled by an original, but retransmissions are still under way.
    pub(crate) fn try_undo_partial(&mut self, ack: &Ack) -> bool {
        if self.sock.undo_marker == 0 || !self.original_arrived(ack) {
            return false;
        }
        let highest = self.highest_sack_seq();
        if before(ack.prior_una, highest) {
            self.note_reordering(ack.prior_una, highest);
        }
        if self.sock.retrans_out > 0 {
            return true;
        }
        if !self.any_retransmission_left() {
            self.rare_mut().retrans_stamp = None;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }

    /// Every retransmission was reported as a duplicate.
    pub(crate) fn try_undo_dsack(&mut self) -> bool {
        if self.sock.undo_marker == 0 || self.sock.undo_retrans != 0 {
            return false;
        }
        let rack = &mut self.rare_mut().rack;
        rack.reo_wnd_persist = (rack.reo_wnd_persist + 1).min(REO_WND_PERSIST);
        self.undo_reduction(false);
        true
    }

    /// The timeout was spurious: by timestamps, or, with `frto`, by what was acknowledged.
    pub(crate) fn try_undo_loss(&mut self, ack: &Ack, frto: bool) -> bool {
        if !frto && !self.may_undo(ack) {
            return false;
        }
        self.undo_reduction(true);
        self.sock.icsk_retransmits = 0;
        if self.holds_on() {
            return true;
        }
        if frto || self.has(bit::SACK) {
            self.set_ca_state(TCP_CA_OPEN);
            self.rare_mut().reneged = false;
        }
        true
    }
}
