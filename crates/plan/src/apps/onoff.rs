//! On–off applications: a constant rate for an exponential time, then silence for an exponential time.
//!
//! As ns-3's `OnOffApplication`: it begins with a silence and writes packets of one size at even intervals. What the send
//! buffer does not take is discarded, not written later. While the buffer is full there are no attempts: they would have
//! no effect.

use super::{Opener, Stage};
use crate::{FlowName, Random};
use units::{Bytes, Rate, Time};

pub struct OnOff {
    on: Time,
    off: Time,
    packet: u64,
    /// Between two packets while on.
    interval: Time,
    stop: Time,
    /// The run's.
    seed: u64,
    /// By index of the application.
    applications: Vec<Application>,
}

struct Application {
    flow: u32,
    random: Random,
    /// When the current burst ends; in the past while silent.
    on_until: Time,
    /// The event that is valid; others are ignored.
    next: Time,
    /// The last packet of a burst for which an event is pending because the buffer was full.
    last: Time,
    /// The buffer is full, and what is written before the last packet would be lost.
    is_parked: bool,
}

impl OnOff {
    pub fn new(rate: Rate, on: Time, off: Time, packet: Bytes, (stop, seed): (Time, u64)) -> OnOff {
        let interval = rate.serialization(packet.get());
        OnOff { on, off, packet: packet.get(), interval, stop, seed, applications: Vec::new() }
    }

    /// An application for `flow`, silent at first.
    pub fn add(&mut self, opener: &mut Opener<impl Stage>, flow: u32, name: FlowName) {
        let which = self.applications.len() as u32;
        let mut random = name.application_random(self.seed);
        let at = opener.now() + random.exponential(self.off);
        self.applications.push(Application {
            flow,
            random,
            on_until: Time::ZERO,
            next: at,
            last: Time::NEVER,
            is_parked: false,
        });
        opener.schedule(at, which);
    }

    /// A packet is due, or a silence ends.
    pub fn on_event(&mut self, opener: &mut Opener<impl Stage>, which: u32) {
        let now = opener.now();
        let application = &mut self.applications[which as usize];
        if now >= self.stop || now != application.next {
            return;
        }
        application.is_parked = false;
        if application.on_until <= now {
            application.on_until = now + application.random.exponential(self.on);
        } else {
            opener.stage.write_what_fits(application.flow, self.packet);
        }
        application.next = now + self.interval;
        if application.next >= application.on_until {
            application.next = application.on_until + application.random.exponential(self.off);
            application.on_until = Time::ZERO;
        }
        if application.next != application.last {
            opener.schedule(application.next, which);
        }
    }

    /// The send buffer of `flow` is full: the packets up to the burst's last one would be discarded, as most are on a busy
    /// network.
    pub fn on_full(&mut self, opener: &mut Opener<impl Stage>, flow: u32) {
        let Ok(which) = self.applications.binary_search_by_key(&flow, |application| application.flow) else { return };
        let application = &mut self.applications[which];
        if application.is_parked || application.next >= application.on_until {
            return;
        }
        let left = application.on_until - application.next - Time::from_ps(1);
        let last = application.next + self.interval * (left.as_ps() / self.interval.as_ps());
        application.is_parked = true;
        if last != application.next && last != application.last {
            opener.schedule(last, which as u32);
        }
        (application.next, application.last) = (last, last);
    }

    /// The send buffer of `flow` has room again: its next packet is written when it is due.
    pub fn on_room(&mut self, opener: &mut Opener<impl Stage>, flow: u32) {
        let now = opener.now();
        let Ok(which) = self.applications.binary_search_by_key(&flow, |application| application.flow) else { return };
        let application = &mut self.applications[which];
        if !application.is_parked || application.last <= now {
            return;
        }
        application.is_parked = false;
        let left = application.last - now - Time::from_ps(1);
        application.next = application.last - self.interval * (left.as_ps() / self.interval.as_ps());
        if application.next != application.last {
            opener.schedule(application.next, which as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opening, Pairing};
    use net::NodeId;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// Send buffers that fill and empty alternately, and what was written to them.
    struct Buffers {
        now: Time,
        events: BinaryHeap<Reverse<(Time, u32)>>,
        room: Vec<u64>,
        /// Reports a full buffer, and later that it has room.
        tells: bool,
        waiting: Vec<bool>,
        tries: u32,
        written: Vec<(Time, u32, u64)>,
    }

    impl Stage for Buffers {
        fn now(&self) -> Time {
            self.now
        }
        fn schedule(&mut self, at: Time, _: u32, which: u32) {
            self.events.push(Reverse((at, which)));
        }
        fn write_what_fits(&mut self, flow: u32, bytes: u64) {
            let room = &mut self.room[flow as usize];
            let taken = bytes.min(*room);
            *room -= taken;
            self.tries += 1;
            if taken > 0 {
                self.written.push((self.now, flow, taken));
            }
            self.waiting[flow as usize] = self.tells && *room == 0;
        }
        fn pairing(&self) -> Pairing<'_> {
            unreachable!()
        }
        fn opened(&self) -> usize {
            unreachable!()
        }
        fn reserve(&mut self, _: usize) {
            unreachable!()
        }
        fn open(&mut self, _: NodeId, _: NodeId, _: Opening) -> Option<u32> {
            unreachable!()
        }
        fn write(&mut self, _: u32, _: u64) {
            unreachable!()
        }
        fn send_datagram(&mut self, _: u32, _: u64) {
            unreachable!()
        }
        fn stop_writing(&mut self, _: u32) {
            unreachable!()
        }
        fn notify_at(&mut self, _: u32, _: u64) {
            unreachable!()
        }
        fn close(&mut self, _: u32) {
            unreachable!()
        }
        fn finish(&mut self, _: u32, _: Time) {
            unreachable!()
        }

        fn on_message(&mut self, _: crate::Message, _: Time) {
            unreachable!("on–off flows have no messages");
        }
    }

    fn opener<'a>(stage: &'a mut Buffers, flows: &'a mut u64) -> Opener<'a, Buffers> {
        Opener { stage, entry: 0, name: "writes", flows }
    }

    /// Five applications whose buffers get room at random times; how often they tried, and what they wrote.
    fn written(seed: u64, tells: bool) -> (u32, Vec<(Time, u32, u64)>) {
        const FLOWS: u32 = 5;
        let mut drains = Random::of_entry(seed, "drains");
        let (on, off, stop) = (Time::from_ms(20), Time::from_ms(10), Time::from_ms(300));
        let mut on_off = OnOff::new(Rate::from_mbps(50), on, off, Bytes::new(1448), (stop, seed));
        let n = FLOWS as usize;
        let mut buffers = Buffers {
            now: Time::ZERO,
            events: BinaryHeap::new(),
            room: vec![3000; n],
            tells,
            waiting: vec![false; n],
            tries: 0,
            written: Vec::new(),
        };
        for flow in 0..FLOWS {
            on_off.add(&mut opener(&mut buffers, &mut 0), flow, FlowName::new("writes", u64::from(flow)));
        }
        let mut drained_at = Time::from_us(300);
        while let Some(&Reverse((at, which))) = buffers.events.peek() {
            if drained_at <= at.min(stop) {
                let flow = drains.below(FLOWS);
                buffers.now = drained_at;
                buffers.room[flow as usize] += 1000 + u64::from(drains.below(2000));
                drained_at += drains.exponential(Time::from_us(400)) + Time::from_ps(1);
                if std::mem::take(&mut buffers.waiting[flow as usize]) {
                    on_off.on_room(&mut opener(&mut buffers, &mut 0), flow);
                }
                continue;
            }
            buffers.events.pop();
            buffers.now = at;
            let was_waiting = buffers.waiting[which as usize];
            on_off.on_event(&mut opener(&mut buffers, &mut 0), which);
            if buffers.waiting[which as usize] && !was_waiting {
                on_off.on_full(&mut opener(&mut buffers, &mut 0), which);
            }
        }
        (buffers.tries, buffers.written)
    }

    #[test]
    fn attempts_on_full_buffers_do_not_change_what_is_written() {
        for seed in 0..200 {
            let ((tries, always), (fewer, notified)) = (written(seed, false), written(seed, true));
            assert_eq!(always, notified, "seed {seed}");
            assert!(notified.len() > 100 && fewer < tries / 2, "seed {seed}: {fewer} of {tries} tries");
        }
    }
}
