//! Two hosts that are network namespaces with a cable between them, in a cgroup of their own; agents and Oracles to run there.

use bus::{Bus as _, UnixOracle};
use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use policy::{Addressees, Cue, CueGuard, CueScope, OracleKey, Sessions, Settings};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};
use tempfile::TempDir;
use units::Time;

const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
const BPFFS: &str = "/sys/fs/bpf";
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The hosts' addresses.
pub const HERE: &str = "10.99.0.1";
pub const THERE: &str = "10.99.0.2";

/// All of it; it goes away when dropped, also by a failing test.
pub struct World {
    pub place: TempDir,
    pub cgroup: PathBuf,
    /// Where this process was.
    home: PathBuf,
    hosts: [String; 2],
    pins: PathBuf,
    before: Snapshot,
    _lock: Flock<File>,
}

/// What must be the same afterwards.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    routes: String,
    sysctls: BTreeMap<PathBuf, String>,
    pinned: BTreeSet<PathBuf>,
}

impl World {
    /// Or a printed reason why the test is skipped.
    pub fn new() -> Option<World> {
        if let Err(missing) = kernel::Kernel::probe() {
            eprintln!("skipped: {missing}");
            return None;
        }
        let root = CGROUPS.map(Path::new).into_iter().find(|folder| folder.join("cgroup.procs").exists());
        let Some(root) = root else {
            eprintln!("skipped: no cgroups of version 2 here");
            return None;
        };
        let file = File::create(env::temp_dir().join("opentcp-kernel-tests.lock")).unwrap();
        let lock = Flock::lock(file, FlockArg::LockExclusive).unwrap();
        drop(kernel::Pins::open().unwrap_or_else(|error| panic!("{error}")));
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_start_matches('/');
        let number = process::id();
        let cgroup = root.join(format!("opentcp-agent-test-{number}"));
        fs::create_dir(&cgroup).unwrap();
        fs::write(cgroup.join("cgroup.procs"), number.to_string()).unwrap();
        let hosts = ["a", "b"].map(|name| format!("opentcp-{name}-{number}"));
        for host in &hosts {
            ip(&format!("netns add {host}"));
            ip(&format!("-n {host} link set lo mtu 1500 up"));
        }
        let [a, b] = &hosts;
        ip(&format!("-n {a} link add eth0 type veth peer name eth0 netns {b}"));
        for (host, address, last) in [(a, HERE, 1), (b, THERE, 2)] {
            // no address by itself, which would come later
            ip(&format!("-n {host} link set eth0 addrgenmode none"));
            ip(&format!("-n {host} address add {address}/24 dev eth0"));
            ip(&format!("-n {host} address add fd99::{last}/64 dev eth0 nodad"));
            ip(&format!("-n {host} link set eth0 up"));
        }
        ip(&format!("-n {a} route add fd98::/16 via fd99::2"));
        ip(&format!("-n {a} route add default via {THERE}"));
        ip(&format!("-n {a} route add 10.98.0.0/16 via {THERE} mtu lock 1400 initrwnd 20"));
        let home = root.join(own);
        let pins = Path::new(BPFFS).join(format!("opentcp-test-{number}")).join("agent");
        let place = tempfile::tempdir().unwrap();
        let before = Snapshot { routes: String::new(), sysctls: BTreeMap::new(), pinned: BTreeSet::new() };
        let mut world = World { place, cgroup, home, hosts, pins, before, _lock: lock };
        let is_still = eventually(|| {
            world.before = world.snapshot();
            thread::sleep(Duration::from_millis(200));
            world.before == world.snapshot()
        });
        assert!(is_still, "{}", world.before.routes);
        Some(world)
    }

    /// Runs `work` on a thread of its own, on the first host.
    pub fn here<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.hosts[0], work)
    }

    /// On the second.
    pub fn there<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.hosts[1], work)
    }

    /// `ip`, on the first host.
    pub fn ip(&self, arguments: &str) -> String {
        ip(&format!("-n {} {arguments}", self.hosts[0]))
    }

    /// `tc`, on the second host: what is dropped on the way out of the first one, its TCP would know not to have sent.
    pub fn tc_there(&self, arguments: &str) -> String {
        command("tc", &format!("-n {} {arguments}", self.hosts[1]))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn pins(&self) -> PathBuf {
        self.pins.clone()
    }

    /// Routes and sysctls of the first host, and what is pinned by the agents of this test.
    pub fn snapshot(&self) -> Snapshot {
        let sysctls = self.here(|| {
            let all = fs::read_dir("/proc/sys/net/ipv4").unwrap().flatten().map(|entry| entry.path());
            // which algorithms there are is for all namespaces, and no agent's doing
            let all = all.filter(|path| !path.to_string_lossy().contains("congestion"));
            all.filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text))).collect()
        });
        let mut pinned = BTreeSet::new();
        files_below(self.pins().parent().unwrap(), &mut pinned);
        Snapshot { routes: self.ip("route show table all") + &self.ip("-6 route show"), sysctls, pinned }
    }

    /// Nothing is left changed; new connections are as they were.
    pub fn assert_as_before(&self) {
        let is_so = || self.snapshot() == self.before;
        assert!(eventually(is_so), "{:#?}\nwas\n{:#?}", self.snapshot().routes, self.before.routes);
        assert!(self.snapshot() == self.before);
        let fresh = self.connection(THERE);
        let fresh = self.seen(&fresh.0);
        assert_ne!((fresh.algorithm.as_str(), fresh.cwnd), ("reno", 20));
    }

    /// Starts the program on the first host.
    pub fn start(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, &[])
    }

    fn start_with(&self, arguments: &[&str], environment: &[(&str, PathBuf)]) -> Running {
        let log = self.path(&format!("log-{}", arguments[0]));
        let (out, err) =
            (File::create(self.path("out")).unwrap(), File::options().append(true).create(true).open(&log));
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).stdin(Stdio::null()).stdout(out).stderr(err.unwrap()).current_dir(self.place.path());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Running { child: self.here(|| command.spawn().unwrap()), log }
    }

    /// Runs it to its end: exit code, stdout, stderr.
    pub fn opentcp(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(arguments).stdin(Stdio::null()).current_dir(self.place.path());
        let output = self.here(|| command.output().unwrap());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Starts an agent, with what else it is told, and waits until it has reached `oracle`.
    pub fn agent(&self, oracle: &mut TestOracle, more: &[&str]) -> Running {
        self.agent_with(oracle, more, &[])
    }

    /// The same, with these in its environment.
    pub fn agent_with(&self, oracle: &mut TestOracle, more: &[&str], environment: &[(&str, PathBuf)]) -> Running {
        let places = self.places();
        let mut arguments = vec!["agent", "--host", "h1", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
        arguments.extend(places.iter().map(String::as_str));
        arguments.extend(more);
        let agent = self.start_with(&arguments, environment);
        oracle.wait_for_reports(&agent);
        agent
    }

    /// The flags of an agent's places.
    pub fn places(&self) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        let (pins, cgroup) = (text(&self.pins()), text(&self.cgroup));
        ["--state", "state", "--pins", &pins, "--cgroup", &cgroup].map(str::to_string).to_vec()
    }

    /// `opentcp agent status --json`.
    pub fn status(&self) -> Value {
        let (code, out, error) = self.opentcp(&["agent", "status", "--state", "state", "--json"]);
        assert_eq!(code, Some(0), "{error}");
        serde_json::from_str(&out).unwrap()
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
        let listen = || TcpListener::bind((to, 0)).unwrap();
        let listener = if to == THERE { self.there(listen) } else { self.here(listen) };
        let address = listener.local_addr().unwrap();
        let one = self.here(|| TcpStream::connect(address).unwrap());
        one.set_nodelay(true).unwrap();
        (one, listener.accept().unwrap().0)
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
        let _ = kernel::retune::Retuner::remove(&self.pins());
        let _ = fs::remove_dir(self.pins().parent().expect("it is in a folder"));
        for host in &self.hosts {
            let _ = Command::new("ip").args(["netns", "del", host]).status();
        }
        let _ = fs::write(self.home.join("cgroup.procs"), process::id().to_string());
        // a child that has just ended may hold it for a moment
        eventually(|| fs::remove_dir(&self.cgroup).is_ok());
    }
}

/// A process of ours, killed when dropped.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Ends it as Ctrl-C does; it must say that it is done.
    pub fn stop(mut self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        let code = self.child.wait().unwrap().code();
        assert_eq!(code, Some(0), "{}", self.said());
    }

    /// Ends it without a word.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its guardian's process.
    pub fn guardian(&self) -> i32 {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        children.split_whitespace().next().expect("it has a child").parse().unwrap()
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An Oracle of the test's, which sends what it likes.
pub struct TestOracle {
    pub bus: UnixOracle,
    pub key: OracleKey,
}

impl TestOracle {
    pub fn new(world: &World) -> TestOracle {
        let key = world.path("oracle.key");
        if !key.exists() {
            let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
            assert_eq!(code, Some(0), "{error}");
        }
        let key = bus::files::secret_key(&key).unwrap();
        TestOracle { bus: UnixOracle::listen(&world.path("oracle.sock")).unwrap(), key }
    }

    /// Waits for a report, and then another: of after whatever was sent before.
    pub fn wait_for_reports(&mut self, agent: &Running) -> bus::Report {
        while let Some(old) = self.bus.receive(Duration::ZERO).unwrap() {
            drop(old);
        }
        let mut last = None;
        for _ in 0..2 {
            let message = self.bus.receive(PATIENCE).unwrap();
            last = Some(bus::Report::from_bytes(&message.unwrap_or_else(|| panic!("{}", agent.said()))).unwrap());
        }
        last.expect("two were received")
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
        scope: CueScope {
            hosts: Addressees::All,
            names: Vec::new(),
            labels: BTreeMap::new(),
            sessions: Sessions::default(),
        },
        set,
        guard: None,
        reason: "a test".into(),
    }
}

/// With the guard of opentcp2.
pub fn guarded(cue: Cue) -> Cue {
    Cue { guard: Some(CueGuard { revert_if: "host.drop_rate > 0.001".into(), hold: Time::from_secs(60) }), ..cue }
}

/// Reno, and an initial window of 20 segments: nobody's default.
pub fn reno() -> Settings {
    Settings { cc: Some("newreno".into()), initial_cwnd: Some(20), ..Settings::default() }
}

/// A few round trips with data.
pub fn talk((one, other): &mut (TcpStream, TcpStream)) {
    let mut bytes = [0; 1000];
    for _ in 0..20 {
        one.write_all(&bytes).unwrap();
        other.read_exact(&mut bytes).unwrap();
        other.write_all(&bytes).unwrap();
        one.read_exact(&mut bytes).unwrap();
    }
}

pub fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

fn files_below(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        files_below(&entry.path(), files);
        files.insert(entry.path());
    }
}

fn inside<T: Send>(host: &str, work: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        setns(File::open(format!("/run/netns/{host}")).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

fn ip(arguments: &str) -> String {
    command("ip", arguments)
}

fn command(program: &str, arguments: &str) -> String {
    let out = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    assert!(out.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}
