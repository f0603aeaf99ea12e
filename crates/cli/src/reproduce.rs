//! `opentcp reproduce`: a paper's tables and figures, made again and laid beside the paper's.
//!
//! Each study is a module of its own below this one and an entry of [`STUDIES`]; the rest is the same for all.

mod cfi16;
mod dctcp;
mod opentcp;
mod parity;
mod tcon;

use crate::failure::Failure;
use crate::options::Options;
use crate::terminal::{print, print_json};
use clap::builder::PossibleValuesParser;
use results::Comparison;
use serde::Serialize;
use std::path::PathBuf;

/// A study: its name, what it is, how it is made again.
struct Study {
    name: &'static str,
    about: &'static str,
    reproduce: fn(&Request) -> Result<Reproduced, Failure>,
}

/// A study a line, in the order in which all of them run.
const STUDIES: &[Study] = &[cfi16::STUDY, dctcp::STUDY, opentcp::STUDY, parity::STUDY, tcon::STUDY];

const EXAMPLES: &str = "\
Examples:
  opentcp reproduce cfi16                      one seed, both routings
  opentcp reproduce cfi16 --seeds 5            medians and ranges of five seeds
  opentcp reproduce cfi16 --full               and the experiments that look for the reasons of deviations
  opentcp reproduce cfi16 --set \"duration=2 s\" --json | jq '.comparisons[] | select(.quantity == \"delay\")'
  sudo opentcp reproduce dctcp                 with real kernels, ten minutes; without root the simulator's half
  opentcp reproduce dctcp --figure 12 --backend sim
  sudo opentcp reproduce opentcp --backend kernel   its small half, on real kernels, two minutes
  opentcp reproduce tcon --backend sim --downloads 100   in a minute; without the number 10,000 downloads for the tails
  sudo opentcp reproduce tcon                  and nginx and curl on real kernels, fourteen minutes more";

/// The studies and what they are, then the examples.
fn after_help() -> String {
    let lines = STUDIES.iter().map(|study| format!("  {:8} {}\n", study.name, study.about));
    format!("Studies:\n{}\n{EXAMPLES}", lines.collect::<String>())
}

fn names() -> Vec<&'static str> {
    STUDIES.iter().map(|study| study.name).collect()
}

#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// What to reproduce; everything there is, if absent
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    names: Vec<String>,
    /// Seeds 1 to N; the numbers are then medians, with their ranges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Also the sweeps and experiments beside the paper's own settings
    #[arg(long)]
    full: bool,
    /// Set a key of the study's scenario, dotted; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    dctcp: dctcp::Args,
    #[command(flatten)]
    tcon: tcon::Args,
    #[command(flatten)]
    options: Options,
}

/// What a study is asked for.
struct Request<'a> {
    /// What only that study has.
    dctcp: &'a dctcp::Args,
    /// The same.
    tcon: &'a tcon::Args,
    seeds: u32,
    full: bool,
    sets: &'a [String],
    out: PathBuf,
    workers: usize,
}

/// What came out.
struct Reproduced {
    /// For people.
    tables: String,
    /// In words, computed from the data.
    findings: Vec<String>,
    comparisons: Vec<Comparison>,
    /// Simulated and written in, seconds.
    wall_s: f64,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output {
    studies: Vec<StudyOutput>,
    comparisons: Vec<Comparison>,
}

#[derive(Serialize)]
struct StudyOutput {
    name: &'static str,
    out: PathBuf,
    report: PathBuf,
    wall_s: f64,
    findings: Vec<String>,
}

/// Does the studies that were asked for.
///
/// # Errors
/// What is wrong with the input, or that a run failed, or that the user stopped it.
pub fn reproduce(args: &Args) -> Result<(), Failure> {
    let wanted = |study: &&Study| args.names.is_empty() || args.names.iter().any(|name| name == study.name);
    let wanted: Vec<&Study> = STUDIES.iter().filter(wanted).collect();
    if args.dctcp.is_given() && !wanted.iter().any(|study| study.name == dctcp::STUDY.name) {
        return Err(Failure::Input("--figure and --stage are of the study dctcp, which was not asked for".into()));
    }
    let with_kernels = [dctcp::STUDY.name, opentcp::STUDY.name, tcon::STUDY.name];
    let has_kernels = |study: &&Study| with_kernels.contains(&study.name);
    if args.dctcp.backend() != dctcp::Wanted::Both && !wanted.iter().any(has_kernels) {
        return Err(Failure::Input(
            "--backend is of the studies dctcp, opentcp and tcon, none of which was asked for".into(),
        ));
    }
    if args.tcon.is_given() && !wanted.iter().any(|study| study.name == tcon::STUDY.name) {
        return Err(Failure::Input("--downloads is of the study tcon, which was not asked for".into()));
    }
    let mut output = Output { studies: Vec::new(), comparisons: Vec::new() };
    for study in &wanted {
        eprintln!("{}: {}", study.name, study.about);
        let out = match &args.options.out {
            Some(out) if wanted.len() > 1 => out.join(study.name),
            _ => args.options.folder(study.name),
        };
        let workers = args.options.workers();
        let request = Request {
            dctcp: &args.dctcp,
            tcon: &args.tcon,
            seeds: args.seeds,
            full: args.full,
            sets: &args.sets,
            out: out.clone(),
            workers,
        };
        let done = (study.reproduce)(&request)?;
        if !args.options.json {
            print(&done.tables)?;
        }
        let report = out.join("report.html");
        eprintln!("report: {}", report.display());
        output.comparisons.extend(done.comparisons);
        let (wall_s, findings) = (done.wall_s, done.findings);
        output.studies.push(StudyOutput { name: study.name, out, report, wall_s, findings });
    }
    if args.options.json { print_json(&output) } else { Ok(()) }
}
