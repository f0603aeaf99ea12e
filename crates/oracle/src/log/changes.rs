//! From lines of the audit log to what has changed, for people.

use super::line::{CueLine, DecisionLine, RuleLine};
use crate::overview::{treated_words, verdict_words};
use audit::{Entry, Kind, Timestamp};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most policies whose last decision is remembered.
const POLICIES_MAX: usize = 16;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The line's sequence number.
    pub sequence: u64,
    /// When.
    #[serde(serialize_with = "to_second")]
    pub time: Timestamp,
    /// The line's kind.
    pub kind: String,
    /// The rule, the policy, or the host that it is about.
    pub what: String,
    /// What has happened, and why.
    pub words: String,
    /// How it is shown.
    #[serde(skip)]
    pub tone: Tone,
}

/// How a change is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// Something is set.
    Good,
    /// Something was withheld or paused.
    Notice,
    /// Something went wrong.
    Bad,
}

fn to_second<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{at:.3}"))
}

/// Compares each decision with the one before it. Its memory is one decision of each policy, of 16 policies at most.
#[derive(Debug, Default)]
pub struct Changes {
    last: BTreeMap<String, (DecisionLine, BTreeMap<String, Timestamp>)>,
    /// Every decision and every CUE, not only changes.
    all: bool,
}

impl Changes {
    /// Of every period if `all`, else what has changed.
    pub fn new(all: bool) -> Changes {
        Changes { all, ..Changes::default() }
    }

    /// What a line says that the ones before it did not.
    pub fn take(&mut self, entry: &Entry) -> Vec<Change> {
        let of = |what: &str, tone, words: String| Change {
            sequence: entry.sequence,
            time: entry.time,
            kind: entry.kind.clone(),
            what: what.to_string(),
            words,
            tone,
        };
        if entry.is(Kind::Decision) {
            let Ok(line) = serde_json::from_value::<DecisionLine>(entry.body.clone()) else {
                return vec![of("", Tone::Bad, format!("a decision that cannot be read: {}", entry.body))];
            };
            let mut changes = self.decided(entry, &line);
            if self.all {
                changes.push(of(&line.policy, Tone::Plain, line.words()));
            }
            self.keep(line, entry.time);
            return changes;
        }
        if entry.is(Kind::Cue) {
            if !self.all {
                return Vec::new();
            }
            return match serde_json::from_value::<CueLine>(entry.body.clone()) {
                Ok(CueLine { cue }) => {
                    let words = format!("CUE {} of epoch {}: {}, for {}", cue.id, cue.epoch, cue.set, cue.lifetime);
                    vec![of(&cue.rule, Tone::Plain, words)]
                }
                Err(_) => vec![of("", Tone::Bad, format!("a CUE that cannot be read: {}", entry.body))],
            };
        }
        let (what, tone, words) = words(entry);
        vec![of(&what, tone, words)]
    }

    fn keep(&mut self, line: DecisionLine, at: Timestamp) {
        let mut since = self.last.remove(&line.policy).map(|(_, since)| since).unwrap_or_default();
        since.retain(|name, _| line.rules.iter().any(|rule| rule.name == *name && rule.hosts.on > 0));
        for rule in line.rules.iter().filter(|rule| rule.hosts.on > 0) {
            since.entry(rule.name.clone()).or_insert(at);
        }
        if self.last.len() >= POLICIES_MAX {
            self.last.pop_first();
        }
        self.last.insert(line.policy.clone(), (line, since));
    }

    fn decided(&self, entry: &Entry, line: &DecisionLine) -> Vec<Change> {
        let (before, since) = match self.last.get(&line.policy) {
            Some((before, since)) => (Some(before), Some(since)),
            None => (None, None),
        };
        let mut changes = Vec::new();
        let mut push = |what: &str, tone, words: String| {
            let (kind, what) = (entry.kind.clone(), what.to_string());
            changes.push(Change { sequence: entry.sequence, time: entry.time, kind, what, words, tone });
        };
        let is_same = |before: &DecisionLine| (before.treated, before.acts()) == (line.treated, line.acts());
        if !before.is_some_and(is_same) {
            let was = before.map(|before| format!(" ({} before)", before.treated)).unwrap_or_default();
            push(&line.policy, Tone::Plain, format!("{}{was}", line.treated_words()));
        }
        for constraint in &line.constraints {
            let was = before.and_then(|before| before.constraints.iter().find(|one| one.name == constraint.name));
            let why = constraint.values.join("; ");
            match (was.and_then(|was| was.holds), constraint.holds) {
                (Some(false), Some(true)) => {
                    push(&constraint.name, Tone::Good, format!("the constraint holds again: {why}"));
                }
                (was, Some(false)) if was != Some(false) => {
                    push(
                        &constraint.name,
                        Tone::Notice,
                        format!("the constraint does not hold, so nothing is set: {why}"),
                    );
                }
                _ => {}
            }
        }
        let nothing = RuleLine::default();
        for rule in &line.rules {
            let was = before.and_then(|before| before.rules.iter().find(|one| one.name == rule.name));
            let began = since.and_then(|since| since.get(&rule.name));
            if let Some((tone, words)) = rule.changed(was.unwrap_or(&nothing), began.map(|began| (*began, entry.time)))
            {
                let unsent = if line.acts() {
                    ""
                } else if line.paused {
                    " (not sent: paused)"
                } else {
                    " (not sent: observing)"
                };
                let unsent = if rule.hosts.on > 0 { unsent } else { "" };
                push(&rule.name, tone, format!("{words}{unsent}"));
            }
        }
        for (first, second) in
            line.conflicts.iter().filter(|pair| !before.is_some_and(|before| before.conflicts.contains(pair)))
        {
            push(second, Tone::Notice, format!("`{first}` takes precedence where both set the same"));
        }
        let judged = |verdict: &super::line::VerdictLine| (verdict.judgement.clone(), verdict.roll_back);
        let was = before.map_or(("unclear".to_string(), false), |before| judged(&before.verdict));
        if judged(&line.verdict) != was {
            let tone = match line.verdict.judgement.as_str() {
                "helping" => Tone::Good,
                "hurting" => Tone::Bad,
                _ => Tone::Plain,
            };
            push(&line.policy, tone, verdict_words(&line.verdict.judgement, &line.verdict.reason));
        }
        changes
    }
}

impl DecisionLine {
    /// How many hosts are treated, or would be.
    fn treated_words(&self) -> String {
        treated_words((self.treated, self.hosts), self.mode == "enforce", self.paused)
    }

    /// A whole decision in a line.
    fn words(&self) -> String {
        let rules = self.rules.iter().map(|rule| {
            let state = match (&rule.withheld, rule.hosts.on) {
                (Some(why), _) => format!("withheld: {why}"),
                (None, 0) => "off".to_string(),
                (None, on) => format!("on, {on} of {} hosts", rule.hosts.matched),
            };
            let why = rule.why();
            let why = if why.is_empty() || rule.withheld.is_some() { String::new() } else { format!(" ({why})") };
            format!("`{}` {state}{why}", rule.name)
        });
        let rules: Vec<String> = rules.collect();
        let paused = if self.paused { ", paused" } else { "" };
        format!("epoch {}, {}{paused}: {}; {}", self.epoch, self.mode, self.treated_words(), rules.join("; "))
    }
}

impl RuleLine {
    /// What is different from `was`; `on` is since when it was on, and now.
    fn changed(&self, was: &RuleLine, on: Option<(Timestamp, Timestamp)>) -> Option<(Tone, String)> {
        let (now, before) = (self.hosts.on, was.hosts.on);
        let why = self.why();
        let because = if why.is_empty() { String::new() } else { format!("; {why}") };
        let of = format!("{now} of {} hosts", self.hosts.matched);
        let lasted = on
            .map(|(from, to)| format!(" after {}", lasting((to.as_second() - from.as_second()).max(0))))
            .unwrap_or_default();
        let left_out = self.left_out();
        if let Some(reason) = &self.withheld {
            let is_new = was.withheld.as_ref().is_none_or(|was| shape(was) != shape(reason));
            return is_new.then(|| {
                let off = if before > 0 { format!("off{lasted}, ") } else { String::new() };
                (Tone::Notice, format!("{off}withheld: {reason}"))
            });
        }
        if now > 0 && before == 0 {
            return Some((Tone::Good, format!("on, {of}: {}{because}{left_out}", self.set)));
        }
        if now == 0 && before > 0 {
            return Some((Tone::Plain, format!("off{lasted}{because}{left_out}")));
        }
        if now != before {
            return Some((Tone::Plain, format!("on, {of} ({before} before){left_out}")));
        }
        if now > 0 && self.set != was.set {
            return Some((Tone::Good, format!("on, {of}: {} (before: {})", self.set, was.set)));
        }
        let kinds = |rule: &RuleLine| {
            (rule.hosts.no_ecn > 0, rule.hosts.no_algorithm > 0, rule.hosts.flap_limited > 0, rule.hosts.held_off > 0)
        };
        if !left_out.is_empty() && kinds(self) != kinds(was) {
            return Some((Tone::Notice, format!("{}{left_out}", if now > 0 { "on" } else { "off" })));
        }
        (was.withheld.is_some()).then(|| (Tone::Plain, format!("no longer withheld; off{because}")))
    }

    /// Why hosts are left out.
    fn left_out(&self) -> String {
        let hosts = self.hosts;
        let names = if self.lacking.is_empty() { String::new() } else { format!(" ({})", self.lacking.join(", ")) };
        let all = [
            (hosts.no_algorithm, format!("lack the algorithm{names}")),
            (hosts.no_ecn, "lack ECN on a hop".to_string()),
            (hosts.flap_limited, "changed too often".to_string()),
            (hosts.held_off, "are kept off by the hold time".to_string()),
        ];
        let words = all.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("; {n} {why}"));
        words.collect::<Vec<_>>().concat()
    }
}

/// What guards have reverted, of a line's body: rules, with the values that they saw and for how long, or of earlier versions how often.
pub(crate) fn reverted_words(who: &str, body: &Value) -> String {
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_string();
    let one = |rule: &Value| {
        let why = text(rule, "why");
        let why = if why.is_empty() { why } else { format!(": {why}") };
        format!("`{}` for {}{why}", text(rule, "rule"), text(rule, "hold"))
    };
    let rules: Vec<String> = body["rules"].as_array().into_iter().flatten().map(one).collect();
    let times = body["reverted"].as_u64().unwrap_or(1);
    if rules.is_empty() {
        return format!("{who} has reverted a rule, {times} times");
    }
    format!("{who} has reverted {}", rules.join("; "))
}

/// A reason without its numbers: one that only counts on is no new one.
pub(super) fn shape(reason: &str) -> String {
    let mut shape = String::new();
    for c in reason.chars() {
        match c {
            // the next digits of a number
            '0'..='9' | '.' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            _ => shape.push(c),
        }
    }
    // units change with the number
    ["ns", "us", "ms", "min"].iter().fold(shape, |shape, unit| shape.replace(&format!("# {unit}"), "# s"))
}

/// `90 s`, `12 min`, `3 h`, `2 d`, by the largest unit of which there are two.
pub(crate) fn lasting(seconds: i64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let unit = units.iter().find(|(unit, _)| seconds >= 2 * unit);
    unit.map_or_else(|| format!("{seconds} s"), |(unit, name)| format!("{} {name}", seconds / unit))
}

/// What a line of another kind says: about what, how it is shown, in words.
fn words(entry: &Entry) -> (String, Tone, String) {
    let text = |key: &str| match &entry.body[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let by = |words: String| if text("by").is_empty() { words } else { format!("{words} by {}", text("by")) };
    let kind = entry.kind.parse::<Kind>().ok();
    match kind {
        Some(Kind::Started) => {
            (text("policy"), Tone::Plain, format!("the Oracle began, epoch {}, policy {}", text("epoch"), text("hash")))
        }
        Some(Kind::Policy) => {
            let trial = if text("trial").is_empty() { String::new() } else { format!("; trial: {}", text("trial")) };
            (
                text("policy"),
                Tone::Good,
                format!("{} ({}, before {}){trial}", by(text("how")), text("hash"), text("before")),
            )
        }
        Some(Kind::Pause) => {
            let until = if text("until").is_empty() {
                "until it is resumed".to_string()
            } else {
                format!("until {}", text("until"))
            };
            (text("policy"), Tone::Notice, format!("{} {until}: no CUE is sent", by("paused".to_string())))
        }
        Some(Kind::Resume) => {
            (text("policy"), Tone::Good, by(if text("how").is_empty() { "resumed".to_string() } else { text("how") }))
        }
        Some(Kind::Rollback) => (text("policy"), Tone::Bad, text("reason")),
        Some(Kind::Guard) => (text("host"), Tone::Bad, reverted_words("its guard", &entry.body)),
        Some(Kind::Refused) if text("command").is_empty() => {
            ("fleet".to_string(), Tone::Notice, format!("refused: {}", text("about")))
        }
        Some(Kind::Refused) => {
            (text("command"), Tone::Notice, format!("{}: {}", by("refused".to_string()), text("why")))
        }
        Some(Kind::Enrolled) => ("fleet".to_string(), Tone::Good, format!("{}: {}", text("what"), text("about"))),
        Some(Kind::Revoked) => ("fleet".to_string(), Tone::Notice, format!("revoked: {}", text("about"))),
        Some(Kind::Leader) => (
            text("number"),
            Tone::Notice,
            if text("words").is_empty() { entry.body.to_string() } else { text("words") },
        ),
        Some(Kind::Repaired) => {
            let words = format!(
                "the log's end was repaired after a crash: {} bytes of an unfinished line removed, {} lines missing",
                text("torn_bytes"),
                text("missing_lines")
            );
            ("log".to_string(), Tone::Bad, words)
        }
        Some(Kind::Gap) => {
            let words =
                format!("{} lines could not be written since {}: {}", text("lost_lines"), text("since"), text("why"));
            ("log".to_string(), Tone::Bad, words)
        }
        _ => (String::new(), Tone::Plain, entry.body.to_string()),
    }
}
