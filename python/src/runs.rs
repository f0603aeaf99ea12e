//! Runs that are done.

use crate::errors::{In, exception, input};
use crate::tables::{self, Table};
use arrow_array::RecordBatch;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use results::{RunResults, WriteError, WrittenRun, written_runs};
use std::path::PathBuf;
use std::sync::OnceLock;
use study::{Done, Kept, write};

/// A run: its numbers, and its tables, which are in memory or in a folder.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Run {
    kept: Kept,
    tables: Tables,
    /// Made, or read, when first asked for.
    columns: [OnceLock<RecordBatch>; results::Table::ALL.len()],
}

#[derive(Debug)]
enum Tables {
    Memory(Box<RunResults>),
    Folder(Box<WrittenRun>),
}

impl Run {
    fn new(kept: Kept, tables: Tables) -> Run {
        Run { kept, tables, columns: Default::default() }
    }

    fn written(run: WrittenRun) -> Run {
        let WrittenRun { name, parameters, summary, .. } = run.clone();
        Run::new(Kept { name, parameters, summary }, Tables::Folder(Box::new(run)))
    }

    fn results(&self) -> Option<&RunResults> {
        match &self.tables {
            Tables::Memory(results) => Some(results),
            Tables::Folder(_) => None,
        }
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn name(&self) -> &str {
        &self.kept.name
    }

    #[getter]
    fn title(&self) -> &str {
        self.results().map_or("", |results| &results.title)
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
        self.results().is_some()
    }

    /// The scenario of this run, every default written out, and the files that it names.
    fn scenario(&self, py: Python<'_>) -> PyResult<(String, Vec<(String, String)>)> {
        match &self.tables {
            Tables::Memory(results) => {
                let files = results.files.iter().map(|(name, text)| (name.clone(), text.to_string()));
                Ok((results.scenario_toml.clone(), files.collect()))
            }
            Tables::Folder(run) => {
                let (toml, files) = run.scenario().map_err(|error| input(py, error.to_string()))?;
                Ok((toml, files.into_iter().collect()))
            }
        }
    }

    /// The folder that has it, if it is not in memory.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        match &self.tables {
            Tables::Memory(_) => None,
            Tables::Folder(run) => Some(run.folder.clone()),
        }
    }

    /// The table of this name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let wanted = results::Table::named(name).ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        let place = results::Table::ALL.iter().position(|table| *table == wanted).expect("all are there");
        let read = || {
            if let Some(batch) = self.columns[place].get() {
                return Ok(batch.clone());
            }
            let batch = match &self.tables {
                Tables::Memory(results) => tables::batch(results, wanted),
                // what was not measured has no file, and no rows
                Tables::Folder(run) => match run.table(wanted)? {
                    Some(stored) => tables::stored(&stored),
                    None => tables::batch(&RunResults::default(), wanted),
                },
            };
            Ok(self.columns[place].get_or_init(|| batch).clone())
        };
        let batch = py.detach(read).map_err(|error: WriteError| input(py, error.to_string()))?;
        Ok(Table::new(batch))
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
        let of = |results| Run::new(Kept::of(&results), Tables::Memory(Box::new(results)));
        (Batch { batch, out: None }, runs.into_iter().map(of).collect())
    }

    /// With the tables in a folder.
    pub fn in_folder(py: Python<'_>, done: Done, title: String) -> PyResult<(Batch, Vec<Run>)> {
        let Done { scenario, out, info, .. } = done;
        let runs = py.detach(|| written_runs(&out)).map_err(|error| input(py, error.to_string()))?;
        let batch = study::Batch { scenario, title, info };
        Ok((Batch { batch, out: Some(out) }, runs.into_iter().map(Run::written).collect()))
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
    fn write(&self, py: Python<'_>, out: PathBuf, runs: Vec<PyRef<'_, Run>>, replace: bool) -> PyResult<()> {
        let results: Option<Vec<&RunResults>> = runs.iter().map(|run| run.results()).collect();
        let results = results.expect("the caller asks whether they are in memory");
        py.detach(|| write(&out, &self.batch, &results, replace))
            .map_err(|failure| exception(py, failure, In::Scenario))
    }
}

/// The runs in a folder that was written before.
#[pyfunction]
pub fn read_results(py: Python<'_>, folder: PathBuf) -> PyResult<(Batch, Vec<Run>)> {
    let runs = py.detach(|| written_runs(&folder)).map_err(|error| input(py, error.to_string()))?;
    let scenario = runs.first().map(|run| run.summary.scenario.clone()).unwrap_or_default();
    let info = std::fs::read_to_string(folder.join("run.json")).ok().and_then(|text| serde_json::from_str(&text).ok());
    let batch = study::Batch { title: scenario.clone(), scenario, info: info.unwrap_or_default() };
    Ok((Batch { batch, out: Some(folder) }, runs.into_iter().map(Run::written).collect()))
}

/// The tables of these runs, as the command prints them.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub fn overview(runs: Vec<PyRef<'_, Run>>) -> String {
    let kept: Vec<Kept> = runs.iter().map(|run| run.kept.clone()).collect();
    study::tables(&kept)
}
