//! The self-check: what the machine did to a run, and whether that matters for what the run measures.

use crate::lateness::Lateness;
use net::{LinkId, NodeId, Router, Topology};
use results::SelfCheck;
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;
use units::Time;

/// Bytes of an IP packet that only acknowledges.
const ACK_BYTES: u64 = 52;
/// Pairs of hosts that are looked at for the shortest round trip.
const PAIRS_MAX: usize = 1000;

/// What a run must be measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Shortest round trip of an idle network between hosts that talk.
    pub base_rtt: Time,
    /// Time of a full packet on the fastest link that is measured.
    pub packet_time: Time,
    /// The scenario measures queues.
    pub queues: bool,
}

impl Scale {
    /// Of a run whose flows are between `pairs`, which measures the queues of `measured` (none: only throughput). `full` and
    /// `framing`: bytes of a full IP packet, and what the wire adds.
    pub fn of(
        topology: &Topology,
        router: &Router,
        pairs: &BTreeSet<(u32, u32)>,
        measured: &[LinkId],
        (full, framing): (u64, u64),
    ) -> Scale {
        let mut path = Vec::new();
        let mut one_way = |from: u32, to: u32, bytes: u64| {
            router.path(NodeId(from), NodeId(to), 0, &mut path).ok()?;
            Some(path.iter().fold(Time::ZERO, |sum, link| {
                let link = topology.link(*link);
                sum + link.delay + link.rate.serialization(bytes + framing)
            }))
        };
        let round = |(a, b): &(u32, u32)| Some(one_way(*a, *b, full)? + one_way(*b, *a, ACK_BYTES)?);
        let base_rtt = pairs.iter().take(PAIRS_MAX).filter_map(round).min().unwrap_or(Time::NEVER);
        let all = (0..topology.links().len() as u32).map(LinkId).collect::<Vec<_>>();
        let links = if measured.is_empty() { &all } else { measured };
        let packet_time = links.iter().map(|link| topology.link(*link).rate.serialization(full + framing)).min();
        Scale { base_rtt, packet_time: packet_time.unwrap_or(Time::NEVER), queues: !measured.is_empty() }
    }
}

/// For how much of a run some program may wait for a processor, by Linux's pressure stall information. With sixteen hosts on an
/// idle machine of two that is 0.4, for the run's own threads; beside one program that burns a processor 0.85 and more.
const CONTENDED_MAX: f64 = 0.6;
/// Where all processors are busy, the hosts lack what other programs take; up to this share of them is the usual noise.
const OTHERS_MAX: f64 = 0.15;
/// Processors that are busy for this share of the time have none left.
const BUSY: f64 = 0.95;

/// Judges a run. `against`: what else speaks against it.
pub fn judge(lateness: &Lateness, scale: Scale, cpu: CpuUse, mut against: Vec<String>) -> SelfCheck {
    let p99 = lateness.release.percentile(99.0);
    let throughput_valid = p99 <= scale.base_rtt / 2;
    let queues_valid = p99 <= scale.packet_time.saturating_add(scale.packet_time);
    if !throughput_valid {
        let bound = scale.base_rtt / 2;
        against.push(format!("packets were late by {p99} (99 %), more than half of the base round trip ({bound})"));
    } else if scale.queues && !queues_valid {
        let bound = scale.packet_time * 2;
        against.push(format!(
            "queues are measured, and packets were late by {p99} (99 %), over two packet times ({bound})"
        ));
    }
    if cpu.contended > CONTENDED_MAX {
        let contended = cpu.contended * 100.0;
        against.push(format!("programs had to wait for a processor for {contended:.0} % of the run"));
    } else if cpu.busy > BUSY && cpu.others > OTHERS_MAX {
        let others = cpu.others * 100.0;
        against.push(format!("other programs took {others:.0} % of the processors, and hosts had to wait for theirs"));
    }
    let us = |time: Time| time.as_ns() as f64 / 1e3;
    SelfCheck {
        run: String::new(),
        packets: lateness.release.count(),
        lateness_p50_us: us(lateness.release.percentile(50.0)),
        lateness_p99_us: us(p99),
        lateness_max_us: us(lateness.release.max()),
        reading_p99_us: us(lateness.reading.percentile(99.0)),
        applications_p99_us: 0.0,
        cpu_busy: cpu.busy,
        cpu_others: cpu.others,
        cpu_contended: cpu.contended,
        base_rtt_us: us(scale.base_rtt),
        packet_time_us: us(scale.packet_time),
        throughput_valid,
        queues_valid,
        measures_queues: scale.queues,
        valid: against.is_empty(),
        reasons: against,
    }
}

/// Shares of all processors between two looks, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// Not idle, interrupts and stolen time included.
    pub busy: f64,
    /// Taken by other processes.
    pub others: f64,
    /// Of the time, for how much some program had to wait for a processor.
    pub contended: f64,
}

/// The machine's and this process's clock ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTicks {
    all: u64,
    idle: u64,
    /// Of processes, as opposed to interrupts.
    processes: u64,
    own: u64,
    /// Microseconds in which a program waited for a processor.
    waiting_us: u64,
    at: Option<Instant>,
}

impl CpuTicks {
    /// The ticks so far; zero where /proc does not say.
    pub fn now() -> CpuTicks {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let pressure = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        CpuTicks { at: Some(Instant::now()), ..CpuTicks::read(&stat, &own, &pressure) }
    }

    fn read(stat: &str, own: &str, pressure: &str) -> CpuTicks {
        let numbers = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u64>>();
        // user nice system idle iowait irq softirq steal
        let machine = numbers(stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default());
        let at = |i: usize| machine.get(i).copied().unwrap_or(0);
        // after the name, which may hold anything: state is field 3, utime and stime are 14 and 15
        let fields: Vec<&str> = own.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let field = |number: usize| fields.get(number - 3).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        CpuTicks {
            all: machine.iter().take(8).sum(),
            idle: at(3) + at(4),
            processes: at(0) + at(1) + at(2),
            own: field(14) + field(15),
            // some avg10=0.00 avg60=0.00 avg300=0.00 total=123
            waiting_us: pressure.lines().next().and_then(|some| some.rsplit('=').next()?.parse().ok()).unwrap_or(0),
            at: None,
        }
    }

    /// What was used since `before`.
    pub fn since(&self, before: &CpuTicks) -> CpuUse {
        let all = (self.all - before.all).max(1) as f64;
        let idle = (self.idle - before.idle) as f64;
        let others = (self.processes - before.processes).saturating_sub(self.own - before.own) as f64;
        let elapsed = self.at.zip(before.at).map_or(0.0, |(now, then)| (now - then).as_secs_f64());
        let contended = (self.waiting_us - before.waiting_us) as f64 / 1e6 / elapsed.max(1e-3);
        let share = |x: f64| x.clamp(0.0, 1.0);
        CpuUse { busy: share(1.0 - idle / all), others: share(others / all), contended: share(contended) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(us: u64) -> Lateness {
        let mut lateness = Lateness::default();
        for _ in 0..200 {
            lateness.release.record(Time::from_us(us));
        }
        lateness
    }

    #[test]
    fn a_run_is_judged_by_what_it_measures() {
        let scale = |queues| Scale { base_rtt: Time::from_us(500), packet_time: Time::from_us(12), queues };
        let judged = |us, queues| judge(&late(us), scale(queues), CpuUse::default(), Vec::new());
        assert!(judged(20, true).valid);
        let queues = judged(100, true);
        assert!(!queues.valid && queues.throughput_valid && queues.reasons[0].contains("two packet times"));
        assert!(judged(100, false).valid, "late, but queues are not measured");
        let throughput = judged(300, false);
        assert!(!throughput.valid && throughput.reasons[0].contains("base round trip"));
        let crowded = judge(&late(1), scale(false), CpuUse { busy: 1.0, others: 0.5, contended: 0.0 }, Vec::new());
        assert!(!crowded.valid && crowded.reasons[0].contains("other programs"));
        assert!(judge(&late(1), scale(false), CpuUse { busy: 0.6, others: 0.3, contended: 0.0 }, Vec::new()).valid);
        assert_eq!(judge(&late(1), scale(true), CpuUse::default(), vec!["x".into()]).reasons, ["x"]);
    }

    #[test]
    fn shares_of_the_processors_are_told_from_the_ticks() {
        let before = CpuTicks::read("cpu  100 0 100 800 0 0 0 0\n", "1 (a b) c) R 1 1 1 1 1 1 1 1 1 1 30 20 0", "");
        let after = CpuTicks::read("cpu  160 0 110 820 0 0 10 0\n", "1 (a b) c) R 1 1 1 1 1 1 1 1 1 1 60 30 0", "");
        // of 100 ticks 20 were idle, 70 went to processes, 40 of them to this one
        let used = after.since(&before);
        assert!((used.busy - 0.8).abs() < 1e-9 && (used.others - 0.3).abs() < 1e-9, "{used:?}");
    }

    #[test]
    fn the_machine_tells_its_ticks() {
        assert!(CpuTicks::now().all > 0);
    }
}
