//! The window over which a host's losses are counted for its guards.

use crate::view::SEGMENTS_MIN;
use std::collections::VecDeque;
use units::Time;

/// The usual window; longer where a host sends too little in it.
const WINDOW: Time = Time::from_secs(1);
/// The longest window: older losses do not count.
const WINDOW_MOST: Time = Time::from_secs(60);

/// What a host's guards judge by: data segments of the last second, or of as much longer as it took to send [`SEGMENTS_MIN`], up to
/// a minute. Bounded by the number of times it is looked at in a minute.
#[derive(Debug, Clone, Default)]
pub struct GuardWindow {
    samples: VecDeque<Sample>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Time,
    sent: u64,
    again: u64,
}

impl GuardWindow {
    /// From the next sample on only what comes after it counts: a guard does not judge what was before it.
    pub fn begin(&mut self) {
        self.samples.clear();
    }

    /// Takes what a host had sent by `at`, and forgets what there is enough after: `sent` data segments, retransmissions
    /// included, of them `again`; both only grow.
    pub fn add(&mut self, at: Time, sent: u64, again: u64) {
        let is_enough = |begin: &Sample| {
            let age = at.saturating_sub(begin.at);
            age >= WINDOW_MOST || (age >= WINDOW && sent.saturating_sub(begin.sent) >= SEGMENTS_MIN)
        };
        while self.samples.get(1).is_some_and(is_enough) {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at, sent, again });
    }

    /// Segments sent in the window, retransmissions included, and these; `None` before there are two samples.
    pub fn counts(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        (last.at > first.at).then(|| (last.sent.saturating_sub(first.sent), last.again.saturating_sub(first.again)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looked at four times a second: what is judged at the end.
    fn judged(quarters: u64, segments: u64) -> u64 {
        let mut window = GuardWindow::default();
        (0..=quarters).for_each(|quarter| window.add(Time::from_ms(250 * quarter), quarter * segments, 0));
        window.counts().expect("there are two").0
    }

    #[test]
    fn it_slides_by_the_second_or_by_a_thousand_segments_or_by_the_minute() {
        assert_eq!(judged(40, 1000), 4000, "a second");
        assert_eq!(judged(40, 250), 1000, "just enough in a second");
        assert_eq!(judged(40, 50), 1000, "twenty quarters");
        assert_eq!(judged(400, 1), 240, "a minute");
        assert_eq!(judged(2, 50), 100, "all that there is");
    }

    #[test]
    fn what_was_before_does_not_count() {
        let mut window = GuardWindow::default();
        window.add(Time::ZERO, 0, 0);
        window.add(Time::from_secs(1), 5000, 400);
        assert_eq!(window.counts(), Some((5000, 400)));
        window.begin();
        assert_eq!(window.counts(), None);
        window.add(Time::from_secs(2), 6000, 500);
        assert_eq!(window.counts(), None);
        window.add(Time::from_ms(2100), 6010, 501);
        assert_eq!(window.counts(), Some((10, 1)));
    }
}
