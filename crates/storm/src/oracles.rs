//! Oracles: each with its disk, its clocks and its process.

use crate::host::{fill, harm, remove, since};
use crate::net::{Net, OracleEnd, Shelf, StoreEnd};
use crate::plan::Disk;
use crate::world::{POLICY, parse};
use bus::{Address, Hand, Store};
use oracle::{AuditLog, Config, Daemon, Ends, OracleError};
use policy::{Cue, Decision};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use testkit::Random;
use units::Time;

/// Seconds since 1970 at a storm's begin.
const BEGAN_S: u64 = 1_790_000_000;

/// An Oracle, running or not.
pub struct SimulatedOracle {
    number: usize,
    hand: Hand,
    folder: PathBuf,
    key: PathBuf,
    random: Random,
    pub daemon: Option<Daemon>,
    /// When its clock was begun.
    begun: Time,
    pub is_full: bool,
    /// Its disk was damaged, so the audit log may be.
    pub was_harmed: bool,
    snapshot: BTreeMap<String, Vec<u8>>,
}

/// A decision that was sent.
#[derive(Debug)]
pub struct Sent {
    pub oracle: usize,
    pub epoch: u64,
    /// The rollout is over.
    pub rolled_back: bool,
    pub hosts: usize,
    pub treated: usize,
    pub cues: Vec<Cue>,
    /// Hosts that it has heard of.
    pub known: usize,
}

/// What several have.
pub struct Around {
    pub net: Rc<RefCell<Net>>,
    /// `None`: one Oracle alone.
    pub shelf: Option<Arc<Mutex<Shelf>>>,
}

impl SimulatedOracle {
    pub fn new(number: usize, folder: PathBuf, key: PathBuf, seed: u64) -> SimulatedOracle {
        fs::create_dir_all(&folder).expect("a folder of the storm");
        SimulatedOracle {
            number,
            hand: Hand::default(),
            folder,
            key,
            random: Random(seed),
            daemon: None,
            begun: Time::ZERO,
            is_full: false,
            was_harmed: false,
            snapshot: BTreeMap::new(),
        }
    }

    /// Moves its clocks; the wall clock is wrong by so many hours.
    pub fn tick(&mut self, now: Time, hours: i64) {
        self.hand.set(since(now, Time::ZERO));
        self.hand.set_wall((BEGAN_S + now.as_ns() / 1_000_000_000).saturating_add_signed(hours * 3600));
    }

    /// Starts. One whose files are damaged is started after they were removed; whether that was so.
    pub fn start(&mut self, now: Time, around: &Around, say: &mut dyn FnMut(&str)) -> bool {
        self.begun = now;
        let mut was_damaged = false;
        loop {
            match self.begin(around, say) {
                Ok(daemon) => self.daemon = Some(daemon),
                Err(error) => {
                    say(&error.to_string());
                    // a full disk is tried again
                    if !self.is_full && remove(&self.folder, &error.to_string()) {
                        was_damaged = true;
                        continue;
                    }
                }
            }
            return was_damaged;
        }
    }

    fn begin(&self, around: &Around, say: &mut dyn FnMut(&str)) -> Result<Daemon, OracleError> {
        let (policy, address) =
            (parse("storm.toml", POLICY).expect("the policy of storms"), Address::Nats("bus".into()));
        let parse = Box::new(|name: &str, text: &str, _: &[String]| parse(name, text));
        let places = (self.key.clone(), self.folder.clone());
        let mut audit = AuditLog::open(&self.folder).map_err(std::io::Error::other)?;
        let record = Box::new(move |event: &oracle::Event<'_>| {
            let _ = audit.on(event);
            Ok(audit.lost())
        });
        let config = Config {
            number: self.number as u8,
            record: Some(record),
            ..Config::new(policy, POLICY.to_string(), places, address, parse)
        };
        let hub = Box::new(OracleEnd { net: around.net.clone(), oracle: self.number });
        let end = |shelf: &Arc<Mutex<Shelf>>| -> Box<dyn Store> {
            Box::new(StoreEnd { shelf: shelf.clone(), oracle: self.number })
        };
        let store = around.shelf.as_ref().map(end);
        Daemon::begin(config, Ends { hub: Some(hub), store, clock: self.hand.begin() }, say)
    }

    /// A step, if it has something to do. What it has decided and sent.
    pub fn step(&mut self, now: Time, net: &RefCell<Net>, say: &mut dyn FnMut(&str)) -> Vec<Sent> {
        let mut sent = Vec::new();
        let (begun, number) = (self.begun, self.number);
        let Some(daemon) = &mut self.daemon else { return sent };
        if daemon.next() > now.saturating_sub(begun) && !net.borrow().waits_for(number) {
            return sent;
        }
        let mut decided = |decision: &Decision, verdict: &policy::VerdictReport, status: &oracle::Status| {
            sent.push(Sent {
                oracle: number,
                epoch: decision.epoch,
                rolled_back: verdict.roll_back,
                hosts: decision.hosts,
                treated: decision.treated,
                cues: decision.to_send().to_vec(),
                known: status.hosts,
            });
            Ok(())
        };
        if let Err(error) = daemon.step(&mut decided, say) {
            say(&error.to_string());
            self.daemon = None;
        }
        sent
    }

    /// It is killed.
    pub fn kill(&mut self, net: &RefCell<Net>) {
        self.daemon = None;
        net.borrow_mut().forget(self.number);
    }

    /// What becomes of its disk; whether what was on it may be forgotten.
    pub fn harm(&mut self, disk: Disk) -> bool {
        let is_harmed = harm(&self.folder, disk, &self.snapshot, &mut self.random);
        self.was_harmed |= is_harmed;
        is_harmed
    }

    /// Keeps the disk's content, to come back later.
    pub fn keep(&mut self) {
        self.snapshot = ["epoch", "rollout.json", "policies.json"]
            .into_iter()
            .filter_map(|name| Some((name.to_string(), fs::read(self.folder.join(name)).ok()?)))
            .collect();
    }

    /// Whether its disk is full.
    pub fn fill(&mut self, is_full: bool) {
        if self.is_full != is_full {
            fill(&self.folder, &["epoch", "rollout", "policies"], is_full);
            self.is_full = is_full;
        }
    }

    /// What is wrong with its audit log, if its disk was never damaged.
    pub fn audit(&self) -> Option<String> {
        let report = audit::verify(&self.folder.join("audit")).ok()?;
        (!self.was_harmed && !report.damages.is_empty()).then(|| format!("Oracle {}: {report:?}", self.number))
    }
}
