//! `opentcp policy tune`: searches a policy's numbers in the simulator.

use crate::failure::Failure;
use crate::options::workers;
use crate::stop;
use crate::terminal::{Terminal, note, print, print_json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use study::{Monitor, TuneRequest};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy file (TOML)
    file: PathBuf,
    /// The network and its traffic (TOML); a policy in it is ignored. Each run of its sweep counts, if it has one
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// A number to search, with the range; may be given many times [default: the numbers of all conditions and of all that is set]
    ///
    /// A number has the key that leads to it: `rule.NAME.when`, `rule.NAME.set.rto_min`, `constraint.NAME.holds`, `period`. The second one
    /// in the same condition is `rule.NAME.when#2`. Without a range it is searched from a quarter of its value to four times it.
    #[arg(long = "vary", value_name = "KEY[=LOW..HIGH]")]
    vary: Vec<String>,
    /// Take no numbers that raise another quantity by more than this; may be given many times
    ///
    /// The search keeps to it in the training, and numbers that exceed it on the held-back runs are not taken. Quantities:
    /// network.fct_p50, network.fct_p90, network.fct_p99, network.drop_rate.
    #[arg(long = "limit", value_name = "QUANTITY=PERCENT")]
    limits: Vec<String>,
    /// Keep the runs of the scenario's sweep that have this value from the search, such as a load; may be given many times
    #[arg(long, value_name = "KEY=VALUE")]
    hold_back: Vec<String>,
    /// How many sets of numbers are tried
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    trials: u32,
    /// Seeds 1 to N choose the numbers
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// N more seeds judge them
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(i64::from(TuneRequest::HELD_BACK_MIN)..=1000))]
    held_back_seeds: u32,
    /// Set a key of the scenario, dotted; may be given many times. `policy.period` is T in the simulated network
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Where the policy and the evidence are written [default: NAME-tuned.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
/// The input is wrong, a run failed, the user stopped it, or the policy cannot be written.
pub fn tune(args: &Args) -> Result<(), Failure> {
    let out = place(args)?;
    let request = TuneRequest {
        vary: args.vary.clone(),
        limits: args.limits.clone(),
        hold_back: args.hold_back.clone(),
        trials: args.trials,
        seeds: args.seeds,
        held_back_seeds: args.held_back_seeds,
        sets: args.sets.clone(),
        workers: workers(args.jobs),
        ..TuneRequest::new(args.file.as_path(), args.scenario.as_path())
    };
    let tuned = study::tune(&request, Monitor::new(&Terminal::default(), &stop::on_signals()))?;
    tuned.write(&out)?;
    note!("wrote {}", out.display());
    if args.json { print_json(&tuned) } else { print(&tuned.words()) }
}

/// Where the policy is written. That it can be is known before hours of simulation, not after.
fn place(args: &Args) -> Result<PathBuf, Failure> {
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let out = args.out.clone().unwrap_or_else(|| format!("{stem}-tuned.toml").into());
    if out.exists() {
        let what = format!("`{}` exists already: remove it, or give another file by --out", out.display());
        return Err(Failure::Input(what));
    }
    match out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::Input(format!("--out {}: there is no folder `{}`", out.display(), folder.display())))
        }
        _ => Ok(out),
    }
}
