//! SACK and D-SACK blocks of an ACK, entered into the queue (RFC 2018, RFC 2883).

use crate::ack::{Ack, found};
use crate::endpoint::Endpoint;
use crate::rate;
use crate::scoreboard::mark;
use crate::segment::{SACK_BLOCKS_MAX, SackBlock, Segment};
use crate::seq::{after, before};
use congestion::sock::TCP_CA_LOSS;

/// Segments of reordering that are tolerated at most.
const REORDERING_MAX: u32 = 300;

impl Endpoint {
    /// End of the highest SACKed segment, snd_una if there is none.
    pub(crate) fn highest_sack_seq(&self) -> u32 {
        match self.busy.rare() {
            Some(rare) if self.sock.sacked_out > 0 => rare.highest_sack,
            _ => self.sock.snd_una,
        }
    }

    /// Enters the blocks of `segment`.
    pub(crate) fn tag_sacked(&mut self, ack: &mut Ack, segment: &Segment) {
        let blocks = &segment.sack[..(segment.sack_count as usize).min(segment.sack.len())];
        if self.sock.sacked_out == 0 {
            let rare = self.rare_mut();
            rare.highest_sack = ack.prior_una;
            rare.entered = [SackBlock::default(); SACK_BLOCKS_MAX];
        }
        let d_sack = is_d_sack(segment.ack, blocks) && self.note_d_sack(ack, blocks[0]);
        if self.sock.packets_out == 0 {
            return;
        }
        let mut sorted = [SackBlock::default(); SACK_BLOCKS_MAX];
        let sorted = &mut sorted[..blocks.len()];
        sorted.copy_from_slice(blocks);
        // in the order of the data, as in Linux: what two blocks of one ACK newly report has not been reordered
        let una = self.sock.snd_una;
        sorted.sort_unstable_by_key(|block| block.start.wrapping_sub(una) as i32);
        for block in sorted {
            let valid = before(block.start, block.end)
                && !after(block.end, self.sock.snd_nxt)
                && after(block.end, self.sock.snd_una);
            let d_sack = d_sack && *block == blocks[0];
            if valid && (d_sack || !self.rare_mut().entered.contains(block)) {
                self.tag_block(ack, *block, d_sack);
            }
        }
        // what is valid now has been entered; what is not is not valid before it has been sent
        let snd_nxt = self.sock.snd_nxt;
        let rare = self.rare_mut();
        let entered = blocks.iter().filter(|block| !after(block.end, snd_nxt) && before(block.start, block.end));
        rare.entered = [SackBlock::default(); SACK_BLOCKS_MAX];
        rare.entered.iter_mut().zip(entered).for_each(|(kept, block)| *kept = *block);
        let undoing = self.sock.undo_marker != 0;
        if self.sock.icsk_ca_state != TCP_CA_LOSS || undoing {
            let highest = self.highest_sack_seq();
            if before(ack.reorder_seq, highest) {
                self.note_reordering(ack.reorder_seq, highest);
            }
        }
    }

    /// A D-SACK: something arrived twice. False if it is not to be believed.
    fn note_d_sack(&mut self, ack: &mut Ack, block: SackBlock) -> bool {
        let len = block.end.wrapping_sub(block.start);
        if !before(block.start, block.end) || len > self.snd_wnd.max(self.sock.mss_cache) {
            return false;
        }
        let mss = self.sock.mss_cache;
        let prior_una = ack.prior_una;
        let (undo_marker, undo_retrans) = (self.sock.undo_marker, self.sock.undo_retrans);
        let rare = self.rare_mut();
        if len <= mss && rare.tlp_high_seq == Some(block.end) {
            ack.found |= found::DSACK_TLP;
        }
        let segments = len.div_ceil(mss.max(1));
        rare.dsack_dups += segments;
        if rare.dsack_dups > rare.stats.retransmits {
            return false;
        }
        // a D-SACK of data that was taken for lost because of reordering: wait longer
        if rare.reord_seen > 0 && ack.found & found::DSACK_TLP == 0 {
            rare.rack.dsack_seen = true;
        }
        ack.found |= found::DSACK;
        ack.sack_delivered += segments;
        if undo_marker != 0 && undo_retrans > 0 && !after(block.end, prior_una) && after(block.end, undo_marker) {
            self.sock.undo_retrans = (undo_retrans - segments as i32).max(0);
        }
        true
    }

    fn tag_block(&mut self, ack: &mut Ack, block: SackBlock, d_sack: bool) {
        let len = self.sock.packets_out;
        let mut index = if d_sack { self.busy.ring().find(len, block.start) } else { self.first_new_in(block) };
        while index < len {
            let record = self.busy.at(index);
            if after(record.end_seq(), block.end) {
                break;
            }
            if before(record.seq, block.start) {
                index += 1;
                continue;
            }
            if record.is(mark::SACKED) && !d_sack {
                index += self.busy.ring_mut().sacked_run(len, index);
                continue;
            }
            let last = record.end_seq() == block.end;
            self.tag_record(ack, index, d_sack);
            if last {
                break;
            }
            index += 1;
        }
    }

    /// Index of the record at which `block` begins, or at which it has grown since it was last entered.
    fn first_new_in(&mut self, block: SackBlock) -> u32 {
        let len = self.sock.packets_out;
        let known = self.rare_mut().entered.iter().find(|known| known.start == block.start).map(|known| known.end);
        let ring = self.busy.ring();
        if let Some(end) = known.filter(|end| before(*end, block.end)) {
            let index = ring.find(len, end);
            if index < len && ring.at(index).seq == end {
                return index;
            }
        }
        ring.find(len, block.start)
    }

    fn tag_record(&mut self, ack: &mut Ack, index: u32, d_sack: bool) {
        let mut record = *self.busy.at(index);
        let (start, end) = (record.seq, record.end_seq());
        let ever = record.is(mark::EVER_RETRANS);
        if d_sack && ever {
            let sock = &mut self.sock;
            if sock.undo_marker != 0 && sock.undo_retrans > 0 && after(end, sock.undo_marker) {
                sock.undo_retrans -= 1;
            }
            if record.is(mark::SACKED) && before(start, ack.reorder_seq) {
                ack.reorder_seq = start;
            }
        }
        if !after(end, self.sock.snd_una) {
            return;
        }
        if !record.is(mark::SACKED) {
            self.rare_mut();
            self.advance_rack(&record);
            let highest = self.highest_sack_seq();
            let sock = &mut self.sock;
            if record.is(mark::RETRANS) {
                // not marked lost: a retransmission of it is believed to be under way still
                if record.is(mark::LOST) {
                    record.flags &= !(mark::LOST | mark::RETRANS);
                    sock.lost_out -= 1;
                    sock.retrans_out -= 1;
                }
            } else {
                if !ever {
                    // a hole that was never retransmitted is filled: reordering
                    if before(start, highest) && before(start, ack.reorder_seq) {
                        ack.reorder_seq = start;
                    }
                    if !after(end, sock.high_seq) {
                        ack.found |= found::ORIG_SACK_ACKED;
                    }
                    let first = ack.sacked_us.map_or(record.sent_us, |(first, _)| first);
                    ack.sacked_us = Some((first, record.sent_us));
                }
                if record.is(mark::LOST) {
                    record.flags &= !mark::LOST;
                    sock.lost_out -= 1;
                }
            }
            ack.found |= found::DATA_SACKED;
            sock.sacked_out += 1;
            ack.sack_delivered += 1;
            rate::on_delivered(sock, &record, &mut ack.rs);
            record.flags |= mark::SACKED | mark::SAMPLED;
            record.first_tx_us = 1;
            let rare = self.rare_mut();
            if after(end, rare.highest_sack) {
                rare.highest_sack = end;
            }
        }
        if d_sack && record.is(mark::RETRANS) {
            record.flags &= !mark::RETRANS;
            self.sock.retrans_out -= 1;
        }
        *self.busy.at_mut(index) = record;
    }

    /// A segment from `low` on arrived after one that ends at `highest`: tolerate that much from now on.
    pub(crate) fn note_reordering(&mut self, low: u32, highest: u32) {
        let mss = self.sock.mss_cache.max(1);
        let metric = highest.wrapping_sub(low);
        let rare = self.rare_mut();
        if metric > rare.reordering * mss {
            rare.reordering = metric.div_ceil(mss).min(REORDERING_MAX);
        }
        rare.reord_seen += 1;
    }
}

/// Does the first block report a duplicate (RFC 2883 4): below the acknowledgment, or within the second block?
fn is_d_sack(ack: u32, blocks: &[SackBlock]) -> bool {
    let first = blocks[0];
    before(first.start, ack)
        || blocks.get(1).is_some_and(|second| !after(first.end, second.end) && !before(first.start, second.start))
}
