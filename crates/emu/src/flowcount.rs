//! Packets of each flow, counted when they reach a host.

use crate::port::{FlowPacket, Head};
use net::Ecn;
use units::Time;

/// Arrived packets of one direction of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Packets.
    pub packets: u64,
    /// Their IP bytes.
    pub ip_bytes: u64,
    /// Sum of the times from reading to arrival, the host's own queue included.
    pub delay: Time,
    /// Packets with a CE mark (forward) or the flag ECE (backward).
    pub signals: u64,
}

/// Both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCount {
    /// What reached the receiver.
    pub forward: Arrived,
    /// What reached the sender.
    pub backward: Arrived,
}

/// All flows of the scenario.
#[derive(Debug, Default)]
pub struct FlowCounts {
    now: Vec<FlowCount>,
    /// The counters when counting began.
    base: Vec<FlowCount>,
}

impl FlowCounts {
    /// A packet reached its host `delay` after it was read.
    pub fn arrived(&mut self, head: &Head, delay: Time) {
        let Some(FlowPacket { flow, forward, ece, .. }) = head.flow else { return };
        let flow = flow as usize;
        if self.now.len() <= flow {
            self.now.resize(flow + 1, FlowCount::default());
        }
        let count = &mut self.now[flow];
        let (count, signal) =
            if forward { (&mut count.forward, head.ecn == Ecn::Ce) } else { (&mut count.backward, ece) };
        count.packets += 1;
        count.ip_bytes += u64::from(head.ip_len);
        count.delay += delay;
        count.signals += u64::from(signal);
    }

    /// Starts counting.
    pub fn begin_counting(&mut self) {
        self.base.clone_from(&self.now);
    }

    /// A flow's counters since counting began.
    pub fn of(&self, flow: usize) -> FlowCount {
        let [now, base] = [&self.now, &self.base].map(|list| list.get(flow).copied().unwrap_or_default());
        FlowCount { forward: since(now.forward, base.forward), backward: since(now.backward, base.backward) }
    }
}

fn since(now: Arrived, base: Arrived) -> Arrived {
    Arrived {
        packets: now.packets - base.packets,
        ip_bytes: now.ip_bytes - base.ip_bytes,
        delay: now.delay - base.delay,
        signals: now.signals - base.signals,
    }
}
