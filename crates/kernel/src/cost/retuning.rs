//! What the agent's program costs a connection.

use super::CostError;
use super::cable::Cable;
use crate::retune::{Retuner, Rule, Sessions, Tuning, boot_time};
use crate::sys;
use libbpf_rs::query::ProgInfoIter;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

/// What it took.
#[derive(Clone, Copy, Debug)]
pub struct RetuneTime {
    /// Time in the program for one end of a connection, from its first packet to its end, ns.
    pub ns_per_connection: f64,
    /// Calls of it.
    pub calls_per_connection: f64,
}

/// Time in the program of connections that carry a block each way and are closed, while a rule sets their window, time-out and algorithm.
/// Connections of others in the cgroup meanwhile are counted as well.
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
    cable.exchange(connections / 10).map_err(failed)?;
    let counting = sys::count_run_times().map_err(CostError::Statistics)?;
    let before = so_far();
    cable.exchange(connections).map_err(failed)?;
    let after = so_far();
    drop(counting);
    let ends = 2.0 * connections as f64;
    Ok(RetuneTime {
        ns_per_connection: (after.0 - before.0) as f64 / ends,
        calls_per_connection: (after.1 - before.1) as f64 / ends,
    })
}
