//! Failures as Python's exceptions.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use scenario::Diagnostic;
use study::Failure;

/// What was wrong where a failure has a place.
#[derive(Clone, Copy, Debug)]
pub enum In {
    /// A scenario.
    Scenario,
    /// A policy.
    Policy,
}

/// The exception of a failure.
pub fn exception(py: Python<'_>, failure: Failure, place: In) -> PyErr {
    match failure {
        Failure::Input(text) => raise(py, "InputError", (text,)),
        Failure::Located(diagnostic) => located(py, &diagnostic, place),
        Failure::Run(text) => raise(py, "RunError", (text,)),
        Failure::Interrupted | Failure::Paused(_) => PyKeyboardInterrupt::new_err(()),
    }
}

/// Wrong input without a place.
pub fn input(py: Python<'_>, text: String) -> PyErr {
    raise(py, "InputError", (text,))
}

/// The exception of mistakes that have a place.
pub fn located(py: Python<'_>, diagnostic: &Diagnostic, place: In) -> PyErr {
    let of = |problem: &scenario::Located| {
        let scenario::Located { file, line, column, message, help, .. } = problem;
        (message.clone(), file.clone(), *line, *column, help.clone())
    };
    let problems: Vec<_> = diagnostic.problems().iter().map(of).collect();
    let class = match place {
        In::Scenario => "ScenarioError",
        In::Policy => "PolicyError",
    };
    // As text: whether its reader has colours is not known here.
    raise(py, class, (diagnostic.to_string(), problems))
}

/// An exception of the package's own; it is defined in Python, where an exception can have attributes under the stable ABI.
fn raise<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("opentcp._errors").and_then(|module| module.getattr(class)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}
