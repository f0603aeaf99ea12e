//! `opentcp cc`: what algorithms there are, and whether a user's file is one.

use crate::failure::Failure;
use crate::table::Table;
use crate::terminal::{print, print_json};
use congestion::{Algorithm, Category, LoadError, check_invariants, compile_for_bpf};
use kernel::Kernel;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Shown under `opentcp cc --help`.
pub const EXAMPLES: &str = "\
Examples:
  opentcp cc list                 what each algorithm is, and what it takes for congestion
  opentcp cc list --json          the same for a program
  opentcp cc check my_reno.c      native build, BPF build, invariants, and the kernel's verifier";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the built-in algorithms
    ///
    /// For each one: its name in scenarios, its kind, what it takes for congestion, whether its connections must
    /// negotiate ECN, the environment it was made for, and the paper or RFC that describes it.
    #[command(after_help = "Examples:\n  opentcp cc list\n  opentcp cc list --json")]
    List {
        /// One JSON object on stdout instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Check a C file of your own
    ///
    /// Compiles it natively (what the simulator runs) and for BPF (what the Linux kernel runs), plays thousands of
    /// ACKs, losses and time-outs with it in a process of its own and looks for what no algorithm may do, and, where
    /// this process may load BPF programs, hands it to the kernel's verifier. Each step is one line; a failed one shows
    /// the compiler's or the verifier's own words. The contract is the header cc/include/tcp.h; docs/algorithms.md
    /// explains it.
    ///
    /// Checking runs the file's code with your rights. Exit codes: 0 all passed, 1 a check failed, 2 the file cannot be
    /// read, does not compile or declares no algorithm.
    #[command(after_help = "Examples:\n  opentcp cc check my_reno.c\n  opentcp run scenarios/dumbbell.toml --set \
                            traffic.new.cc=\"$PWD/my_reno.c\"")]
    Check {
        /// The C file
        file: PathBuf,
    },
}

/// Does what was asked for.
///
/// # Errors
/// A file that cannot be read or is no algorithm (bad input), or that fails a check.
pub fn cc(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List { json: true } => print_json(&Listing { algorithms: entries() }),
        Command::List { json: false } => print(&listing()),
        Command::Check { file } => check(file),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Listing {
    algorithms: Vec<Entry>,
}

/// One algorithm.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    category: &'static str,
    environment: &'static str,
    measures: Vec<&'static str>,
    needs_ecn: bool,
    reference: &'static str,
}

fn entries() -> Vec<Entry> {
    let entry = |algorithm: &'static Algorithm| Entry {
        name: algorithm.name(),
        title: algorithm.title(),
        category: category(algorithm.category()),
        environment: algorithm.environment(),
        measures: measures(algorithm),
        needs_ecn: algorithm.needs_ecn(),
        reference: algorithm.reference(),
    };
    Algorithm::builtins().iter().map(entry).collect()
}

fn listing() -> String {
    let mut table = Table::new(["name", "title", "category", "congestion is", "needs ECN", "environment", "reference"]);
    for entry in entries() {
        table.row(vec![
            entry.name.to_string(),
            entry.title.to_string(),
            entry.category.to_string(),
            entry.measures.join(", "),
            if entry.needs_ecn { "yes" } else { "no" }.to_string(),
            entry.environment.to_string(),
            entry.reference.to_string(),
        ]);
    }
    table.render()
}

fn category(category: Category) -> &'static str {
    match category {
        Category::LossBased => "loss-based",
        Category::DelayBased => "delay-based",
        Category::Hybrid => "hybrid",
        Category::EcnBased => "ECN-based",
        Category::ModelBased => "model-based",
        Category::Unknown => "unknown",
    }
}

fn measures(algorithm: &Algorithm) -> Vec<&'static str> {
    let all = [
        (algorithm.measures_loss(), "loss"),
        (algorithm.measures_delay(), "delay"),
        (algorithm.measures_ecn(), "ECN"),
        (algorithm.measures_model(), "model"),
    ];
    all.into_iter().filter(|(measured, _)| *measured).map(|(_, name)| name).collect()
}

fn check(file: &Path) -> Result<(), Failure> {
    if let Err(error) = std::fs::File::open(file) {
        return Err(Failure::Input(format!("cannot read {}: {error}", file.display())));
    }
    let mut steps = Steps::default();
    let loaded = Algorithm::load(file);
    let no_algorithm = matches!(&loaded, Err(error) if !is_of_this_machine(error));
    let native = steps.step("native build", loaded, |algorithm| {
        let warnings = algorithm.warnings().trim_end();
        let name = format!("algorithm {:?}, {}", algorithm.name(), category(algorithm.category()));
        if warnings.is_empty() { name } else { format!("{name}; the compiler warns:\n{warnings}") }
    })?;
    let object = steps.step("BPF build", compile_for_bpf(file), |object| format!("{} bytes", object.len()))?;
    if let Some(algorithm) = native {
        steps.step("invariants", check_invariants(algorithm), ToString::to_string)?;
    }
    if let Some(object) = object {
        verify(&mut steps, &object, file)?;
    }
    if steps.failed == 0 {
        return Ok(());
    }
    let message = format!("{} fails {}", file.display(), steps.count());
    // What is no algorithm could not be checked; it is bad input, as in a scenario.
    Err(if no_algorithm { Failure::Input(message) } else { Failure::Run(message) })
}

/// Whether a build failed for want of a compiler or of room, which says nothing about the file.
fn is_of_this_machine(error: &LoadError) -> bool {
    matches!(error, LoadError::NoCompiler | LoadError::NoClang | LoadError::Run { .. } | LoadError::Folder { .. })
}

/// The kernel's verifier, where this process may ask it.
fn verify(steps: &mut Steps, object: &[u8], file: &Path) -> Result<(), Failure> {
    let kernel = match Kernel::probe() {
        Ok(kernel) => kernel,
        Err(missing) => return print(&format!("{:<14}skipped  {missing}\n", "verifier")),
    };
    let verified = kernel.verify(object, &file.display().to_string());
    steps.step("verifier", verified, |verified| {
        let instructions: usize = verified.programs.iter().map(|program| program.instructions).sum();
        let (hooks, release) = (verified.programs.len(), &kernel.features().release);
        format!("Linux {release} takes {hooks} hooks, {instructions} instructions")
    })?;
    Ok(())
}

/// The checks so far.
#[derive(Default)]
struct Steps {
    failed: usize,
}

impl Steps {
    /// Prints how a step went; its result, if it went well.
    fn step<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        outcome: Result<T, E>,
        words: impl Fn(&T) -> String,
    ) -> Result<Option<T>, Failure> {
        match outcome {
            Ok(value) => {
                print(&format!("{name:<14}ok       {}\n", words(&value)))?;
                Ok(Some(value))
            }
            Err(error) => {
                self.failed += 1;
                print(&format!("{name:<14}failed   {}\n", error.to_string().trim_end()))?;
                Ok(None)
            }
        }
    }

    fn count(&self) -> String {
        if self.failed == 1 { "one check".to_string() } else { format!("{} checks", self.failed) }
    }
}
