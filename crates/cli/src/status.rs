//! `opentcp status`: how a running Oracle and its fleet are.

use crate::failure::Failure;
use crate::operator::Place;
use crate::terminal::{print, print_json};
use bus::{Ask, HostsQuery};
use oracle::Overview;

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
    if status.age_s.is_none() {
        lines.push("no decision yet".to_string());
    } else {
        lines.push(format!("{} of {} hosts treated", status.treated, status.hosts));
    }
    for rule in &status.rules {
        let state = match &rule.withheld {
            Some(why) => format!("withheld: {why}"),
            None => format!("on {} of {} hosts", rule.on, rule.matched),
        };
        lines.push(format!("rule `{}`: {state}", rule.name));
    }
    if status.audit_lost > 0 {
        lines.push(format!("audit log: {} lines could not be written; is its disk full?", status.audit_lost));
    }
    lines.push(format!("verdict: {}: {}", status.verdict.judgement, status.verdict.reason));
    print(&format!("{}\n", lines.join("\n")))
}
