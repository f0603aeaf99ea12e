//! CUEs for hosts without an agent: when they take effect, when they end, and what an enforcer gives to the next one.

use super::*;
use crate::represented::{Ended, KINDS_MAX};
use bus::ChannelOracle;
use bus::files::{generate, secret_key};
use bus::{Hand, Hub as _, Report, UnixOracle};
use enforcer::{End, Limits, Simulated};
use policy::{Addressees, COUNT_MAX, Cue, CueGuard, CueScope, OracleKey, Reverted, Sessions};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use units::Bytes;

/// Longest wait: a busy machine takes its time for a message, and for a disk.
const PATIENCE: Duration = Duration::from_secs(30);

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
    let asked = oracle.receive(PATIENCE).expect("a bus").expect("it reports at once");
    let question = Report::from_bytes(&asked.bytes).expect("a report").question.expect("no answer yet");
    oracle.send(&key.answer(0, &[question])).expect("it listens");
    oracle.send(&key.sign(cue)).expect("it listens");
}

/// The rules once they change: what is new waits for the disk.
fn changes(cues: &mut Cues, enforcer: &Enforcer<Simulated>) -> Option<Vec<Rule>> {
    let until = cues.ends.clock.now() + Time::from_secs(PATIENCE.as_secs());
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
fn an_enforcer_without_an_oracle_says_so_once_and_when_there_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (oracle, _, mut cues) = oracle(folder.path());
    drop(oracle);
    let enforcer = Enforcer::<Simulated>::new(Limits::default(), Vec::new(), 1);
    let mut said = Vec::new();
    let look = |cues: &mut Cues, said: &mut Vec<String>| {
        cues.next = Time::ZERO;
        cues.look(&enforcer, &mut |words| said.push(words.to_string())).expect("a disk");
        cues.oracle()
    };
    let without = look(&mut cues, &mut said);
    assert!(!without.connected && without.why.is_some() && without.heard_seconds_ago.is_none(), "{without:?}");
    assert!(without.next_try_seconds.is_some_and(|after| after <= 1.0), "{without:?}");
    look(&mut cues, &mut said);
    assert!(matches!(&said[..], [words] if words.starts_with("no Oracle at ")), "{said:?}");
    let _oracle = UnixOracle::listen(&folder.path().join("oracle")).expect("a socket");
    let there = look(&mut cues, &mut said);
    assert!(there.connected && there.why.is_none() && there.next_try_seconds.is_none(), "{there:?}");
    assert!(said.last().is_some_and(|words| words.starts_with("connected to the Oracle at ")), "{said:?}");
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
fn what_a_guard_has_reverted_outlives_a_new_clock() {
    let (folder, hand) = (tempfile::tempdir().expect("a folder"), Hand::default());
    let key = generate(&folder.path().join("key")).expect("a key");
    let mut cues = begin_on(hand.begin(), folder.path(), &key);
    let reverted = |until| {
        let (policy, rule, hold) = ("p".to_string(), "r".to_string(), Time::from_secs(60));
        Reverted { policy, rule, until: Time::from_secs(until), hold, why: String::new() }
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

/// An enforcer's exchange with an Oracle on a clock and a disk that the test moves.
struct Scene {
    folder: tempfile::TempDir,
    hand: Hand,
    oracle: Rc<RefCell<ChannelOracle>>,
    key: OracleKey,
    cues: Cues,
    disk: Disk,
    enforcer: Enforcer<Simulated>,
    said: Vec<String>,
}

const QUESTION: Question = [7; 32];

/// A host by its name and its addresses.
fn behalf((name, prefix): &(&str, &str)) -> Behalf {
    Behalf { name: (*name).to_string(), prefix: prefix.parse().expect("a prefix"), labels: BTreeMap::new() }
}

impl Scene {
    fn new(hosts: &[(&str, &str)]) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        generate(&folder.path().join("key")).expect("a key");
        Scene::again(folder, Hand::default(), hosts)
    }

    /// One that is started where another has been.
    fn again(folder: tempfile::TempDir, hand: Hand, hosts: &[(&str, &str)]) -> Scene {
        let oracle = Rc::new(RefCell::new(bus::channel()));
        let places = Places {
            bus: Address::Unix(folder.path().join("oracle")),
            key: folder.path().join("key.pub"),
            state: folder.path().to_path_buf(),
        };
        let hub = Rc::clone(&oracle);
        let ends = Ends {
            connect: Box::new(move || Ok(Box::new(hub.borrow_mut().agent().expect("there is room")))),
            question: Box::new(|| Ok(QUESTION)),
            clock: hand.begin(),
            boot: "boot".to_string(),
        };
        let hosts: Vec<Behalf> = hosts.iter().map(behalf).collect();
        let (cues, disk) = Cues::begin(&hosts, &places, ends).expect("files of its own");
        let key = secret_key(&folder.path().join("key")).expect("it was made");
        let enforcer = Enforcer::new(Limits::default(), Vec::new(), 1);
        Scene { folder, hand, oracle, key, cues, disk, enforcer, said: Vec::new() }
    }

    fn look(&mut self) -> bool {
        let Scene { cues, enforcer, said, .. } = self;
        cues.look(enforcer, &mut |line| said.push(line.to_string())).expect("a disk")
    }

    /// The Oracle answers the question, and sends these CUEs; the enforcer hears them.
    fn hear(&mut self, cues: &[Cue]) {
        self.look();
        let mut messages = vec![self.key.answer(0, &[QUESTION])];
        messages.extend(cues.iter().map(|cue| self.key.sign(cue)));
        for message in &messages {
            self.oracle.borrow_mut().send(message).expect("it listens");
        }
        self.look();
    }

    /// The rules once the disk has written what it was given; `None`: they have not changed.
    fn rules(&mut self) -> Option<Vec<Rule>> {
        self.disk.turn();
        self.look();
        self.cues.rules()
    }

    fn at(&self, seconds: u64) {
        self.hand.set(Duration::from_secs(seconds));
    }

    fn notes(&self) -> String {
        self.cues.hosts[0].notes.join("|")
    }
}

fn cc(name: &str) -> Settings {
    Settings { cc: Some(name.to_string()), ..Settings::default() }
}

/// What rules are for, and what they enforce: servers, clients, port, algorithm.
fn shown(rules: &[Rule]) -> Vec<String> {
    let any = |prefix: Option<Prefix>| prefix.map_or("any".to_string(), |prefix| prefix.to_string());
    let row = |rule: &Rule| {
        let Treatment::Enforce(config) = &rule.treatment else { panic!("{rule:?}") };
        let port = rule.port.map_or("any".to_string(), |port| port.to_string());
        format!("{} to {} port {port}: {}", any(rule.servers), any(rule.clients), config.algorithm.name())
    };
    rules.iter().map(row).collect()
}

#[test]
fn a_cue_takes_effect_once_its_epoch_is_on_disk() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[Cue { epoch: 4, ..cue(cc("bbr")) }]);
    let epoch = scene.folder.path().join("epoch");
    assert!(scene.cues.rules().is_none() && !epoch.exists(), "a crash now must not let it be taken twice");
    let rules = scene.rules().expect("they have changed");
    assert_eq!(shown(&rules), ["10.0.0.0/8 to any port any: bbr"]);
    assert_eq!(bus::files::stored_epoch(&epoch).expect("it was written"), Some(4));
    // one that is started afterwards takes nothing of that epoch
    let Scene { folder, hand, cues, .. } = scene;
    drop(cues);
    let mut next = Scene::again(folder, hand, &[("h", "10.0.0.0/8")]);
    next.hear(&[Cue { epoch: 4, ..cue(cc("bbr")) }]);
    assert!(next.rules().is_none());
    assert_eq!(next.cues.hosts[0].agent.counts().rejected, 1);
    assert!(next.said.iter().any(|line| line.starts_with("CUE for h rejected: ")), "{:?}", next.said);
}

#[test]
fn a_cue_ends_without_waiting_for_a_disk() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[cue(cc("bbr"))]);
    assert_eq!(scene.rules().map(|rules| rules.len()), Some(1));
    scene.at(59);
    scene.hear(&[Cue { epoch: 2, rule: "other".to_string(), ..cue(cc("cubic")) }]);
    assert!(scene.cues.rules().is_none(), "the disk has not written its epoch yet");
    scene.at(60);
    assert!(scene.look());
    assert_eq!(scene.cues.rules().map(|rules| rules.len()), Some(0), "the first has lasted a minute");
    let rules = scene.rules().expect("they have changed");
    assert_eq!(shown(&rules), ["10.0.0.0/8 to any port any: cubic"]);
}

#[test]
fn a_renewal_changes_nothing_but_its_deadline() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[cue(cc("bbr"))]);
    assert!(scene.rules().is_some());
    scene.at(50);
    scene.hear(&[Cue { epoch: 2, ..cue(cc("bbr")) }]);
    assert!(scene.rules().is_none(), "flows go on as they are");
    scene.at(109);
    assert!(scene.rules().is_none());
    scene.at(110);
    assert_eq!(scene.rules().map(|rules| rules.len()), Some(0));
}

#[test]
fn each_host_has_the_rules_of_its_own_cues() {
    let mut scene = Scene::new(&[("web", "10.1.0.0/16"), ("db", "10.2.0.0/16")]);
    let mut one = cue(cc("bbr"));
    one.scope.names = vec!["db".to_string()];
    scene.hear(&[one]);
    let rules = scene.rules().expect("they have changed");
    assert_eq!(shown(&rules), ["10.2.0.0/16 to any port any: bbr"]);
}

#[test]
fn narrower_rules_come_first_and_totals_last() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    let mut web = Cue { rule: "web".to_string(), rank: 1, id: 1, ..cue(cc("bbr")) };
    web.scope.sessions.port = Some(443);
    let total = Settings { window_total: Some(Bytes::new(130_000)), ..cc("cubic") };
    scene.hear(&[cue(total), web]);
    let rules = scene.rules().expect("they have changed");
    // of port 443 too, `cc` is that of the first rule, which is for all
    let all = ["10.0.0.0/8 to any port 443: cubic", "10.0.0.0/8 to any port any: cubic"];
    let totals = ["any to 10.0.0.0/8 port 443: cubic", "any to 10.0.0.0/8 port any: cubic"];
    assert_eq!(shown(&rules), [all, totals].concat());
    let bound: Vec<bool> = rules.iter().map(|rule| rule.window_total.is_some()).collect();
    assert_eq!(bound, [false, false, true, true]);
}

#[test]
fn what_the_enforcer_cannot_do_is_noted_with_its_rule() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[cue(Settings { initial_cwnd: Some(20), ..Settings::default() })]);
    assert!(scene.rules().is_none(), "nothing is enforced");
    assert_eq!(scene.notes(), "p/r: the enforcer needs `cc`: it cannot run the host's own algorithm");
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    let mut part = cue(cc("bbr"));
    part.scope.sessions.cgroup = Some("/web".to_string());
    scene.hear(&[part]);
    assert!(scene.rules().is_none());
    assert_eq!(scene.notes(), "p/r: packets do not show their cgroup (/web)");
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[cue(cc("mine.c"))]);
    assert!(scene.rules().is_none(), "a CUE runs no file");
    assert!(scene.notes().starts_with("p/r: there is no algorithm `mine.c` in the enforcer"), "{}", scene.notes());
}

#[test]
fn rules_of_cues_come_before_the_operators() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    let pass = crate::rule("none", &mut |_| {}).expect("a rule");
    let end = |address: &str, port| End::new(address.parse().expect("an address"), port);
    let (ours, theirs, client) = (end("10.0.0.1", 80), end("11.0.0.1", 80), end("192.0.2.1", 40_000));
    scene.hear(&[cue(cc("bbr"))]);
    scene.disk.turn();
    let Scene { cues, enforcer, .. } = &mut scene;
    cues.turn(Time::ZERO, enforcer, std::slice::from_ref(&pass), &mut |_| {}).expect("a disk");
    assert!(enforcer.is_for(ours, client) && !enforcer.is_for(theirs, client));
    scene.at(60);
    let Scene { cues, enforcer, .. } = &mut scene;
    cues.turn(Time::from_secs(60), enforcer, &[pass], &mut |_| {}).expect("a disk");
    assert!(!enforcer.is_for(ours, client), "the operator's rule is left");
}

#[test]
fn one_that_takes_the_place_knows_the_epoch_and_the_longer_of_two_holds() {
    let reverted = |rule: &str, until| Reverted {
        policy: "p".to_string(),
        rule: rule.to_string(),
        until: Time::from_secs(until),
        hold: Time::from_secs(100),
        why: String::new(),
    };
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[Cue { epoch: 9, ..cue(cc("bbr")) }]);
    scene.cues.hosts[0].agent.remember([reverted("a", 70), reverted("b", 20)]);
    let given = scene.cues.give();
    let mut taking = Scene::new(&[("h", "10.0.0.0/8")]);
    taking.cues.hosts[0].agent.remember([reverted("b", 50)]);
    taking.cues.take(&given).expect("as it was given");
    let agent = &taking.cues.hosts[0].agent;
    assert_eq!((agent.highest(), agent.reverted()), (Some(9), &[reverted("a", 70), reverted("b", 50)][..]));
    let odd = Given { epoch: Some(1), reverted: b"odd".to_vec() };
    assert!(taking.cues.take(&odd).is_err());
    assert_eq!(taking.cues.hosts[0].agent.highest(), Some(9), "what is wrong changes nothing");
}

#[test]
fn with_a_new_clock_cues_end_and_the_oracle_is_asked_anew() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    let one = Cue { epoch: 3, ..cue(cc("bbr")) };
    scene.hear(std::slice::from_ref(&one));
    assert!(scene.rules().is_some());
    scene.at(5);
    scene.cues.begin_anew();
    assert!(scene.cues.hosts[0].in_force.is_empty());
    scene.hear(&[one]);
    assert!(scene.rules().is_none(), "it is of an epoch that was seen");
    scene.hear(&[Cue { epoch: 4, ..cue(cc("bbr")) }]);
    assert_eq!(scene.rules().map(|rules| rules.len()), Some(1));
}

#[test]
fn an_oracle_that_is_silent_for_three_periods_is_left_for_another() {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    scene.hear(&[]);
    let beacon = policy::Beacon { epoch: 1, period: Time::from_secs(20), oracle: 1 };
    let beacon = scene.key.beacon(beacon);
    scene.oracle.borrow_mut().send(&beacon).expect("it listens");
    scene.look();
    let peers = |scene: &Scene| scene.oracle.borrow().counts().peers;
    scene.at(59);
    scene.look();
    assert!(scene.said.is_empty() && peers(&scene) == 1, "{:?}", scene.said);
    scene.at(60);
    scene.look();
    assert_eq!(scene.said, ["the Oracle was silent for 3 periods: looking for another"]);
    assert!(scene.cues.bus.is_some(), "it joins again at once");
    assert_eq!(scene.cues.hosts[0].agent.question(), Some(QUESTION));
}

/// A CUE that a guard has reverted at 2 s, for two seconds.
fn reverted() -> Scene {
    let mut scene = Scene::new(&[("h", "10.0.0.0/8")]);
    let guard = CueGuard { revert_if: "host.drop_rate > 0.02".to_string(), hold: Time::from_secs(2) };
    scene.hear(&[Cue { guard: Some(guard), ..cue(cc("bbr")) }]);
    assert_eq!(scene.rules().map(|rules| rules.len()), Some(1));
    // what was lost before the CUE is not its fault
    scene.cues.ended(&Record { data_segments_sent: 2000, retransmits: 2000, ..record() });
    scene.at(1);
    assert!(!scene.look());
    scene.cues.ended(&Record { data_segments_sent: 2000, retransmits: 200, ..record() });
    scene.at(2);
    assert_eq!(scene.rules().map(|rules| rules.len()), Some(0), "a tenth was retransmitted");
    assert_eq!(scene.said, ["h: a guard has reverted: 200 of 2000 segments were retransmitted"]);
    scene
}

#[test]
fn a_guard_takes_back_what_its_cue_set_and_holds_it() {
    let mut scene = reverted();
    assert_eq!(scene.cues.hosts[0].agent.counts().reverted, 1);
    scene.at(3);
    scene.hear(&[]);
    assert!(scene.rules().is_none());
    scene.at(4);
    assert_eq!(scene.rules().map(|rules| rules.len()), Some(1), "the hold time is over");
}

#[test]
fn what_a_guard_has_reverted_is_known_to_the_next_enforcer_and_to_one_that_is_started_later() {
    let mut scene = reverted();
    let held = scene.cues.hosts[0].agent.reverted().to_vec();
    assert_eq!((held.len(), held[0].until), (1, Time::from_secs(4)));
    // one that takes its place has read its files before
    let mut taking = Scene::new(&[("h", "10.0.0.0/8")]);
    taking.cues.take(&scene.cues.give()).expect("as it was given");
    assert_eq!((taking.cues.hosts[0].agent.reverted().len(), taking.cues.highest()), (1, Some(1)));
    scene.disk.turn();
    let Scene { folder, hand, cues, .. } = scene;
    drop(cues);
    hand.set(Duration::from_secs(3));
    let next = Scene::again(folder, hand, &[("h", "10.0.0.0/8")]);
    let [left] = next.cues.hosts[0].agent.reverted() else { panic!("it is in the file") };
    // its clock begins now, and one of the two seconds is over
    assert_eq!((&left.rule, left.until, left.hold), (&held[0].rule, Time::from_secs(1), Time::from_secs(2)));
    assert_eq!(next.cues.highest(), Some(1));
}
