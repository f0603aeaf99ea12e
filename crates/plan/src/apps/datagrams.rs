//! UDP at a constant rate: a datagram at each interval, whatever becomes of it.

use super::{Opener, Stage};
use crate::FlowName;
use scenario::Datagrams as Rate;
use units::Time;

pub struct Datagrams {
    packet: u64,
    /// Between two datagrams of a flow.
    interval: Time,
    stop: Time,
    /// The run's.
    seed: u64,
    /// Flows, by index of the application.
    flows: Vec<u32>,
}

impl Datagrams {
    pub fn new(Rate { rate, packet }: Rate, (stop, seed): (Time, u64)) -> Datagrams {
        let interval = rate.serialization(packet.get());
        Datagrams { packet: packet.get(), interval, stop, seed, flows: Vec::new() }
    }

    /// An application for `flow`, whose first datagram is due at a random time of its first interval: flows that begin together do not
    /// send in step.
    pub fn add(&mut self, opener: &mut Opener<impl Stage>, flow: u32, name: FlowName) {
        let share = name.application_random(self.seed).unit();
        let at = opener.now() + Time::from_ps((share * self.interval.as_ps() as f64) as u64);
        self.flows.push(flow);
        opener.schedule(at, (self.flows.len() - 1) as u32);
    }

    /// A datagram is due.
    pub fn on_event(&self, opener: &mut Opener<impl Stage>, which: u32) {
        let now = opener.now();
        if now >= self.stop {
            return;
        }
        opener.stage.send_datagram(self.flows[which as usize], self.packet);
        opener.schedule(now + self.interval, which);
    }
}
