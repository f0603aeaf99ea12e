//! The bus between Oracles and hosts, and the store of the lease; both fail as the plan has it.

use bus::{BusCounts, BusError, Entry, Hub, Peer, Received, ReplyTo, Store, StoreError};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testkit::Random;
use units::Time;

/// Messages that an attacker remembers.
const RECORDED_MAX: usize = 256;
/// Messages that wait for a process; one that takes none loses the oldest.
pub const WAITING_MAX: usize = 1024;

/// A message under way.
struct Packet {
    to: To,
    from: Option<Peer>,
    reply: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum To {
    Oracle(usize),
    Host(usize),
}

/// How the bus fails now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// Of a hundred messages.
    pub loss: u64,
    pub twice: u64,
    pub damage: u64,
    /// At most.
    pub delay: Time,
    pub hosts_cut: Vec<usize>,
    pub oracles_cut: Vec<usize>,
}

/// The bus.
pub struct Net {
    random: Random,
    pub now: Time,
    pub weather: Weather,
    sequence: u64,
    under_way: BTreeMap<(Time, u64), Packet>,
    /// With agents, and then the enforcer.
    hosts: Vec<VecDeque<Vec<u8>>>,
    oracles: Vec<VecDeque<Received>>,
    /// What an attacker has recorded.
    recorded: VecDeque<Vec<u8>>,
}

impl Net {
    pub fn new(random: Random, hosts: usize, oracles: usize) -> Net {
        Net {
            random,
            now: Time::ZERO,
            weather: Weather::default(),
            sequence: 0,
            under_way: BTreeMap::new(),
            hosts: vec![VecDeque::new(); hosts],
            oracles: vec![VecDeque::new(); oracles],
            recorded: VecDeque::new(),
        }
    }

    fn post(&mut self, (oracle, host): (usize, Option<usize>), packet: &Packet) {
        let Weather { loss, twice, damage, delay, hosts_cut, oracles_cut } = &self.weather;
        let is_cut = oracles_cut.contains(&oracle) || host.is_some_and(|host| hosts_cut.contains(&host));
        let mut is = |percent: u64| self.random.below(100) < percent;
        let (is_lost, is_damaged) = (is(*loss), is(*damage));
        // what hosts send is sealed: a second copy is refused before the Oracle sees it
        let copies = if matches!(packet.to, To::Host(_)) && is(*twice) { 2 } else { 1 };
        if is_cut || is_lost {
            return;
        }
        for _ in 0..copies {
            let late = Time::from_ms(self.random.below(20 + delay.as_ns() / 1_000_000));
            let mut bytes = packet.bytes.clone();
            if is_damaged && matches!(packet.to, To::Host(_)) {
                let at = self.random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random.below(8);
            }
            self.sequence += 1;
            let (to, from, reply) = (packet.to, packet.from.clone(), packet.reply);
            self.under_way.insert((self.now + late, self.sequence), Packet { to, from, reply, bytes });
        }
    }

    /// A message of `from` to every Oracle; answers go to `reply`.
    pub fn report(&mut self, from: &Peer, reply: usize, is_collector: bool, bytes: &[u8]) {
        for oracle in 0..self.oracles.len() {
            let packet = Packet { to: To::Oracle(oracle), from: Some(from.clone()), reply, bytes: bytes.to_vec() };
            self.post((oracle, (!is_collector).then_some(reply)), &packet);
        }
    }

    fn send(&mut self, oracle: usize, host: usize, bytes: &[u8]) {
        if self.recorded.len() >= RECORDED_MAX {
            self.recorded.pop_front();
        }
        self.recorded.push_back(bytes.to_vec());
        if host < self.hosts.len() {
            let packet = Packet { to: To::Host(host), from: None, reply: 0, bytes: bytes.to_vec() };
            self.post((oracle, Some(host)), &packet);
        }
    }

    /// Something recorded reaches a host.
    pub fn replay(&mut self) {
        if self.recorded.is_empty() {
            return;
        }
        let at = self.random.below(self.recorded.len() as u64) as usize;
        let host = self.random.below(self.hosts.len() as u64) as usize;
        self.inject(host, self.recorded[at].clone());
    }

    /// These bytes reach a host, whoever sent them.
    pub fn inject(&mut self, host: usize, bytes: Vec<u8>) {
        self.hosts[host].push_back(bytes);
    }

    /// Moves what has arrived to those who take it.
    pub fn arrive(&mut self, now: Time) {
        self.now = now;
        let later = self.under_way.split_off(&(now + Time::from_ps(1), 0));
        for packet in mem::replace(&mut self.under_way, later).into_values() {
            match (packet.to, packet.from) {
                (To::Host(host), _) => {
                    self.hosts[host].push_back(packet.bytes);
                    if self.hosts[host].len() > WAITING_MAX {
                        self.hosts[host].pop_front();
                    }
                }
                (To::Oracle(oracle), Some(from)) => {
                    let reply = ReplyTo::Connection(packet.reply as u64);
                    self.oracles[oracle].push_back(Received { from, bytes: packet.bytes, reply });
                    if self.oracles[oracle].len() > WAITING_MAX {
                        self.oracles[oracle].pop_front();
                    }
                }
                (To::Oracle(_), None) => {}
            }
        }
    }

    /// What has come for a host.
    pub fn take(&mut self, host: usize) -> VecDeque<Vec<u8>> {
        mem::take(&mut self.hosts[host])
    }

    /// The next of what has come for a host.
    pub fn next(&mut self, host: usize) -> Option<Vec<u8>> {
        self.hosts[host].pop_front()
    }

    /// Whether something has come for an Oracle.
    pub fn waits_for(&self, oracle: usize) -> bool {
        !self.oracles[oracle].is_empty()
    }

    /// What waits for a process that is down is lost.
    pub fn forget(&mut self, oracle: usize) {
        self.oracles[oracle].clear();
    }
}

/// An Oracle's end of the bus.
pub struct OracleEnd {
    pub net: Rc<RefCell<Net>>,
    pub oracle: usize,
}

impl Hub for OracleEnd {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        let mut net = self.net.borrow_mut();
        (0..net.hosts.len()).for_each(|host| net.send(self.oracle, host, message));
        Ok(())
    }

    fn answer(&mut self, to: &ReplyTo, message: &[u8]) -> Result<(), BusError> {
        if let ReplyTo::Connection(host) = to {
            self.net.borrow_mut().send(self.oracle, *host as usize, message);
        }
        Ok(())
    }

    fn receive(&mut self, _wait: Duration) -> Result<Option<Received>, BusError> {
        Ok(self.net.borrow_mut().oracles[self.oracle].pop_front())
    }

    fn counts(&self) -> BusCounts {
        BusCounts::default()
    }
}

/// The content of the store, and what it was.
#[derive(Debug, Default)]
pub struct Shelf {
    entries: BTreeMap<String, Entry>,
    /// As it was some time ago.
    before: BTreeMap<String, Entry>,
    /// Oracles that do not reach it.
    pub cut: Vec<usize>,
}

/// The store, as an Oracle reaches it.
#[derive(Clone)]
pub struct StoreEnd {
    pub shelf: Arc<Mutex<Shelf>>,
    pub oracle: usize,
}

impl Shelf {
    /// Is to come back as it is now.
    pub fn keep(&mut self) {
        self.before = self.entries.clone();
    }

    /// It is as it was.
    pub fn go_back(&mut self) {
        self.entries = self.before.clone();
    }

    /// It is empty.
    pub fn lose(&mut self) {
        self.entries.clear();
    }
}

impl StoreEnd {
    fn shelf(&self) -> Result<MutexGuard<'_, Shelf>, StoreError> {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.cut.contains(&self.oracle) { Err(StoreError::Away("cut off".into())) } else { Ok(shelf) }
    }
}

impl Store for StoreEnd {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.shelf()?.entries.get(key).cloned())
    }

    fn put(&mut self, key: &str, value: &[u8], revision: Option<u64>) -> Result<Option<u64>, StoreError> {
        let mut shelf = self.shelf()?;
        if shelf.entries.get(key).map(|entry| entry.revision) != revision {
            return Ok(None);
        }
        let next = revision.map_or(1, |revision| revision + 1);
        shelf.entries.insert(key.to_string(), Entry { value: value.to_vec(), revision: next });
        Ok(Some(next))
    }
}
