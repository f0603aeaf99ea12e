//! `opentcp sweep`: every combination of values of a scenario's keys, into one dataset that outlives an interruption.

use crate::failure::Failure;
use crate::options::workers;
use crate::stop;
use crate::terminal::{Terminal, note, print, print_json};
use results::{RunInfo, RunSummary};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use study::{Kept, Monitor, RunRequest, Words as _, tables};

const EXAMPLES: &str = "\
Examples:
  opentcp sweep scenarios/websearch-leaf-spine.toml --axis tcp.cc=cubic,dctcp,bbr --seeds 5 --out web
  opentcp sweep scenarios/policy-try.toml --axis policy.file=none,policies/opentcp1.toml,policies/opentcp2.toml --seeds 10
  opentcp sweep scenarios/incast.toml --axis \"tcp.rto_min=200 ms,10 ms,1 ms\" --jobs 8

Stopped, it is continued by the same command: runs that are in the folder are not repeated.

The folder, of which libraries read `flows` as one table with a column `run`:
  flows/run=NAME/part.parquet   and the same for links, link_series, cwnd, …
  runs.parquet                  parameters and numbers of each run
  runs/NAME/                    the run's scenario with every default, and its summary.json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The scenario file (TOML); docs/scenarios.md has the reference
    scenario: PathBuf,
    /// Values of a key, dotted, separated by commas, or a list of TOML; may be given many times. The last one varies fastest
    #[arg(long = "axis", value_name = "KEY=V1,V2")]
    axes: Vec<String>,
    /// Seeds 1 to N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Set a key of the scenario, dotted; may be given many times. A key of the sweep then has this value alone
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Folder of the dataset: a new one, or one that this sweep began [default: opentcp-results/NAME-sweep]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One JSON object on stdout instead of tables
    #[arg(long)]
    json: bool,
    /// Cores [default: the number of CPUs]: so many runs in parallel; cores left over share large networks. Results do not depend on it
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// Runs the sweep.
///
/// # Errors
/// The input is wrong, runs failed, or the user stopped it.
pub fn sweep(args: &Args) -> Result<(), Failure> {
    let mut sets = args.axes.iter().map(|axis| axis_set(axis)).collect::<Result<Vec<_>, _>>()?;
    sets.extend(args.seeds.map(|seeds| {
        let seeds: Vec<String> = (1..=seeds).map(|seed| seed.to_string()).collect();
        format!("sweep.seed=[{}]", seeds.join(", "))
    }));
    sets.extend_from_slice(&args.sets);
    let request = RunRequest {
        sets,
        out: args.out.clone(),
        workers: workers(args.jobs),
        ..RunRequest::new(args.scenario.as_path())
    };
    let done = study::sweep(&request, Monitor::new(&Terminal::default(), &stop::on_signals()))?;
    if args.json {
        let runs = done.runs.iter().map(Kept::summary).collect();
        print_json(&Output { scenario: &done.scenario, out: &done.out, runs, run: &done.info })?;
    } else {
        print(&tables(&done.runs))?;
    }
    note!("{}", done.info.words());
    note!("dataset: {}", done.out.display());
    Ok(())
}

/// An axis as an override of the scenario's sweep.
fn axis_set(axis: &str) -> Result<String, Failure> {
    let Some((key, values)) = axis.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
        return Err(Failure::Input(format!(
            "--axis {axis}: write KEY=V1,V2 with a dotted key, such as tcp.cc=cubic,dctcp"
        )));
    };
    let (key, values) = (key.trim(), values.trim());
    if values.starts_with('[') {
        return Ok(format!("sweep.{key}={values}"));
    }
    let values: Vec<String> = values.split(',').map(|value| toml_value(value.trim())).collect();
    Ok(format!("sweep.{key}=[{}]", values.join(", ")))
}

/// A value as TOML: a text gets quotes.
fn toml_value(value: &str) -> String {
    let plain = value.parse::<f64>().is_ok_and(f64::is_finite) || ["true", "false"].contains(&value);
    if plain || value.starts_with(['"', '\'', '{']) {
        value.to_string()
    } else {
        serde_json::Value::from(value).to_string()
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    scenario: &'a str,
    out: &'a Path,
    runs: Vec<RunSummary<'a>>,
    run: &'a RunInfo,
}
