//! The study's measurements of a run.

use super::analysis::{binned, converged, jain, period, turns, variation};
use super::cases::{CONVERGENCE_FLOWS, Case, Kind, STAGE_SAMPLES, STAGES};
use crate::statistics::{mean, median, quantile};
use results::{Curve, RunResults, SelfCheck};
use units::Time;

/// Length of Figure 1's curve, from the end of the warm-up.
const SHOWN_S: f64 = 2.0;
/// Periods of the theory in a panel of Figure 12.
const SHOWN_PERIODS: f64 = 8.0;
/// The autocorrelation looks for periods up to this multiple of the theory's.
const LONGEST_PERIODS: f64 = 20.0;
/// Samples used for the autocorrelation: some hundreds of periods.
const CORRELATED: usize = 100_000;
/// Maximum number of lags.
const LAGS: f64 = 4000.0;
/// Jain's index that counts as converged.
const FAIR: f64 = 0.95;
/// It must hold for this many of a stage's hundred samples.
const FAIR_SAMPLES: usize = 5;

/// A number of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    pub quantity: String,
    pub unit: &'static str,
    /// The value by the paper's equations or its text.
    pub paper: Option<f64>,
    pub ours: f64,
    pub note: &'static str,
}

/// A run's numbers and curves.
#[derive(Clone, Debug)]
pub struct Measured {
    pub case: Case,
    pub measures: Vec<Measure>,
    /// The queue, or each flow's throughput, over time.
    pub curves: Vec<Curve>,
    /// The distribution of the queue.
    pub distribution: Option<Curve>,
    /// Share of the samples in which the port was idle, %.
    pub idle: Option<f64>,
    /// Only of a run in real time.
    pub check: Option<SelfCheck>,
}

impl Measured {
    /// Measures a run.
    pub fn of(case: &Case, run: &RunResults, check: Option<SelfCheck>) -> Measured {
        let mut measured = Measured {
            case: case.clone(),
            measures: Vec::new(),
            curves: Vec::new(),
            distribution: None,
            idle: None,
            check,
        };
        match case.kind {
            Kind::Queue => measured.queue(run),
            Kind::Sawtooth => measured.sawtooth(run),
            Kind::Convergence { stage } => measured.convergence(run, stage),
            Kind::Variation => measured.variation(run),
        }
        measured
    }

    /// The value of a quantity.
    pub fn get(&self, quantity: &str) -> Option<f64> {
        self.measures.iter().find(|measure| measure.quantity == quantity).map(|measure| measure.ours)
    }

    fn add(&mut self, quantity: &str, unit: &'static str, paper: Option<f64>, ours: Option<f64>, note: &'static str) {
        let quantity = quantity.to_string();
        self.measures.extend(ours.map(|ours| Measure { quantity, unit, paper, ours, note }));
    }

    /// Figure 1.
    fn queue(&mut self, run: &RunResults) {
        let samples = queue_samples(run, self.case.scenario.measure.warmup);
        let values: Vec<f64> = samples.iter().map(|(_, queue)| *queue).collect();
        let dctcp = self.case.variant == "dctcp";
        let port = self.case.port;
        let (middle, most) = if dctcp { (Some(port.mark), port.sawtooth().q_max) } else { (None, self.case.buffer) };
        let note = "samples after the warm-up; the packet being sent included";
        self.add("queue, 5 %", "packets", None, quantile(&values, 0.05), note);
        self.add("queue, median", "packets", middle, quantile(&values, 0.5), "theory: about K");
        self.add("queue, 95 %", "packets", None, quantile(&values, 0.95), note);
        let said = if dctcp { "theory: K + N" } else { "theory: the buffer" };
        self.add("queue, highest", "packets", Some(most), quantile(&values, 1.0), said);
        self.totals(run);
        self.idle = idle(&values);
        let begin = samples.first().map_or(0.0, |(at, _)| *at);
        let shown = samples.iter().take_while(|(at, _)| *at <= begin + SHOWN_S);
        let shown: Vec<(f64, f64)> = shown.map(|(at, queue)| (at - begin, *queue)).collect();
        self.curves.push(Curve::thinned(&self.case.variant, &shown));
        self.distribution = Some(Curve::distribution(&self.case.variant, &values));
    }

    /// Drops and goodput after the warm-up.
    fn totals(&mut self, run: &RunResults) {
        let ideal = self.case.ideal_bps;
        let goodput = run.summary.goodput_bps.map(|bps| bps / ideal * 100.0);
        self.add(
            "drops",
            "packets",
            None,
            Some(run.summary.drops_at_switches as f64),
            "at the switch, after the warm-up",
        );
        self.add("goodput", "% of ideal", None, goodput, "ideal: 1448 of every 1538 bytes");
    }

    /// Figure 12.
    fn sawtooth(&mut self, run: &RunResults) {
        let samples = queue_samples(run, self.case.scenario.measure.warmup);
        let values: Vec<f64> = samples.iter().map(|(_, queue)| *queue).collect();
        let theory = self.case.port.sawtooth();
        let turns = turns(&values);
        let (q_max, q_min) = (median(&turns.peaks), median(&turns.troughs));
        let amplitude = q_max.zip(q_min).map(|(high, low)| high - low);
        let step_s = self.case.scenario.measure.queue_sample.as_secs_f64();
        let longest = (theory.period_s * LONGEST_PERIODS / step_s).clamp(50.0, LAGS) as usize;
        let period_ms = period(&values[..values.len().min(CORRELATED)], longest).map(|lag| lag * step_s * 1e3);
        let note = "median of the sawtooth's peaks";
        self.add("Q_max", "packets", Some(theory.q_max), q_max.or(quantile(&values, 0.95)), note);
        self.add("A", "packets", Some(theory.amplitude), amplitude, "median peak less median trough");
        self.add(
            "T_C",
            "ms",
            Some(theory.period_s * 1e3),
            period_ms,
            "autocorrelation; theory: round trips of RTT + K/C",
        );
        self.add("Q_min", "packets", Some(theory.q_min.max(0.0)), q_min, "median of the sawtooth's troughs");
        self.add("queue, median", "packets", None, quantile(&values, 0.5), "samples after the warm-up");
        self.totals(run);
        self.idle = idle(&values);
        let begin = samples.first().map_or(0.0, |(at, _)| *at);
        let span = theory.period_s * SHOWN_PERIODS;
        let shown = samples.iter().take_while(|(at, _)| *at <= begin + span);
        let points = shown.map(|(at, queue)| ((at - begin) * 1e3, *queue)).collect();
        self.curves.push(Curve { name: self.case.backend.name().to_string(), points, ..Curve::default() });
    }

    /// Figure 16: the stages.
    fn convergence(&mut self, run: &RunResults, stage: Time) {
        let flows: Vec<Vec<f64>> =
            (1..=CONVERGENCE_FLOWS).map(|flow| throughput(run, flow, self.case.ideal_bps, Time::ZERO)).collect();
        let per_stage = STAGE_SAMPLES as usize;
        for number in 0..STAGES as usize {
            let alive = stage_flows(number);
            let part = |flow: usize| -> &[f64] {
                let series = &flows[flow];
                let end = ((number + 1) * per_stage).min(series.len());
                &series[(number * per_stage).min(end)..end]
            };
            let parts: Vec<&[f64]> = (0..alive).map(part).collect();
            let shares: Vec<f64> = parts.iter().filter_map(|part| mean(&part[part.len() / 2..])).collect();
            if alive > 1 {
                let name = format!("Jain index, stage {} ({alive} flows)", number + 1);
                self.add(&name, "", Some(1.0), jain(&shares), "second half of the stage; fair: 1");
            }
            if (1..CONVERGENCE_FLOWS as usize).contains(&number) {
                // a single sample of packets of five sawtooths shows no fair share
                let smooth: Vec<Vec<f64>> = parts.iter().map(|part| trailing(part, FAIR_SAMPLES)).collect();
                let smooth: Vec<&[f64]> = smooth.iter().map(Vec::as_slice).collect();
                let at = converged(&smooth, FAIR, FAIR_SAMPLES);
                let seconds = at.map(|at| (at + 1) as f64 * stage.as_secs_f64() / per_stage as f64);
                let name = format!("convergence time, {alive} flows");
                self.add(&name, "s", None, seconds, "from a start until Jain's index stays at 0.95 or above");
            }
        }
        let step_s = stage.as_secs_f64() / STAGE_SAMPLES as f64;
        let curve = |(flow, series): (usize, &Vec<f64>)| {
            let points = binned(series, 4).into_iter().enumerate();
            let at = |(bin, mbps): (usize, f64)| ((bin as f64 + 0.5) * 4.0 * step_s, mbps);
            Curve { name: format!("flow {}", flow + 1), points: points.map(at).collect(), ..Curve::default() }
        };
        self.curves = flows.iter().enumerate().map(curve).collect();
    }

    /// Figure 16: the variation of a flow's throughput.
    fn variation(&mut self, run: &RunResults) {
        let (n, warmup) = (self.case.port.flows as u64, self.case.scenario.measure.warmup);
        let flows: Vec<Vec<f64>> = (1..=n).map(|flow| throughput(run, flow, self.case.ideal_bps, warmup)).collect();
        let each: Vec<f64> = flows.iter().filter_map(|flow| variation(flow)).collect();
        let name = "coefficient of variation";
        self.add(name, "", None, mean(&each), "of a flow's throughput in intervals of 100 ms, mean over the flows");
        let shares: Vec<f64> = flows.iter().filter_map(mean).collect();
        self.add("Jain index", "", Some(1.0), jain(&shares), "over the whole run after the warm-up; fair: 1");
    }
}

/// Flows that send in a stage, counted from 0.
fn stage_flows(stage: usize) -> usize {
    let most = CONVERGENCE_FLOWS as usize;
    if stage < most { stage + 1 } else { STAGES as usize - stage }
}

/// Means of each value and up to `width - 1` before it.
fn trailing(values: &[f64], width: usize) -> Vec<f64> {
    let at = |end: usize| mean(&values[(end + 1).saturating_sub(width)..=end]).unwrap_or(0.0);
    (0..values.len()).map(at).collect()
}

/// Share of empty samples, %.
fn idle(values: &[f64]) -> Option<f64> {
    let empty = values.iter().filter(|value| **value < 0.5).count();
    (!values.is_empty()).then(|| empty as f64 * 100.0 / values.len() as f64)
}

/// The receiver's queue after the warm-up: seconds, packets. These scenarios sample no other.
fn queue_samples(run: &RunResults, warmup: Time) -> Vec<(f64, f64)> {
    let counted = run.link_series.iter().filter(|sample| sample.time_ns > warmup.as_ns());
    counted.map(|sample| (sample.time_ns as f64 / 1e9, f64::from(sample.queue_packets))).collect()
}

/// Load on the link of sender `flow` in each interval after the warm-up, as Mbit/s of application bytes; data lost behind that link and
/// retransmitted counts twice.
fn throughput(run: &RunResults, flow: u64, ideal_bps: f64, warmup: Time) -> Vec<f64> {
    let host = format!("h{flow}");
    let Some(link) = run.links.iter().position(|link| *link.from == *host) else { return Vec::new() };
    let of_link = run.link_series.iter().filter(|sample| sample.link as usize == link);
    of_link
        .filter(|sample| sample.time_ns > warmup.as_ns())
        .map(|sample| sample.utilization * ideal_bps / 1e6)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_come_and_go_one_a_stage() {
        let flows: Vec<usize> = (0..STAGES as usize).map(stage_flows).collect();
        assert_eq!(flows, [1, 2, 3, 4, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn trailing_means_have_what_there_is() {
        assert_eq!(trailing(&[4.0, 2.0, 6.0, 4.0], 3), [4.0, 3.0, 4.0, 4.0]);
    }

    #[test]
    fn idle_is_the_share_of_empty_samples() {
        assert_eq!(idle(&[0.0, 1.0, 5.0, 0.0]), Some(50.0));
        assert_eq!(idle(&[]), None);
    }
}
