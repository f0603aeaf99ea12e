//! `opentcp scenario`: whether a scenario file is right, and what it describes.

use crate::failure::Failure;
use crate::policy::load_view;
use crate::terminal::{note, print};
use policy::NetworkView;
use scenario::{Run, Scenario};
use sketch::Sketch;
use std::fs;
use std::path::{Path, PathBuf};
use study::{Backend, Twin};

/// Shown under `opentcp scenario --help`.
pub const EXAMPLES: &str = "\
Examples:
  opentcp scenario check scenarios/dumbbell.toml
  opentcp scenario show scenarios/cfi16-fat-tree.toml
  opentcp scenario show scenarios/dumbbell.toml --html dumbbell.html   with a picture
  opentcp scenario from-view network.json --out fleet.toml             of a network that was measured";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Check scenario files
    ///
    /// Shows every mistake with its line and what to write instead. Runs nothing. Exit codes: 0 all files are correct, 2 one is not.
    #[command(
        after_help = "Examples:\n  opentcp scenario check *.toml\n  opentcp scenario check a.toml --set tcp.cc=bbr"
    )]
    Check {
        /// Scenario files (TOML)
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Set a key, dotted; may be given many times
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
    },
    /// Show a scenario's network and traffic
    ///
    /// Prints the switches with their hosts, the kinds of cables, and who sends what to whom. With --html it also writes a page with a
    /// picture, for any browser. It shows the first run of a sweep.
    #[command(after_help = "Examples:\n  opentcp scenario show a.toml\n  opentcp scenario show a.toml --html a.html")]
    Show {
        /// The scenario file (TOML)
        file: PathBuf,
        /// Set a key, dotted; may be given many times
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        /// Write the page to this file; an existing file is replaced
        #[arg(long, value_name = "PAGE")]
        html: Option<PathBuf>,
    },
    /// Make a scenario of a measured network
    ///
    /// Takes hosts, racks, cables, rates, round-trip times and transfers by size from a view, as the Oracle has it (docs/policies.md
    /// lists its keys). What the view does not say is assumed, and each assumption is a comment in the scenario.
    #[command(
        name = "from-view",
        after_help = "Examples:\n  opentcp policy network >network.json\n  opentcp scenario from-view network.json --out fleet.toml\n  \
                      opentcp scenario show fleet.toml"
    )]
    FromView {
        /// The state of the network (JSON)
        #[arg(value_name = "VIEW.json")]
        view: PathBuf,
        /// The scenario file; the files of sizes that it names are written beside it
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// Does what was asked for.
///
/// # Errors
/// A file that is wrong, or cannot be read or written.
pub fn scenario(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Check { files, sets } => check(files, sets),
        Command::Show { file, sets, html } => show(file, sets, html.as_deref()),
        Command::FromView { view, out } => write_twin(&twin(&load_view(view)?)?, out),
    }
}

/// A scenario of a measured network.
///
/// # Errors
/// Too little was measured.
pub fn twin(view: &NetworkView) -> Result<Twin, Failure> {
    let names = study::algorithm_names();
    Twin::of(view, &|name| names.contains(&name)).map_err(|error| Failure::Input(error.to_string()))
}

/// Writes it, and says what it assumes.
///
/// # Errors
/// It cannot be written.
pub fn write_twin(twin: &Twin, out: &Path) -> Result<(), Failure> {
    twin.write(out)?;
    note!("wrote {}", out.display());
    twin.assumed.iter().for_each(|line| note!("assumed: {line}"));
    Ok(())
}

/// A mistake in one file does not hide those of the next.
fn check(files: &[PathBuf], sets: &[String]) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for file in files {
        match load(file, sets) {
            Ok(runs) => {
                let size = sketch(&runs[0].scenario)?.size();
                let many = if runs.len() == 1 { "1 run".to_string() } else { format!("{} runs", runs.len()) };
                print(&format!("{}: good: {size}; {many} of {}\n", file.display(), runs[0].scenario.duration))?;
            }
            Err(Failure::Located(diagnostics)) => wrong.extend(diagnostics),
            Err(other) => return Err(other),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Located(wrong)) }
}

fn show(file: &Path, sets: &[String], html: Option<&Path>) -> Result<(), Failure> {
    let runs = load(file, sets)?;
    if runs.len() > 1 {
        note!("this scenario is a sweep; what is shown is its first run, {}", runs[0].name);
    }
    let sketch = sketch(&runs[0].scenario)?;
    if let Some(page) = html {
        fs::write(page, sketch.page()).map_err(|error| Failure::Input(format!("{}: {error}", page.display())))?;
    }
    print(&sketch.text())?;
    if let Some(page) = html {
        note!("picture: {}", page.display());
    }
    Ok(())
}

fn sketch(scenario: &Scenario) -> Result<Sketch<'_>, Failure> {
    Sketch::of(scenario).map_err(|error| Failure::Input(error.to_string()))
}

/// The emulator's algorithms include the simulator's.
fn load(file: &Path, sets: &[String]) -> Result<Vec<Run>, Failure> {
    Ok(study::load_scenario(file, sets, Backend::Emu)?)
}
