//! How many ACKs a server gets while its data waits in the enforcer.
//!
//! Linux ends the first slow start (HyStart) when the minimum of nine RTTs within a round exceeds the shortest RTT ever by an
//! eighth (RFC 9406 4.2 has eight of them), or when ACKs have followed each other by no more than 2 ms from the beginning of
//! a round through half of the shortest RTT. From then on its window grows by a twentieth per RTT. Where a path loses packets,
//! the algorithm needs two to four times the path's capacity from the server, since nothing behind a hole is acknowledged to it:
//! the window at the end of slow start would be the limit for tens of seconds. Neither sign means anything here: what the server
//! sees as a longer RTT is the time that its data waits in the enforcer, or for a hole. So the server gets too few late ACKs to
//! conclude anything from, wherever its rounds begin, and frequent pauses between all ACKs.
//!
//! This costs nothing to a server whose window grows by acknowledged bytes. One that limits its growth by the number of
//! ACKs (RFC 3465; RFC 9406's L) would grow more slowly. It shows in a round of fewer late ACKs in which the server's
//! flight did not grow, though it never filled its window: that round is then the last of its kind.

use crate::seq::{after, later};

/// Late ACKs are at least this part of the RTT apart.
const APART: u32 = 4;
/// ACKs more than 2 ms apart do not belong to one train for Linux's HyStart; the rest is for jitter between here and the
/// server, µs.
const PAUSE_US: u32 = 3_000;
/// A pause in each of these parts of the RTT: one whole pause within any half.
const PAUSES: u32 = 3;
/// Pauses would be a large part of a shorter RTT, µs.
const PAUSED_RTT_US: u32 = 8 * PAUSE_US;

/// The ACKs of a round: from one that was forwarded to that of the data that the server had sent by then.
#[derive(Debug)]
pub(crate) struct Answers {
    round_end: u32,
    /// The server's bytes in flight when it began.
    flight: u32,
    /// The highest acknowledgment number among them.
    pub reported: u32,
    /// When the last one was forwarded, µs.
    at_us: u32,
    /// Others were not forwarded.
    thinned: bool,
    /// The server filled its window.
    filled: bool,
    /// When the last pause ended, µs.
    paused_us: u32,
}

impl Answers {
    /// Nothing is in flight.
    pub fn new(nxt: u32, now_us: u32) -> Answers {
        Answers {
            round_end: nxt,
            flight: 0,
            reported: nxt,
            at_us: now_us,
            thinned: false,
            filled: false,
            paused_us: now_us,
        }
    }

    /// Whether to stop ACKs now, so that the server does not count those of this round as one train.
    pub fn is_in_pause(&self, now_us: u32, min_rtt_us: u32) -> bool {
        let is_due = now_us.wrapping_sub(self.paused_us) >= min_rtt_us / PAUSES;
        min_rtt_us >= PAUSED_RTT_US && is_due && now_us.wrapping_sub(self.at_us) < PAUSE_US
    }

    /// Whether to stop a late ACK of a packet that came `rtt_us` ago. More must follow.
    pub fn is_spare(&mut self, now_us: u32, rtt_us: u32) -> bool {
        let is_early = now_us.wrapping_sub(self.at_us) < rtt_us / APART;
        self.thinned |= is_early;
        is_early
    }

    /// An ACK is forwarded to a server that has sent up to `nxt`; `is_full`: it fills its window. False: fewer ACKs keep
    /// its window from growing.
    pub fn note(&mut self, now_us: u32, ack: u32, nxt: u32, is_full: bool) -> bool {
        let mut grows = true;
        self.filled |= is_full;
        if after(ack, self.round_end) {
            let flight = nxt.wrapping_sub(self.reported);
            grows = !self.thinned || self.filled || flight > self.flight.saturating_add(self.flight / 4);
            *self = Answers { round_end: nxt, flight, thinned: false, filled: is_full, ..*self };
        }
        self.reported = later(self.reported, ack);
        if now_us.wrapping_sub(self.at_us) >= PAUSE_US {
            self.paused_us = now_us;
        }
        self.at_us = now_us;
        grows
    }
}
