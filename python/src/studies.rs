//! Published studies.

use crate::errors::{In, input};
use crate::progress::drive;
use pyo3::prelude::*;
use std::path::PathBuf;
use study::{DctcpOptions, Request, STUDIES, Wanted, reproduce};

/// Names of all studies, and what they are.
#[pyfunction]
pub fn studies() -> Vec<(&'static str, &'static str)> {
    STUDIES.iter().map(|study| (study.name, study.about)).collect()
}

/// A request for a study.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Asked {
    name: String,
    seeds: u32,
    full: bool,
    sets: Vec<String>,
    out: Option<PathBuf>,
    jobs: usize,
    backend: String,
    figures: Vec<u32>,
}

/// Runs a study: tables, findings, comparisons as JSON, seconds, the folder.
#[pyfunction]
#[pyo3(name = "study")]
pub fn repeat(
    py: Python<'_>,
    asked: Asked,
    report: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>, String, f64, PathBuf)> {
    let backend = match asked.backend.as_str() {
        "sim" => Wanted::Sim,
        "kernel" => Wanted::Kernel,
        "both" => Wanted::Both,
        other => return Err(input(py, format!("there is no backend `{other}`; there are sim, kernel, both"))),
    };
    let request = Request::new(&asked.name);
    let request = Request {
        seeds: asked.seeds,
        full: asked.full,
        sets: asked.sets,
        out: asked.out.unwrap_or(request.out),
        workers: asked.jobs.max(1),
        backend,
        dctcp: DctcpOptions { figures: asked.figures, ..DctcpOptions::default() },
        ..request
    };
    let done = drive(py, report, In::Scenario, |monitor| reproduce(&request, monitor))?;
    let comparisons = serde_json::to_string(&done.comparisons).map_err(|error| input(py, error.to_string()))?;
    Ok((done.tables, done.findings, comparisons, done.wall_s, request.out))
}
