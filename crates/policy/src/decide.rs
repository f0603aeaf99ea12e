//! The Oracle's decision: from what was observed to what is sent, with a reason for everything.

use crate::algorithm::provided;
use crate::cue::{Addressees, Cue, CueGuard, CueScope, NAMED_MAX, clipped};
use crate::history::{History, RuleState};
use crate::model::{Design, Mode, Policy, Rule};
use crate::population::{Population, RttBins, has_labels};
use crate::program::{Facts, Inputs};
use crate::seen::Seen;
use crate::select::{Hosts, fits};
use crate::switch::{Limits, Turn};
use crate::unit::Unit;
use crate::view::{Host, NetworkView};
use serde::Serialize;
use std::collections::BTreeMap;
use units::Time;

/// T must be more than this many RTTs (the 99th percentile of the sessions concerned), so that connections have settled
/// before the next change. The paper asks for "orders of magnitude".
pub const STABILITY_FACTOR: u64 = 100;

/// Most hosts that a report names.
const LACKING_MAX: usize = 8;

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// When.
    pub at: Time,
    /// One more than that of the decision before.
    pub epoch: u64,
    /// Whether the policy acts.
    pub mode: Mode,
    /// Hosts of the view.
    pub hosts: usize,
    /// Of these, treated now.
    pub treated: usize,
    /// Whether the rollout treats anybody now (a switchback does not in every other block).
    pub treating: bool,
    /// What must hold, in the order of the policy.
    pub constraints: Vec<ConstraintReport>,
    /// In the order of the policy.
    pub rules: Vec<RuleReport>,
    /// Rules that set the same, differently.
    pub conflicts: Vec<Conflict>,
    /// What would be sent; see [`Decision::to_send`].
    pub cues: Vec<Cue>,
}

impl Decision {
    /// The CUEs to send: none of a policy that only observes.
    pub fn to_send(&self) -> &[Cue] {
        if self.mode == Mode::Enforce { &self.cues } else { &[] }
    }
}

/// Whether a constraint holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConstraintReport {
    /// Its name.
    pub name: String,
    /// Its expression.
    pub text: String,
    /// `None`: not known, which keeps nothing back.
    pub holds: Option<bool>,
    /// What it asked for, with values.
    pub values: Vec<String>,
}

/// What became of a rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleReport {
    /// Its name.
    pub name: String,
    /// Its place in the policy.
    pub rank: usize,
    /// Of a rule that is decided for the whole network.
    pub turn: Option<Turn>,
    /// What it asked of the network, with values.
    pub values: Vec<String>,
    /// What it asked for, over the hosts that it is for.
    pub seen: Vec<Seen>,
    /// Why it is off whatever its condition says.
    pub withheld: Option<String>,
    /// The 99th percentile of the matched sessions' smoothed RTTs.
    pub srtt_p99: Option<Time>,
    /// Hosts, by what became of them.
    pub hosts: HostCounts,
    /// The first hosts that do not have the rule's algorithm.
    pub lacking: Vec<String>,
}

/// Hosts of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostCounts {
    /// That the rule is for.
    pub matched: usize,
    /// To which a CUE goes.
    pub addressed: usize,
    /// Whose condition holds.
    pub on: usize,
    /// Whose condition does not.
    pub off: usize,
    /// Kept on by the hold time.
    pub held_on: usize,
    /// Kept off by the hold time.
    pub held_off: usize,
    /// Kept off because they changed too often.
    pub flap_limited: usize,
    /// Of which too little is known.
    pub unknown: usize,
    /// Left out because some hop does not mark and the algorithm needs it to.
    pub no_ecn: usize,
    /// Left out because the host does not have the algorithm.
    pub no_algorithm: usize,
}

impl HostCounts {
    fn count(&mut self, turn: Turn) {
        *match turn {
            Turn::On => &mut self.on,
            Turn::Off => &mut self.off,
            Turn::HeldOn => &mut self.held_on,
            Turn::HeldOff => &mut self.held_off,
            Turn::FlapLimited => &mut self.flap_limited,
            Turn::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// Two rules that are on for the same hosts and set the same, differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The earlier rule, which counts.
    pub first: String,
    /// The later one.
    pub second: String,
    /// What both set.
    pub settings: Vec<&'static str>,
    /// On how many hosts.
    pub hosts: usize,
}

/// What was measured longer ago than so many periods is unknown.
pub const STALE_PERIODS: u64 = 2;

/// Decides by a policy and a view, and remembers what was decided.
///
/// The same policy, views and history give the same decisions on every machine; nothing else is looked at.
pub fn decide(policy: &Policy, view: &NetworkView, history: &mut History) -> Decision {
    let fresh = view.without_stale(policy.period * STALE_PERIODS);
    let view = fresh.as_ref();
    history.begin(policy, view);
    let weight = match (policy.smoothing, history.last_at) {
        (Some(constant), Some(last)) => {
            let periods = view.at.saturating_sub(last).as_secs_f64() / constant.as_secs_f64();
            1.0 - libm::exp(-periods)
        }
        // nothing is remembered yet; what is blended now is kept
        (Some(_), None) => 0.0,
        (None, _) => 1.0,
    };
    history.last_at = Some(view.at);
    history.last_place = last_place(policy, history);
    let History { epoch, population, boundary, last_place, marks, ports, rules, ended, .. } = history;
    let (last_place, is_kept) = (*last_place, boundary.is_kept);
    let facts = Facts { view, marks, ports };
    let mut decision = Decision {
        at: view.at,
        epoch: *epoch,
        mode: policy.mode,
        hosts: view.hosts.len(),
        treated: 0,
        treating: last_place.is_some(),
        constraints: Vec::new(),
        rules: Vec::new(),
        conflicts: Vec::new(),
        cues: Vec::new(),
    };
    for constraint in &policy.constraints {
        // What must hold is looked at as it is, not as it was in the mean.
        let inputs = constraint.holds.program.network_inputs(facts);
        decision.constraints.push(ConstraintReport {
            name: constraint.name.clone(),
            text: constraint.holds.text().to_string(),
            holds: known(constraint.holds.program.run(&inputs)),
            values: constraint.holds.explained(&inputs),
        });
    }
    let broken = decision.constraints.iter().find(|constraint| constraint.holds == Some(false));
    let broken = broken.map(|constraint| format!("the constraint `{}` does not hold", constraint.name));
    let broken = ended.clone().or(broken);
    let round = Round { policy, facts, population, last_place, is_kept, weight, broken };
    decision.treated = (0..view.hosts.len()).filter(|host| round.is_treated(*host)).count();
    for ((rank, rule), state) in policy.rules.iter().enumerate().zip(rules.iter_mut()) {
        decision.rules.push(round.decide(rank, rule, state));
    }
    decision.conflicts = conflicts(policy, rules);
    for ((report, rule), state) in decision.rules.iter_mut().zip(&policy.rules).zip(rules.iter()) {
        round.cues(report, rule, state, (decision.epoch, &mut decision.cues));
    }
    decision
}

/// The last place in the policy's order that is treated now.
fn last_place(policy: &Policy, history: &mut History) -> Option<u64> {
    let since = history.lasted();
    if let Design::Switchback { periods } = policy.rollout.design {
        let block = policy.period.as_ps().saturating_mul(u64::from(periods));
        if since.as_ps() / block % 2 == 1 {
            return None;
        }
    }
    history.boundary.follow(&history.population, &policy.rollout, since);
    history.boundary.last
}

fn known(flag: f64) -> Option<bool> {
    (!flag.is_nan()).then_some(flag != 0.0)
}

/// One decision's circumstances.
struct Round<'a> {
    policy: &'a Policy,
    facts: Facts<'a>,
    population: &'a Population,
    last_place: Option<u64>,
    /// Something was sent before to hosts up to there.
    is_kept: bool,
    /// Of new values against remembered ones.
    weight: f64,
    /// What keeps everything back: that the rollout is over, or a constraint.
    broken: Option<String>,
}

/// What a rule's hosts have in common.
struct Matched {
    count: usize,
    srtt_p99: Option<f64>,
    live_flows: f64,
    /// Hosts that run an algorithm that reacts to other signals than the rule's.
    clash: Option<String>,
}

impl Round<'_> {
    fn is_treated(&self, host: usize) -> bool {
        self.population.eligible[host] && self.last_place.is_some_and(|last| self.population.places[host] <= last)
    }

    fn is_matched(&self, rule: &Rule, index: usize, host: &Host) -> bool {
        let chosen = match &rule.hosts.which {
            Hosts::All => true,
            Hosts::Treated => self.is_treated(index),
            Hosts::Named(patterns) => {
                self.is_treated(index) && patterns.iter().any(|pattern| fits(pattern, &host.name))
            }
        };
        chosen && has_labels(&host.labels, &rule.hosts.labels)
    }

    fn decide(&self, rank: usize, rule: &Rule, state: &mut RuleState) -> RuleReport {
        let matched = self.matched(rule, state);
        let withheld = self.withheld(rule, &matched);
        let when = state.when.network(&rule.when, self.facts, self.weight);
        let until = rule.until.as_ref().map(|until| state.until.network(until, self.facts, self.weight));
        let mut report = RuleReport {
            name: rule.name.clone(),
            rank,
            turn: None,
            values: Vec::new(),
            seen: Seen::of(&rule.when),
            withheld,
            srtt_p99: matched.srtt_p99.map(|us| Time::from_secs_f64(us / 1e6)),
            hosts: HostCounts { matched: matched.count, ..HostCounts::default() },
            lacking: Vec::new(),
        };
        let limits = Limits { now: self.facts.view.at, hold: rule.hold, flap: self.policy.flap_limit };
        if rule.is_per_host() {
            self.turn_hosts(rule, state, (when, until), (&mut report, limits));
        } else {
            report.values = rule.when.explained(&when);
            Seen::take(&mut report.seen, &when);
            if let (Some(until), Some(inputs)) = (&rule.until, &until) {
                let more = until.explained(inputs);
                report.values.extend(more.into_iter().filter(|value| !rule.when.explained(&when).contains(value)));
            }
            let wish =
                if report.withheld.is_some() { None } else { wish(rule, state.network.is_on(), &when, until.as_ref()) };
            let turn = state.network.step(wish, limits);
            report.turn = Some(turn);
            for of_host in state.turns.iter_mut().flatten() {
                *of_host = turn;
                report.hosts.count(turn);
            }
        }
        self.leave_out_without_ecn(rule, state, &mut report);
        self.leave_out_without_algorithm(rule, state, &mut report);
        report.hosts.addressed = state.turns.iter().flatten().filter(|turn| turn.is_on()).count();
        report
    }

    /// Looks through the hosts that the rule is for, and notes in `turns` which they are.
    fn matched(&self, rule: &Rule, state: &mut RuleState) -> Matched {
        let mut matched = Matched { count: 0, srtt_p99: None, live_flows: 0.0, clash: None };
        let mut bins = RttBins::new();
        let ours = rule.set.cc.as_ref().and_then(|cc| self.policy.algorithm(cc));
        let ours = ours.filter(|_| !self.policy.allow_mixed_measures);
        state.turns.clear();
        for (index, host) in self.facts.view.hosts.iter().enumerate() {
            let is_matched = self.is_matched(rule, index, host);
            state.turns.push(is_matched.then_some(Turn::Off));
            // Hosts beside the matched ones share their links.
            if let Some(ours) = ours.filter(|ours| ours.name != host.cc && matched.clash.is_none())
                && let Some(theirs) = self.policy.algorithm(&host.cc)
                && ours.measures.differ(theirs.measures)
            {
                matched.clash = Some(format!(
                    "`{}` reacts to {}, `{}` of host {} to {}; `allow_mixed_measures` would allow it",
                    ours.name, ours.measures, theirs.name, host.name, theirs.measures
                ));
            }
            if is_matched {
                matched.count += 1;
                matched.live_flows += host.live_flows.unwrap_or(0.0);
                host.srtt_us.iter().for_each(|(us, sessions)| bins.add(*us, *sessions));
            }
        }
        matched.srtt_p99 = bins.p99_us();
        matched
    }

    /// Why the rule is off whatever it wishes.
    fn withheld(&self, rule: &Rule, matched: &Matched) -> Option<String> {
        let period = self.policy.period;
        let unstable = match matched.srtt_p99 {
            Some(us) => {
                let least = Time::from_secs_f64(us / 1e6) * STABILITY_FACTOR;
                (period <= least).then(|| {
                    let srtt = Unit::Duration.show(us / 1e6);
                    format!(
                        "T = {period} is not more than {STABILITY_FACTOR} RTTs: the p99 of srtt over the matched \
                         sessions is {srtt}"
                    )
                })
            }
            None if matched.live_flows > 0.0 => {
                Some("the RTTs of the matched sessions are not known, so T cannot be compared with them".into())
            }
            None => None,
        };
        let clash = matched.clash.as_ref().filter(|_| rule.set.cc.is_some() && matched.count > 0);
        self.broken.clone().or(unstable).or_else(|| clash.cloned())
    }

    /// Decides host by host.
    fn turn_hosts(
        &self,
        rule: &Rule,
        state: &mut RuleState,
        (mut when, mut until): (Inputs, Option<Inputs>),
        (report, limits): (&mut RuleReport, Limits),
    ) {
        state.hosts.resize(self.facts.view.hosts.len(), crate::switch::Switch::default());
        let RuleState { hosts, turns, when: smooth_when, until: smooth_until, .. } = state;
        for (index, (switch, turn)) in hosts.iter_mut().zip(turns.iter_mut()).enumerate() {
            let Some(turn) = turn else { continue };
            smooth_when.host(&rule.when, self.facts, (index, self.weight), &mut when);
            Seen::take(&mut report.seen, &when);
            if let (Some(expression), Some(inputs)) = (&rule.until, &mut until) {
                smooth_until.host(expression, self.facts, (index, self.weight), inputs);
            }
            let wish = if report.withheld.is_some() { None } else { wish(rule, switch.is_on(), &when, until.as_ref()) };
            *turn = switch.step(wish, limits);
            report.hosts.count(*turn);
        }
    }

    /// Takes hosts out whose network does not mark, if the algorithm needs marks.
    fn leave_out_without_ecn(&self, rule: &Rule, state: &mut RuleState, report: &mut RuleReport) {
        let cc = rule.set.cc.as_ref().and_then(|cc| self.policy.algorithm(cc));
        if !cc.is_some_and(|cc| cc.needs_ecn) {
            return;
        }
        for (turn, marks) in state.turns.iter_mut().zip(self.facts.marks) {
            if turn.is_some_and(Turn::is_on) && (marks.is_nan() || *marks == 0.0) {
                *turn = Some(Turn::Off);
                report.hosts.no_ecn += 1;
            }
        }
    }

    /// Takes hosts out that do not have the algorithm, by what they report.
    fn leave_out_without_algorithm(&self, rule: &Rule, state: &mut RuleState, report: &mut RuleReport) {
        let Some(cc) = &rule.set.cc else { return };
        for (turn, host) in state.turns.iter_mut().zip(&self.facts.view.hosts) {
            let lacks = !host.algorithms.is_empty() && provided(cc, &host.algorithms).is_none();
            if turn.is_some_and(Turn::is_on) && lacks {
                *turn = Some(Turn::Off);
                report.hosts.no_algorithm += 1;
                if report.lacking.len() < LACKING_MAX {
                    report.lacking.push(host.name.clone());
                }
            }
        }
    }

    /// The CUEs of a rule: one, if all hosts that it is for are addressed, else as many as it takes to name them.
    fn cues(&self, report: &RuleReport, rule: &Rule, state: &RuleState, (epoch, out): (u64, &mut Vec<Cue>)) {
        // while all that are treated are away it stays on for them: some may hear it, and those that come back are not switched anew
        let is_for_absent = self.is_kept && report.hosts.matched == 0 && report.turn.is_some_and(Turn::is_on);
        if report.hosts.addressed == 0 && !is_for_absent {
            return;
        }
        let reason = if report.values.is_empty() { rule.when.text().to_string() } else { report.values.join("; ") };
        let cue = |id: usize, hosts: Addressees| Cue {
            epoch,
            id: id as u32,
            policy: self.policy.name.clone(),
            rule: rule.name.clone(),
            rank: report.rank as u16,
            lifetime: self.policy.lifetime,
            scope: self.scope(rule, hosts),
            set: rule.set.clone(),
            guard: rule
                .guard
                .as_ref()
                .map(|guard| CueGuard { revert_if: guard.revert_if.text().to_string(), hold: guard.hold }),
            reason: clipped(&reason),
        };
        if report.hosts.addressed == report.hosts.matched {
            let hosts = match (&rule.hosts.which, self.last_place) {
                (Hosts::All, _) | (_, Some(u64::MAX)) => Addressees::All,
                (_, Some(last)) => Addressees::UpTo(last),
                (_, None) => return,
            };
            out.push(cue(out.len(), hosts));
            return;
        }
        let names = self.facts.view.hosts.iter().zip(&state.turns);
        let names: Vec<&str> =
            names.filter(|(_, turn)| turn.is_some_and(Turn::is_on)).map(|(host, _)| host.name.as_str()).collect();
        for named in names.chunks(NAMED_MAX) {
            let named = named.iter().map(|name| (*name).to_string()).collect();
            out.push(cue(out.len(), Addressees::Named(named)));
        }
    }

    fn scope(&self, rule: &Rule, hosts: Addressees) -> CueScope {
        let sessions = rule.sessions.clone();
        // Hosts that are named have been looked at one by one.
        if matches!(hosts, Addressees::Named(_)) {
            return CueScope { hosts, names: Vec::new(), labels: BTreeMap::new(), sessions };
        }
        let names = match &rule.hosts.which {
            Hosts::Named(patterns) => patterns.clone(),
            _ => Vec::new(),
        };
        let mut labels = rule.hosts.labels.clone();
        if rule.hosts.which != Hosts::All {
            labels.extend(self.policy.rollout.labels.clone());
        }
        CueScope { hosts, names, labels, sessions }
    }
}

/// What a rule's condition asks for; `None`: it is not known.
fn wish(rule: &Rule, on: bool, when: &Inputs, until: Option<&Inputs>) -> Option<bool> {
    let ends = rule.until.as_ref().zip(until).map(|(until, inputs)| known(until.program.run(inputs)));
    let holds = || known(rule.when.program.run(when));
    match ends {
        None => holds(),
        Some(None) => None,
        Some(Some(true)) => Some(false),
        Some(Some(false)) => {
            if on {
                Some(true)
            } else {
                holds()
            }
        }
    }
}

/// Pairs of rules that are on for the same hosts and whose settings clash on sessions of both.
fn conflicts(policy: &Policy, states: &[RuleState]) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for (j, second) in policy.rules.iter().enumerate() {
        for (i, first) in policy.rules[..j].iter().enumerate() {
            let settings = first.set.clashes(&second.set);
            if settings.is_empty() || !first.sessions.overlaps(&second.sessions) {
                continue;
            }
            let both = states[i].turns.iter().zip(&states[j].turns);
            let is_on = |turn: &Option<Turn>| turn.is_some_and(Turn::is_on);
            let hosts = both.filter(|(one, other)| is_on(one) && is_on(other)).count();
            if hosts > 0 {
                conflicts.push(Conflict { first: first.name.clone(), second: second.name.clone(), settings, hosts });
            }
        }
    }
    conflicts
}
