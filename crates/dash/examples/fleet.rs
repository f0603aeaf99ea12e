//! The dashboard of a fleet that is made up: `cargo run --example fleet -- HOSTS RATE ADDRESS [TOKEN FILE]`.
//!
//! What hosts and switches report is random. What follows is real: a policy decides on it so many times a second, and the lists for
//! operators go over a socket to the dashboard. So the page can be looked at, and measured, with more hosts than there are machines.

use bus::{Address, Ask, Hub as _, InForce, Peer, Reply, Report, Request, UnixOracle};
use dash::{Config, Token};
use oracle::{Gathered, HostsAsked, Overview, PeriodEnd, Status, Watch};
use policy::{
    AgentCounts, AlgorithmFacts, ArmObservation, History, Host, Known, Link, Measures, NetworkView, Oracle, OracleKey,
    Policy,
};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use std::{env, thread};
use units::{Bytes, Rate, Time};

const POLICY: &str = r#"
name = "opentcp2"
mode = "enforce"
period = "PERIOD"
allow_mixed_measures = true
[objective]
minimize = "network.drop_rate"
[[constraint]]
name = "core below 92 %"
holds = "network.max_link_utilization < 0.92"
[[rule]]
name = "calm network"
when = "network.max_link_utilization < 0.85"
set = { initial_cwnd = 20, rto_min = "5 ms" }
guard = { revert_if = "host.drop_rate > 0.001", hold = "60 s" }
[[rule]]
name = "busy hosts"
when = "host.live_flows > 200"
set = { pacing = true }
[[rule]]
name = "delay-based"
when = "network.live_flows >= 0"
set = { cc = "swift" }
[rollout]
fraction = 0.5
"#;
/// Hosts of a rack, racks of a spine plane.
const RACK: usize = 40;
const SPINES: usize = 8;

/// A number from 0 to 1 that looks random: of a host or a link, and a time.
fn noise(i: u64, step: u64) -> f64 {
    let mut x = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / u64::MAX as f64
}

/// A number that wanders: noise of whole steps, joined.
fn wandering(i: u64, at: f64) -> f64 {
    let (step, part) = (at.floor() as u64, at.fract());
    noise(i, step) * (1.0 - part) + noise(i, step + 1) * part
}

fn link(name: String, ends: (&str, &str), rate: Rate, utilization: f64) -> Link {
    Link {
        name,
        from: ends.0.to_string(),
        to: ends.1.to_string(),
        rate: Some(rate),
        utilization: Some(utilization),
        drop_rate: Some(if utilization > 0.85 { 0.0004 * utilization } else { 0.0 }),
        mark_rate: Some((utilization - 0.5).max(0.0) * 0.1),
        queue: Some(Bytes::new((utilization * utilization * 90_000.0) as u64)),
        up: Some(true),
        ..Link::default()
    }
}

/// The fleet at a time.
fn view(hosts: usize, at: f64) -> NetworkView {
    let mut view = NetworkView { at: Time::from_secs_f64(at), ..NetworkView::default() };
    let per_rack = if hosts < 200 { hosts.div_ceil(6).max(1) } else { RACK };
    let racks = hosts.div_ceil(per_rack);
    for rack in 0..racks {
        let leaf = format!("r{:02}", rack + 1);
        let load = 0.25 + 0.5 * wandering(rack as u64 + 7, at / 20.0);
        for spine in 0..SPINES.min(racks) {
            let name = format!("spine{}", spine + 1);
            for (from, to, seed) in [(&leaf, &name, 0), (&name, &leaf, 1)] {
                let used = load * (0.6 + 0.5 * wandering((rack * 64 + spine * 2 + seed) as u64 + 1000, at / 7.0));
                view.links.push(link(format!("{from} to {to}"), (from, to), Rate::from_gbps(100), used.min(1.0)));
            }
        }
    }
    for i in 0..hosts {
        let (rack, name) = (format!("r{:02}", i / per_rack + 1), format!("h{:04}.example", i + 1));
        let used =
            (1.1 * wandering((i / per_rack) as u64 + 7, at / 20.0) * wandering(i as u64 + 90_000, at / 5.0)).min(0.99);
        view.links.push(link(format!("{name} eth0 out"), (&name, &rack), Rate::from_gbps(25), used));
        view.hosts.push(Host {
            name,
            rack,
            cc: "cubic".into(),
            algorithms: vec!["cubic".into(), "dctcp".into()],
            live_flows: Some((400.0 * wandering(i as u64 + 50_000, at / 9.0)).round()),
            sent_segments: Some(100_000),
            retransmitted_segments: Some((150.0 * used * noise(i as u64, at as u64)) as u64),
            srtt_us: vec![(250, 10)],
            send_rate: Some(Rate::from_bps((used * 25e9) as u64)),
            ..Host::default()
        });
    }
    view
}

/// An Oracle's place on the bus, with the fleet that it sees.
struct World {
    bus: UnixOracle,
    hosts: usize,
    oracle: Oracle,
    gathered: Gathered,
    watch: Watch,
    begun: Instant,
    decisions: u64,
    is_paused: bool,
    sent: Vec<AgentCounts>,
}

impl World {
    fn new(socket: &Path, hosts: usize, rate: f64) -> World {
        let text = POLICY.replace("PERIOD", &format!("{:.0} ms", 1000.0 / rate));
        let known = ["cubic", "dctcp", "swift"];
        let known = known.map(|name| AlgorithmFacts { name, measures: Measures::default(), needs_ecn: false });
        let policy =
            Policy::parse("p.toml", &text, Known { algorithms: &known }).unwrap_or_else(|errors| panic!("{errors:?}"));
        let (gathered, watch) = (Gathered::new(&policy), Watch::new(&policy.name, policy.period));
        let oracle = Oracle::new(policy, OracleKey::from_secret([7; 32]), History::default());
        let (bus, begun) = (UnixOracle::listen(socket).expect("a socket can be made"), Instant::now());
        let sent = vec![AgentCounts::default(); hosts];
        World { bus, hosts, oracle, gathered, watch, begun, decisions: 0, is_paused: false, sent }
    }

    /// Some hosts report, and the policy decides.
    fn decide(&mut self) {
        let at = self.begun.elapsed().as_secs_f64() + 100.0;
        let (now, view) = (Time::from_secs_f64(at), view(self.hosts, at));
        self.decisions += 1;
        let slices = if self.decisions == 1 { 1 } else { 10 };
        for (i, host) in view.hosts.iter().enumerate().filter(|(i, _)| i % slices == self.decisions as usize % slices) {
            let is_treated = self.gathered.treats(&host.name);
            if noise(i as u64, self.decisions) < 0.0005 {
                self.sent[i].reverted += 1;
            }
            let rule = |name: &str| InForce { policy: "opentcp2".into(), rule: name.into(), ..InForce::default() };
            let busy = host.live_flows > Some(200.0);
            let in_force =
                [(true, "calm network"), (busy, "busy hosts")].into_iter().filter(|(is, _)| *is && is_treated);
            let in_force = in_force.map(|(_, name)| rule(name)).collect();
            let mut report = Report { host: host.clone(), counts: self.sent[i], in_force, ..Report::default() };
            report.epoch = Some(self.decisions);
            self.gathered.take(now, &Peer::Local, &report.to_bytes());
        }
        self.oracle.pause(self.is_paused);
        let (decision, messages) = self.oracle.decide(&view);
        let treated = view.hosts.iter().enumerate().filter(|(i, _)| self.oracle.treats(*i));
        self.gathered.begin(decision.epoch, treated.map(|(_, host)| host.name.as_str()));
        let arm = |again: f64| ArmObservation {
            segments: 1_000_000,
            retransmits: (again * (0.9 + 0.2 * noise(decision.epoch, 3))) as u64,
            ..ArmObservation::default()
        };
        self.oracle.observe(Some(decision.epoch), [arm(600.0), arm(760.0)]);
        let status = Status { agents: self.hosts, hosts: self.hosts, ..Status::default() };
        self.watch.ended(&PeriodEnd {
            policy: &self.oracle.policy().name,
            period: self.oracle.policy().period,
            now,
            unix_s: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
            view: &view,
            decision: &decision,
            sent: messages.len(),
            verdict: &self.oracle.verdict(),
            status: &status,
            gathered: &self.gathered,
        });
    }

    /// Answers operators until this time.
    fn answer(&mut self, until: Instant) {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(Some(message)) = self.bus.receive(left) else { return };
            let Some(Ok(Request { id, ask, .. })) = Request::from_bytes(&message.bytes) else { continue };
            let now = Time::from_secs_f64(self.begun.elapsed().as_secs_f64() + 100.0);
            let reply = match ask {
                Ask::Status { .. } => {
                    let asked = HostsAsked { limit: 1, ..HostsAsked::default() };
                    let overview = Overview { paused: self.is_paused, ..self.watch.overview(now, asked) };
                    Reply::answer(&id, &overview.explained(self.oracle.policy()))
                }
                Ask::Board { list, from } => Reply::answer(&id, &self.watch.board(list, from)),
                Ask::Pause { .. } | Ask::Resume => {
                    self.is_paused = matches!(ask, Ask::Pause { .. });
                    Reply::answer(&id, &serde_json::json!({}))
                }
                _ => Reply::refused(&id, "this fleet is made up, and has one policy".to_string(), true),
            };
            let _ = self.bus.answer(&message.reply, &reply.to_bytes());
        }
    }
}

/// Serves the dashboard of so many hosts, with so many decisions a second.
pub fn serve(hosts: usize, rate: f64, listen: SocketAddr, token: Option<Token>) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("sock");
    let mut world = World::new(&socket, hosts, rate);
    thread::spawn(move || {
        loop {
            let begin = Instant::now();
            world.decide();
            world.answer(begin + Duration::from_secs_f64(1.0 / rate));
        }
    });
    let config =
        Config { listen, names: Vec::new(), oracle: Address::Unix(socket), token, operator: "example".to_string() };
    dash::run(config, &|| false, &mut |line| eprintln!("{line}")).expect("it is served");
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [hosts, rate, listen, rest @ ..] = &arguments[..] else {
        eprintln!("usage: fleet HOSTS RATE ADDRESS [TOKEN FILE]");
        return;
    };
    let token = rest.first().map(|file| Token::read(Path::new(file)).expect("a token"));
    serve(
        hosts.parse().expect("a number"),
        rate.parse().expect("a number"),
        listen.parse().expect("an address"),
        token,
    );
}
