//! The enforcer's CPU use, by open connections and requests per second.
//!
//! With `OPENTCP_LOAD` set it measures for about a minute: 19,800 connections, up to 12,000 requests a second with answers of 10,000 bytes
//! (1 Gbit/s). Otherwise it only checks with few connections that this works.

use crate::world::World;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use testkit::Running;

/// Clock ticks per second of the kernel's `/proc/PID/stat`.
const TICKS_PER_SECOND: f64 = 100.0;
/// Connections of one process, and two processes; each has one end per connection and may have 20,000 files.
const CONNECTIONS: usize = 9_900;
const RATES: [usize; 5] = [0, 1000, 2500, 5000, 12_000];

/// A Python program of this folder, on a host, and its output.
pub struct Program {
    child: Child,
    pub to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(world: &World, host: usize, name: &str, arguments: &[String]) -> Program {
        let script = format!("{}/tests/enforce/load/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new("python3");
        command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = world.start(host, &mut command);
        let (to, from) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
        Program { child, to, from: BufReader::new(from) }
    }

    pub fn said(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it speaks text");
        line.trim().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time that it has used, in seconds.
fn cpu_seconds(enforcer: &Running) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", enforcer.id())).expect("it runs");
    let after_name = stat.rsplit(')').next().expect("it has a name");
    let fields: Vec<f64> =
        after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    fields.iter().sum::<f64>() / TICKS_PER_SECOND
}

/// Resident memory, bytes.
fn resident(enforcer: &Running) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", enforcer.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.split_whitespace().next().and_then(|word| word.parse::<usize>().ok()).expect("a number") * 1024
}

#[test]
fn load() {
    let Some(world) = World::new() else { return };
    let full = std::env::var_os("OPENTCP_LOAD").is_some();
    let (pairs, connections, rates, seconds) =
        if full { (2, CONNECTIONS, &RATES[..], 10.0) } else { (1, 200, &[0, 500][..], 1.0) };
    let enforcer = world.enforce(&["--rule", "bbr"]);
    // it allocates its tables at the first connection
    drop(world.connection());
    let before = resident(&enforcer);
    let mut programs: Vec<(Program, Program)> = (0..pairs)
        .map(|i| {
            let (port, connections) = ((9000 + i).to_string(), connections.to_string());
            let mut server = Program::start(&world, 0, "serve.py", &[port.clone(), connections.clone()]);
            assert_eq!(server.said(), "ready");
            let client = Program::start(&world, 2, "ask.py", &["10.97.0.1".to_string(), port, connections]);
            (server, client)
        })
        .collect();
    for (_, client) in &mut programs {
        assert_eq!(client.said(), "ready");
    }
    let all = pairs * connections;
    let flows = world.status()["flows"].as_u64().expect("it is a number");
    assert!(flows >= all as u64, "{}", world.status());
    let each = resident(&enforcer).saturating_sub(before) as f64 / all as f64;
    println!("{all} connections: {each:.0} bytes of memory each");
    for rate in rates {
        let cpu = cpu_seconds(&enforcer);
        for (_, client) in &mut programs {
            writeln!(client.to, "{} {seconds}", rate / pairs).expect("it listens");
        }
        let said: Vec<Vec<f64>> = programs
            .iter_mut()
            .map(|(_, client)| client.said().split(' ').filter_map(|word| word.parse().ok()).collect())
            .collect();
        let cpu = cpu_seconds(&enforcer) - cpu;
        let [answered, took, p99] =
            [said.iter().map(|one| one[0]).sum(), said.iter().map(|one| one[1]).fold(0.0, f64::max), said[0][2]];
        let (rate_seen, share) = (answered / took, cpu / took * 100.0);
        println!("{rate:>6} requests/s asked, {rate_seen:>6.0} answered: {share:>5.1} % of a CPU; p99 {p99} ms");
    }
    let status = world.status();
    assert!(status["counters"]["sent"].as_u64() > Some(500), "{status}");
}
