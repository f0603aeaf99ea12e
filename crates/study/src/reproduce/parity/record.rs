//! The record of a run, kept in the output folder so that the run need not be repeated: its numbers, and queue and cwnd over time.

use crate::failure::Failure;
use results::{CaState, CwndSample, FlowRow, LinkRow, LinkSample, RunResults, SelfCheck, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use units::Time;

/// The compared queue.
const BOTTLENECK: &str = "s1->s2";
/// When slow start is over, and its losses repaired.
const SETTLED_NS: u64 = 2_000_000_000;
/// One in this many samples of the queue is kept for drawing.
const QUEUE_EVERY: usize = 5;

/// The compared numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Of all flows.
    pub goodput_mbps: f64,
    /// Mean over the samples.
    pub queue_mean: f64,
    /// 99th percentile of the samples.
    pub queue_p99: f64,
    /// At the bottleneck.
    pub drops: f64,
    /// At the bottleneck.
    pub marks: f64,
    /// Of all flows.
    pub retransmits: f64,
    /// Of all flows.
    pub rtos: f64,
    /// Mean over time of the sum of the flows' windows, segments.
    pub cwnd_mean: f64,
}

/// The same numbers without the first two seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Mean over the samples.
    pub queue_mean: f64,
    /// At the bottleneck.
    pub drops: f64,
    /// Mean over time of the sum of the flows' windows, segments.
    pub cwnd_mean: f64,
}

/// The kept part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    name: String,
    parameters: Vec<(String, String)>,
    /// The scenario; a record of another one is not used.
    scenario: String,
    version: String,
    /// The numbers.
    pub measured: Measured,
    /// The numbers after slow start.
    pub settled: Settled,
    /// The self-check of a run in real time.
    pub check: Option<SelfCheck>,
    summary: Summary,
    bottleneck: Bottleneck,
    /// Senders and receivers, by flow.
    hosts: Vec<(String, String)>,
    /// (ns, packets)
    queue: Vec<(u64, u32)>,
    /// (ns, flow, segments)
    cwnd: Vec<(u64, u64, u32)>,
}

/// The bottleneck's row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bottleneck {
    rate_bps: u64,
    packets: u64,
    bytes: u64,
    delivered: u64,
    dropped: u64,
    dropped_bytes: u64,
    marked: u64,
    in_flight: u64,
    queue_max: u64,
    utilization: f64,
}

impl Record {
    /// Records a run of the study.
    pub fn of(run: &RunResults, check: Option<SelfCheck>) -> Record {
        let check = check.map(|check| with_skipped_hooks(check, &run.cwnd));
        let number = run.links.iter().position(|link| &*link.link == BOTTLENECK).expect("the scenario has this link");
        let of_link = || run.link_series.iter().filter(|sample| sample.link as usize == number);
        let queue: Vec<u32> = of_link().map(|sample| sample.queue_packets).collect();
        let settled = || of_link().filter(|sample| sample.time_ns > SETTLED_NS);
        let (samples, packets) =
            settled().fold((0, 0), |(n, sum), sample| (n + 1_u64, sum + u64::from(sample.queue_packets)));
        let windows: Vec<CwndSample> = run.cwnd.iter().filter(|one| one.time_ns > SETTLED_NS).copied().collect();
        let settled = Settled {
            queue_mean: packets as f64 / samples.max(1) as f64,
            drops: settled().map(|sample| f64::from(sample.drops)).sum(),
            cwnd_mean: mean_sum(&windows),
        };
        let link = &run.links[number];
        let measured = Measured {
            goodput_mbps: run.summary.goodput_bps.unwrap_or(0.0) / 1e6,
            queue_mean: queue.iter().map(|q| f64::from(*q)).sum::<f64>() / queue.len().max(1) as f64,
            queue_p99: percentile(&queue, 99),
            drops: link.dropped as f64,
            marks: link.marked as f64,
            retransmits: run.summary.retransmits as f64,
            rtos: run.summary.rtos as f64,
            cwnd_mean: mean_sum(&run.cwnd),
        };
        let mut summary = run.summary.clone();
        for (name, value) in [("queue.mean", measured.queue_mean), ("queue.p99", measured.queue_p99)] {
            summary.insert(name, value);
        }
        summary.insert("cwnd.mean", measured.cwnd_mean);
        Record {
            name: run.name.clone(),
            parameters: run.parameters.clone(),
            scenario: run.scenario_toml.clone(),
            version: run.summary.version.clone(),
            measured,
            settled,
            check,
            summary,
            bottleneck: Bottleneck {
                rate_bps: link.rate_bps,
                packets: link.packets,
                bytes: link.bytes,
                delivered: link.delivered,
                dropped: link.dropped,
                dropped_bytes: link.dropped_bytes,
                marked: link.marked,
                in_flight: link.in_flight,
                queue_max: link.max_queue_packets,
                utilization: link.utilization,
            },
            hosts: run.flows.iter().map(|flow| (flow.src.to_string(), flow.dst.to_string())).collect(),
            queue: of_link().step_by(QUEUE_EVERY).map(|sample| (sample.time_ns, sample.queue_packets)).collect(),
            cwnd: run.cwnd.iter().map(|sample| (sample.time_ns, sample.flow, sample.cwnd)).collect(),
        }
    }

    /// The part that a report draws.
    pub fn drawn(&self) -> RunResults {
        let link = &self.bottleneck;
        let row = LinkRow {
            link: BOTTLENECK.into(),
            from: "s1".into(),
            to: "s2".into(),
            tier: "bottleneck".into(),
            from_host: false,
            rate_bps: link.rate_bps,
            packets: link.packets,
            bytes: link.bytes,
            delivered: link.delivered,
            dropped: link.dropped,
            dropped_bytes: link.dropped_bytes,
            dropped_by_failure: 0,
            marked: link.marked,
            in_flight: link.in_flight,
            max_queue_packets: link.queue_max,
            utilization: link.utilization,
        };
        RunResults {
            name: self.name.clone(),
            parameters: self.parameters.clone(),
            scenario_toml: self.scenario.clone(),
            flows: self.hosts.iter().enumerate().map(|(i, hosts)| named(i as u64, hosts)).collect(),
            links: vec![row],
            link_series: self.queue.iter().map(|&(time_ns, packets)| queued(time_ns, packets)).collect(),
            cwnd: self.cwnd.iter().map(|&(time_ns, flow, cwnd)| window(time_ns, flow, cwnd)).collect(),
            summary: self.summary.clone(),
            ..RunResults::default()
        }
    }

    /// Did the machine leave it undisturbed?
    pub fn is_valid(&self) -> bool {
        self.check.as_ref().is_none_or(|check| check.valid)
    }

    /// The record, not valid if a packet was later than `most`.
    #[must_use]
    pub fn without_pauses_over(mut self, most: Time) -> Record {
        let most_us = most.as_ns() as f64 / 1e3;
        if let Some(check) = self.check.as_mut().filter(|check| check.valid && check.lateness_max_us > most_us) {
            check.valid = false;
            check
                .reasons
                .push(format!("the machine paused for {:.1} ms, and {most} were allowed", check.lateness_max_us / 1e3));
        }
        self
    }

    /// The valid record of a run named `name` with this `scenario`, without a pause over `pause_max`, if there is one.
    pub fn find(folder: &Path, name: &str, scenario: &str, pause_max: Time) -> Option<Record> {
        let text = fs::read_to_string(file(folder, name)).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let same = record.scenario == scenario && record.version == env!("CARGO_PKG_VERSION");
        let record = record.without_pauses_over(pause_max);
        (same && record.is_valid()).then_some(record)
    }

    /// Stores it atomically.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn keep(&self, folder: &Path) -> Result<(), Failure> {
        let path = file(folder, &self.name);
        let json = serde_json::to_string(self).map_err(|error| Failure::Run(error.to_string()))?;
        let partial = path.with_extension("partial");
        let written = fs::write(&partial, json).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
    }
}

/// None of our algorithms sets ssthresh below two segments. On some kernels a BPF algorithm's hook is skipped when process 1 is
/// interrupted. What its caller then takes as the result may be a huge window, which the emulator detects itself, or zero, which is
/// detected here.
fn with_skipped_hooks(check: SelfCheck, samples: &[CwndSample]) -> SelfCheck {
    let mut low: BTreeMap<u64, bool> = BTreeMap::new();
    let mut times = 0;
    for sample in samples {
        let now = sample.ssthresh.is_some_and(|ssthresh| ssthresh < 2);
        let before = low.insert(sample.flow, now).unwrap_or(false);
        times += u32::from(now && !before);
    }
    if times == 0 {
        return check;
    }
    let reason = format!("{times} times an ssthresh that no algorithm sets: the kernel skipped hooks");
    let reasons = check.reasons.iter().cloned().chain([reason]).collect();
    SelfCheck { valid: false, reasons, ..check }
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// The smallest value that at least `percent` % of the values do not exceed; 0 without values.
fn percentile(values: &[u32], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).map_or(0.0, |value| f64::from(*value))
}

/// The mean over time of the sum over flows.
fn mean_sum(samples: &[CwndSample]) -> f64 {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for sample in samples {
        *sums.entry(sample.time_ns).or_default() += u64::from(sample.cwnd);
    }
    sums.values().sum::<u64>() as f64 / sums.len().max(1) as f64
}

fn queued(time_ns: u64, queue_packets: u32) -> LinkSample {
    LinkSample { time_ns, link: 0, queue_packets, queue_bytes: 0, utilization: 0.0, drops: 0, marks: 0 }
}

fn window(time_ns: u64, flow: u64, cwnd: u32) -> CwndSample {
    let state = CaState::Open;
    CwndSample { time_ns, flow, cwnd, ssthresh: None, srtt_us: None, in_flight: 0, state, pacing_rate_bps: None }
}

/// A flow reduced to its ends.
fn named(flow: u64, (src, dst): &(String, String)) -> FlowRow {
    FlowRow {
        arm: None,
        flow,
        src: src.as_str().into(),
        dst: dst.as_str().into(),
        algorithm: "".into(),
        group: "".into(),
        start_ns: 0,
        end_ns: None,
        ideal_fct_ns: None,
        bytes: None,
        delivered_bytes: 0,
        data_packets_sent: 0,
        retransmits: 0,
        rtos: 0,
        tlp_probes: None,
        ce_marks: 0,
        ece_acks: 0,
        packets_received: 0,
        ip_bytes_received: 0,
        mean_packet_delay_ns: None,
        acks_received: 0,
        ack_ip_bytes_received: 0,
        mean_ack_delay_ns: None,
        min_rtt_us: None,
        srtt_us: None,
        final_cwnd: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_there() {
        let of = |values: &[u32]| percentile(values, 99).to_string();
        assert_eq!([of(&[]), of(&(1..=200).rev().collect::<Vec<_>>())], ["0", "198"]);
    }

    #[test]
    fn windows_are_added_over_flows_and_averaged_over_time() {
        // at 1 ns 10 + 20, at 2 ns 40: the mean of 30 and 40
        let samples = [(1, 0, 10), (1, 1, 20), (2, 0, 40)].map(|(at, flow, cwnd)| window(at, flow, cwnd));
        assert_eq!(mean_sum(&samples).to_string(), "35");
    }

    #[test]
    fn a_threshold_that_no_algorithm_sets_makes_a_run_not_valid() {
        let at = |time_ns, ssthresh| CwndSample { ssthresh, ..window(time_ns, 0, 10) };
        let judged = |samples: &[CwndSample]| {
            let check = SelfCheck { valid: true, ..SelfCheck::default() };
            with_skipped_hooks(check, samples)
        };
        assert!(judged(&[at(1, None), at(2, Some(2))]).valid);
        let skipped = judged(&[at(1, Some(8)), at(2, Some(0)), at(3, Some(0)), at(4, Some(9)), at(5, Some(1))]);
        assert!(!skipped.valid);
        assert!(skipped.reasons[0].starts_with("2 times"), "{:?}", skipped.reasons);
    }

    #[test]
    fn a_kept_record_is_found_again_only_for_the_same_scenario() {
        let folder = tempfile::tempdir().expect("there is room");
        let run = example("one", "seed = 1", "cubic");
        let record = Record::of(&run, None);
        assert_eq!((record.measured.queue_mean, record.measured.drops, record.measured.goodput_mbps), (4.0, 7.0, 9.0));
        record.keep(folder.path()).expect("the folder is there");
        let find = |name, scenario| Record::find(folder.path(), name, scenario, Time::from_ms(4));
        assert_eq!(find("one", "seed = 1"), Some(record));
        assert_eq!(find("one", "seed = 2"), None);
        assert_eq!(find("two", "seed = 1"), None);
        let distorted = Record::of(&run, Some(SelfCheck::default()));
        distorted.keep(folder.path()).expect("the folder is there");
        assert_eq!(find("one", "seed = 1"), None, "it must be repeated");
        for (lateness_max_us, valid) in [(4000.0, true), (4001.0, false)] {
            let check = SelfCheck { valid: true, lateness_max_us, ..SelfCheck::default() };
            Record::of(&run, Some(check)).keep(folder.path()).expect("the folder is there");
            assert_eq!(find("one", "seed = 1").is_some(), valid, "a pause of {lateness_max_us} us");
        }
    }

    /// Two samples of the queue, 3 and 5 packets, 7 drops, 9 Mbit/s, one flow with a window of 12.
    fn example(name: &str, scenario: &str, algorithm: &str) -> RunResults {
        let row = LinkRow {
            link: BOTTLENECK.into(),
            from: "s1".into(),
            to: "s2".into(),
            tier: "bottleneck".into(),
            from_host: false,
            rate_bps: 100_000_000,
            packets: 100,
            bytes: 150_000,
            delivered: 100,
            dropped: 7,
            dropped_bytes: 10_500,
            dropped_by_failure: 0,
            marked: 0,
            in_flight: 0,
            max_queue_packets: 5,
            utilization: 0.1,
        };
        let version = env!("CARGO_PKG_VERSION").to_string();
        let hosts = ("left1".to_string(), "right1".to_string());
        RunResults {
            name: name.to_string(),
            parameters: vec![("algorithm".to_string(), algorithm.to_string())],
            scenario_toml: scenario.to_string(),
            flows: vec![named(0, &hosts)],
            links: vec![row],
            link_series: vec![queued(5, 3), queued(6, 5)],
            cwnd: vec![window(5, 0, 12)],
            summary: Summary { version, goodput_bps: Some(9e6), ..Summary::default() },
            ..RunResults::default()
        }
    }

    impl Record {
        /// Of a run with little traffic.
        pub fn example(name: &str, algorithm: &str) -> Record {
            Record::of(&example(name, "", algorithm), None)
        }
    }
}
