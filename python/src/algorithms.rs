//! Congestion-control algorithms: the built-in ones, and users' C files.

use crate::errors::input;
use congestion::{Algorithm, check_invariants, take_fault};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The built-in algorithms: name, title, category, environment, reference, whether it needs ECN.
#[pyfunction]
pub fn algorithms() -> Vec<(&'static str, &'static str, &'static str, &'static str, &'static str, bool)> {
    let of = |algorithm: &'static Algorithm| {
        (
            algorithm.name(),
            algorithm.title(),
            algorithm.category().words(),
            algorithm.environment(),
            algorithm.reference(),
            algorithm.needs_ecn(),
        )
    };
    Algorithm::builtins().iter().map(of).collect()
}

/// Compiles a C file and, if asked for, checks invariants over thousands of ACKs, losses and timeouts, in a process of its own: its name,
/// the compiler's warnings, and a sentence on the invariants.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub fn check_algorithm(py: Python<'_>, file: PathBuf, invariants: bool) -> PyResult<(String, String, String)> {
    let checked = py.detach(|| {
        let algorithm = Algorithm::load(&file).map_err(|error| error.to_string())?;
        let report = if invariants {
            let checked = check_invariants(algorithm);
            // what a hook in Python raised says more than what came of it
            take_fault().map_or(Ok(()), Err)?;
            checked.map_err(|violation| violation.to_string())?.to_string()
        } else {
            String::new()
        };
        Ok((algorithm.name().to_string(), algorithm.warnings().trim_end().to_string(), report))
    });
    checked.map_err(|text: String| input(py, text))
}
