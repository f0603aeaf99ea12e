//! What a run of each pathology measures. A value that does not exist is NaN.

use crate::statistics::{mean, median, quantile};
use results::{FlowRow, RunResults};
use std::collections::BTreeMap;

/// When the long flows of the buffer pressure start.
const PRESSURE_NS: u64 = 3_000_000_000;

/// Goodput of all flows, Mbit/s.
pub fn goodput(run: &RunResults) -> Vec<f64> {
    vec![run.summary.goodput_bps.unwrap_or(f64::NAN) / 1e6]
}

/// Mean goodput of the flows with the longer path / that of the flow of `h2`.
pub fn outcast(run: &RunResults) -> Vec<f64> {
    vec![ratio(run, |flow| &*flow.src != "h2", |flow| &*flow.src == "h2")]
}

/// Goodput of the host `near` / that of `distant`.
pub fn unfairness(run: &RunResults) -> Vec<f64> {
    vec![ratio(run, |flow| &*flow.src == "near", |flow| &*flow.src == "distant")]
}

/// Completion times of the messages of 20 kB, ms: median and 95th percentile.
pub fn short_messages(run: &RunResults) -> Vec<f64> {
    let short = run.messages.iter().filter(|message| message.bytes == 20_000);
    let times: Vec<f64> = short.map(|message| (message.end_ns - message.start_ns) as f64 / 1e6).collect();
    vec![median(&times).unwrap_or(f64::NAN), quantile(&times, 0.95).unwrap_or(f64::NAN)]
}

/// 95th percentiles of the queries' completion times, ms: before the long flows start, and from then on.
pub fn queries(run: &RunResults) -> Vec<f64> {
    let mut rounds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for message in &run.messages {
        let (start, end) = rounds.entry(message.round).or_insert((message.start_ns, message.end_ns));
        (*start, *end) = ((*start).min(message.start_ns), (*end).max(message.end_ns));
    }
    let (alone, pressed): (Vec<_>, Vec<_>) = rounds.into_values().partition(|(_, end)| *end < PRESSURE_NS);
    [alone, pressed]
        .map(|spans| {
            let times: Vec<f64> = spans.iter().map(|(start, end)| (end - start) as f64 / 1e6).collect();
            quantile(&times, 0.95).unwrap_or(f64::NAN)
        })
        .to_vec()
}

/// Median of the queue's samples after the warm-up, packets.
pub fn queue(run: &RunResults) -> Vec<f64> {
    let from = run.link_series.last().map_or(0, |sample| sample.time_ns / 2);
    let samples = run.link_series.iter().filter(|sample| sample.time_ns >= from);
    let packets: Vec<f64> = samples.map(|sample| f64::from(sample.queue_packets)).collect();
    vec![median(&packets).unwrap_or(f64::NAN)]
}

/// Goodput of the flow from `left1`, Mbit/s.
pub fn forward(run: &RunResults) -> Vec<f64> {
    let bytes: u64 = run.flows.iter().filter(|flow| &*flow.src == "left1").map(|flow| flow.delivered_bytes).sum();
    vec![bytes as f64 * 8e3 / run.summary.duration_ns as f64]
}

fn ratio(run: &RunResults, above: fn(&FlowRow) -> bool, below: fn(&FlowRow) -> bool) -> f64 {
    let of = |chosen: fn(&FlowRow) -> bool| {
        let bytes = run.flows.iter().filter(|flow| chosen(flow)).map(|flow| flow.delivered_bytes as f64);
        mean(bytes).unwrap_or(f64::NAN)
    };
    // a flow that starved counts as one byte
    of(above) / of(below).max(1.0)
}
