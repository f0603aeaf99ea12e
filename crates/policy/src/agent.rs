//! What a host does with CUEs: it takes them, checks their guards, and drops them when they expire. No clock, no kernel.
//!
//! Inputs are [`Agent::on_cue`], [`Agent::on_measured`] and [`Agent::on_timer`]; each returns whether the host's TCP must be
//! set again. Then [`Agent::rules`] is what to set, and [`Agent::poll_timeout`] when to call `on_timer` at the latest. Every rule
//! carries its deadline, so that what is set ends by itself if the agent dies. Times are the host's monotonic clock.

use crate::beacon::Beacon;
use crate::cue::Cue;
use crate::expression::{Expression, Place};
use crate::population::Ports;
use crate::program::{Entity, Facts};
use crate::select::Sessions;
use crate::settings::Settings;
use crate::sign::{CueError, Gate, PublicKeys, Question};
use crate::view::{Host, NetworkView};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use units::Time;

/// Most CUEs in force at a time; a policy has one of each rule.
pub const HELD_MAX: usize = 256;

/// The agent's state.
#[derive(Debug, Clone)]
pub struct Agent {
    gate: Gate,
    /// By rank, then by policy and rule: the order in which they count.
    held: Vec<Held>,
    /// The last.
    beacon: Option<Beacon>,
    counts: AgentCounts,
}

/// A CUE in force.
#[derive(Debug, Clone)]
struct Held {
    cue: Cue,
    expires: Time,
    guard: Option<Expression>,
    /// Reverted by its guard until then.
    reverted_until: Option<Time>,
}

/// What is to be set, in order: of two that set the same of a session, the first counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRule {
    /// The policy's name.
    pub policy: String,
    /// The rule's name.
    pub rule: String,
    /// Which sessions.
    pub sessions: Sessions,
    /// What.
    pub set: Settings,
    /// Until when, unless the CUE is renewed.
    pub deadline: Time,
}

/// What an agent has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCounts {
    /// CUEs taken.
    pub taken: u64,
    /// CUEs that were not, those for other hosts aside.
    pub rejected: u64,
    /// CUEs that ended without being renewed.
    pub expired: u64,
    /// Times that a guard reverted a rule.
    pub reverted: u64,
}

impl Agent {
    /// An agent that holds nothing yet.
    pub fn new(gate: Gate) -> Agent {
        Agent { gate, held: Vec::new(), beacon: None, counts: AgentCounts::default() }
    }

    /// The highest epoch seen, to be stored before what was taken is set.
    pub fn highest(&self) -> Option<u64> {
        self.gate.highest()
    }

    /// What it has seen.
    pub fn counts(&self) -> AgentCounts {
        self.counts
    }

    /// Takes nothing until the Oracle has answered; see [`Gate::ask`]. It may be another Oracle, which announces other periods or none.
    pub fn ask(&mut self, question: Question) {
        self.beacon = None;
        self.gate.ask(question);
    }

    /// Trusts these keys of the Oracle from now on; see [`Gate::trust`].
    pub fn trust(&mut self, keys: PublicKeys) {
        self.gate.trust(keys);
    }

    /// The question to send to the Oracle.
    pub fn question(&self) -> Option<Question> {
        self.gate.question()
    }

    /// The period that the Oracle announced last; `None`: it has announced none.
    pub fn beacon(&self) -> Option<Beacon> {
        self.beacon
    }

    /// Takes a CUE, a beacon, or the answer to a question, received at `now`; returns whether something is to be set. A CUE replaces that
    /// of the same rule; what the guard of that one has reverted stays reverted.
    ///
    /// # Errors
    /// Why it is not taken. What is in force stays.
    pub fn on_cue(&mut self, now: Time, bytes: &[u8]) -> Result<bool, CueError> {
        if let Some(answered) = self.gate.answered(bytes) {
            self.counts.rejected += u64::from(answered == Err(CueError::Forged));
            return answered.map(|()| false);
        }
        if let Some(heard) = self.gate.heard(bytes) {
            self.counts.rejected += u64::from(heard.is_err());
            self.beacon = Some(heard?);
            return Ok(false);
        }
        let taken = self.gate.take(bytes).and_then(|cue| {
            let guard = cue.guard.as_ref().map(|guard| Expression::compile(&guard.revert_if, Place::Guard));
            let guard = guard.transpose().map_err(|error| CueError::Guard(error.message))?;
            match cue.set.impossible() {
                Some(setting) => Err(CueError::Setting(setting)),
                None => Ok((cue, guard)),
            }
        });
        let (cue, guard) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.counts.rejected += u64::from(error != CueError::NotOurs);
                return Err(error);
            }
        };
        let same = |held: &Held| held.cue.policy == cue.policy && held.cue.rule == cue.rule;
        let before = self.held.iter().position(same).map(|index| self.held.remove(index));
        if self.held.len() >= HELD_MAX {
            self.counts.rejected += 1;
            return Err(CueError::TooMany(cue.epoch));
        }
        self.counts.taken += 1;
        let expires = now.saturating_add(cue.lifetime);
        let reverted_until = before.as_ref().and_then(|before| before.reverted_until);
        let order = |cue: &Cue| (cue.rank, cue.policy.clone(), cue.rule.clone());
        let at = self.held.partition_point(|held| order(&held.cue) < order(&cue));
        self.held.insert(at, Held { cue, expires, guard, reverted_until });
        // A deadline that moves is something to set, too.
        Ok(reverted_until.is_none())
    }

    /// Whether a guard waits for what the host measures of itself.
    pub fn is_guarded(&self) -> bool {
        self.held.iter().any(|held| held.guard.is_some() && held.reverted_until.is_none())
    }

    /// Checks the guards with what the host has measured of itself; returns whether something is to be set.
    pub fn on_measured(&mut self, now: Time, host: &Host) -> bool {
        let facts = Facts { view: &NetworkView::default(), marks: &[], ports: &Ports::default() };
        let mut changed = false;
        for held in &mut self.held {
            let Some(guard) = held.guard.as_ref().filter(|_| held.reverted_until.is_none()) else { continue };
            let mut inputs = guard.program.network_inputs(facts);
            guard.program.entity_inputs(facts, Entity::Host(0, host), &mut inputs);
            // What is not known reverts nothing: a host that sends little has no rate of drops.
            if guard.program.run(&inputs) > 0.0 {
                let hold = held.cue.guard.as_ref().map_or(Time::ZERO, |guard| guard.hold);
                held.reverted_until = Some(now.saturating_add(hold));
                self.counts.reverted += 1;
                changed = true;
            }
        }
        changed
    }

    /// Ends what has expired, and releases guards whose hold is over; returns whether something is to be set.
    pub fn on_timer(&mut self, now: Time) -> bool {
        let mut changed = false;
        for held in &mut self.held {
            if held.reverted_until.is_some_and(|until| until <= now) {
                held.reverted_until = None;
                changed = true;
            }
        }
        // What a guard holds is remembered until it no longer does, though its CUE may have ended.
        let before = self.held.len();
        self.held.retain(|held| held.expires > now || held.reverted_until.is_some());
        let expired = before - self.held.len();
        self.counts.expired += expired as u64;
        changed || expired > 0
    }

    /// When to call [`Agent::on_timer`]; `None`: never, until there is a CUE.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.held.iter().map(|held| held.reverted_until.unwrap_or(held.expires)).min()
    }

    /// What is to be set.
    pub fn rules(&self) -> Vec<AgentRule> {
        let active = self.held.iter().filter(|held| held.reverted_until.is_none());
        let rule = |held: &Held| AgentRule {
            policy: held.cue.policy.clone(),
            rule: held.cue.rule.clone(),
            sessions: held.cue.scope.sessions.clone(),
            set: held.cue.set.clone(),
            deadline: held.expires,
        };
        active.map(rule).collect()
    }

    /// What a session is to have: of every setting, that of the first rule which is for it.
    pub fn settings_of(&self, remote: IpAddr, port: u16, cgroup: &str) -> Settings {
        AgentRule::settings_of(&self.rules(), remote, port, cgroup)
    }
}

impl AgentRule {
    /// What a session is to have by `rules`: of every setting, that of the first rule which is for it.
    pub fn settings_of(rules: &[AgentRule], remote: IpAddr, port: u16, cgroup: &str) -> Settings {
        let matching = rules.iter().filter(|rule| rule.sessions.contains(remote, port, cgroup));
        matching.fold(Settings::default(), |settings, rule| settings.or(&rule.set))
    }
}
