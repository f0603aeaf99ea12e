//! What a policy did over a time, or would have done: a policy that observes is judged by this before it enforces.

use super::line::{DecisionLine, RuleLine};
use audit::{Entry, Kind, Timestamp};
use policy::Seen;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most rules and most reasons that are kept apart.
const RULES_MAX: usize = 1024;
const REASONS_MAX: usize = 16;

/// What was observed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Observed {
    /// Decisions that observed, and decisions that were sent.
    pub observing: u64,
    /// Decisions of a policy that enforces.
    pub enforcing: u64,
    /// From the first decision.
    pub since: Option<String>,
    /// To the last one.
    pub until: Option<String>,
    /// By policy and rule, in the order in which they were met.
    pub rules: Vec<ObservedRule>,
    /// Rules that are not kept apart: more than there is room for.
    pub left_out: u64,
    #[serde(skip)]
    last: Option<(Timestamp, f64, Vec<usize>)>,
    #[serde(skip)]
    index: BTreeMap<(String, String, String, String), usize>,
}

/// What became of a rule, or would have.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ObservedRule {
    /// The policy.
    pub policy: String,
    /// The rule.
    pub rule: String,
    /// What it sets.
    pub set: String,
    /// `observe`: it would have; `enforce`: it did.
    pub mode: String,
    /// Decisions.
    pub decisions: u64,
    /// Decisions in which it was on for some host.
    pub on: u64,
    /// Times that it was switched on.
    pub switched_on: u64,
    /// How long it was on, seconds: until the next decision, at most two periods.
    pub on_s: f64,
    /// The longest time on without a break, seconds.
    pub longest_s: f64,
    /// Hosts on, of decisions in which it was: the fewest, on average, and the most.
    pub hosts_least: usize,
    /// On average.
    pub hosts_mean: f64,
    /// The most.
    pub hosts_most: usize,
    /// Hosts that it is for, at most.
    pub hosts_matched: usize,
    /// What it asked for while it was on, from which to which value.
    pub on_values: Vec<String>,
    /// The same while it was off.
    pub off_values: Vec<String>,
    /// Why it was withheld, and in how many decisions.
    pub withheld: Vec<Withheld>,
    /// Decisions in which too little was known of some host.
    pub unknown: u64,
    /// Decisions in which the hold time kept it on or off for some host.
    pub held: u64,
    /// Decisions in which it would have changed too often for some host.
    pub flap_limited: u64,
    /// Decisions in which hosts were left out because a hop does not mark.
    pub no_ecn: u64,
    /// Decisions in which hosts were left out because they lack the algorithm.
    pub no_algorithm: u64,
    /// The first of these hosts.
    pub lacking: Vec<String>,
    #[serde(skip)]
    ranges: [BTreeMap<String, (f64, f64)>; 2],
    #[serde(skip)]
    stretch_s: f64,
    #[serde(skip)]
    was_on: bool,
    #[serde(skip)]
    hosts_sum: u64,
}

/// A reason, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// Why, as it was said first.
    pub why: String,
    /// In how many decisions.
    pub decisions: u64,
    #[serde(skip)]
    shape: String,
}

impl Observed {
    /// Takes a line; those that are no decision say nothing here.
    pub fn take(&mut self, entry: &Entry) {
        if !entry.is(Kind::Decision) {
            return;
        }
        let Ok(line) = serde_json::from_value::<DecisionLine>(entry.body.clone()) else { return };
        *(if line.mode == "observe" { &mut self.observing } else { &mut self.enforcing }) += 1;
        let at = format!("{:.3}", entry.time);
        self.since.get_or_insert_with(|| at.clone());
        self.until = Some(at);
        self.lasted_until(entry.time);
        let mut on = Vec::new();
        for rule in &line.rules {
            let key = (line.policy.clone(), rule.name.clone(), rule.set.clone(), line.mode.clone());
            let at = match self.index.get(&key) {
                Some(at) => *at,
                None if self.rules.len() >= RULES_MAX => {
                    self.left_out += 1;
                    continue;
                }
                None => {
                    let (policy, name, set, mode) = key.clone();
                    self.rules.push(ObservedRule { policy, rule: name, set, mode, ..ObservedRule::default() });
                    self.index.insert(key, self.rules.len() - 1);
                    self.rules.len() - 1
                }
            };
            self.rules[at].take(rule);
            if rule.hosts.on > 0 {
                on.push(at);
            }
        }
        self.last = Some((entry.time, line.period_s, on));
    }

    /// What was on at the last decision was on until this one, or for two periods.
    fn lasted_until(&mut self, now: Timestamp) {
        let Some((at, period_s, on)) = self.last.take() else { return };
        let s = (now.as_millisecond() - at.as_millisecond()) as f64 / 1000.0;
        self.lasted(s.clamp(0.0, 2.0 * period_s), &on);
    }

    fn lasted(&mut self, s: f64, on: &[usize]) {
        for at in on {
            let rule = &mut self.rules[*at];
            rule.on_s += s;
            rule.stretch_s += s;
            rule.longest_s = rule.longest_s.max(rule.stretch_s);
        }
    }

    /// All of it, when the last line was taken. What was on at the last decision counts for one period more.
    #[must_use]
    pub fn finished(mut self) -> Observed {
        if let Some((_, period_s, on)) = self.last.take() {
            self.lasted(period_s, &on);
        }
        for rule in &mut self.rules {
            let [on, off] = &rule.ranges;
            let words = |ranges: &BTreeMap<String, (f64, f64)>| -> Vec<String> {
                ranges.iter().map(|(what, range)| Seen::named(what, Some(*range)).to_string()).collect()
            };
            (rule.on_values, rule.off_values) = (words(on), words(off));
            rule.hosts_mean = if rule.on > 0 { rule.hosts_sum as f64 / rule.on as f64 } else { 0.0 };
            rule.withheld.sort_by_key(|reason| std::cmp::Reverse(reason.decisions));
        }
        self
    }
}

impl ObservedRule {
    fn take(&mut self, line: &RuleLine) {
        let hosts = line.hosts;
        let is_on = hosts.on > 0;
        self.decisions += 1;
        self.hosts_matched = self.hosts_matched.max(hosts.matched);
        if is_on {
            self.hosts_least = if self.on == 0 { hosts.on } else { self.hosts_least.min(hosts.on) };
            self.hosts_most = self.hosts_most.max(hosts.on);
            self.hosts_sum += hosts.on as u64;
            self.on += 1;
            self.switched_on += u64::from(!self.was_on);
        }
        if !self.was_on {
            self.stretch_s = 0.0;
        }
        self.was_on = is_on;
        for (what, least, most) in &line.seen {
            let (Some(least), Some(most)) = (least, most) else { continue };
            let range = self.ranges[usize::from(!is_on)].entry(what.clone()).or_insert((*least, *most));
            *range = (range.0.min(*least), range.1.max(*most));
        }
        if let Some(why) = &line.withheld {
            let shape = super::changes::shape(why);
            match self.withheld.iter().position(|reason| reason.shape == shape) {
                Some(at) => self.withheld[at].decisions += 1,
                None if self.withheld.len() < REASONS_MAX => {
                    self.withheld.push(Withheld { why: why.clone(), decisions: 1, shape });
                }
                None => {}
            }
        } else {
            // what is withheld is not known either
            self.unknown += u64::from(hosts.unknown > 0);
        }
        self.held += u64::from(hosts.held_on + hosts.held_off > 0);
        self.flap_limited += u64::from(hosts.flap_limited > 0);
        self.no_ecn += u64::from(hosts.no_ecn > 0);
        self.no_algorithm += u64::from(hosts.no_algorithm > 0);
        if self.lacking.is_empty() {
            self.lacking.clone_from(&line.lacking);
        }
    }
}
