//! An enforcer: its machine's clock, its disk, what it takes CUEs by, and its core, through which the packets of servers without an agent go.

use crate::host::{InKernel, content, fill, harm, remove, since};
use crate::net::Net;
use crate::plan::{Disk, TICK};
use crate::traffic::Traffic;
use bus::files::FileError;
use bus::{Address, Bus, BusError, Hand, Member, Peer, Role};
use enforced::{Behalf, Cues, Disk as Files, Ends, Places};
use enforcer::{End, Enforcer, Limits, Simulated};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use testkit::Random;
use units::Time;

/// For a handful of connections.
const LIMITS: Limits = Limits {
    flows: 64,
    half_open: 256,
    buffer_bytes: 8 << 20,
    beyond_window_bytes: 1 << 16,
    idle: Time::from_secs(7440),
};
/// Flows of a server in the enforcer: it may not have seen the last ones end.
const FLOWS_MAX: usize = 8;
/// So long after its disk has failed everything is on it again.
const WRITTEN_WITHIN: Time = Time::from_ms(300);

/// An enforcer, running or not.
pub struct SimulatedEnforcer {
    hosts: Vec<Behalf>,
    places: Places,
    hand: Hand,
    /// Its machine was started at this time of the storm, and how often.
    boot: (Time, u64),
    random: Random,
    member: MemberEnd,
    running: Option<Running>,
    /// One that prepares to take its place.
    successor: Option<(Cues, Files)>,
    traffic: Traffic,
    is_full: bool,
    /// Its disk takes nothing, and says nothing.
    is_hung: bool,
    /// When its disk was so last.
    failed_at: Option<Time>,
    snapshot: BTreeMap<String, Vec<u8>>,
}

struct Running {
    cues: Cues,
    files: Files,
    core: Enforcer<Simulated>,
}

/// What an enforcer did in a step.
#[derive(Debug, Default)]
pub struct Done {
    /// Messages that it has read.
    pub read: Vec<Vec<u8>>,
    /// Its reports.
    pub reports: Vec<Vec<u8>>,
    /// What it said.
    pub said: Vec<String>,
    /// It ended: its disk refused what must not be forgotten.
    pub ended: Option<String>,
}

/// Its end of the bus.
#[derive(Clone)]
struct MemberEnd {
    net: Rc<RefCell<Net>>,
    end: usize,
    peer: Peer,
    done: Rc<RefCell<Done>>,
}

impl Bus for MemberEnd {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        self.done.borrow_mut().reports.push(message.to_vec());
        self.net.borrow_mut().report(&self.peer, self.end, false, message);
        Ok(())
    }

    fn receive(&mut self, _wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        let message = self.net.borrow_mut().next(self.end);
        self.done.borrow_mut().read.extend(message.clone());
        Ok(message)
    }
}

fn server(host: usize) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, host as u8).into()
}

impl SimulatedEnforcer {
    /// For hosts of these numbers, with this `end` of the bus.
    pub fn new(
        hosts: Range<usize>,
        (folder, key): (PathBuf, PathBuf),
        (net, end): (Rc<RefCell<Net>>, usize),
        seed: u64,
    ) -> SimulatedEnforcer {
        fs::create_dir_all(&folder).expect("a folder of the storm");
        let mut random = Random(seed);
        let servers: Vec<IpAddr> = hosts.clone().map(server).collect();
        let behalf = |host: usize| Behalf {
            name: format!("h{host}"),
            prefix: format!("{}/32", server(host)).parse().expect("a prefix"),
            labels: BTreeMap::new(),
        };
        let hosts: Vec<Behalf> = hosts.map(behalf).collect();
        let names = hosts.iter().map(|host| host.name.clone()).collect();
        let member = Member { name: "enforcer".into(), role: Role::Enforcer, hosts: names };
        let (peer, done) = (Peer::Member(Arc::new(member)), Rc::default());
        SimulatedEnforcer {
            hosts,
            places: Places { bus: Address::Nats("bus".into()), key, state: folder },
            hand: Hand::default(),
            boot: (Time::ZERO, 0),
            traffic: Traffic::new(&servers, &mut random),
            random,
            member: MemberEnd { net, end, peer, done },
            running: None,
            successor: None,
            is_full: false,
            is_hung: false,
            failed_at: None,
            snapshot: BTreeMap::new(),
        }
    }

    /// Moves its clock.
    pub fn tick(&mut self, now: Time) {
        self.hand.set(since(now, self.boot.0));
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts. One whose files are damaged is started after they were removed, as its error says; whether that was so.
    pub fn start(&mut self) -> bool {
        let mut begun = self.begin();
        let was_damaged = begun.is_err();
        while let Err(error) = &begun {
            assert!(remove(&self.places.state, &error.to_string()), "{error}");
            begun = self.begin();
        }
        let (cues, files) = begun.expect("the errors are over");
        self.running = Some(Running { cues, files, core: Enforcer::new(LIMITS, Vec::new(), self.random.next()) });
        was_damaged
    }

    fn begin(&mut self) -> Result<(Cues, Files), FileError> {
        let (member, mut random) = (self.member.clone(), Random(self.random.next()));
        let ends = Ends {
            connect: Box::new(move || Ok(Box::new(member.clone()))),
            question: Box::new(move || {
                let mut question = [0; 32];
                question.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()));
                Ok(question)
            }),
            clock: self.hand.begin(),
            boot: format!("boot {}", self.boot.1),
        };
        Cues::begin(&self.hosts, &self.places, ends)
    }

    /// It is killed.
    pub fn kill(&mut self) {
        (self.running, self.successor) = (None, None);
    }

    /// Its machine starts anew.
    pub fn reboot(&mut self, now: Time) {
        self.kill();
        self.boot = (now, self.boot.1 + 1);
        self.tick(now);
    }

    /// Another one prepares to take its place: it reads the files.
    pub fn prepare(&mut self) {
        self.successor = self.begin().ok().filter(|_| self.running.is_some());
    }

    /// The other one takes its place, if both are still there.
    pub fn replace(&mut self, now: Time) {
        let Some((mut cues, files)) = self.successor.take() else { return };
        let Some(before) = self.running.take() else { return };
        cues.take(&before.cues.give()).expect("it was just given");
        let mut core = Enforcer::new(LIMITS, Vec::new(), self.random.next());
        core.restore_handshakes(now, &before.core.handshakes(now));
        let packets = RefCell::new(Vec::new());
        let write = |packet: &Simulated| {
            packets.borrow_mut().push(*packet);
            (packets.borrow().len() as u64 - 1).to_le_bytes().to_vec()
        };
        let read = |bytes: &[u8]| packets.borrow().get(u64::from_le_bytes(bytes.try_into().ok()?) as usize).copied();
        for flow in before.core.checkpoints(now, write) {
            core.restore(now, &flow, read);
        }
        self.running = Some(Running { cues, files, core });
    }

    /// What becomes of its disk; whether what was on it may be forgotten.
    pub fn harm(&mut self, disk: Disk) -> bool {
        harm(&self.places.state, disk, &self.snapshot, &mut self.random)
    }

    /// Keeps the disk's content, to come back later.
    pub fn keep(&mut self) {
        self.snapshot = content(&self.places.state);
    }

    /// Whether its disk is full, or takes nothing and says nothing.
    pub fn fail(&mut self, now: Time, is_full: bool, is_hung: bool) {
        if self.is_full != is_full {
            fill(&self.places.state, &["epoch", "reverted"], is_full);
        }
        (self.is_full, self.is_hung) = (is_full, is_hung);
        if is_full || is_hung {
            self.failed_at = Some(now);
        }
    }

    /// Whether something may not be on its disk.
    pub fn is_forgetful(&self, now: Time) -> bool {
        self.failed_at.is_some_and(|at| now <= at + WRITTEN_WITHIN)
    }

    /// Whether the path of its servers loses segments.
    pub fn lose(&mut self, is_losing: impl Fn(usize) -> bool) {
        (0..self.hosts.len()).for_each(|server| self.traffic.lose(server, is_losing(server)));
    }

    /// A step, without packets.
    pub fn step(&mut self, now: Time) -> Done {
        let Some(Running { cues, files, core }) = &mut self.running else {
            self.member.net.borrow_mut().take(self.member.end);
            return Done::default();
        };
        let mut said = Vec::new();
        let turned = cues.turn(now, core, &[], &mut |line| said.push(line.to_string()));
        if !self.is_hung {
            files.turn();
        }
        let ended = turned.err().map(|error| error.to_string());
        if ended.is_some() {
            self.kill();
        }
        Done { said, ended, ..self.member.done.take() }
    }

    /// Packets of the next tick. What must not be with them.
    pub fn carry(&mut self, now: Time) -> Vec<String> {
        let enforced: Vec<bool> = (0..self.hosts.len()).map(|server| self.is_enforced(server)).collect();
        let core = self.running.as_mut().map(|running| &mut running.core);
        self.traffic.run(now + TICK, core, &enforced);
        if now.as_ns().is_multiple_of(1_000_000_000) {
            self.traffic.look(&enforced);
        }
        std::mem::take(&mut self.traffic.complaints)
    }

    /// Whether it has a rule for a server, or flows of it.
    fn is_enforced(&self, server: usize) -> bool {
        let address = self.hosts[server].prefix.address();
        let client = End::new(Ipv4Addr::new(192, 0, 2, 1).into(), 40_000);
        let is = |core: &Enforcer<Simulated>| {
            core.is_for(End::new(address, 80), client) || core.sent().any(|(end, _)| end.ip() == address)
        };
        self.running.as_ref().is_some_and(|running| is(&running.core))
    }

    /// What is in force for a server; the policy has one rule.
    pub fn in_force(&self, server: usize) -> Vec<InKernel> {
        let rule = InKernel { policy: "storm".into(), rule: "fast".into(), until: Duration::MAX };
        if self.is_enforced(server) { vec![rule] } else { Vec::new() }
    }

    /// Whether a guard must have reverted what is in force for a server.
    pub fn is_judged(&self, server: usize) -> bool {
        self.traffic.is_judged(server)
    }

    /// What is beyond its limits.
    pub fn beyond(&self) -> Option<String> {
        let core = &self.running.as_ref()?.core;
        let (flows, bytes) = (core.flows(), core.buffered_bytes());
        let is_beyond = flows > FLOWS_MAX * self.hosts.len() || bytes > LIMITS.buffer_bytes;
        is_beyond.then(|| format!("the enforcer has {flows} flows, and buffers {bytes} bytes"))
    }
}
