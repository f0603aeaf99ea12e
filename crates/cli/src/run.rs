//! `opentcp run`: runs a scenario file and writes a folder of results.

use crate::failure::Failure;
use crate::options::Options;
use crate::stop;
use crate::terminal::{Terminal, note, print, print_json};
use results::{RunInfo, RunSummary, SelfCheck, Slowdown, SlowdownOf, Summary};
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::table::{Table, number, optional};
use study::{Kept, Monitor, RunRequest, Words as _};

const EXAMPLES: &str = "\
Examples:
  opentcp run scenarios/dumbbell.toml
  opentcp run scenarios/dumbbell.toml --set traffic.old.cc=vegas --set \"duration=5 s\"
  opentcp run scenarios/incast.toml --jobs 4 --out incast --json > incast.json
  opentcp run opentcp-results/dumbbell/scenario.toml      repeats the run, byte for byte
  opentcp run scenarios/dctcp-star.toml --backend emu     in real time, with real Linux hosts (as root)

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
    /// The scenario file (TOML); docs/scenarios.md has the reference
    scenario: PathBuf,
    /// Set a key of the scenario, dotted; may be given many times. A key of the sweep then has this value alone
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// What runs the scenario
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    backend: Backend,
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
    let request = RunRequest {
        scenario: args.scenario.clone(),
        sets: args.sets.clone(),
        out: args.options.out.clone(),
        workers: args.options.workers(),
        backend: match args.backend {
            Backend::Sim => study::Backend::Sim,
            Backend::Emu => study::Backend::Emu,
        },
    };
    let done = study::run(&request, Monitor::new(&Terminal::default(), &stop::on_signals()))?;
    let report = done.out.join("report.html");
    if args.options.json {
        let runs = done.runs.iter().map(Kept::summary).collect();
        print_json(&Output { scenario: &done.scenario, out: &done.out, report: &report, runs, run: &done.info })?;
    } else {
        print(&table(&done.runs))?;
        if let Some(table) = slowdown_table(&done.runs) {
            print(&format!("\nFCT slowdown by flow size\n{table}"))?;
        }
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
        eprintln!("{text}");
        return Ok(());
    }
    Err(Failure::Run(format!(
        "{text}\nThe results were written, marked as not valid. Lower the rates, or run nothing else on the machine; --allow-distorted \
         accepts them"
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

/// A column: its heading and its value for a run; left out if no run has one.
type Column = (&'static str, fn(&Summary) -> Option<f64>);

const COLUMNS: [Column; 8] = [
    ("goodput Mbit/s", |s| s.goodput_bps.map(|bps| bps / 1e6)),
    ("delay ms", |s| s.mean_packet_delay_ns.map(|ns| ns / 1e6)),
    ("FCT median ms", |s| s.median_fct_ns.map(|ns| ns as f64 / 1e6)),
    ("FCT p99 ms", |s| s.p99_fct_ns.map(|ns| ns as f64 / 1e6)),
    ("drops", |s| Some((s.drops_at_switches + s.drops_at_hosts + s.drops_by_failure) as f64)),
    ("marks", |s| (s.marks > 0).then_some(s.marks as f64)),
    ("retransmits", |s| Some(s.retransmits as f64)),
    ("RTOs", |s| Some(s.rtos as f64)),
];

fn table(runs: &[Kept]) -> String {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value)| runs.iter().any(|run| value(&run.summary).is_some())).collect();
    let mut table = Table::new(["run", "flows", "finished"].into_iter().chain(columns.iter().map(|(name, _)| *name)));
    for run in runs {
        let counts = [run.summary.flows, run.summary.flows_completed].map(|count| number(count as f64));
        let values = columns.iter().map(|(_, value)| optional(value(&run.summary)));
        table.row(std::iter::once(run.name.clone()).chain(counts).chain(values).collect());
    }
    table.render()
}

/// Sized flows from which on percentiles of their slowdown say something.
const SLOWDOWN_FLOWS: u64 = 100;

/// Median and 99th percentile of the slowdown by size class, with `≥` where unfinished flows make it a lower bound; none if no
/// run has enough flows.
fn slowdown_table(runs: &[Kept]) -> Option<String> {
    let measured: Vec<(&str, &Slowdown)> = runs
        .iter()
        .filter_map(|run| Some((run.name.as_str(), run.summary.slowdown.as_ref()?)))
        .filter(|(_, slowdown)| slowdown.all.flows > SLOWDOWN_FLOWS)
        .collect();
    let mut classes: Vec<(u64, &str)> = Vec::new();
    for class in measured.iter().flat_map(|(_, slowdown)| &slowdown.classes) {
        match classes.iter_mut().find(|(_, name)| *name == class.class) {
            Some((least, _)) => *least = class.min_bytes.min(*least),
            None => classes.push((class.min_bytes, &class.class)),
        }
    }
    classes.sort_unstable();
    let names = classes.iter().map(|(_, name)| *name).chain(["all"]);
    let headings = names.flat_map(|name| [format!("{name} p50"), "p99".to_string()]);
    let mut table = Table::new(["run", "unfinished"].map(str::to_string).into_iter().chain(headings));
    for (name, slowdown) in &measured {
        let of = |class: &str| slowdown.classes.iter().find(|of| of.class == class);
        let cells = classes.iter().map(|(_, class)| of(class)).chain([Some(&slowdown.all)]).flat_map(|of| {
            let shown = |value: fn(&SlowdownOf) -> f64, name: &str| {
                let bound = of.is_some_and(|of| of.at_least.iter().any(|bound| bound == name));
                format!("{}{}", if bound { "≥" } else { "" }, optional(of.map(value)))
            };
            [shown(|of| of.p50, "p50"), shown(|of| of.p99, "p99")]
        });
        table.row([name.to_string(), number(slowdown.all.unfinished as f64)].into_iter().chain(cells).collect());
    }
    (!table.is_empty()).then(|| table.render())
}
