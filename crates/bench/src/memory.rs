//! Cost of connections: the memory of an idle one, and a hundred thousand active ones on a large tree.

use crate::speed::parse;
use crate::{Row, in_own_process, peak_memory};
use sim::{Simulation, simulate};
use std::time::Instant;
use units::Time;

const IDLE_FLOWS: u32 = 100_000;
const IDLE: &str = "memory of an idle flow";
const WEB_SEARCH: &str = "4394 hosts, 100000 web-search flows";

pub fn cases() -> Vec<String> {
    vec![IDLE.into(), WEB_SEARCH.into()]
}

pub fn run(name: &str) -> Option<Vec<Row>> {
    match name {
        IDLE => idle(),
        WEB_SEARCH => Some(web_search()),
        _ => name.strip_prefix("idle flows ").and_then(|n| n.parse().ok()).map(peak_with_idle),
    }
}

/// Both ends of an established connection with nothing in flight, two links apart: the difference that 100,000 of them
/// make. Each link more on its path is 8 bytes.
fn idle() -> Option<Vec<Row>> {
    let peak = |flows: u32| Some(in_own_process(&format!("idle flows {flows}"))?.first()?.value);
    let per_flow = (peak(IDLE_FLOWS)? - peak(0)?) / f64::from(IDLE_FLOWS);
    Some(vec![Row::new(IDLE, per_flow, "bytes")])
}

fn peak_with_idle(flows: u32) -> Vec<Row> {
    let traffic = if flows == 0 { "idle = { flows = 1 }".into() } else { format!("idle = {{ flows = {flows} }}") };
    let scenario = parse(&format!(
        r#"
        duration = "15 s"
        [network]
        topology = {{ star = {{ hosts = 1000 }} }}
        rate = "10 Gbit/s"
        delay = "1 us"
        [[traffic]]
        {traffic}
        "#
    ));
    let mut simulation = Simulation::new(&scenario).expect("the built-in algorithms are there");
    simulation.run_to(Time::from_secs(15));
    assert!(simulation.packet_hops() >= u64::from(flows), "the connections are established");
    vec![Row::new("peak", peak_memory().expect("/proc tells") as f64, "bytes")]
}

/// Flows with the published web-search sizes over a fat tree of 26-port switches, until all have finished.
fn web_search() -> Vec<Row> {
    let scenario = parse(
        r#"
        duration = "3 s"
        [network]
        topology = { fat_tree = { k = 26 } }
        rate = "10 Gbit/s"
        delay = "1 us"
        queue = { threshold_ecn = { mark_packets = 65, packets = 250 } }
        [tcp]
        cc = "dctcp"
        rto_min = "10 ms"
        [[traffic]]
        poisson = { load = "30 %", sizes = "web-search", flows = 100_000 }
        "#,
    );
    let start = Instant::now();
    let results = simulate(&scenario, &mut ()).expect("nothing interrupts it");
    let wall = start.elapsed().as_secs_f64();
    let summary = results.summary;
    let row = |what: &str, value: f64, unit: &str| Row::new(format!("{WEB_SEARCH}: {what}"), value, unit);
    let mut rows = vec![
        row("completed", summary.flows_completed as f64, "flows"),
        row("wall", wall, "s"),
        row("packet-hops", summary.packet_hops as f64, "packets"),
        row("p99 completion time", summary.p99_fct_ns.unwrap_or(0) as f64 / 1e6, "ms"),
    ];
    if let Some(bytes) = peak_memory() {
        rows.push(row("memory", bytes as f64 / 1e6, "MB"));
    }
    rows
}
