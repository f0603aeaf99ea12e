//! What a run measures beside its summary's own numbers, which it is added to: so a run that is found in the dataset has it too.

use results::{FlowRow, RunResults, Summary};
use std::collections::BTreeMap;

/// The entry of each scenario that is not mice.
const MAIN: &str = "flows";
/// From here on a flow is an elephant.
const ELEPHANT_BYTES: u64 = 1_000_000;
/// The class of mice in [`results::Slowdown`].
const MICE: &str = "< 10 kB";

/// Keys in [`Summary::extra`].
const GOODPUT: &str = "study.goodput_bps";
const JAIN: &str = "study.jain";
const JOB: &str = "study.job_ms_median";
const JOB_IS_BOUND: &str = "study.job_is_bound";
const ACTIVE: &str = "study.active_link_s";
const ACTIVE_PER_GB: &str = "study.active_link_s_per_gb";

/// A number, and whether it is only a lower bound.
pub type Value = (f64, bool);

/// A quantity: a column of the table.
pub struct Quantity {
    pub name: &'static str,
    pub unit: &'static str,
    pub meaning: &'static str,
    pub of: fn(&Summary) -> Option<Value>,
    /// Less is better.
    pub less: bool,
}

pub const GOODPUT_OF: usize = 0;
pub const DROPS: usize = 2;
pub const MICE_P99: usize = 4;
pub const JOB_TIME: usize = 5;
pub const FAIRNESS: usize = 6;
pub const ACTIVE_A_GB: usize = 8;

pub static QUANTITIES: [Quantity; 9] = [
    Quantity {
        name: "goodput",
        unit: "Gbit/s",
        meaning: "Application bytes of all flows but the additional mice that arrived, over the run.",
        of: |s| extra(s, GOODPUT, 1e-9),
        less: false,
    },
    Quantity {
        name: "delay",
        unit: "us",
        meaning: "From the send at the host, its own queue included, to the receipt; mean over all data packets.",
        of: |s| Some((s.mean_packet_delay_ns? / 1e3, false)),
        less: true,
    },
    Quantity {
        name: "drops",
        unit: "packets",
        meaning: "Packets that any queue refused, of switches and of hosts, which forward in BCube and DCell.",
        of: |s| Some(((s.drops_at_switches + s.drops_at_hosts) as f64, false)),
        less: true,
    },
    Quantity {
        name: "mice p50",
        unit: "slowdown",
        meaning: "Completion time of flows of less than 10 kB over that of the same flow alone, median. A flow that did not end counts with \
                  a lower bound.",
        of: |s| mice(s, |of| of.p50, "p50"),
        less: true,
    },
    Quantity {
        name: "mice p99",
        unit: "slowdown",
        meaning: "The same, 99th percentile.",
        of: |s| mice(s, |of| of.p99, "p99"),
        less: true,
    },
    Quantity {
        name: "job time",
        unit: "ms",
        meaning: "MapReduce: from a job’s beginning to the end of its last task; incast: from a round’s beginning to the arrival of its last \
                  answer; median. With ≥ one that did not end within the run had taken longer already and counts with its age.",
        of: |s| Some((*s.extra.get(JOB)?, s.extra.get(JOB_IS_BOUND).is_some_and(|is_bound| *is_bound > 0.0))),
        less: true,
    },
    Quantity {
        name: "Jain",
        unit: "",
        meaning: "Jain’s index, (Σx)² / (n Σx²), of the rates at which equals were served: on–off flows; web-search flows of 1 MB or more, \
                  whose sizes differ; messages of the shuffle; answers of incast.",
        of: |s| extra(s, JAIN, 1.0),
        less: false,
    },
    Quantity {
        name: "active",
        unit: "link-s",
        meaning: "Energy proxy: seconds in which a link was sending, summed over the links, of which a cable has two.",
        of: |s| extra(s, ACTIVE, 1.0),
        less: true,
    },
    Quantity {
        name: "active a GB",
        unit: "link-s",
        meaning: "The same for each GB that arrived.",
        of: |s| extra(s, ACTIVE_PER_GB, 1.0),
        less: true,
    },
];

fn extra(summary: &Summary, key: &str, factor: f64) -> Option<Value> {
    summary.extra.get(key).map(|value| (value * factor, false))
}

fn mice(summary: &Summary, of: fn(&results::SlowdownOf) -> f64, name: &str) -> Option<Value> {
    let classes = &summary.slowdown.as_ref()?.classes;
    let mice = classes.iter().find(|class| class.class == MICE)?;
    Some((of(mice), mice.at_least.iter().any(|bound| bound == name)))
}

/// Adds the study's numbers to a run's summary.
pub fn complete(run: &mut RunResults) {
    let duration_ns = run.summary.duration_ns;
    if let Some((median, is_bound)) = job_time(&spans(run), duration_ns) {
        run.summary.insert(JOB, median as f64 / 1e6);
        run.summary.insert(JOB_IS_BOUND, f64::from(u8::from(is_bound)));
    }
    let bytes: u64 = main_flows(run).map(|flow| flow.delivered_bytes).sum();
    run.summary.insert(GOODPUT, bytes as f64 * 8e9 / duration_ns as f64);
    let jain = jain(&rates(run));
    run.summary.insert(JAIN, jain.unwrap_or(f64::NAN));
    let share: f64 = run.links.iter().map(|link| link.utilization).sum();
    let active_s = share * duration_ns as f64 / 1e9;
    run.summary.insert(ACTIVE, active_s);
    run.summary.insert(ACTIVE_PER_GB, active_s * 1e9 / run.summary.delivered_bytes as f64);
}

fn main_flows(run: &RunResults) -> impl Iterator<Item = &FlowRow> {
    run.flows.iter().filter(|flow| &*flow.group == MAIN)
}

/// Beginnings and ends of jobs, or of incast's rounds; the end of one that did not end is unknown.
fn spans(run: &RunResults) -> Vec<(u64, Option<u64>)> {
    if !run.jobs.is_empty() {
        return run.jobs.iter().map(|job| (job.start_ns, job.end_ns)).collect();
    }
    let mut rounds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for message in &run.messages {
        let (start, end) = rounds.entry(message.round).or_insert((message.start_ns, message.end_ns));
        (*start, *end) = ((*start).min(message.start_ns), (*end).max(message.end_ns));
    }
    let completed = run.summary.extra.get(&format!("{MAIN}.rounds_completed")).copied().unwrap_or(0.0) as u64;
    rounds.into_iter().map(|(round, (start, end))| (start, (round < completed).then_some(end))).collect()
}

/// The median (nearest rank) of those that ended. One that did not, and has taken longer already, counts with its age: then the median is only
/// a lower bound.
fn job_time(spans: &[(u64, Option<u64>)], end_ns: u64) -> Option<(u64, bool)> {
    let median = |took: &mut Vec<u64>| {
        took.sort_unstable();
        took.get(took.len().saturating_sub(1) / 2).copied()
    };
    let mut took: Vec<u64> = spans.iter().filter_map(|(start, end)| Some((*end)? - start)).collect();
    let of_ended = median(&mut took);
    let ages = spans.iter().filter(|(_, end)| end.is_none()).map(|(start, _)| end_ns - start);
    let ages: Vec<u64> = ages.filter(|age| of_ended.is_none_or(|median| *age > median)).collect();
    took.extend(&ages);
    Some((median(&mut took)?, !ages.is_empty()))
}

/// The rates of equals, bit/s.
fn rates(run: &RunResults) -> Vec<f64> {
    let rate = |bytes: u64, ns: u64| bytes as f64 * 8e9 / ns.max(1) as f64;
    if !run.messages.is_empty() {
        return run.messages.iter().map(|message| rate(message.bytes, message.end_ns - message.start_ns)).collect();
    }
    let large = |flow: &&FlowRow| flow.bytes.is_none_or(|bytes| bytes >= ELEPHANT_BYTES);
    let end = |flow: &FlowRow| flow.end_ns.unwrap_or(run.summary.duration_ns);
    main_flows(run).filter(large).map(|flow| rate(flow.delivered_bytes, end(flow) - flow.start_ns)).collect()
}

/// Jain's index: 1 if all are equal, 1/n if one has everything; none if nobody has anything.
fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_did_not_end_counts_with_its_age() {
        assert_eq!(job_time(&[(0, Some(10)), (10, Some(30)), (30, Some(70))], 100), Some((20, false)));
        // one of 5 so far says nothing; one of 70 says that the median of 10, 20 and 70 or more is 20 or more
        assert_eq!(job_time(&[(0, Some(10)), (10, Some(30)), (30, None)], 35), Some((10, false)));
        assert_eq!(job_time(&[(0, Some(10)), (10, Some(30)), (30, None)], 100), Some((20, true)));
        assert_eq!((job_time(&[(5, None)], 35), job_time(&[], 35)), (Some((30, true)), None));
    }

    #[test]
    fn jain_is_one_of_equals_and_a_share_of_one_that_has_all() {
        assert_eq!(jain(&[3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)² / (3 · 14)
        assert!((jain(&[1.0, 2.0, 3.0]).expect("there are rates") - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(jain(&[0.0]), None);
    }
}
