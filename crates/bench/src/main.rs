//! The benchmark: `make bench`.
//!
//! Each case runs in a process of its own, on one core but those of `threads`, so that its peak memory is its own. The unit of work is the
//! packet-hop: one data or ACK packet leaving one link, the host's interface included.
//!
//! ```text
//! bench                       every case, a table, and target/bench.json
//! bench 16x10G                the cases whose name contains the text
//! bench --case NAME           one case in this process; one line of JSON
//! ```
#![forbid(unsafe_code)]

mod agent;
mod algorithms;
mod enforcer;
mod fleet_cost;
mod kernel_cost;
mod memory;
mod policy;
mod shapes;
mod speed;
mod threads;
mod workload;

use serde::{Deserialize, Serialize};
use std::process::{Command, ExitCode, Stdio};
use tikv_jemallocator::Jemalloc;

/// As in `opentcp`.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// One measured figure.
#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    value: f64,
    unit: String,
}

impl Row {
    fn new(name: impl Into<String>, value: f64, unit: &str) -> Row {
        Row { name: name.into(), value, unit: unit.into() }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &args[..]
        && flag == "--case"
    {
        let Some(rows) = run_case(name) else {
            eprintln!("there is no case `{name}`; the cases are: {}", cases().join(", "));
            return ExitCode::from(2);
        };
        println!("{}", serde_json::to_string(&rows).expect("rows are plain data"));
        return ExitCode::SUCCESS;
    }
    if let [flag, folder, period] = &args[..]
        && flag == "--oracle"
    {
        fleet_cost::oracle(folder.as_ref(), period.parse().unwrap_or(60));
        return ExitCode::SUCCESS;
    }
    let wanted = args.first().map_or("", String::as_str);
    let mut rows = Vec::new();
    for name in cases().iter().filter(|name| name.contains(wanted)) {
        let Some(measured) = in_own_process(name) else {
            eprintln!("{name}: failed");
            return ExitCode::FAILURE;
        };
        for row in measured {
            println!("{:<50} {:>14} {}", row.name, readable(row.value), row.unit);
            rows.push(row);
        }
    }
    let json = serde_json::to_string_pretty(&rows).expect("rows are plain data");
    if let Err(error) = std::fs::create_dir_all("target").and_then(|()| std::fs::write("target/bench.json", json)) {
        eprintln!("target/bench.json cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn cases() -> Vec<String> {
    [
        speed::cases(),
        shapes::cases(),
        workload::cases(),
        threads::cases(),
        memory::cases(),
        algorithms::cases(),
        kernel_cost::cases(),
        policy::cases(),
        agent::cases(),
        enforcer::cases(),
        fleet_cost::cases(),
    ]
    .concat()
}

fn run_case(name: &str) -> Option<Vec<Row>> {
    speed::run(name)
        .or_else(|| shapes::run(name))
        .or_else(|| workload::run(name))
        .or_else(|| threads::run(name))
        .or_else(|| memory::run(name))
        .or_else(|| algorithms::run(name))
        .or_else(|| kernel_cost::run(name))
        .or_else(|| policy::run(name))
        .or_else(|| agent::run(name))
        .or_else(|| enforcer::run(name))
        .or_else(|| fleet_cost::run(name))
}

/// Runs a case in a process of its own and reads its rows.
fn in_own_process(name: &str) -> Option<Vec<Row>> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).args(["--case", name]).stderr(Stdio::inherit()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    serde_json::from_slice(&output.stdout).ok()
}

fn readable(value: f64) -> String {
    if value >= 1e6 { format!("{:.1} M", value / 1e6) } else { format!("{value:.1}") }
}

/// Peak resident memory of this process, bytes (VmHWM); `None` where /proc does not have it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
