//! The end of a run: what the command writes, and rows for a table.

use results::{FlowRow, RunResults, RunSummary, report_of};
use serde::Serialize;
use units::Time;

/// Rows of flows at most; the report counts all.
const ROWS: usize = 100;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The bytes of the command's `summary.json`.
    pub summary: String,
    /// The command's `report.html`.
    pub report: String,
    /// The first flows.
    pub flows: Vec<Row>,
    /// How many there were.
    pub opened: usize,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its number.
    pub flow: u64,
    /// The host that sent.
    pub src: String,
    /// The host that received.
    pub dst: String,
    /// The sender's algorithm.
    pub algorithm: String,
    /// Bytes delivered to the application over the time that the flow lasted and was measured, bit/s.
    pub goodput_bps: f64,
    /// Its completion time, ns; none if it did not end.
    pub fct_ns: Option<u64>,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Smoothed round-trip time at the end, us.
    pub srtt_us: Option<u64>,
}

/// The end of the run that `results` are of, which ended at `end`.
pub fn outcome(results: &RunResults, end: Time) -> Outcome {
    let measured = (end.as_ns() - results.summary.duration_ns, end.as_ns());
    Outcome {
        summary: RunSummary::of(results).to_json(),
        report: report_of(results),
        flows: results.flows.iter().take(ROWS).map(|flow| row(flow, measured)).collect(),
        opened: results.flows.len(),
    }
}

fn row(flow: &FlowRow, (began, ended): (u64, u64)) -> Row {
    let fct_ns = flow.end_ns.map(|end| end - flow.start_ns);
    let span_ns = flow.end_ns.unwrap_or(ended).saturating_sub(flow.start_ns.max(began)).max(1);
    Row {
        flow: flow.flow,
        src: flow.src.to_string(),
        dst: flow.dst.to_string(),
        algorithm: flow.algorithm.to_string(),
        goodput_bps: flow.delivered_bytes as f64 * 8e9 / span_ns as f64,
        fct_ns,
        retransmits: flow.retransmits,
        rtos: flow.rtos,
        srtt_us: flow.srtt_us,
    }
}
