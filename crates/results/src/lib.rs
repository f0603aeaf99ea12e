//! A run's measurements: tables, a summary, and a report that needs only a browser.
//!
//! Every backend fills the same [`RunResults`]. This crate depends on no simulator, scenario or clock: the same rows
//! give the same bytes.
#![forbid(unsafe_code)]

mod axis;
mod charts;
mod columns;
#[cfg(unix)]
mod content;
#[cfg(unix)]
mod dataset;
mod digest;
mod figure;
mod grid;
mod palette;
#[cfg(unix)]
mod read;
mod report;
mod rows;
mod run_summary;
#[cfg(unix)]
mod run_table;
mod selfcheck;
mod slowdown;
mod summary;
#[cfg(unix)]
mod tables;
#[cfg(unix)]
mod write;

pub use columns::{Column, Table, Values};
#[cfg(unix)]
pub use content::{Content, Maker};
#[cfg(unix)]
pub use dataset::{Dataset, PackedRun, StoredRun};
pub use figure::{Curve, Figure, Panel, Scale};
pub use grid::{Cell, Grid, Multiples};
#[cfg(unix)]
pub use read::{StoredTable, WrittenRun, written_runs};
pub use report::{Story, report_of, study_report};
pub use rows::{
    Arm, CaState, CoflowRow, CueEvent, CueRow, CwndSample, EnforcerRow, FlowRow, JobRow, LinkRow, LinkSample,
    MessageRow, RuleRow,
};
pub use run_summary::RunSummary;
pub use selfcheck::SelfCheck;
pub use slowdown::{ModelError, OfModel, Slowdown, SlowdownOf};
pub use summary::{Comparison, Identity, RunInfo, Summary};
#[cfg(unix)]
pub use write::{SweepWriter, WriteError, write_run, write_sweep};

use std::collections::BTreeMap;
use std::sync::Arc;

/// The style of every page that this program writes: light, dark, narrow and on paper. Colours of series are the classes `f0` to `f9`
/// (filled) and `s0` to `s9` (drawn).
pub const STYLE: &str = include_str!("report.css");

/// Everything that one run measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResults {
    /// Name of the run, unique in its sweep and fit for a folder: `single-path/vegas` becomes `single-path-vegas`.
    pub name: String,
    /// A sentence for the heading of its report; empty: its name.
    pub title: String,
    /// Parameters of this run, in the order to show; in a sweep the keys distinguish the runs
    /// (`algorithm`, `routing`, `seed`).
    pub parameters: Vec<(String, String)>,
    /// The resolved scenario, as TOML, that reproduces the run.
    pub scenario_toml: String,
    /// Copies of the files that the scenario names: path relative to it, below `files/`, and text.
    pub files: BTreeMap<String, Arc<str>>,
    /// One row per flow, by `flow`.
    pub flows: Vec<FlowRow>,
    /// One row per link.
    pub links: Vec<LinkRow>,
    /// Samples of links, by time; empty if none were asked for.
    pub link_series: Vec<LinkSample>,
    /// Samples of senders, by time; empty if none were asked for.
    pub cwnd: Vec<CwndSample>,
    /// What happened to a policy's rules, by time; empty without one.
    pub cues: Vec<CueRow>,
    /// What happened to each of the policy's rules, in their order; empty without one.
    pub rules: Vec<RuleRow>,
    /// Flows that an enforcer handled, by their end; empty without one.
    pub enforcer: Vec<EnforcerRow>,
    /// Messages on connections that are kept for more than one, in the order of their ends; empty if none were asked for.
    pub messages: Vec<MessageRow>,
    /// Runs of jobs, entry by entry; empty without any.
    pub jobs: Vec<JobRow>,
    /// Their coflows, in the same order.
    pub coflows: Vec<CoflowRow>,
    /// The summary's numbers.
    pub summary: Summary,
}

impl RunResults {
    /// The value of a parameter.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
}
