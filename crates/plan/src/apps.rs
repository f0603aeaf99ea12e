//! The applications: who sends what to whom, when.
//!
//! [`Applications`] decides, a [`Stage`] acts: the simulator's has an event set and TCP of its own, the emulator's the
//! wall clock and the kernel's sockets.
//!
//! Applications act on a stage by requests. A request takes effect at [`Stage::now`], in the simulator a reaction time
//! after the event that caused it. It returns nothing: results come as later calls of [`Applications`], so that hosts may
//! be simulated separately.

mod datagrams;
mod jobs;
mod onoff;
mod rounds;
#[cfg(test)]
mod tests;

use crate::{FlowName, Pairing, Random, mean_gap};
use datagrams::Datagrams;
use jobs::Jobs;
use net::NodeId;
use onoff::OnOff;
use results::{CoflowRow, JobRow, MessageRow};
use rounds::Rounds;
use scenario::{Scenario, Traffic as Entry, TrafficKind, Workload};
use std::sync::Arc;
use units::Time;

/// Bytes that an application without an end has to send.
pub const UNLIMITED: u64 = u64::MAX / 2;

/// Where applications act. Flows are numbered from 0 in the order of requests.
pub trait Stage {
    /// When a request made now takes effect.
    fn now(&self) -> Time;
    /// The hosts.
    fn pairing(&self) -> Pairing<'_>;
    /// Calls [`Applications::on_app`] with `entry` and `which`, so that its requests take effect at `at`.
    fn schedule(&mut self, at: Time, entry: u32, which: u32);
    /// Connections requested so far.
    fn opened(&self) -> usize;
    /// `n` more connections of `entry` will be opened.
    fn reserve(&mut self, n: usize);
    /// Opens a connection with nothing to send yet; `None` if failures have left no path.
    fn open(&mut self, src: NodeId, dst: NodeId, opening: Opening) -> Option<u32>;
    /// The application of `flow` writes `bytes` more, blocking until the send buffer has taken them.
    fn write(&mut self, flow: u32, bytes: u64);
    /// What was written to `flow` of `entry` by now is to have arrived at `due`; a stage on which nothing uses deadlines
    /// does nothing.
    fn set_deadline(&mut self, _entry: u32, _flow: u32, _due: Time) {}
    /// Writes what fits into the send buffer at once; the application discards the rest. If there is no room for more,
    /// [`Applications::on_full`] may be called, and then [`Applications::on_room`] when there is.
    fn write_what_fits(&mut self, flow: u32, bytes: u64);
    /// A datagram of `bytes` of payload leaves the sender of `flow`, whose entry sends UDP.
    fn send_datagram(&mut self, flow: u32, bytes: u64);
    /// The applications of `entry` stop writing.
    fn stop_writing(&mut self, entry: u32);
    /// Calls [`Applications::on_received`] when `bytes` in all have arrived on `flow`.
    fn notify_at(&mut self, flow: u32, bytes: u64);
    /// No more will be written to `flow`.
    fn close(&mut self, flow: u32);
    /// The last byte of `flow` arrived at `end`: the receiver closes too.
    fn finish(&mut self, flow: u32, end: Time);
    /// A message has arrived whole, at `end`, on a connection that is kept for more than one.
    fn on_message(&mut self, message: Message, end: Time);
}

/// A connection that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The traffic entry.
    pub entry: u32,
    /// The flow's name.
    pub name: FlowName,
}

/// A message on a connection that is kept for more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The connection.
    pub flow: u32,
    /// The traffic entry.
    pub entry: u32,
    /// Its job of the entry, from 0.
    pub job: u32,
    /// Its round of the job, from 0.
    pub round: u64,
    /// When the application wrote it.
    pub begun: Time,
    /// Payload.
    pub bytes: u64,
}

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Which.
    pub message: Message,
    /// When its last byte arrived.
    pub end: Time,
    /// Segments that its connection has retransmitted since the previous message arrived.
    pub retransmits: u64,
}

/// The table `messages`: those that were begun after `warmup`, in order of their ends.
pub fn message_rows(messages: &[Arrived], warmup: Time, entries: &[Arc<str>]) -> Vec<MessageRow> {
    let counted = messages.iter().filter(|arrived| arrived.message.begun >= warmup);
    let row = |Arrived { message, end, retransmits }: &Arrived| MessageRow {
        flow: u64::from(message.flow),
        entry: entries[message.entry as usize].clone(),
        job: message.job,
        round: message.round,
        start_ns: message.begun.as_ns(),
        end_ns: end.as_ns(),
        bytes: message.bytes,
        retransmits: *retransmits,
    };
    counted.map(row).collect()
}

/// All applications of a run.
pub struct Applications {
    entries: Vec<Source>,
}

/// One entry of the scenario while it runs.
struct Source {
    entry: Entry,
    random: Random,
    state: State,
    /// Its flows so far.
    flows: u64,
}

/// An entry's state between events.
enum State {
    /// Opens its flows once.
    Once,
    OnOff(OnOff),
    Datagrams(Datagrams),
    Rounds(Rounds),
    Jobs(Box<Jobs>),
    /// Flows opened so far.
    Poisson(Poisson),
    /// The next row.
    Trace(usize),
    /// Connections still to be opened.
    Idle(u32),
}

/// Event of an entry: it begins, or takes its next step.
const NEXT: u32 = u32::MAX;
/// Between the openings of two idle connections: their memory is of interest, not a burst of handshakes.
const IDLE_GAP: Time = Time::from_us(100);
/// Event of an entry: its applications stop writing.
const STOP: u32 = u32::MAX - 1;

impl Applications {
    /// Schedules the start of every entry of `scenario`.
    pub fn new(scenario: &Scenario, stage: &mut impl Stage) -> Applications {
        let mut entries = Vec::new();
        for (i, entry) in scenario.traffic.iter().enumerate() {
            stage.schedule(entry.start, i as u32, NEXT);
            if let Some(stop) = entry.stop {
                stage.schedule(stop, i as u32, STOP);
            }
            entries.push(Source {
                state: State::of(entry, scenario),
                entry: entry.clone(),
                random: Random::of_entry(scenario.seed, &entry.name),
                flows: 0,
            });
        }
        Applications { entries }
    }

    /// Numbers of their own that entries report: name and value.
    pub fn extra(&self, warmup: Time) -> Vec<(String, f64)> {
        let own = |source: &Source| match &source.state {
            State::Rounds(rounds) => rounds.summary(&source.entry.name),
            State::Jobs(jobs) => jobs.summary(&source.entry.name, warmup),
            _ => Vec::new(),
        };
        self.entries.iter().flat_map(own).collect()
    }

    /// The tables `jobs` and `coflows`: runs that began at `warmup` or later, entry by entry.
    pub fn jobs(&self, warmup: Time) -> (Vec<JobRow>, Vec<CoflowRow>) {
        let (mut jobs, mut coflows) = (Vec::new(), Vec::new());
        for source in &self.entries {
            if let State::Jobs(state) = &source.state {
                let rows = state.rows(warmup);
                jobs.extend(rows.0);
                coflows.extend(rows.1);
            }
        }
        (jobs, coflows)
    }

    /// The bytes of `flow`, opened by `entry`, that [`Stage::notify_at`] was called with had arrived at `end`.
    pub fn on_received(&mut self, stage: &mut impl Stage, (entry, flow): (u32, u32), end: Time) {
        let Source { entry: known, state, flows, .. } = &mut self.entries[entry as usize];
        match state {
            State::Rounds(rounds) => rounds.arrived(flow, end, &mut Opener { stage, entry, name: &known.name, flows }),
            State::Jobs(jobs) => jobs.arrived(flow, end, &mut Opener { stage, entry, name: &known.name, flows }),
            _ => stage.finish(flow, end),
        }
    }

    /// The send buffer of `flow`, which `entry` opened, has no room for more.
    pub fn on_full(&mut self, stage: &mut impl Stage, entry: u32, flow: u32) {
        let Source { entry: known, state, flows, .. } = &mut self.entries[entry as usize];
        if let State::OnOff(on_off) = state {
            on_off.on_full(&mut Opener { stage, entry, name: &known.name, flows }, flow);
        }
    }

    /// It has room again.
    pub fn on_room(&mut self, stage: &mut impl Stage, entry: u32, flow: u32) {
        let Source { entry: known, state, flows, .. } = &mut self.entries[entry as usize];
        if let State::OnOff(on_off) = state {
            on_off.on_room(&mut Opener { stage, entry, name: &known.name, flows }, flow);
        }
    }

    /// An event of [`Stage::schedule`] is due.
    pub fn on_app(&mut self, stage: &mut impl Stage, entry: u32, which: u32) {
        let Source { entry: known, state, flows, random } = &mut self.entries[entry as usize];
        let mut opener = Opener { stage, entry, name: &known.name, flows };
        match which {
            NEXT => {
                if let State::Rounds(rounds) = state
                    && !rounds.started()
                {
                    rounds.set_up(known, &mut opener, random);
                }
                self.next(stage, entry);
            }
            STOP => stage.stop_writing(entry),
            number => match state {
                State::OnOff(on_off) => on_off.on_event(&mut opener, number),
                State::Datagrams(datagrams) => datagrams.on_event(&mut opener, number),
                State::Rounds(rounds) => rounds.begin(number, &mut opener),
                State::Jobs(jobs) => jobs.on_event(number, &mut opener),
                _ => unreachable!("no other entry has numbers"),
            },
        }
    }

    /// The entry named `what` begins, or opens its next flows.
    fn next(&mut self, stage: &mut impl Stage, what: u32) {
        let source = &mut self.entries[what as usize];
        let mut opener = Opener { stage, entry: what, name: &source.entry.name, flows: &mut source.flows };
        match (&source.entry.kind, &mut source.state) {
            (TrafficKind::Poisson { arrivals, sizes, from, to, flows }, State::Poisson(state)) => {
                let stop = source.entry.stop.unwrap_or(Time::NEVER);
                if state.opened == 0 {
                    let pairing = opener.stage.pairing();
                    state.ends = [from, to].map(|names| pairing.listed(names.as_deref()));
                }
                let [senders, receivers] = &state.ends;
                if state.opened > 0 && opener.now() < stop {
                    let (src, dst) = opener.stage.pairing().random_pair_of(senders, receivers, &mut source.random);
                    let bytes = sizes.distribution.quantile(source.random.unit());
                    opener.send(src, dst, bytes);
                }
                if flows.is_none_or(|most| state.opened < most) && opener.now() < stop {
                    state.opened += 1;
                    let topology = opener.stage.pairing().topology;
                    let gap = mean_gap(arrivals, sizes.distribution.mean(), (topology, senders));
                    let gap = source.random.exponential(gap);
                    let at = opener.now().saturating_add(gap);
                    opener.schedule(at, NEXT);
                }
            }
            (TrafficKind::Trace { flows, .. }, State::Trace(row)) => {
                let due = |row: &usize| flows.get(*row).map(|flow| source.entry.start + flow.at);
                while due(row).is_some_and(|at| at <= opener.now()) {
                    let flow = &flows[*row];
                    let (src, dst) = (opener.stage.pairing().host(&flow.from), opener.stage.pairing().host(&flow.to));
                    opener.send(src, dst, flow.bytes.get());
                    *row += 1;
                }
                if let Some(at) = due(row) {
                    opener.schedule(at, NEXT);
                }
            }
            (_, State::Idle(left)) => {
                if opener.stage.opened() == 0 {
                    opener.stage.reserve(*left as usize);
                }
                if *left > 0 {
                    *left -= 1;
                    let (src, dst) = opener.stage.pairing().random_pair(&mut source.random);
                    opener.open(src, dst);
                    let at = opener.now() + IDLE_GAP;
                    opener.schedule(at, NEXT);
                }
            }
            (_, State::Rounds(rounds)) => rounds.begin_all(&mut opener),
            (_, State::Jobs(jobs)) => jobs.begin(&mut opener),
            (kind, state) => begin_once(kind, state, &mut source.random, &mut opener),
        }
    }
}

/// Flows that arrive one by one.
#[derive(Default)]
struct Poisson {
    /// Flows so far.
    opened: u64,
    /// Senders and receivers, since the first; see [`Pairing::listed`].
    ends: [Vec<NodeId>; 2],
}

impl State {
    fn of(entry: &Entry, scenario: &Scenario) -> State {
        let until = (entry.stop.unwrap_or(scenario.duration), scenario.seed);
        if let Some(datagrams) = entry.kind.datagrams() {
            return State::Datagrams(Datagrams::new(*datagrams, until));
        }
        match &entry.kind {
            TrafficKind::RandomPairs { workload: Workload::OnOff { rate, on, off, packet }, .. }
            | TrafficKind::Permutation { workload: Workload::OnOff { rate, on, off, packet }, .. } => {
                State::OnOff(OnOff::new(*rate, *on, *off, *packet, until))
            }
            TrafficKind::Incast { .. } | TrafficKind::AllToAll(_) | TrafficKind::Exchange(_) => {
                State::Rounds(Rounds::new(scenario.seed, scenario.duration))
            }
            TrafficKind::Job(job) => State::Jobs(Box::new(Jobs::new(job, entry, scenario))),
            TrafficKind::Poisson { .. } => State::Poisson(Poisson::default()),
            TrafficKind::Trace { .. } => State::Trace(0),
            TrafficKind::Idle { flows } => State::Idle(*flows),
            _ => State::Once,
        }
    }
}

/// Entries that open all their flows when they begin.
fn begin_once(kind: &TrafficKind, state: &mut State, random: &mut Random, opener: &mut Opener<impl Stage>) {
    let pairs: Vec<(NodeId, NodeId)> = match kind {
        TrafficKind::RandomPairs { flows, .. } => {
            (0..*flows).map(|_| opener.stage.pairing().random_pair(random)).collect()
        }
        TrafficKind::Permutation { across, .. } => opener.stage.pairing().permutation(*across, random),
        TrafficKind::Bulk { from, to, count, .. } => {
            let pair = (opener.stage.pairing().host(from), opener.stage.pairing().host(to));
            (0..*count).map(|_| pair).collect()
        }
        TrafficKind::Udp { from, to, .. } => {
            vec![(opener.stage.pairing().host(from), opener.stage.pairing().host(to))]
        }
        _ => unreachable!("kinds with a state of their own begin elsewhere"),
    };
    opener.stage.reserve(pairs.len());
    for (src, dst) in pairs {
        match (kind, &mut *state) {
            (_, State::OnOff(on_off)) => {
                let name = opener.next_name();
                if let Some(flow) = opener.open(src, dst) {
                    on_off.add(opener, flow, name);
                }
            }
            (_, State::Datagrams(datagrams)) => {
                let name = opener.next_name();
                if let Some(flow) = opener.open(src, dst) {
                    datagrams.add(opener, flow, name);
                }
            }
            (
                TrafficKind::Bulk { bytes, .. }
                | TrafficKind::RandomPairs { workload: Workload::Bulk { bytes }, .. }
                | TrafficKind::Permutation { workload: Workload::Bulk { bytes }, .. },
                _,
            ) => {
                opener.send(src, dst, bytes.map_or(UNLIMITED, units::Bytes::get));
            }
            _ => unreachable!("every kind is one of these"),
        }
    }
}

/// The context in which an entry acts.
struct Opener<'a, S> {
    stage: &'a mut S,
    entry: u32,
    /// The entry's.
    name: &'a str,
    /// Its flows so far.
    flows: &'a mut u64,
}

impl<S: Stage> Opener<'_, S> {
    fn now(&self) -> Time {
        self.stage.now()
    }

    fn schedule(&mut self, at: Time, which: u32) {
        self.stage.schedule(at, self.entry, which);
    }

    /// Name of the flow that is requested next.
    fn next_name(&self) -> FlowName {
        FlowName::new(self.name, *self.flows)
    }

    fn open(&mut self, src: NodeId, dst: NodeId) -> Option<u32> {
        let opening = Opening { entry: self.entry, name: self.next_name() };
        let flow = self.stage.open(src, dst, opening)?;
        *self.flows += 1;
        Some(flow)
    }

    /// Opens a flow that sends `bytes` and closes; `None` if there is no path.
    fn send(&mut self, src: NodeId, dst: NodeId, bytes: u64) -> Option<u32> {
        let flow = self.open(src, dst)?;
        self.stage.write(flow, bytes);
        if bytes < UNLIMITED {
            self.stage.notify_at(flow, bytes);
            self.stage.close(flow);
        }
        Some(flow)
    }
}
