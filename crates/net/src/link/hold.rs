//! Links whose discipline decides when a packet departs: they hold their packets, and have an event for each departure.
//!
//! The caller hands each packet over by [`LinkTable::hold`], as a token, and asks at each departure by
//! [`LinkTable::depart`]. A packet counts as accepted until the discipline drops it.

use super::{LinkTable, Loss, Sent};
use crate::LinkId;
use crate::fifo::QueuedPacket;
use crate::queue::Limit;
use units::Time;

/// A packet that a link begins to send.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// The packet.
    pub packet: QueuedPacket,
    /// This link sets the packet to [`Ecn::Ce`]; false for one that is so already.
    pub marked: bool,
    /// When it leaves and arrives.
    pub sent: Sent,
    /// Call [`LinkTable::depart`] again at this time.
    pub next: Option<Time>,
}

impl LinkTable {
    /// Hands a packet over at `now` to a link that has answered [`Outcome::Held`](super::Outcome::Held). The tokens of
    /// packets that are dropped for it, or it itself, are added to `dropped`. If the answer is a time, call
    /// [`depart`](LinkTable::depart) then, which may be now; if it is `None`, that has been said before.
    pub fn hold(&mut self, link: LinkId, now: Time, packet: QueuedPacket, dropped: &mut Vec<u64>) -> Option<Time> {
        let i = link.index();
        let len = u64::from(packet.len);
        let strikes = self.cold[i].loss.as_mut().is_some_and(Loss::strikes);
        let has_room = !strikes && self.buffer_has_room(link, now, len, packet.ecn);
        let busy_until = self.hot[i].busy_until;
        let held = self.cold[i].held.as_mut()?;
        let queue = held.queue_len(now, busy_until);
        let fits = match held.limit {
            Limit::Unlimited => true,
            Limit::Packets(limit) => queue.packets < limit,
            Limit::Bytes(limit) => queue.bytes + len <= limit.get(),
        };
        if !has_room || !fits {
            self.cold[i].dropped += 1;
            self.cold[i].dropped_bytes += len;
            dropped.push(packet.token);
            return None;
        }
        let mut gone = Vec::new();
        held.scheduler.enqueue(now, packet, &mut gone);
        let queued = held.queue_len(now, busy_until).packets;
        let wake = (!held.awaited).then(|| busy_until.max(now));
        held.awaited = true;
        self.hot[i].accepted += 1;
        self.hot[i].accepted_bytes += len;
        self.warm[i].queue_max = self.warm[i].queue_max.max(queued);
        self.count_dropped(link, &gone, dropped);
        wake
    }

    /// The time has come that [`hold`](LinkTable::hold) or the last departure named: the packet that `link` sends now, if
    /// there is one. The tokens of those that the discipline drops are added to `dropped`.
    pub fn depart(&mut self, link: LinkId, now: Time, dropped: &mut Vec<u64>) -> Option<Departure> {
        let i = link.index();
        let held = self.cold[i].held.as_mut()?;
        dropped.append(&mut held.lost);
        let mut gone = Vec::new();
        let taken = held.scheduler.dequeue(now, &mut gone);
        let is_last = held.scheduler.packets() == 0;
        held.awaited = taken.is_some() && !is_last;
        held.sending = taken.map_or(0, |taken| taken.packet.len);
        self.count_dropped(link, &gone, dropped);
        let taken = taken?;
        let packet = taken.packet;
        let marked = taken.mark && self.warm[i].mark(packet.ecn);
        let hot = &mut self.hot[i];
        let departs = now + hot.serialization(packet.len, self.cold[i].rate);
        hot.busy_until = departs;
        let arrives = departs + hot.delay;
        let arrives = self.cold[i].jitter.as_mut().map_or(arrives, |jitter| jitter.delayed(arrives));
        let sent = Sent { departs, arrives, epoch: self.hot[i].epoch };
        Some(Departure { packet, marked, sent, next: (!is_last).then_some(departs) })
    }

    /// Packets that `link` holds, the one being sent apart.
    pub fn held(&self, link: LinkId) -> u64 {
        self.cold[link.index()].held.as_ref().map_or(0, |held| u64::from(held.scheduler.packets()))
    }

    /// Whether any link holds its packets.
    pub fn any_holds(&self) -> bool {
        self.cold.iter().any(|cold| cold.held.is_some())
    }

    /// Bytes in front of `port`, from which what has left by `now` has been taken off.
    pub(super) fn port_bytes(&self, port: LinkId, now: Time) -> u64 {
        let hot = &self.hot[port.index()];
        let held = self.cold[port.index()].held.as_ref();
        held.map_or_else(|| hot.bytes(&self.rings), |held| held.queue_len(now, hot.busy_until).bytes)
    }

    fn count_dropped(&mut self, link: LinkId, gone: &[QueuedPacket], dropped: &mut Vec<u64>) {
        let (hot, cold) = (&mut self.hot[link.index()], &mut self.cold[link.index()]);
        for packet in gone {
            hot.accepted -= 1;
            hot.accepted_bytes -= u64::from(packet.len);
            cold.dropped += 1;
            cold.dropped_bytes += u64::from(packet.len);
            dropped.push(packet.token);
        }
    }
}
