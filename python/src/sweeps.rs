//! Sweeps into datasets: here, or run by run elsewhere.

use crate::errors::{In, exception, input};
use crate::progress::drive;
use crate::runs::{Batch, Run};
use crate::scenarios::Scenario;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use results::PackedRun;
use scenario::Bundle;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use study::Shipped;

/// A run's name, parameters, scenario, and the files that it names.
type Errand = (String, Vec<(String, String)>, String, Vec<(String, String)>);

/// An open sweep. It has its folder's lock until it is closed.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Sweep {
    /// None once it is closed: an exception's traceback can keep this object for long.
    open: Mutex<Option<Arc<study::Sweep>>>,
    title: String,
}

#[pymethods]
impl Sweep {
    /// Checks the scenario and opens the folder.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        out: PathBuf,
        jobs: usize,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Sweep> {
        let request = scenario.request_into(out, jobs);
        let sweep = drive(py, report, In::Scenario, |monitor| study::Sweep::open(&request, monitor))?;
        Ok(Sweep { open: Mutex::new(Some(Arc::new(sweep))), title: scenario.heading() })
    }

    /// Numbers of the runs that are to be done.
    fn pending(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        Ok(self.sweep(py)?.pending())
    }

    /// A sentence if some were done before.
    fn resumed(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.sweep(py)?.resumed())
    }

    /// A run for another process: name, parameters, scenario, files.
    fn ship(&self, py: Python<'_>, number: usize) -> PyResult<Errand> {
        let Shipped { name, parameters, bundle } = self.sweep(py)?.ship(number);
        let files = bundle.files.into_iter().map(|(name, text)| (name, text.to_string()));
        Ok((name, parameters, bundle.toml, files.collect()))
    }

    /// Takes the files that [`run_shipped`] gave.
    fn add(&self, py: Python<'_>, number: usize, files: Vec<(String, Vec<u8>)>) -> PyResult<()> {
        let sweep = self.sweep(py)?;
        let added = py.detach(|| sweep.add(number, &PackedRun { files }));
        added.map_err(|failure| exception(py, failure, In::Scenario))
    }

    /// Does what is pending, here.
    fn run(&self, py: Python<'_>, jobs: usize, report: Option<&Bound<'_, PyAny>>) -> PyResult<(Batch, Vec<Run>)> {
        let sweep = self.sweep(py)?;
        let done = drive(py, report, In::Scenario, |monitor| sweep.run(jobs.max(1), monitor))?;
        Batch::in_folder(py, done, self.title.clone())
    }

    /// Ends a sweep whose runs went on elsewhere, `jobs` at a time; these failed: names, and why.
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn finish(&self, py: Python<'_>, jobs: usize, failed: Vec<(String, String)>) -> PyResult<(Batch, Vec<Run>)> {
        let sweep = self.sweep(py)?;
        let done = py.detach(|| sweep.judge(sweep.finish(jobs)?, &failed));
        Batch::in_folder(py, done.map_err(|failure| exception(py, failure, In::Scenario))?, self.title.clone())
    }

    /// Gives the folder free.
    fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Sweep {
    fn sweep(&self, py: Python<'_>) -> PyResult<Arc<study::Sweep>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| input(py, "the sweep is closed".into()))
    }
}

/// Simulates a shipped run; the files that its scenario names are in the folder `base`. Names and contents of its results' files.
#[pyfunction]
#[pyo3(signature = (name, parameters, toml, base, report = None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub fn run_shipped<'py>(
    py: Python<'py>,
    name: String,
    parameters: Vec<(String, String)>,
    toml: String,
    base: PathBuf,
    report: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
    let run = Shipped { name, parameters, bundle: Bundle { toml, files: BTreeMap::default() } };
    let packed = drive(py, report, In::Scenario, |monitor| run.run(&base, monitor))?;
    Ok(packed.files.into_iter().map(|(name, bytes)| (name, PyBytes::new(py, &bytes))).collect())
}
