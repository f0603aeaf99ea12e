//! The Oracle's CUEs for hosts without an agent: the enforcer applies their settings to what these hosts send.

use crate::epoch::Keeper;
use crate::settings::{Place, bounded, config, covers, effective, is_total_alone, places, settings};
use bus::files::{FileError, KeyFile};
use bus::{Address, Bus, BusError, Clock, FctTimes, InForce, Report, Telemetry, Timetable};
use congestion::Algorithm;
use enforcer::{Enforcer, Record, Rule, Sent, Treatment};
use packet_io::OwnedFrame;
use policy::{Agent, AgentRule, COUNT_MAX, CueError, Gate, Host, Identity, Prefix, PublicKeys, SEGMENTS_MIN, Settings};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use units::{Rate, Time};

/// Interval of measurements, and of attempts to connect to the Oracle.
const LOOK: Time = Time::from_secs(1);
/// Periods in which nothing came from an Oracle, on a bus that one alone listens to, after which another is looked for.
const SILENCE: u64 = 3;
/// Reports of a host on earlier periods that wait for an Oracle; older ones are lost.
const WAITING_MAX: usize = 2;
/// Retransmissions are counted over at most this long.
const WINDOW_MAX: Time = Time::from_secs(60);
/// CUEs accepted in one call, before any takes effect.
const BATCH: usize = 1024;
/// Rules of which ended flows are counted apart; what is more is counted as `other`.
const KINDS_MAX: usize = 256;

/// A host whose CUEs the enforcer takes.
#[derive(Clone, Debug)]
pub struct Behalf {
    /// Its name in policies.
    pub name: String,
    /// Its addresses.
    pub prefix: Prefix,
    /// Its labels, for `match.labels` of policies.
    pub labels: BTreeMap<String, String>,
}

/// The Oracle's socket and key, and the file that must outlive a restart.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where it meets the Oracle.
    pub bus: Address,
    /// The file of its public keys.
    pub key: PathBuf,
    /// The file of the highest epoch seen.
    pub epoch: PathBuf,
}

/// The state of the exchange with the Oracle.
pub struct Cues {
    address: Address,
    keys: PublicKeys,
    file: KeyFile,
    clock: Clock,
    hosts: Vec<Represented>,
    bus: Option<Box<dyn Bus>>,
    next: Time,
    /// When the Oracle was heard last.
    heard_at: Time,
    epochs: Keeper,
    /// The rules have changed since [`Cues::rules`] was last called.
    changed: bool,
    /// The settings that [`Cues::rules`] returned last, by servers.
    set: Vec<(Prefix, Place, Settings)>,
}

struct Represented {
    host: Behalf,
    agent: Agent,
    /// Its flows that ended in the current period since the last report, by rule.
    ended: BTreeMap<String, Ended>,
    /// Those of earlier periods that are not reported yet, with the epochs of these.
    earlier: VecDeque<(u64, BTreeMap<String, Ended>)>,
    timetable: Timetable,
    notes: Vec<String>,
    measured: Measured,
    /// CUEs in force at the last measurement.
    watched: usize,
}

/// What a host's flows send.
#[derive(Default)]
struct Measured {
    /// By flows that have ended, since the start.
    ended: Sent,
    /// By all flows; `before` is the same at the start of the measurement.
    all: Sent,
    before: Sent,
    begun_at: Time,
    host: Host,
    /// Flows that come to the host.
    incoming: usize,
}

impl Measured {
    /// `open`: sent by open flows.
    fn sample(&mut self, now: Time, open: Sent) {
        self.all = open;
        self.all += self.ended;
        let since = |all: u64, before: u64| all.saturating_sub(before);
        let sent = since(self.all.segments, self.before.segments);
        let took = now.saturating_sub(self.begun_at);
        self.host.live_flows = Some(open.flows as f64);
        self.host.sent_segments = Some(sent);
        self.host.retransmitted_segments = Some(since(self.all.retransmits, self.before.retransmits));
        if took > Time::ZERO {
            let bits = since(self.all.bytes, self.before.bytes) as f64 * 8.0;
            self.host.send_rate = Some(Rate::from_bps((bits / took.as_secs_f64()) as u64));
        }
        if sent >= SEGMENTS_MIN || took >= WINDOW_MAX {
            self.begin(now);
        }
    }

    /// Starts a measurement: what was sent so far no longer counts.
    fn begin(&mut self, now: Time) {
        (self.before, self.begun_at) = (self.all, now);
    }
}

#[derive(Default)]
struct Ended {
    flows: u64,
    bytes: u64,
    segments: u64,
    retransmits: u64,
    times: FctTimes,
}

impl Represented {
    /// With nothing in force.
    fn new(host: &Behalf, keys: PublicKeys, highest: Option<u64>) -> Represented {
        let identity = Identity { host: host.name.clone(), labels: host.labels.clone() };
        let agent = Agent::new(Gate::new(keys, identity, highest));
        Represented {
            host: host.clone(),
            agent,
            ended: BTreeMap::new(),
            earlier: VecDeque::new(),
            timetable: Timetable::new(&host.name),
            notes: Vec::new(),
            measured: Measured::default(),
            watched: 0,
        }
    }

    /// Takes a message of the Oracle's; returns whether rules changed. A beacon ends the count of flows.
    fn take(&mut self, now: Time, message: &[u8], say: &mut dyn FnMut(&str)) -> bool {
        match self.agent.on_cue(now, message) {
            Ok(anew) => {
                if let Some(of_epoch) = self.timetable.heard(now, self.agent.beacon()) {
                    self.earlier.push_back((of_epoch, mem::take(&mut self.ended)));
                    if self.earlier.len() > WAITING_MAX {
                        self.earlier.pop_front();
                    }
                }
                return anew;
            }
            Err(CueError::NotOurs) => {}
            Err(error) if self.agent.counts().rejected.is_power_of_two() => {
                say(&format!("CUE for {} rejected: {error}", self.host.name));
            }
            Err(_) => {}
        }
        false
    }

    /// The report on flows that have `ended`, in the period of `of_epoch`.
    fn report(&self, now: Time, ended: &BTreeMap<String, Ended>, of_epoch: Option<u64>) -> Report {
        let held = self.agent.rules();
        let flows = (self.measured.host.live_flows.unwrap_or(0.0) as usize, self.measured.incoming);
        let in_force = held.iter().map(|rule| InForce {
            effective: effective(rule, &settings(&held, rule.sessions.remote, rule.sessions.port), flows),
            left: rule.deadline.saturating_sub(now),
            policy: rule.policy.clone(),
            rule: rule.rule.clone(),
        });
        let telemetry = ended.iter().map(|(group, ended)| Telemetry {
            group: group.clone(),
            remote_rack: String::new(),
            size: "all".to_string(),
            flows: ended.flows,
            bytes: ended.bytes,
            segments: ended.segments,
            retransmits: ended.retransmits,
            fct_us: ended.times.bins(),
        });
        Report {
            host: Host {
                name: self.host.name.clone(),
                labels: self.host.labels.clone(),
                algorithms: Algorithm::builtins().iter().map(|one| one.name().to_string()).collect(),
                ..self.measured.host.clone()
            },
            question: self.agent.question(),
            epoch: self.agent.highest(),
            of_epoch,
            counts: self.agent.counts(),
            in_force: in_force.collect(),
            telemetry: telemetry.collect(),
            notes: self.notes.clone(),
            ..Report::default()
        }
    }

    /// Reports: first on earlier periods, then on the current one if that is due.
    fn send(&mut self, now: Time, bus: &mut dyn Bus) -> Result<(), BusError> {
        let (is_late, has_current) = (!self.earlier.is_empty(), self.timetable.has_current(now));
        while let Some((of_epoch, ended)) = self.earlier.front() {
            deliver(bus, &self.report(now, ended, Some(*of_epoch)))?;
            self.earlier.pop_front();
        }
        if has_current {
            deliver(bus, &self.report(now, &self.ended, self.timetable.epoch()))?;
            self.ended.clear();
        } else if !is_late {
            // what was measured goes without it
            deliver(bus, &self.report(now, &BTreeMap::new(), None))?;
        }
        Ok(())
    }
}

/// Sends a report. One that would be refused another time too is lost.
fn deliver(bus: &mut dyn Bus, report: &Report) -> Result<(), BusError> {
    match bus.send(&report.clone().to_bytes()) {
        Err(error @ (BusError::Full | BusError::Gone)) => Err(error),
        _ => Ok(()),
    }
}

impl Cues {
    /// With nothing in force.
    ///
    /// # Errors
    /// The Oracle's keys, or the highest epoch so far, cannot be read.
    pub fn new(hosts: &[Behalf], places: Places) -> Result<Cues, FileError> {
        let ((file, keys), epochs) = (KeyFile::read(&places.key)?, Keeper::begin(places.epoch)?);
        let hosts = hosts.iter().map(|host| Represented::new(host, keys.clone(), epochs.highest())).collect();
        Ok(Cues {
            address: places.bus,
            keys,
            file,
            clock: Clock::begin(),
            hosts,
            bus: None,
            next: Time::ZERO,
            heard_at: Time::ZERO,
            epochs,
            changed: false,
            set: Vec::new(),
        })
    }

    /// Discards all CUEs and starts a new clock.
    pub fn begin_anew(&mut self) {
        for host in &mut self.hosts {
            *host = Represented::new(&host.host, self.keys.clone(), self.epochs.highest());
        }
        (self.clock, self.next, self.heard_at, self.bus) = (Clock::begin(), Time::ZERO, Time::ZERO, None);
        (self.changed, self.set) = (false, Vec::new());
    }

    /// Handles messages, expiry, measurements and reports; returns whether the rules changed. Call it ten times a second.
    ///
    /// # Errors
    /// The epoch cannot be stored; its CUEs must not take effect then.
    pub fn look(&mut self, enforcer: &Enforcer<OwnedFrame>, say: &mut dyn FnMut(&str)) -> Result<bool, FileError> {
        let now = self.clock.now();
        self.changed |= self.listen(now, say);
        for host in &mut self.hosts {
            self.changed |= host.agent.on_timer(now);
        }
        let highest = self.hosts.iter().filter_map(|host| host.agent.highest()).max();
        if !self.epochs.keeps(highest)? {
            // CUEs take effect, and are reported, only once their epoch is on disk
            return Ok(false);
        }
        if self.next <= now {
            self.next = now + LOOK;
            self.trust(say);
            self.leave_the_silent(now, say);
            if self.bus.is_none() {
                self.connect(now, say);
            }
            self.changed |= self.measure(now, enforcer, say);
        }
        self.report(now, say);
        Ok(mem::take(&mut self.changed))
    }

    /// Reads the Oracle's keys anew where their file has changed.
    fn trust(&mut self, say: &mut dyn FnMut(&str)) {
        match self.file.anew() {
            None => {}
            Some(Ok(keys)) => {
                self.keys = keys;
                self.hosts.iter_mut().for_each(|host| host.agent.trust(self.keys.clone()));
                say("the Oracle's keys were replaced");
            }
            Some(Err(error)) => say(&format!("the Oracle's keys remain as they were: {error}")),
        }
    }

    /// Measures what each host sends and checks guards; returns whether one has reverted something.
    fn measure(&mut self, now: Time, enforcer: &Enforcer<OwnedFrame>, say: &mut dyn FnMut(&str)) -> bool {
        let mut open = vec![Sent::default(); self.hosts.len()];
        for (server, sent) in enforcer.sent() {
            let its = self.hosts.iter().position(|host| host.host.prefix.contains(server.ip()));
            if let Some(at) = its {
                open[at] += sent;
            }
        }
        for host in &mut self.hosts {
            let here = enforcer.clients().filter(|client| host.host.prefix.contains(client.ip()));
            host.measured.incoming = here.count();
        }
        let mut changed = false;
        for (host, open) in self.hosts.iter_mut().zip(open) {
            host.measured.sample(now, open);
            let in_force = host.agent.rules().len();
            if in_force > host.watched {
                // a CUE that is new or released must not be judged by earlier losses
                host.measured.begin(now);
            } else if host.agent.on_measured(now, &host.measured.host) {
                let Host { sent_segments, retransmitted_segments, .. } = &host.measured.host;
                let (retransmitted, sent) = (retransmitted_segments.unwrap_or(0), sent_segments.unwrap_or(0));
                say(&format!(
                    "{}: a guard has reverted: {retransmitted} of {sent} segments were retransmitted",
                    host.host.name
                ));
                changed = true;
            }
            host.watched = host.agent.rules().len();
        }
        changed
    }

    /// Connects to the Oracle and asks for its current epoch; until the answer, no CUE is accepted.
    fn connect(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let Ok(bus) = self.address.connect() else { return };
        self.heard_at = now;
        for host in &mut self.hosts {
            match bus::random() {
                Ok(question) => {
                    host.agent.ask(question);
                    host.timetable.asked(now);
                }
                Err(error) => return say(&format!("cannot make a nonce to ask the Oracle with: {error}")),
            }
        }
        self.bus = Some(bus);
    }

    /// Leaves an Oracle that has announced periods and says nothing any more: it may be stopped, and another in its place.
    fn leave_the_silent(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let period = self.hosts.first().and_then(|host| host.timetable.period());
        let Some(period) = period.filter(|_| self.bus.is_some() && !self.address.is_shared()) else { return };
        if now >= self.heard_at + period * SILENCE {
            say(&format!("the Oracle was silent for {SILENCE} periods: looking for another"));
            self.bus = None;
        }
    }

    fn listen(&mut self, now: Time, say: &mut dyn FnMut(&str)) -> bool {
        let mut changed = false;
        for _ in 0..BATCH {
            let Some(bus) = &mut self.bus else { break };
            match bus.receive(Duration::ZERO) {
                Ok(Some(message)) => {
                    self.heard_at = now;
                    for host in &mut self.hosts {
                        changed |= host.take(now, &message, say);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    if !matches!(error, BusError::Gone) {
                        say(&error.to_string());
                    }
                    self.bus = None;
                }
            }
        }
        changed
    }

    /// The enforcer's rules by the CUEs in force, host by host, in order; `None` if they have not changed.
    pub fn rules(&mut self) -> Option<Vec<Rule>> {
        let (mut rules, mut totals, mut set) = (Vec::new(), Vec::new(), Vec::new());
        for host in &mut self.hosts {
            host.notes.clear();
            let held = host.agent.rules();
            for AgentRule { policy, rule, sessions, .. } in &held {
                let cgroup = sessions.cgroup.iter();
                let note = |cgroup| format!("{policy}/{rule}: packets do not show their cgroup ({cgroup})");
                host.notes.extend(cgroup.map(note));
            }
            for (clients, port) in places(&held) {
                let settings = settings(&held, clients, port);
                if let Some(rule) = bounded(&settings, host.host.prefix, (clients, port)) {
                    totals.push(rule);
                }
                if is_total_alone(&settings) {
                    set.push((host.host.prefix, (clients, port), settings));
                    continue;
                }
                match config(&settings) {
                    Ok(config) => {
                        let servers = host.host.prefix;
                        set.push((servers, (clients, port), settings));
                        let servers = Some(servers);
                        let treatment = Treatment::Enforce(Arc::new(config));
                        rules.push(Rule { servers, clients, port, dscp: None, treatment, window_total: None });
                    }
                    Err(why) => {
                        let names = held.iter().filter(|rule| covers(rule, clients, port));
                        let names: Vec<String> = names.map(|rule| format!("{}/{}", rule.policy, rule.rule)).collect();
                        host.notes.push(format!("{}: {why}", names.join(", ")));
                    }
                }
            }
        }
        // the servers' own rules say how they send to those clients
        rules.append(&mut totals);
        // a renewed CUE changes nothing
        let is_new = set != self.set;
        self.set = set;
        is_new.then_some(rules)
    }

    /// Counts a flow that has ended.
    pub fn ended(&mut self, record: &Record) {
        let address = record.server.ip();
        let Some(host) = self.hosts.iter_mut().find(|host| host.host.prefix.contains(address)) else { return };
        let rules = host.agent.rules();
        let fits = |rule: &&AgentRule| {
            rule.set.cc.as_ref() == Some(&record.algorithm)
                && rule.sessions.contains(record.client.ip(), record.server.port, "")
        };
        let name =
            rules.iter().find(fits).map_or("default".to_string(), |rule| format!("{}/{}", rule.policy, rule.rule));
        let is_new = host.ended.len() >= KINDS_MAX && !host.ended.contains_key(&name);
        let kind = host.ended.entry(if is_new { "other".to_string() } else { name }).or_default();
        host.measured.ended += Sent {
            // open flows are counted elsewhere
            flows: 0,
            bytes: record.bytes_acked,
            segments: record.data_segments_sent.into(),
            retransmits: record.retransmits.into(),
        };
        kind.flows += 1;
        kind.bytes = kind.bytes.saturating_add(record.bytes_acked).min(COUNT_MAX);
        kind.segments += u64::from(record.data_segments_sent);
        kind.retransmits += u64::from(record.retransmits.min(record.data_segments_sent));
        kind.times.record(record.ended.saturating_sub(record.began).as_us());
    }

    /// Reports each host to the Oracle at its time; a report that cannot be sent is repeated the next time.
    fn report(&mut self, now: Time, say: &mut dyn FnMut(&str)) {
        let Some(bus) = &mut self.bus else { return };
        self.hosts.iter().filter_map(|host| host.agent.highest()).for_each(|epoch| bus.heard(epoch));
        for host in self.hosts.iter_mut().filter(|host| host.timetable.is_due(now)) {
            let sent = host.send(now, &mut **bus);
            host.timetable.reported(now);
            match sent {
                // a busy Oracle gets these flows with the next report
                Ok(()) | Err(BusError::Full) => {}
                Err(BusError::Gone) => {
                    self.bus = None;
                    return;
                }
                Err(error) => say(&error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::files::{generate, secret_key};
    use bus::{Hub as _, UnixOracle};
    use enforcer::{End, Limits};
    use policy::{Addressees, Cue, CueGuard, CueScope, OracleKey, Sessions};
    use std::path::Path;
    use std::thread;
    use units::Bytes;

    fn record() -> Record {
        let end = |address: &str, port| End::new(address.parse().expect("an address"), port);
        Record {
            server: end("10.0.0.1", 80),
            client: end("10.9.9.9", 40_000),
            began: Time::ZERO,
            ended: Time::from_ms(5),
            ending: None,
            bytes_acked: 1000,
            data_segments_sent: 1,
            retransmits: 0,
            rtos: 0,
            delivered: 1,
            delivered_ce: 0,
            absorbed: 0,
            hidden: 0,
            srtt_us: 1000,
            min_rtt_us: 1000,
            cwnd: 10,
            algorithm: "bbr".to_string(),
        }
    }

    /// An Oracle, its key, and who takes its CUEs for 10.0.0.0/8.
    fn oracle(folder: &Path) -> (UnixOracle, OracleKey, Cues) {
        let at = |name: &str| folder.join(name);
        let key = generate(&at("key")).expect("a key");
        let oracle = UnixOracle::listen(&at("oracle")).expect("a socket");
        let places = Places { bus: Address::Unix(at("oracle")), key, epoch: at("epoch") };
        let prefix = "10.0.0.0/8".parse().expect("a prefix");
        let host = Behalf { name: "h".to_string(), prefix, labels: BTreeMap::new() };
        let cues = Cues::new(&[host], places).expect("nothing is stored yet");
        (oracle, secret_key(&at("key")).expect("it was just made"), cues)
    }

    /// A CUE for every host, without a guard.
    fn cue(set: Settings) -> Cue {
        Cue {
            epoch: 1,
            id: 0,
            policy: "p".to_string(),
            rule: "r".to_string(),
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
            reason: "a test".to_string(),
        }
    }

    /// The Oracle answers the host's question, and sends a CUE.
    fn send((oracle, key): (&mut UnixOracle, &OracleKey), cue: &Cue, cues: &mut Cues) {
        cues.look(&Enforcer::new(Limits::default(), Vec::new(), 1), &mut |_| {}).expect("a disk");
        let asked = oracle.receive(Duration::from_secs(5)).expect("a bus").expect("it reports at once");
        let question = Report::from_bytes(&asked.bytes).expect("a report").question.expect("no answer yet");
        oracle.send(&key.answer(0, &[question])).expect("it listens");
        oracle.send(&key.sign(cue)).expect("it listens");
    }

    #[test]
    fn a_total_bounds_what_comes_to_a_host_however_it_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut oracle, key, mut cues) = oracle(folder.path());
        let set = Settings { window_total: Some(Bytes::new(130_000)), ..Settings::default() };
        send((&mut oracle, &key), &cue(set), &mut cues);
        let enforcer = Enforcer::new(Limits::default(), Vec::new(), 1);
        let until = cues.clock.now() + Time::from_secs(10);
        while !cues.look(&enforcer, &mut |_| {}).expect("a disk") && cues.clock.now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        let rules = cues.rules().expect("they have changed");
        let [Rule { servers: None, clients, port: None, window_total, treatment: Treatment::Enforce(config), .. }] =
            &rules[..]
        else {
            panic!("{rules:?}")
        };
        assert_eq!(
            (clients.map(|prefix| prefix.to_string()), *window_total),
            (Some("10.0.0.0/8".to_string()), Some(Bytes::new(130_000)))
        );
        assert_eq!((config.algorithm.name(), cues.hosts[0].notes.len()), ("cubic", 0));
        assert!(cues.rules().is_none(), "nothing has changed since");
    }

    #[test]
    fn a_guard_takes_back_what_its_cue_set_and_holds_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut oracle, key, mut cues) = oracle(folder.path());
        let enforcer = Enforcer::new(Limits::default(), Vec::new(), 1);
        let guard = CueGuard { revert_if: "host.drop_rate > 0.02".to_string(), hold: Time::from_secs(2) };
        let cue = Cue { guard: Some(guard), ..cue(Settings { cc: Some("bbr".to_string()), ..Settings::default() }) };
        send((&mut oracle, &key), &cue, &mut cues);
        // rules there are when they change
        let changes = |cues: &mut Cues| {
            let until = cues.clock.now() + Time::from_secs(10);
            while cues.clock.now() < until {
                if cues.look(&enforcer, &mut |_| {}).expect("a disk") {
                    return cues.rules().map(|rules| rules.len());
                }
                thread::sleep(Duration::from_millis(10));
            }
            None
        };
        assert_eq!(changes(&mut cues), Some(1));
        while cues.hosts[0].watched == 0 {
            assert!(!cues.look(&enforcer, &mut |_| {}).expect("a disk"), "nothing was sent, so no guard reverts");
            thread::sleep(Duration::from_millis(10));
        }
        let times = |cues: &Cues| cues.hosts[0].agent.counts().reverted;
        cues.ended(&Record { data_segments_sent: 2000, retransmits: 200, ..record() });
        assert_eq!((changes(&mut cues), times(&cues)), (Some(0), 1), "a tenth was retransmitted");
        assert_eq!((changes(&mut cues), times(&cues)), (Some(1), 1), "the hold time is over");
    }

    #[test]
    fn what_a_busy_oracle_refuses_is_reported_later() {
        const FLOWS: u64 = 5000;
        let folder = tempfile::tempdir().expect("a folder");
        let (mut oracle, _, mut cues) = oracle(folder.path());
        cues.connect(Time::ZERO, &mut |_| {});
        for second in 0..FLOWS {
            cues.ended(&record());
            cues.report(Time::from_secs(second), &mut |_| {});
        }
        let mut reported = || {
            let mut flows = 0;
            while let Some(message) = oracle.receive(Duration::ZERO).expect("the enforcer is there") {
                let report = Report::from_bytes(&message.bytes).expect("a report");
                flows += report.telemetry.iter().map(|kind| kind.flows).sum::<u64>();
            }
            flows
        };
        let before = reported();
        assert!(before < FLOWS, "the Oracle accepted everything");
        cues.report(Time::from_secs(FLOWS), &mut |_| {});
        assert_eq!(before + reported(), FLOWS);
    }

    #[test]
    fn flows_of_more_rules_than_a_report_holds_are_counted_as_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let (_oracle, _, mut cues) = oracle(folder.path());
        cues.hosts[0].ended = (0..KINDS_MAX).map(|i| (format!("p/{i}"), Ended::default())).collect();
        for _ in 0..3 {
            cues.ended(&Record { bytes_acked: u64::MAX, retransmits: u32::MAX, ..record() });
        }
        let other = &cues.hosts[0].ended["other"];
        assert_eq!((cues.hosts[0].ended.len(), other.flows), (KINDS_MAX + 1, 3));
        assert_eq!((other.bytes, other.segments, other.retransmits), (COUNT_MAX, 3, 3), "as much as a report may say");
    }

    #[test]
    fn retransmissions_are_measured_over_enough_segments() {
        let mut measured = Measured::default();
        let sent = |segments, retransmits| Sent { flows: 3, bytes: segments * 1000, segments, retransmits };
        let second = |n| Time::from_secs(n);
        measured.sample(second(1), sent(900, 90));
        assert_eq!((measured.host.drop_rate(), measured.host.live_flows), (None, Some(3.0)));
        measured.sample(second(2), sent(2000, 100));
        assert_eq!((measured.host.drop_rate(), measured.host.send_rate), (Some(0.05), Some(Rate::from_bps(8_000_000))));
        // one flow ends, the others continue
        measured.ended += Sent { flows: 0, ..sent(2000, 100) };
        measured.sample(second(3), sent(1000, 0));
        assert_eq!(measured.host.drop_rate(), Some(0.0));
    }
}
