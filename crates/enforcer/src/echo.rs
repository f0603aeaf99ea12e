//! ECN for clients that know none: marks on data to them are taken off and echoed, for another enforcer on the servers' side that runs DCTCP.
//!
//! DCTCP's receiver echoes which bytes were marked: its ACKs say so of the data since the last, and it sends one at once when marks
//! begin or end (RFC 8257 3.2). Here ACKs are the client's, who does not know of marks. So bytes are counted: those that came
//! marked, and those that an ACK acknowledges, for which its echo stands at the sender. ACKs have one until as many were echoed as were
//! marked. The share that the sender sees is right but for the data of one ACK. A mark is echoed by the next ACK that comes: early where other
//! data is before it on the way to the client, late where the client delays its ACKs.

use crate::counters::Counters;
use crate::index::{Index, Key};
use crate::packet::{Action, Direction, Packet};
use crate::seq::after;
use tcp::{Ecn, Segment, flags};

/// Larger steps of acknowledgment numbers, back or forth, are not the client's, bytes.
const STEP_MAX: u32 = 1 << 20;
/// No more than this is echoed before it is marked, where an ACK covers more than was marked, bytes: Linux merges segments up to that size.
const AHEAD_MAX: i32 = 1 << 16;

/// The flows whose marks are echoed.
#[derive(Debug, Default)]
pub(crate) struct Echoes {
    index: Index,
    flows: Vec<Option<Echo>>,
    free: Vec<u32>,
    /// The flow that was last checked for idleness.
    hand: usize,
}

/// A flow whose marks are echoed.
#[derive(Debug)]
pub(crate) struct Echo {
    pub key: Key,
    /// The newest acknowledgment number; `None`: not known yet.
    acked: Option<u32>,
    /// Bytes beyond it that duplicate ACKs stand for: each reports a segment.
    reported: u32,
    /// Bytes that came marked, less those that echoes stand for.
    owed: i32,
    /// Payload of a full segment.
    segment: u16,
    /// Time of the last packet, in the enforcer's ticks.
    pub seen: u16,
    /// The ends that have sent a FIN: 1 the server, 2 the client; 4: the last packet was a RST, and may be the end.
    ended: u8,
    /// The code point of its SYN, which its rule matched.
    pub dscp: u8,
}

impl Echo {
    /// A flow without data so far.
    pub fn new(key: Key, dscp: u8, seen: u16) -> Echo {
        Echo { key, acked: None, reported: 0, owed: 0, segment: 0, seen, ended: 0, dscp }
    }

    /// No more data is to come, as far as can be seen.
    pub fn is_over(&self) -> bool {
        self.ended & 3 == 3 || self.ended & 4 != 0
    }

    /// A packet of the flow, which carries no SYN.
    pub fn on_packet<P: Packet>(
        &mut self,
        counters: &mut Counters,
        direction: Direction,
        segment: &Segment,
        mut packet: P,
    ) -> Action<P> {
        let side = if direction == Direction::Out { 1 } else { 2 };
        self.ended &= 3;
        if segment.flags & flags::FIN != 0 {
            self.ended |= side;
        }
        if segment.flags & flags::RST != 0 {
            self.ended |= 4;
        }
        let changed = match direction {
            Direction::Out => self.take_mark(counters, segment, &mut packet),
            Direction::In => self.echo(counters, segment, &mut packet),
        };
        match (changed, direction) {
            (true, _) => return Action::Rewritten(packet),
            (false, Direction::Out) => counters.others_forwarded += 1,
            (false, Direction::In) => counters.unchanged += 1,
        }
        Action::Forward(packet)
    }

    /// The client sees nothing of ECN. True: the packet was changed.
    fn take_mark<P: Packet>(&mut self, counters: &mut Counters, segment: &Segment, packet: &mut P) -> bool {
        self.segment = self.segment.max(segment.len);
        if segment.ecn == Ecn::Ce {
            self.owed = self.owed.saturating_add_unsigned(segment.len.into());
            counters.marks_taken += 1;
        }
        let shown = segment.flags & (flags::ECE | flags::CWR);
        if shown != 0 {
            packet.set_flags(segment.flags & !shown);
        }
        if segment.ecn != Ecn::NotEct {
            packet.set_ecn(Ecn::NotEct);
        }
        shown != 0 || segment.ecn != Ecn::NotEct
    }

    /// An ACK of the client, and whether it is to have an echo.
    fn echo<P: Packet>(&mut self, counters: &mut Counters, segment: &Segment, packet: &mut P) -> bool {
        if segment.flags & (flags::ACK | flags::RST) != flags::ACK {
            return false;
        }
        let stands_for = self.acknowledged(segment);
        if self.owed <= 0 {
            return false;
        }
        self.owed = self.owed.saturating_sub_unsigned(stands_for).max(-AHEAD_MAX);
        packet.set_flags(segment.flags | flags::ECE);
        counters.marks_echoed += 1;
        true
    }
}

impl Echo {
    /// The bytes that the sender takes for delivered by an ACK.
    fn acknowledged(&mut self, segment: &Segment) -> u32 {
        let last = *self.acked.get_or_insert(segment.ack);
        if after(segment.ack, last) {
            let step = segment.ack.wrapping_sub(last);
            self.acked = Some(segment.ack);
            let reported = std::mem::take(&mut self.reported);
            self.reported = reported.saturating_sub(step);
            return step.min(STEP_MAX).saturating_sub(reported);
        }
        if last.wrapping_sub(segment.ack) > STEP_MAX {
            self.acked = Some(segment.ack);
        }
        if segment.ack != last || segment.seq_len() > 0 || segment.sack_count == 0 {
            return 0;
        }
        self.reported = self.reported.saturating_add(self.segment.into());
        self.segment.into()
    }
}

impl Echoes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// The flow of these ends.
    #[inline]
    pub fn find(&mut self, hash: u64, key: Key) -> Option<&mut Echo> {
        let is = |slot: u32| self.flows[slot as usize].as_ref().is_some_and(|echo| echo.key == key);
        let slot = self.index.find(hash, is)?;
        self.flows[slot as usize].as_mut()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Echo> {
        self.flows.iter().flatten()
    }

    /// One more; `seed` keys hashes.
    pub fn insert(&mut self, seed: u64, echo: Echo) {
        let hash = echo.key.hash(seed);
        self.remove(seed, echo.key);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        self.flows[slot as usize] = Some(echo);
        let flows = &self.flows;
        self.index.insert(hash, slot, |slot| hash_of(flows, seed, slot));
    }

    /// It has ended.
    pub fn remove(&mut self, seed: u64, key: Key) {
        let hash = key.hash(seed);
        let is = |slot: u32| self.flows[slot as usize].as_ref().is_some_and(|echo| echo.key == key);
        let Some(slot) = self.index.find(hash, is) else { return };
        let flows = &self.flows;
        self.index.remove(hash, slot, |slot| hash_of(flows, seed, slot));
        self.flows[slot as usize] = None;
        self.free.push(slot);
    }

    /// The next flow, all in turn: to check whether it is idle.
    pub fn next(&mut self) -> Option<&Echo> {
        self.hand = if self.hand + 1 < self.flows.len() { self.hand + 1 } else { 0 };
        self.flows.get(self.hand)?.as_ref()
    }
}

fn hash_of(flows: &[Option<Echo>], seed: u64, slot: u32) -> u64 {
    flows[slot as usize].as_ref().map_or(0, |echo| echo.key.hash(seed))
}
