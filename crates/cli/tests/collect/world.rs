//! Two hosts at a switch, each a network namespace; the switch is an Open vSwitch of the test's own, in user space.

use crate::switch::{self, are_installed};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::{End, Machine, Namespaces, OpenVSwitch, Running, cable, eventually, inside, ip, or_skip, root};

/// The hosts are in different racks of one network.
pub const FIRST: &str = "10.95.1.1";
pub const SECOND: &str = "10.95.2.1";
pub const RACKS: &str = "[racks]\n\"10.95.1.0/24\" = \"r1\"\n\"10.95.2.0/24\" = \"r2\"\n";

/// Hosts, switch, and what was started; gone on drop, also after a failing test.
pub struct World {
    switch: OpenVSwitch,
    daemons: Vec<Child>,
    place: TempDir,
    /// The first host, the switch, the second host.
    hosts: Namespaces<3>,
    _machine: Machine,
}

/// What an interface has received, without Ethernet's headers.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub ip_bytes: u64,
    pub packets: u64,
}

impl World {
    /// Or a printed reason why the test is skipped.
    pub fn new(programs: &[&str]) -> Option<World> {
        or_skip(root())?;
        if !are_installed(programs) {
            return None;
        }
        let machine = Machine::share();
        let hosts = Namespaces::new(["first", "switch", "second"]);
        let place = tempfile::tempdir().unwrap();
        let [first, switch, second] = &*hosts;
        for host in [first, switch, second] {
            ip(&format!("-n {host} link set lo up"));
        }
        for (host, port, address) in [(first, "p1", FIRST), (second, "p2", SECOND)] {
            let address = format!("{address}/16");
            let there = End { host, name: "eth0", address: Some(&address) };
            cable([there, End { host: switch, name: port, address: None }]);
            OpenVSwitch::disable_offloads(host, "eth0");
        }
        let switch = switch::between(switch, place.path(), &["p1", "p2"]);
        Some(World { switch, daemons: Vec::new(), place, hosts, _machine: machine })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The namespace of the first host (0), the switch (1), or the second host (2).
    pub fn host(&self, number: usize) -> &str {
        &self.hosts[number]
    }

    /// Starts another program on a host.
    pub fn start(&mut self, host: usize, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.place.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = inside(&self.hosts[host], || command.spawn().unwrap());
        self.daemons.push(child);
    }

    /// Changes the switch's configuration, and waits until it is in force.
    pub fn set(&self, what: &str) {
        self.switch.vsctl(what);
    }

    /// The switch's flow entries, without their counts.
    pub fn entries(&self) -> String {
        self.switch.ofctl("sw", "--no-stats dump-flows SWITCH")
    }

    /// Starts `opentcp` in a namespace; its output goes into a file `NAME.out`.
    pub fn opentcp(&self, host: usize, name: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        let out = fs::File::create(self.path(&format!("{name}.out"))).unwrap();
        command.args(arguments).current_dir(self.place.path()).stdin(Stdio::null()).stdout(out);
        Running::start(&self.hosts[host], &mut command, self.path(&format!("{name}.log")))
    }

    /// The lines of JSON that a process has printed.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(&format!("{name}.out"))).unwrap();
        // the last line may be half-written
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What a host has received. Not all that the other has sent: a switch in user space drops packets on a busy machine.
    pub fn received(&self, host: usize) -> Received {
        inside(&self.hosts[host], || {
            let output = Command::new("ip").args(["-j", "-s", "link", "show", "eth0"]).output().unwrap();
            let json: Value = serde_json::from_slice(&output.stdout).unwrap();
            let count = |what: &str| json[0]["stats64"]["rx"][what].as_u64().unwrap();
            Received { ip_bytes: count("bytes") - 14 * count("packets"), packets: count("packets") }
        })
    }

    /// Sends packets of UDP from the second host to the first, which answers none: its socket takes them.
    pub fn send_back(&self, packets: u32) {
        let there = inside(self.host(0), || UdpSocket::bind((FIRST, 0)).unwrap());
        let here = inside(self.host(2), || UdpSocket::bind((SECOND, 0)).unwrap());
        here.connect(there.local_addr().unwrap()).unwrap();
        for i in 0..packets {
            here.send(&[7; 8]).unwrap();
            if i % 64 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Carries bytes over a TCP connection from the first host to the second: so many each `pause`, as long as it takes to carry all.
    pub fn carry(&self, bytes: u64, (at_once, pause): (usize, Duration)) {
        let listener = inside(self.host(2), || TcpListener::bind((SECOND, 0)).unwrap());
        let port = listener.local_addr().unwrap().port();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                std::io::copy(&mut (&mut stream).take(bytes), &mut std::io::sink()).unwrap();
            });
            let mut stream = inside(self.host(0), || {
                let mut stream = None;
                assert!(
                    eventually(|| {
                        stream = TcpStream::connect((SECOND, port)).ok();
                        stream.is_some()
                    }),
                    "the switch forwards"
                );
                stream.expect("it was opened")
            });
            let (chunk, begun) = (vec![7; at_once], Instant::now());
            let mut written = 0;
            while written < bytes {
                let most = chunk.len().min((bytes - written) as usize);
                stream.write_all(&chunk[..most]).unwrap();
                written += most as u64;
                let due = pause * (written / at_once as u64) as u32;
                thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
