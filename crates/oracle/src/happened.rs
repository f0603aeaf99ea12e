//! What has happened lately, for a dashboard's timeline: bounded, and lost with the process. The audit log has all of it.

use crate::board::{EventLine, Span};
use crate::log::reverted_words;
use crate::overview::{clipped, treated_words};
use crate::watch::{PeriodEnd, kept_back, why};
use audit::Kind;
use policy::{Mode, RuleReport};
use serde_json::Value;
use std::collections::VecDeque;

/// Most spans of all rules.
const SPANS_MAX: usize = 512;
/// Most events.
const EVENTS_MAX: usize = 128;
/// Most rules whose spans are kept.
const RULES_MAX: usize = 64;
/// Longest line, bytes.
const WORDS_MAX: usize = 240;

/// What has happened lately.
#[derive(Debug, Default)]
pub struct Happened {
    /// Those that have ended, the oldest first.
    over: VecDeque<Span>,
    /// Those that go on, in the order of the policy.
    open: Vec<Span>,
    events: VecDeque<EventLine>,
    /// Of the decision before: hosts that it treated, whether it was enforced, and whether the rollout was over.
    before: Option<(usize, bool, bool)>,
}

impl Happened {
    /// Takes a decision.
    pub fn decided(&mut self, ended: &PeriodEnd<'_>) {
        let is_enforced = ended.decision.mode == Mode::Enforce;
        let rules = ended.decision.rules.iter().take(RULES_MAX);
        let new: Vec<Span> = rules.map(|rule| span(rule, is_enforced, ended.sent > 0, ended.unix_s)).collect();
        let mut open = std::mem::take(&mut self.open);
        for mut span in new {
            let before = open.iter().position(|old| old.rule == span.rule && old.state == span.state);
            if let Some(at) = before {
                let old = open.swap_remove(at);
                (span.from_unix_s, span.decisions) = (old.from_unix_s, old.decisions + 1);
            }
            self.open.push(span);
        }
        for mut span in open {
            span.to_unix_s = Some(ended.unix_s);
            if self.over.len() == SPANS_MAX - RULES_MAX {
                self.over.pop_front();
            }
            self.over.push_back(span);
        }
        let is_paused = ended.sent == 0 && !ended.decision.to_send().is_empty();
        let now = (ended.decision.treated, is_enforced, ended.verdict.roll_back);
        let before = self.before.replace(now);
        if now.2 && !before.is_some_and(|before| before.2) {
            self.add(ended.unix_s, "rollout", &format!("the rollout is over: {}", ended.verdict.reason));
        }
        if before.is_none_or(|before| (before.0, before.1) != (now.0, now.1)) {
            let hosts = (ended.decision.treated, ended.decision.hosts);
            self.add(ended.unix_s, "rollout", &treated_words(hosts, is_enforced, is_paused));
        }
    }

    /// Takes something else, as the audit log has it.
    pub fn noted(&mut self, unix_s: f64, kind: Kind, body: &Value) {
        let text = |name: &str| body[name].as_str().unwrap_or_default();
        let by = if text("by").is_empty() { String::new() } else { format!(" by {}", text("by")) };
        let (kind, words) = match kind {
            Kind::Started => ("oracle", format!("the Oracle began, with policy {}", text("policy"))),
            Kind::Policy => ("operator", format!("{} {}{by}", text("policy"), text("how"))),
            Kind::Pause if text("until").is_empty() => ("operator", format!("paused{by}, until it is resumed")),
            Kind::Pause => ("operator", format!("paused{by}, until {}", text("until"))),
            Kind::Resume => ("operator", format!("resumed{by}: {}", text("how"))),
            Kind::Guard => ("guard", reverted_words(&format!("a guard on {}", text("host")), body)),
            Kind::Refused => ("operator", format!("refused{by}: {}{}", text("why"), text("about"))),
            Kind::Enrolled | Kind::Revoked => ("fleet", format!("{}: {}", text("what"), text("about"))),
            // decisions and CUEs are spans; of its own log the Oracle speaks elsewhere
            _ => return,
        };
        self.add(unix_s, kind, &words);
    }

    fn add(&mut self, unix_s: f64, kind: &str, words: &str) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(EventLine { unix_s, kind: kind.to_string(), words: clipped(words, WORDS_MAX) });
    }

    /// Spans in the order in which they ended, then those that go on.
    pub fn spans(&self) -> Vec<Span> {
        self.over.iter().chain(&self.open).cloned().collect()
    }

    /// Events, the oldest first.
    pub fn events(&self) -> Vec<EventLine> {
        self.events.iter().cloned().collect()
    }
}

fn span(rule: &RuleReport, is_enforced: bool, was_sent: bool, unix_s: f64) -> Span {
    let hosts = &rule.hosts;
    let state = match &rule.withheld {
        Some(_) => "withheld",
        None if hosts.addressed > 0 && !is_enforced => "observed",
        None if hosts.addressed > 0 && !was_sent => "paused",
        None if hosts.addressed > 0 => "on",
        None if hosts.no_algorithm + hosts.no_ecn + hosts.held_off > 0 => "withheld",
        None if hosts.flap_limited > 0 => "flapping",
        None if hosts.unknown > 0 => "unknown",
        None => "off",
    };
    Span {
        rule: clipped(&rule.name, 64),
        state: state.to_string(),
        why: clipped(&rule.withheld.clone().or_else(|| kept_back(rule)).unwrap_or_else(|| why(rule)), 160),
        hosts: hosts.addressed,
        decisions: 1,
        from_unix_s: unix_s,
        to_unix_s: None,
    }
}
