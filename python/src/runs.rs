//! Runs that are done.

use crate::errors::{In, exception};
use crate::tables::{self, Table};
use arrow_array::RecordBatch;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use results::RunResults;
use std::path::PathBuf;
use std::sync::OnceLock;
use study::{Done, Kept, write};

/// A run: its numbers and, if they are in memory, its tables.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Run {
    kept: Kept,
    /// None if they were written while the sweep ran.
    tables: Option<Tables>,
}

#[derive(Debug)]
struct Tables {
    results: RunResults,
    /// Made when first asked for.
    columns: [OnceLock<RecordBatch>; results::Table::ALL.len()],
}

#[pymethods]
impl Run {
    #[getter]
    fn name(&self) -> &str {
        &self.kept.name
    }

    #[getter]
    fn title(&self) -> &str {
        self.tables.as_ref().map_or("", |tables| &tables.results.title)
    }

    #[getter]
    fn parameters(&self) -> Vec<(String, String)> {
        self.kept.parameters.clone()
    }

    /// The numbers of `summary.json`, as JSON.
    fn summary(&self) -> String {
        serde_json::to_string(&self.kept.summary).expect("a summary is finite numbers and texts")
    }

    #[getter]
    fn in_memory(&self) -> bool {
        self.tables.is_some()
    }

    /// The scenario of this run, every default written out, and the files that it names.
    fn scenario(&self) -> Option<(String, Vec<(String, String)>)> {
        let results = &self.tables.as_ref()?.results;
        let files = results.files.iter().map(|(name, text)| (name.clone(), text.to_string()));
        Some((results.scenario_toml.clone(), files.collect()))
    }

    /// The table of this name; None if it is not in memory.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Table>> {
        let wanted = results::Table::named(name).ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        let Some(Tables { results, columns }) = &self.tables else { return Ok(None) };
        let batch = py.detach(|| {
            let place = results::Table::ALL.iter().position(|table| *table == wanted).expect("all are there");
            columns[place].get_or_init(|| tables::batch(results, wanted)).clone()
        });
        Ok(Some(Table::new(batch)))
    }
}

/// What runs have in common: their scenario's name and title, and how fast they were.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Batch {
    batch: study::Batch,
    out: Option<PathBuf>,
}

impl Batch {
    /// With all tables in memory.
    pub fn in_memory(batch: study::Batch, runs: Vec<RunResults>) -> (Batch, Vec<Run>) {
        let of =
            |results| Run { kept: Kept::of(&results), tables: Some(Tables { results, columns: Default::default() }) };
        (Batch { batch, out: None }, runs.into_iter().map(of).collect())
    }

    /// With the tables in a folder.
    pub fn in_folder(done: Done, title: String) -> (Batch, Vec<Run>) {
        let Done { scenario, out, runs, info } = done;
        let of = |kept| Run { kept, tables: None };
        let batch = study::Batch { scenario, title, info };
        (Batch { batch, out: Some(out) }, runs.into_iter().map(of).collect())
    }
}

#[pymethods]
impl Batch {
    #[getter]
    fn scenario(&self) -> &str {
        &self.batch.scenario
    }

    #[getter]
    fn title(&self) -> &str {
        &self.batch.title
    }

    #[getter]
    fn out(&self) -> Option<PathBuf> {
        self.out.clone()
    }

    /// The contents of `run.json`.
    fn info(&self) -> String {
        serde_json::to_string(&self.batch.info).expect("speeds are finite numbers")
    }

    /// Writes these runs, whose tables are in memory, into a folder.
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn write(&self, py: Python<'_>, out: PathBuf, runs: Vec<PyRef<'_, Run>>) -> PyResult<()> {
        let results: Option<Vec<&RunResults>> = runs.iter().map(|run| Some(&run.tables.as_ref()?.results)).collect();
        let results = results.expect("the caller asks whether they are in memory");
        py.detach(|| write(&out, &self.batch, &results)).map_err(|failure| exception(py, failure, In::Scenario))
    }
}

/// The tables of these runs, as the command prints them.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub fn overview(runs: Vec<PyRef<'_, Run>>) -> String {
    let kept: Vec<Kept> = runs.iter().map(|run| run.kept.clone()).collect();
    study::tables(&kept)
}
