//! Compares treated hosts with the control group of a run: completion times, retransmissions, and confidence intervals of the difference.

use crate::statistics::{self, mean};
use net::SplitMix64;
use results::{Arm, CueEvent, CueRow, FlowRow, RunResults, SelfCheck};
use serde::Serialize;
use std::collections::BTreeMap;

/// The compared traffic; the congestion episodes' own traffic is background.
const BURSTS: &str = "bursts";
/// Before the first CUE no host is treated.
const FIRST_NS: u64 = 2_000_000_000;
/// Flows that start in the last second may not end.
const LAST_NS: u64 = 1_000_000_000;
/// Flows that start within one block are resampled together. A burst, with its RTOs, is shorter.
const BLOCK_NS: u64 = 500_000_000;
/// Resamplings.
const RESAMPLINGS: usize = 1000;

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// One half of the hosts.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// `control`, or the policy.
    pub name: String,
    /// Number of compared flows.
    pub flows: usize,
    /// Median completion time.
    pub p50_ms: Estimate,
    /// Its 99th percentile.
    pub p99_ms: Estimate,
    /// The share of data packets that were retransmitted, %.
    pub retransmitted: Estimate,
    /// Completion times, ms, for the curve.
    #[serde(skip)]
    pub fct_ms: Vec<f64>,
}

/// A period of the Oracle and the agents.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    /// Time since the start of the run.
    pub at_s: f64,
    /// Hosts that CUEs were sent to; 0: withheld.
    pub hosts: u64,
    /// The Oracle's reason.
    pub reason: String,
    /// Guards that reverted until the next period.
    pub reverted: usize,
    /// Guards released.
    pub recovered: usize,
    /// CUEs that expired at hosts.
    pub expired: usize,
}

/// A run's comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Hosts without a policy: `paper` or `today`.
    pub baseline: String,
    /// The treated hosts' policy: `opentcp1` or `opentcp2`.
    pub policy: String,
    /// The control group.
    pub control: Group,
    /// The treated hosts.
    pub treated: Group,
    /// Reduction of the 99th percentile by treatment, %.
    pub p99_reduction: Estimate,
    /// The same reduction, simulated with many seeds, which draw jobs and treated hosts; ascending.
    pub draws: Vec<f64>,
    /// The periods.
    pub turns: Vec<Turn>,
    /// Mean utilization of all links.
    pub mean_utilization: f64,
    /// (s, utilization of the busiest link at that time).
    #[serde(skip)]
    pub busiest: Vec<(f64, f64)>,
    /// (s, hosts that follow the rule at that time).
    #[serde(skip)]
    pub following: Vec<(f64, f64)>,
    /// The CUEs' settings, and their effective values on this kernel.
    pub set: String,
    /// Why the run is not valid, if so.
    pub distorted: Option<String>,
}

/// Flows of a block of time: completion times, packets sent and retransmitted.
#[derive(Clone, Default)]
struct Block {
    fct_ms: Vec<f64>,
    sent: u64,
    retransmitted: u64,
}

impl Compared {
    /// Compares a run's treated hosts with its control group.
    pub fn of(run: &RunResults, check: Option<&SelfCheck>) -> Compared {
        let parameter = |key: &str| run.parameter(key).unwrap_or_default().to_string();
        let policy = parameter("policy");
        let [control, treated] = [Arm::Control, Arm::Treated].map(|arm| blocks(run, arm));
        let resampled = resampled(&control, &treated);
        let reductions: Vec<f64> = resampled.iter().map(|sample| reduction([sample[0].p99, sample[1].p99])).collect();
        Compared {
            baseline: parameter("baseline"),
            control: group("control", &control, &resampled, 0),
            treated: group(&policy, &treated, &resampled, 1),
            policy,
            p99_reduction: estimate(p99_reduction_of([&control, &treated]), &reductions),
            draws: Vec::new(),
            turns: turns(&run.cues),
            mean_utilization: mean(run.link_series.iter().map(|sample| sample.utilization)).unwrap_or_default(),
            busiest: busiest(run),
            following: following(&run.cues),
            set: run.cues.first().map(|row| row.set.to_string()).unwrap_or_default(),
            distorted: check.filter(|check| !check.valid).map(|check| check.reasons.join("; ")),
        }
    }
}

/// Reduction of the 99th percentile by treatment, %.
pub fn p99_reduction(run: &RunResults) -> f64 {
    let [control, treated] = [Arm::Control, Arm::Treated].map(|arm| blocks(run, arm));
    p99_reduction_of([&control, &treated])
}

fn p99_reduction_of(arms: [&[Block]; 2]) -> f64 {
    reduction(arms.map(|blocks| quantile(&all(blocks), 0.99)))
}

/// From control group to treated hosts, %.
fn reduction([before, after]: [f64; 2]) -> f64 {
    (1.0 - after / before) * 100.0
}

/// The flows of one arm by the block of time in which they started.
fn blocks(run: &RunResults, arm: Arm) -> Vec<Block> {
    let end = run.summary.duration_ns;
    let counts = |flow: &&FlowRow| {
        &*flow.group == BURSTS && flow.arm == Some(arm) && (FIRST_NS..end - LAST_NS).contains(&flow.start_ns)
    };
    let mut blocks = vec![Block::default(); ((end - LAST_NS - FIRST_NS) / BLOCK_NS) as usize + 1];
    for flow in run.flows.iter().filter(counts) {
        let block = &mut blocks[((flow.start_ns - FIRST_NS) / BLOCK_NS) as usize];
        // a flow that has not ended took at least this long
        block.fct_ms.push((flow.end_ns.unwrap_or(end) - flow.start_ns) as f64 / 1e6);
        block.sent += flow.data_packets_sent;
        block.retransmitted += flow.retransmits;
    }
    blocks
}

fn all(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().flat_map(|block| block.fct_ms.iter().copied()).collect()
}

/// The statistics of an arm.
#[derive(Clone, Copy)]
struct Numbers {
    p50: f64,
    p99: f64,
    retransmitted: f64,
}

impl Numbers {
    fn of<'a>(blocks: impl Iterator<Item = &'a Block> + Clone) -> Numbers {
        let fct: Vec<f64> = blocks.clone().flat_map(|block| block.fct_ms.iter().copied()).collect();
        let (sent, retransmitted) = blocks.fold((0, 0), |sum, block| (sum.0 + block.sent, sum.1 + block.retransmitted));
        let share = retransmitted as f64 / sent.max(1) as f64 * 100.0;
        Numbers { p50: quantile(&fct, 0.5), p99: quantile(&fct, 0.99), retransmitted: share }
    }
}

/// Both arms with blocks drawn with replacement. The draws are the same for both, since disturbances affect both.
fn resampled(control: &[Block], treated: &[Block]) -> Vec<[Numbers; 2]> {
    let mut random = SplitMix64::new(1, 0);
    let n = control.len();
    let mut sample = || {
        let drawn: Vec<usize> = (0..n).map(|_| ((random.unit() * n as f64) as usize).min(n - 1)).collect();
        [control, treated].map(|blocks| Numbers::of(drawn.iter().map(|block| &blocks[*block])))
    };
    (0..RESAMPLINGS).map(|_| sample()).collect()
}

fn group(name: &str, blocks: &[Block], resampled: &[[Numbers; 2]], arm: usize) -> Group {
    let own = Numbers::of(blocks.iter());
    let of = |value: fn(Numbers) -> f64| {
        let resampled: Vec<f64> = resampled.iter().map(|sample| value(sample[arm])).collect();
        estimate(value(own), &resampled)
    };
    let fct_ms = all(blocks);
    Group {
        name: name.to_string(),
        flows: fct_ms.len(),
        p50_ms: of(|numbers| numbers.p50),
        p99_ms: of(|numbers| numbers.p99),
        retransmitted: of(|numbers| numbers.retransmitted),
        fct_ms,
    }
}

fn estimate(value: f64, resampled: &[f64]) -> Estimate {
    Estimate { value, low: quantile(resampled, 0.025), high: quantile(resampled, 0.975) }
}

/// As [`statistics::quantile`]; 0 without values.
fn quantile(values: &[f64], share: f64) -> f64 {
    statistics::quantile(values, share).unwrap_or_default()
}

fn turns(cues: &[CueRow]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for row in cues {
        let last = turns.last_mut();
        match (row.event, last) {
            (CueEvent::Sent | CueEvent::Withheld, _) => turns.push(Turn {
                at_s: row.time_ns as f64 / 1e9,
                hosts: if row.event == CueEvent::Sent { row.hosts } else { 0 },
                reason: row.reason.to_string(),
                reverted: 0,
                recovered: 0,
                expired: 0,
            }),
            (CueEvent::Reverted, Some(turn)) => turn.reverted += 1,
            (CueEvent::Recovered, Some(turn)) => turn.recovered += 1,
            (CueEvent::Expired, Some(turn)) => turn.expired += 1,
            _ => {}
        }
    }
    turns
}

fn busiest(run: &RunResults) -> Vec<(f64, f64)> {
    let mut most: BTreeMap<u64, f64> = BTreeMap::new();
    for sample in &run.link_series {
        let known = most.entry(sample.time_ns).or_default();
        *known = known.max(sample.utilization);
    }
    most.into_iter().map(|(ns, utilization)| (ns as f64 / 1e9, utilization * 100.0)).collect()
}

fn following(cues: &[CueRow]) -> Vec<(f64, f64)> {
    let (mut hosts, mut points) = (0.0, vec![(0.0, 0.0)]);
    for row in cues {
        let change = match row.event {
            CueEvent::Taken | CueEvent::Recovered => 1.0,
            CueEvent::Reverted | CueEvent::Expired => -1.0,
            CueEvent::Sent | CueEvent::Withheld => continue,
        };
        let at = row.time_ns as f64 / 1e9;
        points.push((at, hosts));
        hosts += change;
        points.push((at, hosts));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fct_ms: &[f64]) -> Block {
        Block { fct_ms: fct_ms.to_vec(), sent: 100, retransmitted: 1 }
    }

    #[test]
    fn an_interval_contains_its_value_and_is_deterministic() {
        let control: Vec<Block> = (0..40).map(|i| block(&[10.0 + f64::from(i % 7), 20.0])).collect();
        let treated: Vec<Block> = (0..40).map(|i| block(&[5.0 + f64::from(i % 7), 10.0])).collect();
        let numbers = |sample: &[Numbers; 2]| sample.map(|arm| arm.p50.to_bits());
        let first: Vec<[u64; 2]> = resampled(&control, &treated).iter().map(numbers).collect();
        let again: Vec<[u64; 2]> = resampled(&control, &treated).iter().map(numbers).collect();
        assert_eq!(first, again);
        let of = group("control", &control, &resampled(&control, &treated), 0);
        assert!(of.p50_ms.low <= of.p50_ms.value && of.p50_ms.value <= of.p50_ms.high && of.flows == 80);
        assert_eq!((of.p99_ms.value, of.retransmitted.value), (20.0, 1.0));
    }

    #[test]
    fn hosts_that_follow_are_counted_up_and_down() {
        let row = |time_ns, event, hosts| CueRow {
            time_ns,
            event,
            epoch: 1,
            rule: "r".into(),
            host: "h1".into(),
            hosts,
            set: "".into(),
            reason: "".into(),
        };
        let cues = [
            row(2_000_000_000, CueEvent::Sent, 8),
            row(2_000_000_000, CueEvent::Taken, 1),
            row(3_000_000_000, CueEvent::Reverted, 1),
            row(4_000_000_000, CueEvent::Withheld, 0),
        ];
        assert_eq!(following(&cues), [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (3.0, 1.0), (3.0, 0.0)]);
        let turns = turns(&cues);
        assert_eq!(turns.iter().map(|turn| (turn.hosts, turn.reverted)).collect::<Vec<_>>(), [(8, 1), (0, 0)]);
    }
}
