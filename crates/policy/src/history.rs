//! What the Oracle remembers from one decision to the next.

use crate::expression::Expression;
use crate::model::Policy;
use crate::population::{Boundary, Population, every_hop_marks};
use crate::ports::Ports;
use crate::program::{Facts, Input, Inputs};
use crate::switch::{Switch, Turn};
use crate::unit::Unit;
use crate::variable::{Read, Scope};
use crate::view::NetworkView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Time;

/// What the Oracle remembers: the epoch, which rules are on and since when, and smoothed values. Its buffers are reused, so that
/// deciding on the same hosts allocates nothing for each of them.
#[derive(Debug, Clone, Default)]
pub struct History {
    pub(crate) epoch: u64,
    pub(crate) started: Option<Time>,
    pub(crate) last_at: Option<Time>,
    pub(crate) population: Population,
    /// Up to which place the rollout's share reaches.
    pub(crate) boundary: Boundary,
    /// The last place that is treated; `None`: no host is.
    pub(crate) last_place: Option<u64>,
    /// `host.every_hop_marks` of each host; empty where no rule asks.
    pub(crate) marks: Vec<f64>,
    /// The links to hosts; empty where nothing asks.
    pub(crate) ports: Ports,
    pub(crate) rules: Vec<RuleState>,
    /// How long the rollout had lasted when this history began.
    pub(crate) lasted_before: Time,
    /// Why the rollout is over.
    pub(crate) ended: Option<String>,
}

/// Most hosts of a rule whose switches outlive an Oracle, or their absence.
const KEPT_MAX: usize = 4096;

/// How far a rollout has come, for a restarted Oracle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The stage that it has reached, by its `after`.
    pub lasted: Time,
    /// Why it is over.
    pub ended: Option<String>,
    /// Which rules are on, or held off, in the order of the policy; none if no rule is held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<RuleSwitches>,
    /// Up to which place in the policy's order hosts are treated in that stage; `None` if nothing was sent yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_place: Option<u64>,
}

/// Whether a rule with a hold time is on, or off and held so. Since when is not kept: another Oracle has another clock, and holds
/// it for the whole time again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleSwitches {
    /// Of a rule that is decided for the whole network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Of a rule that is decided host by host: the places of hosts for which it is on ...
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<u64>,
    /// ... and for which it is held off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<u64>,
}

impl History {
    /// A history that continues with the epoch after `epoch`, the last one of an earlier Oracle.
    pub fn after(epoch: u64) -> History {
        History { epoch, ..History::default() }
    }

    /// The same history of a rollout that has come so far already.
    #[must_use]
    pub fn resume(self, progress: Progress) -> History {
        let mut history = self;
        history.restore(progress);
        history
    }

    /// The same for an Oracle that begins to decide for others: rules that are on stay on. Its next epoch is the one after `epoch`, and
    /// the rollout has come as far as they had it.
    pub(crate) fn take_over(&mut self, epoch: u64, progress: Progress) {
        (self.epoch, self.started) = (epoch, None);
        self.restore(progress);
    }

    /// Takes over how far the rollout has come, and which rules are on, if that is known.
    fn restore(&mut self, Progress { lasted, ended, switches, last_place }: Progress) {
        let now = self.last_at.unwrap_or_default();
        (self.lasted_before, self.ended) = (lasted, ended);
        self.boundary = Boundary { last: last_place, stage: lasted, is_kept: last_place.is_some() };
        self.rules.resize_with(self.rules.len().max(switches.len()), RuleState::default);
        for (state, kept) in self.rules.iter_mut().zip(&switches) {
            state.network = kept.network.map_or_else(Switch::default, |on| Switch::kept(on, now));
            let places =
                |places: &[u64], on| places.iter().map(move |place| (*place, on)).collect::<Vec<(u64, bool)>>();
            state.kept = places(&kept.off, false).into_iter().chain(places(&kept.on, true)).take(KEPT_MAX).collect();
            state.hosts.fill(Switch::default());
            for (place, switch) in self.population.places.iter().zip(&mut state.hosts) {
                *switch = state.kept.remove(place).map_or_else(Switch::default, |on| Switch::kept(on, now));
            }
        }
    }

    /// How far the rollout has come by the last decision.
    pub(crate) fn progress(&self, policy: &Policy) -> Progress {
        let stage = policy.rollout.stage(self.lasted());
        let lasted = stage.map_or(Time::ZERO, |stage| stage.after);
        let now = self.last_at.unwrap_or_default();
        let rules = policy.rules.iter().zip(&self.rules);
        let switches = rules.map(|(rule, state)| state.switches(&self.population.places, now, rule.hold));
        let mut switches: Vec<RuleSwitches> = switches.collect();
        if switches.iter().all(|switches| *switches == RuleSwitches::default()) {
            switches.clear();
        }
        Progress { lasted, ended: self.ended.clone(), switches, last_place: self.boundary.kept() }
    }

    /// How long the rollout has lasted by the last decision.
    pub(crate) fn lasted(&self) -> Time {
        let now = self.last_at.unwrap_or_default();
        self.lasted_before.saturating_add(now.saturating_sub(self.started.unwrap_or(now)))
    }

    /// The time since the last decision does not count for the rollout: nobody was treated in it.
    pub(crate) fn stand_still(&mut self, now: Time) {
        let since = now.saturating_sub(self.last_at.unwrap_or(now));
        self.started = self.started.map(|started| started.saturating_add(since));
    }

    /// The epoch of the last decision.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the last decision treated this host of its view.
    pub(crate) fn is_treated(&self, host: usize) -> bool {
        let place = self.population.places.get(host).filter(|_| self.population.eligible[host]);
        place.is_some_and(|place| self.last_place.is_some_and(|last| *place <= last))
    }

    /// Ends the rollout: from the next decision on nothing is set, and every rule says `why`.
    pub fn roll_back(&mut self, why: String) {
        self.ended = Some(why);
    }

    /// Makes room for a view.
    pub(crate) fn begin(&mut self, policy: &Policy, view: &NetworkView) {
        self.epoch += 1;
        self.started.get_or_insert(view.at);
        self.rules.resize_with(policy.rules.len(), RuleState::default);
        if self.population.update(&policy.name, &policy.rollout.labels, view) {
            for state in &mut self.rules {
                state.move_hosts(&self.population.before, &self.population.places, view.at);
            }
        }
        self.marks = if asks_for_marks(policy) { every_hop_marks(view) } else { Vec::new() };
        self.ports = if asks_for_ports(policy) { Ports::of_view(view) } else { Ports::default() };
    }
}

fn asks_for_marks(policy: &Policy) -> bool {
    policy.rules.iter().any(|rule| {
        let needs_ecn = rule.set.cc.as_ref().and_then(|cc| policy.algorithm(cc)).is_some_and(|cc| cc.needs_ecn);
        let asked = [Some(&rule.when), rule.until.as_ref()].into_iter().flatten().flat_map(Expression::variables);
        needs_ecn || asked.into_iter().any(|variable| variable.name == "host.every_hop_marks")
    })
}

fn asks_for_ports(policy: &Policy) -> bool {
    let of_rules = policy.rules.iter().flat_map(|rule| [Some(&rule.when), rule.until.as_ref()]).flatten();
    let all = of_rules.chain(policy.constraints.iter().map(|constraint| &constraint.holds));
    all.flat_map(Expression::variables).any(|variable| matches!(variable.read, Read::Port(_)))
}

/// A rule's memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleState {
    /// Of a rule that is decided for the whole network.
    pub network: Switch,
    /// Of a rule that is decided host by host, in the order of the view.
    pub hosts: Vec<Switch>,
    pub when: Smoother,
    pub until: Smoother,
    /// By place, of hosts that are not in the view: whether it was on when an earlier Oracle ended; off of those that left.
    kept: BTreeMap<u64, bool>,
    /// What became of each host in this round; `None`: the rule is not for it.
    pub turns: Vec<Option<Turn>>,
}

impl RuleState {
    /// What of it outlives an Oracle; nothing of a rule without a hold time.
    fn switches(&self, places: &[u64], now: Time, hold: Time) -> RuleSwitches {
        if hold == Time::ZERO {
            return RuleSwitches::default();
        }
        let state = |switch: &Switch| (switch.is_on() || switch.is_held(now, hold)).then_some(switch.is_on());
        let present = places.iter().zip(&self.hosts).filter_map(|(place, switch)| Some((*place, state(switch)?)));
        let all: BTreeMap<u64, bool> = self.kept.iter().map(|(place, on)| (*place, *on)).chain(present).collect();
        let of = |wanted: bool| {
            let places = all.iter().filter(|(_, on)| **on == wanted).map(|(place, _)| *place);
            places.take(KEPT_MAX).collect::<Vec<u64>>()
        };
        RuleSwitches { network: state(&self.network), on: of(true), off: of(false) }
    }

    /// Hosts have come or gone: the others keep what they have, and one that comes back is held off, if it left with the rule switched.
    fn move_hosts(&mut self, before: &[u64], now: &[u64], at: Time) {
        let mut known: BTreeMap<u64, Switch> = before.iter().copied().zip(self.hosts.iter().copied()).collect();
        let hosts = now.iter().map(|place| {
            let left = |on| Switch::kept(on, at);
            known.remove(place).or_else(|| self.kept.remove(place).map(left)).unwrap_or_default()
        });
        self.hosts = hosts.collect();
        let gone = known.into_iter().filter(|(_, switch)| *switch != Switch::default());
        for (place, _) in gone {
            if self.kept.len() < KEPT_MAX {
                self.kept.insert(place, false);
            }
        }
        self.when.forget_hosts();
        self.until.forget_hosts();
    }
}

/// Exponential smoothing of an expression's inputs. The time of day and what is true or false are not
/// smoothed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Smoother {
    network: Vec<f64>,
    /// Of each host, as many as there are inputs.
    hosts: Vec<f64>,
}

impl Smoother {
    /// The network's inputs; `weight` is that of the new values, 1 without smoothing.
    pub(crate) fn network(&mut self, expression: &Expression, facts: Facts<'_>, weight: f64) -> Inputs {
        let mut inputs = expression.program.network_inputs(facts);
        if weight < 1.0 {
            let n = expression.program.inputs.len();
            self.network.resize(n, f64::NAN);
            blend(&expression.program.inputs, &mut self.network, &mut inputs, weight, Scope::Network);
        }
        inputs
    }

    /// Adds the inputs of host `index`.
    pub(crate) fn host(&mut self, expression: &Expression, facts: Facts<'_>, at: (usize, f64), inputs: &mut Inputs) {
        let (index, weight) = at;
        expression.of_host(facts, index, inputs);
        if weight < 1.0 {
            let n = expression.program.inputs.len();
            self.hosts.resize(n * facts.view.hosts.len(), f64::NAN);
            let kept = &mut self.hosts[index * n..(index + 1) * n];
            blend(&expression.program.inputs, kept, inputs, weight, Scope::Host);
        }
    }

    fn forget_hosts(&mut self) {
        self.hosts.clear();
    }
}

fn blend(kinds: &[Input], kept: &mut [f64], inputs: &mut Inputs, weight: f64, scope: Scope) {
    for ((kind, kept), value) in kinds.iter().zip(kept).zip(inputs.iter_mut()) {
        let Input::Variable(variable) = kind else { continue };
        if variable.scope() != scope || variable.unit == Unit::Flag || variable.name.starts_with("clock.") {
            continue;
        }
        if !kept.is_nan() && !value.is_nan() {
            *value = *kept + weight * (*value - *kept);
        }
        *kept = *value;
    }
}
