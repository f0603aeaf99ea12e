//! Clients for which a rule bounds what may be on its way to them (`window_total`).
//!
//! What a server sends waits here, so the bound is exact, and no window need be withdrawn: the servers keep theirs, of their share each, and
//! data leaves as far as there is room. Where shares do not fit, flows send theirs in turn.

use policy::Share;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use units::Bytes;

/// Least segments that a flow sends in its turn, and its server is offered: a client delays its ACK of one (RFC 9293 3.8.6.3).
const TURN_SEGMENTS: u32 = 2;

/// The clients with flows that a total bounds.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    clients: BTreeMap<IpAddr, Receiver>,
}

/// A client, and its flows that have data to come.
#[derive(Debug)]
pub(crate) struct Receiver {
    total: Bytes,
    /// By slot.
    flows: BTreeMap<u32, Member>,
    /// What may be on its way to it, bytes.
    on_its_way: u64,
    /// Flows whose data waits for room; the longest first.
    waiting: VecDeque<u32>,
    /// The flow whose turn it is.
    turn: Option<u32>,
}

/// A flow with data to come.
#[derive(Debug, Default)]
struct Member {
    /// What counts as on its way, bytes: whole turns.
    counted: u32,
    /// Bytes of a turn.
    turn: u32,
    waits: bool,
}

impl Receivers {
    /// A client whose flows have this total.
    pub fn of(&mut self, client: IpAddr, total: Bytes) -> &mut Receiver {
        let receiver = self.clients.entry(client).or_insert_with(|| Receiver::new(total));
        receiver.total = total;
        receiver
    }

    /// A flow has ended.
    pub fn forget(&mut self, client: IpAddr, slot: u32) {
        if let Some(receiver) = self.clients.get_mut(&client) {
            receiver.remove(slot);
            if receiver.flows.is_empty() {
                self.clients.remove(&client);
            }
        }
    }

    /// No flow is bound by a total.
    pub fn clear(&mut self) {
        self.clients.clear();
    }

    /// How many of its flows wait.
    pub fn waiting(&self, client: IpAddr) -> usize {
        self.clients.get(&client).map_or(0, |receiver| receiver.waiting.len())
    }

    /// The flow whose turn it is now, if there is room for it.
    pub fn next(&mut self, client: IpAddr) -> Option<u32> {
        self.clients.get_mut(&client)?.next()
    }
}

impl Receiver {
    fn new(total: Bytes) -> Receiver {
        Receiver { total, flows: BTreeMap::new(), on_its_way: 0, waiting: VecDeque::new(), turn: None }
    }

    /// The window of each flow, bytes; `segment`: payload of a full one.
    pub fn window(&self, segment: u32) -> u32 {
        let flows = self.flows.len() as u64;
        let share = Share::of(self.total, flows, u64::from(TURN_SEGMENTS * segment));
        u32::try_from(share.window).unwrap_or(u32::MAX)
    }

    /// Of a flow these bytes are `in_flight`, and its next piece has `len`, 0 if there is none. Returns how many of them may leave now.
    pub fn admit(&mut self, slot: u32, in_flight: u32, len: u32, segment: u32) -> u32 {
        self.note(slot, (in_flight, len), segment);
        if len == 0 {
            return 0;
        }
        let own = self.window(segment).saturating_sub(in_flight);
        let member = &self.flows[&slot];
        let room = if self.waiting.is_empty() || self.turn == Some(slot) { self.room(member.turn) } else { 0 };
        let most = own.min(room.saturating_add(member.counted - in_flight));
        if len <= most {
            return len;
        }
        if most < own {
            self.wait(slot);
        }
        most / segment * segment
    }

    /// A flow has so much in flight and to send.
    pub fn note(&mut self, slot: u32, (in_flight, len): (u32, u32), segment: u32) {
        if in_flight == 0 && len == 0 {
            return self.remove(slot);
        }
        let member = self.flows.entry(slot).or_default();
        member.turn = TURN_SEGMENTS * segment;
        let counted = in_flight.next_multiple_of(member.turn);
        self.on_its_way = self.on_its_way + u64::from(counted) - u64::from(member.counted);
        member.counted = counted;
    }

    /// For whole turns there is so much room, bytes: for one where nothing is on its way, or nothing would ever be.
    fn room(&self, turn: u32) -> u32 {
        let room = self.total.get().saturating_sub(self.on_its_way).min(u64::from(u32::MAX)) as u32 / turn * turn;
        if self.on_its_way == 0 { room.max(turn) } else { room }
    }

    fn wait(&mut self, slot: u32) {
        let member = self.flows.get_mut(&slot).expect("it has data to come");
        if !std::mem::replace(&mut member.waits, true) {
            self.waiting.push_back(slot);
        }
    }

    fn next(&mut self) -> Option<u32> {
        self.turn = None;
        let slot = *self.waiting.front()?;
        if self.room(self.flows[&slot].turn) == 0 {
            return None;
        }
        self.waiting.pop_front();
        self.flows.get_mut(&slot)?.waits = false;
        self.turn = Some(slot);
        self.turn
    }

    fn remove(&mut self, slot: u32) {
        let Some(member) = self.flows.remove(&slot) else { return };
        self.on_its_way -= u64::from(member.counted);
        if member.waits {
            self.waiting.retain(|other| *other != slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const MSS: u32 = 1448;
    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Each of `flows` has much to send; returns what is in flight of each.
    fn fill(receivers: &mut Receivers, total: u64, in_flight: &mut [u32]) {
        for slot in 0..in_flight.len() as u32 {
            send(receivers, total, slot, in_flight);
        }
    }

    fn send(receivers: &mut Receivers, total: u64, slot: u32, in_flight: &mut [u32]) {
        let bytes = &mut in_flight[slot as usize];
        loop {
            let left = receivers.of(CLIENT, Bytes::new(total)).admit(slot, *bytes, MSS, MSS);
            if left == 0 {
                break;
            }
            *bytes += left;
        }
    }

    #[test]
    fn few_flows_have_equal_shares() {
        let (mut receivers, mut in_flight) = (Receivers::default(), [0; 4]);
        fill(&mut receivers, 100_000, &mut in_flight);
        // the first comes alone and has half: 100,000 / 2 / 2896 = 17 turns; there is room for as much again less a turn
        assert_eq!(in_flight.iter().sum::<u32>(), 34 * 2 * MSS, "the total is full: {in_flight:?}");
        assert_eq!(in_flight[0], 17 * 2 * MSS);
        // acknowledged, each has a quarter: 100,000 / 4 / 2896 = 8 turns
        for slot in [0, 1, 2, 3, 0, 1, 2, 3] {
            in_flight[slot as usize] = 0;
            send(&mut receivers, 100_000, slot, &mut in_flight);
            while let Some(next) = receivers.next(CLIENT) {
                send(&mut receivers, 100_000, next, &mut in_flight);
            }
        }
        assert_eq!(in_flight, [8 * 2 * MSS; 4]);
    }

    #[test]
    fn many_flows_send_in_turn_and_never_more_than_the_total() {
        const TOTAL: u64 = 20_000;
        let (mut receivers, mut in_flight, mut turns) = (Receivers::default(), [0; 64], [0; 64]);
        fill(&mut receivers, TOTAL, &mut in_flight);
        let mut sent: VecDeque<usize> = (0..64).filter(|slot| in_flight[*slot] > 0).collect();
        for _ in 0..1000 {
            let sum: u32 = in_flight.iter().sum();
            // 20,000 / 2896 = 6.9
            assert_eq!(sum, 6 * 2 * MSS, "{in_flight:?}");
            let acked = sent.pop_front().expect("some is in flight");
            in_flight[acked] = 0;
            send(&mut receivers, TOTAL, acked as u32, &mut in_flight);
            while let Some(next) = receivers.next(CLIENT) {
                turns[next as usize] += 1;
                sent.push_back(next as usize);
                send(&mut receivers, TOTAL, next, &mut in_flight);
            }
        }
        let (least, most) = (turns.iter().min(), turns.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| most - least <= 1), "{turns:?}");
    }

    #[test]
    fn a_total_of_less_than_a_turn_carries_one_flow() {
        let (mut receivers, mut in_flight) = (Receivers::default(), [0; 3]);
        fill(&mut receivers, 1000, &mut in_flight);
        assert_eq!(in_flight, [2 * MSS, 0, 0]);
        in_flight[0] = 0;
        receivers.forget(CLIENT, 0);
        let next = receivers.next(CLIENT).expect("there is room");
        send(&mut receivers, 1000, next, &mut in_flight);
        assert_eq!((in_flight, receivers.next(CLIENT)), ([0, 2 * MSS, 0], None));
        (0..3).for_each(|slot| receivers.forget(CLIENT, slot));
        assert!(receivers.clients.is_empty());
    }
}
