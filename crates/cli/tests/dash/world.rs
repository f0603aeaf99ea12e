//! Three hosts that are network namespaces, each with an agent; an Oracle, a collector's measurements, and dashboards.

use bus::{Address, Measurement};
use policy::Link;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;
use testkit::{End, Machine, Namespaces, Running, cable, eventually, free_port, inside, ip, or_skip, root};
use units::Rate;

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A rule that is on for some hosts, and one that is withheld: no host has its algorithm.
const POLICY: &str = r#"
name = "larger-windows"
mode = "enforce"
period = "1 s"
allow_mixed_measures = true
[objective]
minimize = "network.drop_rate"
[[constraint]]
name = "links below 90 %"
holds = "network.max_link_utilization < 0.9"
[[rule]]
name = "window"
when = "network.live_flows >= 0"
set = { initial_cwnd = 20 }
guard = { revert_if = "host.drop_rate > 0.01", hold = "60 s" }
[[rule]]
name = "dctcp"
when = "network.live_flows >= 0"
set = { cc = "dctcp", ecn = true }
[rollout]
fraction = 0.5
"#;

/// The test's network and its processes, which end with it.
pub struct World {
    place: TempDir,
    oracle: Option<Child>,
    dashes: Vec<Child>,
    agents: Vec<Running>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Removed after what runs in it.
    hosts: Namespaces<3>,
    _machine: Machine,
}

impl World {
    /// Or a printed reason why the test is skipped.
    pub fn new() -> Option<World> {
        or_skip(root())?;
        let machine = Machine::share();
        let hosts = Namespaces::new(["a", "b", "c"]);
        let [a, b, c] = &*hosts;
        let end = |host, name, address| End { host, name, address: Some(address) };
        cable([end(a, "eth0", "10.99.0.1/24"), end(b, "eth0", "10.99.0.2/24")]);
        cable([end(a, "eth1", "10.99.1.1/24"), end(c, "eth0", "10.99.1.2/24")]);
        hosts.iter().for_each(|host| drop(ip(&format!("-n {host} link set lo up"))));
        let stop = Arc::new(AtomicBool::new(false));
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("p.toml"), POLICY).unwrap();
        let (oracle, dashes, agents, threads) = (None, Vec::new(), Vec::new(), Vec::new());
        let mut world = World { place, oracle, dashes, agents, stop, threads, hosts, _machine: machine };
        world.opentcp(&["keygen", "--out", "key"]);
        world.start_oracle();
        for (i, rack) in ["r1", "r1", "r2"].into_iter().enumerate() {
            world.start_agent(i, rack);
        }
        world.measure();
        world.send();
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(args).current_dir(self.place.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program, which must succeed; what it prints.
    pub fn opentcp(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn log(&self) -> File {
        File::options().append(true).create(true).open(self.path("log")).unwrap()
    }

    /// What the Oracle and the dashboards said.
    pub fn said(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn start_oracle(&mut self) {
        let mut command = self.command(&["oracle", "p.toml", "--key", "key", "--socket", "sock", "--state", "oracle"]);
        self.oracle = Some(command.stdout(Stdio::null()).stderr(self.log()).spawn().unwrap());
    }

    pub fn kill_oracle(&mut self) {
        if let Some(mut oracle) = self.oracle.take() {
            let _ = oracle.kill();
            let _ = oracle.wait();
        }
    }

    fn start_agent(&mut self, i: usize, rack: &str) {
        let (name, state, pins) = (format!("h{}", i + 1), format!("agent-{i}"), format!("pins-{i}"));
        let args = [
            "agent",
            "--host",
            &name,
            "--rack",
            rack,
            "--key",
            "key.pub",
            "--socket",
            "sock",
            "--state",
            &state,
            "--pins",
            &pins,
            "--means",
            "routes",
            "--link",
            "eth0=100 Mbit/s",
        ];
        let mut command = self.command(&args);
        command.stdout(Stdio::null());
        self.agents.push(Running::start(&self.hosts[i], &mut command, self.path(&format!("log-{i}"))));
    }

    /// As a collector would: links between the racks' switches and two spines, whose load changes.
    fn measure(&mut self) {
        let (address, stop) = (Address::Unix(self.path("sock")), Arc::clone(&self.stop));
        let work = move || {
            let (mut bus, mut round) = (None, 0u64);
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                let mut links = Vec::new();
                for (i, (leaf, spine)) in
                    [("r1", "s1"), ("r1", "s2"), ("r2", "s1"), ("r2", "s2")].into_iter().enumerate()
                {
                    let used = 0.15 + 0.2 * i as f64 + 0.02 * (round % 8) as f64;
                    for (from, to, share) in [(leaf, spine, 1.0), (spine, leaf, 0.6)] {
                        links.push(Link {
                            name: format!("{from} to {to}"),
                            from: from.to_string(),
                            to: to.to_string(),
                            rate: Some(Rate::from_gbps(10)),
                            utilization: Some(used * share),
                            drop_rate: Some(0.0),
                            ..Link::default()
                        });
                    }
                }
                let measurement = Measurement { source: "collector".into(), round, links, ..Measurement::default() };
                let sent = measurement.to_messages().iter().all(|message| {
                    // it comes again when the Oracle does
                    if bus.is_none() {
                        bus = address.connect().ok();
                    }
                    bus.as_mut().is_some_and(|bus: &mut Box<dyn bus::Bus>| bus.send(message).is_ok())
                });
                if !sent {
                    bus = None;
                }
                thread::sleep(Duration::from_millis(500));
            }
        };
        self.threads.push(thread::spawn(work));
    }

    /// A stream of about 40 Mbit/s from the first host to the second.
    fn send(&mut self) {
        let ([a, b, _], stop) = (self.hosts.clone(), Arc::clone(&self.stop));
        let work = move || {
            let listener = inside(&b, || TcpListener::bind("10.99.0.2:7").unwrap());
            let mut stream = inside(&a, || TcpStream::connect("10.99.0.2:7").unwrap());
            let (mut other, _) = listener.accept().unwrap();
            let mut bytes = vec![0; 50_000];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&bytes).unwrap();
                other.read_exact(&mut bytes).unwrap();
                thread::sleep(Duration::from_millis(10));
            }
        };
        self.threads.push(thread::spawn(work));
    }

    /// Starts a dashboard, with a token or without; its address.
    pub fn dash(&mut self, acts: bool) -> String {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = self.command(&["dash", "--socket", "sock", "--listen", &address]);
        if acts {
            let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(self.path("token"));
            file.unwrap().write_all(TOKEN.as_bytes()).unwrap();
            command.args(["--token", "token"]);
        }
        self.dashes.push(command.stdout(Stdio::null()).stderr(self.log()).spawn().unwrap());
        assert!(eventually(|| TcpStream::connect(&address).is_ok()), "{}", self.said());
        format!("http://{address}/")
    }

    /// Waits until the Oracle's status is right.
    pub fn until(&self, right: impl Fn(&Value) -> bool) -> bool {
        eventually(|| {
            let output = self.command(&["status", "--socket", "sock", "--json"]).output().unwrap();
            serde_json::from_slice(&output.stdout).is_ok_and(|status| right(&status))
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        // an agent restores what it has set
        self.agents.drain(..).for_each(Running::kill);
        self.kill_oracle();
        for mut dash in self.dashes.drain(..) {
            let _ = dash.kill();
            let _ = dash.wait();
        }
    }
}
