//! The cost of the agent's program per connection.

use super::CostError;
use super::cable::Cable;
use crate::retune::{Retuner, Rule, Sessions, Tuning, boot_time};
use crate::sys;
use libbpf_rs::query::ProgInfoIter;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

/// Bytes of a long connection.
pub const BULK_BYTES: usize = 10_000_000;
/// Of a very long one.
const ENDLESS_BYTES: usize = 10 * BULK_BYTES;
/// Blocks each way on a request-response connection.
const ROUNDS: usize = 20_000;
/// Short connections per long one, and long ones per very long one.
const FEWER: usize = 10;

/// Mean time in the program.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// From a connection's first packet to its end, ns, at both of its ends together.
    pub ns: f64,
    /// Calls of the program.
    pub calls: f64,
}

/// The measured costs.
#[derive(Clone, Copy, Debug)]
pub struct RetuneTime {
    /// A connection that carries a block of 1000 bytes each way.
    pub small: Taken,
    /// One that carries [`BULK_BYTES`] one way.
    pub bulk: Taken,
    /// Per round trip of a request-response connection, ns.
    pub talking_ns: f64,
    /// Per round trip of one that sends as fast as it can, ns: its data evicts the program's from the CPU's caches.
    pub sending_ns: f64,
}

/// Time in the program of connections that open, send and close, while a rule sets their window, RTO and algorithm.
/// There are `connections` short ones. Other connections in the cgroup meanwhile are counted as well.
///
/// # Errors
/// No namespaces, a kernel that does not take the program or does not count, or no connection.
pub fn retune_time(cgroup: &Path, connections: usize) -> Result<RetuneTime, CostError> {
    let refused = |error: crate::retune::RetuneError| CostError::Cable(error.to_string());
    let cable = Cable::new().map_err(CostError::Cable)?;
    let mut retuner = Retuner::attach(cgroup).map_err(refused)?;
    let tuning = Tuning {
        initial_cwnd: Some(20),
        rto_min_us: Some(20_000),
        algorithm: Some("reno".to_string()),
        ..Tuning::default()
    };
    let sessions = Sessions { netns: None, remote: (IpAddr::V4(Ipv4Addr::new(10, 79, 0, 0)), 24), port: None };
    let deadline = boot_time() + Duration::from_secs(600);
    retuner.set(&[Rule { number: 1, sessions, tuning, deadline }]).map_err(refused)?;
    let program = retuner.program().map_err(refused)?;
    let so_far = || {
        let info = ProgInfoIter::default().find(|info| info.id == program);
        info.map_or((0, 0), |info| (info.run_time_ns, info.run_cnt))
    };
    let failed = |source: io::Error| CostError::Transfer { algorithm: "reno".to_string(), source };
    let taken = |n: usize, work: &mut dyn FnMut(usize) -> io::Result<()>| -> Result<Taken, CostError> {
        let before = so_far();
        work(n).map_err(failed)?;
        let after = so_far();
        let mean = |from: u64, to: u64| (to - from) as f64 / n as f64;
        Ok(Taken { ns: mean(before.0, after.0), calls: mean(before.1, after.1) })
    };
    // subtract the cost of a shorter connection
    let more = |short: Taken, long: Taken| (long.ns - short.ns) / (long.calls - short.calls);
    cable.exchange(connections / FEWER, 1).map_err(failed)?;
    let counting = sys::count_run_times().map_err(CostError::Statistics)?;
    let small = taken(connections, &mut |n| cable.exchange(n, 1))?;
    let talking = taken(1, &mut |n| cable.exchange(n, ROUNDS))?;
    let bulk = taken(connections / FEWER, &mut |n| cable.send(n, BULK_BYTES))?;
    let endless = taken(connections / FEWER / FEWER, &mut |n| cable.send(n, ENDLESS_BYTES))?;
    drop(counting);
    Ok(RetuneTime { small, bulk, talking_ns: more(small, talking), sending_ns: more(bulk, endless) })
}
