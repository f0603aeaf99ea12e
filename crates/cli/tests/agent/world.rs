//! Two hosts that are network namespaces joined by a cable, in a cgroup of their own; agents and Oracles run there.

use bus::{Hub as _, UnixOracle};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use policy::{Cue, CueGuard, CueScope, OracleKey, Settings};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::time::Duration;
use std::{env, thread};
use tempfile::TempDir;
use testkit::{
    Cgroup, End, Entered, Machine, Namespaces, PATIENCE, Running, cable, command, eventually, inside, ip, or_skip, root,
};
use units::Time;

const BPFFS: &str = "/sys/fs/bpf";
/// The hosts' addresses.
pub const HERE: &str = "10.99.0.1";
pub const THERE: &str = "10.99.0.2";

/// The test's network; removed on drop, also by a failing test.
pub struct World {
    pub place: TempDir,
    /// Before the cgroup, which kills what is in it when it is dropped.
    _entered: Entered,
    cgroup: Cgroup,
    hosts: Namespaces<2>,
    pins: PathBuf,
    before: Snapshot,
    /// A connection that stays open, and how it and a new one behaved at first.
    kept: (TcpStream, TcpStream),
    kept_before: Manner,
    fresh_before: Manner,
    _machine: Machine,
}

/// The state that must be restored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Of both hosts.
    routes: [String; 2],
    /// Of both hosts.
    sysctls: [BTreeMap<PathBuf, String>; 2],
    /// By this test's agents.
    pinned: BTreeSet<PathBuf>,
    /// BPF programs that are attached to the test's cgroups.
    attached: usize,
    /// Agents and guardians.
    processes: Vec<String>,
}

/// A connection's parameters that an agent can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Manner {
    algorithm: String,
    cwnd: u32,
    max_pacing_rate: u64,
    ecn: bool,
    /// Its minimum RTO is Linux's 200 ms; the RTO itself adds a round trip.
    is_patient: bool,
}

impl Manner {
    fn of(connection: kernel::Connection) -> Manner {
        let kernel::Connection { algorithm, cwnd, max_pacing_rate, ecn, rto_us, .. } = connection;
        Manner { algorithm, cwnd, max_pacing_rate, ecn, is_patient: rto_us >= 200_000 }
    }
}

/// How to start a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// On which host.
    pub host: usize,
    /// Under this command, if any.
    pub under: &'a [&'a str],
    /// Additional environment.
    pub environment: &'a [(&'a str, PathBuf)],
}

/// For [`Start`]: root without the right to load BPF programs, as on a kernel without BPF.
pub const REFUSING_BPF: &[&str] = &["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"];

impl World {
    /// Or a printed reason why the test is skipped.
    pub fn new() -> Option<World> {
        or_skip(kernel::Kernel::probe())?;
        drop(kernel::Pins::open().unwrap_or_else(|error| panic!("{error}")));
        World::without_bpf()
    }

    /// The same, on kernels without BPF too.
    pub fn without_bpf() -> Option<World> {
        or_skip(root())?;
        let machine = Machine::share();
        let cgroup = or_skip(Cgroup::new("agent-test"))?;
        let entered = Entered::into(cgroup.path());
        let hosts = Namespaces::new(["a", "b"]);
        let [a, b] = &*hosts;
        let [here, there] = [HERE, THERE].map(|address| format!("{address}/24"));
        cable([(a, &here), (b, &there)].map(|(host, address)| End { host, name: "eth0", address: Some(address) }));
        for (host, last) in [(a, 1), (b, 2)] {
            ip(&format!("-n {host} link set lo mtu 1500 up"));
            ip(&format!("-n {host} address add fd99::{last}/64 dev eth0 nodad"));
        }
        // the kernel's own on-link route is left as it is, an operator's is set
        ip(&format!("-n {a} route replace 10.99.0.0/24 dev eth0 scope link src {HERE} proto static"));
        ip(&format!("-n {a} route add fd98::/16 via fd99::2"));
        ip(&format!("-n {a} route add default via {THERE}"));
        ip(&format!("-n {a} route add 10.98.0.0/16 via {THERE} mtu lock 1400 initrwnd 20"));
        let pins = Path::new(BPFFS).join(format!("opentcp-test-{}", process::id())).join("agent");
        let place = tempfile::tempdir().unwrap();
        let kept = connection_between(&hosts, THERE);
        let before = Snapshot::default();
        let (kept_before, fresh_before) = (Manner::default(), Manner::default());
        let mut world = World {
            place,
            _entered: entered,
            cgroup,
            hosts,
            pins,
            before,
            kept,
            kept_before,
            fresh_before,
            _machine: machine,
        };
        world.kept_before = Manner::of(world.seen(&world.kept.0));
        world.fresh_before = world.fresh();
        let is_still = eventually(|| {
            world.before = world.snapshot();
            thread::sleep(Duration::from_millis(200));
            world.before == world.snapshot()
        });
        assert!(is_still, "{:?}", world.before.routes);
        Some(world)
    }

    /// Runs `work` on a thread of its own, on the first host.
    pub fn here<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.hosts[0], work)
    }

    /// `ip`, on the first host.
    pub fn ip(&self, arguments: &str) -> String {
        ip(&format!("-n {} {arguments}", self.hosts[0]))
    }

    /// `tc`, on the second host: the first host's TCP would know of packets dropped on the way out.
    pub fn tc_there(&self, arguments: &str) -> String {
        command("tc", &format!("-n {} {arguments}", self.hosts[1]))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn pins(&self) -> PathBuf {
        self.pins.clone()
    }

    /// Routes and sysctls of the hosts, what this test's agents have pinned and attached, and their processes.
    pub fn snapshot(&self) -> Snapshot {
        let sysctls = || {
            let all = fs::read_dir("/proc/sys/net/ipv4").unwrap().flatten().map(|entry| entry.path());
            // the list of algorithms is global, and agents do not change it
            let of_machine = ["tcp_available_congestion_control", "tcp_allowed_congestion_control"];
            let all = all.filter(|path| !of_machine.iter().any(|name| path.ends_with(name)));
            all.filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text))).collect()
        };
        let mut pinned = BTreeSet::new();
        files_below(self.pins().parent().unwrap(), &mut pinned);
        Snapshot {
            routes: self
                .hosts
                .each_ref()
                .map(|host| ip(&format!("-n {host} route show table all")) + &ip(&format!("-n {host} -6 route show"))),
            sysctls: self.hosts.each_ref().map(|host| inside(host, sysctls)),
            pinned,
            attached: attached_below(self.cgroup.path()),
            processes: processes_about(self.cgroup.path()),
        }
    }

    /// Programs attached to the test's cgroups, and processes that serve them: tests check that snapshots show them, since one that
    /// misses them would always look restored.
    pub fn at_work(&self) -> (usize, usize) {
        let now = self.snapshot();
        (now.attached, now.processes.len())
    }

    /// The algorithm of connections without an agent.
    pub fn before_algorithm(&self) -> &str {
        &self.fresh_before.algorithm
    }

    /// Their initial window, segments.
    pub fn before_window(&self) -> u32 {
        self.fresh_before.cwnd
    }

    fn fresh(&self) -> Manner {
        let fresh = self.connection(THERE);
        Manner::of(self.seen(&fresh.0))
    }

    /// Everything is restored: a new connection and the one that stayed open behave as before.
    pub fn assert_as_before(&self) {
        let is_so = || self.snapshot() == self.before;
        assert!(eventually(is_so), "{:#?}\nwas\n{:#?}", self.snapshot(), self.before);
        assert_eq!(self.fresh(), self.fresh_before);
        assert_eq!(Manner::of(self.seen(&self.kept.0)), self.kept_before);
    }

    /// Does something as a process of a host: in its network namespace and in its cgroup, which [`World::places_of`] names.
    pub fn on<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        let _entered = Entered::into(&self.cgroup_of(host));
        inside(&self.hosts[host], work)
    }

    /// The cgroup of a host's processes.
    pub fn cgroup_of(&self, host: usize) -> PathBuf {
        self.cgroup.below(["a", "b"][host])
    }

    /// Starts the program on the first host.
    pub fn start(&self, arguments: &[&str]) -> Running {
        self.start_as(Start::default(), arguments)
    }

    pub fn start_as(&self, start: Start<'_>, arguments: &[&str]) -> Running {
        let log = self.path(&format!("log-{}{}", arguments[0], ["", "-there"][start.host]));
        let mut command = self.command(start, arguments);
        command.stdout(File::create(self.path("out")).unwrap());
        Running::start(&self.hosts[start.host], &mut command, log)
    }

    fn command(&self, start: Start<'_>, arguments: &[&str]) -> Command {
        let words = [start.under, &[env!("CARGO_BIN_EXE_opentcp")], arguments].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).current_dir(self.place.path());
        command.envs(start.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to completion: exit code, stdout, stderr.
    pub fn opentcp(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        self.opentcp_as(Start::default(), arguments)
    }

    pub fn opentcp_as(&self, start: Start<'_>, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.command(start, arguments);
        let output = inside(&self.hosts[start.host], || command.output().unwrap());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Starts an agent with more flags, and waits until it has reached `oracle`.
    pub fn agent(&self, oracle: &mut TestOracle, more: &[&str]) -> Running {
        self.agent_as(Start::default(), oracle, more)
    }

    pub fn agent_as(&self, start: Start<'_>, oracle: &mut TestOracle, more: &[&str]) -> Running {
        let places = self.places();
        let mut arguments = vec!["agent", "--host", "h1", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
        arguments.extend(places.iter().map(String::as_str));
        arguments.extend(more);
        let agent = self.start_as(start, &arguments);
        oracle.wait_for_reports(&agent);
        agent
    }

    /// The flags of an agent's files.
    pub fn places(&self) -> Vec<String> {
        places("state", &self.pins, self.cgroup.path())
    }

    /// Those of an agent with a host and its cgroup to itself.
    pub fn places_of(&self, host: usize) -> Vec<String> {
        let name = ["a", "b"][host];
        places(&format!("state-{name}"), &self.pins.with_file_name(name), &self.cgroup_of(host))
    }

    /// `opentcp agent status --json`.
    pub fn status(&self) -> Value {
        let (code, out, error) = self.opentcp(&["agent", "status", "--state", "state", "--json"]);
        let status: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{error}"));
        assert_eq!(code, Some(if status["running"] == true { 0 } else { 3 }), "{error}");
        status
    }

    /// `opentcp agent reset`.
    pub fn reset(&self) -> String {
        let places = self.places();
        let arguments: Vec<&str> = ["agent", "reset"].into_iter().chain(places.iter().map(String::as_str)).collect();
        let (code, out, error) = self.opentcp(&arguments);
        assert_eq!(code, Some(0), "{error}");
        out
    }

    /// A connection from the first host to an address of the second, or of its own: both ends.
    pub fn connection(&self, to: &str) -> (TcpStream, TcpStream) {
        connection_between(&self.hosts, to)
    }

    /// What the kernel shows of a connection of the first host.
    pub fn seen(&self, socket: &TcpStream) -> kernel::Connection {
        let (local, remote) = (socket.local_addr().unwrap().port(), socket.peer_addr().unwrap().port());
        let all = self.here(|| kernel::connections().unwrap());
        all.into_iter().find(|one| (one.local_port, one.remote_port) == (local, remote)).expect("it is open")
    }

    /// Whether the first host's end of a connection uses the algorithm.
    pub fn uses(&self, socket: &TcpStream, algorithm: &str) -> bool {
        self.seen(socket).algorithm == algorithm
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.pins().parent().expect("it is in a folder"));
    }
}

/// The process of an agent's guardian.
pub fn guardian(agent: &Running) -> i32 {
    let id = agent.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    children.split_whitespace().next().expect("it has a child").parse().unwrap()
}

/// The test's Oracle, which sends what the test wants.
pub struct TestOracle {
    pub bus: UnixOracle,
    pub key: OracleKey,
    /// The last epoch, which the Oracle answers agents that ask.
    pub epoch: u64,
    pub answers: bool,
}

impl TestOracle {
    pub fn new(world: &World) -> TestOracle {
        let key = world.path("oracle.key");
        if !key.exists() {
            let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
            assert_eq!(code, Some(0), "{error}");
        }
        let key = bus::files::secret_key(&key).unwrap();
        TestOracle { bus: UnixOracle::listen(&world.path("oracle.sock")).unwrap(), key, epoch: 0, answers: true }
    }

    /// Waits for two reports, so that the second was made after whatever was sent before.
    pub fn wait_for_reports(&mut self, agent: &Running) -> bus::Report {
        while self.receive(Duration::ZERO).is_some() {}
        let mut last = None;
        for _ in 0..2 {
            last = Some(self.receive(PATIENCE).unwrap_or_else(|| panic!("{}", agent.said())));
        }
        last.expect("two were received")
    }

    /// The next report; its question is answered.
    pub fn receive(&mut self, wait: Duration) -> Option<bus::Report> {
        let report = bus::Report::from_bytes(&self.bus.receive(wait).unwrap()?.bytes).unwrap();
        if let Some(question) = report.question.filter(|_| self.answers) {
            self.bus.send(&self.key.answer(self.epoch, &[question])).unwrap();
        }
        Some(report)
    }

    /// Sends a CUE.
    pub fn send(&mut self, cue: &Cue) -> Vec<u8> {
        let bytes = self.key.sign(cue);
        self.bus.send(&bytes).unwrap();
        bytes
    }
}

/// For every host, for a minute.
pub fn cue(epoch: u64, set: Settings) -> Cue {
    Cue {
        epoch,
        id: 0,
        policy: "test".into(),
        rule: "rule".into(),
        rank: 0,
        lifetime: Time::from_secs(60),
        scope: CueScope::default(),
        set,
        guard: None,
        reason: "a test".into(),
    }
}

/// With the guard of opentcp2.
pub fn guarded(cue: Cue) -> Cue {
    Cue { guard: Some(CueGuard { revert_if: "host.drop_rate > 0.001".into(), hold: Time::from_secs(60) }), ..cue }
}

/// Reno, and an initial window of 20 segments: no default.
pub fn reno() -> Settings {
    Settings { cc: Some("newreno".into()), initial_cwnd: Some(20), ..Settings::default() }
}

fn places(state: &str, pins: &Path, cgroup: &Path) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    ["--state", state, "--pins", &text(pins), "--cgroup", &text(cgroup)].map(str::to_string).to_vec()
}

fn connection_between(hosts: &[String; 2], to: &str) -> (TcpStream, TcpStream) {
    let listener = inside(&hosts[usize::from(to == THERE)], || TcpListener::bind((to, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let one = inside(&hosts[0], || TcpStream::connect(address).unwrap());
    one.set_nodelay(true).unwrap();
    (one, listener.accept().unwrap().0)
}

/// BPF links to a cgroup and those below it, whoever holds them.
fn attached_below(cgroup: &Path) -> usize {
    let below = fs::read_dir(cgroup).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = below.filter(|path| path.is_dir()).chain([cgroup.to_path_buf()]);
    let ids: Vec<u64> = folders.filter_map(|folder| Some(folder.metadata().ok()?.ino())).collect();
    let is_ours = |info: &LinkTypeInfo| matches!(info, LinkTypeInfo::Cgroup(link) if ids.contains(&link.cgroup_id));
    LinkInfoIter::default().filter(|link| is_ours(&link.info)).count()
}

/// Command lines that name the cgroup.
fn processes_about(cgroup: &Path) -> Vec<String> {
    let cgroup = cgroup.to_string_lossy();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let all = all.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    all.filter(|line| line.contains(&*cgroup)).collect()
}

fn files_below(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        files_below(&entry.path(), files);
        files.insert(entry.path());
    }
}

/// Tries up to three times, each in a new world, whether the time that `measure` returns is within `bound`: the machine is shared, and
/// may pause for as long. `None` skips.
pub fn comes_within(bound: Duration, measure: impl Fn() -> Option<Duration>) {
    let mut took = Vec::new();
    while took.len() < 3 {
        let Some(time) = measure() else { return };
        took.push(time);
        if time <= bound {
            return;
        }
    }
    panic!("took {took:?}, of at most {bound:?}");
}
