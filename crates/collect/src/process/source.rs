//! One task per source: a switch that is asked each interval, or a socket that receives flow export.

use super::{Cell, CollectError, Status};
use crate::config::{Config, End, OpenFlow, Receiver, Switch, Way};
use crate::flows::{DATAGRAM_MAX, Flows, Protocol};
use crate::openflow::{self, Expected, Listener, LldpKey, MatrixSettings, Rack};
use crate::{Meter, MeterCounts, Moment, Neighbour, ReadError, Reader, SwitchCounters, gnmi, snmp};
use bus::Clock;
use policy::{Link, RackPair};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::{Notify, watch};
use units::Time;

/// A port that was in no answer for so long is forgotten.
const KEEP: Time = Time::from_secs(3600);
/// Longest wait for one reading, whatever a protocol's own timeouts are.
const READING_MAX: Duration = Duration::from_secs(120);
/// Datagrams that are taken before others have their turn.
const BURST: usize = 256;
/// Bytes that the kernel keeps of datagrams that wait: at 400 bytes of each, some ten thousand.
const SOCKET_BUFFER: usize = 4 << 20;
/// How often neighbours are looked for.
const LLDP_INTERVAL: Duration = Duration::from_secs(30);
/// Most prefixes of racks of a matrix from flow entries.
const OPENFLOW_RACKS_MAX: usize = openflow::RACKS_MAX;

/// A source, as its task and the loop see it.
#[derive(Debug)]
pub(super) struct Shared {
    pub state: Cell<State>,
    /// Its task has ended.
    pub ended: Notify,
}

/// How a source is.
#[derive(Debug)]
pub(super) struct State {
    name: String,
    protocol: &'static str,
    answers: u64,
    failures: u64,
    /// The failures, by reason.
    reasons: BTreeMap<&'static str, u64>,
    answered_at: Option<Time>,
    error: Option<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Switch { meter: Box<Meter>, matrix: Vec<RackPair>, matrix_at: Time, interval: Time },
    Flows { flows: Box<Flows>, problems: Vec<String> },
}

impl State {
    /// Whether it has measured something.
    pub fn is_known(&self) -> bool {
        match self.what {
            What::Switch { .. } => self.answers >= 2,
            What::Flows { .. } => false,
        }
    }

    /// Whether it is known, or will not be soon: it has failed.
    pub fn is_settled(&self) -> bool {
        self.is_known() || self.error.is_some() || matches!(self.what, What::Flows { .. })
    }

    /// Why a switch has not been measured, for people; `None` if it has, or is no switch.
    pub fn why_unknown(&self) -> Option<String> {
        let What::Switch { meter, .. } = &self.what else { return None };
        let why = match (&self.error, self.answers) {
            (_, 2..) if meter.is_empty() => "it shows no interface that is a link".to_string(),
            (_, 2..) => return None,
            (Some(error), _) => error.clone(),
            (None, 0) => "it has not answered".to_string(),
            (None, _) => "it has answered once, and two answers make a measurement".to_string(),
        };
        Some(State::problem(&self.name, &why))
    }

    /// Links, and traffic from rack to rack. With flow export this ends a round.
    pub fn links(&mut self, now: Time) -> (Vec<Link>, Vec<RackPair>) {
        match &mut self.what {
            What::Switch { meter, matrix, matrix_at, interval } => {
                let is_fresh = now.saturating_sub(*matrix_at) <= *interval * 2;
                (meter.links(now), if is_fresh { matrix.clone() } else { Vec::new() })
            }
            What::Flows { flows, problems } => {
                self.answers += 1;
                let round = flows.round(now);
                *problems = round.problems;
                (round.links, round.pairs)
            }
        }
    }

    /// Who is at the other end, by the names of the links on which it sends.
    pub fn neighbours(&self) -> Vec<(String, Neighbour)> {
        match &self.what {
            What::Switch { meter, .. } => {
                let named =
                    |(port, neighbour): (&str, &Neighbour)| (format!("{} {port} in", self.name), neighbour.clone());
                meter.neighbours().map(named).collect()
            }
            What::Flows { .. } => Vec::new(),
        }
    }

    pub fn status(&self, now: Time) -> Status {
        let (counters, flows, more) = match &self.what {
            What::Switch { meter, .. } => (meter.counts(), None, Vec::new()),
            What::Flows { flows, problems } => {
                let counters = flows.meters().fold(MeterCounts::default(), MeterCounts::plus);
                (counters, Some(flows.counts()), problems.clone())
            }
        };
        let problems = self.error.iter().chain(&more).map(|text| State::problem(&self.name, text)).collect();
        Status {
            name: self.name.clone(),
            protocol: self.protocol,
            answers: self.answers,
            failures: self.failures,
            reasons: self.reasons.clone(),
            age: self.answered_at.map(|at| now.saturating_sub(at)),
            problems,
            counters,
            flows,
        }
    }
}

/// Starts all sources on the current thread.
pub(super) async fn start(
    config: Config,
    clock: Clock,
    ended: &watch::Receiver<bool>,
) -> Result<Vec<Rc<Shared>>, CollectError> {
    let (key, racks) = (LldpKey::random(), config.racks());
    let prefixes = config.racks;
    let mut listeners: Listeners = BTreeMap::new();
    let mut sources = Vec::new();
    for Switch { name, interval, ports, way } in config.switches {
        let meter = Box::new(Meter::new(&name, ports, KEEP));
        let what = What::Switch { meter, matrix: Vec::new(), matrix_at: Time::ZERO, interval };
        let shared = share(&name, way.protocol(), what);
        let pace = match way {
            // it sends when it likes, and a missing sample is seen after three
            Way::Gnmi(_) => Pace::Its(Duration::from_nanos((interval * 4).as_ns()) + READING_MAX),
            Way::Snmp(_) | Way::OpenFlow(_) => Pace::Ours,
        };
        let task = Task { shared: shared.clone(), clock, interval, pace, ended: ended.clone() };
        match way {
            Way::Gnmi(options) => {
                tokio::task::spawn_local(task.poll(gnmi::Reader::new(*options)));
            }
            Way::Snmp(mut options) => {
                options.switch = Some(name);
                tokio::task::spawn_local(task.poll(snmp::Reader::new(*options)));
            }
            Way::OpenFlow(openflow) => {
                let switch = connect(*openflow, name, (&prefixes, &key), &mut listeners).await?;
                tokio::task::spawn_local(task.poll(switch));
            }
        }
        sources.push(shared);
    }
    for receiver in config.flows {
        let (name, socket) = (format!("flows {}", receiver.listen), open(&receiver).await?);
        let flows = Flows::new(&receiver.settings, racks.clone(), clock.now());
        let protocol = match receiver.settings.protocol {
            Protocol::Sflow => "sFlow",
            Protocol::Ipfix => "IPFIX",
        };
        let shared = share(&name, protocol, What::Flows { flows: Box::new(flows), problems: Vec::new() });
        tokio::task::spawn_local(receive(socket, shared.clone(), clock, ended.clone()));
        sources.push(shared);
    }
    Ok(sources)
}

fn share(name: &str, protocol: &'static str, what: What) -> Rc<Shared> {
    let name = name.to_string();
    let state = State {
        name,
        protocol,
        answers: 0,
        failures: 0,
        reasons: BTreeMap::new(),
        answered_at: None,
        error: None,
        what,
    };
    Rc::new(Shared { state: Cell::new(state), ended: Notify::new() })
}

/// A reader of a switch by OpenFlow.
async fn connect(
    OpenFlow { end, datapath, timeout, lldp, matrix, tls }: OpenFlow,
    name: String,
    (prefixes, key): (&[(policy::Prefix, String)], &LldpKey),
    listeners: &mut Listeners,
) -> Result<OpenFlowSwitch, CollectError> {
    let tls = tls.map(|tls| openflow::Tls::from_files(&tls.ca, &tls.certificate, &tls.key)).transpose();
    let tls = tls.map_err(|error| CollectError::Tls(error.to_string()))?;
    let mut racks: BTreeMap<&str, Vec<policy::Prefix>> = BTreeMap::new();
    for (prefix, rack) in prefixes.iter().take(OPENFLOW_RACKS_MAX) {
        racks.entry(rack).or_default().push(*prefix);
    }
    let racks = racks.into_iter().map(|(name, prefixes)| Rack { name: name.to_string(), prefixes }).collect();
    let has_matrix = !matrix.is_empty();
    let settings = openflow::Settings {
        name,
        datapath,
        lldp: lldp.then(|| openflow::LldpSettings { key: key.clone(), interval: LLDP_INTERVAL, foreign: false }),
        matrix: has_matrix.then_some(MatrixSettings { racks, sources: matrix, table: 0 }),
        timeout: Duration::from_nanos(timeout.as_ns()),
        ..openflow::Settings::default()
    };
    let (switch, listener) = match end {
        End::Connect(address) => (openflow::OpenFlow::connect(settings, address, tls), None),
        End::Listen(at, peers) => {
            let listener = match listeners.entry(at) {
                Entry::Occupied(listener) => listener.get().clone(),
                Entry::Vacant(place) => {
                    let what = format!("cannot listen for switches at {at}");
                    let bound = Listener::bind(at, tls).await;
                    place.insert(Rc::new(bound.map_err(|error| CollectError::Socket { what, error })?)).clone()
                }
            };
            (openflow::OpenFlow::listen(settings, &listener, Expected { peers, datapath }), Some(listener))
        }
    };
    Ok(OpenFlowSwitch { switch, has_matrix, _listener: listener })
}

/// Where switches connect to, by address: several switches may share one.
type Listeners = BTreeMap<SocketAddr, Rc<Listener>>;

struct OpenFlowSwitch {
    switch: openflow::OpenFlow,
    has_matrix: bool,
    /// It ends when it is dropped, so each switch that connects holds it.
    _listener: Option<Rc<Listener>>,
}

/// A switch that is asked, with what else it may know.
trait Asked: Reader {
    /// Traffic from rack to rack since the last call.
    async fn matrix(&mut self) -> Option<Vec<RackPair>> {
        None
    }

    /// What it cannot do.
    async fn problem(&mut self) -> Option<String> {
        None
    }

    /// Undoes what it changed.
    async fn close(self);
}

impl Asked for snmp::Reader {
    async fn close(self) {}
}

impl Asked for gnmi::Reader {
    async fn close(self) {}
}

impl Reader for OpenFlowSwitch {
    async fn read(&mut self) -> Result<SwitchCounters, ReadError> {
        self.switch.read().await.map_err(ReadError::from)
    }
}

impl Asked for OpenFlowSwitch {
    async fn matrix(&mut self) -> Option<Vec<RackPair>> {
        if !self.has_matrix {
            return None;
        }
        let traffic = self.switch.matrix().await.ok()?;
        traffic.interval.map(|_| traffic.pairs)
    }

    async fn problem(&mut self) -> Option<String> {
        self.switch.problem().await.ok().flatten()
    }

    async fn close(self) {
        self.switch.close().await;
    }
}

/// Asks one switch.
struct Task {
    shared: Rc<Shared>,
    clock: Clock,
    interval: Time,
    pace: Pace,
    ended: watch::Receiver<bool>,
}

/// Who says when a switch is read.
#[derive(Clone, Copy)]
enum Pace {
    /// It is asked once each interval.
    Ours,
    /// A reading ends when the switch has sent a sample, at most so long after it has begun.
    Its(Duration),
}

impl Task {
    async fn poll(mut self, mut reader: impl Asked) {
        let mut next = self.clock.now();
        loop {
            let mut ended = self.ended.clone();
            let has_answered = tokio::select! {
                has_answered = self.once(&mut reader) => has_answered,
                _ = ended.wait_for(|ended| *ended) => break,
            };
            if has_answered && matches!(self.pace, Pace::Its(_)) {
                next = self.clock.now();
                // a switch that sends without pause leaves the others their turn
                tokio::task::yield_now().await;
                continue;
            }
            let now = self.clock.now();
            next = if next + self.interval > now { next + self.interval } else { now + self.interval };
            let wait = Duration::from_nanos(next.saturating_sub(now).as_ns());
            tokio::select! {
                () = tokio::time::sleep(wait) => (),
                _ = self.ended.wait_for(|ended| *ended) => break,
            }
        }
        reader.close().await;
        self.shared.ended.notify_one();
    }

    /// One reading; whether it has answered.
    async fn once(&self, reader: &mut impl Asked) -> bool {
        let asked = self.clock.now();
        let most = match self.pace {
            Pace::Ours => READING_MAX,
            Pace::Its(most) => most,
        };
        let answer = tokio::time::timeout(most, reader.read()).await;
        let answer = answer.unwrap_or(Err(ReadError::Timeout(Time::from_ns(most.as_nanos() as u64))));
        let answered = self.clock.now();
        let moment = match self.pace {
            Pace::Ours => Moment { asked, answered },
            Pace::Its(_) => Moment::at(answered),
        };
        let (pairs, problem) = match &answer {
            Ok(_) => (reader.matrix().await, reader.problem().await),
            Err(_) => (None, None),
        };
        let has_answered = answer.is_ok();
        let mut state = self.shared.state.borrow_mut();
        match answer {
            Ok(counters) => {
                state.answers += 1;
                state.answered_at = Some(answered);
                state.error = problem;
                if let What::Switch { meter, matrix, matrix_at, .. } = &mut state.what {
                    meter.take(moment, &counters);
                    if let Some(pairs) = pairs {
                        (*matrix, *matrix_at) = (pairs, answered);
                    }
                }
            }
            Err(error) => {
                state.failures += 1;
                *state.reasons.entry(error.reason()).or_default() += 1;
                state.error = Some(error.to_string());
            }
        }
        has_answered
    }
}

/// The socket of a receiver.
async fn open(receiver: &Receiver) -> Result<UdpSocket, CollectError> {
    let at = receiver.listen;
    let failed = |error| CollectError::Socket { what: format!("cannot receive flow export at {at}"), error };
    let socket = UdpSocket::bind(at).await.map_err(failed)?;
    // as much as the system allows
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
    Ok(socket)
}

/// Takes datagrams until the end.
async fn receive(socket: UdpSocket, shared: Rc<Shared>, clock: Clock, mut ended: watch::Receiver<bool>) {
    let mut datagram = vec![0; DATAGRAM_MAX];
    loop {
        tokio::select! {
            ready = socket.readable() => if ready.is_err() { break },
            _ = ended.wait_for(|ended| *ended) => break,
        }
        for _ in 0..BURST {
            let Ok((length, from)) = socket.try_recv_from(&mut datagram) else { break };
            let mut state = shared.state.borrow_mut();
            state.answered_at = Some(clock.now());
            if let What::Flows { flows, .. } = &mut state.what {
                flows.take(clock.now(), from, &datagram[..length]);
            }
        }
        tokio::task::yield_now().await;
    }
    shared.ended.notify_one();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_never_answered_knows_nothing() {
        let meter = Box::new(Meter::new("s", BTreeMap::new(), KEEP));
        let what = What::Switch { meter, matrix: Vec::new(), matrix_at: Time::ZERO, interval: Time::from_secs(1) };
        let shared = share("s", "SNMP", what);
        let mut state = shared.state.borrow_mut();
        assert!(!state.is_known() && state.links(Time::from_secs(9)) == (Vec::new(), Vec::new()));
        assert_eq!(state.status(Time::from_secs(9)).age, None);
    }
}
