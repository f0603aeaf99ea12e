//! The process `opentcp collect`: asks switches, receives flow export, and sends what it measured to the Oracle.
//!
//! Every source has a task of its own, so one that does not answer delays nobody. All tasks share one thread. The loop beside them sends a
//! measurement each interval, whatever has answered by then: ages say how old the rest is.

mod sender;
mod source;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::flows::FlowCounts;
use crate::watch::{Watched, WatchedSwitch};
use crate::{MeterCounts, Neighbour};
use bus::{Address, Clock, Measurement};
use metrics::{MetricsError, Server};
use policy::{Link, NetworkView, RackPair};
use sender::Sender;
use serde::Serialize;
use source::{Shared, State};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::LocalSet;
use units::Time;

/// What a collector calls itself unless its file or its identity says otherwise.
const NAME: &str = "collector";
/// The longest wait before it is looked whether to stop.
const STEP: Duration = Duration::from_millis(100);
/// How long sources may take to end.
const PARTING: Duration = Duration::from_secs(4);
/// How often metrics are renewed.
const WATCH: Time = Time::from_secs(1);
/// Longest problem, bytes.
const PROBLEM_MAX: usize = 255;
/// Intervals after which one round is enough, whatever has failed.
const ONCE_INTERVALS: u64 = 3;
/// Longest wait for a switch after these that has neither answered nor failed.
const ONCE_MAX: Time = Time::from_secs(120);

/// Where measurements go.
#[derive(Debug)]
pub enum Target {
    /// To the Oracle.
    Oracle(Address),
    /// To `seen`, each interval.
    Print,
    /// To `seen`, once every switch has answered twice, or it is known which do not, and after three intervals at least.
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
    /// Switches that were to be measured once, and were not.
    #[error("not measured: {}", .0.join("; "))]
    Unmeasured(Vec<String>),
    /// Certificates.
    #[error("{0}")]
    Tls(String),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
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
    /// These, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<&'static str, u64>,
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

/// Collects until `stop` returns true, and serves metrics at an address if there is one. `seen` is handed what was measured, each interval;
/// `say` a line about anything else.
///
/// # Errors
/// It cannot begin. What cannot be reached later is a problem of its source.
pub fn run(
    config: Config,
    target: &Target,
    metrics: Option<SocketAddr>,
    stop: &dyn Fn() -> bool,
    seen: &mut dyn FnMut(&Seen) -> io::Result<()>,
    say: &mut dyn FnMut(&str),
) -> Result<(), CollectError> {
    let metrics = metrics.map(Server::bind).transpose()?;
    if let Some(server) = &metrics {
        say(&format!("metrics at http://{}/metrics", server.address()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let (name, interval) = (config.name.clone().unwrap_or_else(|| NAME.to_string()), config.interval);
    let local = LocalSet::new();
    let clock = Clock::begin();
    let result = local.block_on(&runtime, async {
        let (end, ended) = watch::channel(false);
        let sources = source::start(config, clock, &ended).await?;
        let sender = match target {
            Target::Oracle(address) => Some(Sender::start(address.clone(), clock)?),
            Target::Print | Target::Once => None,
        };
        let mut collector = Collector { name, interval, clock, sources: &sources, sender, metrics, links: [0; 2] };
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
    sender: Option<Sender>,
    metrics: Option<Server>,
    /// Links that were measured last, known and unknown.
    links: [usize; 2],
}

impl Collector<'_> {
    async fn run(
        &mut self,
        target: &Target,
        stop: &dyn Fn() -> bool,
        seen: &mut dyn FnMut(&Seen) -> io::Result<()>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), CollectError> {
        let (mut next, mut problems, mut watch_at) = (self.interval, Vec::new(), Time::ZERO);
        // the Oracle knows the round before by its number: a restarted collector must not repeat one
        let mut round = u64::from_be_bytes(bus::random()?) >> 1;
        while !stop() {
            let now = self.clock.now();
            self.sender.iter().flat_map(Sender::said).for_each(|line| say(&line));
            if let Some(server) = self.metrics.as_ref().filter(|_| now >= watch_at) {
                watch_at = now + WATCH;
                server.publish(self.watched(now).page());
            }
            let is_once = matches!(target, Target::Once);
            if is_once && self.is_measured(now) {
                let what = self.seen(now);
                seen(&what)?;
                let missing: Vec<String> =
                    self.sources.iter().filter_map(|source| source.state.borrow().why_unknown()).collect();
                return if missing.is_empty() { Ok(()) } else { Err(CollectError::Unmeasured(missing)) };
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
                say(&format!("<4>{problem}"));
            }
            if found.is_empty() && !problems.is_empty() {
                say("every source answers");
            }
            problems = found;
            seen(&what)?;
            let known = what.view.links.iter().filter(|link| link.utilization.is_some()).count();
            self.links = [known, what.view.links.len() - known];
            round += 1;
            let measurement = Measurement {
                source: self.name.clone(),
                round,
                links: what.view.links,
                matrix: what.view.matrix,
                problems: problems.clone(),
            };
            if let Some(sender) = &self.sender {
                sender.send(measurement, now);
            }
        }
        Ok(())
    }

    /// Whether nothing more is to be expected of a measurement that is made once.
    fn is_measured(&self, now: Time) -> bool {
        let least = self.interval * ONCE_INTERVALS;
        let all = |is: &dyn Fn(&State) -> bool| self.sources.iter().all(|source| is(&source.state.borrow()));
        all(&State::is_known) || (now > least && (all(&State::is_settled) || now > least + ONCE_MAX))
    }

    /// What its metrics show at `now`.
    fn watched(&self, now: Time) -> Watched {
        let sources: Vec<Status> = self.sources.iter().map(|source| source.state.borrow().status(now)).collect();
        let (flows, switches): (Vec<&Status>, Vec<&Status>) = sources.iter().partition(|one| one.flows.is_some());
        let switches = switches.into_iter().map(|one| WatchedSwitch {
            name: one.name.clone(),
            protocol: label(one.protocol),
            age_s: one.age.unwrap_or(now).as_secs_f64(),
            answers: one.answers,
        });
        let mut errors: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (reason, count) in sources.iter().flat_map(|one| &one.reasons) {
            *errors.entry(reason).or_default() += count;
        }
        let counters = sources.iter().fold(MeterCounts::default(), |sum, one| sum.plus(one.counters));
        let mut records: BTreeMap<&'static str, [u64; 2]> = BTreeMap::new();
        for one in flows {
            let Some(counts) = one.flows else { continue };
            let sum = records.entry(label(one.protocol)).or_default();
            let FlowCounts { malformed, lost, no_template, pairs_beyond, ignored, implausible, .. } = counts;
            let taken = counts.counted + counts.elsewhere + counts.no_rack;
            *sum = [sum[0] + taken, sum[1] + malformed + lost + no_template + pairs_beyond + ignored + implausible];
        }
        Watched {
            connected: self.sender.as_ref().is_some_and(Sender::is_connected),
            measurements: self.sender.as_ref().map_or(0, Sender::sent),
            switches: switches.collect(),
            errors: errors.into_iter().collect(),
            links: self.links,
            counter_events: counters.events().to_vec(),
            flow_records: records.into_iter().collect(),
        }
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

/// A protocol as a label.
fn label(protocol: &'static str) -> &'static str {
    match protocol {
        "SNMP" => "snmp",
        "OpenFlow" => "openflow",
        "gNMI" => "gnmi",
        "sFlow" => "sflow",
        _ => "ipfix",
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
