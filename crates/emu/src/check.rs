//! The self-check: whether the machine disturbed a run, and whether that matters for what the run measures.

use crate::cpu::CpuUse;
use crate::lateness::Lateness;
use crate::slowdown::Slowdown;
use net::{Limit, LinkId, NodeId, Router, Topology};
use results::{LinkRow, SelfCheck};
use std::collections::BTreeSet;
use units::Time;

/// Bytes of a pure ACK's IP packet.
const ACK_BYTES: u64 = 52;
/// Pairs of hosts that are examined for the shortest round trip.
const PAIRS_MAX: usize = 1000;

/// The scales by which a run is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Shortest round trip of an idle network between hosts that talk.
    pub base_rtt: Time,
    /// Time of a full packet on the fastest measured link.
    pub packet_time: Time,
    /// The scenario measures queues.
    pub queues: bool,
    /// What is a share of real time disturbs the network as many times less.
    pub slowdown: Slowdown,
    /// How long a queue that was full takes to drain, the shortest of them; none if no queue was.
    pub full_queue: Option<Time>,
}

impl Scale {
    /// For a run whose flows are between `pairs`, and which measures the queues of `measured` (none: only throughput). `full` and
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
        Scale {
            base_rtt,
            packet_time: packet_time.unwrap_or(Time::NEVER),
            queues: !measured.is_empty(),
            slowdown: Slowdown::NONE,
            full_queue: None,
        }
    }
}

/// How long the shortest of the switches' queues that were full in the run, or dropped packets, takes to drain from its limit. `rows`: of the
/// topology's links, in their order.
pub fn full_queue(topology: &Topology, rows: &[LinkRow], (full, framing): (u64, u64)) -> Option<Time> {
    let packet = full + framing;
    let time = |(number, row): (usize, &LinkRow)| {
        let link = topology.link(LinkId(number as u32));
        let bytes = match link.queue.limit {
            Limit::Packets(packets) => u64::from(packets) * packet,
            Limit::Bytes(bytes) => bytes.get(),
            Limit::Unlimited => return None,
        };
        let was_full = row.dropped > 0 || row.max_queue_packets >= bytes / packet;
        (was_full && !row.from_host).then(|| link.rate.serialization(bytes))
    };
    rows.iter().enumerate().filter_map(time).min()
}

/// Share of a run for which one thread of another program may wait for a CPU. Those of an idle system wait for little,
/// because they use little; one that spins beside sixteen hosts waits for half of the time and more.
const OTHERS_WAITED_MAX: f64 = 0.35;

/// Share of CPU time that the host of a virtual machine may steal. On an idle one it is 0 to 1 %; with 3 % and more,
/// the 99th percentile of lateness was 0.3 to 80 ms.
pub const STOLEN_MAX: f64 = 0.03;

/// The same where packets take less than [`FAST`]: a sender's card holds a handful of them, so the link is idle soon after
/// the CPU is stolen. Of 1 Gbit/s 2 to 5 % were left unused with 0.9 to 1.4 %.
const STOLEN_FAST_MAX: f64 = 0.005;
const FAST: Time = Time::from_us(50);

/// A pause of the machine of this share of the time that a full queue takes to drain decides what is dropped: all that hosts sent meanwhile
/// arrives as one burst, and after it the queue is empty for as long.
pub const PAUSE_SHARE: u64 = 3;

/// How late the applications' timers may be at the 99th percentile. On an idle machine they are within a millisecond.
const APPLICATIONS_LATE_MAX: Time = Time::from_ms(10);

/// Judges a run. `applications`: lateness of the applications' timers at the 99th percentile; `against`: further
/// objections.
pub fn judge(
    lateness: &Lateness,
    applications: Time,
    scale: Scale,
    cpu: CpuUse,
    mut against: Vec<String>,
) -> SelfCheck {
    let p99 = lateness.release.percentile(99.0);
    let throughput_valid = p99 <= scale.base_rtt / 2;
    let queues_valid = p99 <= scale.packet_time.saturating_add(scale.packet_time);
    if !throughput_valid {
        let bound = scale.base_rtt / 2;
        against.push(format!("the p99 of the lateness was {p99}, more than half of the base RTT ({bound})"));
    } else if scale.queues && !queues_valid {
        let bound = scale.packet_time * 2;
        against.push(format!(
            "queues are measured, and the p99 of the lateness was {p99}, more than two packet times ({bound})"
        ));
    }
    let pause = lateness.release.max();
    if let Some(drains) = scale.full_queue.filter(|drains| pause > *drains / PAUSE_SHARE) {
        against.push(format!(
            "the machine paused: a packet was {pause} late, more than a third of the {drains} in which a queue that was full drains"
        ));
    }
    if applications > APPLICATIONS_LATE_MAX {
        against.push(format!("the p99 of the lateness of the applications' timers was {applications}"));
    }
    let times = f64::from(scale.slowdown.times());
    if cpu.others_waited > OTHERS_WAITED_MAX * times {
        let CpuUse { others_ran, others_waited, .. } = cpu;
        against.push(format!(
            "another program waited for a CPU for {:.0} % of the run, and others used {others_ran:.2} CPUs",
            others_waited * 100.0
        ));
    }
    let is_fast = scale.slowdown.real(scale.packet_time) < FAST;
    if cpu.stolen > times * if is_fast { STOLEN_FAST_MAX } else { STOLEN_MAX } {
        against.push(format!("steal time was {:.1} % of the CPU time", cpu.stolen * 100.0));
    }
    let us = |time: Time| time.as_ns() as f64 / 1e3;
    SelfCheck {
        run: String::new(),
        attempts: 1,
        slowdown: scale.slowdown.times(),
        packets: lateness.release.count(),
        lateness_p50_us: us(lateness.release.percentile(50.0)),
        lateness_p99_us: us(p99),
        lateness_max_us: us(lateness.release.max()),
        reading_p99_us: us(lateness.reading.percentile(99.0)),
        applications_p99_us: us(applications),
        cpu_busy: cpu.busy,
        cpu_stolen: cpu.stolen,
        cpu_others_ran: cpu.others_ran,
        cpu_others_waited: cpu.others_waited,
        base_rtt_us: us(scale.base_rtt),
        packet_time_us: us(scale.packet_time),
        throughput_valid,
        queues_valid,
        measures_queues: scale.queues,
        valid: against.is_empty(),
        reasons: against,
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
        let scale = |queues| Scale {
            base_rtt: Time::from_us(500),
            packet_time: Time::from_us(12),
            queues,
            slowdown: Slowdown::NONE,
            full_queue: None,
        };
        let judged = |us, queues| judge(&late(us), Time::ZERO, scale(queues), CpuUse::default(), Vec::new());
        assert!(judged(20, true).valid);
        let queues = judged(100, true);
        assert!(!queues.valid && queues.throughput_valid && queues.reasons[0].contains("two packet times"));
        assert!(judged(100, false).valid, "late, but queues are not measured");
        let throughput = judged(300, false);
        assert!(!throughput.valid && throughput.reasons[0].contains("base RTT"));
        let waited = |others_waited| CpuUse { others_waited, ..CpuUse::default() };
        let crowded = judge(&late(1), Time::ZERO, scale(false), waited(0.5), Vec::new());
        assert!(!crowded.valid && crowded.reasons[0].contains("another program"));
        assert!(judge(&late(1), Time::ZERO, scale(false), waited(0.1), Vec::new()).valid);
        let slow = Scale { slowdown: Slowdown::new(2).unwrap(), ..scale(false) };
        assert!(judge(&late(1), Time::ZERO, slow, waited(0.5), Vec::new()).valid, "half as much of a slower network");
        let idle = judge(&late(1), Time::from_ms(1), scale(false), CpuUse::default(), Vec::new());
        let slow = judge(&late(1), Time::from_ms(40), scale(false), CpuUse::default(), Vec::new());
        assert!(idle.valid && !slow.valid && slow.reasons[0].contains("was 40 ms"), "{:?}", slow.reasons);
        assert_eq!(judge(&late(1), Time::ZERO, scale(true), CpuUse::default(), vec!["x".into()]).reasons, ["x"]);
    }

    #[test]
    fn a_pause_of_a_third_of_a_full_queue_is_too_long() {
        // 250 packets of 1538 B at 1 Gbit/s drain in 3.076 ms; a third is 1.025 ms
        let scale = |full_queue| Scale {
            base_rtt: Time::from_ms(30),
            packet_time: Time::from_us(12),
            queues: false,
            slowdown: Slowdown::NONE,
            full_queue,
        };
        let mut lateness = late(30);
        lateness.release.record(Time::from_us(9500));
        let judged = |late: &Lateness, full| judge(late, Time::ZERO, scale(full), CpuUse::default(), Vec::new());
        let paused = judged(&lateness, Some(Time::from_us(3076)));
        assert!(
            !paused.valid && paused.reasons[0].starts_with("the machine paused: a packet was 9.5"),
            "{:?}",
            paused.reasons
        );
        assert!(judged(&lateness, None).valid, "no queue was full, so nothing was lost by it");
        assert!(judged(&late(1000), Some(Time::from_us(3076))).valid);
    }

    #[test]
    fn the_shortest_queue_that_was_full_counts() {
        let queue = |packets| net::LinkParams {
            rate: units::Rate::from_gbps(1),
            delay: Time::from_us(1),
            queue: net::QueueSpec::drop_tail(packets),
        };
        let topology =
            Topology::star(2, |tier| queue(if tier == net::LinkTier::FromHost { 1000 } else { 250 })).unwrap();
        let rows = |switch_queue, dropped| -> Vec<LinkRow> {
            let row = |link: &net::LinkSpec| {
                let from_host = link.tier == net::LinkTier::FromHost;
                let (max_queue_packets, dropped) = if from_host { (1000, 9) } else { (switch_queue, dropped) };
                LinkRow { from_host, max_queue_packets, dropped, ..LinkRow::default() }
            };
            topology.links().iter().map(row).collect()
        };
        let time = |rows: &[LinkRow]| full_queue(&topology, rows, (1500, 38));
        assert_eq!(time(&rows(249, 0)), None, "hosts' cards do not count");
        assert_eq!(time(&rows(250, 0)), Some(Time::from_us(3076)));
        assert_eq!(time(&rows(20, 1)), Some(Time::from_us(3076)), "RED drops below the limit");
    }
}
