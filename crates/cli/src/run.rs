//! `opentcp run`: runs a scenario file and writes a folder of results.

use crate::failure::Failure;
use crate::options::Options;
use crate::stop;
use crate::terminal::{Terminal, message, note, print, print_json};
use results::{RunInfo, RunSummary, SelfCheck};
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::{Kept, Monitor, RunRequest, Slower, Words as _, model_tables, tables};

const EXAMPLES: &str = "\
Examples:
  opentcp run scenarios/dumbbell.toml
  opentcp run scenarios/dumbbell.toml --set traffic.old.cc=vegas --set \"duration=5 s\"
  opentcp run scenarios/incast.toml --jobs 4 --out incast --json > incast.json
  opentcp run opentcp-results/dumbbell/scenario.toml      repeats the run, byte for byte
  opentcp run scenarios/dctcp-star.toml --backend emu     in real time, with real Linux hosts (as root)
  opentcp run scenarios/dctcp-star.toml --backend emu --slower auto    on a machine that is too slow for that
  opentcp run scenarios/fleet.toml --fast                 101,306 hosts, as a scale model

The results folder:
  report.html      charts and tables for a browser
  summary.json     totals and means
  *.parquet        flows, links and, if the scenario asks for them, samples and messages
  scenario.toml    the scenario with every default; files/ has copies of the files that it names
  run.json         how fast the run was
A sweep has a folder for each run.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The scenario file (TOML); scenarios/README.md is the reference
    scenario: PathBuf,
    /// Set a key of the scenario, dotted; may be given many times. A key of the sweep then has this value alone
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// Replace the folder's results even if they are of another scenario or of other values. Without this they stay: the default folder is then
    /// NAME-2, NAME-3 and so on, and one that --out names is refused
    #[arg(long)]
    replace: bool,
    /// What runs the scenario
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    backend: Backend,
    /// Emulator: run the network N times slower than real time, or as much as this machine needs; results are in its own time
    #[arg(long, value_name = "auto|N")]
    slower: Option<Slower>,
    /// Simulate a scale model instead of a network that is too large: FCT slowdown by flow size, with its interval and its measured error. For
    /// Poisson traffic on a fat tree or leaf-spine; refuses what a model cannot say (docs/validation/fast.md)
    #[arg(long, conflicts_with = "backend")]
    fast: bool,
    /// Emulator: exit with 0 even if a run is not valid because the machine was too slow
    #[arg(long)]
    allow_distorted: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Backend {
    /// The simulator: virtual clock, simulated hosts
    Sim,
    /// The emulator: real time, Linux hosts in network namespaces; needs root
    Emu,
}

/// Runs the scenario.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.slower.is_some() && matches!(args.backend, Backend::Sim) {
        return Err(Failure::Input("--slower needs --backend emu: the simulator has no wall clock".into()));
    }
    let request = RunRequest {
        scenario: args.scenario.as_path().into(),
        sets: args.sets.clone(),
        out: args.options.out.clone(),
        replace: args.replace,
        workers: args.options.workers(),
        slower: args.slower.unwrap_or_default(),
        backend: match args.backend {
            Backend::Sim => study::Backend::Sim,
            Backend::Emu => study::Backend::Emu,
        },
    };
    let (terminal, stop) = (Terminal::default(), stop::on_signals());
    let monitor = Monitor::new(&terminal, &stop);
    let done = if args.fast { study::run_fast(&request, monitor) } else { study::run(&request, monitor) }?;
    let report = done.out.join("report.html");
    if args.options.json {
        let runs = done.runs.iter().map(Kept::summary).collect();
        print_json(&Output { scenario: &done.scenario, out: &done.out, report: &report, runs, run: &done.info })?;
    } else {
        print(&if args.fast { model_tables(&done.runs) } else { tables(&done.runs) })?;
    }
    note!("{}", done.info.words());
    note!("report: {}", report.display());
    judge(&done.info.emulations, args.allow_distorted)
}

/// Fails if a run is not valid, unless the user accepts that.
///
/// # Errors
/// Which runs are not valid, and why.
fn judge(checks: &[SelfCheck], allow_distorted: bool) -> Result<(), Failure> {
    let Some(text) = study::emu::distortions(checks) else { return Ok(()) };
    if allow_distorted {
        message!("{text}");
        return Ok(());
    }
    Err(Failure::Run(format!(
        "{text}\nThe results were written, marked as not valid. Run nothing else on the machine, or the network more slowly (--slower auto); \
         --allow-distorted accepts them"
    )))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    scenario: &'a str,
    out: &'a Path,
    report: &'a Path,
    runs: Vec<RunSummary<'a>>,
    run: &'a RunInfo,
}
