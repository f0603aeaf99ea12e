//! On–off applications: a constant rate for an exponential time, then silence for an exponential time.
//!
//! As ns-3's application of that kind: it begins with a silence, writes packets of one size at even distances, and what
//! the send buffer does not take is lost to it rather than caught up on. While the buffer is full, nothing is tried: it would
//! change nothing.

use super::{Opener, Stage};
use crate::Random;
use units::{Bytes, Rate, Time};

pub struct OnOff {
    on: Time,
    off: Time,
    packet: u64,
    /// Between two packets while on.
    interval: Time,
    stop: Time,
    /// By index of the application.
    applications: Vec<Application>,
}

struct Application {
    flow: u32,
    /// When the current burst ends; in the past while silent.
    on_until: Time,
    /// The event that counts; others are void.
    next: Time,
    /// The last packet of a burst for which an event is pending because the buffer was full.
    last: Time,
    /// The buffer is full, and what is written before the last packet would be lost.
    is_parked: bool,
}

impl OnOff {
    pub fn new(rate: Rate, on: Time, off: Time, packet: Bytes, stop: Time) -> OnOff {
        let interval = rate.serialization(packet.get());
        OnOff { on, off, packet: packet.get(), interval, stop, applications: Vec::new() }
    }

    /// An application for `flow`, silent at first.
    pub fn add(&mut self, opener: &mut Opener<impl Stage>, flow: u32, random: &mut Random) {
        let which = self.applications.len() as u32;
        let at = opener.now() + random.exponential(self.off);
        self.applications.push(Application {
            flow,
            on_until: Time::ZERO,
            next: at,
            last: Time::NEVER,
            is_parked: false,
        });
        opener.schedule(at, which);
    }

    /// A packet is due, or a silence ends.
    pub fn on_event(&mut self, opener: &mut Opener<impl Stage>, which: u32, random: &mut Random) {
        let now = opener.now();
        let application = &mut self.applications[which as usize];
        if now >= self.stop || now != application.next {
            return;
        }
        application.is_parked = false;
        let mut has_room = true;
        if application.on_until <= now {
            application.on_until = now + random.exponential(self.on);
        } else {
            has_room = opener.stage.write_what_fits(application.flow, self.packet);
        }
        let mut next = now + self.interval;
        if next >= application.on_until {
            next = application.on_until + random.exponential(self.off);
            application.on_until = Time::ZERO;
        } else if !has_room {
            // the packets in between would be lost, and most of what a busy network's applications write is
            let left = application.on_until - now - Time::from_ps(1);
            next = now + self.interval * (left.as_ps() / self.interval.as_ps());
            application.is_parked = true;
        }
        application.next = next;
        if next != application.last {
            opener.schedule(next, which);
        }
        if application.is_parked {
            application.last = next;
        }
    }

    /// The send buffer of `flow` has room again: its next packet is written in its time.
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
