//! The part of a run that the report keeps: its summary and curves of a bounded number of points, so that a sweep of many
//! long runs makes a small file and needs little memory.

use std::collections::BTreeMap;

use crate::{CwndSample, FlowRow, LinkRow, LinkSample, RunResults, RunSummary, Summary, figure::tail_ranks};

/// Points that a curve keeps: more than a panel has pixels to show.
const CURVE_POINTS: usize = 240;
/// Points that a distribution keeps.
const DISTRIBUTION_POINTS: usize = 200;
/// Flows whose windows are drawn; more lines in one panel cannot be distinguished.
const CWND_FLOWS: usize = 6;
/// Links that the report lists.
const BUSIEST_LINKS: usize = 8;

/// One run, as the report needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digest {
    pub name: String,
    /// Folder of the run inside its sweep's.
    pub folder: Option<String>,
    pub parameters: Vec<(String, String)>,
    pub summary: Summary,
    /// Queue of the fullest link that was sampled.
    pub queue: Option<Curve>,
    /// Its last samples one by one, from the first of them on, where `queue` has slices of many: what repeats faster is seen here alone.
    pub queue_close: Option<Curve>,
    /// How completion times are distributed over the flows that finished, by time.
    pub completion: Vec<CompletedBy>,
    /// Windows of the first flows that were sampled, in segments.
    pub cwnd: Vec<Curve>,
    /// Flows with window samples beyond those.
    pub cwnd_left_out: usize,
    /// The links with the longest queues.
    pub busiest: Vec<LinkRow>,
}

/// A completion time among those of the flows that finished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompletedBy {
    pub ns: u64,
    /// Share of the flows that took at most that, 0 to 1.
    pub at_most: f64,
    /// Share of the flows that took at least that.
    pub at_least: f64,
}

/// A quantity over time, in slices of time that keep its extremes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub label: String,
    /// The name that decides its colour: the algorithm, if it is a flow's.
    pub owner: String,
    pub points: Vec<Point>,
}

/// One slice of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub time_ns: u64,
    pub low: u32,
    pub high: u32,
    pub mean: f64,
}

impl Digest {
    pub fn of(run: &RunResults) -> Self {
        let warm = warmed_up(run);
        let link_series: Vec<LinkSample> = run.link_series.iter().filter(|at| at.time_ns >= warm).copied().collect();
        let samples: Vec<CwndSample> = run.cwnd.iter().filter(|at| at.time_ns >= warm).copied().collect();
        let (cwnd, cwnd_left_out) = windows(&samples, &run.flows);
        let (queue, queue_close) = fullest_queue(&link_series, &run.links).unzip();
        Self {
            name: run.name.clone(),
            folder: None,
            parameters: run.parameters.clone(),
            summary: run.summary.clone(),
            queue,
            queue_close: queue_close.flatten(),
            completion: completion_times(&run.flows),
            cwnd,
            cwnd_left_out,
            busiest: busiest(&run.links),
        }
    }

    #[cfg(unix)]
    pub fn summary(&self) -> RunSummary<'_> {
        RunSummary {
            name: &self.name,
            folder: self.folder.clone(),
            parameters: &self.parameters,
            summary: &self.summary,
        }
    }

    pub fn parameter(&self, key: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// When the run's warm-up was over, ns: what came before is not drawn, as it does not count in the numbers either.
fn warmed_up(run: &RunResults) -> u64 {
    let ends = run.link_series.iter().map(|at| at.time_ns).chain(run.cwnd.iter().map(|at| at.time_ns));
    ends.max().map_or(0, |end| end.saturating_sub(run.summary.duration_ns))
}

/// The sampled link whose mean queue is longest, the first of equals: a switch's, or a host's own if no switch's was sampled
/// or filled.
fn fullest_queue(samples: &[LinkSample], links: &[LinkRow]) -> Option<(Curve, Option<Curve>)> {
    let mut sums = vec![0_u64; links.len()];
    for sample in samples {
        sums[sample.link as usize] += u64::from(sample.queue_packets);
    }
    let first_sampled = samples.first()?.link as usize;
    let weight = |link: usize| (sums[link] > 0 && !links[link].from_host, sums[link]);
    let fullest =
        (0..links.len()).fold(first_sampled, |best, link| if weight(link) > weight(best) { link } else { best });
    let of_link = samples.iter().filter(|s| s.link as usize == fullest);
    let of_link = of_link.map(|sample| (sample.time_ns, sample.queue_packets));
    let curve = |points| Curve { label: links[fullest].link.to_string(), owner: String::new(), points };
    Some((curve(thin(of_link.clone())), close_up(of_link).map(curve)))
}

/// The last samples, if there are more than a curve has points.
fn close_up(samples: impl Iterator<Item = (u64, u32)>) -> Option<Vec<Point>> {
    let mut all: Vec<(u64, u32)> = samples.collect();
    let many = all.len() > CURVE_POINTS;
    all.sort_by_key(|(time_ns, _)| *time_ns);
    let last = all.split_off(all.len().saturating_sub(CURVE_POINTS));
    let first = last.first()?.0;
    let point = |(time_ns, value)| lone((time_ns - first, value));
    many.then(|| last.into_iter().map(point).collect())
}

/// A sample by itself.
fn lone((time_ns, value): (u64, u32)) -> Point {
    Point { time_ns, low: value, high: value, mean: f64::from(value) }
}

/// Windows of the first flows, and the number of flows left out.
fn windows(samples: &[CwndSample], flows: &[FlowRow]) -> (Vec<Curve>, usize) {
    let mut by_flow: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let mut left_out = std::collections::BTreeSet::new();
    for sample in samples {
        if by_flow.len() < CWND_FLOWS || by_flow.contains_key(&sample.flow) {
            let windows = by_flow.entry(sample.flow).or_default();
            windows.push((sample.time_ns, sample.cwnd));
        } else {
            left_out.insert(sample.flow);
        }
    }
    let row = |number| flows.iter().find(|flow| flow.flow == number);
    let drawn = || by_flow.keys().filter_map(|number| row(*number));
    let mixed = drawn().any(|flow| Some(&flow.algorithm) != drawn().next().map(|first| &first.algorithm));
    let label = |number| match row(number) {
        Some(flow) if mixed => format!("{} → {}, {}", flow.src, flow.dst, flow.algorithm),
        Some(flow) => format!("{} → {}", flow.src, flow.dst),
        None => format!("flow {number}"),
    };
    let owner = |number| row(number).map_or_else(String::new, |flow| flow.algorithm.to_string());
    let curves: Vec<Curve> = by_flow
        .iter()
        .map(|(flow, windows)| Curve {
            label: label(*flow),
            owner: owner(*flow),
            points: thin(windows.iter().copied()),
        })
        .collect();
    (curves, left_out.len())
}

/// Gathers samples into at most `CURVE_POINTS` slices of equal time; few samples stay as they are.
fn thin(samples: impl Iterator<Item = (u64, u32)> + Clone) -> Vec<Point> {
    let times = || samples.clone().map(|(time_ns, _)| time_ns);
    let (Some(start), Some(end)) = (times().min(), times().max()) else {
        return Vec::new();
    };
    if times().count() <= CURVE_POINTS {
        return samples.map(lone).collect();
    }
    // One more than end - start, so that the last sample falls into the last slice, not after it.
    let slice_ns = (end - start + 1).div_ceil(CURVE_POINTS as u64);
    let mut slices: Vec<Option<(u64, Point)>> = vec![None; CURVE_POINTS];
    for (time_ns, value) in samples {
        let index = (time_ns - start) / slice_ns;
        let begin = start + index * slice_ns;
        let (members, point) = slices[index as usize].get_or_insert((0, lone((begin, value))));
        *members += 1;
        point.low = point.low.min(value);
        point.high = point.high.max(value);
        point.mean += (f64::from(value) - point.mean) / *members as f64;
    }
    let filled = slices.into_iter().flatten();
    filled.map(|(_, point)| point).collect()
}

/// The distribution of completion times, thinned so that the tail keeps its last flows.
fn completion_times(flows: &[FlowRow]) -> Vec<CompletedBy> {
    let mut times: Vec<u64> = flows.iter().filter_map(FlowRow::fct_ns).collect();
    times.sort_unstable();
    let count = times.len() as f64;
    let at = |rank: usize| CompletedBy {
        ns: times[rank],
        at_most: (rank + 1) as f64 / count,
        at_least: (times.len() - rank) as f64 / count,
    };
    tail_ranks(times.len(), DISTRIBUTION_POINTS).into_iter().map(at).collect()
}

/// The links with the longest queues, then the most used; switches and hosts alike.
fn busiest(links: &[LinkRow]) -> Vec<LinkRow> {
    let mut order: Vec<&LinkRow> = links.iter().collect();
    order.sort_by(|a, b| {
        let by_queue = b.max_queue_packets.cmp(&a.max_queue_packets);
        by_queue.then(b.utilization.total_cmp(&a.utilization))
    });
    order.into_iter().take(BUSIEST_LINKS).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_extremes_and_means_whatever_the_order() {
        let samples = (0..2_400_u64).map(|time| (time, if time == 1_234 { 500 } else { (time % 2) as u32 }));
        let points = thin(samples.clone());
        assert_eq!(points.len(), CURVE_POINTS);
        assert_eq!(points[0], Point { time_ns: 0, low: 0, high: 1, mean: 0.5 });
        assert_eq!(points.iter().map(|point| point.high).max(), Some(500));
        let backwards = thin(samples.rev());
        assert_eq!(backwards.len(), CURVE_POINTS);
        assert!((backwards[0].mean - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_sawtooth_that_slices_hide_is_seen_close_up() {
        // 20,000 samples of a ramp of 60: a slice of 84 samples holds more than a whole tooth
        let samples = (0..20_000_u64).map(|time| (time * 10, (time % 60) as u32));
        let means = thin(samples.clone());
        assert!(means.iter().all(|point| point.high - point.low == 59 && (point.mean - 29.5).abs() < 6.0));
        let close = close_up(samples).expect("there are more samples than points");
        assert_eq!((close.len(), close[0].time_ns, close[CURVE_POINTS - 1].time_ns), (CURVE_POINTS, 0, 2390));
        let falls = close.windows(2).filter(|pair| pair[1].mean < pair[0].mean).count();
        assert_eq!(falls, 4, "240 samples are four teeth");
        assert_eq!(close_up((0..240_u64).map(|time| (time, 1))), None, "the curve itself has them all");
    }

    #[test]
    fn what_came_before_the_warm_up_ended_is_not_drawn() {
        let at = |ms: u64| LinkSample {
            time_ns: ms * 1_000_000,
            queue_packets: if ms < 500 { 400 } else { 40 },
            ..LinkSample::default()
        };
        let samples: Vec<LinkSample> = (0..1500).map(at).collect();
        let summary = Summary { duration_ns: 1_000_000_000, ..Summary::default() };
        let run =
            RunResults { link_series: samples, links: vec![LinkRow::default()], summary, ..RunResults::default() };
        let queue = Digest::of(&run).queue.expect("it was sampled");
        let (first, high) = (queue.points[0].time_ns, queue.points.iter().map(|point| point.high).max());
        assert_eq!((first / 1_000_000, high), (499, Some(400)), "the sample before counts until the next");
        assert!(queue.points[1..].iter().all(|point| point.high == 40));
    }

    #[test]
    fn few_samples_and_samples_of_one_instant_stay() {
        assert!(thin(std::iter::empty()).is_empty());
        assert_eq!(thin([(7, 3), (9, 4)].into_iter()).len(), 2);
        assert_eq!(thin(std::iter::repeat_n((7, 3), 1_000)).len(), 1);
    }
}
