//! What a host does with CUEs: it takes them, checks their guards, and drops them when they expire. No clock, no kernel.
//!
//! Inputs are [`Agent::on_cue`], [`Agent::on_measured`] and [`Agent::on_timer`]; each returns whether the host's TCP must be
//! set again. Then [`Agent::rules`] is what to set, and [`Agent::poll_timeout`] when to call `on_timer` at the latest. Every rule
//! carries its deadline, so that what is set ends by itself if the agent dies. Times are the host's monotonic clock.

use crate::beacon::Beacon;
use crate::cue::Cue;
use crate::expression::{Expression, Place};
use crate::ports::Ports;
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
    /// By policy and rule; with the rules that are held at most [`HELD_MAX`].
    reverted: Vec<Reverted>,
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
}

/// A rule that a guard has reverted at this host, whatever the Oracle sends. A restarted agent must know it ([`Agent::remember`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reverted {
    /// The policy's name.
    pub policy: String,
    /// The rule's name.
    pub rule: String,
    /// Until when.
    pub until: Time,
    /// How long in all.
    pub hold: Time,
    /// What its guard saw: `host.drop_rate = 0.042`. Empty if an earlier agent has reverted it.
    pub why: String,
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
        Agent { gate, held: Vec::new(), reverted: Vec::new(), beacon: None, counts: AgentCounts::default() }
    }

    /// What guards have reverted, to be stored before anything is set.
    pub fn reverted(&self) -> &[Reverted] {
        &self.reverted
    }

    /// What guards had reverted before this agent began; no more than [`HELD_MAX`] of them count. Of two holds of a rule the longer one does.
    pub fn remember(&mut self, reverted: impl IntoIterator<Item = Reverted>) {
        self.reverted = reverted.into_iter().take(HELD_MAX).collect();
        self.reverted.sort_by(|one, other| other.cmp(one));
        self.reverted.dedup_by(|one, before| (&one.policy, &one.rule) == (&before.policy, &before.rule));
        self.reverted.reverse();
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
        let before = self.held.iter().position(same);
        let known = before.is_some() || self.is_reverted(&cue);
        let reverted_only =
            self.reverted.iter().filter(|reverted| !self.held.iter().any(|held| reverted.is(&held.cue)));
        if !known && self.held.len() + reverted_only.count() >= HELD_MAX {
            self.counts.rejected += 1;
            return Err(CueError::TooMany(cue.epoch));
        }
        self.counts.taken += 1;
        before.map(|index| self.held.remove(index));
        let expires = now.saturating_add(cue.lifetime);
        let is_reverted = self.is_reverted(&cue);
        let order = |cue: &Cue| (cue.rank, cue.policy.clone(), cue.rule.clone());
        let at = self.held.partition_point(|held| order(&held.cue) < order(&cue));
        self.held.insert(at, Held { cue, expires, guard });
        // A deadline that moves is something to set, too.
        Ok(!is_reverted)
    }

    fn is_reverted(&self, cue: &Cue) -> bool {
        self.reverted.iter().any(|reverted| reverted.is(cue))
    }

    /// Whether a guard waits for what the host measures of itself.
    pub fn is_guarded(&self) -> bool {
        self.held.iter().any(|held| held.guard.is_some() && !self.is_reverted(&held.cue))
    }

    /// Checks the guards with what the host has measured of itself; returns whether something is to be set.
    pub fn on_measured(&mut self, now: Time, host: &Host) -> bool {
        let facts = Facts { view: &NetworkView::default(), marks: &[], ports: &Ports::default() };
        let mut tripped = Vec::new();
        for held in &self.held {
            let Some(guard) = held.guard.as_ref().filter(|_| !self.is_reverted(&held.cue)) else { continue };
            let mut inputs = guard.program.network_inputs(facts);
            guard.program.entity_inputs(facts, Entity::Host(0, host), &mut inputs);
            // What is not known reverts nothing: a host that sends little has no rate of drops.
            if guard.program.run(&inputs) > 0.0 {
                let hold = held.cue.guard.as_ref().map_or(Time::ZERO, |guard| guard.hold);
                tripped.push(Reverted {
                    policy: held.cue.policy.clone(),
                    rule: held.cue.rule.clone(),
                    until: now.saturating_add(hold),
                    hold,
                    why: guard.explained(&inputs).join(", "),
                });
            }
        }
        let changed = !tripped.is_empty();
        self.counts.reverted += tripped.len() as u64;
        self.reverted.append(&mut tripped);
        self.reverted.sort();
        changed
    }

    /// Ends what has expired, and releases guards whose hold is over; returns whether something is to be set.
    pub fn on_timer(&mut self, now: Time) -> bool {
        let (held, reverted) = (self.held.len(), self.reverted.len());
        let in_force = self.in_force().count();
        self.held.retain(|held| held.expires > now);
        self.counts.expired += (held - self.held.len()) as u64;
        let ended = in_force - self.in_force().count();
        self.reverted.retain(|reverted| reverted.until > now);
        ended > 0 || self.reverted.len() < reverted
    }

    /// When to call [`Agent::on_timer`]; `None`: never, until there is a CUE.
    pub fn poll_timeout(&self) -> Option<Time> {
        let ends = self.held.iter().map(|held| held.expires);
        ends.chain(self.reverted.iter().map(|reverted| reverted.until)).min()
    }

    /// What is to be set.
    pub fn rules(&self) -> Vec<AgentRule> {
        let rule = |held: &Held| AgentRule {
            policy: held.cue.policy.clone(),
            rule: held.cue.rule.clone(),
            sessions: held.cue.scope.sessions.clone(),
            set: held.cue.set.clone(),
            deadline: held.expires,
        };
        self.in_force().map(rule).collect()
    }

    fn in_force(&self) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(|held| !self.is_reverted(&held.cue))
    }

    /// What a session is to have: of every setting, that of the first rule which is for it.
    pub fn settings_of(&self, remote: IpAddr, port: u16, cgroup: &str) -> Settings {
        AgentRule::settings_of(&self.rules(), remote, port, cgroup)
    }
}

impl Reverted {
    fn is(&self, cue: &Cue) -> bool {
        self.policy == cue.policy && self.rule == cue.rule
    }
}

impl AgentRule {
    /// What a session is to have by `rules`: of every setting, that of the first rule which is for it.
    pub fn settings_of(rules: &[AgentRule], remote: IpAddr, port: u16, cgroup: &str) -> Settings {
        let matching = rules.iter().filter(|rule| rule.sessions.contains(remote, port, cgroup));
        matching.fold(Settings::default(), |settings, rule| settings.or(&rule.set))
    }
}
