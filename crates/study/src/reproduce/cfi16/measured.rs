//! The study's measurements of a run, and their medians over seeds.

use crate::statistics::median;
use results::{LinkRow, RunResults};
use scenario::Scenario;

/// "Vegas keeps the queue under 20 packets most of the time": the paper's line in Figure 3.
pub const LOW_QUEUE_PACKETS: u32 = 20;

/// One run's numbers; `None` for what a changed scenario does not measure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Packets that the queues of the 45 switches dropped.
    pub drops: f64,
    /// Received IP bytes over the run and the link rate: mean over data flows and, as flows of their own, their ACKs.
    pub throughput_percent: Option<f64>,
    /// The same, data flows only.
    pub goodput_percent: Option<f64>,
    /// From IP send to IP receive, mean over the packets of the data flows.
    pub delay_ms: Option<f64>,
    /// The same, mean over flows of each flow's mean.
    pub flow_delay_ms: Option<f64>,
    /// Mean queue of the fullest output port of the most used core switch.
    pub queue_mean: Option<f64>,
    /// Share of its samples under [`LOW_QUEUE_PACKETS`].
    pub queue_low_percent: Option<f64>,
}

impl Measured {
    /// Measures a run.
    pub fn of(run: &RunResults, scenario: &Scenario) -> Measured {
        let summary = &run.summary;
        let percent = |bps: f64| bps / scenario.network.rate.as_bps() as f64 * 100.0;
        let queue = core_queue(run);
        let share = |queue: &Vec<u32>| {
            queue.iter().filter(|packets| **packets < LOW_QUEUE_PACKETS).count() as f64 / queue.len() as f64 * 100.0
        };
        Measured {
            drops: summary.drops_at_switches as f64,
            throughput_percent: summary.mean_data_and_ack_flow_throughput_bps.map(percent),
            goodput_percent: summary.mean_data_flow_throughput_bps.map(percent),
            delay_ms: summary.mean_packet_delay_ns.map(|ns| ns / 1e6),
            flow_delay_ms: summary.mean_flow_delay_ns.map(|ns| ns / 1e6),
            queue_mean: queue.as_ref().map(|queue| mean(queue)),
            queue_low_percent: queue.as_ref().map(share),
        }
    }
}

/// Samples of the core queue: that of the output port with the longest mean queue, at the core switch that sent the most packets.
/// `None` without samples there.
fn core_queue(run: &RunResults) -> Option<Vec<u32>> {
    let from_core = |link: &LinkRow| &*link.tier == "aggregation-core" && link.from.starts_with('c');
    let mut sent: Vec<(&str, u64)> = Vec::new();
    for link in run.links.iter().filter(|link| from_core(link)) {
        match sent.iter_mut().find(|(core, _)| *core == &*link.from) {
            Some((_, packets)) => *packets += link.packets,
            None => sent.push((&link.from, link.packets)),
        }
    }
    // the first of equal ones
    let (core, _) = sent.into_iter().rev().max_by_key(|(_, packets)| *packets)?;
    let mut queues: Vec<Vec<u32>> = vec![Vec::new(); run.links.len()];
    for sample in &run.link_series {
        let link = sample.link as usize;
        if from_core(&run.links[link]) && &*run.links[link].from == core {
            queues[link].push(sample.queue_packets);
        }
    }
    let sampled = queues.into_iter().filter(|queue| !queue.is_empty());
    sampled.max_by(|a, b| mean(a).total_cmp(&mean(b)))
}

fn mean(queue: &[u32]) -> f64 {
    queue.iter().map(|packets| u64::from(*packets)).sum::<u64>() as f64 / queue.len() as f64
}

/// The runs of one environment and variant, one per seed.
#[derive(Clone, Debug)]
pub struct Case {
    /// `single-path`, `ecmp`, or an experiment.
    pub environment: String,
    /// Name of the algorithm.
    pub variant: String,
    /// By seed.
    pub runs: Vec<Measured>,
}

/// Median and range of a quantity over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle value, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// Number of seeds.
    pub seeds: usize,
}

impl Case {
    /// Of one quantity; `None` if it was not measured.
    pub fn spread(&self, quantity: fn(&Measured) -> Option<f64>) -> Option<Spread> {
        let mut values: Vec<f64> = self.runs.iter().filter_map(quantity).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        Some(Spread { median: median(&values)?, low, high, seeds: values.len() })
    }

    /// The median alone.
    pub fn median(&self, quantity: fn(&Measured) -> Option<f64>) -> Option<f64> {
        self.spread(quantity).map(|spread| spread.median)
    }
}

/// All cases, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    /// The cases.
    pub list: Vec<Case>,
}

impl Cases {
    /// Adds a run.
    pub fn add(&mut self, environment: &str, variant: &str, run: Measured) {
        let same = |case: &&mut Case| case.environment == environment && case.variant == variant;
        match self.list.iter_mut().find(same) {
            Some(case) => case.runs.push(run),
            None => self.list.push(Case {
                environment: environment.to_string(),
                variant: variant.to_string(),
                runs: vec![run],
            }),
        }
    }

    /// The environments, in order.
    pub fn environments(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for case in &self.list {
            if !names.contains(&case.environment.as_str()) {
                names.push(&case.environment);
            }
        }
        names
    }

    /// The cases of an environment.
    pub fn of<'a>(&'a self, environment: &str) -> Vec<&'a Case> {
        self.list.iter().filter(|case| case.environment == environment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_a_median_and_a_range() {
        let mut cases = Cases::default();
        for drops in [5.0, 1.0, 3.0, 9.0] {
            cases.add("ecmp", "vegas", Measured { drops, ..Measured::default() });
        }
        let spread = cases.list[0].spread(|run| Some(run.drops)).unwrap();
        // 1 3 5 9: the middle of 3 and 5
        assert_eq!(spread, Spread { median: 4.0, low: 1.0, high: 9.0, seeds: 4 });
        assert_eq!(cases.list[0].spread(|run| run.delay_ms), None);
    }
}
