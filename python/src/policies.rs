//! Policies: checked, explained, tried.

use crate::errors::{In, exception, input};
use crate::progress::drive;
use crate::scenarios::Scenario;
use policy::{History, NetworkView, Setting, Variable, decide};
use pyo3::prelude::*;
use std::path::PathBuf;
use study::{Source, TrialRequest, policy_words, read_policy, try_policy};

/// A checked policy.
#[pyclass(frozen, module = "opentcp._native")]
#[derive(Debug)]
pub struct Policy {
    source: Source,
    policy: policy::Policy,
}

#[pymethods]
impl Policy {
    #[new]
    fn new(py: Python<'_>, name: String, text: String, base: PathBuf) -> PyResult<Policy> {
        let source = Source::Text { name, text, base };
        let policy = read_policy(&source).map_err(|failure| exception(py, failure, In::Policy))?;
        Ok(Policy { source, policy })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.policy.name
    }

    /// The policy in a line.
    fn words(&self) -> String {
        policy_words(&self.policy)
    }

    /// What it would do in a network: in words, and as JSON.
    fn explain(&self, py: Python<'_>, view: &str) -> PyResult<(String, String)> {
        let view = NetworkView::from_json(view).map_err(|error| input(py, format!("the view, {error}")))?;
        let decision = decide(&self.policy, &view, &mut History::default());
        let json = serde_json::to_string(&decision).map_err(|error| input(py, error.to_string()))?;
        Ok((decision.explain(&self.policy), json))
    }

    /// The network of a scenario with and without it: in words, and as JSON.
    fn try_in(
        &self,
        py: Python<'_>,
        scenario: &Scenario,
        seeds: u32,
        jobs: usize,
        report: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(String, String)> {
        let (network, sets) = scenario.written();
        let request = TrialRequest {
            seeds,
            sets: sets.to_vec(),
            workers: jobs.max(1),
            ..TrialRequest::new(self.source.clone(), network.clone())
        };
        let tried = drive(py, report, In::Scenario, |monitor| try_policy(&request, monitor))?;
        let json = serde_json::to_string(&tried).map_err(|error| input(py, error.to_string()))?;
        Ok((tried.words(), json))
    }
}

/// Every variable (name, type, scope, whether guards may use it, what it is), and every setting (name, example, what it does, reaches).
#[pyfunction]
#[expect(clippy::type_complexity, reason = "rows for Python")]
pub fn variables() -> (Vec<(String, String, String, bool, String)>, Vec<(String, String, String, String)>) {
    let variable = |of: &Variable| {
        (of.name.into(), of.unit.to_string(), of.scope().name().to_string(), of.at_agent, of.doc.to_string())
    };
    let setting = |of: &Setting| (of.name.into(), of.example.to_string(), of.doc.to_string(), of.reaches.to_string());
    (Variable::all().iter().map(variable).collect(), Setting::all().iter().map(setting).collect())
}
