//! Packet-hops per second where flows come and go and packets are lost: web-search flows at 60 % load on a leaf–spine network.
//!
//! 32 hosts under four leaves and four spines, 25 Gbit/s, 1 us a link, 300-packet queues that mark at 60: a usual load of
//! data centers. For comparison, a permutation of long flows on the same network with the same algorithm.

use crate::speed::parse;
use crate::{Row, peak_memory};
use scenario::Scenario;
use sim::Simulation;
use std::time::Instant;
use units::Time;

const ALGORITHMS: [&str; 3] = ["dctcp", "cubic", "bbr"];
const DURATION: Time = Time::from_ms(200);
/// Long flows: past slow start, and seconds of work.
const PERMUTATION_WARMUP: Time = Time::from_ms(10);
const PERMUTATION: Time = Time::from_ms(100);

/// web-search/algorithm.
pub fn cases() -> Vec<String> {
    ALGORITHMS.iter().map(|cc| format!("web-search/{cc}")).collect()
}

/// Speed of a case, and how much faster the permutation is; `None` if it is not one of these.
pub fn run(name: &str) -> Option<Vec<Row>> {
    let cc = name.strip_prefix("web-search/")?;
    let cc = ALGORITHMS.iter().find(|known| **known == cc)?;
    let web_search = r#"poisson = { load = "60 %", sizes = "web-search" }"#;
    let (speed, simulation) = measure(&scenario(cc, web_search, DURATION), Time::ZERO);
    let results = simulation.finish();
    let memory = peak_memory();
    let permutation = r#"permutation = { across = "pods", bulk = {} }"#;
    let (long, _) = measure(&scenario(cc, permutation, PERMUTATION_WARMUP + PERMUTATION), PERMUTATION_WARMUP);

    let retransmits: u64 = results.flows.iter().map(|flow| flow.retransmits).sum();
    let mut rows = vec![
        Row::new(name, speed, "packet-hops/s"),
        Row::new(format!("{name} permutation of long flows"), long, "packet-hops/s"),
        Row::new(format!("{name} permutation, times as fast"), long / speed, ""),
        Row::new(format!("{name} flows completed"), results.summary.flows_completed as f64, "flows"),
        Row::new(format!("{name} drops"), results.summary.drops_at_switches as f64, "packets"),
        Row::new(format!("{name} retransmissions"), retransmits as f64, "packets"),
    ];
    if let Some(bytes) = memory {
        rows.push(Row::new(format!("{name} memory"), bytes as f64 / 1e6, "MB"));
    }
    Some(rows)
}

/// Packet-hops a second of wall time after `warmup`, and the run at its end.
fn measure(scenario: &Scenario, warmup: Time) -> (f64, Simulation) {
    let mut simulation = Simulation::new(scenario).expect("the built-in algorithms are there");
    simulation.run_to(warmup);
    let (hops, start) = (simulation.packet_hops(), Instant::now());
    simulation.run_to(scenario.duration);
    let speed = (simulation.packet_hops() - hops) as f64 / start.elapsed().as_secs_f64();
    (speed, simulation)
}

fn scenario(cc: &str, traffic: &str, duration: Time) -> Scenario {
    let queue = "{ threshold_ecn = { mark_packets = 60, packets = 300 } }";
    parse(&format!(
        r#"
        duration = "{duration}"
        [network]
        topology = {{ leaf_spine = {{ leaves = 4, spines = 4, hosts_per_leaf = 8 }} }}
        rate = "25 Gbit/s"
        delay = "1 us"
        queue = {queue}
        [tcp]
        cc = "{cc}"
        [[traffic]]
        {traffic}
        "#
    ))
}
