//! What an agent decides from its start to its end, without a kernel and without a bus: which CUEs count, what is to be set, when to report,
//! and what must outlive it. Its surroundings move messages, measure, and set.
//!
//! In this order: [`Life::take`] for each message, [`Life::on_measured`], and then [`Life::settle`], which says whether to set
//! [`Life::rules`] and has stored by then what must not be forgotten.

#[cfg(test)]
mod tests;

use crate::config::Places;
use bus::files::{FileError, store_epoch, stored_epoch};
use bus::reverted::{RevertedFile, Reverts};
use bus::{Clock, Timetable};
use policy::{Agent, AgentCounts, AgentRule, CueError, Gate, Host, Identity, PublicKeys, Question, Reverted};
use std::path::PathBuf;
use units::Time;

/// An agent's life on one clock.
#[derive(Debug)]
pub struct Life {
    clock: Clock,
    agent: Agent,
    epoch: PathBuf,
    /// On disk.
    stored: Option<u64>,
    reverted: RevertedFile,
    /// Why what guards have reverted is not on disk.
    trouble: Option<String>,
    timetable: Timetable,
    /// Since when the Oracle is silent: heard last, or asked.
    heard_at: Time,
    /// When something of the Oracle's came last.
    taken_at: Option<Time>,
}

impl Life {
    /// Begins with what an earlier agent has left, on a new `clock`. `boot` is the number of the machine's start.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged.
    pub fn begin(
        places: &Places,
        identity: Identity,
        keys: PublicKeys,
        clock: Clock,
        boot: &str,
    ) -> Result<Life, FileError> {
        let (epoch, timetable) = (places.epoch(), Timetable::new(&identity.host));
        let stored = stored_epoch(&epoch)?;
        let (file, reverts) = RevertedFile::open(&places.reverted(), boot, clock)?;
        let mut agent = Agent::new(Gate::new(keys, identity, stored));
        agent.remember(reverts.into_values().flatten());
        Ok(Life {
            clock,
            agent,
            epoch,
            stored,
            reverted: file,
            trouble: None,
            timetable,
            heard_at: Time::ZERO,
            taken_at: None,
        })
    }

    /// Its clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// An Oracle was reached: asks it, by random bytes, which epochs are over.
    pub fn ask(&mut self, question: Question) {
        let now = self.clock.now();
        self.agent.ask(question);
        self.timetable.asked(now);
        self.heard_at = now;
    }

    /// Reports at once: the same Oracle was reached again.
    pub fn reach(&mut self) {
        self.timetable.asked(self.clock.now());
    }

    /// Trusts these keys of the Oracle from now on.
    pub fn trust(&mut self, keys: PublicKeys) {
        self.agent.trust(keys);
    }

    /// Takes a message of the Oracle's; whether it changes what is to be set.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn take(&mut self, message: &[u8]) -> Result<bool, CueError> {
        self.heard_at = self.clock.now();
        self.taken_at = Some(self.heard_at);
        self.agent.on_cue(self.heard_at, message)
    }

    /// When something of the Oracle's came last.
    pub fn heard(&self) -> Option<Time> {
        self.taken_at
    }

    /// The Oracle's period, if it has announced one.
    pub fn period(&self) -> Option<Time> {
        self.timetable.period()
    }

    /// The epoch to which belongs what was counted until now, if a period has just begun.
    pub fn begin_period(&mut self) -> Option<u64> {
        self.timetable.heard(self.clock.now(), self.agent.beacon())
    }

    /// Whether the Oracle has announced periods, and for so many of them was silent.
    pub fn is_left_alone(&self, periods: u64) -> bool {
        let period = self.timetable.period();
        period.is_some_and(|period| self.clock.now() >= self.heard_at + period * periods)
    }

    /// Whether a guard waits for measurements.
    pub fn is_guarded(&self) -> bool {
        self.agent.is_guarded()
    }

    /// What guards have reverted.
    pub fn reverted(&self) -> &[Reverted] {
        self.agent.reverted()
    }

    /// Takes what the host has measured of itself; whether a guard has reverted something.
    pub fn on_measured(&mut self, host: &Host) -> bool {
        self.agent.on_measured(self.clock.now(), host)
    }

    /// Ends what is over; whether that changes what is to be set.
    pub fn end(&mut self) -> bool {
        self.agent.on_timer(self.clock.now())
    }

    /// Ends what is over, and stores what must not be forgotten; whether [`Life::rules`] are to be set, if they were to be so or not
    /// (`changed`) before.
    ///
    /// # Errors
    /// The disk refuses an epoch. Nothing may be set then. If it refuses what a guard has reverted, that is [`Life::trouble`]: the revert
    /// itself must not wait for a disk.
    pub fn settle(&mut self, changed: bool) -> Result<bool, FileError> {
        let ended = self.end();
        // stored before it is set: a crash in between must not let it be accepted twice
        if let Some(highest) = self.agent.highest().filter(|highest| Some(*highest) > self.stored) {
            store_epoch(&self.epoch, highest)?;
            self.stored = Some(highest);
        }
        let reverts = Reverts::from([(String::new(), self.agent.reverted().to_vec())]);
        let stored = self.reverted.store(self.clock, &reverts);
        self.trouble = stored.err().map(|error| error.to_string());
        Ok(changed || ended)
    }

    /// Why an agent that is started after this one would not know what guards have reverted.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// What is to be set.
    pub fn rules(&self) -> Vec<AgentRule> {
        self.agent.rules()
    }

    /// The highest epoch that it knows of.
    pub fn highest(&self) -> Option<u64> {
        self.agent.highest()
    }

    /// What it asks the Oracle.
    pub fn question(&self) -> Option<Question> {
        self.agent.question()
    }

    /// What has become of CUEs.
    pub fn counts(&self) -> AgentCounts {
        self.agent.counts()
    }

    /// When it reports.
    pub fn timetable(&mut self) -> &mut Timetable {
        &mut self.timetable
    }

    /// When to call [`Life::settle`] at the latest, and when to report.
    pub fn next(&self) -> Time {
        self.agent.poll_timeout().unwrap_or(Time::NEVER).min(self.timetable.next())
    }
}
