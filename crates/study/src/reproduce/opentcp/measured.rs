//! The study's measurements of a run, and their medians over seeds.

use results::{Arm, CueEvent, FlowRow, RunResults};
use std::collections::BTreeMap;
use units::Time;

/// The traffic entry whose messages are compared; other entries with messages are the other benchmark's.
const MPI: &str = "mpi";
/// The file system's traffic, in congestion episodes and outside of them.
const FILES: [&str; 2] = ["files", "epoch"];
/// With fewer jobs, no correlation is computed.
const JOBS_MIN: usize = 5;
/// The paper counts a link's samples below this.
const LOW_UTILIZATION: f64 = 0.5;

/// A group of hosts in a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Completion times of messages, milliseconds, ascending.
    pub fct_ms: Vec<f64>,
    /// The same of the other benchmark.
    pub exchange_ms: Vec<f64>,
    /// Retransmitted segments by connection, ascending.
    pub drops: Vec<f64>,
    /// The same by message, on connections with several: since the arrival of the previous message.
    pub drops_of_messages: Vec<f64>,
    /// Completion times of the file system's flows.
    pub files_ms: Vec<f64>,
    /// Packets sent per microsecond at windows up to 5, and at all windows, summed over samples of senders: packets in flight divided by the RTT.
    pub sending: [f64; 2],
    /// Data segments of the hosts, their retransmissions, and the segments that the network lost.
    pub segments: [u64; 3],
}

/// A whole run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The treated hosts; without a policy, all hosts.
    pub treated: Measured,
    /// The control group; without a policy, empty.
    pub control: Measured,
    /// By job: mean time of a round and 99th percentile of its messages, milliseconds.
    pub jobs: Vec<(f64, f64)>,
    /// Decisions that sent CUEs, and all decisions.
    pub decisions: [usize; 2],
    /// Times that a host's guard reverted.
    pub reverted: usize,
    /// Share of time in which hosts followed a rule, over the hosts that ever did.
    pub in_force: Option<f64>,
    /// Share of the samples of links with less than half of their capacity used.
    pub low_utilization: f64,
}

impl Run {
    /// Measures a run from `warmup` on.
    pub fn of(run: &RunResults, warmup: Time) -> Run {
        let mut measured = Run::default();
        let is_mpi = |flow: &&FlowRow| &*flow.group == MPI;
        for flow in run.flows.iter().filter(is_mpi) {
            let group = measured.group(flow.arm);
            group.drops.push(flow.retransmits as f64);
            group.segments[0] += flow.data_packets_sent;
            group.segments[1] += flow.retransmits;
            group.segments[2] += flow.data_packets_sent.saturating_sub(flow.packets_received);
        }
        measured.messages(run);
        for flow in run.flows.iter().filter(|flow| flow.start_ns >= warmup.as_ns() && FILES.contains(&&*flow.group)) {
            measured.group(flow.arm).files_ms.extend(flow.fct_ns().map(|ns| ns as f64 / 1e6));
        }
        for sample in run.cwnd.iter().filter(|sample| is_mpi(&&run.flows[sample.flow as usize])) {
            let Some(srtt_us) = sample.srtt_us.filter(|srtt_us| *srtt_us > 0) else { continue };
            let group = measured.group(run.flows[sample.flow as usize].arm);
            let sending = f64::from(sample.in_flight) / f64::from(srtt_us);
            group.sending[0] += if sample.cwnd <= 5 { sending } else { 0.0 };
            group.sending[1] += sending;
        }
        for group in [&mut measured.treated, &mut measured.control] {
            let Measured { fct_ms, exchange_ms, files_ms, drops, drops_of_messages, .. } = group;
            for values in [fct_ms, exchange_ms, files_ms, drops, drops_of_messages] {
                values.sort_by(f64::total_cmp);
            }
        }
        let at_oracle = run.cues.iter().filter(|cue| cue.host.is_empty());
        measured.decisions =
            at_oracle.fold([0, 0], |[sent, all], cue| [sent + usize::from(cue.event.as_str() == "sent"), all + 1]);
        measured.reverted = run.cues.iter().filter(|cue| cue.event == CueEvent::Reverted).count();
        measured.in_force = in_force(run, warmup);
        let low = run.link_series.iter().filter(|sample| sample.utilization < LOW_UTILIZATION).count();
        measured.low_utilization = low as f64 / run.link_series.len().max(1) as f64;
        measured
    }

    /// Messages on connections with several, and the rounds of their jobs.
    fn messages(&mut self, run: &RunResults) {
        // by job and round: the earliest start and the latest end; by job: times of its messages
        let mut rounds: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
        let mut messages: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for message in &run.messages {
            let ms = (message.end_ns - message.start_ns) as f64 / 1e6;
            let group = self.group(run.flows[message.flow as usize].arm);
            if &*message.entry != MPI {
                group.exchange_ms.push(ms);
                continue;
            }
            group.fct_ms.push(ms);
            group.drops_of_messages.push(message.retransmits as f64);
            messages.entry(message.job).or_default().push(ms);
            let round = rounds.entry((message.job, message.round)).or_insert((message.start_ns, 0));
            round.1 = round.1.max(message.end_ns);
        }
        for (job, mut times) in messages {
            times.sort_by(f64::total_cmp);
            let took: Vec<f64> =
                rounds.range((job, 0)..(job + 1, 0)).map(|(_, (start, end))| (end - start) as f64 / 1e6).collect();
            self.jobs.push((took.iter().sum::<f64>() / took.len() as f64, at(&times, 0.99)));
        }
    }

    fn group(&mut self, arm: Option<Arm>) -> &mut Measured {
        if arm == Some(Arm::Control) { &mut self.control } else { &mut self.treated }
    }

    /// Pearson's r over the jobs, between the time of a job's rounds and the tail of its messages; `None` with too few jobs.
    pub fn correlation(&self) -> Option<f64> {
        let n = self.jobs.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.jobs.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|job| job.0), mean(|job| job.1));
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| self.jobs.iter().map(of).sum::<f64>();
        let (xx, yy) = (sum(&|job| (job.0 - x).powi(2)), sum(&|job| (job.1 - y).powi(2)));
        let xy = sum(&|job| (job.0 - x) * (job.1 - y));
        (self.jobs.len() >= JOBS_MIN && xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
    }

    /// Mean time of a round, over jobs.
    pub fn round_ms(&self) -> Option<f64> {
        let n = self.jobs.len();
        (n > 0).then(|| self.jobs.iter().map(|job| job.0).sum::<f64>() / n as f64)
    }
}

impl Measured {
    /// A percentile of completion times, by its share.
    pub fn fct_at(&self, share: f64) -> Option<f64> {
        (!self.fct_ms.is_empty()).then(|| at(&self.fct_ms, share))
    }

    /// A percentile of drops per connection.
    pub fn drops_at(&self, share: f64) -> Option<f64> {
        (!self.drops.is_empty()).then(|| at(&self.drops, share))
    }

    /// Share of the connections without drops.
    pub fn without_drops(&self) -> Option<f64> {
        without(&self.drops)
    }

    /// Share of the messages without drops.
    pub fn messages_without_drops(&self) -> Option<f64> {
        without(&self.drops_of_messages)
    }

    /// A percentile of completion times of the other benchmark.
    pub fn exchange_at(&self, share: f64) -> Option<f64> {
        (!self.exchange_ms.is_empty()).then(|| at(&self.exchange_ms, share))
    }

    /// Share of the retransmissions whose segments the network had lost.
    pub fn truly_lost(&self) -> Option<f64> {
        (self.segments[1] > 0).then(|| (self.segments[2] as f64 / self.segments[1] as f64).min(1.0))
    }

    /// A percentile of completion times of the file system's flows.
    pub fn files_at(&self, share: f64) -> Option<f64> {
        (!self.files_ms.is_empty()).then(|| at(&self.files_ms, share))
    }

    /// Share of the packets that were sent at windows of up to 5 segments.
    pub fn small_windows(&self) -> Option<f64> {
        (self.sending[1] > 0.0).then(|| self.sending[0] / self.sending[1])
    }

    /// Share of retransmitted segments.
    pub fn drop_rate(&self) -> Option<f64> {
        (self.segments[0] > 0).then(|| self.segments[1] as f64 / self.segments[0] as f64)
    }
}

/// The share of zeros in ascending counts.
fn without(counts: &[f64]) -> Option<f64> {
    let none = counts.partition_point(|count| *count < 0.5);
    (!counts.is_empty()).then(|| none as f64 / counts.len() as f64)
}

/// Share of the time from `warmup` on in which hosts followed a rule, over the hosts that ever did.
fn in_force(run: &RunResults, warmup: Time) -> Option<f64> {
    let end = warmup.as_ns() + run.summary.duration_ns;
    let mut since: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut sum = 0;
    let within = |ns: u64| ns.clamp(warmup.as_ns(), end);
    for row in run.cues.iter().filter(|row| !row.host.is_empty()) {
        let follows = matches!(row.event, CueEvent::Taken | CueEvent::Recovered);
        let from = since.insert(&row.host, follows.then_some(row.time_ns)).flatten();
        sum += from.map_or(0, |from| within(row.time_ns) - within(from));
    }
    sum += since.values().flatten().map(|from| end - within(*from)).sum::<u64>();
    let all = since.len() as u64 * (end - warmup.as_ns());
    (all > 0).then(|| sum as f64 / all as f64)
}

/// By nearest rank, of ascending values.
fn at(values: &[f64], share: f64) -> f64 {
    let rank = (share * values.len() as f64).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_by_nearest_rank() {
        let group =
            Measured { fct_ms: vec![1.0, 2.0, 3.0, 4.0], drops: vec![0.0, 0.0, 0.0, 9.0], ..Measured::default() };
        // ⌈0.5·4⌉ = 2, ⌈0.99·4⌉ = 4
        assert_eq!((group.fct_at(0.5), group.fct_at(0.99)), (Some(2.0), Some(4.0)));
        assert_eq!((group.without_drops(), group.drops_at(0.75)), (Some(0.75), Some(0.0)));
        assert_eq!(Measured::default().fct_at(0.5), None);
    }

    #[test]
    fn the_time_in_which_a_rule_is_in_force_is_counted_from_the_warm_up_on() {
        let row = |seconds: u64, host: &str, event| results::CueRow {
            time_ns: seconds * 1_000_000_000,
            event,
            epoch: 1,
            rule: "calm".into(),
            host: host.into(),
            hosts: 1,
            set: "".into(),
            reason: "".into(),
        };
        let cues = vec![
            row(2, "h1", CueEvent::Taken),
            row(3, "h2", CueEvent::Taken),
            row(5, "h1", CueEvent::Reverted),
            row(7, "h1", CueEvent::Recovered),
            row(8, "h1", CueEvent::Expired),
        ];
        let mut run = RunResults { cues, ..RunResults::default() };
        run.summary.duration_ns = 6_000_000_000;
        // from 4 s to 10 s: h1 for 1 + 1 s, h2 for all 6
        assert_eq!(in_force(&run, Time::from_secs(4)), Some(8.0 / 12.0));
        assert_eq!(in_force(&RunResults::default(), Time::ZERO), None);
    }

    #[test]
    fn jobs_that_wait_for_their_tails_correlate_with_them() {
        let jobs = |list: &[(f64, f64)]| Run { jobs: list.to_vec(), ..Run::default() };
        let rising = jobs(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0), (4.0, 40.0), (5.0, 50.0)]);
        assert!((rising.correlation().unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(jobs(&[(1.0, 10.0); 5]).correlation(), None, "all are equal");
        assert_eq!(jobs(&rising.jobs[..4]).correlation(), None, "too few");
        assert_eq!(jobs(&[]).correlation(), None);
    }
}
