//! `opentcp demo`: the policy loop on a small network of real kernels, in three minutes; simulated without the rights for that.

use crate::failure::Failure;
use crate::options::Options;
use crate::stop;
use crate::terminal::{Terminal, note, print, print_json};
use serde::Serialize;
use std::path::Path;
use study::{Compared, Monitor, Slower, Words as _};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Run kernels N times slower than real time, or as much as this machine needs
    #[arg(long, value_name = "auto|N")]
    slower: Option<Slower>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    /// `kernel` or `simulated`.
    backend: &'static str,
    report: &'a Path,
    findings: Vec<String>,
    runs: &'a [Compared],
}

/// Runs the demonstration.
///
/// # Errors
/// A run failed, or the user stopped it.
pub fn demo(args: &Args) -> Result<(), Failure> {
    let out = args.options.folder("demo");
    let (terminal, stop) = (Terminal::default(), stop::on_signals());
    let done = study::demonstrate(&out, args.slower, args.options.workers(), Monitor::new(&terminal, &stop))?;
    let report = out.join("report.html");
    if args.options.json {
        let backend = if done.simulated { "simulated" } else { "kernel" };
        print_json(&Output { backend, report: &report, findings: done.findings, runs: &done.runs })?;
    } else {
        print(&done.tables)?;
    }
    note!("{}", done.info.words());
    note!("report: {}", report.display());
    Ok(())
}
