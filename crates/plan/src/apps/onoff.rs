//! On–off applications: a constant rate for an exponential time, then silence for an exponential time.
//!
//! As ns-3's application of that kind: it begins with a silence, writes packets of one size at even distances, and what
//! the send buffer does not take is lost to it rather than caught up on.

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
}

impl OnOff {
    pub fn new(rate: Rate, on: Time, off: Time, packet: Bytes, stop: Time) -> OnOff {
        let interval = rate.serialization(packet.get());
        OnOff { on, off, packet: packet.get(), interval, stop, applications: Vec::new() }
    }

    /// An application for `flow`, silent at first.
    pub fn add(&mut self, opener: &mut Opener<impl Stage>, flow: u32, random: &mut Random) {
        let which = self.applications.len() as u32;
        self.applications.push(Application { flow, on_until: Time::ZERO });
        let at = opener.now() + random.exponential(self.off);
        opener.schedule(at, which);
    }

    /// A packet is due, or a silence ends.
    pub fn on_event(&mut self, opener: &mut Opener<impl Stage>, which: u32, random: &mut Random) {
        let now = opener.now();
        if now >= self.stop {
            return;
        }
        let application = &mut self.applications[which as usize];
        if application.on_until <= now {
            application.on_until = now + random.exponential(self.on);
        } else {
            opener.stage.write_what_fits(application.flow, self.packet);
        }
        let mut next = now + self.interval;
        if next >= application.on_until {
            next = application.on_until + random.exponential(self.off);
            application.on_until = Time::ZERO;
        }
        opener.schedule(next, which);
    }
}
