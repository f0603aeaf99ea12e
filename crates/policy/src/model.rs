//! What a checked policy is: every default filled in, every expression compiled.

use crate::algorithm::Measures;
use crate::expression::Expression;
use crate::select::{Hosts, Sessions};
use crate::settings::Settings;
use crate::variable::Variable;
use crate::zone::Zone;
use std::collections::BTreeMap;
use units::Time;

/// The operator's rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Short name: the file's stem unless the file says otherwise.
    pub name: String,
    /// A sentence for the top of a report.
    pub title: Option<String>,
    /// Whether CUEs go out.
    pub mode: Mode,
    /// T: how often is decided.
    pub period: Time,
    /// How long a CUE lasts after it was received; more than a period.
    pub lifetime: Time,
    /// Where `clock.hour` and `clock.weekday` are read.
    pub time_zone: Zone,
    /// Time constant over which what is measured is smoothed; `None`: not at all.
    pub smoothing: Option<Time>,
    /// Congestion controls that react to different signals may run side by side.
    pub allow_mixed_measures: bool,
    /// How often a rule may switch on.
    pub flap_limit: FlapLimit,
    /// What collectors and agents must deliver.
    pub collect: Collect,
    /// What the policy is for.
    pub objective: Option<Objective>,
    /// What must hold for anything to be set.
    pub constraints: Vec<Constraint>,
    /// In order: where two set the same of the same sessions, the first counts.
    pub rules: Vec<Rule>,
    /// On how many hosts.
    pub rollout: Rollout,
    /// What is known of algorithms, those of hosts too.
    pub algorithms: Vec<Algorithm>,
}

impl Policy {
    /// The end of a connection to whose host it belongs in the verdict: the receiver if all that is set acts on what a host receives.
    pub fn counted_at(&self) -> End {
        let at_receiver = !self.rules.is_empty() && !self.rules.iter().any(|rule| rule.set.acts_where_sent());
        if at_receiver { End::Receiver } else { End::Sender }
    }

    /// What is known of an algorithm.
    pub fn algorithm(&self, name: &str) -> Option<&Algorithm> {
        self.algorithms.iter().find(|algorithm| algorithm.name == name)
    }

    /// The same policy in a network with another time scale: T is `period`, and every other time of the policy's own (how
    /// long CUEs last, how long rules hold, over how long is smoothed, when stages begin) changes by the same factor. What is
    /// set on TCP stays.
    #[must_use]
    pub fn with_period(mut self, period: Time) -> Policy {
        let (old, new) = (u128::from(self.period.as_ps()), u128::from(period.as_ps()));
        let scaled =
            |time: Time| Time::from_ps(u64::try_from(u128::from(time.as_ps()) * new / old).unwrap_or(u64::MAX).max(1));
        let scale = |time: &mut Time| {
            if *time > Time::ZERO {
                *time = scaled(*time);
            }
        };
        self.period = period;
        scale(&mut self.lifetime);
        scale(&mut self.flap_limit.within);
        self.smoothing.iter_mut().for_each(scale);
        for rule in &mut self.rules {
            scale(&mut rule.hold);
            rule.guard.iter_mut().for_each(|guard| scale(&mut guard.hold));
        }
        self.rollout.stages.iter_mut().for_each(|stage| scale(&mut stage.after));
        self
    }
}

/// An end of a connection, which sent more of it or received more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// It sent more, and counts retransmissions.
    #[default]
    Sender,
    /// It received more.
    Receiver,
}

impl End {
    /// What belongs to this one.
    pub fn of<T>(self, sender: T, receiver: T) -> T {
        match self {
            End::Sender => sender,
            End::Receiver => receiver,
        }
    }
}

/// A congestion control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithm {
    /// As in scenarios.
    pub name: String,
    /// What it reacts to.
    pub measures: Measures,
    /// Whether its connections must have negotiated ECN.
    pub needs_ecn: bool,
}

/// Whether a policy acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Decides and reports; nothing is sent.
    Observe,
    /// Sends CUEs.
    Enforce,
}

/// At most so many times on within so long, counted from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlapLimit {
    /// Times that a rule may switch on.
    pub changes: u32,
    /// Within this.
    pub within: Time,
}

/// Statistics, by whom they are about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collect {
    /// Of each link.
    pub links: Vec<&'static Variable>,
    /// Of each host.
    pub hosts: Vec<&'static Variable>,
    /// Of each flow group.
    pub groups: Vec<&'static Variable>,
}

/// What is to become small or large.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// A quantity of the network.
    pub of: Expression,
    /// Small is good; else large.
    pub minimize: bool,
    /// By how much, as a fraction, the treated may be worse than the control before a rollout ends.
    pub worse_at_most: f64,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// For messages.
    pub name: String,
    /// A condition on the network.
    pub holds: Expression,
}

/// When, to whom, what.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Unique.
    pub name: String,
    /// The condition: of the network, or of each host if it asks for `host.…`.
    pub when: Expression,
    /// Once on, the rule stays on until this; `None`: until `when` is false.
    pub until: Option<Expression>,
    /// Minimum time between two changes.
    pub hold: Time,
    /// Whose connections.
    pub hosts: HostMatch,
    /// Which of them.
    pub sessions: Sessions,
    /// What.
    pub set: Settings,
    /// What ends it at the host, between two CUEs.
    pub guard: Option<Guard>,
}

impl Rule {
    /// Whether it is decided host by host.
    pub fn is_per_host(&self) -> bool {
        self.when.is_per_host() || self.until.as_ref().is_some_and(Expression::is_per_host)
    }
}

/// Which hosts a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMatch {
    /// By the rollout or by name.
    pub which: Hosts,
    /// All of these labels.
    pub labels: BTreeMap<String, String>,
}

/// A condition that the agent watches.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    /// What the agent knows by itself.
    pub revert_if: Expression,
    /// How long the host then stays at its defaults.
    pub hold: Time,
}

/// Who is treated, and since when.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// Treated and control side by side, or one after the other.
    pub design: Design,
    /// In order of time, the first from the beginning.
    pub stages: Vec<Stage>,
    /// Only hosts with all of these labels are treated.
    pub labels: BTreeMap<String, String>,
}

impl Rollout {
    /// The stage of a rollout that has lasted for so long.
    pub(crate) fn stage(&self, lasted: Time) -> Option<&Stage> {
        self.stages.iter().rev().find(|stage| stage.after <= lasted)
    }
}

/// How treated hosts and the control group are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// A share of the hosts is treated.
    Split,
    /// All hosts are treated, in every other block of so many periods.
    Switchback {
        /// Periods in a block.
        periods: u32,
    },
}

/// From when on, how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Since the policy began.
    pub after: Time,
    /// Share of the hosts.
    pub fraction: f64,
}
