//! `opentcp reproduce`: reproduces a paper's tables and figures and compares them with the paper's.

use crate::failure::Failure;
use crate::options::Options;
use crate::stop;
use crate::terminal::{Terminal, note, print, print_json};
use clap::builder::PossibleValuesParser;
use results::Comparison;
use serde::Serialize;
use std::path::PathBuf;
use study::{DctcpOptions, Monitor, ParityOptions, Request, STUDIES, Slower, Study, TconOptions};
use units::Time;

const EXAMPLES: &str = "\
Examples:
  opentcp reproduce cfi16                              one seed, both routings
  opentcp reproduce cfi16 --seeds 5                    medians and ranges of five seeds
  opentcp reproduce cfi16 --full                       also experiments that explain deviations
  opentcp reproduce cfi16 --set \"duration=2 s\" --json | jq '.comparisons[].ours'
  opentcp reproduce data-centers --full                an hour and more; resumes after an interruption
  opentcp reproduce fast --full                        the errors of scale models, also at 4,394 hosts
  sudo opentcp reproduce dctcp                         also on real kernels, ten minutes
  sudo opentcp reproduce dctcp --slower auto           on a machine that is too slow for real time
  opentcp reproduce dctcp --figure 12 --backend sim
  sudo opentcp reproduce opentcp --backend kernel      on real kernels alone, two minutes
  sudo opentcp reproduce parity --grid --seeds 3       an hour; resumes after an interruption
  opentcp reproduce tcon --backend sim --downloads 100 a minute, for a first look
  sudo opentcp reproduce tcon                          also nginx and curl on real kernels, 18 minutes";

/// The studies, then the examples.
fn after_help() -> String {
    let lines = STUDIES.iter().map(|study| format!("  {:12} {}\n", study.name, study.about));
    format!("Studies:\n{}\n{EXAMPLES}", lines.collect::<String>())
}

fn names() -> Vec<&'static str> {
    STUDIES.iter().map(|study| study.name).collect()
}

#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The studies to reproduce [default: all]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    names: Vec<String>,
    /// Seeds 1 to N; numbers are then medians with ranges
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Add the sweeps and experiments beyond the paper's own settings
    #[arg(long)]
    full: bool,
    /// Set a key of the study's scenario, dotted; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    dctcp: DctcpArgs,
    #[command(flatten)]
    parity: ParityArgs,
    #[command(flatten)]
    tcon: TconArgs,
    #[command(flatten)]
    options: Options,
}

/// Options of the study dctcp; the backend also applies to opentcp and tcon.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "dctcp (the backend: also opentcp and tcon)")]
#[group(id = "dctcp")] // every set of flags needs a name of its own
struct DctcpArgs {
    /// Only this figure; may be given many times
    #[arg(long = "figure", value_name = "1|12|16", value_parser = figure)]
    figures: Vec<u32>,
    /// The backend; without the rights to emulate, `both` means the simulator
    #[arg(long, value_enum, default_value_t = Wanted::Both)]
    backend: Wanted,
    /// Run kernels N times slower than real time, or as much as this machine needs (also opentcp)
    #[arg(long, value_name = "auto|N")]
    slower: Option<Slower>,
    /// Time between two starts or stops in Figure 16 [default: 10 s, with --full 30 s]
    #[arg(long, value_name = "TIME", value_parser = stage)]
    stage: Option<Time>,
}

/// The backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Wanted {
    /// The simulator and, if possible, real kernels
    Both,
    /// The simulator
    Sim,
    /// Real kernels; without the rights to emulate, an error
    Kernel,
}

/// Options of the study parity.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "parity alone")]
#[group(id = "parity")] // every set of flags needs a name of its own
struct ParityArgs {
    /// Instead of the cases: newreno, cubic and bbr over a grid of twenty bottlenecks, compared with the kernel's own
    #[arg(long)]
    grid: bool,
}

/// Options of the study tcon.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "tcon")]
#[group(id = "tcon")] // every set of flags needs a name of its own
struct TconArgs {
    /// At most this many downloads of a file [default: 10,000 of 10 MB on paths with losses, fewer of others, at other losses and on kernels]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    downloads: Option<u32>,
}

/// The studies' own options, validated by the studies.
fn checked(options: DctcpOptions) -> Result<DctcpOptions, String> {
    options.check()?;
    Ok(options)
}

fn figure(text: &str) -> Result<u32, String> {
    // no number is none of its figures
    let number = text.parse().unwrap_or(0);
    checked(DctcpOptions { figures: vec![number], ..DctcpOptions::default() }).map(|_| number)
}

fn stage(text: &str) -> Result<Time, String> {
    let time: Time = text.parse().map_err(|error: units::UnitError| error.to_string())?;
    checked(DctcpOptions { stage: Some(time), ..DctcpOptions::default() }).map(|_| time)
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

/// Runs the studies.
///
/// # Errors
/// The input is wrong, a run failed, or the user stopped it.
pub fn reproduce(args: &Args) -> Result<(), Failure> {
    let wanted = |study: &&Study| args.names.is_empty() || args.names.iter().any(|name| name == study.name);
    let wanted: Vec<&Study> = STUDIES.iter().filter(wanted).collect();
    args.check(&wanted)?;
    let (terminal, stop) = (Terminal::default(), stop::on_signals());
    let mut output = Output { studies: Vec::new(), comparisons: Vec::new() };
    for study in &wanted {
        note!("{}: {}", study.name, study.about);
        let out = match &args.options.out {
            Some(out) if wanted.len() > 1 => out.join(study.name),
            _ => args.options.folder(study.name),
        };
        let done = study::reproduce(&args.request(study.name, out.clone()), Monitor::new(&terminal, &stop))?;
        if !args.options.json {
            print(&done.tables)?;
        }
        let report = out.join("report.html");
        note!("report: {}", report.display());
        output.comparisons.extend(done.comparisons);
        let (wall_s, findings) = (done.wall_s, done.findings);
        output.studies.push(StudyOutput { name: study.name, out, report, wall_s, findings });
    }
    if args.options.json { print_json(&output) } else { Ok(()) }
}

impl Args {
    /// Rejects options of studies that were not asked for.
    fn check(&self, wanted: &[&Study]) -> Result<(), Failure> {
        let has = |name: &str| wanted.iter().any(|study| study.name == name);
        if (!self.dctcp.figures.is_empty() || self.dctcp.stage.is_some()) && !has("dctcp") {
            return Err(Failure::Input("--figure and --stage need the study dctcp".into()));
        }
        if self.dctcp.backend != Wanted::Both && !wanted.iter().any(|study| study.has_kernels()) {
            return Err(Failure::Input("--backend needs one of the studies dctcp, opentcp and tcon".into()));
        }
        let slows = |study: &&Study| study.name == "dctcp" || study.name == "opentcp";
        if self.dctcp.slower.is_some() && !wanted.iter().any(slows) {
            return Err(Failure::Input("--slower needs the study dctcp or opentcp".into()));
        }
        if self.dctcp.slower.is_some() && self.dctcp.backend == Wanted::Sim {
            return Err(Failure::Input("--slower needs real kernels: leave out --backend sim".into()));
        }
        if self.parity.grid && !has("parity") {
            return Err(Failure::Input("--grid needs the study parity".into()));
        }
        if self.tcon.downloads.is_some() && !has("tcon") {
            return Err(Failure::Input("--downloads needs the study tcon".into()));
        }
        Ok(())
    }

    fn request(&self, study: &str, out: PathBuf) -> Request {
        Request {
            study: study.to_string(),
            seeds: self.seeds,
            full: self.full,
            sets: self.sets.clone(),
            out,
            workers: self.options.workers(),
            backend: match self.dctcp.backend {
                Wanted::Both => study::Wanted::Both,
                Wanted::Sim => study::Wanted::Sim,
                Wanted::Kernel => study::Wanted::Kernel,
            },
            slower: self.dctcp.slower.unwrap_or_default(),
            dctcp: DctcpOptions { figures: self.dctcp.figures.clone(), stage: self.dctcp.stage },
            parity: ParityOptions { grid: self.parity.grid },
            tcon: TconOptions { downloads: self.tcon.downloads },
        }
    }
}
