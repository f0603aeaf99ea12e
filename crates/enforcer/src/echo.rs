//! ECN for receivers that know none: marks on data to them are taken off and echoed, for a sender that runs DCTCP. Receivers are clients, and another
//! enforcer on the servers' side is the sender. Or the enforcer has agreed on ECN in an enforced server's place, and the sender is a client
//! with DCTCP.
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

/// Larger steps of acknowledgment numbers, back or forth, are not the receiver's, bytes.
const STEP_MAX: u32 = 1 << 20;
/// Data that is further from what was acknowledged is not the sender's, and no more than this is owed, bytes: windows are smaller but on
/// paths of 1 Gbit/s and more than 130 ms.
const NEAR_MAX: u32 = 16 << 20;
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
    /// The one that was last reported to standbys.
    reported: usize,
}

/// A flow whose marks are echoed, and of which nothing else is done.
#[derive(Debug)]
pub(crate) struct Echo {
    pub key: Key,
    pub marks: Echoing,
    /// Time of the last packet, in the enforcer's ticks.
    pub seen: u16,
    /// The ends that have sent a FIN: 1 the server, 2 the client; 4: the last packet was a RST, and may be the end.
    ended: u8,
    /// The code point of its SYN, which its rule matched.
    pub dscp: u8,
}

/// The marks of one direction.
#[derive(Debug, Default)]
pub(crate) struct Echoing {
    /// The newest acknowledgment number; `None`: not known yet.
    acked: Option<u32>,
    /// Bytes beyond it that duplicate ACKs stand for: each reports a segment.
    reported: u32,
    /// Bytes that came marked, less those that echoes stand for.
    owed: i32,
    /// Payload of a full segment.
    segment: u16,
}

impl Echo {
    /// A flow without data so far.
    pub fn new(key: Key, dscp: u8, seen: u16) -> Echo {
        Echo { key, marks: Echoing::default(), seen, ended: 0, dscp }
    }

    /// Begins anew after the answer to a SYN; returns whether the answer is another connection's.
    pub fn on_answer(&mut self, direction: Direction, answer: &Segment) -> bool {
        let first = if direction == Direction::Out { answer.seq.wrapping_add(1) } else { answer.ack };
        self.ended = 0;
        self.marks.acked.is_some_and(|acked| acked.wrapping_sub(first) > STEP_MAX)
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
        let is_near = match direction {
            Direction::Out => self.marks.is_near(segment.seq),
            Direction::In => segment.flags & flags::ACK != 0 && self.marks.is_near(segment.ack),
        };
        if is_near {
            let side = if direction == Direction::Out { 1 } else { 2 };
            self.ended &= 3;
            self.ended |= if segment.flags & flags::FIN != 0 { side } else { 0 };
            self.ended |= if segment.flags & flags::RST != 0 { 4 } else { 0 };
        }
        let changed = match direction {
            Direction::Out => {
                self.marks.take(counters, segment, &mut packet);
                hide(segment, &mut packet)
            }
            Direction::In => self.marks.echo(counters, segment, &mut packet),
        };
        match (changed, direction) {
            (true, _) => return Action::Rewritten(packet),
            (false, Direction::Out) => counters.others_forwarded += 1,
            (false, Direction::In) => counters.unchanged += 1,
        }
        Action::Forward(packet)
    }
}

/// The receiver sees nothing of ECN. True: the packet was changed.
fn hide<P: Packet>(segment: &Segment, packet: &mut P) -> bool {
    let shown = segment.flags & (flags::ECE | flags::CWR);
    if shown != 0 {
        packet.set_flags(segment.flags & !shown);
    }
    if segment.ecn != Ecn::NotEct {
        packet.set_ecn(Ecn::NotEct);
    }
    shown != 0 || segment.ecn != Ecn::NotEct
}

impl Echoing {
    /// What was acknowledged is not known; this is the first data that counts.
    pub fn of_data_from(seq: u32) -> Echoing {
        Echoing { acked: Some(seq), ..Echoing::default() }
    }

    /// Whether a number of the sender's stream, or an acknowledgment of it, can be one.
    fn is_near(&self, seq: u32) -> bool {
        self.acked.is_none_or(|acked| seq.wrapping_sub(acked).wrapping_add(NEAR_MAX) <= 2 * NEAR_MAX)
    }

    /// A packet to the receiver: its mark is taken off, and is to be echoed.
    pub fn take<P: Packet>(&mut self, counters: &mut Counters, segment: &Segment, packet: &mut P) {
        let each = u16::try_from(packet.each()).unwrap_or(u16::MAX);
        self.segment = self.segment.max(each.min(segment.len));
        if segment.ecn != Ecn::Ce {
            return;
        }
        packet.set_ecn(Ecn::NotEct);
        if self.is_near(segment.seq) {
            self.owed = self.owed.saturating_add_unsigned(segment.len.into()).min(NEAR_MAX.cast_signed());
            counters.marks_taken += 1;
        }
    }

    /// An ACK of the receiver, and whether it is to have an echo. True: the packet was changed.
    pub fn echo<P: Packet>(&mut self, counters: &mut Counters, segment: &Segment, packet: &mut P) -> bool {
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
        self.hand = after_in_turn(self.hand, self.flows.len());
        self.flows.get(self.hand)?.as_ref()
    }

    /// The ends of the next part of the flows, such that all come in so many `rounds`: to report them.
    pub fn part(&mut self, rounds: usize) -> impl Iterator<Item = Key> {
        let (flows, reported) = (&self.flows, &mut self.reported);
        (0..flows.len().div_ceil(rounds)).filter_map(move |_| {
            *reported = after_in_turn(*reported, flows.len());
            flows[*reported].as_ref().map(|echo| echo.key)
        })
    }
}

fn after_in_turn(hand: usize, len: usize) -> usize {
    if hand + 1 < len { hand + 1 } else { 0 }
}

fn hash_of(flows: &[Option<Echo>], seed: u64, slot: u32) -> u64 {
    flows[slot as usize].as_ref().map_or(0, |echo| echo.key.hash(seed))
}
