//! The process `opentcp collect`: asks switches, receives flow export, and sends what it measured to the Oracle.
//!
//! Every source has a task of its own, so one that does not answer delays nobody. All tasks share one thread. The loop beside them sends a
//! measurement each interval, whatever has answered by then: ages say how old the rest is.

mod source;

use crate::config::Config;
use crate::flows::FlowCounts;
use crate::{MeterCounts, Neighbour};
use bus::{Address, Bus, BusError, Clock, Measurement};
use policy::{Link, NetworkView, RackPair};
use serde::Serialize;
use source::{Shared, State};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::LocalSet;
use units::Time;

/// The longest wait before it is looked whether to stop.
const STEP: Duration = Duration::from_millis(100);
/// How long sources may take to end.
const PARTING: Duration = Duration::from_secs(4);
/// Shortest and longest wait before the bus is tried once more.
const RETRY_MIN: Time = Time::from_secs(1);
const RETRY_MAX: Time = Time::from_secs(30);
/// How often a full bus is tried with one message.
const FULL_TRIES: u32 = 50;
const FULL_WAIT: Duration = Duration::from_millis(20);
/// Longest problem, bytes.
const PROBLEM_MAX: usize = 255;
/// Intervals after which one round is enough, whatever has not answered.
const ONCE_INTERVALS: u64 = 3;

/// Where measurements go.
#[derive(Debug)]
pub enum Target {
    /// To the Oracle.
    Oracle(Address),
    /// To `seen`, each interval.
    Print,
    /// To `seen`, once every source has answered twice, or after three intervals.
    Once,
}

/// Why a collector ends.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// A socket cannot be opened.
    #[error("{what}: {error}")]
    Socket {
        /// Which.
        what: String,
        /// The system's.
        error: io::Error,
    },
    /// Certificates.
    #[error("{0}")]
    Tls(String),
    /// The system's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A source, and how it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its protocol.
    pub protocol: &'static str,
    /// Answers, or rounds.
    pub answers: u64,
    /// Questions without an answer.
    pub failures: u64,
    /// Since the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Time>,
    /// What is wrong now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What became of its counters.
    pub counters: MeterCounts,
    /// What became of its flow export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowCounts>,
}

/// What was measured, and how the sources are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Links and matrix, with ages.
    pub view: NetworkView,
    /// The sources.
    pub sources: Vec<Status>,
}

/// Collects until `stop` returns true. `seen` is handed what was measured, each interval; `say` a line about anything else.
///
/// # Errors
/// It cannot begin. What cannot be reached later is a problem of its source.
pub fn run(
    config: Config,
    target: &Target,
    stop: &dyn Fn() -> bool,
    seen: &mut dyn FnMut(&Seen) -> io::Result<()>,
    say: &mut dyn FnMut(&str),
) -> Result<(), CollectError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let (name, interval) = (config.name.clone(), config.interval);
    let local = LocalSet::new();
    let clock = Clock::begin();
    let result = local.block_on(&runtime, async {
        let (end, ended) = watch::channel(false);
        let sources = source::start(config, clock, &ended).await?;
        let mut collector = Collector { name, interval, clock, sources: &sources, sender: Sender::new(target, clock) };
        let result = collector.run(target, stop, seen, say).await;
        // those that changed something at a switch undo it
        let _ = end.send(true);
        let parting = async {
            for source in &sources {
                source.ended.notified().await;
            }
        };
        let _ = tokio::time::timeout(PARTING, parting).await;
        result
    });
    drop(local);
    result
}

struct Collector<'a> {
    name: String,
    interval: Time,
    clock: Clock,
    sources: &'a [Rc<Shared>],
    sender: Sender<'a>,
}

impl Collector<'_> {
    async fn run(
        &mut self,
        target: &Target,
        stop: &dyn Fn() -> bool,
        seen: &mut dyn FnMut(&Seen) -> io::Result<()>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), CollectError> {
        let (mut next, mut problems) = (self.interval, Vec::new());
        // the Oracle knows the round before by its number: a restarted collector must not repeat one
        let mut round = u64::from_be_bytes(bus::random()?) >> 1;
        while !stop() {
            self.sender.drain();
            let now = self.clock.now();
            let all_answered = || self.sources.iter().all(|source| source.state.borrow().is_known());
            let is_once = matches!(target, Target::Once);
            if is_once && (all_answered() || now > self.interval * ONCE_INTERVALS) {
                seen(&self.seen(now))?;
                return Ok(());
            }
            if now < next || is_once {
                tokio::time::sleep(STEP).await;
                continue;
            }
            // intervals that the machine slept through are not made up for
            next = if next + self.interval > now { next + self.interval } else { now + self.interval };
            let what = self.seen(now);
            let found: Vec<String> = what.sources.iter().flat_map(|source| source.problems.clone()).collect();
            for problem in found.iter().filter(|problem| !problems.contains(*problem)) {
                say(problem);
            }
            if found.is_empty() && !problems.is_empty() {
                say("every source answers");
            }
            problems = found;
            seen(&what)?;
            round += 1;
            let measurement = Measurement {
                source: self.name.clone(),
                round,
                links: what.view.links,
                matrix: what.view.matrix,
                problems: problems.clone(),
            };
            self.sender.send(measurement, say).await;
        }
        Ok(())
    }

    /// What all sources know at `now`.
    fn seen(&self, now: Time) -> Seen {
        let mut links: Vec<Link> = Vec::new();
        let mut neighbours: BTreeMap<String, Neighbour> = BTreeMap::new();
        let mut pairs: BTreeMap<(String, String), RackPair> = BTreeMap::new();
        let mut sources = Vec::new();
        for source in self.sources {
            let mut state = source.state.borrow_mut();
            let (more, of_flows) = state.links(now);
            links.extend(more);
            neighbours.extend(state.neighbours());
            for pair in of_flows {
                let key = (pair.from.clone(), pair.to.clone());
                // two sources may count the same packets
                match pairs.get_mut(&key) {
                    Some(known) => known.rate = known.rate.max(pair.rate),
                    None => {
                        pairs.insert(key, pair);
                    }
                }
            }
            sources.push(state.status(now));
        }
        // a cable between two switches is seen at both ends; what one sends counts
        let sent: BTreeSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let is_double = |link: &Link| {
            let sender = neighbours.get(&link.name)?;
            Some(sent.contains(format!("{} {} out", sender.system, sender.port).as_str()))
        };
        let double: BTreeSet<String> =
            links.iter().filter(|link| is_double(link) == Some(true)).map(|link| link.name.clone()).collect();
        links.retain(|link| !double.contains(&link.name));
        let mut names = BTreeSet::new();
        links.retain(|link| names.insert(link.name.clone()));
        let view = NetworkView { at: now, links, matrix: pairs.into_values().collect(), ..NetworkView::default() };
        Seen { view, sources }
    }
}

/// The way to the Oracle.
struct Sender<'a> {
    address: Option<&'a Address>,
    clock: Clock,
    bus: Option<Box<dyn Bus>>,
    /// When it is tried next, and the wait after that.
    retry_at: Time,
    wait: Time,
    /// What was said of it.
    trouble: Option<String>,
}

impl<'a> Sender<'a> {
    fn new(target: &'a Target, clock: Clock) -> Sender<'a> {
        let address = match target {
            Target::Oracle(address) => Some(address),
            Target::Print | Target::Once => None,
        };
        Sender { address, clock, bus: None, retry_at: Time::ZERO, wait: RETRY_MIN, trouble: None }
    }

    /// Takes what the Oracle sends to all, which is not for collectors: it would drop one that does not read.
    fn drain(&mut self) {
        while let Some(bus) = &mut self.bus {
            match bus.receive(Duration::ZERO) {
                Ok(Some(_)) => (),
                Ok(None) => return,
                Err(_) => self.bus = None,
            }
        }
    }

    async fn send(&mut self, measurement: Measurement, say: &mut dyn FnMut(&str)) {
        let Some(address) = self.address else { return };
        let now = self.clock.now();
        if self.bus.is_none() && now >= self.retry_at {
            match address.connect() {
                Ok(bus) => {
                    say(&format!("sends to {address}"));
                    (self.bus, self.wait, self.trouble) = (Some(bus), RETRY_MIN, None);
                }
                Err(error) => {
                    let error = error.to_string();
                    if self.trouble.as_ref() != Some(&error) {
                        say(&format!("{error}; trying on"));
                        self.trouble = Some(error);
                    }
                    self.retry_at = now + self.wait;
                    self.wait = (self.wait * 2).min(RETRY_MAX);
                }
            }
        }
        let Some(bus) = &mut self.bus else { return };
        for message in measurement.to_messages() {
            let mut result = bus.send(&message);
            for _ in 0..FULL_TRIES {
                if !matches!(result, Err(BusError::Full)) {
                    break;
                }
                tokio::time::sleep(FULL_WAIT).await;
                result = bus.send(&message);
            }
            if let Err(error) = result {
                say(&format!("{address}: {error}"));
                if !matches!(error, BusError::Full) {
                    self.bus = None;
                }
                return;
            }
        }
    }
}

impl State {
    /// A line of at most [`PROBLEM_MAX`] bytes.
    fn problem(name: &str, text: &str) -> String {
        crate::meter::plain(&format!("{name}: {text}"), PROBLEM_MAX)
    }
}

/// What a source shares with the loop.
type Cell<T> = RefCell<T>;
