//! `opentcp cc check`: whether a user's file is an algorithm.

use crate::failure::Failure;
use crate::terminal::print;
use congestion::{Algorithm, LoadError, check_invariants, compile_for_bpf};
use kernel::Kernel;
use std::path::Path;

/// Runs every check, with a line each.
///
/// # Errors
/// The file cannot be read or is not an algorithm (bad input), or fails a check.
pub fn check(file: &Path) -> Result<(), Failure> {
    if let Err(error) = std::fs::File::open(file) {
        return Err(Failure::Input(format!("cannot read {}: {error}", file.display())));
    }
    let mut steps = Steps::default();
    let loaded = Algorithm::load(file);
    let no_algorithm = matches!(&loaded, Err(error) if !is_of_this_machine(error));
    let native = steps.step("native build", loaded, |algorithm| {
        let warnings = algorithm.warnings().trim_end();
        let name = format!("algorithm {:?}, {}", algorithm.name(), algorithm.category().words());
        if warnings.is_empty() { name } else { format!("{name}; the compiler warns:\n{warnings}") }
    })?;
    let object = match compile_for_bpf(file) {
        Err(LoadError::Module { .. }) => {
            print(&format!(
                "{:<14}skipped  a module of Linux; the kernel's own `modprobe` loads those\n",
                "BPF build"
            ))?;
            None
        }
        built => steps.step("BPF build", built, |object| format!("{} bytes", object.len()))?,
    };
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
    // A file that is not an algorithm could not be checked; that is bad input, as in a scenario.
    Err(if no_algorithm { Failure::Input(message) } else { Failure::Run(message) })
}

/// Whether a build failed because the compiler or disk space is missing, which says nothing about the file.
fn is_of_this_machine(error: &LoadError) -> bool {
    matches!(error, LoadError::NoCompiler | LoadError::NoClang | LoadError::Run { .. } | LoadError::Folder { .. })
}

/// The kernel's verifier, if this process may use it.
fn verify(steps: &mut Steps, object: &[u8], file: &Path) -> Result<(), Failure> {
    let kernel = match Kernel::probe() {
        Ok(kernel) => kernel,
        Err(missing) => return print(&format!("{:<14}skipped  {missing}\n", "verifier")),
    };
    let verified = kernel.verify(object, &file.display().to_string());
    steps.step("verifier", verified, |verified| {
        let instructions: usize = verified.programs.iter().map(|program| program.instructions).sum();
        let (hooks, release) = (verified.programs.len(), &kernel.features().release);
        format!("Linux {release} accepts {hooks} hooks, {instructions} instructions")
    })?;
    Ok(())
}

/// Counts of the checks so far.
#[derive(Default)]
struct Steps {
    failed: usize,
}

impl Steps {
    /// Prints a step's outcome; returns its result if it passed.
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
