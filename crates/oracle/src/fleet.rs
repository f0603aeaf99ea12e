//! What agents report of themselves, for operators: nothing is decided by it.

use bus::{Report, Tripped};
use policy::{AgentCounts, Policy};
use std::collections::BTreeMap;
use units::Time;

/// Of each host that is kept, what its last report said of its agent.
#[derive(Debug, Default)]
pub struct Agents {
    hosts: BTreeMap<String, Seen>,
    /// The rules of the policy in force, in its order.
    rules: Vec<String>,
    /// Reverts by guards that were reported since the Oracle began.
    guard_trips: u64,
}

/// An agent, by its last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When the report came.
    pub at: Time,
    /// The highest epoch that it knows of.
    pub epoch: Option<u64>,
    /// What became of CUEs.
    pub counts: AgentCounts,
    /// Rules in force.
    pub rules: usize,
    /// Which: bit i is the policy's rule i, of the first 64.
    pub in_force: u64,
    /// Settings that some connections do not have although they were set.
    pub differing: usize,
    /// What it could not set, or not as asked.
    pub notes: usize,
    /// What its guards have reverted.
    pub reverted: Vec<Tripped>,
}

impl Agents {
    /// Reports are of agents that follow this policy.
    pub fn follow(&mut self, policy: &Policy) {
        self.rules = policy.rules.iter().take(u64::BITS as usize).map(|rule| rule.name.clone()).collect();
        self.hosts.values_mut().for_each(|seen| seen.in_force = 0);
    }

    /// One more report that came at `now`. The caller bounds how many hosts there are.
    pub fn take(&mut self, now: Time, report: &Report) {
        let settings = report.in_force.iter().flat_map(|rule| &rule.effective);
        let seen = Seen {
            at: now,
            epoch: report.epoch,
            counts: report.counts,
            rules: report.in_force.len(),
            in_force: self.bits(report),
            differing: settings.filter(|setting| setting.differing > 0).count(),
            notes: report.notes.len(),
            reverted: report.reverted.clone(),
        };
        let reverted = seen.counts.reverted;
        let before = self.hosts.insert(report.host.name.clone(), seen);
        // an agent that was restarted counts from 0
        let known = before.as_ref().map_or(0, |before| before.counts.reverted);
        let more = reverted.checked_sub(known).unwrap_or(reverted);
        // the first report tells what happened before this Oracle began
        if before.is_some() {
            self.guard_trips = self.guard_trips.saturating_add(more);
        }
    }

    fn bits(&self, report: &Report) -> u64 {
        let place = |name: &str| self.rules.iter().position(|rule| rule == name);
        report.in_force.iter().filter_map(|rule| place(&rule.rule)).fold(0, |bits, i| bits | 1 << i)
    }

    /// Forgets agents that have not reported for `longest`.
    pub fn forget(&mut self, now: Time, longest: Time) {
        self.hosts.retain(|_, seen| now.saturating_sub(seen.at) <= longest);
    }

    /// The agent of a host.
    pub fn of(&self, host: &str) -> Option<&Seen> {
        self.hosts.get(host)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Seen> {
        self.hosts.values()
    }

    /// Reverts by guards that were reported since the Oracle began.
    pub fn guard_trips(&self) -> u64 {
        self.guard_trips
    }
}
