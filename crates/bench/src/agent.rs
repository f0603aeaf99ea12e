//! Cost of an agent: its program in the kernel, for each connection, and the agent itself while idle. Needs root; elsewhere these
//! cases say why they are skipped.

use crate::Row;
use agent::{Config, Means, Places};
use kernel::Kernel;
use kernel::cost::{BULK_BYTES, retune_time};
use policy::Identity;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PROGRAM: &str = "agent: BPF program";
const IDLE: &str = "agent: idle";
/// Enough that the mean does not change by a tenth.
const CONNECTIONS: usize = 5000;
const WATCHED: Duration = Duration::from_secs(10);

pub fn cases() -> Vec<String> {
    vec![PROGRAM.into(), IDLE.into()]
}

/// The rows of a case, none where it is skipped; `None` if it is not one of these.
pub fn run(name: &str) -> Option<Vec<Row>> {
    let measured = Kernel::probe().map_err(|missing| missing.to_string()).and_then(|_| cgroup());
    let measured = match name {
        PROGRAM => measured.and_then(|cgroup| program(&cgroup)),
        IDLE => measured.and_then(idle),
        _ => return None,
    };
    Some(measured.unwrap_or_else(|reason| {
        eprintln!("{name}: skipped: {reason}");
        Vec::new()
    }))
}

fn cgroup() -> Result<PathBuf, String> {
    let places = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
    let found = places.into_iter().find(|folder| folder.join("cgroup.procs").exists());
    found.map(Path::to_path_buf).ok_or_else(|| "no cgroups of version 2 here".to_string())
}

fn program(cgroup: &Path) -> Result<Vec<Row>, String> {
    let time = retune_time(cgroup, CONNECTIONS).map_err(|error| error.to_string())?;
    let row = |what: &str, ns: f64| Row::new(format!("{PROGRAM}, {what}"), ns, "ns");
    let (small, bulk, megabytes) = (time.small, time.bulk, BULK_BYTES / 1_000_000);
    Ok(vec![
        row(&format!("1 kB each way, an end ({:.1} calls)", small.calls / 2.0), small.ns / 2.0),
        row("1 kB each way, both ends", small.ns),
        row(&format!("{megabytes} MB, both ends ({:.1} calls)", bulk.calls), bulk.ns),
        row("a round trip of a connection that talks", time.talking_ns),
        row("a round trip of one that sends", time.sending_ns),
    ])
}

/// CPU time of an idle agent.
fn idle(cgroup: PathBuf) -> Result<Vec<Row>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let key = bus::files::generate(&folder.path().join("key")).map_err(|error| error.to_string())?;
    let pins = Path::new("/sys/fs/bpf").join(format!("opentcp-bench-{}", std::process::id()));
    let config = Config {
        identity: Identity { host: "h1".into(), ..Identity::default() },
        rack: String::new(),
        key,
        bus: bus::Address::Unix(folder.path().join("oracle.sock")),
        metrics: None,
        places: Places { state: folder.path().join("state"), pins: pins.join("agent") },
        cgroup,
        means: Means::Both,
        racks: Vec::new(),
        links: Vec::new(),
        needs_ecn: BTreeSet::new(),
        guardian: None,
    };
    let began = Instant::now();
    // the start does not count
    let (first, last) = (Cell::new(None), Cell::new(None));
    let stop = || {
        let now = Some((Instant::now(), processor_time()));
        if first.get().is_none() && began.elapsed() > WATCHED / 10 {
            first.set(now);
        }
        last.set(now);
        began.elapsed() > WATCHED
    };
    let outcome = agent::run(config, &stop, &mut |_| {});
    let _ = fs::remove_dir(pins);
    outcome.map_err(|error| error.to_string())?;
    let ((from, cpu_before), (to, cpu_after)) = first.get().zip(last.get()).ok_or("it ended early")?;
    let share = cpu_after.saturating_sub(cpu_before).as_secs_f64() / (to - from).as_secs_f64();
    Ok(vec![Row::new(IDLE, 100.0 * share, "% of a core")])
}

/// Of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
