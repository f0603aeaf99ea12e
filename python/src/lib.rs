//! What the Python package `opentcp` takes from Rust; its users see the modules in `opentcp/`.
//!
//! ```text
//! Scenario(name, text, base, sets) ──simulate──▶ Batch of Run ──table──▶ Table ──__arrow_c_stream__──▶ polars, pandas, DuckDB
//!                                  ──Sweep──▶ a dataset, as the command `opentcp sweep` writes it; runs here, or shipped to other processes
//! ```
//!
//! Work goes on in a thread of its own, without the interpreter's lock; the calling thread waits, takes signals and reports
//! progress ([`progress`]). A failure becomes an exception of `opentcp._errors` ([`errors`]).
#![forbid(unsafe_code)]

mod algorithms;
mod errors;
mod hooks;
mod policies;
mod progress;
mod runs;
mod scenarios;
mod studies;
mod sweeps;
mod tables;

use pyo3::prelude::*;

/// The extension module `opentcp._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::algorithms::{algorithms, check_algorithm};
    #[pymodule_export]
    use crate::hooks::{AckSample, RateSample, Socket, register_algorithm};
    #[pymodule_export]
    use crate::policies::{Policy, variables};
    #[pymodule_export]
    use crate::runs::{Batch, Run, overview, read_results};
    #[pymodule_export]
    use crate::scenarios::Scenario;
    #[pymodule_export]
    use crate::studies::{repeat, studies};
    #[pymodule_export]
    use crate::sweeps::{Sweep, run_shipped};
    #[pymodule_export]
    use crate::tables::{Column, Table};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
