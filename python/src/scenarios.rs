//! A checked scenario.

use crate::errors::{In, exception, input};
use crate::progress::drive;
use crate::runs::{Batch, Run};
use pyo3::prelude::*;
use sketch::Sketch;
use std::path::PathBuf;
use study::{Backend, RunRequest, Source, read_scenario, simulate};

/// A checked scenario and its overrides.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Scenario {
    source: Source,
    sets: Vec<String>,
    /// Names and parameters of its runs.
    runs: Vec<(String, Vec<(String, String)>)>,
    first: scenario::Scenario,
}

#[pymethods]
impl Scenario {
    #[new]
    fn new(py: Python<'_>, name: String, text: String, base: PathBuf, sets: Vec<String>) -> PyResult<Scenario> {
        let source = Source::Text { name, text, base };
        let checked = py.detach(|| read_scenario(&source, &sets, Backend::Sim));
        let checked = checked.map_err(|failure| exception(py, failure, In::Scenario))?;
        let runs = checked.iter().map(|run| (run.name.clone(), run.parameters.clone())).collect();
        let first = checked.into_iter().next().expect("a scenario has a run").scenario;
        Ok(Scenario { source, sets, runs, first })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.first.name
    }

    #[getter]
    fn title(&self) -> Option<&str> {
        self.first.title.as_deref()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.first.seed
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.first.duration.as_secs_f64()
    }

    #[getter]
    fn runs(&self) -> Vec<(String, Vec<(String, String)>)> {
        self.runs.clone()
    }

    /// The first run's scenario with every default.
    fn toml(&self) -> String {
        self.first.to_toml()
    }

    /// Network and traffic of the first run, as text and as a page.
    fn sketch(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let sketch = Sketch::of(&self.first).map_err(|error| input(py, error.to_string()))?;
        Ok((sketch.text(), sketch.page()))
    }

    /// Every run, into memory.
    fn simulate(&self, py: Python<'_>, jobs: usize, report: Option<&Bound<'_, PyAny>>) -> PyResult<(Batch, Vec<Run>)> {
        let request = self.request(jobs);
        drive(py, report, In::Scenario, |monitor| {
            let mut runs = Vec::new();
            let batch = simulate(&request, monitor, |run| {
                runs.push(run);
                Ok(())
            })?;
            Ok(Batch::in_memory(batch, runs))
        })
    }
}

impl Scenario {
    /// Where it is written, and its overrides.
    pub fn written(&self) -> (&Source, &[String]) {
        (&self.source, &self.sets)
    }

    /// The heading of its report.
    pub fn heading(&self) -> String {
        self.first.title.clone().unwrap_or_else(|| self.first.name.clone())
    }

    /// A request for its runs, into a folder.
    pub fn request_into(&self, out: PathBuf, jobs: usize) -> RunRequest {
        RunRequest { out: Some(out), ..self.request(jobs) }
    }

    fn request(&self, jobs: usize) -> RunRequest {
        RunRequest { sets: self.sets.clone(), workers: jobs.max(1), ..RunRequest::new(self.source.clone()) }
    }
}
