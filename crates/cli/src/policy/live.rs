//! `opentcp policy apply`, `diff`, `rollback`, `pause`, `resume`, `show`: the policy of a running Oracle.

use crate::failure::Failure;
use crate::options::workers;
use crate::stop;
use crate::terminal::{Terminal, is_coloured, note, print, print_json};
use bus::{Ask, POLICY_MAX, Target};
use document::Diagnostic;
use oracle::{Applied, Compared, Paused, Shown};
use policy::{Comparison, HostList, RuleChange, RulePlace};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use study::{Monitor, TrialRequest};
use units::Time;

use crate::operator::Place;

/// Longest pause: 180 days.
const PAUSE_MOST_S: i64 = 180 * 86_400;

/// Apply a policy to a running Oracle
///
/// Shows first what would change: per rule, how many hosts would get, lose or keep its settings, which settings change from what to what, and
/// which hosts lack its algorithm. Then asks; without a terminal it changes nothing unless --yes is given. The Oracle checks the text, with the
/// algorithms that its hosts have reported, and acts by it from its next decision on; the rollout begins at its first stage. If another
/// policy was applied since the comparison, nothing is changed. If a host lacks an algorithm of a rule that is or may be for it, nothing is
/// changed unless --allow-lacking leaves such hosts out.
///
/// The audit log keeps who applied what (`opentcp history --kind policy`). It stays in force when the Oracle restarts, until the file that the
/// Oracle was started with is changed.
///
/// Exit codes: 0 applied or nothing to change, 1 the Oracle cannot be reached or the trial speaks against it, 2 bad input, or not confirmed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  opentcp policy apply policies/opentcp2.toml
  opentcp policy apply policies/opentcp2.toml --yes --json
  opentcp policy apply policies/opentcp2.toml --require-trial scenarios/policy-try.toml")]
pub struct ApplyArgs {
    /// The policy file (TOML)
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Simulate this scenario with and without the policy first, and apply the policy only if it acts there, and helps or makes no difference
    #[arg(long, value_name = "SCENARIO")]
    require_trial: Option<PathBuf>,
    /// Seeds of the trial
    #[arg(long, value_name = "N", default_value_t = 10, requires = "require_trial", value_parser = clap::value_parser!(u32).range(i64::from(TrialRequest::SEEDS_MIN)..=1000))]
    seeds: u32,
    /// Leave out hosts that lack an algorithm
    #[arg(long)]
    allow_lacking: bool,
    /// One JSON object on stdout instead of text; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

/// Show what a policy would change on a running Oracle's hosts
///
/// Compares the policy with the one in force, in the network as it was at the last decision. Nothing is changed.
///
/// Exit codes: 0 done, 1 the Oracle cannot be reached or has decided nothing yet, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp policy diff policies/opentcp2.toml\n  opentcp policy diff policies/opentcp2.toml --json"
)]
pub struct DiffArgs {
    /// The policy file (TOML)
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Return to the policy that was in force before
///
/// As `opentcp policy apply` with the text that was in force before the present one; its rollout continues where it was left. A rollout
/// that was ended for its harm stays ended. The Oracle keeps the last 16 policies; to go back further, repeat it.
///
/// Exit codes: 0 done, 1 the Oracle cannot be reached, 2 bad input, or not confirmed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp policy rollback\n  opentcp policy rollback --yes")]
pub struct RollbackArgs {
    #[command(flatten)]
    place: Place,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Leave out hosts that lack an algorithm
    #[arg(long)]
    allow_lacking: bool,
    /// One JSON object on stdout instead of text; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

/// Stop sending CUEs; hosts return to their defaults
///
/// The Oracle goes on deciding and recording, and sends no CUE. What hosts have set ends when its lifetime is over. A pause outlives restarts of
/// the Oracle. The rollout stands still meanwhile.
///
/// Exit codes: 0 paused, 1 the Oracle cannot be reached, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  opentcp policy pause                 until `opentcp policy resume`\n  opentcp policy pause --for 1h"
)]
pub struct PauseArgs {
    #[command(flatten)]
    place: Place,
    /// For how long: `10min`, `1h`, `2d` [default: until it is resumed]
    #[arg(long = "for", value_name = "TIME", value_parser = lasts)]
    lasts: Option<Time>,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Send CUEs after a pause
///
/// Exit codes: 0 resumed, 1 the Oracle cannot be reached, 2 it is not paused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp policy resume")]
pub struct ResumeArgs {
    #[command(flatten)]
    place: Place,
}

/// Show the policy in force, and those before it
///
/// Prints its text to stdout, so that it can be edited and applied. Who applied it, and those before it, go to stderr; with --json all is in
/// one object.
///
/// Exit codes: 0 done, 1 the Oracle cannot be reached, 2 bad input.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opentcp policy show > now.toml\n  opentcp policy show --json | jq .versions")]
pub struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

fn lasts(text: &str) -> Result<Time, String> {
    let seconds = crate::history::seconds(text).filter(|seconds| (1..=PAUSE_MOST_S).contains(seconds));
    let wrong = || "write a time of at most 180 days with its unit, such as `10min`, `1h` or `2d`".to_string();
    seconds.map(|seconds| Time::from_secs(seconds as u64)).ok_or_else(wrong)
}

/// The file as the Oracle is to read it.
fn read(file: &Path) -> Result<Target, Failure> {
    let name = file.display().to_string();
    let unreadable = |error| Failure::Located(vec![Diagnostic::unreadable("policy", &name, &error)]);
    let text = document::read_text(file).map_err(unreadable)?;
    let length = text.len();
    if length > POLICY_MAX {
        return Err(Failure::Input(format!(
            "{name}: {length} bytes; a policy that is applied has at most {POLICY_MAX}"
        )));
    }
    Ok(Target::File { text, name })
}

/// Runs `diff`.
///
/// # Errors
/// As the exit codes say.
pub fn diff(args: &DiffArgs) -> Result<(), Failure> {
    let compared: Compared = args.place.ask(Ask::Diff { to: read(&args.file)? })?;
    if args.json { print_json(&compared) } else { print(&words(&compared)) }
}

/// Runs `apply`.
///
/// # Errors
/// As the exit codes say.
pub fn apply(args: &ApplyArgs) -> Result<(), Failure> {
    let to = read(&args.file)?;
    let compared: Compared = args.place.ask(Ask::Diff { to: to.clone() })?;
    let trial = match &args.require_trial {
        Some(scenario) => Some(trial(&args.file, scenario, args.seeds)?),
        None => None,
    };
    if trial.is_some() && read(&args.file)? != to {
        return Err(Failure::Input(format!(
            "{}: it was changed during the trial; nothing was applied",
            args.file.display()
        )));
    }
    let how = How { yes: args.yes, allow_lacking: args.allow_lacking, json: args.json, trial };
    confirmed(&args.place, &compared, to, how)
}

/// Runs `rollback`.
///
/// # Errors
/// As the exit codes say.
pub fn rollback(args: &RollbackArgs) -> Result<(), Failure> {
    let compared: Compared = args.place.ask(Ask::Diff { to: Target::Before })?;
    let how = How { yes: args.yes, allow_lacking: args.allow_lacking, json: args.json, trial: None };
    confirmed(&args.place, &compared, Target::Before, how)
}

struct How {
    yes: bool,
    allow_lacking: bool,
    json: bool,
    trial: Option<String>,
}

/// What `apply --json` prints.
#[derive(Serialize)]
struct Outcome {
    compared: Compared,
    applied: Applied,
}

/// Applies what was compared, if the user agrees.
fn confirmed(place: &Place, compared: &Compared, to: Target, how: How) -> Result<(), Failure> {
    if !how.json {
        print(&words(compared))?;
    }
    let is_same = compared.hash == compared.against;
    if !is_same && !how.yes {
        ask(&compared.policy)?;
    }
    let ask = Ask::Apply { to, against: compared.against.clone(), allow_lacking: how.allow_lacking, trial: how.trial };
    let applied: Applied = place.ask(ask)?;
    if how.json {
        return print_json(&Outcome { compared: compared.clone(), applied });
    }
    if applied.unchanged {
        return print("it is in force already; nothing was changed\n");
    }
    let paused = if compared.paused { "; paused: no CUE is sent until `opentcp policy resume`" } else { "" };
    let (policy, period) = (&applied.policy, applied.period);
    print(&format!("applied: `{policy}` decides within {period}{paused}\nto return: opentcp policy rollback\n"))
}

/// Asks on the terminal.
fn ask(policy: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::Input("nothing was changed: without a terminal --yes confirms it".to_string()));
    }
    let _ = write!(io::stderr(), "Apply `{policy}`? [y/N] ");
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| Failure::Run(error.to_string()))?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Input("nothing was changed: not confirmed".to_string())),
    }
}

/// What the simulator says of it, in a few words.
fn trial(policy: &Path, scenario: &Path, seeds: u32) -> Result<String, Failure> {
    let request = TrialRequest { seeds, workers: workers(None), ..TrialRequest::new(policy, scenario) };
    let tried = study::try_policy(&request, Monitor::new(&Terminal::default(), &stop::on_signals()))?;
    let words = format!("{} in {} ({seeds} seeds): {}", tried.answer, scenario.display(), tried.verdict.reason);
    let words: String = words.chars().take(60).collect();
    if tried.acted == 0 {
        let why = tried.silent.first().map(|why| format!(": {why}")).unwrap_or_default();
        let scenario = scenario.display();
        return Err(Failure::Run(format!(
            "the trial in {scenario} says nothing: no rule was on in any of {seeds} seeds{why}; nothing was applied"
        )));
    }
    if ["helps", "no difference"].contains(&tried.answer) {
        note!("trial: {words}");
        return Ok(words);
    }
    let (answer, reason, scenario) = (tried.answer, tried.verdict.reason, scenario.display());
    Err(Failure::Run(format!("the trial in {scenario} says: {answer}: {reason}; nothing was applied")))
}

/// Runs `pause`.
///
/// # Errors
/// As the exit codes say.
pub fn pause(args: &PauseArgs) -> Result<(), Failure> {
    let paused: Paused = args.place.ask(Ask::Pause { lasts: args.lasts })?;
    if args.json {
        return print_json(&paused);
    }
    let until =
        paused.until.map_or_else(|| "until `opentcp policy resume`".to_string(), |until| format!("until {until}"));
    print(&format!("paused {until}: no CUE is sent, and what hosts have set ends with its lifetime\n"))
}

/// Runs `resume`.
///
/// # Errors
/// As the exit codes say.
pub fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    let _: serde_json::Value = args.place.ask(Ask::Resume)?;
    print("resumed: CUEs are sent from the next decision on\n")
}

/// Runs `show`.
///
/// # Errors
/// As the exit codes say.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    let shown: Shown = args.place.ask(Ask::Show)?;
    if args.json {
        return print_json(&shown);
    }
    for version in &shown.versions {
        let mark = if version.in_force { "in force" } else { "        " };
        let (number, policy, file) = (version.number, &version.policy, &version.file);
        note!("{mark}  {number:>3}  {}  {policy}  {file}  {}  {}", digits(&version.hash), version.at, version.by);
    }
    if let Some(paused) = &shown.paused {
        let until = paused.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
        note!("paused by {} since {}{until}", paused.by, paused.at);
    }
    print(&shown.text)
}

fn digits(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// A comparison for people.
fn words(compared: &Compared) -> String {
    let Compared { against, hash, policy, file, comparison, paused } = compared;
    if against == hash {
        return format!("`{policy}` ({file}, {}) is the policy in force\n", digits(hash));
    }
    let hosts = comparison.hosts;
    let mut text = format!(
        "`{policy}` ({file}, {}) against the policy in force ({}), on {hosts} hosts\n",
        digits(hash),
        digits(against)
    );
    for (key, from, to) in &comparison.keys {
        writeln!(text, "{key}: {from} → {to}").expect("writing to a string");
    }
    for rule in &comparison.rules {
        rule_words(rule, &mut text);
    }
    if comparison_is_quiet(comparison) {
        text.push_str("no host would get, lose or change a setting now\n");
    }
    if *paused {
        text.push_str("paused: no CUE is sent\n");
    }
    text
}

fn comparison_is_quiet(comparison: &Comparison) -> bool {
    comparison
        .rules
        .iter()
        .all(|rule| rule.get.count + rule.lose.count == 0 && (rule.settings.is_empty() || rule.keep.count == 0))
}

fn rule_words(rule: &RuleChange, text: &mut String) {
    let colours = is_coloured(&io::stdout());
    let painted = |code: &str, words: String| if colours { format!("\x1b[{code}m{words}\x1b[0m") } else { words };
    let changed = if rule.changed.is_empty() { String::new() } else { format!(": other {}", rule.changed.join(", ")) };
    let place = match rule.place {
        RulePlace::Added => " is new".to_string(),
        RulePlace::Removed => " is removed".to_string(),
        RulePlace::Both if rule.changed.is_empty() && rule.settings.is_empty() => String::new(),
        RulePlace::Both => format!(" is changed{changed}"),
    };
    writeln!(text, "rule `{}`{place}", rule.name).expect("writing to a string");
    let mut line = |words: String| writeln!(text, "  {words}").expect("writing to a string");
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_string());
    for setting in &rule.settings {
        line(format!("{}: {} → {}", setting.name, value(&setting.from), value(&setting.to)));
    }
    let hosts = |list: &HostList, verb: &str, code: &str| {
        let names = if list.count == 0 { String::new() } else { format!(": {}", listed(list)) };
        let words = format!("{} {verb}{names}", list.count);
        if list.count > 0 { painted(code, words) } else { words }
    };
    if rule.get.count + rule.lose.count + rule.keep.count == 0 {
        line("on no host, before or after".to_string());
    } else {
        line(hosts(&rule.get, "hosts would get it", "32"));
        line(hosts(&rule.lose, "hosts would lose it", "33"));
        let keep = if rule.settings.is_empty() {
            "hosts have it and keep it"
        } else {
            "hosts have it and would get the new values"
        };
        line(hosts(&rule.keep, keep, "0"));
    }
    if let Some(why) = &rule.withheld {
        line(painted("33", format!("would be withheld now: {why}")));
    }
    if rule.lacking.count > 0 {
        let cc = rule.cc.as_deref().unwrap_or_default();
        line(painted("1;31", format!("{} hosts lack `{cc}`: {}", rule.lacking.count, listed(&rule.lacking))));
    }
}

fn listed(list: &HostList) -> String {
    let more = if list.count > list.first.len() { ", …" } else { "" };
    format!("{}{more}", list.first.join(", "))
}
