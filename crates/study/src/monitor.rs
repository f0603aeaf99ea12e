//! Observes progress, and stops the work.

use crate::stop::Stop;
use std::fmt;
use units::Time;

/// Progress of the work. Results do not depend on it.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A batch of runs begins.
    Began {
        /// In parallel or one after another.
        runs: usize,
    },
    /// Runs have advanced. A run is [`Event::STEPS`] steps.
    Advanced {
        /// Steps added.
        steps: u64,
    },
    /// A run is done.
    Finished {
        /// The run's name.
        name: &'a str,
        /// A summary of it.
        words: &'a str,
    },
    /// A run is repeated: it adds [`Event::STEPS`] steps.
    Repeated {
        /// The run's name.
        name: &'a str,
        /// The reason.
        words: &'a str,
    },
    /// The batch is over, also if a run failed.
    Ended,
    /// A message for the user.
    Note(&'a str),
    /// What was asked for is not what the user may think.
    Warning(&'a str),
}

impl Event<'_> {
    /// Steps of a run.
    pub const STEPS: u64 = 1000;
}

/// Receives events, from many threads at once. A closure is one: `|event: Event<'_>| …`.
pub trait Sink: Sync {
    /// Handles an event.
    fn on_event(&self, event: Event<'_>);
}

impl<F: Fn(Event<'_>) + Sync> Sink for F {
    fn on_event(&self, event: Event<'_>) {
        self(event);
    }
}

/// A sink for progress and a flag to stop the work.
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
    /// Reports to `sink` and polls `stop`.
    pub fn new(sink: &'a dyn Sink, stop: &'a Stop) -> Monitor<'a> {
        Monitor { sink, stop }
    }

    /// Receives the events.
    pub(crate) fn sink(self) -> &'a dyn Sink {
        self.sink
    }

    /// The flag that ends the work.
    pub(crate) fn stop(self) -> &'a Stop {
        self.stop
    }

    /// Sends a message to the user.
    pub(crate) fn note(self, words: &str) {
        self.sink.on_event(Event::Note(words));
    }

    /// Tells the user that what was asked for may not be what is thought.
    pub(crate) fn warn(self, words: &str) {
        self.sink.on_event(Event::Warning(words));
    }
}

/// Several batches as parts of one, whose beginning and end somebody else reports.
pub(crate) struct Parts<'a>(pub &'a dyn Sink);

impl Sink for Parts<'_> {
    fn on_event(&self, event: Event<'_>) {
        if !matches!(event, Event::Began { .. } | Event::Ended) {
            self.0.on_event(event);
        }
    }
}

/// Reports the progress of a batch.
pub(crate) struct Progress<'a> {
    sink: &'a dyn Sink,
}

impl<'a> Progress<'a> {
    /// Steps of a run.
    pub const STEPS: u64 = Event::STEPS;

    /// For this many runs.
    pub fn of(monitor: Monitor<'a>, runs: usize) -> Progress<'a> {
        monitor.sink.on_event(Event::Began { runs });
        Progress { sink: monitor.sink }
    }

    /// Steps done when a run is at `now` of `end`.
    pub fn share(now: Time, end: Time) -> u64 {
        (u128::from(now.as_ps()) * u128::from(Progress::STEPS) / u128::from(end.as_ps().max(1))) as u64
    }

    /// Adds steps of a run.
    pub fn advance(&self, steps: u64) {
        self.sink.on_event(Event::Advanced { steps });
    }

    /// The run `name` is done; `words` summarise it.
    pub fn finished(&self, name: &str, words: &str) {
        self.sink.on_event(Event::Finished { name, words });
    }

    /// The run `name` is repeated, for the reason in `words`.
    pub fn repeated(&self, name: &str, words: &str) {
        self.sink.on_event(Event::Repeated { name, words });
    }

    /// Sends a message to the user.
    pub fn note(&self, words: &str) {
        self.sink.on_event(Event::Note(words));
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.sink.on_event(Event::Ended);
    }
}
