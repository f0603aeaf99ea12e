//! One network on several cores: the permutation of `speed` on large fat trees, whole, and in parts on one thread and on more.

use crate::speed::{parse, permutation};
use crate::{Row, peak_memory};
use scenario::Scenario;
use sim::{SimError, Simulation};
use std::num::NonZeroUsize;
use std::time::Instant;
use units::Time;

struct Size {
    name: &'static str,
    k: u32,
    /// So many parts: the simulator makes none for these hosts.
    parts: Option<usize>,
    measured: Time,
}

const SIZES: [Size; 3] = [
    Size { name: "1024x10G", k: 16, parts: Some(4), measured: Time::from_ms(6) },
    Size { name: "4394x10G", k: 26, parts: None, measured: Time::from_ms(3) },
    Size { name: "8192x10G", k: 32, parts: None, measured: Time::from_ms(2) },
];
const WARMUP: Time = Time::from_ms(3);
const ALGORITHMS: [&str; 2] = ["dctcp", "newreno"];
/// As Days has it, as far as its page says: 4,096 TCP flows with CUBIC on a fat tree of k = 32.
const FLOWS: &str = "threads/8192 hosts, 4096 flows of 1 MB";
const IDLE: &str = "threads/65536 hosts, idle";

/// HOSTSx10G/algorithm, and two single ones.
pub fn cases() -> Vec<String> {
    let sizes = SIZES.iter().flat_map(|size| ALGORITHMS.iter().map(move |cc| format!("threads/{}/{cc}", size.name)));
    sizes.chain([FLOWS.into(), IDLE.into()]).collect()
}

/// Rates, and what parts and each number of threads gain; `None` if it is not one of these.
pub fn run(name: &str) -> Option<Vec<Row>> {
    match name {
        FLOWS => return Some(flows()),
        IDLE => return Some(idle()),
        _ => {}
    }
    let (size, cc) = name.strip_prefix("threads/")?.split_once('/')?;
    let size = SIZES.iter().find(|known| known.name == size)?;
    let scenario = permutation((size.k, "10 Gbit/s"), cc, WARMUP + size.measured);
    let whole = rate(Simulation::in_parts(&scenario, 1), &scenario, 1);
    let mut rows = vec![Row::new(format!("{name}, whole, 1 thread"), whole, "packet-hops/s")];
    let mut of_one = 0.0;
    for threads in threads() {
        let simulation =
            size.parts.map_or_else(|| Simulation::new(&scenario), |parts| Simulation::in_parts(&scenario, parts));
        let rate = rate(simulation, &scenario, threads);
        let many = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        rows.push(Row::new(format!("{name}, parts, {many}"), rate, "packet-hops/s"));
        if threads == 1 {
            of_one = rate;
        } else {
            rows.push(Row::new(format!("{name}, {many}: of one thread's speed"), rate / of_one, "times"));
            rows.push(Row::new(format!("{name}, {many}: of the whole network's speed"), rate / whole, "times"));
        }
    }
    Some(rows)
}

/// Powers of two, up to the number of CPUs.
fn threads() -> impl Iterator<Item = usize> {
    let most = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    (0..).map(|log2| 1 << log2).take_while(move |threads| *threads <= most)
}

fn rate(simulation: Result<Simulation, SimError>, scenario: &Scenario, threads: usize) -> f64 {
    let mut simulation = simulation.expect("the built-in algorithms are there");
    simulation.use_threads(threads);
    simulation.run_to(WARMUP);
    let (hops, start) = (simulation.packet_hops(), Instant::now());
    simulation.run_to(scenario.duration);
    (simulation.packet_hops() - hops) as f64 / start.elapsed().as_secs_f64()
}

fn flows() -> Vec<Row> {
    let scenario = parse(
        r#"
        duration = "50 ms"
        [network]
        topology = { fat_tree = { k = 32 } }
        rate = "10 Gbit/s"
        delay = "1 us"
        queue = { drop_tail = { packets = 100 } }
        [tcp]
        cc = "cubic"
        [[traffic]]
        random_pairs = { flows = 4096, bulk = { bytes = "1 MB" } }
        "#,
    );
    let mut rows = Vec::new();
    for threads in threads() {
        let start = Instant::now();
        let mut simulation = Simulation::new(&scenario).expect("the built-in algorithms are there");
        simulation.use_threads(threads);
        simulation.run_to(scenario.duration);
        let completed = simulation.finish().summary.flows_completed;
        let wall = start.elapsed().as_secs_f64();
        if threads == 1 {
            rows.push(Row::new(format!("{FLOWS}: completed"), completed as f64, "flows"));
        }
        rows.push(Row::new(format!("{FLOWS}: wall, threads: {threads}"), wall, "s"));
    }
    rows
}

fn idle() -> Vec<Row> {
    let scenario = parse(
        r#"
        duration = "1 ms"
        [network]
        topology = { fat_tree = { k = 64 } }
        rate = "10 Gbit/s"
        delay = "1 us"
        queue = { drop_tail = { packets = 100 } }
        [[traffic]]
        bulk = { from = "h1", to = "h65536", bytes = "1 kB" }
        "#,
    );
    let mut simulation = Simulation::new(&scenario).expect("the built-in algorithms are there");
    simulation.run_to(scenario.duration);
    let bytes = peak_memory().expect("/proc tells");
    vec![Row::new(format!("{IDLE}: memory"), bytes as f64 / 1e6, "MB")]
}
