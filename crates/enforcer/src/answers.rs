//! How many acknowledgments a server gets while what it sent waits here.
//!
//! A server takes the time that its data waits in the enforcer for a part of the round trip. Linux ends the first slow start when the
//! least of nine or more round trips measured within one, by as many acknowledgments, is longer than the shortest ever by an eighth
//! (HyStart; RFC 9406 4.2 has eight). From then on its window grows by a twentieth in a round trip. Where a path loses packets, the
//! algorithm needs two to three times the path's capacity from the server, since nothing behind a hole is acknowledged to it: the window
//! that slow start left would be in the way for tens of seconds. So of late acknowledgments the server gets too few to conclude
//! anything from.
//!
//! It costs a server nothing whose window grows by what is acknowledged. One that limits its growth by the number of
//! acknowledgments (RFC 3465; RFC 9406's L) would grow more slowly, and shows it: a round of fewer acknowledgments in which its
//! flight did not grow, though it was offered room, was the last one.

use crate::seq::{after, later};

/// Late acknowledgments in a round, at most: with the first one, which belongs to the round before by then, fewer than RFC 9406's eight.
const LATE_MAX: u8 = 6;
/// [`Answers::late`] of a round with one that was not late: its round trip is the round's least.
const SHORT: u8 = u8::MAX;
/// Late ones are apart by this part of the round trip.
const APART: u32 = 4;

/// The acknowledgments of a round: from one that went on to that of what the server had sent by then.
#[derive(Debug)]
pub(crate) struct Answers {
    round_end: u32,
    /// What the server had under way when it began, bytes.
    flight: u32,
    /// The highest number that one of them acknowledged.
    told: u32,
    /// When the last one went on, µs.
    at_us: u32,
    /// Late ones so far.
    late: u8,
    /// Others were kept from the server.
    thinned: bool,
}

impl Answers {
    /// Nothing is under way.
    pub fn new(nxt: u32, now_us: u32) -> Answers {
        Answers { round_end: nxt, flight: 0, told: nxt, at_us: now_us, late: 0, thinned: false }
    }

    /// Whether the server has not been told of this acknowledgment.
    pub fn lack(&self, ack: u32) -> bool {
        after(ack, self.told)
    }

    /// Whether the server is better off without a late acknowledgment of a packet that came `rtt_us` ago. More must follow. Those that
    /// would be too many may come once in a round trip, lest its timer runs out.
    pub fn is_spare(&mut self, ack: u32, now_us: u32, rtt_us: u32) -> bool {
        let apart_us = if self.late >= LATE_MAX { rtt_us } else { rtt_us / APART };
        let is_early = now_us.wrapping_sub(self.at_us) < apart_us;
        let spare = self.late != SHORT && !after(ack, self.round_end) && is_early;
        self.thinned |= spare;
        spare
    }

    /// An acknowledgment goes on to a server that has sent up to `nxt` and was offered room for `room` segments more. False: fewer of them keep its window
    /// from growing.
    pub fn note(&mut self, now_us: u32, is_late: bool, ack: u32, (nxt, room): (u32, u32)) -> bool {
        let mut grows = true;
        if after(ack, self.round_end) {
            let flight = nxt.wrapping_sub(ack);
            grows = !self.thinned || room == 0 || flight > self.flight.saturating_add(self.flight / 4);
            *self = Answers { round_end: nxt, flight, late: 0, thinned: false, ..*self };
        }
        self.told = later(self.told, ack);
        self.at_us = now_us;
        self.late = match (is_late, self.late) {
            (false, _) | (_, SHORT) => SHORT,
            (true, late) => late.saturating_add(1).min(LATE_MAX),
        };
        grows
    }
}
