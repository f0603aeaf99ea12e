//! A decision in words.

use crate::algorithm::KERNEL_PREFIX;
use crate::cue::{Addressees, Cue};
use crate::decide::{ConstraintReport, Decision, HostCounts, RuleReport, STABILITY_FACTOR};
use crate::model::{Mode, Policy, Rule};
use crate::switch::Turn;
use ed25519_dalek::SIGNATURE_LENGTH;
use std::fmt::Write as _;

impl Decision {
    /// Each constraint and each rule with its result and reason, the conflicts between rules, and the CUEs; for people.
    pub fn explain(&self, policy: &Policy) -> String {
        let mut out = String::new();
        let mode = match self.mode {
            Mode::Observe => "observe: nothing is sent",
            Mode::Enforce => "enforce",
        };
        let resting = if self.treating || self.hosts == 0 { "" } else { "; no host is treated now" };
        line(
            &mut out,
            0,
            &format!("policy `{}` ({mode}), T = {}, epoch {}, at {}", policy.name, policy.period, self.epoch, self.at),
        );
        line(&mut out, 0, &format!("{} of {} treated{resting}", self.treated, count(self.hosts, "host")));
        for constraint in &self.constraints {
            constraint.explain(&mut out);
        }
        for (report, rule) in self.rules.iter().zip(&policy.rules) {
            report.explain(rule, policy, &mut out);
        }
        for conflict in &self.conflicts {
            let settings = conflict.settings.join(", ");
            let hosts = count(conflict.hosts, "host");
            out.push('\n');
            line(
                &mut out,
                0,
                &format!(
                    "conflict on {hosts}: `{}` takes precedence over `{}` for {settings}",
                    conflict.first, conflict.second
                ),
            );
        }
        out.push('\n');
        let sent = if self.mode == Mode::Observe { " (not sent: the policy observes)" } else { "" };
        line(
            &mut out,
            0,
            &format!("{}{sent}", if self.cues.is_empty() { "no CUE".into() } else { count(self.cues.len(), "CUE") }),
        );
        for cue in &self.cues {
            explain_cue(cue, &mut out);
        }
        out
    }
}

impl ConstraintReport {
    fn explain(&self, out: &mut String) {
        let holds = match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold: nothing is set",
            None => "is not known, and withholds nothing",
        };
        out.push('\n');
        line(out, 0, &format!("constraint `{}` {holds}", self.name));
        line(out, 1, &self.text);
        self.values.iter().for_each(|value| line(out, 1, value));
    }
}

impl RuleReport {
    fn explain(&self, rule: &Rule, policy: &Policy, out: &mut String) {
        out.push('\n');
        line(out, 0, &format!("rule {} `{}` {}", self.rank + 1, self.name, self.verdict()));
        line(out, 1, &format!("when  {}", rule.when.text().trim()));
        if let Some(until) = &rule.until {
            line(out, 1, &format!("until {}", until.text().trim()));
        }
        self.values.iter().for_each(|value| line(out, 1, value));
        if self.values.is_empty() {
            self.seen.iter().filter(|seen| seen.least.is_some()).for_each(|seen| line(out, 1, &seen.to_string()));
        }
        if let Some(why) = &self.withheld {
            line(out, 1, &format!("withheld: {why}"));
        }
        if let (Some(srtt), None) = (self.srtt_p99, &self.withheld) {
            line(
                out,
                1,
                &format!(
                    "stable: p99 of srtt is {srtt}, and T = {} is more than {STABILITY_FACTOR} times that",
                    policy.period
                ),
            );
        }
        let held = format!("by the hold time of {}", rule.hold);
        let limit = policy.flap_limit;
        let limited = format!("by the limit of {} within {}", count(limit.changes as usize, "change"), limit.within);
        line(out, 1, &format!("{}, {}", count(self.hosts.matched, "host"), rule.sessions));
        let HostCounts { on, off, held_on, held_off, flap_limited, unknown, no_ecn, no_algorithm, .. } = self.hosts;
        let parts = [
            (if self.turn.is_none() { on } else { 0 }, "on".to_string()),
            (if self.turn.is_none() { off } else { 0 }, "off".to_string()),
            (held_on, format!("kept on {held}")),
            (held_off, format!("kept off {held}")),
            (flap_limited, format!("kept off {limited}")),
            (
                if self.withheld.is_none() { unknown } else { 0 },
                "off: a value that the condition needs is not known".to_string(),
            ),
            (no_ecn, "left out: the algorithm needs ECN, and a hop does not mark".to_string()),
            (no_algorithm, self.without_algorithm(rule)),
        ];
        for (hosts, what) in parts.iter().filter(|(hosts, _)| *hosts > 0) {
            line(out, 2, &format!("{hosts} {what}"));
        }
    }

    fn without_algorithm(&self, rule: &Rule) -> String {
        let cc = rule.set.cc.as_deref().unwrap_or_default();
        let load = match cc.strip_prefix(KERNEL_PREFIX) {
            Some(own) => format!("modprobe tcp_{own}"),
            None => format!("opentcp cc load {cc}"),
        };
        let more = if self.hosts.no_algorithm > self.lacking.len() { ", …" } else { "" };
        format!("left out: without `{cc}` ({load}): {}{more}", self.lacking.join(", "))
    }

    fn verdict(&self) -> &'static str {
        match self.turn {
            _ if self.withheld.is_some() => "is withheld",
            _ if self.hosts.matched == 0 => "is for no host",
            None if self.hosts.addressed == 0 => "fires for no host",
            None => "fires host by host",
            Some(Turn::On) => "fires",
            Some(Turn::Off) => "does not fire",
            Some(Turn::HeldOn) => "still fires",
            Some(Turn::HeldOff) => "does not fire yet",
            Some(Turn::FlapLimited) => "does not fire: it changes too often",
            Some(Turn::Unknown) => "does not fire: too little is known",
        }
    }
}

fn explain_cue(cue: &Cue, out: &mut String) {
    let hosts = match &cue.scope.hosts {
        Addressees::All => "all hosts".to_string(),
        Addressees::UpTo(place) => format!("hosts up to place {place:016x} in the policy's order"),
        Addressees::Named(names) if names.len() > 4 => {
            format!("{} … ({})", names[..3].join(", "), count(names.len(), "host"))
        }
        Addressees::Named(names) => names.join(", "),
    };
    let mut narrowed = String::new();
    if !cue.scope.names.is_empty() {
        let _ = write!(narrowed, ", named {}", cue.scope.names.join(" or "));
    }
    for (label, value) in &cue.scope.labels {
        let _ = write!(narrowed, ", {label} = {value}");
    }
    line(out, 1, &format!("{} `{}` to {hosts}{narrowed}, {}", cue.id, cue.rule, cue.scope.sessions));
    line(out, 2, &format!("set {}", cue.set));
    line(out, 2, &format!("for {} from receipt", cue.lifetime));
    if let Some(guard) = &cue.guard {
        line(out, 2, &format!("reverts for {1} if {0}", guard.revert_if, guard.hold));
    }
    line(out, 2, &format!("because {}", cue.reason));
    line(out, 2, &format!("{} bytes, signed", cue.to_bytes().len() + SIGNATURE_LENGTH));
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn line(out: &mut String, depth: usize, text: &str) {
    for _ in 0..depth {
        out.push_str("    ");
    }
    out.push_str(text);
    out.push('\n');
}
