//! The Oracle's CUEs for hosts without an agent: the enforcer applies their settings to what these hosts send.

use crate::keeper::{Disk, Keeper};
use crate::represented::{Behalf, Represented};
use crate::settings::{Place, bounded, config, covers, is_total_alone, places, settings};
use bus::files::{FileError, KeyFile};
use bus::reverted::{self, Reverts};
use bus::{Address, Bus, BusError, Clock, Reasons};
use enforcer::{Enforcer, Packet, Record, Rule, Sent, Treatment};
use policy::{AgentRule, Host, Prefix, PublicKeys, Question, Settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};
use units::Time;

/// Interval of measurements, and of attempts to connect to the Oracle.
const LOOK: Time = Time::from_secs(1);
/// Periods in which nothing came from an Oracle, on a bus that one alone listens to, after which another is looked for.
const SILENCE: u64 = 3;
/// CUEs accepted in one call, before any takes effect.
const BATCH: usize = 1024;

/// The Oracle's socket and key, and the folder of what must outlive a restart.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where it meets the Oracle.
    pub bus: Address,
    /// The file of its public keys.
    pub key: PathBuf,
    /// The folder of the highest epoch seen, and of what guards have reverted.
    pub state: PathBuf,
}

/// What the machine gives.
pub struct Ends {
    /// Joins the bus.
    pub connect: Box<dyn FnMut() -> Result<Box<dyn Bus>, BusError>>,
    /// Random bytes to ask the Oracle with.
    pub question: Box<dyn FnMut() -> io::Result<Question>>,
    /// Its clock, just begun.
    pub clock: Clock,
    /// The number of the machine's start.
    pub boot: String,
}

impl Ends {
    /// This machine's, with the bus at `address`.
    ///
    /// # Errors
    /// The kernel does not say the number of the machine's start.
    pub fn of_machine(address: Address) -> io::Result<Ends> {
        Ok(Ends {
            connect: Box::new(move || address.connect()),
            question: Box::new(bus::random),
            clock: Clock::begin(),
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_string(),
        })
    }
}

/// What one enforcer gives another that takes its place.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Given {
    /// The highest epoch seen.
    #[prost(uint64, optional, tag = "1")]
    epoch: Option<u64>,
    /// What guards have reverted, as [`reverted::to_bytes`] writes it.
    #[prost(bytes = "vec", tag = "2")]
    reverted: Vec<u8>,
}

/// The state of the exchange with the Oracle.
pub struct Cues {
    ends: Ends,
    /// The bus may have several Oracles at a time.
    is_shared: bool,
    keys: PublicKeys,
    file: KeyFile,
    hosts: Vec<Represented>,
    bus: Option<Box<dyn Bus>>,
    next: Time,
    /// When the Oracle was heard last.
    heard_at: Time,
    keeper: Keeper,
    /// Why what guards have reverted is not on disk, as was said.
    forgetful: Reasons,
    /// The rules have changed since [`Cues::rules`] was last called.
    changed: bool,
    /// The settings that [`Cues::rules`] returned last, by servers.
    set: Vec<(Prefix, Place, Settings)>,
}

impl Cues {
    /// With nothing in force. The disk is to be turned, or to work in a thread of its own.
    ///
    /// # Errors
    /// The Oracle's keys, or what an earlier enforcer has left, cannot be read.
    pub fn begin(hosts: &[Behalf], places: &Places, ends: Ends) -> Result<(Cues, Disk), FileError> {
        let (file, keys) = KeyFile::read(&places.key)?;
        let (keeper, disk, reverts) = Keeper::begin(&places.state, &ends.boot, ends.clock)?;
        let mut cues = Cues {
            ends,
            is_shared: places.bus.is_shared(),
            hosts: hosts.iter().map(|host| Represented::new(host, keys.clone(), keeper.highest())).collect(),
            keys,
            file,
            bus: None,
            next: Time::ZERO,
            heard_at: Time::ZERO,
            keeper,
            forgetful: Reasons::default(),
            changed: false,
            set: Vec::new(),
        };
        cues.remember(reverts);
        Ok((cues, disk))
    }

    /// Discards all CUEs and starts a new clock. What guards have reverted stays so.
    pub fn begin_anew(&mut self) {
        let (before, clock) = (self.ends.clock, self.ends.clock.anew());
        let reverts = reverted::on_another_clock(&self.reverts(), before, clock);
        for host in &mut self.hosts {
            *host = Represented::new(&host.host, self.keys.clone(), self.keeper.highest());
        }
        (self.ends.clock, self.next, self.heard_at, self.bus) = (clock, Time::ZERO, Time::ZERO, None);
        (self.changed, self.set) = (false, Vec::new());
        self.remember(reverts);
    }

    /// What the enforcer that takes this one's place must know.
    pub fn give(&self) -> Given {
        Given { epoch: self.highest(), reverted: reverted::to_bytes(&self.reverts(), self.ends.clock) }
    }

    /// Waits until what must outlive the enforcer is on disk.
    ///
    /// # Errors
    /// It is not: what the next one may not know, and what to see to.
    pub fn finish(self) -> Result<(), String> {
        let lost = |why| {
            format!(
                "the highest epoch and what guards have reverted may not be in the state folder ({why}): see to its disk, and start the \
                 next enforcer when the CUEs in force have ended"
            )
        };
        self.keeper.finish().map_err(lost)
    }

    /// Begins with what the enforcer has given whose place this one takes: since this one has read its files, that has gone on.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn take(&mut self, given: &Given) -> Result<(), String> {
        let (reverts, before) = (reverted::from_bytes(&given.reverted, self.ends.clock)?, self.reverts());
        let highest = given.epoch.max(self.keeper.highest());
        for host in &mut self.hosts {
            *host = Represented::new(&host.host, self.keys.clone(), highest);
            let both = [&reverts, &before].map(|of| of.get(&host.host.name).cloned().unwrap_or_default());
            host.agent.remember(both.concat());
        }
        Ok(())
    }

    /// The highest epoch that its hosts know of.
    fn highest(&self) -> Option<u64> {
        self.hosts.iter().filter_map(|host| host.agent.highest()).max()
    }

    /// What guards have reverted.
    fn reverts(&self) -> Reverts {
        let of = |host: &Represented| (host.host.name.clone(), host.agent.reverted().to_vec());
        self.hosts.iter().map(of).filter(|(_, reverted)| !reverted.is_empty()).collect()
    }

    fn remember(&mut self, mut reverts: Reverts) {
        for host in &mut self.hosts {
            host.agent.remember(reverts.remove(&host.host.name).unwrap_or_default());
        }
    }

    /// Counts the flows that have ended, and gives the `enforcer` its rules where they have changed: those of CUEs in force, then its `own`.
    /// Call it ten times a second; `now` is the enforcer's.
    ///
    /// # Errors
    /// The epoch cannot be stored; its CUEs must not take effect then.
    pub fn turn<P: Packet>(
        &mut self,
        now: Time,
        enforcer: &mut Enforcer<P>,
        own: &[Rule],
        say: &mut dyn FnMut(&str),
    ) -> Result<(), FileError> {
        while let Some(record) = enforcer.poll_record() {
            self.ended(&record);
        }
        if self.look(enforcer, say)?
            && let Some(rules) = self.rules()
        {
            enforcer.set_rules(now, [&rules, own].concat());
        }
        Ok(())
    }

    /// Handles messages, expiry, measurements and reports; returns whether the rules may have changed.
    fn look<P: Packet>(&mut self, enforcer: &Enforcer<P>, say: &mut dyn FnMut(&str)) -> Result<bool, FileError> {
        let now = self.ends.clock.now();
        self.changed |= self.listen(now, say);
        for host in &mut self.hosts {
            self.changed |= host.agent.on_timer(now);
        }
        let is_kept = self.keeper.keeps(self.highest())?;
        if self.next <= now {
            self.next = now + LOOK;
            self.trust(say);
            self.leave_the_silent(now, say);
            if self.bus.is_none() {
                self.connect(now, say);
            }
            self.changed |= self.measure(now, enforcer, say);
        }
        let reverts = self.reverts();
        self.keeper.keep_reverts(self.ends.clock, reverts);
        if let Some(trouble) = self.keeper.trouble().filter(|trouble| self.forgetful.is_news(trouble)) {
            say(&format!(
                "an enforcer that is started after this one would not know what its guards have reverted: {trouble}"
            ));
        }
        // CUEs take effect, and are reported, only once their epoch is on disk
        if is_kept {
            self.report(now, say);
        }
        let changed = self.changed || !is_kept;
        if changed {
            self.hosts.iter_mut().for_each(|host| host.settle(now, is_kept));
        }
        self.changed &= !is_kept;
        Ok(changed)
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
    fn measure<P: Packet>(&mut self, now: Time, enforcer: &Enforcer<P>, say: &mut dyn FnMut(&str)) -> bool {
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
        let Ok(bus) = (self.ends.connect)() else { return };
        self.heard_at = now;
        for host in &mut self.hosts {
            match (self.ends.question)() {
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
        let Some(period) = period.filter(|_| self.bus.is_some() && !self.is_shared) else { return };
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
    fn rules(&mut self) -> Option<Vec<Rule>> {
        let (mut rules, mut totals, mut set) = (Vec::new(), Vec::new(), Vec::new());
        for host in &mut self.hosts {
            host.notes.clear();
            let held = &host.in_force;
            for AgentRule { policy, rule, sessions, .. } in held {
                let cgroup = sessions.cgroup.iter();
                let note = |cgroup| format!("{policy}/{rule}: packets do not show their cgroup ({cgroup})");
                host.notes.extend(cgroup.map(note));
            }
            for (clients, port) in places(held) {
                let settings = settings(held, clients, port);
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
    fn ended(&mut self, record: &Record) {
        let address = record.server.ip();
        if let Some(host) = self.hosts.iter_mut().find(|host| host.host.prefix.contains(address)) {
            host.ended(record);
        }
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
    use crate::represented::{Ended, KINDS_MAX};
    use bus::files::{generate, secret_key};
    use bus::{Hand, Hub as _, Report, UnixOracle};
    use enforcer::{End, Limits, Simulated};
    use policy::{Addressees, COUNT_MAX, Cue, CueGuard, CueScope, OracleKey, Reverted, Sessions};
    use std::collections::BTreeMap;
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
        (oracle, secret_key(&at("key")).expect("it was just made"), begin(folder, &key))
    }

    /// Who takes CUEs for 10.0.0.0/8 where another may have done so before.
    fn begin(folder: &Path, key: &Path) -> Cues {
        begin_on(Clock::begin(), folder, key)
    }

    fn begin_on(clock: Clock, folder: &Path, key: &Path) -> Cues {
        let bus = Address::Unix(folder.join("oracle"));
        let places = Places { bus: bus.clone(), key: key.to_path_buf(), state: folder.to_path_buf() };
        let prefix = "10.0.0.0/8".parse().expect("a prefix");
        let host = Behalf { name: "h".to_string(), prefix, labels: BTreeMap::new() };
        let ends = Ends { clock, ..Ends::of_machine(bus).expect("a kernel") };
        let (cues, disk) = Cues::begin(&[host], &places, ends).expect("files of its own");
        thread::spawn(move || disk.work());
        cues
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
        cues.look(&Enforcer::<Simulated>::new(Limits::default(), Vec::new(), 1), &mut |_| {}).expect("a disk");
        let asked = oracle.receive(Duration::from_secs(5)).expect("a bus").expect("it reports at once");
        let question = Report::from_bytes(&asked.bytes).expect("a report").question.expect("no answer yet");
        oracle.send(&key.answer(0, &[question])).expect("it listens");
        oracle.send(&key.sign(cue)).expect("it listens");
    }

    /// The rules once they change: what is new waits for the disk.
    fn changes(cues: &mut Cues, enforcer: &Enforcer<Simulated>) -> Option<Vec<Rule>> {
        let until = cues.ends.clock.now() + Time::from_secs(10);
        while cues.ends.clock.now() < until {
            if cues.look(enforcer, &mut |_| {}).expect("a disk")
                && let Some(rules) = cues.rules()
            {
                return Some(rules);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    #[test]
    fn a_total_bounds_what_comes_to_a_host_however_it_is_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut oracle, key, mut cues) = oracle(folder.path());
        let set = Settings { window_total: Some(Bytes::new(130_000)), ..Settings::default() };
        send((&mut oracle, &key), &cue(set), &mut cues);
        let enforcer = Enforcer::<Simulated>::new(Limits::default(), Vec::new(), 1);
        let rules = changes(&mut cues, &enforcer).expect("they have changed");
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
        let enforcer = Enforcer::<Simulated>::new(Limits::default(), Vec::new(), 1);
        let guard = CueGuard { revert_if: "host.drop_rate > 0.02".to_string(), hold: Time::from_secs(2) };
        let cue = Cue { guard: Some(guard), ..cue(Settings { cc: Some("bbr".to_string()), ..Settings::default() }) };
        send((&mut oracle, &key), &cue, &mut cues);
        let changes = |cues: &mut Cues| changes(cues, &enforcer).map(|rules| rules.len());
        assert_eq!(changes(&mut cues), Some(1));
        while cues.hosts[0].watched == 0 {
            assert!(!cues.look(&enforcer, &mut |_| {}).expect("a disk"), "nothing was sent, so no guard reverts");
            thread::sleep(Duration::from_millis(10));
        }
        let times = |cues: &Cues| cues.hosts[0].agent.counts().reverted;
        cues.ended(&Record { data_segments_sent: 2000, retransmits: 200, ..record() });
        assert_eq!((changes(&mut cues), times(&cues)), (Some(0), 1), "a tenth was retransmitted");
        // one that takes its place has read its files before, one that is started later reads them
        let another = folder.path().join("another");
        fs::create_dir(&another).expect("a folder of its own");
        let (held, key) = (cues.hosts[0].agent.reverted()[0].clone(), folder.path().join("key.pub"));
        let mut taking = begin(&another, &key);
        taking.take(&cues.give()).expect("as it was given");
        assert!(!cues.look(&enforcer, &mut |_| {}).expect("a disk"));
        while !folder.path().join("reverted.json").exists() {
            thread::sleep(Duration::from_millis(1));
        }
        for of in [&taking, &begin(folder.path(), &key)].map(|cues| &cues.hosts[0].agent) {
            let [reverted] = of.reverted() else { panic!("{:?}", of.reverted()) };
            assert_eq!((&reverted.rule, reverted.hold), (&held.rule, held.hold));
            assert!(reverted.until <= held.until && of.highest() == Some(1));
        }
        assert_eq!((changes(&mut cues), times(&cues)), (Some(1), 1), "the hold time is over");
    }

    #[test]
    fn what_a_guard_has_reverted_outlives_a_new_clock() {
        let (folder, hand) = (tempfile::tempdir().expect("a folder"), Hand::default());
        let key = generate(&folder.path().join("key")).expect("a key");
        let mut cues = begin_on(hand.begin(), folder.path(), &key);
        let reverted = |until| {
            let (policy, rule, hold) = ("p".to_string(), "r".to_string(), Time::from_secs(60));
            Reverted { policy, rule, until: Time::from_secs(until), hold }
        };
        cues.hosts[0].agent.remember([reverted(60)]);
        hand.set(Duration::from_secs(20));
        cues.begin_anew();
        assert_eq!(cues.hosts[0].agent.reverted(), [reverted(40)]);
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
}
