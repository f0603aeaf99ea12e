//! Several Oracles on one lease, in a network that parts and joins, with Oracles that stop and wake, clocks that run apart, and agents
//! that restart: no agent takes an older decision after a newer.

use bus::{Entry, Store, StoreError};
use oracle::{Lease, LeaseError, Shared, Standing};
use policy::{
    Agent, CueError, Epoch, Gate, History, Host, Identity, Known, NetworkView, Oracle, OracleKey, Policy, Progress,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use testkit::Random;
use units::Time;

const PERIOD: Time = Time::from_secs(6);
const STEP: Time = Time::from_ms(200);
const AGENTS: usize = 3;
const POLICY: &str = "name = \"p\"\nmode = \"enforce\"\nperiod = \"6 s\"\n[[rule]]\nname = \"r\"\nwhen = \"network.live_flows >= 0\"\n\
                      match = { hosts = \"all\" }\nset = { initial_cwnd = 20 }\n";

type Entries = BTreeMap<String, (Vec<u8>, u64)>;

/// A store that a node may not reach, or of which it may not hear that it has put something.
struct Shelf {
    /// Which of two copies this node reaches: a store that was parted has two.
    copies: Arc<Mutex<[Entries; 2]>>,
    reach: Arc<Mutex<Reach>>,
}

#[derive(Clone, Copy, Default)]
struct Reach {
    away: bool,
    /// What is put arrives, and the answer does not.
    deaf: bool,
    copy: usize,
}

impl Store for Shelf {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, StoreError> {
        let reach = *self.reach.lock().unwrap();
        if reach.away {
            return Err(StoreError::Away("parted".into()));
        }
        let copies = self.copies.lock().unwrap();
        Ok(copies[reach.copy].get(key).map(|(value, revision)| Entry { value: value.clone(), revision: *revision }))
    }

    fn put(&mut self, key: &str, value: &[u8], revision: Option<u64>) -> Result<Option<u64>, StoreError> {
        let reach = *self.reach.lock().unwrap();
        if reach.away {
            return Err(StoreError::Away("parted".into()));
        }
        let mut copies = self.copies.lock().unwrap();
        let entries = &mut copies[reach.copy];
        if entries.get(key).map(|(_, revision)| *revision) != revision {
            return Ok(None);
        }
        let next = revision.unwrap_or(0) + 1;
        entries.insert(key.to_string(), (value.to_vec(), next));
        if reach.deaf { Err(StoreError::Away("no answer".into())) } else { Ok(Some(next)) }
    }
}

/// An Oracle, as the daemon has it.
struct Node {
    number: u8,
    lease: Lease,
    oracle: Oracle,
    reach: Arc<Mutex<Reach>>,
    term: Option<u32>,
    /// Its epoch on the disk.
    stored: u64,
    next: Time,
    stopped_until: Time,
    /// Its clock: days apart from the others', and faster or slower.
    offset: Time,
    rate: f64,
    /// The highest epoch that hosts have reported.
    heard: u64,
}

struct Host1 {
    agent: Agent,
    stored: Option<u64>,
    /// The last decision of which a CUE was taken.
    taken: Option<u64>,
    /// When that was.
    taken_at: Time,
    asked: u64,
}

struct World {
    random: Random,
    now: Time,
    copies: Arc<Mutex<[Entries; 2]>>,
    nodes: Vec<Node>,
    hosts: Vec<Host1>,
    /// Whether a node and a host reach each other.
    links: Vec<Vec<bool>>,
    /// Messages to hosts: when, in which order, to whom.
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    /// Every epoch of which something was sent, and by whom.
    decisions: BTreeMap<u64, u8>,
    refused_old: u64,
    /// Oracles are stopped at the worst moment now and then.
    hiccups: bool,
}

fn key() -> OracleKey {
    OracleKey::from_secret([3; 32])
}

fn gate(i: usize, stored: Option<u64>) -> Agent {
    Agent::new(Gate::new(key().public(), Identity { host: format!("h{i}"), ..Identity::default() }, stored))
}

impl World {
    fn new(seed: u64, nodes: u8) -> World {
        let mut random = Random(seed);
        let copies: Arc<Mutex<[Entries; 2]>> = Arc::default();
        let node = |number: u8, random: &mut Random| {
            let reach: Arc<Mutex<Reach>> = Arc::default();
            let store = Shelf { copies: copies.clone(), reach: reach.clone() };
            let policy = Policy::parse("p.toml", POLICY, Known::default()).unwrap();
            Node {
                number,
                lease: Lease::new(Box::new(store), number, PERIOD),
                oracle: Oracle::new(policy, key(), History::default()),
                reach,
                term: None,
                stored: 0,
                next: Time::ZERO,
                stopped_until: Time::ZERO,
                offset: Time::from_secs(86_400 * random.below(3)),
                rate: 0.95 + 0.1 * random.unit(),
                heard: 0,
            }
        };
        let nodes = (0..nodes).map(|number| node(number, &mut random)).collect::<Vec<_>>();
        let host = |i| Host1 { agent: gate(i, None), stored: None, taken: None, taken_at: Time::ZERO, asked: 0 };
        let links = vec![vec![true; AGENTS]; nodes.len()];
        World {
            random,
            now: Time::from_secs(1),
            copies,
            nodes,
            hosts: (0..AGENTS).map(host).collect(),
            links,
            wire: BTreeMap::new(),
            sent: 0,
            decisions: BTreeMap::new(),
            refused_old: 0,
            hiccups: true,
        }
    }

    fn post(&mut self, from: usize, to: usize, message: Vec<u8>) {
        if self.links[from][to] {
            self.sent += 1;
            // some are delayed for so long that much else has happened meanwhile
            let delay =
                if self.hiccups && self.random.chance(0.1) { self.random.below(20_000) } else { self.random.below(50) };
            self.wire.insert((self.now + Time::from_ms(delay), self.sent), (to, message));
        }
    }

    /// What a node does when it runs; like the daemon's loop.
    fn run(&mut self, i: usize) {
        let node = &mut self.nodes[i];
        let local = node.offset + Time::from_secs_f64(self.now.as_secs_f64() * node.rate);
        if node.term.is_some() && node.heard > node.oracle.epoch() {
            node.lease.give_up();
            node.term = None;
        }
        let above = Epoch::of(node.heard.max(node.stored)).term;
        let standing = match node.lease.keep(local, above, node.oracle.epoch()) {
            Ok(standing) => standing,
            Err(LeaseError::Store(_)) => node.lease.standing(local),
            Err(error) => panic!("{error}"),
        };
        match (standing, node.term) {
            (Standing::Leads { term }, before) if before != Some(term) => {
                let Ok(shared) = node.lease.shared() else {
                    node.lease.give_up();
                    node.term = None;
                    return;
                };
                let progress = shared.map_or(Progress::default(), |shared| shared.progress);
                let begin = Epoch::begin(term, node.number).number().max(node.oracle.epoch());
                node.oracle.take_over(begin, progress);
                node.term = Some(term);
                node.next = local;
            }
            (Standing::Follows { .. }, Some(_)) => node.term = None,
            _ => {}
        }
        if node.term.is_none() || local < node.next {
            return;
        }
        node.next = local + PERIOD;
        let hosts = (0..AGENTS)
            .map(|i| Host { name: format!("h{i}"), live_flows: Some(1.0), srtt_us: vec![(100, 1)], ..Host::default() })
            .collect();
        let (decision, messages) = node.oracle.decide(&NetworkView { at: local, hosts, ..NetworkView::default() });
        node.stored = decision.epoch;
        let shared = Shared { policy: POLICY.into(), progress: node.oracle.progress(), ..Shared::default() };
        if !node.lease.share(&shared).is_ok_and(|shared| shared) {
            node.lease.give_up();
            node.term = None;
            return;
        }
        let (beacon, number) = (node.oracle.beacon(node.number), node.number);
        // it is stopped just before it sends, and wakes when another may have decided
        if self.hiccups && self.random.chance(0.05) {
            let pause = Time::from_ms(self.random.below(30_000));
            self.nodes[i].stopped_until = self.now + pause;
            for message in [beacon].into_iter().chain(messages) {
                for to in 0..AGENTS {
                    self.sent += 1;
                    self.wire.insert((self.now + pause, self.sent), (to, message.clone()));
                }
            }
        } else {
            for message in [beacon].into_iter().chain(messages) {
                (0..AGENTS).for_each(|to| self.post(i, to, message.clone()));
            }
        }
        let before = self.decisions.insert(decision.epoch, number);
        assert_eq!(before, None, "epoch {} was used twice", Epoch::of(decision.epoch));
    }

    /// A host reports: what it knows, and its question if it has one.
    fn report(&mut self, host: usize) {
        for node in (0..self.nodes.len()).filter(|node| self.links[*node][host]).collect::<Vec<_>>() {
            if self.nodes[node].stopped_until > self.now {
                continue;
            }
            let known = self.hosts[host].agent.highest().unwrap_or(0);
            self.nodes[node].heard = self.nodes[node].heard.max(known);
            if let Some(question) = self.hosts[host].agent.question()
                && self.nodes[node].term.is_some()
            {
                let oracle = &self.nodes[node].oracle;
                let messages = [oracle.answer(&[question]), oracle.beacon(self.nodes[node].number)].into_iter();
                let messages: Vec<_> = messages.chain(oracle.late(Time::from_secs(1))).collect();
                for message in messages {
                    self.post(node, host, message);
                }
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, message) = entry.remove();
            let host = &mut self.hosts[to];
            match host.agent.on_cue(self.now, &message) {
                Ok(_) => {
                    if let Ok(cue) = key().public().open(&message) {
                        // the invariant: over restarts, too
                        assert!(
                            host.taken.is_none_or(|taken| taken <= cue.epoch),
                            "{} after {:?}",
                            Epoch::of(cue.epoch),
                            host.taken.map(Epoch::of)
                        );
                        (host.taken, host.taken_at) = (Some(cue.epoch), self.now);
                    }
                }
                Err(CueError::Old { .. }) => self.refused_old += 1,
                Err(_) => {}
            }
            // on the disk before it is set
            host.stored = host.agent.highest();
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        for i in 0..self.nodes.len() {
            if self.nodes[i].stopped_until <= self.now {
                self.run(i);
            }
        }
        (0..AGENTS).for_each(|host| self.report(host));
        self.deliver();
        let now = self.now;
        for host in &mut self.hosts {
            host.agent.on_timer(now);
        }
    }

    /// Something happens.
    fn disturb(&mut self) {
        let (node, host) =
            (self.random.below(self.nodes.len() as u64) as usize, self.random.below(AGENTS as u64) as usize);
        match self.random.below(9) {
            0 => self.nodes[node].stopped_until = self.now + Time::from_secs(self.random.below(60)),
            1 => self.links[node][host] = !self.links[node][host],
            2 => self.links[node] = vec![self.random.chance(0.5); AGENTS],
            3 => self.nodes[node].reach.lock().unwrap().away ^= true,
            4 => self.nodes[node].reach.lock().unwrap().deaf ^= true,
            5 => {
                // the store is parted: each half goes on by itself
                let mut copies = self.copies.lock().unwrap();
                if self.nodes.iter().all(|node| node.reach.lock().unwrap().copy == 0) {
                    copies[1] = copies[0].clone();
                }
                drop(copies);
                self.nodes[node].reach.lock().unwrap().copy = 1;
            }
            6 => {
                // the agent restarts, and asks
                self.hosts[host].agent = gate(host, self.hosts[host].stored);
                self.ask(host);
            }
            7 => {
                // the Oracle restarts, and has its epoch
                let node = &mut self.nodes[node];
                let store = Shelf { copies: self.copies.clone(), reach: node.reach.clone() };
                node.lease = Lease::new(Box::new(store), node.number, PERIOD);
                let policy = Policy::parse("p.toml", POLICY, Known::default()).unwrap();
                node.oracle = Oracle::new(policy, key(), History::after(node.stored));
                (node.term, node.heard) = (None, 0);
                node.lease.begin_anew();
            }
            _ => self.ask(host),
        }
    }

    fn ask(&mut self, host: usize) {
        let asked = &mut self.hosts[host].asked;
        *asked += 1;
        let mut question = [host as u8; 32];
        question[..8].copy_from_slice(&asked.to_le_bytes());
        self.hosts[host].agent.ask(question);
    }

    fn heal(&mut self) {
        self.hiccups = false;
        for node in &mut self.nodes {
            node.stopped_until = Time::ZERO;
            *node.reach.lock().unwrap() = Reach::default();
        }
        for links in &mut self.links {
            links.fill(true);
        }
    }

    fn leaders(&self) -> usize {
        self.nodes.iter().filter(|node| node.term.is_some()).count()
    }
}

#[test]
fn no_agent_ever_takes_an_older_decision_after_a_newer() {
    let (mut decisions, mut refused, mut terms) = (0, 0, 0);
    for seed in 0..150 {
        let mut world = World::new(seed, 2 + (seed % 3) as u8);
        (0..AGENTS).for_each(|host| world.ask(host));
        for _ in 0..300 {
            if world.random.chance(0.15) {
                world.disturb();
            }
            world.step();
        }
        decisions += world.decisions.len();
        refused += world.refused_old;
        terms = terms.max(world.decisions.keys().map(|epoch| Epoch::of(*epoch).term).max().unwrap_or(0));
        // when all is well again, one decides, and every host follows it
        world.heal();
        let healed = world.now;
        for _ in 0..600 {
            world.step();
        }
        assert_eq!(world.leaders(), 1, "seed {seed}");
        // one beyond it may have been decided on the other side of a store that was parted, and reached nobody
        let leader = world.nodes.iter().find(|node| node.term.is_some()).expect("one decides");
        let last = leader.oracle.epoch();
        for host in &world.hosts {
            assert!(
                host.taken_at > healed && host.taken.is_some_and(|taken| taken + 2 > last),
                "seed {seed}: {:?} of {}",
                host.taken.map(Epoch::of),
                Epoch::of(last)
            );
        }
    }
    println!("{decisions} decisions, up to term {terms}; {refused} messages refused as old");
    assert!(decisions > 1000 && refused > 100 && terms > 5, "there was something to refuse");
}

#[test]
fn when_the_leader_is_gone_another_decides_within_two_periods() {
    for seed in 0..50 {
        let mut world = World { hiccups: false, ..World::new(seed, 3) };
        (0..AGENTS).for_each(|host| world.ask(host));
        (0..200).for_each(|_| world.step());
        let leader = world.nodes.iter().position(|node| node.term.is_some()).expect("one decides");
        // right after a decision, which is the longest that it can last
        let before = world.decisions.len();
        while world.decisions.len() == before {
            world.step();
        }
        let (gone, last) = (world.now, *world.decisions.keys().max().unwrap());
        world.nodes[leader].stopped_until = Time::NEVER;
        while *world.decisions.keys().max().unwrap() == last {
            world.step();
        }
        let took = world.now.saturating_sub(gone);
        assert!(took <= PERIOD * 2, "seed {seed}: {took}");
        // and when the one that was stopped wakes, it does not decide any more
        (0..50).for_each(|_| world.step());
        world.nodes[leader].stopped_until = Time::ZERO;
        let (decided, term) = (world.decisions.clone(), Epoch::of(*world.decisions.keys().max().unwrap()).term);
        (0..100).for_each(|_| world.step());
        let after = world.decisions.keys().filter(|epoch| !decided.contains_key(epoch));
        assert!(after.clone().count() > 0 && after.clone().all(|epoch| Epoch::of(*epoch).term == term), "seed {seed}");
    }
}

#[test]
fn hosts_fall_back_by_themselves_when_nobody_decides() {
    let mut world = World { hiccups: false, ..World::new(1, 2) };
    (0..AGENTS).for_each(|host| world.ask(host));
    (0..200).for_each(|_| world.step());
    assert!(world.hosts.iter().all(|host| host.agent.rules().len() == 1));
    for node in &mut world.nodes {
        node.stopped_until = Time::NEVER;
    }
    (0..50).for_each(|_| world.step());
    assert!(world.hosts.iter().all(|host| host.agent.rules().is_empty()), "ten seconds are more than 1.5 periods");
}

#[test]
fn one_that_gives_the_lease_up_is_followed_at_once_and_what_it_shared_is_kept() {
    let copies: Arc<Mutex<[Entries; 2]>> = Arc::default();
    let lease = |number| {
        let store = Shelf { copies: copies.clone(), reach: Arc::default() };
        Lease::new(Box::new(store), number, PERIOD)
    };
    let (mut one, mut other) = (lease(1), lease(2));
    let s = Time::from_secs;
    assert_eq!(one.keep(s(1), 0, 0).unwrap(), Standing::Leads { term: 1 });
    assert_eq!(other.keep(s(1), 0, 0).unwrap(), Standing::Follows { holder: Some(1) });
    assert_eq!(one.shared().unwrap(), None);
    let progress = Progress { lasted: s(60), ended: Some("it hurts".into()), ..Progress::default() };
    let shared = Shared { policy: "text".into(), file: "a.toml".into(), progress, paused: None, began: 0 };
    assert!(one.share(&shared).unwrap());
    one.give_up();
    assert_eq!(other.keep(s(4), 6, 0).unwrap(), Standing::Leads { term: 7 }, "above the terms that hosts know of");
    assert_eq!(other.shared().unwrap(), Some(shared.clone()));
    assert!(other.share(&Shared { policy: "later".into(), ..shared.clone() }).unwrap());
    // the first one does not know yet, and cannot undo what the second has shared
    assert!(!one.share(&shared).unwrap());
    assert_eq!(other.shared().unwrap().unwrap().policy, "later");
}

#[test]
fn what_is_damaged_in_the_store_counts_as_none_and_is_written_anew() {
    let copies: Arc<Mutex<[Entries; 2]>> = Arc::default();
    let lease = |number| {
        let store = Shelf { copies: copies.clone(), reach: Arc::default() };
        Lease::new(Box::new(store), number, PERIOD)
    };
    let damage = |key: &str, value: &[u8], revision| {
        copies.lock().unwrap()[0].insert(key.into(), (value.to_vec(), revision));
    };
    let (mut one, mut other, s) = (lease(1), lease(2), Time::from_secs);
    assert_eq!(one.keep(s(1), 4, 0).unwrap(), Standing::Leads { term: 5 });
    let beyond = format!(r#"{{"term":{},"holder":2,"renewed":0,"epoch":0}}"#, policy::TERM_MAX + 1);
    let mut at = 10;
    for (value, term) in [(&b"opentcp enrolled\0{}"[..], 6), (b"", 7), (beyond.as_bytes(), 8)] {
        damage("lease", value, u64::from(term) * 10);
        // the holder finds out, and somebody takes the lease with a term above all that it has seen
        assert_eq!(one.keep(s(at), 0, 0).unwrap(), Standing::Follows { holder: None });
        assert_eq!(one.keep(s(at + 5), 0, 0).unwrap(), Standing::Leads { term });
        at += 10;
    }
    assert!(one.damage().is_some_and(|why| why.contains("`lease`")) && one.damage().is_none());
    assert_eq!(other.keep(s(at), 0, 0).unwrap(), Standing::Follows { holder: Some(1) });
    damage("shared", b"{", 9);
    assert_eq!(one.shared().unwrap(), None);
    let shared = Shared { policy: "text".into(), ..Shared::default() };
    assert!(one.share(&shared).unwrap());
    assert_eq!(other.shared().unwrap(), Some(shared));
}
