//! The numbers of all runs, over several seeds as medians: for tables, report and `--json`.

use super::cases::Backend;
use super::measured::{Measure, Measured};
use crate::statistics::median;
use crate::table::number;
use results::Comparison;

/// A number, over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub figure: &'static str,
    pub backend: Backend,
    pub setting: &'static str,
    pub variant: String,
    pub quantity: String,
    pub unit: &'static str,
    pub paper: Option<f64>,
    /// One per seed.
    pub values: Vec<f64>,
    pub note: &'static str,
    /// Why a run is not valid, if so.
    pub distorted: Option<String>,
}

impl Line {
    /// The median of the seeds.
    pub fn ours(&self) -> f64 {
        median(&self.values).expect("a line has a value")
    }

    fn is_of(&self, run: &Measured, measure: &Measure) -> bool {
        let case = &run.case;
        self.figure == case.kind.figure()
            && self.backend == case.backend
            && self.setting == case.setting
            && self.variant == case.variant
            && self.quantity == measure.quantity
    }
}

/// A line for every number, in the order of the runs; further seeds are added to the first one's.
pub fn lines(measured: &[Measured]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for run in measured {
        let distorted = run.check.as_ref().filter(|check| !check.valid).map(|check| check.reasons.join("; "));
        for measure in &run.measures {
            let known = lines.iter_mut().find(|line| line.is_of(run, measure));
            if let Some(line) = known {
                line.values.push(measure.ours);
                line.distorted = line.distorted.take().or(distorted.clone());
                continue;
            }
            lines.push(Line {
                figure: run.case.kind.figure(),
                backend: run.case.backend,
                setting: run.case.setting,
                variant: run.case.variant.clone(),
                quantity: measure.quantity.clone(),
                unit: measure.unit,
                paper: measure.paper,
                values: vec![measure.ours],
                note: measure.note,
                distorted: distorted.clone(),
            });
        }
    }
    lines
}

/// The rows of `--json`: figure by figure, kernels first.
pub fn comparisons(lines: &[Line]) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for figure in ["Figure 1", "Figure 12", "Figure 16"] {
        for backend in [Backend::Kernel, Backend::Sim] {
            let these = lines.iter().filter(|line| line.figure == figure && line.backend == backend);
            rows.extend(these.map(comparison));
        }
    }
    rows
}

fn comparison(line: &Line) -> Comparison {
    let mut note = line.note.to_string();
    if line.values.len() > 1 {
        let low = line.values.iter().copied().fold(f64::MAX, f64::min);
        let high = line.values.iter().copied().fold(f64::MIN, f64::max);
        note = format!("{note}; median of {} runs, from {} to {}", line.values.len(), number(low), number(high));
    }
    if let Some(reason) = &line.distorted {
        note = format!("{note}; NOT VALID: {reason}");
    }
    Comparison {
        figure: line.figure.to_string(),
        case: format!("{}/{}/{}", line.backend.name(), line.setting, line.variant),
        quantity: line.quantity.clone(),
        unit: line.unit.to_string(),
        paper: line.paper,
        ours: line.ours(),
        note,
    }
}
