//! Queue disciplines that decide when a packet departs.
//!
//! A [`Scheduler`] is given packets and asked for one at each departure. It may drop packets at either time: their tokens
//! go to a list of the caller's.

use crate::codel::{Codel, CodelSpec};
use crate::dualpi2::{DualPi2, DualPi2Spec};
use crate::fifo::{Fifo, QueuedPacket, Taken};
use crate::fq_codel::{FqCodel, FqCodelSpec};
use units::Time;

/// A discipline that decides when a packet departs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SchedulerSpec {
    /// Controlled delay (RFC 8289), one queue.
    Codel(CodelSpec),
    /// Flow queues with controlled delay (RFC 8290).
    FqCodel(FqCodelSpec),
    /// Two coupled queues (RFC 9332).
    DualPi2(DualPi2Spec),
}

impl SchedulerSpec {
    /// What is wrong with the parameters, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self {
            SchedulerSpec::Codel(spec) => spec.fault(),
            SchedulerSpec::FqCodel(spec) => spec.fault(),
            SchedulerSpec::DualPi2(spec) => spec.fault(),
        }
    }
}

/// The state of one of these disciplines.
#[derive(Debug, Clone)]
pub(crate) enum Scheduler {
    Codel(CodelQueue),
    FqCodel(FqCodel),
    DualPi2(DualPi2),
}

impl Scheduler {
    pub fn new(spec: &SchedulerSpec) -> Scheduler {
        match spec {
            SchedulerSpec::Codel(spec) => {
                Scheduler::Codel(CodelQueue { spec: *spec, state: Codel::default(), fifo: Fifo::default() })
            }
            SchedulerSpec::FqCodel(spec) => Scheduler::FqCodel(FqCodel::new(spec)),
            SchedulerSpec::DualPi2(spec) => Scheduler::DualPi2(DualPi2::new(spec)),
        }
    }

    /// Takes a packet in; `dropped` are those that had to give way.
    pub fn enqueue(&mut self, now: Time, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        match self {
            Scheduler::Codel(queue) => queue.fifo.push(now, packet),
            Scheduler::FqCodel(queue) => queue.enqueue(now, packet, dropped),
            Scheduler::DualPi2(queue) => queue.enqueue(now, packet),
        }
    }

    /// The packet to send at `now`; `dropped` are those that the discipline dropped before it.
    pub fn dequeue(&mut self, now: Time, dropped: &mut Vec<QueuedPacket>) -> Option<Taken> {
        match self {
            Scheduler::Codel(queue) => queue.state.dequeue(&queue.spec, now, &mut queue.fifo, dropped),
            Scheduler::FqCodel(queue) => queue.dequeue(now, dropped),
            Scheduler::DualPi2(queue) => queue.dequeue(now, dropped),
        }
    }

    /// Takes everything out.
    pub fn clear(&mut self, gone: &mut Vec<QueuedPacket>) {
        match self {
            Scheduler::Codel(queue) => queue.fifo.clear(gone),
            Scheduler::FqCodel(queue) => queue.clear(gone),
            Scheduler::DualPi2(queue) => queue.clear(gone),
        }
    }

    /// Packets waiting.
    pub fn packets(&self) -> u32 {
        match self {
            Scheduler::Codel(queue) => queue.fifo.packets(),
            Scheduler::FqCodel(queue) => queue.packets(),
            Scheduler::DualPi2(queue) => queue.packets(),
        }
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Scheduler::Codel(queue) => queue.fifo.bytes(),
            Scheduler::FqCodel(queue) => queue.bytes(),
            Scheduler::DualPi2(queue) => queue.bytes(),
        }
    }
}

/// One queue under CoDel.
#[derive(Debug, Clone)]
pub(crate) struct CodelQueue {
    spec: CodelSpec,
    state: Codel,
    fifo: Fifo,
}
