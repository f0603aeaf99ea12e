//! A standby: another enforcer's flows, for when their packets come here because that one, or its machine, is gone.
//!
//! The active enforcer reports flows that have changed ([`Enforcer::poll_changed`]); the standby keeps what it hears
//! ([`Enforcer::mirror`]), a line of about 150 bytes a flow, without packets. Once a packet of such a flow comes to the standby, the flow
//! is enforced here. Both ends have advanced by then, and the standby catches up: it believes the client's next acknowledgment,
//! and takes what it has not seen of the server's data for lost before the enforcer, which the server repairs.

use crate::checkpoint::Checkpoint;
use crate::counters::Ending;
use crate::enforcer::Enforcer;
use crate::flow::{Context, Flow, SYN_WINDOW, bit};
use crate::index::Key;
use crate::packet::{Action, Direction, Packet};
use crate::seq::{after, later};
use std::collections::{BTreeMap, VecDeque};
use tcp::Segment;
use units::Time;

/// Each flow is reported again within so many rounds, changed or not: a standby may have started since, or a message was lost.
const ROUNDS: usize = 64;
/// Flows that have ended and wait to be reported.
const ENDED_MAX: usize = 1 << 16;

/// How far the ends of a flow may have advanced that was another enforcer's, bytes: what passes in a second at 4 Gbit/s.
pub(crate) const CATCH_UP_MAX: u32 = 1 << 29;

/// What an active enforcer has to report.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Somebody fetches them.
    is_on: bool,
    /// Slots of flows that have changed.
    slots: VecDeque<u32>,
    /// Flows whose marks are echoed, and whether the next report is on one of them.
    echoes: VecDeque<Key>,
    echo_first: bool,
    /// Flows that have ended.
    ended: VecDeque<Key>,
    /// The next slot to be reported anyway.
    hand: usize,
}

impl Changes {
    /// A flow has changed; `bits` are its.
    #[inline]
    pub fn note(&mut self, slot: u32, bits: &mut u16) {
        if self.is_on && *bits & bit::CHANGED == 0 {
            *bits |= bit::CHANGED;
            self.slots.push_back(slot);
        }
    }

    /// Marks of a flow are echoed.
    pub fn note_echoing(&mut self, key: Key) {
        // what does not wait now comes in its turn
        if self.is_on && self.echoes.len() < ENDED_MAX {
            self.echoes.push_back(key);
        }
    }

    /// A flow has ended.
    pub fn note_end(&mut self, key: Key) {
        if self.is_on {
            if self.ended.len() == ENDED_MAX {
                // a standby forgets it in time
                self.ended.pop_front();
            }
            self.ended.push_back(key);
        }
    }
}

/// Another enforcer's flows, with the time at which each was heard of.
#[derive(Debug, Default)]
pub(crate) struct Mirrored(BTreeMap<Key, (Time, Checkpoint)>);

impl Mirrored {
    /// Takes a flow out, as it would be now.
    pub fn take(&mut self, now: Time, key: Key) -> Option<Checkpoint> {
        if self.0.is_empty() {
            return None;
        }
        let (at, flow) = self.0.remove(&key)?;
        let passed_ms = (now.saturating_sub(at).as_us() / 1000) as u32;
        Some(Checkpoint { age_ms: flow.age_ms.wrapping_add(passed_ms), ..flow })
    }
}

impl<P: Packet> Enforcer<P> {
    /// Begins a round of reports to standbys: from now on [`Enforcer::poll_changed`] returns flows that change, and a part of the others.
    pub fn begin_reports(&mut self) {
        self.changes.is_on = true;
        let slots = self.flows.len();
        for _ in 0..slots.div_ceil(ROUNDS) {
            self.changes.hand = if self.changes.hand + 1 < slots { self.changes.hand + 1 } else { 0 };
            let slot = self.changes.hand;
            if let Some(flow) = &mut self.flows[slot] {
                self.changes.note(slot as u32, &mut flow.bits);
            }
        }
        // those of the round before are reported first
        if self.changes.echoes.is_empty() {
            self.echoes.part(ROUNDS).for_each(|key| self.changes.note_echoing(key));
        }
    }

    /// The next flow that has changed or ended, for [`Enforcer::mirror`].
    pub fn poll_changed(&mut self, now: Time) -> Option<Checkpoint> {
        if let Some(key) = self.changes.ended.pop_front() {
            return Some(Checkpoint::ended(key));
        }
        // in turn, so that neither waits for ever where the other never ends
        self.changes.echo_first = !self.changes.echo_first;
        if self.changes.echo_first {
            self.poll_echo(now).or_else(|| self.poll_flow(now))
        } else {
            self.poll_flow(now).or_else(|| self.poll_echo(now))
        }
    }

    fn poll_flow(&mut self, now: Time) -> Option<Checkpoint> {
        while let Some(slot) = self.changes.slots.pop_front() {
            if let Some(Some(flow)) = self.flows.get_mut(slot as usize)
                && flow.has(bit::CHANGED)
            {
                flow.bits &= !bit::CHANGED;
                return Some(flow.outline(now));
            }
        }
        None
    }

    fn poll_echo(&mut self, now: Time) -> Option<Checkpoint> {
        while let Some(key) = self.changes.echoes.pop_front() {
            if let Some(echo) = self.echoes.find(key.hash(self.seed), key) {
                return Some(echo.checkpoint(now));
            }
        }
        None
    }

    /// Another enforcer has this flow, or has it no longer. It is kept until its packets come here.
    pub fn mirror(&mut self, now: Time, flow: Checkpoint) {
        let Some(key) = flow.key() else { return };
        if flow.over {
            self.mirrored.0.remove(&key);
            return;
        }
        if self.echoes.find(key.hash(self.seed), key).is_some() {
            // echoes need nothing of what the other knows
            return;
        }
        if let Some(slot) = self.find(key.hash(self.seed), key) {
            if !self.has_gone_on(slot, &flow) {
                return;
            }
            self.end(now, slot, Ending::Moved);
        }
        if self.mirrored.0.len() < self.limits.flows || self.mirrored.0.contains_key(&key) {
            self.mirrored.0.insert(key, (now, flow));
        }
    }

    /// Whether a flow that was enforced here has advanced at another enforcer.
    fn has_gone_on(&self, slot: u32, there: &Checkpoint) -> bool {
        let own = self.flows[slot as usize].as_ref().map(|flow| flow.relay.sock().snd_nxt);
        own.zip(there.relay.as_ref()).is_some_and(|(snd_nxt, there)| after(there.una, snd_nxt))
    }

    /// How many flows of another enforcer are kept.
    pub fn mirrored(&self) -> usize {
        self.mirrored.0.len()
    }

    /// Forgets flows that nothing was heard of for as long as an idle one is kept.
    pub fn forget_mirrored(&mut self, now: Time) {
        let idle = self.limits.idle;
        self.mirrored.0.retain(|_, (at, _)| now.saturating_sub(*at) <= idle);
    }

    /// A packet of a flow that was another enforcer's has come: it is enforced here from now on. Returns its slot.
    pub(crate) fn promote(&mut self, now: Time, key: Key) -> Option<u32> {
        let there = self.mirrored.take(now, key)?;
        // what was sent there is in the other enforcer's records and guards
        let relay = there.relay.map(|relay| tcp::Checkpoint {
            bytes_acked: 0,
            data_segments_sent: 0,
            retransmits: 0,
            rtos: 0,
            ..relay
        });
        let flow = Checkpoint { relay, catches_up: true, promoted: true, ..there };
        // without packets there is nothing to read
        if !self.restore(now, &flow, |_| None) {
            return None;
        }
        self.counters.flows_promoted += 1;
        self.find(key.hash(self.seed), key)
    }
}

impl<P: Packet> Flow<P> {
    /// The client has acknowledged what another enforcer has sent: the flow goes on from there, with what has come here beyond it.
    pub fn catch_up(&mut self, cx: &mut Context<P>, segment: &Segment) {
        let ack = segment.ack;
        let ahead = ack.wrapping_sub(self.relay.sock().snd_una);
        // once the client's acknowledgments are known, no more is on its way than its window has
        let most = if self.has(bit::CATCHES_UP) { CATCH_UP_MAX } else { segment.window.saturating_add(SYN_WINDOW) };
        if ahead > most {
            return;
        }
        let state = self.relay.checkpoint(cx.now);
        let bytes_acked = state.bytes_acked.wrapping_add(u64::from(ahead));
        let state = tcp::Checkpoint { una: ack, nxt: ack, bytes_acked, timeout_us: None, backoff: 0, ..state };
        let Some(relay) = self.relay.restored(cx.now, &state) else { return };
        self.relay = relay;
        if let Some(buffer) = &mut self.buffer {
            *cx.buffered -= buffer.acknowledge(ack);
            if after(buffer.nxt, ack) {
                self.relay.write(cx.now, buffer.nxt.wrapping_sub(ack), false);
            } else {
                self.buffer = None;
            }
        }
        self.offered = later(self.offered, ack);
        cx.counters.caught_up += 1;
    }

    /// Of what the server retransmits a copy is here. But what is missing before it may have arrived by way of another enforcer: nothing
    /// would show that if the client got nothing.
    pub fn held_or_passed(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        if !self.seeks_client() {
            return Action::Held;
        }
        self.note_passed(segment);
        cx.counters.others_forwarded += 1;
        Action::Forward(packet)
    }

    /// Whether it is not known what the client has: the flow was another enforcer's, and its next data has not come here.
    pub fn seeks_client(&self) -> bool {
        self.has(bit::CATCHES_UP) && self.buffer.as_ref().is_some_and(|buffer| buffer.lacks_next())
    }

    /// The client's answer to a keep-alive (RFC 9293 3.8.4) will show what it has.
    pub fn seek_client(&self, cx: &mut Context<P>) {
        let Some(newest) = self.buffer.as_ref().and_then(|buffer| buffer.last()) else { return };
        let mut ask = newest.bare();
        ask.set_seq(self.relay.sock().snd_una.wrapping_sub(1));
        cx.out.push_back((Direction::Out, ask));
        cx.counters.retransmitted += 1;
    }
}
