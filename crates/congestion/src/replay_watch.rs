//! Looks for calls of hooks without a record.
//!
//! Some kernels skip `struct_ops` programs at times (in softirq over pid 1): a hook with a result then returns
//! garbage, and one without has no effect. A skipped call has no record to compare, but it leaves a gap in the order of
//! the records. (The kernel's tracepoint of states is skipped with it.)

use crate::hook::Hook;
use crate::ops::CongestionOps;
use crate::replay::{Call, Event};
use crate::sock::{TCP_CA_CWR, TCP_CA_DISORDER, TCP_CA_OPEN};
use std::collections::BTreeMap;

/// No window of these tests is this large; the result of a skipped call mostly is.
const GARBAGE_CWND: u64 = 1 << 20;

/// How many calls are missing, by how it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The state went from Open or Disorder to CWR, Recovery or Loss without `ssthresh`.
    pub ssthresh: u64,
    /// The state changed without `set_state`, where the algorithm has it.
    pub set_state: u64,
    /// Segments were delivered without a call of `cong_avoid` (in Open) or `cong_control`.
    pub acks: u64,
    /// Calls that found an impossible window (2^20 segments).
    pub garbage: u64,
}

impl Missing {
    /// Calls that are known to be missing.
    pub fn calls(&self) -> u64 {
        self.ssthresh + self.set_state + self.acks
    }
}

/// What is known of one socket.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// The number of its next record.
    next: u64,
    /// The congestion state that the next call should find.
    state: Option<u8>,
    /// `ssthresh` was called since the last change of state.
    asked: bool,
    /// `set_state` with this state is expected.
    owed: Option<u8>,
    /// `delivered` after the last ACK; unknown after calls between which ACKs may come without a call.
    delivered: Option<u64>,
}

/// Watches the records of one algorithm, of all its sockets.
#[derive(Debug)]
pub struct Watch {
    ops: &'static CongestionOps,
    flows: BTreeMap<u64, Flow>,
    missing: Missing,
}

impl Watch {
    /// A watch without records.
    pub fn new(ops: &'static CongestionOps) -> Watch {
        Watch { ops, flows: BTreeMap::new(), missing: Missing::default() }
    }

    /// What is missing in the records so far.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// Takes the next record. Those of a socket must come in the order of its calls; where some are lost (their numbers
    /// have gaps), nothing is concluded.
    pub fn see(&mut self, event: &Event) {
        let (socket, number) = match event {
            Event::Call(call) => (call.head.socket, call.head.number),
            Event::State { socket, number, .. } => (*socket, *number),
        };
        let mut flow = self.flows.remove(&socket).filter(|flow| flow.next == number).unwrap_or_default();
        // what came before the first record is unknown
        flow.asked |= flow.next != number;
        flow.next = number + 1;
        match event {
            Event::Call(call) => self.call(&mut flow, call),
            Event::State { old, new, .. } => self.state(&mut flow, *old, *new),
        }
        self.flows.insert(socket, flow);
    }

    fn state(&mut self, flow: &mut Flow, old: u8, new: u8) {
        self.missing.set_state += u64::from(flow.owed.take().is_some());
        self.reduction(flow, old, new);
        flow.state = Some(new);
        flow.owed = self.ops.set_state.map(|_| new);
        // in CWR and Recovery ACKs go past cong_avoid
        if !self.ops.has_cong_control() {
            flow.delivered = None;
        }
    }

    /// Was `ssthresh` called for a change of state that needs it?
    fn reduction(&mut self, flow: &mut Flow, old: u8, new: u8) {
        let reduces = old <= TCP_CA_DISORDER && new >= TCP_CA_CWR;
        self.missing.ssthresh += u64::from(reduces && !flow.asked);
        flow.asked = false;
    }

    fn call(&mut self, flow: &mut Flow, call: &Call) {
        self.missing.garbage += u64::from(call.before.snd_cwnd > GARBAGE_CWND);
        if let Some(owed) = flow.owed.take()
            && !(call.hook == Hook::SetState && call.head.argument == u64::from(owed))
        {
            self.missing.set_state += 1;
        }
        let state = call.read.icsk_ca_state as u8;
        // set_state comes before the change that the previous record reported
        let known = flow.state.filter(|_| call.hook != Hook::SetState);
        if let Some(known) = known.filter(|&known| known != state) {
            self.missing.set_state += u64::from(self.ops.set_state.is_some());
            self.reduction(flow, known, state);
            flow.delivered = None;
        }
        if call.hook != Hook::SetState {
            flow.state = Some(state);
        }
        flow.asked |= call.hook == Hook::Ssthresh;
        if matches!(call.hook, Hook::Init | Hook::Release) {
            // another algorithm may have been in use before it
            *flow = Flow { next: flow.next, ..Flow::default() };
        }
        let Some(acked) = call.acked() else { return };
        let delivered = call.read.delivered;
        let called = flow.delivered.is_none_or(|last| last == delivered.wrapping_sub(acked) & 0xffff_ffff);
        self.missing.acks += u64::from(!called);
        let open = u64::from(TCP_CA_OPEN) == call.read.icsk_ca_state;
        flow.delivered = (open || self.ops.has_cong_control()).then_some(delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Algorithm;

    const RECOVERY: u8 = 3;

    fn call(hook: Hook, argument: u64, state: u8, delivered: u64) -> Event {
        let mut call = Call::blank(hook);
        call.head.argument = argument;
        call.head.acked = 2;
        call.read.icsk_ca_state = state.into();
        call.read.delivered = delivered;
        Event::Call(Box::new(call))
    }

    fn change(old: u8, new: u8) -> Event {
        Event::State { socket: 0, number: 0, old, new }
    }

    /// Two ACKs in Open, a loss, recovery, an ACK; each ACK delivers 2 segments.
    fn story() -> Vec<Event> {
        vec![
            call(Hook::Init, 0, 0, 1),
            call(Hook::CongAvoid, 0, 0, 3),
            call(Hook::CongAvoid, 0, 0, 5),
            call(Hook::CongAvoid, 0, 0, 7),
            call(Hook::Ssthresh, 0, 0, 8),
            change(TCP_CA_OPEN, RECOVERY),
            call(Hook::SetState, RECOVERY.into(), 0, 8),
            change(RECOVERY, TCP_CA_OPEN),
            call(Hook::SetState, 0, RECOVERY, 14),
            call(Hook::CongAvoid, 0, 0, 16),
        ]
    }

    fn missing_of(mut events: Vec<Event>) -> Missing {
        let mut watch = Watch::new(Algorithm::named("bic").expect("it is built in").ops());
        for (i, event) in (0..).zip(&mut events) {
            match event {
                Event::Call(call) => call.head.number = i,
                Event::State { number, .. } => *number = i,
            }
            watch.see(event);
        }
        watch.missing()
    }

    #[test]
    fn complete_records_have_no_missing_call() {
        assert_eq!(missing_of(story()), Missing::default());
    }

    #[test]
    fn each_skipped_call_is_detected() {
        let without = |which: &[usize]| {
            let kept = (0..).zip(story()).filter(|(i, _)| !which.contains(i)).map(|(_, event)| event);
            missing_of(kept.collect())
        };
        assert_eq!(without(&[2]), Missing { acks: 1, ..Missing::default() });
        assert_eq!(without(&[4]), Missing { ssthresh: 1, ..Missing::default() });
        assert_eq!(without(&[6]), Missing { set_state: 1, ..Missing::default() });
        // with the tracepoint's record: the next call finds another state
        assert_eq!(without(&[7, 8]), Missing { set_state: 1, ..Missing::default() });
        assert_eq!(without(&[]).calls(), 0);
    }
}
