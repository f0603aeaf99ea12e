//! A fleet on one machine: a real server with TLS, a real Oracle in a process of its own, and agents as clients of the real protocol, each
//! with its own key and connection. OpenTCP's Table 1 (HotNets 2012) has the same rows for 4,000 machines.
//!
//! An agent here is what `opentcp agent` has on the bus and of the policy ([`bus::NatsBus`], [`policy::Agent`]), without a kernel to set:
//! the cost of that is measured by the cases of `agent`. Reports have the content of a host with two links and connections of four kinds.
//!
//! A process may not have 100,000 connections open everywhere. So the larger fleet has members that stand for 250 hosts each, as an
//! enforcer does: each host reports by itself, at its own time, in a sealed message of its own. How long a message to 100,000 takes is
//! measured with as many subscriptions ([`listeners`]).

use crate::Row;
use bus::{Address, Bus as _, Clock, FctTimes, NatsBus, Report, Telemetry, Timetable, unix_s};
use fleet::{Init, OracleIdentity, Role, Server, Token, TokenRequest};
use oracle::{Config, Event};
use policy::{Agent, Gate, Host, Identity, Known, Link, Policy, PublicKeys};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

mod listeners;

use listeners::Listeners;
use tempfile::TempDir;
use testkit::{NatsServer, free_port, nats_program};
use units::Rate;

/// A fleet of the benchmark.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    members: usize,
    /// Hosts of each member.
    hosts: usize,
}

/// The paper's, and a large one.
const SIZES: [Size; 2] =
    [Size { name: "4000 agents", members: 4000, hosts: 1 }, Size { name: "100000 hosts", members: 400, hosts: 250 }];
/// T, seconds. `bench` runs the first fleet with the first by itself; the others take half an hour and are run by name.
const PERIODS: [u64; 3] = [60, 300, 600];
/// Periods that are measured.
const MEASURED: u32 = 2;
/// How long a fleet may take for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks at all connections.
const PAUSE: Duration = Duration::from_millis(50);
/// Interval over which connections a second are counted.
const TENTH: Duration = Duration::from_millis(100);
/// Utilization of the links at which both of [`POLICY`]'s rules are on, and at which the second is off.
const CALM: f64 = 0.3;
const BUSY: f64 = 0.95;
/// Two rules for all hosts.
const POLICY: &str = "mode = \"enforce\"\nperiod = \"T\"\n\
    [[rule]]\nname = \"window\"\nwhen = \"network.live_flows >= 0\"\nset = { initial_cwnd = 20, rto_min = \"5 ms\" }\n\
    guard = { revert_if = \"host.drop_rate > 0.01\", hold = \"60 s\" }\n\
    [[rule]]\nname = \"pacing\"\nwhen = \"network.max_link_utilization < 0.9\"\nset = { pacing = true }\n";

fn name(size: Size, period_s: u64) -> String {
    format!("fleet: {}, T = {} min", size.name, period_s / 60)
}

/// Those that `bench` runs by itself.
pub fn cases() -> Vec<String> {
    vec![name(SIZES[0], PERIODS[0])]
}

/// The rows of a case, none where it is skipped; `None` if it is not one of these.
pub fn run(case: &str) -> Option<Vec<Row>> {
    let all = SIZES.into_iter().flat_map(|size| PERIODS.map(|period_s| (size, period_s)));
    let (size, period_s) = all.into_iter().find(|(size, period_s)| name(*size, *period_s) == case)?;
    let Some(program) = nats_program() else { return Some(Vec::new()) };
    let fleet = World::new(&program, size, period_s);
    Some(fleet.measure(case))
}

/// What the process of the Oracle does: `bench --oracle FLEET PERIOD`. It prints a line at each decision.
pub fn oracle(folder: &Path, period_s: u64) {
    let parse = |name: &str, text: &str, _: &[String]| {
        Policy::parse(name, text, Known { algorithms: &[] }).map_err(|_| "the policy is wrong".to_string())
    };
    let text = POLICY.replace("\"T\"", &format!("\"{period_s} s\""));
    let policy = parse("policy.toml", &text, &[]).expect("the policy is right");
    let at = folder.join("oracle-0");
    let (key, state) = (at.join(fleet::ORACLE_KEY), folder.join("state"));
    let mut config = Config::new(policy, text, (key, state), Address::Nats(at), Box::new(parse));
    config.record = Some(Box::new(|event| {
        if let Event::Sent { epoch, .. } = event {
            println!("sent {epoch} {}", boot_ns());
        }
        Ok(0)
    }));
    let decided = &mut |_: &_, _: &_, status: &oracle::Status| {
        println!("status {}", serde_json::to_string(status)?);
        Ok(())
    };
    if let Err(error) = oracle::run(config, &|| false, decided, &mut |line| eprintln!("oracle: {line}")) {
        eprintln!("oracle: {error}");
    }
}

/// Since the machine started, in all processes.
fn boot_ns() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u128 * 1_000_000_000 + now.tv_nsec as u128
}

/// The fleet. Its processes end with it.
struct World {
    server: NatsServer,
    monitor: SocketAddr,
    oracle: Child,
    /// What the Oracle prints, by line.
    lines: Receiver<String>,
    agents: Vec<Client>,
    size: Size,
    period: Duration,
    enrolled_in: Duration,
    joined_in: Duration,
    folder: TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.oracle.kill();
        let _ = self.oracle.wait();
    }
}

impl World {
    fn new(program: &Path, size: Size, period_s: u64) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let fleet = folder.path().join("fleet");
        let server = Server { host: "127.0.0.1".to_string(), port: free_port() };
        let address = SocketAddr::from(([127, 0, 0, 1], server.port));
        let now = unix_s();
        fleet::init(&fleet, &Init { servers: vec![server], oracles: 2, certificate_days: 30, now }).expect("a fleet");
        let monitor = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let configuration = fleet.join("nats/nats-server.conf");
        let text = fs::read_to_string(&configuration).expect("it was made");
        fs::write(&configuration, format!("{text}\nhttp: \"{monitor}\"\n")).expect("it is ours");
        let server = NatsServer::start(program, &configuration, address, None);

        let mut oracle = Command::new(env::current_exe().expect("this program"));
        oracle.arg("--oracle").arg(&fleet).arg(period_s.to_string()).stdout(Stdio::piped());
        let mut oracle = oracle.spawn().expect("this program");
        let out = oracle.stdout.take().expect("it is a pipe");
        let (line, lines) = channel();
        thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).try_for_each(|text| line.send(text)));

        let began = Instant::now();
        let members: Vec<(Vec<String>, PathBuf)> =
            (0..size.members).map(|i| (size.hosts_of(i), folder.path().join(format!("member-{i}")))).collect();
        let identity = OracleIdentity::load(&fleet.join("oracle-0")).expect("it was made");
        let token = |role: Role, hosts: &[String]| {
            let request = TokenRequest { role, hosts: hosts.to_vec(), seconds: 3600, uses: None };
            Token::issue(&identity, &request, now).expect("a token").text()
        };
        let of_agents = token(Role::Agent, &[]);
        let threads = thread::available_parallelism().map_or(1, usize::from) * 2;
        thread::scope(|scope| {
            for part in members.chunks(size.members.div_ceil(threads)) {
                let (token, of_agents) = (&token, &of_agents);
                scope.spawn(move || {
                    for (hosts, folder) in part {
                        let token = if size.hosts == 1 { of_agents.clone() } else { token(Role::Enforcer, hosts) };
                        let name = &hosts[0];
                        bus::enroll(&token, name, folder, PATIENCE).unwrap_or_else(|error| panic!("{name}: {error}"));
                    }
                });
            }
        });
        let enrolled_in = began.elapsed();
        let began = Instant::now();
        let agents: Vec<Client> = members.iter().map(|(hosts, at)| Client::join(hosts, at)).collect();
        let period = Duration::from_secs(period_s);
        let mut world = World {
            server,
            monitor,
            oracle,
            lines,
            agents,
            size,
            period,
            enrolled_in,
            joined_in: Duration::ZERO,
            folder,
        };
        world.until("all agents are answered", |agent| agent.agent.question().is_none() && agent.asked);
        world.joined_in = began.elapsed();
        world
    }

    /// Gives every agent its turn, until `done` holds of all.
    fn until(&mut self, what: &str, done: impl Fn(&Client) -> bool) {
        let began = Instant::now();
        while !self.agents.iter().all(&done) {
            self.agents.iter_mut().for_each(Client::turn);
            let left = self.agents.iter().filter(|agent| !done(agent)).count();
            assert!(began.elapsed() < PATIENCE, "{what}: {left} are left");
        }
    }

    /// Goes on for a while.
    fn go_on(&mut self, while_: impl Fn() -> bool) {
        while while_() {
            self.agents.iter_mut().for_each(Client::turn);
            thread::sleep(PAUSE);
        }
    }

    fn measure(mut self, case: &str) -> Vec<Row> {
        let row = |what: &str, value: f64, unit: &str| Row::new(format!("{case}, {what}"), value, unit);
        let mut rows = vec![
            row("enrolled a second", self.size.members as f64 / self.enrolled_in.as_secs_f64(), "members/s"),
            row("all connected and answered", self.joined_in.as_secs_f64(), "s"),
        ];
        // from just after a decision to just after the last that is measured
        self.next_sent();
        let before = (self.varz(), cpu_s(self.oracle.id()), Instant::now());
        let mut fan_out = Vec::new();
        for _ in 0..MEASURED {
            let sent = self.next_sent();
            fan_out.push(self.received_after(sent, 2));
        }
        let after = (self.varz(), cpu_s(self.oracle.id()), Instant::now());
        let seconds = (after.2 - before.2).as_secs_f64();
        let kbps = |bytes: f64| 8.0 * bytes / 1000.0 / seconds;
        rows.push(row("CPU of the Oracle", 100.0 * (after.1 - before.1) / seconds, "% of a core"));
        rows.push(row("memory of the Oracle", resident_mb(self.oracle.id()), "MB"));
        rows.push(row("memory of the server", resident_mb(self.server.id().expect("it runs")), "MB"));
        rows.push(row("reports, to the server", kbps(after.0[0] - before.0[0]), "kbit/s"));
        rows.push(row("CUEs and beacons, from the server", kbps(after.0[1] - before.0[1]), "kbit/s"));
        if self.size.hosts > 1 {
            let listeners =
                Listeners::start(&self.folder.path().join("fleet/oracle-1"), self.size.members, self.size.hosts);
            let (_, sent_ns) = self.next_sent();
            let what = format!("{} subscriptions have a period's CUEs after", self.size.members * self.size.hosts);
            rows.push(row(&what, listeners.all_have_heard(sent_ns, PATIENCE), "s"));
        }
        let latest = fan_out.iter().fold(0.0f64, |latest, seconds| latest.max(*seconds));
        rows.push(row("the last agent has a period's two CUEs after", latest, "s"));
        if self.size.hosts == 1 {
            rows.push(row("the last agent has a period's one CUE after", self.with_one_rule(), "s"));
        }
        let (seconds, peak) = self.restart();
        rows.push(row("all connected after a restart of the server", seconds, "s"));
        rows.push(row("most connections within a tenth of a second, times ten", peak, "connections/s"));
        rows
    }

    /// Waits for the next period's first CUE; its epoch, and when it was sent.
    fn next_sent(&mut self) -> (u64, u128) {
        let (deadline, epoch) = (Instant::now() + self.period * 3, self.agents[0].agent.highest());
        let mut sent = None;
        while sent.is_none() {
            assert!(Instant::now() < deadline, "the Oracle decides");
            self.agents.iter_mut().for_each(Client::turn);
            // after the first CUE there is no pause, so that the last agent is seen in time
            for line in self.lines.try_iter() {
                let mut words = line.split(' ');
                if let (Some("sent"), Some(number), Some(at)) = (words.next(), words.next(), words.next()) {
                    let found = (number.parse().expect("an epoch"), at.parse().expect("a time"));
                    sent = sent.or(Some(found).filter(|(number, _)| epoch < Some(*number)));
                }
            }
            if sent.is_none() {
                thread::sleep(PAUSE);
            }
        }
        sent.expect("the loop ended")
    }

    /// All links become busy, so that one of the two rules is off: how long one CUE takes to all, seconds.
    fn with_one_rule(&mut self) -> f64 {
        self.agents.iter_mut().for_each(|agent| agent.utilization = BUSY);
        // reports of before are of before: the first decision may still have them
        self.next_sent();
        self.next_sent();
        let sent = self.next_sent();
        self.received_after(sent, 1)
    }

    /// How long it took until every agent had all CUEs of an epoch, seconds.
    fn received_after(&mut self, (epoch, sent_ns): (u64, u128), cues: u32) -> f64 {
        self.until("all agents have the CUEs", |agent| agent.cues_of(epoch) == cues);
        let last = self.agents.iter().map(|agent| agent.taken_ns).max().expect("there are agents");
        last.saturating_sub(sent_ns) as f64 / 1e9
    }

    /// Kills the server and starts it again: how long until all are connected, seconds, and the highest rate of connections, a second.
    fn restart(&mut self) -> (f64, f64) {
        self.server.kill();
        self.until("all have lost the server", |agent| !agent.bus.is_connected());
        self.server.again();
        let began = Instant::now();
        let mut connected = vec![false; self.agents.len()];
        let mut tenths = Vec::new();
        while connected.contains(&false) {
            assert!(began.elapsed() < PATIENCE, "{} have not returned", connected.iter().filter(|is| !**is).count());
            for (agent, connected) in self.agents.iter_mut().zip(&mut connected) {
                agent.turn();
                if !*connected && agent.bus.is_connected() {
                    *connected = true;
                    let tenth = (began.elapsed().as_millis() / TENTH.as_millis()) as usize;
                    tenths.resize(tenths.len().max(tenth + 1), 0);
                    tenths[tenth] += 1;
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let most = tenths.into_iter().max().unwrap_or(0);
        self.go_on(|| began.elapsed() < Duration::from_secs(1));
        (seconds, f64::from(most) * 10.0)
    }

    /// Bytes that the server has received from its clients, and sent to them: payloads and subjects, without TLS and TCP.
    fn varz(&self) -> [f64; 2] {
        let mut stream = TcpStream::connect(self.monitor).expect("the server's monitor");
        stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let varz: serde_json::Value = serde_json::from_str(body).expect("JSON");
        ["in_bytes", "out_bytes"].map(|key| varz[key].as_f64().expect("a number"))
    }
}

impl Size {
    /// The hosts of a member.
    fn hosts_of(self, member: usize) -> Vec<String> {
        (0..self.hosts).map(|i| format!("host-{}", member * self.hosts + i)).collect()
    }
}

/// A member's end of the bus: an agent's, or an enforcer's with many hosts.
struct Client {
    bus: NatsBus,
    agent: Agent,
    hosts: Vec<(String, Timetable)>,
    clock: Clock,
    connected: bool,
    asked: bool,
    /// Of the hosts' links.
    utilization: f64,
    /// When its last CUE was taken, since the machine started.
    taken_ns: u128,
    /// Of which epoch, and how many of that.
    taken: (u64, u32),
}

impl Client {
    fn join(hosts: &[String], folder: &Path) -> Client {
        let name = &hosts[0];
        let bus = NatsBus::join(folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        let keys = fs::read_to_string(folder.join("oracle.pub")).expect("an identity has it");
        let keys = PublicKeys::parse(&keys).expect("they are keys");
        let identity = Identity { host: name.clone(), ..Identity::default() };
        Client {
            bus,
            agent: Agent::new(Gate::new(keys, identity, None)),
            hosts: hosts.iter().map(|host| (host.clone(), Timetable::new(host))).collect(),
            clock: Clock::begin(),
            connected: false,
            asked: false,
            utilization: CALM,
            taken_ns: 0,
            taken: (0, 0),
        }
    }

    fn cues_of(&self, epoch: u64) -> u32 {
        if self.taken.0 == epoch { self.taken.1 } else { 0 }
    }

    /// What a daemon does with its bus in a turn of its loop.
    fn turn(&mut self) {
        let now = self.clock.now();
        let connected = self.bus.is_connected();
        if connected && !self.connected {
            self.agent.ask(fleet::random().expect("random bytes"));
            self.hosts.iter_mut().for_each(|(_, timetable)| timetable.asked(now));
            self.asked = true;
        }
        self.connected = connected;
        while let Some(message) = self.bus.receive(Duration::ZERO).expect("it finds its server again") {
            if self.agent.on_cue(now, &message) == Ok(true) {
                self.taken_ns = boot_ns();
                let epoch = self.agent.highest().unwrap_or(0);
                self.taken = (epoch, if self.taken.0 == epoch { self.taken.1 + 1 } else { 1 });
            }
        }
        self.agent.on_timer(now);
        if let Some(epoch) = self.agent.highest() {
            self.bus.heard(epoch);
        }
        for (host, timetable) in &mut self.hosts {
            timetable.heard(now, self.agent.beacon());
            if self.connected && timetable.is_due(now) {
                let mut report = report(host, self.utilization);
                report.question = self.agent.question();
                report.epoch = self.agent.highest();
                report.of_epoch = timetable.epoch();
                report.counts = self.agent.counts();
                // a full queue: the next turn tries again
                if self.bus.send(&report.to_bytes()).is_err() {
                    break;
                }
                timetable.reported(now);
            }
        }
    }
}

/// What a host with traffic reports.
fn report(name: &str, utilization: f64) -> Report {
    let i: usize = name.trim_start_matches("host-").parse().expect("a host's name ends with its number");
    let rack = format!("rack-{}", i / 40);
    let link = |way: &str| Link {
        name: format!("{name} eth0 {way}"),
        from: if way == "out" { name.to_string() } else { rack.clone() },
        to: if way == "out" { rack.clone() } else { name.to_string() },
        rate: Some(Rate::from_gbps(10)),
        utilization: Some(utilization - 0.1 * (i % 5) as f64 / 5.0),
        drop_rate: Some(0.0),
        ..Link::default()
    };
    let kind = |size: &str| {
        let mut times = FctTimes::default();
        (1..=12).for_each(|n| times.record(n * 1700));
        Telemetry {
            group: "policy/window".to_string(),
            remote_rack: "rack-7".to_string(),
            size: size.to_string(),
            received: false,
            flows: 12,
            bytes: 1_200_000,
            segments: 900,
            retransmits: 1,
            fct_us: times.bins(),
        }
    };
    let host = Host {
        name: name.to_string(),
        rack: rack.clone(),
        cc: "cubic".to_string(),
        algorithms: ["bbr", "bic", "cubic", "dctcp", "newreno", "kernel:reno", "kernel:cubic"]
            .map(str::to_string)
            .to_vec(),
        live_flows: Some(40.0),
        flow_starts: Some(2.5),
        sent_segments: Some(5000),
        retransmitted_segments: Some(2),
        srtt_us: (0..10).map(|n| (100 + 20 * n, 4)).collect(),
        send_rate: Some(Rate::from_bps(900_000_000)),
        ..Host::default()
    };
    let telemetry = ["under 10 kB", "under 100 kB", "under 1 MB", "under 10 MB"].map(kind).to_vec();
    Report { host, links: vec![link("out"), link("in")], telemetry, ..Report::default() }
}

/// CPU time of a process so far, seconds.
fn cpu_s(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("its name is in brackets").1.split_whitespace().collect();
    let ticks: u64 = [11, 12].map(|at: usize| fields[at].parse::<u64>().expect("a number")).iter().sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Resident memory of a process, MB.
fn resident_mb(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("every process has it");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().expect("a number") / 1000.0
}
