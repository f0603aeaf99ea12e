//! What a run measures.

use super::cases::{Case, Part};
use crate::statistics::{median, quantile};
use results::{Curve, RunResults};

/// Payload of a full segment: 1500 bytes less 40 of headers and 12 of timestamps.
const SEGMENT_BYTES: f64 = 1448.0;
/// Round trip of the second part, s.
const ROUND_TRIP_S: f64 = 1e-3;
/// The bottleneck.
const BOTTLENECK: &str = "s1->s2";
/// The queue is drawn for so long after the warm-up.
const SHOWN_MS: f64 = 20.0;

/// A number.
#[derive(Clone, Debug)]
pub struct Measure {
    pub quantity: &'static str,
    pub unit: &'static str,
    /// By the equations.
    pub paper: Option<f64>,
    pub ours: f64,
}

/// A run's numbers and curves.
#[derive(Clone, Debug)]
pub struct Measured {
    pub case: Case,
    pub measures: Vec<Measure>,
    /// The bottleneck's queue over time, and its distribution.
    pub queue: Option<Curve>,
    pub queues: Option<Curve>,
    /// The distribution of the short transfers' times.
    pub times: Option<Curve>,
}

impl Measured {
    pub fn of(case: &Case, run: &RunResults) -> Measured {
        let mut measured =
            Measured { case: case.clone(), measures: Vec::new(), queue: None, queues: None, times: None };
        match case.part {
            Part::Enforced => {
                measured.bottleneck(run);
                measured.short(run);
                measured.echo(run);
            }
            Part::Marks => measured.window(run),
            Part::Slowed => {
                measured.background(run);
                measured.bottleneck(run);
                measured.short(run);
            }
        }
        measured
    }

    fn add(&mut self, quantity: &'static str, unit: &'static str, ours: f64) {
        self.measures.push(Measure { quantity, unit, paper: None, ours });
    }

    /// The queue and what passed it after the warm-up.
    fn bottleneck(&mut self, run: &RunResults) {
        let Some(link) = run.links.iter().position(|link| &*link.link == BOTTLENECK) else { return };
        let warmup_ns = self.case.job.scenario.measure.warmup.as_ns();
        let of_link = |sample: &&results::LinkSample| sample.link as usize == link && sample.time_ns > warmup_ns;
        let samples: Vec<_> = run.link_series.iter().filter(of_link).collect();
        let packets: Vec<f64> = samples.iter().map(|sample| f64::from(sample.queue_packets)).collect();
        let [half, most] = [0.5, 0.99].map(|share| quantile(&packets, share).unwrap_or(f64::NAN));
        self.add("queue, median", "packets", half);
        self.add("queue, 99 %", "packets", most);
        let used = samples.iter().map(|sample| sample.utilization).sum::<f64>() / samples.len() as f64;
        self.add("bottleneck in use", "%", 100.0 * used);
        let total =
            |of: fn(&results::LinkSample) -> u32| samples.iter().map(|sample| f64::from(of(sample))).sum::<f64>();
        self.add("drops", "packets", total(|sample| sample.drops));
        let row = &run.links[link];
        self.add("marked", "% of packets", 100.0 * row.marked as f64 / row.packets as f64);
        let at_ms = |time_ns: u64| (time_ns - warmup_ns) as f64 / 1e6;
        let shown = samples.iter().map(|sample| (at_ms(sample.time_ns), f64::from(sample.queue_packets)));
        let shown: Vec<(f64, f64)> = shown.take_while(|(at, _)| *at <= SHOWN_MS).collect();
        self.queue = Some(Curve::thinned(&self.case.variant, &shown));
        self.queues = Some(Curve::distribution(&self.case.variant, &packets));
    }

    /// Completion times of the messages.
    fn short(&mut self, run: &RunResults) {
        let warmup_ns = self.case.job.scenario.measure.warmup.as_ns();
        let foreground = run.messages.iter().filter(|message| message.start_ns >= warmup_ns && message.bytes < 1 << 20);
        let times: Vec<f64> = foreground.map(|message| (message.end_ns - message.start_ns) as f64 / 1e6).collect();
        self.add("short transfers, median", "ms", median(&times).unwrap_or(f64::NAN));
        self.add("short transfers, 99 %", "ms", quantile(&times, 0.99).unwrap_or(f64::NAN));
        self.times = Some(Curve::distribution(&self.case.variant, &times));
    }

    /// What the senders saw of the marks, and what it cost in ACKs. The enforcers count over the whole run with its warm-up.
    fn echo(&mut self, run: &RunResults) {
        let row = |name: &str| run.links.iter().find(|link| &*link.link == name);
        let (Some(out), Some(back)) = (row(BOTTLENECK), row("s2->s1")) else { return };
        self.add("ACKs", "% of the packets to clients", 100.0 * back.packets as f64 / out.packets as f64);
        let sum = |of: fn(&results::EnforcerRow) -> u64| run.enforcer.iter().map(of).sum::<u64>() as f64;
        let (seen, sent) = (sum(|row| row.delivered_ce), sum(|row| row.data_packets_sent));
        let counter = |name: &str| run.summary.extra.get(name).copied();
        if let Some(taken) = counter("enforcer.s2.marks_taken") {
            self.add("marks taken off", "% of segments", 100.0 * taken / sent);
            self.add("echoes", "% of segments", 100.0 * seen / sent);
        }
    }

    /// The window, and that of the equations.
    fn window(&mut self, run: &RunResults) {
        let goodput = run.summary.goodput_bps.unwrap_or(f64::NAN);
        let share = self.case.share;
        let paper = match self.case.setting.as_str() {
            "dctcp" => 2.0 / share,
            // on every path here CUBIC is in its Reno-friendly region (RFC 9438 4.3), where the equations give it Reno's mean window
            _ => (1.5 / share).sqrt(),
        };
        let ours = goodput / 8.0 / SEGMENT_BYTES * ROUND_TRIP_S;
        self.measures.push(Measure { quantity: "window", unit: "segments", paper: Some(paper), ours });
    }

    /// Goodput of the flows that are slowed.
    fn background(&mut self, run: &RunResults) {
        let long = run.flows.iter().filter(|flow| &*flow.dst == "right1");
        let bytes: u64 = long.map(|flow| flow.delivered_bytes).sum();
        self.add("background", "Mbit/s", bytes as f64 * 8e3 / run.summary.duration_ns as f64);
    }
}
