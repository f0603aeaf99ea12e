//! FCT slowdown: completion time over the ideal one, by flow size, with the flows that did not finish.
//!
//! A flow that had not finished when the run ended is censored: its slowdown is at least its age over its ideal time. It is
//! the long flows that do not finish; without them the tail would look short. So it counts with this bound, and
//! a percentile that would be clearly higher if such flows never finished is marked as a lower bound.

use serde::{Deserialize, Serialize};

use crate::rows::FlowRow;

/// Where size classes begin, bytes: the customary classes of the web-search and data-mining workloads (pFabric, SIGCOMM 2013).
const CLASSES: [(u64, &str); 4] =
    [(0, "< 10 kB"), (10_000, "10–100 kB"), (100_000, "100 kB–1 MB"), (1_000_000, "≥ 1 MB")];
/// Groups of equal count along the sizes, at most; each has at least [`GROUP_FLOWS`] flows.
const GROUPS: usize = 10;
/// With fewer, a 99th percentile is little more than the maximum.
const GROUP_FLOWS: usize = 50;

/// How much higher a percentile may be, if unfinished flows never finished, without being marked as a lower bound.
const TOLERANCE: f64 = 1.05;

/// Slowdown of the flows of a run that have an ideal completion time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// All of them.
    pub all: SlowdownOf,
    /// By customary size class; classes without flows are left out.
    pub classes: Vec<SlowdownOf>,
    /// By size, in up to ten groups of about equal count: deciles of the flow sizes.
    pub by_size: Vec<SlowdownOf>,
}

/// Slowdown of some flows. Percentiles are of nearest rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowdownOf {
    /// Name of the size class; empty for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Smallest size among them.
    pub min_bytes: u64,
    /// Median size.
    pub median_bytes: u64,
    /// Largest size.
    pub max_bytes: u64,
    /// How many they are.
    pub flows: u64,
    /// Of these, how many had not finished when the run ended.
    pub unfinished: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Names of the percentiles that are only lower bounds: unfinished flows could raise them by more than 5 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<String>,
    /// Of a scale model alone: how far the percentiles are to be believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<OfModel>,
}

/// What percentiles of a scale model say of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfModel {
    /// 95 % interval of the median, from the model's seeds.
    pub p50: (f64, f64),
    /// The same of the 99th percentile.
    pub p99: (f64, f64),
    /// The error against whole simulations of such networks; `None`: it was not measured.
    pub error: Option<ModelError>,
}

/// How far a scale model was from a whole simulation: 0.1 is 10 % too high.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelError {
    /// Of the median.
    pub p50: f64,
    /// Of the 99th percentile.
    pub p99: f64,
}

impl ModelError {
    /// A larger error is not to be believed.
    pub const MOST: f64 = 0.1;
}

/// The percentiles shown: name, and percent.
pub(crate) const PERCENTILES: [(&str, usize); 3] = [("p50", 50), ("p95", 95), ("p99", 99)];

/// One flow.
#[derive(Clone, Copy)]
struct Sample {
    bytes: u64,
    slowdown: f64,
    finished: bool,
}

impl Slowdown {
    /// Of a run that ended at `end_ns`; `None` if no flow has an ideal completion time.
    pub fn of(flows: &[FlowRow], end_ns: u64) -> Option<Self> {
        let mut samples: Vec<Sample> = flows.iter().filter_map(|flow| Sample::of(flow, end_ns)).collect();
        if samples.is_empty() {
            return None;
        }
        samples.sort_by_key(|sample| sample.bytes);
        let all = SlowdownOf::of("", &samples);
        let begin = |bytes: u64| samples.partition_point(|sample| sample.bytes < bytes);
        let ends = CLASSES[1..].iter().map(|(bytes, _)| begin(*bytes)).chain([samples.len()]);
        let classes = CLASSES.iter().zip(ends).map(|((from, name), end)| (name, &samples[begin(*from)..end]));
        let classes = classes.filter(|(_, members)| !members.is_empty());
        let classes = classes.map(|(name, members)| SlowdownOf::of(name, members)).collect();
        let by_size = groups(&samples).into_iter().map(|members| SlowdownOf::of("", members)).collect();
        Some(Self { all, classes, by_size })
    }
}

impl SlowdownOf {
    /// Of samples in the order of their sizes, at least one.
    fn of(class: &str, samples: &[Sample]) -> Self {
        let mut bounds: Vec<f64> = samples.iter().map(|sample| sample.slowdown).collect();
        let mut finished: Vec<f64> =
            samples.iter().filter(|sample| sample.finished).map(|sample| sample.slowdown).collect();
        bounds.sort_by(f64::total_cmp);
        finished.sort_by(f64::total_cmp);
        let rank = |percent: usize| (samples.len() * percent).div_ceil(100) - 1;
        let value = |percent: usize| bounds[rank(percent)];
        // If no unfinished flow ever finished, the percentile would be that of the finished ones at the same rank.
        let highest = |percent: usize| finished.get(rank(percent)).copied().unwrap_or(f64::INFINITY);
        let at_least = PERCENTILES.iter().filter(|(_, percent)| highest(*percent) > value(*percent) * TOLERANCE);
        Self {
            class: class.to_owned(),
            min_bytes: samples[0].bytes,
            median_bytes: samples[rank(50)].bytes,
            max_bytes: samples[samples.len() - 1].bytes,
            flows: samples.len() as u64,
            unfinished: (samples.len() - finished.len()) as u64,
            p50: value(50),
            p95: value(95),
            p99: value(99),
            at_least: at_least.map(|(name, _)| (*name).to_owned()).collect(),
            model: None,
        }
    }

    /// The values of [`PERCENTILES`], each with whether it is only a lower bound.
    pub(crate) fn percentiles(&self) -> [(f64, bool); 3] {
        let bound = |index: usize| self.at_least.iter().any(|name| name == PERCENTILES[index].0);
        [(self.p50, bound(0)), (self.p95, bound(1)), (self.p99, bound(2))]
    }
}

impl Sample {
    fn of(flow: &FlowRow, end_ns: u64) -> Option<Self> {
        let ideal = flow.ideal_fct_ns.filter(|ideal| *ideal > 0)? as f64;
        let bytes = flow.bytes?;
        let age = end_ns.saturating_sub(flow.start_ns) as f64;
        Some(match flow.slowdown() {
            Some(slowdown) => Self { bytes, slowdown, finished: true },
            None => Self { bytes, slowdown: (age / ideal).max(1.0), finished: false },
        })
    }
}

/// Cuts samples in the order of their sizes into groups of about equal count; flows of one size stay together.
fn groups(samples: &[Sample]) -> Vec<&[Sample]> {
    let count = (samples.len() / GROUP_FLOWS).clamp(1, GROUPS);
    let mut groups = Vec::new();
    let mut begin = 0;
    for group in 1..=count {
        let reached = samples.len() * group / count;
        let Some(last) = samples[..reached].last() else { continue };
        let end = samples.partition_point(|sample| sample.bytes <= last.bytes);
        if end > begin {
            groups.push(&samples[begin..end]);
            begin = end;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(of: impl IntoIterator<Item = (u64, f64, bool)>) -> Vec<Sample> {
        of.into_iter().map(|(bytes, slowdown, finished)| Sample { bytes, slowdown, finished }).collect()
    }

    #[test]
    fn percentiles_of_finished_flows_are_nearest_ranks() {
        // 1.0, 1.1, … 10.9: of 100 values the 50th, the 95th and the 99th
        let of = SlowdownOf::of("", &samples((0..100).map(|i| (1_000, 1.0 + f64::from(i) / 10.0, true))));
        assert_eq!((of.p50, of.p95, of.p99), (5.9, 10.4, 10.8));
        assert!(of.at_least.is_empty());
    }

    #[test]
    fn an_unfinished_flow_counts_with_its_bound_and_marks_what_depends_on_it() {
        // Ten flows, two of them unfinished: one bound is low, one is high.
        let flows = [(1.0, true), (1.5, false), (2.0, true), (3.0, true), (4.0, true), (5.0, true)];
        let more = [(6.0, true), (7.0, true), (8.0, true), (30.0, false)];
        let of =
            SlowdownOf::of("", &samples(flows.into_iter().chain(more).map(|(value, finished)| (1, value, finished))));
        // By bounds the 5th of ten is 4; if the flow of 1.5 never ended, it would be 5.
        assert_eq!((of.flows, of.unfinished, of.p50, of.p99), (10, 2, 4.0, 30.0));
        assert_eq!(of.at_least, ["p50", "p95", "p99"]);
    }

    #[test]
    fn a_percentile_below_every_unfinished_flow_is_exact() {
        let of = SlowdownOf::of("", &samples((1_u32..=100).map(|i| (1, f64::from(i), i < 97))));
        assert_eq!((of.p50, of.p95, of.p99), (50.0, 95.0, 99.0));
        assert_eq!(of.at_least, ["p99"]);
    }

    #[test]
    fn a_percentile_that_unfinished_flows_could_hardly_raise_is_not_marked() {
        // 200 flows from 10.00 up in steps of 0.01, four of the lowest unfinished: the median is 10.99, or 11.03.
        let of = SlowdownOf::of("", &samples((0_u32..200).map(|i| (1, 10.0 + f64::from(i) / 100.0, i >= 4))));
        assert_eq!((of.p50, of.unfinished), (10.99, 4));
        // At the 99th, 198th of 200, there is no flow any more that finished.
        assert_eq!(of.at_least, ["p99"]);
    }

    #[test]
    fn groups_have_equal_counts_and_do_not_split_a_size() {
        let sizes = |groups: Vec<&[Sample]>| groups.iter().map(|group| group.len()).collect::<Vec<_>>();
        let different = samples((0..1_000).map(|bytes| (bytes, 1.0, true)));
        assert_eq!(sizes(groups(&different)), [100; 10]);
        let few = samples((0..120).map(|bytes| (bytes, 1.0, true)));
        assert_eq!(sizes(groups(&few)), [60, 60]);
        let two = samples((0..1_000).map(|i| (if i < 350 { 10 } else { 20 }, 1.0, true)));
        assert_eq!(sizes(groups(&two)), [350, 650]);
        assert!(groups(&[]).is_empty());
    }
}
