//! [`Agenda`]: scheduled events of the engine.

use net::LinkId;
use units::Time;

/// Failures and repairs, latest first: time, links, whether they fail.
pub type Failures = Vec<(Time, Vec<LinkId>, bool)>;

/// Samples, failures and the end of the warm-up.
#[derive(Debug)]
pub struct Agenda {
    failures: Failures,
    sample_every: Option<Time>,
    next_sample: Time,
    warmup: Time,
    next: Time,
}

impl Agenda {
    /// An agenda with `failures` (latest first), a sample of links each `sample_every`, and counting from `warmup` on.
    pub fn new(failures: Failures, sample_every: Option<Time>, warmup: Time) -> Agenda {
        let next_sample = sample_every.unwrap_or(Time::NEVER);
        // without a warm-up nothing is subtracted
        let warmup = if warmup == Time::ZERO { Time::NEVER } else { warmup };
        let mut agenda = Agenda { failures, sample_every, next_sample, warmup, next: Time::ZERO };
        agenda.look();
        agenda
    }

    /// The time of the next event.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Whether the warm-up ends at `at`; only once.
    pub fn take_warmup(&mut self, at: Time) -> bool {
        let due = self.warmup == at;
        if due {
            self.warmup = Time::NEVER;
            self.look();
        }
        due
    }

    /// Whether links are to be sampled at `at`; only once.
    pub fn take_sample(&mut self, at: Time) -> bool {
        let due = self.next_sample == at;
        if due {
            self.next_sample = self.sample_every.map_or(Time::NEVER, |every| at + every);
            self.look();
        }
        due
    }

    /// A failure or repair that is due at `at`: which links, and whether they fail.
    pub fn take_failure(&mut self, at: Time) -> Option<(Vec<LinkId>, bool)> {
        if self.failures.last()?.0 != at {
            return None;
        }
        let (_, links, fails) = self.failures.pop()?;
        self.look();
        Some((links, fails))
    }

    fn look(&mut self) {
        let failure = self.failures.last().map_or(Time::NEVER, |(at, ..)| *at);
        self.next = self.next_sample.min(failure).min(self.warmup);
    }
}
