//! Two enforcers, one at the server and one at the client, which know no ECN, and between them a link whose queue marks.

use crate::world::{World, connect, machine_with};
use crate::{LONG, check, send};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use packet_io::{READ_BYTES_MAX, Tap};
use serde_json::Value;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::{End, Machine, Namespaces, Running, cable, inside, ip, set_sysctl};

/// The link towards the client, bit/s.
const RATE: f64 = 50e6;
/// Packets in its queue from which on it marks, and that it holds.
const MARKS: usize = 20;
const HOLDS: usize = 200;

/// The link. Towards the client it has a queue.
struct Link {
    is_over: AtomicBool,
    /// The queue's length at each arrival.
    queue: Mutex<Vec<usize>>,
    marked: AtomicU64,
}

impl Link {
    fn carry(&self, mut near: Tap, mut far: Tap) {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let (mut queue, mut free_at) = (VecDeque::new(), Instant::now());
        while !self.is_over.load(Ordering::Relaxed) {
            while let Ok(Some(frame)) = near.read(&mut buffer) {
                let mut bytes = frame.bytes.to_vec();
                self.queue.lock().expect("nobody panics with it").push(queue.len());
                if queue.len() >= HOLDS {
                    continue;
                }
                if queue.len() >= MARKS && mark(&mut bytes) {
                    self.marked.fetch_add(1, Ordering::Relaxed);
                }
                free_at = free_at.max(Instant::now()) + Duration::from_secs_f64(bytes.len() as f64 * 8.0 / RATE);
                queue.push_back((free_at, frame.header, bytes));
            }
            while queue.front().is_some_and(|(at, ..)| *at <= Instant::now()) {
                let Some((_, header, bytes)) = queue.pop_front() else { break };
                let _ = far.write(&header, &[&bytes]);
            }
            while let Ok(Some(frame)) = far.read(&mut buffer) {
                let _ = near.write(&frame.header, &[frame.bytes]);
            }
            let mut both = [&near, &far].map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
            poll(&mut both, PollTimeout::from(1_u8)).expect("both are open");
        }
    }
}

/// Marks an IPv4 packet that is ECN-capable.
fn mark(frame: &mut [u8]) -> bool {
    let is_capable = frame.get(12..14) == Some(&[8, 0]) && matches!(frame[15] & 3, 1 | 2);
    if is_capable {
        let word = |frame: &[u8], at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        let old = word(frame, 14);
        frame[15] |= 3;
        // RFC 1624, equation 3
        let sum = (!word(frame, 24) & 0xffff) + (!old & 0xffff) + word(frame, 14);
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    }
    is_capable
}

struct Path {
    place: TempDir,
    /// Server, the two enforcers' machines with the link between them, client.
    hosts: Namespaces<5>,
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
    _machine: Machine,
}

impl Path {
    fn new() -> Option<Path> {
        let (machine, hosts) = machine_with(["server", "one", "link", "two", "client"])?;
        let [server, one, link, two, client] = &*hosts;
        for (host, bridge) in [(one, "br0"), (two, "br0"), (link, "near"), (link, "far")] {
            ip(&format!("-n {host} link add {bridge} type bridge"));
            ip(&format!("-n {host} link set {bridge} up"));
        }
        let taps = inside(link, || ["t-near", "t-far"].map(|name| Tap::open(name).expect("there is none yet")));
        let plain = |host, name| End { host, name, address: None };
        cable([End { address: Some("10.97.0.1/24"), ..plain(server, "eth0") }, plain(one, "s")]);
        cable([plain(one, "c"), plain(link, "p1")]);
        cable([plain(link, "p2"), plain(two, "s")]);
        cable([plain(two, "c"), End { address: Some("10.97.0.2/24"), ..plain(client, "eth0") }]);
        let ports = [(one, "s", "br0"), (one, "c", "br0"), (two, "s", "br0"), (two, "c", "br0")];
        let of_link = [(link, "p1", "near"), (link, "t-near", "near"), (link, "p2", "far"), (link, "t-far", "far")];
        for (host, port, bridge) in ports.into_iter().chain(of_link) {
            ip(&format!("-n {host} link set {port} master {bridge} up"));
        }
        for host in [server, client] {
            inside(host, || {
                set_sysctl("net/ipv4/tcp_ecn", "0");
                // of the algorithms that fill a queue, the one that every kernel has
                set_sysctl("net/ipv4/tcp_congestion_control", "reno");
            });
        }
        let link = Link { is_over: AtomicBool::new(false), queue: Mutex::default(), marked: AtomicU64::new(0) };
        let (link, [near, far]) = (Arc::new(link), taps);
        let own = Arc::clone(&link);
        let thread = Some(thread::spawn(move || own.carry(near, far)));
        Some(Path { place: tempfile::tempdir().unwrap(), hosts, link, thread, _machine: machine })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).stdin(Stdio::null()).current_dir(self.place.path());
        command
    }

    fn pins(machine: usize) -> PathBuf {
        format!("/sys/fs/bpf/opentcp-test-ecn-{}-{machine}", process::id()).into()
    }

    /// Starts the enforcer of machine 1, the servers', or 3, the clients'.
    fn enforce(&self, machine: usize, rule: &str) -> Running {
        let (pins, socket) = (Path::pins(machine).display().to_string(), format!("{machine}.sock"));
        let mut command = self.command(&["enforce", "--between", "s", "c", "--socket", &socket, "--pins", &pins]);
        command.args(["--rule", rule]).stdout(Stdio::null());
        let log = self.place.path().join(format!("log{machine}"));
        World::at_work(Running::start(&self.hosts[machine], &mut command, log))
    }

    fn status(&self, machine: usize) -> Value {
        let socket = format!("{machine}.sock");
        let mut command = self.command(&["enforce", "--status", "--json", "--socket", &socket]);
        let output = inside(&self.hosts[machine], || command.output().unwrap());
        serde_json::from_slice(&output.stdout).expect("it answers")
    }

    /// A download, verified, with one after the other of `bytes`: the median of the queue's length in the second half.
    fn download(&self, bytes: usize) -> usize {
        let address: SocketAddr = "10.97.0.1:0".parse().expect("it is one");
        let (mut client, mut server) = connect([&self.hosts[0], &self.hosts[4]], address);
        self.link.queue.lock().expect("nobody panics with it").clear();
        let seen = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| send(&mut server, bytes, None));
            check(&mut client, bytes, &seen);
        });
        for (end, host) in [(&client, 4), (&server, 0)] {
            let port = end.local_addr().unwrap().port();
            let shown = ip(&format!("netns exec {} ss -Htin sport = :{port}", self.hosts[host]));
            assert!(!shown.split_whitespace().any(|word| word.starts_with("ecn")), "{shown}");
        }
        let mut queue = std::mem::take(&mut *self.link.queue.lock().expect("nobody panics with it"));
        let mut queue = queue.split_off(queue.len() / 2);
        queue.sort_unstable();
        queue[queue.len() / 2]
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.link.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
        for machine in [1, 3] {
            let _ = std::fs::remove_dir_all(Path::pins(machine));
        }
    }
}

#[test]
fn two_enforcers_run_dctcp_for_hosts_without_ecn() {
    let Some(path) = Path::new() else { return };
    let plain = {
        let (_one, _two) = (path.enforce(1, "none"), path.enforce(3, "none"));
        path.download(LONG)
    };
    assert_eq!(path.link.marked.load(Ordering::Relaxed), 0, "no host has ECN");
    let alone = {
        let (_one, _two) = (path.enforce(1, "dctcp"), path.enforce(3, "none"));
        path.download(LONG)
    };
    assert_eq!(path.link.marked.load(Ordering::Relaxed), 0, "nobody echoes");
    let (_one, _two) = (path.enforce(1, "dctcp"), path.enforce(3, "echo"));
    let both = path.download(LONG);
    let marked = path.link.marked.load(Ordering::Relaxed);
    let counter = |machine: usize, name: &str| path.status(machine)["counters"][name].as_u64().expect("it is counted");
    let [taken, echoed, hidden] =
        [(3, "marks_taken"), (3, "marks_echoed"), (1, "ece_hidden")].map(|(m, n)| counter(m, n));
    println!(
        "median queue: {plain} packets, {alone} with one enforcer, {both} with two; {marked} marked, {echoed} echoes"
    );
    assert_eq!([counter(1, "ecn_agreed"), counter(3, "ecn_agreed"), counter(1, "ecn_stopped")], [1, 1, 0]);
    // duplicate ACKs are dropped with their echo
    assert!(marked > 0 && taken == marked && hidden > 0 && hidden <= echoed, "{marked} {taken} {echoed} {hidden}");
    assert!(both <= 2 * MARKS && plain > 4 * MARKS, "{both}, {plain}");
}
