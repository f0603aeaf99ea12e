//! `opentcp policy`: checks a policy, explains what it would do, tries it in the simulator, and applies it to a running Oracle.

mod live;
mod trial;
mod tune;

use crate::failure::Failure;
use crate::operator::Place;
use crate::terminal::{is_watched, print, print_json};
use policy::{History, NetworkView, Setting, Variable, decide};
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::table::{Table, wrapped};
use study::{load_policy, policy_words};

/// Shown under `opentcp policy --help`.
pub const EXAMPLES: &str = "\
Examples:
  opentcp policy check policies/opentcp2.toml
  opentcp policy check --list                     every variable and every setting
  opentcp policy explain policies/opentcp2.toml --view network.json
  opentcp policy try policies/opentcp2.toml --scenario scenarios/policy-try.toml
  opentcp policy tune policies/opentcp1.toml --scenario scenarios/policy-try.toml
  opentcp policy diff policies/opentcp2.toml      against the policy in force: hosts and settings that would change
  opentcp policy apply policies/opentcp2.toml
  opentcp policy pause --for 1h";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Check a policy file
    ///
    /// Reports every mistake with its line and column and what to write instead: a name that does not exist, a wrong unit, a
    /// comparison of a rate with a share, a lifetime that ends before the next CUE, algorithms that starve one another.
    /// docs/policies.md is the reference.
    ///
    /// Exit codes: 0 the policy is correct, 2 it is not.
    #[command(after_help = "Examples:\n  opentcp policy check policies/opentcp1.toml policies/paced.toml\n  opentcp \
                            policy check --list | less")]
    Check {
        /// Policy files (TOML)
        #[arg(required_unless_present = "list", value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print all variables with type and scope, and all settings with what they apply to
        #[arg(long, conflicts_with = "files")]
        list: bool,
    },
    /// Explain what a policy would do in a network, and why
    ///
    /// Decides once, as the Oracle would in its first period. Prints the result of every constraint and every rule with the values it
    /// used, the conflicts between rules, and the CUEs that would be sent. Nothing is sent.
    ///
    /// The view is a JSON file of hosts, links, flow groups and their measurements; docs/policies.md lists its keys.
    #[command(
        after_help = "Examples:\n  opentcp policy explain policies/opentcp2.toml --view network.json\n  opentcp \
                            policy explain policies/paced.toml --view network.json --json"
    )]
    Explain {
        /// The policy file (TOML)
        file: PathBuf,
        /// The state of the network (JSON)
        #[arg(long, value_name = "VIEW.json")]
        view: PathBuf,
        /// One JSON object on stdout instead of text
        #[arg(long)]
        json: bool,
    },
    /// Simulate a network with and without a policy, and compare
    ///
    /// Simulates a scenario with and without the policy, for several seeds. Answers whether the policy helps, hurts or makes no
    /// difference to its objective (percentiles of completion times, or drops), by how much, and with which confidence interval. All
    /// hosts count, treated or not. For each rule that was never on, it gives the reason.
    #[command(after_help = "Examples:
  opentcp policy try policies/opentcp2.toml --scenario scenarios/policy-try.toml
  opentcp policy try policies/opentcp1.toml --from-fleet --keep fleet.toml
  opentcp policy try policies/incast.toml --scenario scenarios/fleet.toml --fast --set tcp.cc=cubic --set \"policy.period=10 ms\"\n  \
                            opentcp policy try policies/opentcp1.toml --scenario network.toml --seeds 20 --set \"policy.period=1 s\" --json")]
    Try(trial::Args),
    /// Search a policy's numbers in the simulator
    ///
    /// Thresholds, windows and times are varied, and each trial is compared, run by run, with the policy as it is. What is minimised is
    /// the policy's objective (percentiles of completion times, or drops). The best numbers are then judged on runs that the search has
    /// not seen: other seeds, and what --hold-back names. The policy is written to a file, with what is known as comments. It has the
    /// new numbers if the whole 95 % confidence interval is a gain, else those that it had.
    ///
    /// Exit codes: 0 done, whether or not there is a gain, 1 a run failed, 2 bad input, 130 interrupted (nothing is written).
    #[command(after_help = "Examples:
  opentcp policy tune policies/opentcp1.toml --scenario scenarios/policy-try.toml
  opentcp policy tune policies/opentcp2.toml --scenario network.toml --vary \"rule.calm network.when=0.4..0.95\" \\
      --vary \"rule.calm network.set.rto_min=500 us..20 ms\" --limit \"network.fct_p50=2 %\" --trials 100
  opentcp policy tune policies/opentcp1.toml --scenario loads.toml --hold-back \"traffic.web.poisson.load=60 %\" --json")]
    Tune(tune::Args),
    Apply(live::ApplyArgs),
    Diff(live::DiffArgs),
    Rollback(live::RollbackArgs),
    Pause(live::PauseArgs),
    Resume(live::ResumeArgs),
    Show(live::ShowArgs),
    /// Print the network as the Oracle sees it
    ///
    /// The view of its last decision as JSON: hosts, links with their measurements and ages, racks, transfers by size. `opentcp policy
    /// explain` and `opentcp scenario from-view` read it.
    ///
    /// Exit codes: 0 done, 1 the Oracle cannot be reached or has not decided yet, 2 bad input.
    #[command(
        after_help = "Examples:\n  opentcp policy network >network.json\n  opentcp policy network | jq '.links[] | select(.utilization > 0.7) | .name'"
    )]
    Network {
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read or is wrong (bad input), or a simulation that failed or was stopped.
pub fn policy(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Check { list: true, .. } => print(&listing()),
        Command::Check { files, .. } => check(files),
        Command::Explain { file, view, json } => explain(file, view, *json),
        Command::Try(args) => trial::try_policy(args),
        Command::Tune(args) => tune::tune(args),
        Command::Apply(args) => live::apply(args),
        Command::Diff(args) => live::diff(args),
        Command::Rollback(args) => live::rollback(args),
        Command::Pause(args) => live::pause(args),
        Command::Resume(args) => live::resume(args),
        Command::Show(args) => live::show(args),
        Command::Network { place } => print(&format!("{}\n", place.network()?.to_json())),
    }
}

/// Checks all files, even if an earlier one has a mistake.
fn check(files: &[PathBuf]) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for file in files {
        match load_policy(file).map_err(Failure::from) {
            Ok(policy) => print(&format!("{}: {}\n", file.display(), policy_words(&policy)))?,
            Err(Failure::Located(located)) => failures.extend(located),
            Err(other) => return Err(other),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Located(failures)) }
}

/// A view's file.
///
/// # Errors
/// It cannot be read, or is no view.
pub fn load_view(view: &Path) -> Result<NetworkView, Failure> {
    let name = view.display();
    let text =
        document::read_text(view).map_err(|error| Failure::Input(format!("cannot read the view `{name}`: {error}")))?;
    NetworkView::from_json(&text).map_err(|error| Failure::Input(format!("{name}:{error}")))
}

fn explain(file: &Path, view: &Path, json: bool) -> Result<(), Failure> {
    let policy = load_policy(file)?;
    let view = load_view(view)?;
    let decision = decide(&policy, &view, &mut History::default());
    if json { print_json(&Explained { policy: &policy.name, decision }) } else { print(&decision.explain(&policy)) }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Explained<'a> {
    policy: &'a str,
    decision: policy::Decision,
}

fn listing() -> String {
    let mut variables = Table::new(["variable", "type", "scope", "guard", "what it is"]);
    for variable in Variable::all() {
        let guard = if variable.at_agent { "yes" } else { "" };
        let cells = [variable.name, &variable.unit.to_string(), variable.scope().name(), guard, variable.doc];
        variables.row(cells.map(str::to_string).to_vec());
    }
    let mut settings = Table::new(["setting", "written", "what it does", "reaches"]);
    for setting in Setting::all() {
        settings.row([setting.name, setting.example, setting.doc, setting.reaches].map(str::to_string).to_vec());
    }
    let words = "Conditions are CEL: && || ! ?: < <= > >= == != + - * /, links.exists(l, …) and links.all(l, …) (also hosts, \
                 groups), duration(\"2 ms\"), rate(\"1 Gbit/s\"), size(\"64 kB\"). Shares are fractions: 0.70, not 70 %. \
                 A condition on an unknown value is neither true nor false, and its rule does not apply. `guard`: a host \
                 measures it itself, so guards may use it.";
    let width = if is_watched() { 100 } else { 120 };
    format!("{}\n{}\n{}\n", variables.render(), settings.render(), wrapped(words, width))
}
