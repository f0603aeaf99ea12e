//! A storm, step by step.

use crate::check::{Checks, Invariant, REVERTING, STORE, Violation};
use crate::enforcer::SimulatedEnforcer;
use crate::host::SimulatedHost;
use crate::net::{Net, Shelf, Weather};
use crate::oracles::{Around, SimulatedOracle};
use crate::plan::{Disk, Kind, LASTS, Plan, TICK};
use bus::{Measurement, Member, Peer, Role};
use policy::{AlgorithmFacts, Cue, CueScope, Known, Link, Measures, OracleKey, Policy, Settings};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use testkit::Random;
use units::{Rate, Time};

/// The policy's period, hold, guard and share, as [`POLICY`] has them.
pub const PERIOD: Time = Time::from_secs(4);
pub const HOLD: Time = Time::from_secs(12);
pub const HOLDS_S: u64 = 20;
pub const FRACTION: f64 = 0.5;
/// Segments of 2000 retransmitted, above which the guard reverts.
pub const LOSSY: u64 = 100;
/// The policy of all storms.
pub const POLICY: &str = r#"
mode = "enforce"
period = "4 s"
lifetime = "6 s"
allow_mixed_measures = true

[objective]
minimize = "network.fct_p99"

[[rule]]
name = "fast"
when = "network.max_link_utilization < 0.70"
hold = "12 s"
set = { cc = "bbr" }
guard = { revert_if = "host.drop_rate > 0.05", hold = "20 s" }

[rollout]
fraction = 0.5
"#;

/// What came of a storm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What happened.
    pub log: String,
    /// What did not hold, at the first time.
    pub violation: Option<Violation>,
    /// What shows that a storm is none in a glass of water.
    pub counts: Counts,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// CUEs that agents took.
    pub taken: u64,
    /// Messages that they refused.
    pub refused: u64,
    /// Times that a guard reverted.
    pub reverted: u64,
    /// Times that one of the enforcer's did.
    pub enforcer_reverted: u64,
    /// Steps of hosts behind the enforcer with a rule in force.
    pub enforced: u64,
    /// Decisions after a rollback.
    pub over: u64,
    /// Agents and Oracles that were started.
    pub starts: u64,
}

/// A policy, with the algorithms that storms know.
pub fn parse(name: &str, text: &str) -> Result<Policy, String> {
    let measures = Measures { loss: true, ..Measures::default() };
    let algorithm = |name| AlgorithmFacts { name, measures, needs_ecn: false };
    let known = Known { algorithms: &[algorithm("cubic"), algorithm("bbr")] };
    Policy::parse(name, text, known).map_err(|error| error.render(false))
}

/// Runs a storm until something does not hold.
pub fn run(plan: &Plan) -> Outcome {
    let mut world = World::new(plan);
    let mut now = Time::ZERO;
    while now < LASTS && world.violation.is_none() {
        world.tick(now);
        now += TICK;
    }
    world.end();
    Outcome { log: world.log, violation: world.violation, counts: world.counts }
}

/// Everything in a storm.
pub struct World<'a> {
    plan: &'a Plan,
    folder: TempDir,
    random: Random,
    key: OracleKey,
    around: Around,
    hosts: Vec<SimulatedHost>,
    /// If hosts are behind one.
    enforcer: Option<SimulatedEnforcer>,
    oracles: Vec<SimulatedOracle>,
    checks: Checks,
    /// What went wrong in the last tick.
    before: Vec<Kind>,
    /// Since when an Oracle runs and reaches the store.
    steady: Vec<Time>,
    measured_at: Time,
    log: String,
    violation: Option<Violation>,
    counts: Counts,
    now: Time,
}

impl World<'_> {
    /// A member of the fleet.
    pub fn member(name: &str, role: Role) -> Peer {
        Peer::Member(Arc::new(Member { name: name.to_string(), role, hosts: Vec::new() }))
    }

    fn new(plan: &Plan) -> World<'_> {
        let mut random = Random(plan.seed ^ 0x5743_544f_524d);
        // state files are written and read as on a disk, which need not be one
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let folder = folder.expect("a folder for temporary files");
        let key = OracleKey::from_secret([7; 32]);
        let secret = folder.path().join("key");
        let public = folder.path().join("key.pub");
        for (path, text) in [(&secret, key.to_hex()), (&public, key.public().to_hex())] {
            let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file of the storm");
        }
        let at = |name: String| -> PathBuf { folder.path().join(name) };
        let hosts = (0..plan.hosts).map(|i| SimulatedHost::new(i, at(format!("h{i}")), random.next()));
        let hosts: Vec<SimulatedHost> = hosts.collect();
        let oracles = (0..plan.oracles)
            .map(|i| SimulatedOracle::new(i, at(format!("oracle-{i}")), secret.clone(), random.next()))
            .collect();
        let ends = plan.hosts + usize::from(plan.behind > 0);
        let net = Rc::new(RefCell::new(Net::new(Random(random.next()), ends, plan.oracles)));
        let behind = plan.hosts..plan.hosts + plan.behind;
        let enforcer = (plan.behind > 0).then(|| {
            let places = (at("enforcer".into()), public);
            SimulatedEnforcer::new(behind.clone(), places, (net.clone(), plan.hosts), random.next())
        });
        let shelf = (plan.oracles > 1).then(|| Arc::new(Mutex::new(Shelf::default())));
        let checks = Checks::new(key.public().into(), (0..behind.end).map(|host| format!("h{host}")));
        World {
            plan,
            folder,
            random,
            key,
            around: Around { net, shelf },
            hosts,
            enforcer,
            oracles,
            checks,
            before: Vec::new(),
            steady: vec![Time::NEVER; plan.oracles],
            measured_at: Time::ZERO,
            log: String::new(),
            violation: None,
            counts: Counts::default(),
            now: Time::ZERO,
        }
    }

    fn say(&mut self, line: &str) {
        let root = self.folder.path().display().to_string();
        writeln!(self.log, "{} {}", self.now, line.replace(&root, "")).expect("a text takes what is written");
    }

    fn tick(&mut self, now: Time) {
        self.now = now;
        self.checks.tick(now);
        let wrong: Vec<Kind> = self.plan.at(now).collect();
        self.clocks(&wrong);
        self.weather(&wrong);
        self.begin_and_end(&wrong);
        self.attack(&wrong);
        self.around.net.borrow_mut().arrive(now);
        self.step_oracles(&wrong);
        self.step_hosts();
        self.step_enforcer();
        self.collect(&wrong);
        self.before = wrong;
        if let Some(violation) = self.checks.violation() {
            self.say(&violation.to_string());
            self.violation = Some(violation);
        }
    }

    fn clocks(&mut self, wrong: &[Kind]) {
        self.hosts.iter_mut().for_each(|host| host.tick(self.now));
        self.enforcer.iter_mut().for_each(|enforcer| enforcer.tick(self.now));
        for (i, oracle) in self.oracles.iter_mut().enumerate() {
            let hours = wrong.iter().find_map(|kind| match kind {
                Kind::WallClock(of, hours) if *of == i => Some(*hours),
                _ => None,
            });
            oracle.tick(self.now, hours.unwrap_or(0));
        }
        // half a minute is old enough for a disk or a store that comes back as it was
        if self.now.as_ns().is_multiple_of(30_000_000_000) {
            self.hosts.iter_mut().for_each(SimulatedHost::keep);
            self.enforcer.iter_mut().for_each(SimulatedEnforcer::keep);
            self.oracles.iter_mut().for_each(SimulatedOracle::keep);
            self.on_shelf(Shelf::keep);
        }
    }

    fn on_shelf(&mut self, with: impl FnOnce(&mut Shelf)) {
        if let Some(shelf) = &self.around.shelf {
            with(&mut shelf.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// How the bus and the store fail.
    fn weather(&mut self, wrong: &[Kind]) {
        let mut weather = Weather::default();
        let mut cut = Vec::new();
        for kind in wrong {
            match *kind {
                Kind::Loss(percent) => weather.loss = percent,
                Kind::Twice(percent) => weather.twice = percent,
                Kind::Damage(percent) => weather.damage = percent,
                Kind::Delay(most) => weather.delay = most,
                Kind::HostCut(host) => weather.hosts_cut.push(host),
                Kind::EnforcerCut => weather.hosts_cut.push(self.plan.hosts),
                Kind::OracleCut(oracle) => weather.oracles_cut.push(oracle),
                Kind::StoreCut(oracle) => cut.push(oracle),
                _ => {}
            }
        }
        for (i, host) in self.hosts.iter_mut().enumerate() {
            host.is_lying = wrong.contains(&Kind::Lies(i));
            host.is_losing = wrong.contains(&Kind::Losses(i));
            host.fill(wrong.contains(&Kind::AgentFull(i)));
        }
        if let Some(enforcer) = &mut self.enforcer {
            enforcer.fail(self.now, wrong.contains(&Kind::EnforcerFull), wrong.contains(&Kind::EnforcerHung));
            enforcer.lose(|host| wrong.contains(&Kind::PathLosses(host)));
        }
        for (i, oracle) in self.oracles.iter_mut().enumerate() {
            oracle.fill(wrong.contains(&Kind::OracleFull(i)));
            if oracle.daemon.is_none() || cut.contains(&i) {
                self.steady[i] = Time::NEVER;
            } else {
                self.steady[i] = self.steady[i].min(self.now);
            }
        }
        self.around.net.borrow_mut().weather = weather;
        self.on_shelf(|shelf| shelf.cut = cut);
    }

    /// Processes that are killed and started, and disks between.
    fn begin_and_end(&mut self, wrong: &[Kind]) {
        let fresh: Vec<Kind> = wrong.iter().filter(|kind| !self.before.contains(kind)).copied().collect();
        for kind in fresh {
            match kind {
                Kind::AgentDown(host, disk) => self.end_agent(host, disk, true),
                Kind::BothDown(host, disk) => self.end_agent(host, disk, false),
                Kind::Reboot(host) => {
                    self.say(&format!("h{host} is restarted"));
                    self.forget_what_is_not_stored(host);
                    self.hosts[host].reboot(self.now);
                }
                Kind::OracleDown(oracle, disk) => self.end_oracle(oracle, disk),
                Kind::StoreOld | Kind::StoreLost => {
                    self.on_shelf(if kind == Kind::StoreOld { Shelf::go_back } else { Shelf::lose });
                    self.checks.forget(STORE);
                    self.say(&format!("{kind:?}"));
                }
                kind => self.end_enforcer(kind),
            }
        }
        self.begin_enforcer(wrong);
        for host in 0..self.hosts.len() {
            let is_down = |kind: &Kind| matches!(kind, Kind::AgentDown(of, _) | Kind::BothDown(of, _) if *of == host);
            if self.hosts[host].life.is_none() && !wrong.iter().any(is_down) {
                let keys = self.key.public().into();
                let was_damaged = self.hosts[host].start(&keys);
                self.checks.begin_life(host, was_damaged);
                self.counts.starts += 1;
                self.say(&format!("the agent of h{host} starts{}", if was_damaged { " anew" } else { "" }));
            }
        }
    }

    fn end_agent(&mut self, host: usize, disk: Disk, guardian: bool) {
        self.say(&format!("the agent of h{host} is killed; its disk: {disk:?}; its guardian lives: {guardian}"));
        self.hosts[host].kill(self.now, guardian);
        self.forget_what_is_not_stored(host);
        if self.hosts[host].harm(disk) {
            self.checks.begin_life(host, true);
        }
    }

    /// What a full disk did not take ends with the agent.
    fn forget_what_is_not_stored(&mut self, host: usize) {
        if self.hosts[host].is_full {
            self.checks.forget_reverts(host);
        }
    }

    /// The enforcer is killed, with its machine or alone, or another prepares to take its place.
    fn end_enforcer(&mut self, kind: Kind) {
        let Some(enforcer) = &mut self.enforcer else { return };
        match kind {
            Kind::EnforcerDown(_) => enforcer.kill(),
            Kind::EnforcerReboot => enforcer.reboot(self.now),
            Kind::EnforcerReplaced => return enforcer.prepare(),
            _ => return,
        }
        let is_forgetful = enforcer.is_forgetful(self.now);
        let is_harmed = matches!(kind, Kind::EnforcerDown(disk) if enforcer.harm(disk));
        for host in self.plan.hosts..self.plan.hosts + self.plan.behind {
            if is_forgetful {
                self.checks.forget_reverts(host);
            }
            if is_harmed {
                self.checks.begin_life(host, true);
            }
        }
        self.say(&format!("the enforcer is killed: {kind:?}"));
    }

    /// The enforcer is started, or another takes its place.
    fn begin_enforcer(&mut self, wrong: &[Kind]) {
        let Some(enforcer) = &mut self.enforcer else { return };
        if self.before.contains(&Kind::EnforcerReplaced) && !wrong.contains(&Kind::EnforcerReplaced) {
            enforcer.replace(self.now);
        }
        if enforcer.is_running() || wrong.iter().any(|kind| matches!(kind, Kind::EnforcerDown(_))) {
            return;
        }
        let was_damaged = enforcer.start();
        (self.plan.hosts..self.plan.hosts + self.plan.behind)
            .for_each(|host| self.checks.begin_life(host, was_damaged));
        self.counts.starts += 1;
        self.say(&format!("the enforcer starts{}", if was_damaged { " anew" } else { "" }));
    }

    fn end_oracle(&mut self, oracle: usize, disk: Disk) {
        self.say(&format!("Oracle {oracle} is killed; its disk: {disk:?}"));
        self.oracles[oracle].kill(&self.around.net);
        if self.oracles[oracle].harm(disk) {
            self.checks.forget(oracle);
        }
    }

    fn attack(&mut self, wrong: &[Kind]) {
        if wrong.contains(&Kind::Replay) {
            self.around.net.borrow_mut().replay();
        }
        if wrong.contains(&Kind::Forge) {
            let host = self.random.below(self.hosts.len() as u64 + u64::from(self.enforcer.is_some())) as usize;
            let cue = Cue {
                epoch: self.random.below(1 << 20),
                id: self.random.below(10) as u32,
                policy: "storm".into(),
                rule: "fast".into(),
                rank: 0,
                lifetime: Time::from_secs(1000),
                scope: CueScope::default(),
                set: Settings { cc: Some("bbr".into()), ..Settings::default() },
                guard: None,
                reason: String::new(),
            };
            let forged = OracleKey::from_secret([8; 32]).sign(&cue);
            self.around.net.borrow_mut().inject(host, forged);
        }
    }

    fn step_oracles(&mut self, wrong: &[Kind]) {
        for i in 0..self.oracles.len() {
            let mut lines = Vec::new();
            let mut say = |line: &str| lines.push(format!("Oracle {i}: {line}"));
            let is_down = |kind: &Kind| matches!(kind, Kind::OracleDown(of, _) if *of == i);
            if self.oracles[i].daemon.is_none() && !wrong.iter().any(is_down) {
                self.counts.starts += 1;
                if self.oracles[i].start(self.now, &self.around, &mut say) {
                    self.checks.forget(i);
                }
            }
            let sent = self.oracles[i].step(self.now, &self.around.net, &mut say);
            for line in &lines {
                self.say(line);
            }
            for sent in sent {
                let names: Vec<String> = sent.cues.iter().map(|cue| format!("{:?}", cue.scope.hosts)).collect();
                self.say(&format!("Oracle {i} sends epoch {}, over: {}, {names:?}", sent.epoch, sent.rolled_back));
                self.counts.over += u64::from(sent.rolled_back);
                self.checks.sent(&sent, self.plan.oracles > 1);
            }
            self.checks.learn(i, self.steady[i]);
        }
    }

    fn step_hosts(&mut self) {
        for i in 0..self.hosts.len() {
            let messages = self.around.net.borrow_mut().take(i);
            let host = &mut self.hosts[i];
            let did = host.step(messages);
            let report = host.report(self.plan.hurts);
            let (name, peer) = (host.name.clone(), host.peer.clone());
            for (bytes, taken) in &did.took {
                self.counts.taken += u64::from(taken.is_ok());
                self.counts.refused += u64::from(taken.is_err());
                self.say(&format!("{name}: {} bytes: {taken:?}", bytes.len()));
            }
            self.counts.reverted += u64::from(did.judged.as_ref().is_some_and(|judged| !judged.is_empty()));
            self.checks.step(i, &did, &self.hosts[i].kernel);
            if did.set {
                self.say(&format!("{name}: set {:?}", self.hosts[i].kernel));
            }
            if let Some(error) = &did.ended {
                self.say(&format!("{name}: {error}"));
            }
            self.checks.kernel(i, self.hosts[i].boot.0, &self.hosts[i].kernel);
            if let Some(report) = report {
                self.around.net.borrow_mut().report(&peer, i, false, &report);
            }
        }
    }

    fn step_enforcer(&mut self) {
        let (first, now) = (self.plan.hosts, self.now);
        let Some(enforcer) = &mut self.enforcer else { return };
        let done = enforcer.step(now);
        self.checks.enforcer(first, &done);
        let mut lines = done.said;
        lines.extend(done.ended.map(|error| format!("the enforcer ends: {error}")));
        self.counts.enforcer_reverted += lines.iter().filter(|line| line.contains(REVERTING)).count() as u64;
        for server in 0..self.plan.behind {
            let in_force = enforcer.in_force(server);
            self.counts.enforced += in_force.len() as u64;
            self.checks.kernel(first + server, Time::ZERO, &in_force);
            if enforcer.is_judged(server) {
                self.checks
                    .violated(Invariant::Guard, format!("h{} loses segments and keeps its rule", first + server));
            }
        }
        enforcer.beyond().into_iter().for_each(|what| self.checks.violated(Invariant::Bounds, what));
        for complaint in enforcer.carry(now) {
            self.checks.violated(Invariant::Connection, complaint);
        }
        for line in &lines {
            self.say(line);
        }
    }

    /// What a collector says of the links.
    fn collect(&mut self, wrong: &[Kind]) {
        if wrong.contains(&Kind::Blind) || self.now < self.measured_at {
            return;
        }
        self.measured_at = self.now + Time::from_secs(1);
        let utilization = if wrong.contains(&Kind::Busy) { 0.9 } else { 0.3 };
        let link = Link {
            name: "tor1 up".into(),
            from: "tor1".into(),
            to: "core".into(),
            rate: Some(Rate::from_gbps(10)),
            utilization: Some(utilization),
            ..Link::default()
        };
        let measurement = Measurement { source: "tor1".into(), links: vec![link], ..Measurement::default() };
        let collector = World::member("tor1", Role::Collector);
        for message in measurement.to_messages() {
            self.around.net.borrow_mut().report(&collector, usize::MAX, true, &message);
        }
    }

    /// What is to hold at the end.
    fn end(&mut self) {
        let damages: Vec<String> = self.oracles.iter().filter_map(SimulatedOracle::audit).collect();
        if let (None, Some(damage)) = (&self.violation, damages.first()) {
            self.violation = Some(Violation { invariant: Invariant::Audit, at: self.now, what: damage.clone() });
        }
    }
}
