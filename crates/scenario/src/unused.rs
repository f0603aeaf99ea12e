//! What was asked for and changes nothing: overrides, and axes of a sweep.

use crate::load::{Input, Run, default_name, plan, run};
use crate::model::{Preset, Scenario, Topology};
use crate::overrides::{parse_sets, within};
use crate::read::Context;
use document::tree::dotted;
use std::collections::BTreeMap;

/// An override, or an axis of a sweep, without which the scenario is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// The override as it was given, or the axis' key.
    pub what: String,
    /// The reason, and what to set instead.
    pub why: String,
}

/// Entries and tiers that a message names at most.
const NAMED: usize = 3;

impl Scenario {
    /// The overrides and axes of `input` that change none of its `runs`.
    pub fn unused(input: &Input<'_>, runs: &[Run]) -> Vec<Unused> {
        let sets = (0..input.sets.len()).filter_map(|number| unused_set(input, runs, number));
        sets.chain(unused_axes(runs)).collect()
    }

    /// This scenario as hosts and links see it: a default that each of them overrides is left at one value.
    fn effective(&self) -> Scenario {
        let mut scenario = self.clone();
        scenario.tcp.preset = Preset::Linux;
        if let Some(cc) = self.unused_algorithm() {
            scenario.tcp.cc = cc;
        }
        // a checked scenario has the settings of each tier, or of each cable, written out
        let own = match &self.network.topology {
            Topology::Explicit { links, .. } => links.first().map(|link| (link.rate, link.delay, link.queue)),
            _ => self.network.tier.values().next().map(|tier| (tier.rate, tier.delay, tier.queue)),
        };
        if let Some(own) = own {
            (scenario.network.rate, scenario.network.delay, scenario.network.queue) = own;
        }
        scenario
    }

    /// The algorithm in place of `tcp.cc` where no host uses that one. An Oracle's view has it, so with a policy it
    /// counts.
    fn unused_algorithm(&self) -> Option<crate::Algorithm> {
        let all_own = self.policy.is_none() && self.traffic.iter().all(|entry| entry.cc.is_some());
        if all_own { self.traffic.first()?.cc.clone() } else { None }
    }
}

/// The override with this number, if it changes nothing.
fn unused_set(input: &Input<'_>, runs: &[Run], number: usize) -> Option<Unused> {
    let mut others = input.sets.to_vec();
    let what = others.remove(number);
    let without = Input { sets: &others, ..*input };
    let plan = plan(&without).ok()?;
    if plan.sweep.axes.iter().map(|axis| axis.values.len()).product::<usize>() != runs.len() {
        return None;
    }
    let context = Context::new(input.known, input.files, default_name(input), Vec::new());
    let mut why = None;
    for (place, with) in runs.iter().enumerate() {
        let without = run(&plan, &context, place).ok().filter(|without| without.parameters == with.parameters)?;
        if with.scenario.effective() != without.scenario.effective() {
            return None;
        }
        why = why.or_else(|| overridden(&with.scenario, &without.scenario));
    }
    // who goes through seeds comes to the scenario's own, too
    if why.is_none() && parse_sets(input.sets).is_ok_and(|parsed| dotted(&parsed[number].0) == "seed") {
        return None;
    }
    let same = || {
        let replaced = is_replaced(input.sets, number);
        let why = if replaced { "a later override replaces it" } else { "the scenario has this value without it" };
        why.to_string()
    };
    Some(Unused { what, why: why.unwrap_or_else(same) })
}

/// Whether a later override sets the same key, or a table around it.
fn is_replaced(sets: &[String], number: usize) -> bool {
    let Ok(parsed) = parse_sets(sets) else { return false };
    let (path, _) = &parsed[number];
    parsed[number + 1..].iter().any(|(later, _)| within(path, later))
}

/// Axes with several values, of which each gives the same network, traffic and TCP.
fn unused_axes(runs: &[Run]) -> Vec<Unused> {
    let keys = runs.first().map(|run| run.parameters.len()).unwrap_or_default();
    (0..keys).filter_map(|axis| unused_axis(runs, axis)).collect()
}

fn unused_axis(runs: &[Run], axis: usize) -> Option<Unused> {
    let mut first: BTreeMap<Vec<&str>, &Run> = BTreeMap::new();
    let mut why = None;
    for run in runs {
        let others = run.parameters.iter().enumerate().filter(|(place, _)| *place != axis);
        let others = others.map(|(_, (_, value))| value.as_str()).collect();
        let alike = *first.entry(others).or_insert(run);
        if alike.parameters[axis].1 == run.parameters[axis].1 {
            continue;
        }
        if alike.scenario.effective() != run.scenario.effective() {
            return None;
        }
        why = why.or_else(|| overridden(&alike.scenario, &run.scenario));
    }
    why.map(|why| Unused { what: runs[0].parameters[axis].0.clone(), why })
}

/// Why two scenarios that are the same to hosts and links differ, if they do.
fn overridden(one: &Scenario, other: &Scenario) -> Option<String> {
    if one.tcp.cc != other.tcp.cc {
        let names = one.traffic.iter().map(|entry| format!("traffic.{}.cc", entry.name));
        return Some(format!("each traffic entry names its own algorithm; set {}", some_of(names)));
    }
    let key = if one.network.rate != other.network.rate {
        "rate"
    } else if one.network.delay != other.network.delay {
        "delay"
    } else if one.network.queue != other.network.queue {
        "queue"
    } else {
        return (one.tcp.preset != other.tcp.preset).then(|| "each key of `[tcp]` has a value of its own".to_string());
    };
    if matches!(one.network.topology, Topology::Explicit { .. }) {
        return Some(format!("each link of this topology has a {key} of its own"));
    }
    let tiers = one.network.tier.keys().map(|tier| format!("network.tier.{}.{key}", tier.key()));
    Some(format!("each tier of the network has a {key} of its own; set {}", some_of(tiers)))
}

/// `a, b or c`; of many, the first few.
fn some_of(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let many = names.len() > NAMED;
    names.truncate(NAMED);
    match names.split_last() {
        Some((_, _)) if many => format!("{} …", names.join(", ")),
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
