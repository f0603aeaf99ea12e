//! A fleet's machines, and what is left on them.

use bus::files::stored_epoch;
use policy::Epoch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use testkit::{
    End, Namespaces, NatsServer, Running, cable, eventually, inside, ip, nats_program, or_skip, root, run_inside,
};

/// Sets what a route shows, and decides every second.
pub const POLICY: &str = r#"
mode = "enforce"
period = "1 s"
[[rule]]
name = "always"
when = "network.live_flows >= 0"
match = { hosts = "all" }
set = { initial_cwnd = 20 }
"#;
/// Hosts of a world.
pub const HOSTS: usize = 4;
/// Where members reach the servers.
const SERVER: &str = "10.97.0.1";

/// Machines: one with the servers and the Oracles, and hosts, each at a cable of its own to the first.
pub struct World {
    pub place: TempDir,
    pub machines: Namespaces<{ HOSTS + 1 }>,
    pub server: NatsServer,
    before: Vec<Host>,
}

/// What an agent may change on a host.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    routes: String,
    sysctls: BTreeMap<PathBuf, String>,
}

impl World {
    /// With one Oracle and one server; or a printed reason why the test is skipped.
    pub fn new() -> Option<World> {
        World::of(1)
    }

    /// The same with several Oracles.
    pub fn of(oracles: usize) -> Option<World> {
        or_skip(root())?;
        let program = nats_program()?;
        // in memory: Oracles, agents and servers wait for each write to a disk, and a busy one may take longer than a test's CUEs last
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let machines = Namespaces::new(["hub", "h1", "h2", "h3", "h4"]);
        let hub = &machines[0];
        ip(&format!("-n {hub} link set lo up"));
        ip(&format!("-n {hub} address add {SERVER}/32 dev lo"));
        for (i, host) in machines.iter().enumerate().skip(1) {
            let (near, far) = (format!("10.97.{i}.1/24"), format!("10.97.{i}.2/24"));
            let name = format!("eth{i}");
            cable([
                End { host: hub, name: &name, address: Some(&near) },
                End { host, name: "eth0", address: Some(&far) },
            ]);
            ip(&format!("-n {host} link set lo up"));
            ip(&format!("-n {host} route add default via 10.97.{i}.1"));
        }
        fs::write(place.path().join("policy.toml"), POLICY).unwrap();
        let made = Command::new(env!("CARGO_BIN_EXE_opentcp"))
            .current_dir(&place)
            .args(["fleet", "init", "fleet", "--oracles", &oracles.to_string(), "--server", SERVER])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let configuration = place.path().join("fleet/nats/nats-server.conf");
        let address = SocketAddr::from((SERVER.parse::<Ipv4Addr>().unwrap(), 4222));
        let server = NatsServer::start(&program, &configuration, address, Some(hub));
        let mut world = World { place, machines, server, before: Vec::new() };
        let is_still = eventually(|| {
            world.before = world.hosts();
            std::thread::sleep(std::time::Duration::from_millis(50));
            world.before == world.hosts()
        });
        assert!(is_still);
        Some(world)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).current_dir(&self.place);
        command
    }

    /// Runs a command on a machine, with this on its standard input.
    pub fn run(&self, machine: usize, arguments: &[&str], input: &str) -> Output {
        self.finish(machine, self.command(arguments), input)
    }

    /// The same of a command that is made already.
    pub fn finish(&self, machine: usize, command: Command, input: &str) -> Output {
        run_inside(&self.machines[machine], command, input)
    }

    /// Runs one that must succeed; its output.
    pub fn done(&self, machine: usize, arguments: &[&str], input: &str) -> String {
        let output = self.run(machine, arguments, input);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs one that must fail with this code; its message.
    pub fn fails(&self, machine: usize, arguments: &[&str], input: &str, code: i32) -> String {
        let output = self.run(machine, arguments, input);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        message
    }

    pub fn start(&self, machine: usize, name: &str, arguments: &[&str]) -> Running {
        self.launch(machine, name, self.command(arguments))
    }

    /// The same of a command that is made already.
    pub fn launch(&self, machine: usize, name: &str, mut command: Command) -> Running {
        command.stdout(File::create(self.path(&format!("{name}.out"))).unwrap());
        Running::start(&self.machines[machine], &mut command, self.path(&format!("{name}.log")))
    }

    /// The only Oracle.
    pub fn oracle(&self) -> Running {
        let identity = ["oracle", "policy.toml", "--identity", "fleet/oracle-0", "--state", "oracle"];
        self.start(0, "oracle", &identity)
    }

    /// Decisions that a process of this name has printed.
    pub fn decisions(&self, name: &str) -> Vec<Value> {
        let out = fs::read_to_string(self.path(&format!("{name}.out"))).unwrap_or_default();
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn token(&self) -> String {
        self.done(0, &["fleet", "token", "--fleet", "fleet", "--role", "agent", "--for", "1h"], "")
    }

    pub fn enroll(&self, machine: usize, token: &str) {
        let name = format!("h{machine}");
        self.done(machine, &["enroll", "-", "--host", &name, "--identity", &name], token);
    }

    /// Enrols hosts, and starts their agents.
    pub fn agents(&self, machines: impl Iterator<Item = usize>) -> Vec<Running> {
        let token = self.token();
        let start = |machine| {
            self.enroll(machine, &token);
            self.agent(machine)
        };
        machines.map(start).collect()
    }

    pub fn agent(&self, machine: usize) -> Running {
        self.launch(machine, &format!("h{machine}"), self.agent_command(machine))
    }

    pub fn agent_command(&self, machine: usize) -> Command {
        let (name, state) = (format!("h{machine}"), format!("h{machine}-state"));
        // routes alone: a program would be attached to the cgroup of all that runs here
        self.command(&["agent", "--identity", &name, "--state", &state, "--pins", &state, "--means", "routes"])
    }

    /// Whether a host has what the policy sets.
    pub fn is_set(&self, machine: usize) -> bool {
        self.has_window(machine, 20)
    }

    pub fn has_window(&self, machine: usize, segments: u32) -> bool {
        ip(&format!("-n {} route show default", &self.machines[machine])).contains(&format!("initcwnd {segments}"))
    }

    pub fn status(&self, machine: usize) -> Value {
        let state = format!("h{machine}-state");
        let text = self.done(machine, &["agent", "status", "--json", "--state", &state, "--pins", &state], "");
        serde_json::from_str(&text).unwrap()
    }

    /// One of the counts of an agent's last report.
    pub fn count(&self, machine: usize, name: &str) -> u64 {
        self.status(machine)["report"]["counts"][name].as_u64().unwrap_or(0)
    }

    /// The newest epoch that a host has on its disk.
    pub fn epoch(&self, machine: usize) -> Epoch {
        let file = self.path(&format!("h{machine}-state/epoch"));
        Epoch::of(stored_epoch(&file).unwrap_or_else(|error| panic!("{error}")).unwrap_or(0))
    }

    pub fn list(&self) -> Vec<(String, bool)> {
        let text = self.done(0, &["fleet", "list", "--identity", "fleet/operator", "--json"], "");
        let members: Vec<Value> = serde_json::from_str(&text).unwrap();
        members
            .iter()
            .map(|one| (one["name"].as_str().unwrap().to_string(), one["revoked"] == Value::Bool(true)))
            .collect()
    }

    fn hosts(&self) -> Vec<Host> {
        let sysctls = || {
            let all = fs::read_dir("/proc/sys/net/ipv4").unwrap().flatten().map(|entry| entry.path());
            // the list of algorithms is the machine's, and other programs load some
            let lists = ["tcp_available_congestion_control", "tcp_allowed_congestion_control"];
            let all = all.filter(|path| !lists.iter().any(|name| path.ends_with(name)));
            all.filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text))).collect()
        };
        let host = |name: &String| Host {
            routes: ip(&format!("-n {name} route show table all")) + &ip(&format!("-n {name} -6 route show table all")),
            sysctls: inside(name, sysctls),
        };
        self.machines.iter().skip(1).map(host).collect()
    }

    /// Processes that work in the test's folder: agents, guardians, Oracles.
    fn processes(&self) -> Vec<String> {
        let place = fs::canonicalize(self.place.path()).unwrap();
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let ours = all.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == place));
        ours.filter_map(|process| fs::read_to_string(process.join("cmdline")).ok()).collect()
    }

    /// All that was started here has ended, and the hosts are as they were before: routes, sysctls, pinned files, processes, and
    /// then the namespaces.
    pub fn untouched(self) {
        let is_so = || self.hosts() == self.before && self.processes().is_empty();
        assert!(eventually(is_so), "{:?}\n{:#?}\nwas\n{:#?}", self.processes(), self.hosts(), self.before);
        for machine in 1..=HOSTS {
            let state = self.path(&format!("h{machine}-state"));
            let left = fs::read_dir(&state).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let left: Vec<_> =
                left.filter(|name| name != "epoch" && name != "lock" && name != "reverted.json").collect();
            assert!(left.is_empty(), "{}: {left:?}", state.display());
        }
        let names: Vec<String> = self.machines.to_vec();
        let numbers: Vec<u64> =
            names.iter().map(|name| Path::new("/run/netns").join(name).metadata().unwrap().ino()).collect();
        drop(self);
        assert!(names.iter().all(|name| !Path::new("/run/netns").join(name).exists()));
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let inside =
            |process: &PathBuf| process.join("ns/net").metadata().is_ok_and(|net| numbers.contains(&net.ino()));
        let left: Vec<PathBuf> = all.filter(inside).collect();
        assert!(left.is_empty(), "in the namespaces that were removed: {left:?}");
    }
}
