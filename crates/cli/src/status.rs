//! `opentcp status`: how a running Oracle and its fleet are.

use crate::failure::Failure;
use crate::operator::Place;
use crate::terminal::{print, print_json};
use bus::Ask;
use serde_json::Value;

/// Show how the Oracle and its fleet are
///
/// Asks a running Oracle: the policy in force, the epoch, hosts and treated hosts, each rule with its hosts or why it is withheld, the
/// verdict, whether it is paused.
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
    let status: Value = args.place.ask(Ask::Status { hosts: None })?;
    if args.json {
        return print_json(&status);
    }
    let text = |key: &str| status[key].as_str().map_or_else(|| status[key].to_string(), str::to_string);
    let paused = if status["paused"] == true { ", paused: no CUE is sent" } else { "" };
    let mut lines = vec![
        format!("policy: {} ({}), {}, T = {}{paused}", text("policy"), text("hash"), text("mode"), text("period")),
        format!("epoch {}; {} agents connected", text("epoch"), text("agents")),
    ];
    if status["hosts"].is_null() {
        lines.push("no decision yet".to_string());
    } else {
        lines.push(format!("{} of {} hosts treated", text("treated"), text("hosts")));
    }
    for rule in status["rules"].as_array().into_iter().flatten() {
        let state = match rule["withheld"].as_str() {
            Some(why) => format!("withheld: {why}"),
            None => format!("on {} of {} hosts", rule["on"], rule["matched"]),
        };
        lines.push(format!("rule `{}`: {state}", rule["name"].as_str().unwrap_or_default()));
    }
    let verdict = |key: &str| status["verdict"][key].as_str().unwrap_or_default();
    lines.push(format!("verdict: {}: {}", verdict("judgement"), verdict("reason")));
    print(&format!("{}\n", lines.join("\n")))
}
