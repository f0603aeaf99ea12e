//! Who watches the work: what it is told, and how it stops the work.

use crate::stop::Stop;
use std::fmt;
use units::Time;

/// What happens while work is done. All of it is talk: results do not depend on it, nor it on results.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// So many runs begin.
    Began {
        /// At the same time, or one after the other.
        runs: usize,
    },
    /// Runs have come further. A run is worth [`Event::STEPS`].
    Advanced {
        /// Steps that were added.
        steps: u64,
    },
    /// A run is done.
    Finished {
        /// The run's.
        name: &'a str,
        /// How it went.
        words: &'a str,
    },
    /// A run is made again: so many more steps as a run is worth are to come.
    Again {
        /// The run's.
        name: &'a str,
        /// Why.
        words: &'a str,
    },
    /// The runs that began are over, also if one failed.
    Ended,
    /// A sentence for people.
    Note(&'a str),
}

impl Event<'_> {
    /// Steps that a run is worth.
    pub const STEPS: u64 = 1000;
}

/// Takes events, from many threads at once. A closure is one: `|event: Event<'_>| …`.
pub trait Sink: Sync {
    /// Something happened.
    fn on_event(&self, event: Event<'_>);
}

impl<F: Fn(Event<'_>) + Sync> Sink for F {
    fn on_event(&self, event: Event<'_>) {
        self(event);
    }
}

/// Who watches the work, and may stop it.
#[derive(Clone, Copy)]
pub struct Monitor<'a> {
    sink: &'a dyn Sink,
    stop: &'a Stop,
}

impl fmt::Debug for Monitor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("stop", self.stop).finish_non_exhaustive()
    }
}

impl<'a> Monitor<'a> {
    /// Tells `sink`, looks at `stop`.
    pub fn new(sink: &'a dyn Sink, stop: &'a Stop) -> Monitor<'a> {
        Monitor { sink, stop }
    }

    /// What ends the work.
    pub(crate) fn stop(self) -> &'a Stop {
        self.stop
    }

    /// A sentence for people.
    pub(crate) fn note(self, words: &str) {
        self.sink.on_event(Event::Note(words));
    }
}

/// How far runs are.
pub(crate) struct Progress<'a> {
    sink: &'a dyn Sink,
}

impl<'a> Progress<'a> {
    /// Steps that a run is worth.
    pub const STEPS: u64 = Event::STEPS;

    /// Of `runs` runs.
    pub fn of(monitor: Monitor<'a>, runs: usize) -> Progress<'a> {
        monitor.sink.on_event(Event::Began { runs });
        Progress { sink: monitor.sink }
    }

    /// How many of a run's steps are done when it has come from 0 to `now` of `end`.
    pub fn share(now: Time, end: Time) -> u64 {
        (u128::from(now.as_ps()) * u128::from(Progress::STEPS) / u128::from(end.as_ps().max(1))) as u64
    }

    /// So many more steps of a run are done.
    pub fn advance(&self, steps: u64) {
        self.sink.on_event(Event::Advanced { steps });
    }

    /// The run `name` is done; `words` say how it went.
    pub fn finished(&self, name: &str, words: &str) {
        self.sink.on_event(Event::Finished { name, words });
    }

    /// The run `name` is made again, for the reason that `words` say.
    pub fn once_more(&self, name: &str, words: &str) {
        self.sink.on_event(Event::Again { name, words });
    }

    /// A sentence for people.
    pub fn note(&self, words: &str) {
        self.sink.on_event(Event::Note(words));
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.sink.on_event(Event::Ended);
    }
}
