//! Which segments are lost: RACK (RFC 8985), or three duplicates (RFC 6675, RFC 5681) where RACK is off.

use crate::endpoint::{Endpoint, TimerKind, bit};
use crate::rare::{REORDERING_INITIAL, Rack, Retransmitted};
use crate::rate::{full_us, sent_after};
use crate::scoreboard::{Record, mark, mark_lost};
use crate::seq::before;
use crate::timers::TIMEOUT_MIN_US;
use congestion::sock::TCP_CA_RECOVERY;
use units::Time;

/// Recoveries without a D-SACK until the reordering window shrinks back.
pub(crate) const REO_WND_PERSIST: u8 = 16;

impl Rack {
    /// Was `record` sent before what was delivered last?
    #[inline]
    pub(crate) fn overtook(&self, record: &Record) -> bool {
        sent_after(self.sent_us, record.sent_us, self.end_seq, record.end_seq())
    }
}

impl Endpoint {
    /// `record` was delivered: it may be the one sent last of those that were.
    #[inline]
    pub(crate) fn advance_rack(&mut self, record: &Record) {
        let rtt_us = (self.sock.tcp_mstamp as u32).wrapping_sub(record.sent_us);
        // sooner than possible: that was the original, not the retransmission
        if record.is(mark::EVER_RETRANS) && rtt_us < self.sock.min_rtt_us() {
            return;
        }
        let Some(rare) = self.busy.rare_mut() else {
            return;
        };
        let rack = &mut rare.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        if !rack.valid || sent_after(record.sent_us, rack.sent_us, record.end_seq(), rack.end_seq) {
            rack.valid = true;
            rack.sent_us = record.sent_us;
            rack.end_seq = record.end_seq();
        }
    }

    /// Was it acknowledged before its retransmission could arrive?
    pub(crate) fn is_spurious_retransmission(&self, record: &Record, tsecr: u32) -> bool {
        record.is(mark::EVER_RETRANS) && self.echo_precedes(tsecr, self.timestamp_of(record.sent_us))
    }

    /// The echoed timestamp is older than `stamp`.
    pub(crate) fn echo_precedes(&self, tsecr: u32, stamp: u32) -> bool {
        self.has(bit::TIMESTAMPS) && tsecr != 0 && before(tsecr, stamp)
    }

    /// How long a segment may be overtaken before it counts as lost, µs.
    fn reo_wnd_us(&self) -> u32 {
        let Some(rare) = self.busy.rare() else {
            return 0;
        };
        if rare.reord_seen == 0
            && (self.sock.icsk_ca_state >= TCP_CA_RECOVERY || self.sock.sacked_out >= rare.reordering)
        {
            return 0;
        }
        let settle = (self.sock.min_rtt_us() >> 2).saturating_mul(rare.rack.reo_wnd_steps as u32);
        settle.min(self.sock.srtt_us >> 3)
    }

    /// D-SACKs widen the reordering window, once a round trip.
    #[inline]
    pub(crate) fn update_reo_wnd(&mut self, prior_delivered: u32) {
        let delivered = self.sock.delivered;
        let Some(rare) = self.busy.rare_mut() else {
            return;
        };
        let rack = &mut rare.rack;
        if prior_delivered == 0 {
            return;
        }
        if before(prior_delivered, rack.last_delivered) {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.reo_wnd_steps = rack.reo_wnd_steps.saturating_add(1);
            rack.dsack_seen = false;
            rack.last_delivered = delivered;
            rack.reo_wnd_persist = REO_WND_PERSIST;
        } else if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_steps = 1;
        }
    }

    /// Marks what was sent long enough before the latest delivery; returns how long to wait for the others, µs.
    pub(crate) fn detect_losses(&mut self) -> u32 {
        let Some(rack) = self.busy.rare().map(|rare| rare.rack).filter(|rack| rack.valid) else {
            return 0;
        };
        if self.sock.packets_out == 0 {
            return 0;
        }
        // the usual case: what was delivered last was sent before the oldest, and the others were sent later still
        let head = self.busy.at(0);
        if !rack.overtook(head) && !head.is(mark::SACKED | mark::EVER_RETRANS) {
            return 0;
        }
        if rack.frontier.is_none() {
            self.gather_retransmitted();
        }
        let patience_us = rack.rtt_us as i64 + self.reo_wnd_us() as i64;
        let (lost, expected) = (self.sock.lost, cfg!(debug_assertions).then(|| self.overtaken(&rack, patience_us)));
        let wait_us = self.judge_first_transmissions(&rack, patience_us);
        let wait_us = wait_us.max(self.judge_retransmissions(&rack, patience_us));
        if let Some(expected) = expected {
            let found = (self.sock.lost.wrapping_sub(lost), wait_us as i64);
            assert_eq!(found, expected, "nothing that was overtaken was missed");
        }
        wait_us
    }

    /// How many losses [`Endpoint::detect_losses`] is to find, and how long it leaves to wait for others, by a look at all. A retransmission that
    /// an undo took for an original is marked twice, as in Linux: lost, and with the next ACK no longer under way.
    fn overtaken(&self, rack: &Rack, patience_us: i64) -> (u32, i64) {
        let overtaken = (0..self.sock.packets_out)
            .map(|index| self.busy.at(index))
            .filter(|record| !record.is(mark::SACKED) && !record.awaits_retransmission() && rack.overtook(record));
        overtaken.map(|record| self.left_us(record, patience_us)).fold((0, 0), |(late, longest), left| {
            if left > 0 { (late, longest.max(left)) } else { (late + 1, longest) }
        })
    }

    /// How long until `record`, which was overtaken, is lost, µs.
    #[inline]
    fn left_us(&self, record: &Record, patience_us: i64) -> i64 {
        patience_us - (self.sock.tcp_mstamp as u32).wrapping_sub(record.sent_us) as i64
    }

    /// [`Endpoint::detect_losses`] among what was never retransmitted. It left in sequence: the walk ends at the first record
    /// that was not overtaken, and begins where the last one found nothing more to decide.
    fn judge_first_transmissions(&mut self, rack: &Rack, patience_us: i64) -> u32 {
        let len = self.sock.packets_out;
        let mut index = self.first_beyond(rack.frontier);
        let mut frontier = None;
        let mut wait_us = 0;
        while index < len {
            let record = *self.busy.at(index);
            if record.is(mark::SACKED) {
                index += self.busy.ring_mut().sacked_run(len, index);
                continue;
            }
            if !record.is(mark::LOST | mark::EVER_RETRANS) {
                if !rack.overtook(&record) {
                    frontier = frontier.or(Some(record.seq));
                    break;
                }
                let left = self.left_us(&record, patience_us);
                if left <= 0 {
                    self.mark_lost_at(index);
                } else {
                    frontier = frontier.or(Some(record.seq));
                    wait_us = wait_us.max(left as u32);
                }
            }
            index += 1;
        }
        let beyond_una = frontier.unwrap_or(self.sock.snd_nxt).wrapping_sub(self.sock.snd_una);
        let frontier = self.sock.bytes_acked + beyond_una as u64;
        self.rare_mut().rack.frontier = Some(frontier);
        wait_us
    }

    /// Index of the first record at the payload offset `frontier` or beyond.
    fn first_beyond(&self, frontier: Option<u64>) -> u32 {
        let beyond_una = frontier.unwrap_or(0).saturating_sub(self.sock.bytes_acked);
        if beyond_una == 0 {
            return 0;
        }
        self.busy.ring().find(self.sock.packets_out, self.sock.snd_una.wrapping_add(beyond_una as u32))
    }

    /// [`Endpoint::detect_losses`] among what was retransmitted, in that order. What has arrived or is lost again is forgotten.
    fn judge_retransmissions(&mut self, rack: &Rack, patience_us: i64) -> u32 {
        let latest_us = full_us(self.sock.tcp_mstamp, rack.sent_us);
        let mut place = 0;
        let mut wait_us = 0;
        while let Some(&sent) = self.busy.rare().and_then(|rare| rare.retransmitted.get(place)) {
            if sent.sent_us > latest_us {
                break;
            }
            let Some(index) = self.in_flight_again(sent) else {
                self.rare_mut().retransmitted.remove(place);
                continue;
            };
            place += 1;
            let record = *self.busy.at(index);
            if rack.overtook(&record) {
                let left = self.left_us(&record, patience_us);
                if left <= 0 {
                    self.mark_lost_at(index);
                } else {
                    wait_us = wait_us.max(left as u32);
                }
            }
        }
        wait_us
    }

    /// Index of the record of a retransmission; `None` if it has arrived, is lost, or was followed by another one.
    fn in_flight_again(&self, sent: Retransmitted) -> Option<u32> {
        let len = self.sock.packets_out;
        let index = self.busy.ring().find(len, sent.seq);
        let record = if index < len { self.busy.at(index) } else { return None };
        let same = record.seq == sent.seq && record.sent_us == sent.sent_us as u32;
        (same && !record.is(mark::SACKED) && !record.awaits_retransmission()).then_some(index)
    }

    /// The segment of a record has just been retransmitted. As long as nothing is known of others, they are looked for when needed.
    pub(crate) fn note_retransmitted(&mut self, seq: u32) {
        let sent_us = self.sock.tcp_mstamp;
        let rare = self.rare_mut();
        if rare.rack.frontier.is_some() {
            rare.retransmitted.push_back(Retransmitted { sent_us, seq });
        }
    }

    /// Looks for all that is in flight after it was retransmitted.
    fn gather_retransmitted(&mut self) {
        let mut retransmitted = std::mem::take(&mut self.rare_mut().retransmitted);
        retransmitted.clear();
        for index in 0..self.sock.packets_out {
            let record = self.busy.at(index);
            if record.is(mark::EVER_RETRANS) && !record.is(mark::SACKED) && !record.awaits_retransmission() {
                let sent_us = full_us(self.sock.tcp_mstamp, record.sent_us);
                retransmitted.push_back(Retransmitted { sent_us, seq: record.seq });
            }
        }
        retransmitted.make_contiguous().sort_by_key(|sent| sent.sent_us);
        self.rare_mut().retransmitted = retransmitted;
    }

    fn mark_lost_at(&mut self, index: u32) {
        let mut record = *self.busy.at(index);
        if mark_lost(&mut self.sock, &mut record) {
            *self.busy.at_mut(index) = record;
            self.hint_retransmission(record.seq);
        }
    }

    /// The walk of retransmissions begins no later than at `seq`.
    pub(crate) fn hint_retransmission(&mut self, seq: u32) {
        let rare = self.rare_mut();
        if before(seq, rare.retransmit_hint) {
            rare.retransmit_hint = seq;
        }
    }

    /// Looks for losses by what arrived since; true if a reordering timer runs for the others.
    pub(crate) fn mark_losses_by_rack(&mut self, now: Time) -> bool {
        let Some(rare) = self.busy.rare_mut() else {
            return false;
        };
        if !rare.rack.advanced {
            return false;
        }
        rare.rack.advanced = false;
        let wait_us = self.detect_losses();
        if wait_us > 0 {
            self.arm(TimerKind::Reorder, now, wait_us as u64 + TIMEOUT_MIN_US);
        }
        wait_us > 0
    }

    /// RFC 6675: lost is what has three SACKed segments above it. Retransmissions are left to the timeout.
    pub(crate) fn mark_losses_by_sacks(&mut self) {
        let threshold = self.reordering();
        if self.sock.sacked_out < threshold {
            return;
        }
        let len = self.sock.packets_out;
        let mut above = self.sock.sacked_out;
        let mut index = 0;
        while index < len && above >= threshold {
            let run = self.busy.ring_mut().sacked_run(len, index);
            if run > 0 {
                above = above.saturating_sub(run);
                index += run;
                continue;
            }
            if !self.busy.at(index).is(mark::LOST | mark::EVER_RETRANS) {
                self.mark_lost_at(index);
            }
            index += 1;
        }
    }

    /// Without SACK: the oldest segment after three duplicate ACKs, and at every partial acknowledgment.
    pub(crate) fn mark_losses_by_duplicates(&mut self, una_advanced: bool) {
        let recovering = self.sock.icsk_ca_state == TCP_CA_RECOVERY;
        let before_recovery = self.sock.icsk_ca_state < TCP_CA_RECOVERY;
        let enough = before_recovery && self.sock.sacked_out >= self.reordering();
        if (enough || (recovering && una_advanced)) && !self.busy.at(0).is(mark::LOST) {
            self.mark_lost_at(0);
        }
    }

    /// Segments of reordering to tolerate.
    pub(crate) fn reordering(&self) -> u32 {
        self.busy.rare().map_or(REORDERING_INITIAL, |rare| rare.reordering)
    }
}
