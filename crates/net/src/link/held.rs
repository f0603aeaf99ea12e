//! What is in front of a link whose discipline decides when a packet departs.

use crate::queue::{Aqm, Limit, QueueSpec};
use crate::scheduler::Scheduler;
use units::Time;

/// The queue in front of a link, the packet being sent included whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLength {
    /// Packets that have not departed.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// What is in front of such a link.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub scheduler: Scheduler,
    pub limit: Limit,
    /// Length of the packet that is being sent until the link's `busy_until`.
    pub sending: u16,
    /// The caller will call [`LinkTable::depart`].
    pub awaited: bool,
    /// Packets that a failure of the link has lost, for the caller to take back.
    pub lost: Vec<u64>,
}

impl Held {
    /// For a link with this queue, if it holds its packets.
    pub fn of(queue: &QueueSpec) -> Option<Box<Held>> {
        let Aqm::Held(spec) = &queue.aqm else { return None };
        let scheduler = Scheduler::new(spec);
        Some(Box::new(Held { scheduler, limit: queue.limit, sending: 0, awaited: false, lost: Vec::new() }))
    }

    /// What is queued on a link that is busy with a packet until `busy_until`.
    pub fn queue_len(&self, now: Time, busy_until: Time) -> QueueLength {
        let is_sending = busy_until > now;
        QueueLength {
            packets: self.scheduler.packets() + u32::from(is_sending),
            bytes: self.scheduler.bytes() + if is_sending { u64::from(self.sending) } else { 0 },
        }
    }

    /// The link fails; how many packets that loses, the one being sent apart.
    pub fn fail(&mut self) -> u64 {
        let mut gone = Vec::new();
        self.scheduler.clear(&mut gone);
        self.lost.extend(gone.iter().map(|packet| packet.token));
        gone.len() as u64
    }
}
