//! `opentcp status`: how a running Oracle and its fleet are.

use crate::failure::Failure;
use crate::operator::Place;
use crate::terminal::{print, print_json};
use bus::{Ask, HostsQuery};
use oracle::{HostLine, Overview, RuleLine, treated_words, verdict_words};

/// Show how the Oracle and its fleet are
///
/// Asks a running Oracle: the policy in force, the epoch, hosts and treated hosts, each rule with its hosts or why it is withheld, the
/// verdict, whether it is paused, and how many lines of the audit log could not be written.
///
/// Exit codes: 0 done, 1 the Oracle cannot be reached, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp status\n  opentcp status --json | jq .rules")]
pub struct Args {
    #[command(flatten)]
    place: Place,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// As the exit codes say.
pub fn status(args: &Args) -> Result<(), Failure> {
    let status: Overview = args.place.ask(Ask::Status { hosts: Some(HostsQuery::default()) })?;
    if args.json {
        return print_json(&status);
    }
    let Overview { policy, hash, mode, period, epoch, agents, .. } = &status;
    let paused = if status.paused { ", paused: no CUE is sent" } else { "" };
    let mut lines = vec![
        format!("policy: {policy} ({hash}), {mode}, T = {period}{paused}"),
        format!("epoch {epoch}; {agents} agents connected"),
    ];
    lines.push(match (status.age_s, status.next_s) {
        (None, Some(next_s)) => format!("no decision yet: the first in {} s", next_s.ceil()),
        (None, None) => "no decision yet".to_string(),
        _ => treated_words((status.treated, status.hosts), status.is_enforcing(), status.paused),
    });
    lines.extend(status.rules.iter().map(|rule| format!("rule `{}`: {}", rule.name, state(rule, &status))));
    lines.extend(status.host_lines.iter().flat_map(|host| guards(host, status.age_s.unwrap_or(0.0))));
    if status.audit_lost > 0 {
        lines.push(format!("audit log: {} lines could not be written; is its disk full?", status.audit_lost));
    }
    lines.push(verdict_words(&status.verdict.judgement, &status.verdict.reason));
    print(&format!("{}\n", lines.join("\n")))
}

/// What a rule is on, and why it is not.
fn state(rule: &RuleLine, status: &Overview) -> String {
    let of = format!("{} of {} hosts", rule.on, rule.matched);
    match &rule.withheld {
        Some(why) => format!("withheld: {why}"),
        None if rule.on == 0 && rule.why.is_empty() => format!("on {of}"),
        None if rule.on == 0 => format!("on {of}: {}", rule.why),
        None if !status.is_enforcing() || status.paused => format!("would be on {of}"),
        None => {
            let in_force = format!("; in force on {}", rule.in_force);
            let in_force = if rule.in_force < rule.on { in_force } else { String::new() };
            let reverted = format!("; guards have reverted it on {}", rule.reverted);
            let reverted = if rule.reverted > 0 { reverted } else { String::new() };
            format!("on {of}{in_force}{reverted}")
        }
    }
}

/// What guards hold reverted on a host, `age_s` after the decision of which its line is.
fn guards(host: &HostLine, age_s: f64) -> impl Iterator<Item = String> + '_ {
    host.reverted.iter().map(move |of| {
        let why = if of.why.is_empty() { String::new() } else { format!(" at {}", of.why) };
        let left = (of.left_s - age_s).max(0.0).ceil();
        format!("guard on {}: `{}` is reverted{why}; {left} of {} s left", host.name, of.rule, of.hold_s)
    })
}
