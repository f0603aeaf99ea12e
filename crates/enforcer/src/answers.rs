//! How many acknowledgments a server gets while what it sent waits here.
//!
//! Linux ends the first slow start (HyStart) when the least of nine round trips measured within one is longer than the shortest ever by an
//! eighth (RFC 9406 4.2 has eight of them), or when acknowledgments have followed each other by no more than 2 ms from the beginning of
//! a round through half of the shortest round trip. From then on its window grows by a twentieth in a round trip. Where a path loses packets,
//! the algorithm needs two to four times the path's capacity from the server, since nothing behind a hole is acknowledged to it: the
//! window that slow start left would be in the way for tens of seconds. Neither is a sign of anything here: what a server takes for a longer
//! round trip is the time that its data waits in the enforcer, or for a hole. So of late acknowledgments it gets too few to
//! conclude anything from, wherever its rounds begin, and all pause often enough.
//!
//! It costs a server nothing whose window grows by what is acknowledged. One that limits its growth by the number of
//! acknowledgments (RFC 3465; RFC 9406's L) would grow more slowly, and shows it: a round of fewer late acknowledgments in which its
//! flight did not grow, though it never filled what it was offered, was the last one.

use crate::seq::{after, later};

/// Late ones are apart by this part of the round trip.
const APART: u32 = 4;
/// Acknowledgments that Linux's HyStart does not take for one train are apart by more than 2 ms; what comes between here and there may
/// change places with time, µs.
const PAUSE_US: u32 = 3_000;
/// A pause in each of these parts of the round trip: the whole of one within any half.
const PAUSES: u32 = 3;
/// Of a shorter round trip, pauses would be a large part, µs.
const PAUSED_RTT_US: u32 = 8 * PAUSE_US;

/// The acknowledgments of a round: from one that went on to that of what the server had sent by then.
#[derive(Debug)]
pub(crate) struct Answers {
    round_end: u32,
    /// What the server had under way when it began, bytes.
    flight: u32,
    /// The highest number that one of them acknowledged.
    pub reported: u32,
    /// When the last one went on, µs.
    at_us: u32,
    /// Others were kept from the server.
    thinned: bool,
    /// The server had no room for more.
    filled: bool,
    /// When the last pause ended, µs.
    paused_us: u32,
}

impl Answers {
    /// Nothing is under way.
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

    /// Whether the server is to have no acknowledgment now, lest it takes those of this round for one train.
    pub fn is_in_pause(&self, now_us: u32, min_rtt_us: u32) -> bool {
        let is_due = now_us.wrapping_sub(self.paused_us) >= min_rtt_us / PAUSES;
        min_rtt_us >= PAUSED_RTT_US && is_due && now_us.wrapping_sub(self.at_us) < PAUSE_US
    }

    /// Whether the server is better off without a late acknowledgment of a packet that came `rtt_us` ago. More must follow.
    pub fn is_spare(&mut self, now_us: u32, rtt_us: u32) -> bool {
        let is_early = now_us.wrapping_sub(self.at_us) < rtt_us / APART;
        self.thinned |= is_early;
        is_early
    }

    /// An acknowledgment goes on to a server that has sent up to `nxt`; `is_full`: as far as it is offered room. False: fewer of them keep
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
