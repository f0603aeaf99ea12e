//! Packet-hops per second: a permutation of long flows across the pods of a fat tree.
//!
//! As other simulators of this kind are measured: one flow a host, 1500-byte packets, 1 µs a link, ECMP, 100-packet drop-tail queues at
//! every link (a host's own included, so back-pressure is off), DCTCP marking at 15. SACK, delayed ACKs, exact queues in packets and the
//! conservation check are on.

use crate::{Row, peak_memory};
use congestion::Algorithm;
use scenario::{Disk, Input, Known, Scenario};
use sim::Simulation;
use std::path::PathBuf;
use std::time::Instant;
use units::Time;

const ALGORITHMS: [&str; 3] = ["dctcp", "newreno", "cubic"];

struct Size {
    name: &'static str,
    k: u32,
    rate: &'static str,
    /// Simulated time before and while measuring: seconds of work, past slow start.
    warmup: Time,
    measured: Time,
}

const SIZES: [Size; 4] = [
    Size { name: "16x100M", k: 4, rate: "100 Mbit/s", warmup: Time::from_secs(2), measured: Time::from_secs(40) },
    Size { name: "16x10G", k: 4, rate: "10 Gbit/s", warmup: Time::from_ms(50), measured: Time::from_ms(700) },
    Size { name: "128x10G", k: 8, rate: "10 Gbit/s", warmup: Time::from_ms(10), measured: Time::from_ms(90) },
    Size { name: "1024x10G", k: 16, rate: "10 Gbit/s", warmup: Time::from_ms(4), measured: Time::from_ms(12) },
];

/// Disciplines of today, in the first size, with NewReno.
const QUEUES: [&str; 4] = ["pie", "codel", "fq_codel", "dualpi2"];

/// HOSTSxRATE/algorithm, and HOSTSxRATE/discipline.
pub fn cases() -> Vec<String> {
    let queues = QUEUES.iter().map(|queue| format!("{}/{queue}", SIZES[0].name));
    SIZES.iter().flat_map(|size| ALGORITHMS.iter().map(move |cc| format!("{}/{cc}", size.name))).chain(queues).collect()
}

/// Speed and peak memory of a case; `None` if it is not one of these.
pub fn run(name: &str) -> Option<Vec<Row>> {
    let (size, cc) = name.split_once('/')?;
    let size = SIZES.iter().find(|s| s.name == size)?;
    let cc = ALGORITHMS.iter().chain(&QUEUES).find(|a| **a == cc)?;
    let scenario = permutation((size.k, size.rate), cc, size.warmup + size.measured);
    Some(measure(name, &scenario, size.warmup))
}

/// Speed and peak memory of a scenario after `warmup`.
pub fn measure(name: &str, scenario: &Scenario, warmup: Time) -> Vec<Row> {
    let mut simulation = Simulation::new(scenario).expect("the built-in algorithms are there");
    simulation.run_to(warmup);
    let (hops, start) = (simulation.packet_hops(), Instant::now());
    simulation.run_to(scenario.duration);
    let (wall, hops) = (start.elapsed().as_secs_f64(), simulation.packet_hops() - hops);
    // finishing checks that every link conserves packets, and the table must agree with the count
    let total = simulation.packet_hops();
    let results = simulation.finish();
    assert_eq!(results.links.iter().map(|link| link.packets).sum::<u64>(), total, "the links table adds up");

    let mut rows = vec![Row::new(name, hops as f64 / wall, "packet-hops/s")];
    let goodput = results.summary.goodput_bps.unwrap_or(0.0) / results.flows.len() as f64 / 1e6;
    rows.push(Row::new(format!("{name} goodput of a flow"), goodput, "Mbit/s"));
    rows.push(Row::new(format!("{name} drops"), results.summary.drops_at_switches as f64, "packets"));
    if let Some(bytes) = peak_memory() {
        rows.push(Row::new(format!("{name} memory"), bytes as f64 / 1e6, "MB"));
    }
    rows
}

/// A long flow from each host of a fat tree of `k`-port switches to one of another pod.
pub fn permutation((k, rate): (u32, &str), cc: &str, duration: Time) -> Scenario {
    let (queue, cc) = match cc {
        "dctcp" => ("{ threshold_ecn = { mark_packets = 15, packets = 100 } }".to_string(), cc),
        queue if QUEUES.contains(&queue) => (format!("{{ {queue} = {{ packets = 100 }} }}"), "newreno"),
        _ => ("{ drop_tail = { packets = 100 } }".to_string(), cc),
    };
    parse(&format!(
        r#"
        duration = "{duration}"
        [network]
        topology = {{ fat_tree = {{ k = {k} }} }}
        rate = "{rate}"
        delay = "1 us"
        queue = {queue}
        nic_queue = {queue}
        framing = "ip"
        [tcp]
        cc = "{cc}"
        limit_output = false
        [[traffic]]
        permutation = {{ across = "pods", bulk = {{}} }}
        "#
    ))
}

/// The scenario of `text`.
pub fn parse(text: &str) -> Scenario {
    let names: Vec<&str> = Algorithm::builtins().iter().map(Algorithm::name).collect();
    let files = Disk { base: PathBuf::new() };
    let input = Input {
        name: "bench.toml",
        text,
        sets: &[],
        known: Known { algorithms: &names, ..Known::default() },
        files: &files,
    };
    match Scenario::parse(&input) {
        Ok(loaded) => loaded.runs.into_iter().next().expect("a scenario is at least one run").scenario,
        Err(diagnostic) => panic!("{}", diagnostic.render(false)),
    }
}
