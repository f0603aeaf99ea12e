//! CoDel, controlled delay (RFC 8289).
//!
//! A packet that has waited longer than `target` may be part of a burst; one after the other over an `interval` are a
//! standing queue. Then a packet is dropped (or marked) as it departs, and the next after `interval / sqrt(count)`, sooner
//! and sooner until the queue is short: the rate of drops grows linearly in time, and TCP's rate falls with its root.

use crate::fifo::{Fifo, QueuedPacket, Taken};
use units::Time;

/// Parameters of CoDel; the defaults are those of RFC 8289.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodelSpec {
    /// A standing queue's delay.
    pub target: Time,
    /// How long it must have stood: about the worst round-trip time.
    pub interval: Time,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark ECN-capable packets that have waited for longer than this as well.
    pub ce_threshold: Option<Time>,
    /// Length, in bytes on the wire, of a full packet: a queue of no more than that does not stand.
    pub max_packet: u16,
}

impl Default for CodelSpec {
    fn default() -> CodelSpec {
        CodelSpec {
            target: Time::from_ms(5),
            interval: Time::from_ms(100),
            ecn: false,
            ce_threshold: None,
            max_packet: 1538,
        }
    }
}

impl CodelSpec {
    /// What is wrong with the parameters, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        (self.interval == Time::ZERO).then_some("CoDel's interval is a span above zero")
    }
}

/// The state of CoDel at one queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Codel {
    /// When the delay will have been above the target for an interval.
    first_above: Option<Time>,
    /// In the dropping state, when the next drop is due.
    drop_next: Time,
    /// Drops since it began.
    count: u32,
    /// The value of `count` with which the last dropping state began.
    last_count: u32,
    dropping: bool,
}

impl Codel {
    /// dequeue of the RFC (section 5.6); a packet that is marked is not dropped, and is the one to send.
    pub fn dequeue(
        &mut self,
        spec: &CodelSpec,
        now: Time,
        fifo: &mut Fifo,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Option<Taken> {
        let (mut first, mut ok_to_drop) = self.dodequeue(spec, now, fifo);
        let marks = |packet: Option<(QueuedPacket, Time)>| packet.is_some_and(|(p, _)| spec.ecn && p.ecn.is_capable());
        let mut mark = false;
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if marks(first) {
                    mark = true;
                    self.drop_next = control_law(spec, self.drop_next, self.count);
                    break;
                }
                dropped.extend(first.map(|(packet, _)| packet));
                (first, ok_to_drop) = self.dodequeue(spec, now, fifo);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = control_law(spec, self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            mark = marks(first);
            if !mark {
                dropped.extend(first.map(|(packet, _)| packet));
                (first, _) = self.dodequeue(spec, now, fifo);
            }
            self.dropping = true;
            // a queue that stands again soon needs about the rate of drops that controlled it last
            let delta = self.count.wrapping_sub(self.last_count);
            let is_recent = now.saturating_sub(self.drop_next) < spec.interval * 16;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = control_law(spec, now, self.count);
        }
        first.map(|(packet, sojourn)| {
            let late = spec.ce_threshold.is_some_and(|bound| sojourn > bound) && packet.ecn.is_capable();
            Taken { packet, mark: mark || late }
        })
    }

    /// The first packet and its delay, and whether a queue stands.
    fn dodequeue(&mut self, spec: &CodelSpec, now: Time, fifo: &mut Fifo) -> (Option<(QueuedPacket, Time)>, bool) {
        let Some(first) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let sojourn = now.saturating_sub(first.since);
        let mut ok_to_drop = false;
        if sojourn < spec.target || fifo.bytes() <= u64::from(spec.max_packet) {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + spec.interval),
                Some(at) => ok_to_drop = now >= at,
            }
        }
        (Some((first.packet, sojourn)), ok_to_drop)
    }
}

/// `from` + interval / sqrt(count).
fn control_law(spec: &CodelSpec, from: Time, count: u32) -> Time {
    from + Time::from_ps((spec.interval.as_ps() as f64 / f64::from(count).sqrt()) as u64)
}
