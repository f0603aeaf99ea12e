//! Looks for calls of hooks that left no record.
//!
//! Some kernels skip `struct_ops` programs at times (in softirq over pid 1): a hook that answers then answers with
//! garbage, and one that acts does not act. A skipped call has no record to compare, but it leaves a hole in the order
//! of those around it.

use crate::ops::CongestionOps;
use crate::replay::{Call, Event, Hook};
use crate::sock::{TCP_CA_CWR, TCP_CA_DISORDER, TCP_CA_OPEN};
use std::collections::BTreeMap;

/// No window of these tests is this large; what a skipped call answers mostly is.
const GARBAGE_CWND: u64 = 1 << 20;

/// How many calls are missing, by how it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The state went from Open or Disorder to a reduction without `ssthresh`.
    pub ssthresh: u64,
    /// The state changed without `set_state`, where the algorithm has it.
    pub set_state: u64,
    /// Segments were delivered that no `cong_avoid` (in Open) or `cong_control` was told of.
    pub acks: u64,
    /// Calls that found a window past belief (2^20 segments).
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
    /// `ssthresh` was called since the last change of state.
    asked: bool,
    /// `set_state` with this state is to come.
    owed: Option<u8>,
    /// `delivered`, as the last ACK left it; unknown after what may pass over ACKs.
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
    /// Begins.
    pub fn new(ops: &'static CongestionOps) -> Watch {
        Watch { ops, flows: BTreeMap::new(), missing: Missing::default() }
    }

    /// What is missing in the records so far.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// Takes the next record. Those of a socket must come in the order of its calls; where some are lost (the numbers
    /// tell), nothing is concluded.
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
        let reduces = old <= TCP_CA_DISORDER && new >= TCP_CA_CWR;
        self.missing.ssthresh += u64::from(reduces && !flow.asked);
        flow.asked = false;
        flow.owed = self.ops.set_state.map(|_| new);
        // in CWR and Recovery ACKs go past cong_avoid
        if !self.ops.has_cong_control() {
            flow.delivered = None;
        }
    }

    fn call(&mut self, flow: &mut Flow, call: &Call) {
        self.missing.garbage += u64::from(call.before.snd_cwnd > GARBAGE_CWND);
        if let Some(owed) = flow.owed.take()
            && !(call.hook == Hook::SetState && call.head.argument == u64::from(owed))
        {
            self.missing.set_state += 1;
        }
        flow.asked |= call.hook == Hook::Ssthresh;
        if matches!(call.hook, Hook::Init | Hook::Release) {
            flow.delivered = None;
        }
        let Some(acked) = call.acked() else { return };
        let delivered = call.read.delivered;
        let told = flow.delivered.is_none_or(|last| last == delivered.wrapping_sub(acked) & 0xffff_ffff);
        self.missing.acks += u64::from(!told);
        let open = u64::from(TCP_CA_OPEN) == call.read.icsk_ca_state;
        flow.delivered = (open || self.ops.has_cong_control()).then_some(delivered);
    }
}
