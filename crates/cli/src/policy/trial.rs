//! `opentcp policy try`: a policy in the simulator, compared with the same network without it.

use crate::failure::Failure;
use crate::operator::Place;
use crate::options::workers;
use crate::scenarios::{twin, write_twin};
use crate::stop;
use crate::terminal::{Terminal, print, print_json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use study::{Monitor, TrialRequest};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy file (TOML)
    file: PathBuf,
    /// The network and its traffic (TOML); a policy in it is ignored
    #[arg(long, value_name = "FILE", required_unless_present = "from_fleet")]
    scenario: Option<PathBuf>,
    /// Make the scenario of what the fleet's collectors and agents reported; T is set to fit it
    #[arg(long, conflicts_with = "scenario")]
    from_fleet: bool,
    /// Where the scenario of the fleet is written, to be looked at and changed [default: opentcp-results/fleet/fleet.toml]
    #[arg(long, value_name = "FILE", requires = "from_fleet")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Seeds 1 to N; each is run with and without the policy
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(i64::from(TrialRequest::SEEDS_MIN)..=1000))]
    seeds: u32,
    /// Set a key of the scenario, dotted; may be given many times. `policy.period` is T in the simulated network
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Simulate a scale model instead of a network that is too large. For Poisson traffic, and for conditions that do not depend on the
    /// number of hosts and links (docs/validation/fast.md)
    #[arg(long, conflicts_with = "from_fleet")]
    fast: bool,
    /// Runs in parallel [default: the number of CPUs]. Results do not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// One JSON object on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn try_policy(args: &Args) -> Result<(), Failure> {
    let (scenario, sets) = match &args.scenario {
        Some(scenario) => (scenario.clone(), args.sets.clone()),
        None => of_fleet(args)?,
    };
    let request = TrialRequest {
        policy: args.file.as_path().into(),
        scenario: scenario.into(),
        seeds: args.seeds,
        sets,
        workers: workers(args.jobs),
        fast: args.fast,
    };
    let tried = study::try_policy(&request, Monitor::new(&Terminal::default(), &stop::on_signals()))?;
    if args.json { print_json(&tried) } else { print(&tried.words()) }
}

/// Writes the scenario of the fleet. What is set beside it fits T to it, unless the user sets that.
fn of_fleet(args: &Args) -> Result<(PathBuf, Vec<String>), Failure> {
    // a mistake in the policy is found before anybody is asked
    study::load_policy(&args.file)?;
    let twin = twin(&args.place.network()?)?;
    let keep = args.keep.clone().unwrap_or_else(|| study::results_folder("fleet").join("fleet.toml"));
    write_twin(&twin, &keep)?;
    let mut sets = vec![format!("policy.period={}", twin.period)];
    sets.retain(|set| !args.sets.iter().any(|own| own.starts_with(set.split_inclusive('=').next().unwrap_or(set))));
    sets.extend_from_slice(&args.sets);
    Ok((keep, sets))
}
