//! Two endpoints and the wire between them, which a closure governs.

use std::collections::BTreeMap;
use tcp::{Endpoint, Segment};
use units::Time;

/// Two endpoints that exchange segments; time jumps to the next arrival or timer.
pub struct Pair<W> {
    pub ends: [Endpoint; 2],
    pub now: Time,
    /// What arrives of a segment that end `from` sends: nothing, or copies with their arrival times.
    wire: W,
    /// By arrival time, then by order of sending.
    flying: BTreeMap<(Time, u64), (usize, Segment)>,
    order: u64,
    /// Called before end `i` is given control, to say whose hooks follow.
    enter: fn(usize, Time),
}

impl<W: FnMut(Time, usize, &Segment) -> Vec<(Time, Segment)>> Pair<W> {
    pub fn new(ends: [Endpoint; 2], now: Time, wire: W, enter: fn(usize, Time)) -> Pair<W> {
        let mut pair = Pair { ends, now, wire, flying: BTreeMap::new(), order: 0, enter };
        pair.transmit(0);
        pair.transmit(1);
        pair
    }

    /// When the next thing happens by itself.
    pub fn next_time(&self) -> Time {
        let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        arrival.min(self.ends[0].poll_timeout()).min(self.ends[1].poll_timeout())
    }

    /// Lets the next thing happen; false if there is none.
    pub fn step(&mut self) -> bool {
        let next = self.next_time();
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        if let Some((&key, _)) = self.flying.first_key_value()
            && key.0 <= self.now
        {
            let (to, segment) = self.flying.remove(&key).expect("just seen");
            self.act(to, |end, now| end.on_segment(now, &segment));
            return true;
        }
        let timed = usize::from(self.ends[0].poll_timeout() > next);
        self.act(timed, Endpoint::on_timer);
        true
    }

    /// Does something with one end, now, and sends what comes of it.
    pub fn act<R>(&mut self, end: usize, action: impl FnOnce(&mut Endpoint, Time) -> R) -> R {
        (self.enter)(end, self.now);
        let result = action(&mut self.ends[end], self.now);
        self.transmit(end);
        result
    }

    fn transmit(&mut self, from: usize) {
        (self.enter)(from, self.now);
        let mut segment = Segment::default();
        loop {
            let wanted = self.ends[from].wants_transmit();
            if !self.ends[from].poll_transmit(self.now, &mut segment) {
                break;
            }
            assert!(wanted, "a host that asks first would have missed {segment:?}");
            for (at, copy) in (self.wire)(self.now, from, &segment) {
                self.flying.insert((at, self.order), (1 - from, copy));
                self.order += 1;
            }
        }
    }
}
