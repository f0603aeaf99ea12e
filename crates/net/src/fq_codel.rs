//! FQ-CoDel (RFC 8290): a queue for each flow, served by turns, each under CoDel.
//!
//! A flow that becomes active joins the list of new flows, which is served first, with one quantum of bytes; when it has
//! used that up, or is empty, it goes to the end of the list of old flows. So a flow that sends less than a quantum in a
//! round waits for no other.

use crate::codel::{Codel, CodelSpec};
use crate::fifo::{Fifo, QueuedPacket, Taken};
use std::collections::VecDeque;
use units::{Bytes, Time};

/// Parameters of FQ-CoDel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FqCodelSpec {
    /// What controls each queue.
    pub codel: CodelSpec,
    /// Queues, at least 1; flows are hashed onto them. Default 1024.
    pub flows: u32,
    /// Bytes on the wire that a queue may send in a round, at least 1.
    pub quantum: u32,
    /// The most packets in all queues.
    pub limit: u32,
    /// The most bytes in all queues. Default 32 MiB.
    pub memory: Bytes,
}

impl Default for FqCodelSpec {
    fn default() -> FqCodelSpec {
        FqCodelSpec {
            codel: CodelSpec { ecn: true, ..CodelSpec::default() },
            flows: 1024,
            quantum: 1538,
            limit: 10_240,
            memory: Bytes::new(32 << 20),
        }
    }
}

impl FqCodelSpec {
    /// What is wrong with the parameters, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.flows == 0 || self.quantum == 0 || self.limit == 0 || self.memory.get() == 0 {
            Some("FQ-CoDel's flows, quantum, limit and memory are at least 1")
        } else {
            self.codel.fault()
        }
    }
}

/// The most packets that are dropped at once, so that an overload costs little per packet (section 4.1 of the RFC).
const BATCH: u32 = 64;

#[derive(Debug, Clone, Default)]
struct Flow {
    fifo: Fifo,
    codel: Codel,
    /// Bytes that it may still send in this round.
    deficit: i64,
    /// It is in one of the lists.
    listed: bool,
}

/// The state of FQ-CoDel at one link.
#[derive(Debug, Clone)]
pub(crate) struct FqCodel {
    spec: FqCodelSpec,
    /// Made when a flow is first hashed onto one.
    flows: Vec<Option<Box<Flow>>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
}

impl FqCodel {
    pub fn new(spec: &FqCodelSpec) -> FqCodel {
        FqCodel {
            spec: *spec,
            flows: vec![None; spec.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    pub fn packets(&self) -> u32 {
        self.packets
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn enqueue(&mut self, now: Time, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        let number = (packet.flow % u64::from(self.spec.flows)) as u32;
        let flow = self.flows[number as usize].get_or_insert_default();
        flow.fifo.push(now, packet);
        self.packets += 1;
        self.bytes += u64::from(packet.len);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.spec.quantum);
            self.new.push_back(number);
        }
        while self.packets > self.spec.limit || self.bytes > self.spec.memory.get() {
            self.drop_from_fattest(dropped);
        }
    }

    /// Drops the first half of the longest queue in bytes, at most a batch; of equals the first.
    fn drop_from_fattest(&mut self, dropped: &mut Vec<QueuedPacket>) {
        let flows = self.flows.iter_mut().flatten();
        let Some(fattest) = flows.rev().max_by_key(|flow| flow.fifo.bytes()) else { return };
        let half = fattest.fifo.packets().div_ceil(2).min(BATCH);
        for _ in 0..half {
            let Some(first) = fattest.fifo.pop() else { break };
            self.packets -= 1;
            self.bytes -= u64::from(first.packet.len);
            dropped.push(first.packet);
        }
    }

    pub fn dequeue(&mut self, now: Time, dropped: &mut Vec<QueuedPacket>) -> Option<Taken> {
        loop {
            let is_new = !self.new.is_empty();
            let number = *if is_new { self.new.front() } else { self.old.front() }?;
            let flow = self.flows[number as usize].get_or_insert_default();
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.spec.quantum);
                self.retire(is_new, Some(number));
                continue;
            }
            let (packets, bytes) = (flow.fifo.packets(), flow.fifo.bytes());
            let taken = flow.codel.dequeue(&self.spec.codel, now, &mut flow.fifo, dropped);
            self.packets -= packets - flow.fifo.packets();
            self.bytes -= bytes - flow.fifo.bytes();
            let Some(taken) = taken else {
                // an empty new flow waits for a round, so that it cannot starve the old ones by becoming new again
                flow.listed = is_new;
                self.retire(is_new, is_new.then_some(number));
                continue;
            };
            flow.deficit -= i64::from(taken.packet.len);
            return Some(taken);
        }
    }

    /// The first of a list leaves it, for the end of the old flows if it is to `stay`.
    fn retire(&mut self, is_new: bool, stay: Option<u32>) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
        self.old.extend(stay);
    }

    pub fn clear(&mut self, gone: &mut Vec<QueuedPacket>) {
        for flow in self.flows.iter_mut().flatten() {
            flow.fifo.clear(gone);
            flow.listed = false;
        }
        self.new.clear();
        self.old.clear();
        (self.packets, self.bytes) = (0, 0);
    }
}
