//! What few connections need at any one time, kept apart so that idle flows stay small.

use crate::reassembly::OutOfOrder;
use crate::segment::{SACK_BLOCKS_MAX, SackBlock};
use crate::stats::Stats;
use std::collections::VecDeque;

/// Segments of reordering to tolerate at first (RFC 5681: three duplicate ACKs).
pub(crate) const REORDERING_INITIAL: u32 = 3;

/// RACK's state (RFC 8985): the most recently sent segment that is known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// When that segment was sent, µs.
    pub sent_us: u32,
    pub end_seq: u32,
    /// Its round-trip time, µs.
    pub rtt_us: u32,
    /// Something arrived since losses were last looked for.
    pub advanced: bool,
    /// Has `sent_us` a meaning yet?
    pub valid: bool,
    /// A D-SACK came in this round.
    pub dsack_seen: bool,
    /// Reordering window in quarters of the minimum RTT.
    pub reo_wnd_steps: u8,
    /// Recoveries until the window shrinks back to one step.
    pub reo_wnd_persist: u8,
    /// `delivered` when the window last grew.
    pub last_delivered: u32,
    /// Payload offset below which every record that was never retransmitted has arrived or is marked lost, and from which on
    /// every retransmission is noted in [`Rare::retransmitted`]. None: unknown.
    pub frontier: Option<u64>,
}

/// A retransmission: when it left, and which segment it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retransmitted {
    pub sent_us: u64,
    pub seq: u32,
}

/// Recovery, reordering, probes, what is out of order.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a condition of its own, of which few hold at a time")]
pub(crate) struct Rare {
    /// Segments delivered since the reduction began.
    pub prr_delivered: u32,
    /// Segments sent since then.
    pub prr_out: u32,
    pub rack: Rack,
    /// Retransmissions in the order in which they left, those that arrived or are lost among them.
    pub retransmitted: VecDeque<Retransmitted>,
    /// Timestamp of the episode's first retransmission.
    pub retrans_stamp: Option<u32>,
    /// snd_nxt when a tail-loss probe was sent that is not yet resolved.
    pub tlp_high_seq: Option<u32>,
    /// The probe was a retransmission.
    pub tlp_retrans: bool,
    /// F-RTO runs.
    pub frto: bool,
    /// An F-RTO test with new data is under way in this batch.
    pub frto_new: bool,
    /// A tail-loss probe is sent next, whatever the window.
    pub probe_now: bool,
    /// The oldest segment is retransmitted next, whatever the window.
    pub retransmit_head: bool,
    /// The receiver dropped what it had SACKed.
    pub reneged: bool,
    /// Retransmissions start at the first lost record not before this sequence number.
    pub retransmit_hint: u32,
    /// SACK blocks whose segments are all entered already: most blocks of an ACK are those of the one before.
    pub entered: [SackBlock; SACK_BLOCKS_MAX],
    /// End of the highest SACKed segment; meaningful while sacked_out > 0.
    pub highest_sack: u32,
    /// Segments of reordering to tolerate.
    pub reordering: u32,
    /// Reorderings seen.
    pub reord_seen: u32,
    /// Segments reported twice by D-SACK.
    pub dsack_dups: u32,
    /// Most segments in flight since the window was last full.
    pub cwnd_used: u32,
    /// Duplicate segments to report with the next pure ACK: a D-SACK (RFC 2883).
    pub dsack: Option<SackBlock>,
    /// What arrived beyond a gap.
    pub out_of_order: OutOfOrder,
    /// Sequence number of a FIN that arrived beyond a gap.
    pub fin_seq: Option<u32>,
    /// Bytes in order that the application has not read.
    pub unread: u32,
    /// The application does not read.
    pub not_reading: bool,
    pub stats: Stats,
}

impl Rare {
    /// Out of line, because it is asked for everywhere and made once.
    #[cold]
    #[inline(never)]
    pub fn boxed() -> Box<Rare> {
        Box::default()
    }
}

impl Default for Rare {
    fn default() -> Rare {
        Rare {
            prr_delivered: 0,
            prr_out: 0,
            rack: Rack {
                sent_us: 0,
                end_seq: 0,
                rtt_us: 0,
                advanced: false,
                valid: false,
                dsack_seen: false,
                reo_wnd_steps: 1,
                reo_wnd_persist: 0,
                last_delivered: 0,
                frontier: None,
            },
            retransmitted: VecDeque::new(),
            retrans_stamp: None,
            tlp_high_seq: None,
            tlp_retrans: false,
            frto: false,
            frto_new: false,
            probe_now: false,
            retransmit_head: false,
            reneged: false,
            retransmit_hint: 0,
            entered: [SackBlock::default(); SACK_BLOCKS_MAX],
            highest_sack: 0,
            reordering: REORDERING_INITIAL,
            reord_seen: 0,
            dsack_dups: 0,
            cwnd_used: 0,
            dsack: None,
            out_of_order: OutOfOrder::default(),
            fin_seq: None,
            unread: 0,
            not_reading: false,
            stats: Stats::default(),
        }
    }
}
