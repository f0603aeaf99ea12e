//! A fleet's machines at a switch: a network namespace each, with an address where the others reach it. Its server, Oracle, agents and
//! collectors are processes there, with identities of their own.

use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use tempfile::TempDir;
use testkit::{
    Cgroup, End, Machine, Namespaces, NatsServer, OpenVSwitch, Running, cable, command_in, inside, ip, run_inside,
};

/// The machine that is the switch, at its port LOCAL.
pub const SWITCH: usize = 0;
/// The machine with the fleet's server and the Oracle.
pub const ORACLE: usize = 1;
/// The machine of the collectors.
pub const COLLECTORS: usize = 2;
/// The hosts, each with an agent and a cgroup.
pub const HOSTS: [usize; 3] = [3, 4, 5];
/// As ports of the switch, hosts and members of the fleet are called.
pub const NAMES: [&str; 6] = ["sw", "oracle", "collectors", "h1", "h2", "h3"];
const SERVER: &str = "10.96.0.2:4222";

/// Where a machine is.
pub fn address(machine: usize) -> String {
    format!("10.96.0.{}", machine + 1)
}

/// The machines and what runs there; gone on drop, also after a failing test.
pub struct Machines {
    server: Option<NatsServer>,
    pub switch: OpenVSwitch,
    pub place: TempDir,
    names: Namespaces<6>,
    /// Of all hosts.
    cgroup: Cgroup,
    pins: PathBuf,
    _machine: Machine,
}

impl Machines {
    /// Machines that reach each other, without a fleet. The switch sends to each host no faster than `rate`, as `tc` writes it, with a
    /// queue of 20 ms.
    pub fn new(cgroup: Cgroup, rate: &str) -> Machines {
        let machine = Machine::share();
        let place = tempfile::tempdir().unwrap();
        let names = Namespaces::new(NAMES);
        let switch = &names[SWITCH];
        for name in &*names {
            ip(&format!("-n {name} link set lo up"));
        }
        for machine in 1..names.len() {
            let (host, address) = (&names[machine], format!("{}/24", address(machine)));
            let there = End { host, name: "eth0", address: Some(&address) };
            cable([there, End { host: switch, name: NAMES[machine], address: None }]);
            OpenVSwitch::disable_offloads(host, "eth0");
        }
        let id = process::id();
        for host in HOSTS {
            cgroup.below(NAMES[host]);
        }
        let started = crate::switch::between(switch, place.path(), &NAMES[1..]);
        for host in HOSTS {
            // afterwards: Open vSwitch removes the queue that a new port has
            let limit = format!("tbf rate {rate} burst 16kb latency 20ms");
            ip(&format!("netns exec {switch} tc qdisc add dev {} root {limit}", NAMES[host]));
        }
        ip(&format!("-n {switch} address add {}/24 dev sw", address(SWITCH)));
        ip(&format!("-n {switch} link set sw up"));
        let pins = Path::new("/sys/fs/bpf").join(format!("opentcp-fleet-{id}"));
        Machines { server: None, switch: started, place, names, cgroup, pins, _machine: machine }
    }

    /// Founds the fleet and starts its server.
    pub fn found(&mut self, nats: &Path) {
        self.run(ORACLE, &["fleet", "init", "fleet", "--server", SERVER], "");
        let configuration = self.path("fleet/nats/nats-server.conf");
        let server = NatsServer::start(nats, &configuration, SERVER.parse().unwrap(), Some(&self.names[ORACLE]));
        self.server = Some(server);
    }

    /// Makes members of this role; their identities are in folders of their names.
    pub fn enroll(&self, role: &str, members: &[(usize, &str)]) {
        let token = self.run(ORACLE, &["fleet", "token", "--fleet", "fleet", "--role", role, "--for", "1h"], "");
        for (machine, name) in members {
            self.run(*machine, &["enroll", "-", "--host", name, "--identity", name], &token);
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn namespace(&self, machine: usize) -> &str {
        &self.names[machine]
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).current_dir(&self.place).stdin(Stdio::null());
        command
    }

    /// Runs `opentcp` on a machine; `None` if it fails.
    pub fn tried(&self, machine: usize, arguments: &[&str]) -> Option<String> {
        let mut command = self.command(arguments);
        let output = inside(&self.names[machine], || command.output().unwrap());
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Runs `opentcp` on a machine, with this on its standard input; it must succeed.
    pub fn run(&self, machine: usize, arguments: &[&str], input: &str) -> String {
        let output = run_inside(&self.names[machine], self.command(arguments), input);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts `opentcp` on a machine; its output goes into files of this name.
    pub fn opentcp(&self, machine: usize, name: &str, arguments: &[&str]) -> Running {
        self.start(machine, name, self.command(arguments))
    }

    /// The same of another program.
    pub fn start(&self, machine: usize, name: &str, mut command: Command) -> Running {
        command.current_dir(&self.place).stdin(Stdio::null());
        command.stdout(File::create(self.path(&format!("{name}.out"))).unwrap());
        Running::start(&self.names[machine], &mut command, self.path(&format!("{name}.log")))
    }

    /// Starts a program as a process of a host: in its cgroup too.
    pub fn program(&self, host: usize, name: &str, line: &str) -> Running {
        let mut command = command_in(&self.cgroup.below(NAMES[host]), "bash");
        command.args(["-c", line]);
        self.start(host, name, command)
    }

    pub fn agent(&self, host: usize) -> Running {
        let name = NAMES[host];
        let text = |path: &Path| path.join(name).display().to_string();
        let (pins, cgroup, state) = (text(&self.pins), text(self.cgroup.path()), format!("{name}-state"));
        let places = ["--state", &state, "--pins", &pins, "--cgroup", &cgroup];
        self.opentcp(
            host,
            &format!("agent-{name}"),
            &[&["agent", "--identity", name, "--rack", "r1"][..], &places].concat(),
        )
    }

    /// `opentcp agent status`.
    pub fn agent_status(&self, host: usize) -> String {
        self.run(host, &["agent", "status", "--state", &format!("{}-state", NAMES[host])], "")
    }

    /// The connections of a host to a port of another, by `ss`: a line each.
    pub fn connections(&self, host: usize, (to, port): (usize, u16)) -> Vec<String> {
        let mut command = Command::new("ss");
        command.args(["-HtinO", "state", "established", "dst", &format!("{}:{port}", address(to))]);
        let output = inside(&self.names[host], || command.output().unwrap());
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
    }

    /// Bytes that a machine's link has carried (sent, received), by the kernel's counters at the machine's own end.
    pub fn carried(&self, machine: usize) -> (u64, u64) {
        let text = ip(&format!("-n {} -j -s link show eth0", self.names[machine]));
        let json: Value = serde_json::from_str(&text).unwrap();
        let count = |what: &str| json[0]["stats64"][what]["bytes"].as_u64().unwrap();
        (count("tx"), count("rx"))
    }

    /// The lines of JSON that a process has printed.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(&format!("{name}.out"))).unwrap();
        // the last line may be half-written
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.pins);
    }
}
