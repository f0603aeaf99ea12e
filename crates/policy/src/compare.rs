//! What one policy would change against another, host by host, in a network as it is now.

use crate::algorithm::provided;
use crate::cue::Addressees;
use crate::decide::Decision;
use crate::model::{Mode, Policy, Rule};
use crate::population::has_labels;
use crate::select::{Hosts, fits};
use crate::view::{Host, NetworkView};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Most hosts that a list names.
const NAMED: usize = 8;

/// What a policy would change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Hosts of the view.
    pub hosts: usize,
    /// What the policies themselves say differently: key, from, to.
    pub keys: Vec<(String, String, String)>,
    /// Rules of both, first those of the new policy.
    pub rules: Vec<RuleChange>,
}

/// What would become of a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleChange {
    /// Its name.
    pub name: String,
    /// Only in one of both policies, or in both.
    pub place: RulePlace,
    /// What else than its settings is different.
    pub changed: Vec<String>,
    /// Settings that differ; of a rule in one policy, all.
    pub settings: Vec<SettingChange>,
    /// Hosts that would get its settings.
    pub get: HostList,
    /// Hosts that would lose them.
    pub lose: HostList,
    /// Hosts that have them, and would.
    pub keep: HostList,
    /// Why the new policy withholds it now.
    pub withheld: Option<String>,
    /// Hosts that it is or may be for and that lack its algorithm.
    pub lacking: HostList,
    /// That algorithm.
    pub cc: Option<String>,
}

/// In which policy a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RulePlace {
    /// In the new one.
    Added,
    /// In the old one.
    Removed,
    /// In both.
    Both,
}

/// A setting, and its values; `None`: not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// Its name.
    pub name: String,
    /// The old policy's.
    pub from: Option<String>,
    /// The new policy's.
    pub to: Option<String>,
}

/// Some hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostList {
    /// How many.
    pub count: usize,
    /// The first of them.
    pub first: Vec<String>,
}

impl HostList {
    fn add(&mut self, host: &str) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(host.to_string());
        }
    }
}

/// A policy, and what it decided on a view.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// Its decision.
    pub decision: &'a Decision,
}

impl Comparison {
    /// What `new` would change against `old`, which both decided on `view`. What an observing policy decides is not sent, and no change.
    pub fn of(view: &NetworkView, old: Decided<'_>, new: Decided<'_>) -> Comparison {
        let of = |policy: &Policy| {
            [
                ("name", policy.name.clone()),
                ("mode", if policy.mode == Mode::Observe { "observe" } else { "enforce" }.to_string()),
                ("period", policy.period.to_string()),
                ("lifetime", policy.lifetime.to_string()),
                ("time_zone", policy.time_zone.name().to_string()),
            ]
        };
        let pairs = of(old.policy).into_iter().zip(of(new.policy)).chain([
            (("treated now", treated(old)), ("treated now", treated(new))),
            (("rules", old.policy.rules.len().to_string()), ("rules", new.policy.rules.len().to_string())),
        ]);
        let keys = pairs.filter(|((_, from), (_, to))| from != to);
        let keys = keys.map(|((key, from), (_, to))| (key.to_string(), from, to)).collect();
        let (before, after) = (On::of(view, old), On::of(view, new));
        let named = |policy: &'_ Policy, name: &str| policy.rules.iter().position(|rule| rule.name == name);
        let kept = new.policy.rules.iter().enumerate().map(|(i, rule)| {
            let was = named(old.policy, &rule.name);
            let change = RuleChange::of(was.map(|was| &old.policy.rules[was]), Some(rule));
            let change = change.on_hosts(view, (was.map(|was| &before.0[was]), Some(&after.0[i])));
            let withheld = new.decision.rules.get(i).and_then(|report| report.withheld.clone());
            RuleChange { withheld, lacking: lacking(view, new.policy, rule), ..change }
        });
        let gone = old.policy.rules.iter().enumerate().filter(|(_, rule)| named(new.policy, &rule.name).is_none());
        let gone = gone.map(|(i, rule)| RuleChange::of(Some(rule), None).on_hosts(view, (Some(&before.0[i]), None)));
        Comparison { hosts: view.hosts.len(), keys, rules: kept.chain(gone).collect() }
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        let is_same = |rule: &RuleChange| {
            rule.place == RulePlace::Both
                && rule.settings.is_empty()
                && rule.changed.is_empty()
                && rule.get.count + rule.lose.count == 0
        };
        self.keys.is_empty() && self.rules.iter().all(is_same)
    }

    /// Rules whose algorithm some host lacks.
    pub fn lacking(&self) -> impl Iterator<Item = &RuleChange> {
        self.rules.iter().filter(|rule| rule.lacking.count > 0)
    }
}

fn treated(Decided { decision, .. }: Decided<'_>) -> String {
    format!("{} of {}", decision.treated, decision.hosts)
}

/// Of each rule of a policy, which hosts of a view its CUEs are for.
struct On(Vec<Vec<bool>>);

impl On {
    fn of(view: &NetworkView, Decided { policy, decision }: Decided<'_>) -> On {
        let mut on = vec![vec![false; view.hosts.len()]; policy.rules.len()];
        let mut names: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); policy.rules.len()];
        for cue in decision.to_send() {
            let rank = usize::from(cue.rank);
            match &cue.scope.hosts {
                Addressees::Named(hosts) => names[rank].extend(hosts.iter().map(String::as_str)),
                _ => on[rank]
                    .iter_mut()
                    .zip(&view.hosts)
                    .for_each(|(on, host)| *on |= cue.is_for(&host.name, &host.labels)),
            }
        }
        for (on, names) in on.iter_mut().zip(&names) {
            on.iter_mut().zip(&view.hosts).for_each(|(on, host)| *on |= names.contains(host.name.as_str()));
        }
        On(on)
    }
}

/// Hosts that a rule is for once everybody is treated, and that lack its algorithm.
fn lacking(view: &NetworkView, policy: &Policy, rule: &Rule) -> HostList {
    let mut some = HostList::default();
    let Some(cc) = &rule.set.cc else { return some };
    let is_for = |host: &Host| {
        let named = match &rule.hosts.which {
            Hosts::Named(patterns) => patterns.iter().any(|pattern| fits(pattern, &host.name)),
            _ => true,
        };
        let of_rollout = rule.hosts.which == Hosts::All || has_labels(&host.labels, &policy.rollout.labels);
        named && of_rollout && has_labels(&host.labels, &rule.hosts.labels)
    };
    let lacks = |host: &&Host| !host.algorithms.is_empty() && provided(cc, &host.algorithms).is_none();
    view.hosts.iter().filter(|host| is_for(host)).filter(lacks).for_each(|host| some.add(&host.name));
    some
}

impl RuleChange {
    /// A rule's change, without its hosts.
    fn of(old: Option<&Rule>, new: Option<&Rule>) -> RuleChange {
        let values = |rule: Option<&Rule>| -> BTreeMap<String, String> {
            let value = rule.map(|rule| serde_json::to_value(&rule.set).expect("settings are plain data"));
            let Some(Value::Object(object)) = value else { return BTreeMap::new() };
            let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
            object.into_iter().map(|(name, value)| (name, text(value))).collect()
        };
        let (from, to) = (values(old), values(new));
        let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let settings = names.into_iter().filter(|name| from.get(*name) != to.get(*name)).map(|name| SettingChange {
            name: name.clone(),
            from: from.get(name).cloned(),
            to: to.get(name).cloned(),
        });
        let mut changed = Vec::new();
        if let (Some(old), Some(new)) = (old, new) {
            let until = |rule: &Rule| rule.until.as_ref().map(|until| until.text().to_string());
            let texts = [("when", old.when.text() != new.when.text()), ("until", until(old) != until(new))];
            let others = [
                ("hold", old.hold != new.hold),
                ("match", old.hosts != new.hosts || old.sessions != new.sessions),
                ("guard", old.guard != new.guard),
            ];
            changed.extend(
                texts.into_iter().chain(others).filter(|(_, differs)| *differs).map(|(key, _)| key.to_string()),
            );
        }
        let place = match (old, new) {
            (None, _) => RulePlace::Added,
            (_, None) => RulePlace::Removed,
            _ => RulePlace::Both,
        };
        let rule = new.or(old).expect("it is in one of both");
        RuleChange {
            name: rule.name.clone(),
            place,
            changed,
            settings: settings.collect(),
            get: HostList::default(),
            lose: HostList::default(),
            keep: HostList::default(),
            withheld: None,
            lacking: HostList::default(),
            cc: new.and_then(|new| new.set.cc.clone()),
        }
    }

    fn on_hosts(mut self, view: &NetworkView, (old, new): (Option<&Vec<bool>>, Option<&Vec<bool>>)) -> RuleChange {
        for (i, host) in view.hosts.iter().enumerate() {
            let is_on = |on: Option<&Vec<bool>>| on.is_some_and(|on| on[i]);
            match (is_on(old), is_on(new)) {
                (true, true) => self.keep.add(&host.name),
                (true, false) => self.lose.add(&host.name),
                (false, true) => self.get.add(&host.name),
                (false, false) => {}
            }
        }
        self
    }
}
