//! The applications: who sends what to whom, when.

mod onoff;
mod rounds;

use crate::core::{Core, Hear};
use crate::flows::{Flow, Flows, Pair, UNLIMITED, flow_of, receiver};
use net::NodeId;
use onoff::OnOff;
use plan::{Pairing, Random, mean_gap};
use rounds::Rounds;
use scenario::{Pairs, Scenario, Traffic as Entry, TrafficKind, Workload};
use std::sync::Arc;
use units::Time;

/// All traffic of a run.
pub struct Traffic {
    entries: Vec<Source>,
    pub flows: Flows,
}

/// One entry of the scenario at work.
struct Source {
    entry: Entry,
    config: Arc<tcp::Config>,
    random: Random,
    state: State,
}

/// What an entry remembers between events.
enum State {
    /// Opens its flows once.
    Once,
    OnOff(OnOff),
    Rounds(Rounds),
    /// Flows opened so far.
    Poisson(u64),
    /// The next row.
    Trace(usize),
    /// Connections still to be opened.
    Idle(u32),
}

/// Event of an entry: it begins, or does what it does next.
const NEXT: u32 = u32::MAX;
/// Between two idle connections' openings: what counts is what they cost when they are there, not a burst of handshakes.
const IDLE_GAP: Time = Time::from_us(100);
/// Event of an entry: its applications stop writing.
const STOP: u32 = u32::MAX - 1;

impl Traffic {
    /// Schedules the start of every entry of `scenario`; `configs` has one stack an entry.
    pub fn new(scenario: &Scenario, configs: Vec<Arc<tcp::Config>>, flows: Flows, core: &mut Core) -> Traffic {
        let mut entries = Vec::new();
        for (i, (entry, config)) in scenario.traffic.iter().zip(configs).enumerate() {
            core.schedule_app(entry.start, i as u32, NEXT);
            if let Some(stop) = entry.stop {
                core.schedule_app(stop, i as u32, STOP);
            }
            entries.push(Source {
                state: State::of(entry, scenario),
                entry: entry.clone(),
                config,
                random: Random::new(scenario.seed, i as u64),
            });
        }
        Traffic { entries, flows }
    }

    /// Numbers of their own that entries report: name and value.
    pub fn extra(&self) -> Vec<(String, f64)> {
        let rounds = |source: &Source| match &source.state {
            State::Rounds(rounds) => rounds.summary(&source.entry.name),
            _ => Vec::new(),
        };
        let mut rows: Vec<(String, f64)> = self.entries.iter().flat_map(rounds).collect();
        if self.flows.unreachable > 0 {
            rows.push(("flows_without_a_path".into(), self.flows.unreachable as f64));
        }
        rows
    }

    /// The flow's congestion control and the entry's label.
    pub fn names(&self, flow: &Flow) -> (&str, &str) {
        let source = &self.entries[flow.entry as usize];
        (source.config.algorithm.name(), &source.entry.label)
    }

    /// The entry named `what` begins, or opens its next flows.
    fn next(&mut self, core: &mut Core, what: u32) {
        let source = &mut self.entries[what as usize];
        let mut opener = Opener { core, flows: &mut self.flows, config: &source.config, entry: what };
        match (&source.entry.kind, &mut source.state) {
            (TrafficKind::Poisson { arrivals, sizes, pairs: Pairs::Random, flows }, State::Poisson(opened)) => {
                let stop = source.entry.stop.unwrap_or(Time::NEVER);
                if *opened > 0 && opener.core.now() < stop {
                    let (src, dst) = opener.pairing().random_pair(&mut source.random);
                    let bytes = sizes.distribution.quantile(source.random.unit());
                    opener.send(src, dst, bytes);
                }
                if flows.is_none_or(|most| *opened < most) && opener.core.now() < stop {
                    *opened += 1;
                    let gap = source.random.exponential(mean_gap(
                        arrivals,
                        sizes.distribution.mean(),
                        &opener.flows.topology,
                    ));
                    let at = opener.core.now().saturating_add(gap);
                    opener.core.schedule_app(at, what, NEXT);
                }
            }
            (TrafficKind::Trace { flows, .. }, State::Trace(row)) => {
                let due = |row: &usize| flows.get(*row).map(|flow| source.entry.start + flow.at);
                while due(row).is_some_and(|at| at <= opener.core.now()) {
                    let flow = &flows[*row];
                    let (src, dst) = (opener.pairing().host(&flow.from), opener.pairing().host(&flow.to));
                    opener.send(src, dst, flow.bytes.get());
                    *row += 1;
                }
                if let Some(at) = due(row) {
                    opener.core.schedule_app(at, what, NEXT);
                }
            }
            (_, State::Idle(left)) => {
                if opener.flows.list.is_empty() {
                    opener.flows.reserve(opener.core, *left as usize);
                }
                if *left > 0 {
                    *left -= 1;
                    let (src, dst) = opener.pairing().random_pair(&mut source.random);
                    opener.open(src, dst);
                    let at = opener.core.now() + IDLE_GAP;
                    opener.core.schedule_app(at, what, NEXT);
                }
            }
            (_, State::Rounds(rounds)) => {
                if opener.core.now() < source.entry.stop.unwrap_or(Time::NEVER) {
                    rounds.begin(&mut opener);
                }
            }
            (kind, state) => begin_once(kind, state, &mut source.random, &mut opener),
        }
    }
}

impl State {
    fn of(entry: &Entry, scenario: &Scenario) -> State {
        match &entry.kind {
            TrafficKind::RandomPairs { workload: Workload::OnOff { rate, on, off, packet }, .. }
            | TrafficKind::Permutation { workload: Workload::OnOff { rate, on, off, packet }, .. } => {
                let stop = entry.stop.unwrap_or(scenario.duration);
                State::OnOff(OnOff::new(*rate, *on, *off, *packet, stop))
            }
            TrafficKind::Incast { .. } | TrafficKind::AllToAll { .. } => State::Rounds(Rounds::default()),
            TrafficKind::Poisson { .. } => State::Poisson(0),
            TrafficKind::Trace { .. } => State::Trace(0),
            TrafficKind::Idle { flows } => State::Idle(*flows),
            _ => State::Once,
        }
    }
}

/// Entries that open all their flows when they begin.
fn begin_once(kind: &TrafficKind, state: &mut State, random: &mut Random, opener: &mut Opener) {
    let pairs: Vec<(NodeId, NodeId)> = match kind {
        TrafficKind::RandomPairs { flows, .. } => (0..*flows).map(|_| opener.pairing().random_pair(random)).collect(),
        TrafficKind::Permutation { across, .. } => opener.pairing().permutation(*across, random),
        TrafficKind::Bulk { from, to, count, .. } => {
            let pair = (opener.pairing().host(from), opener.pairing().host(to));
            (0..*count).map(|_| pair).collect()
        }
        _ => unreachable!("kinds with a state of their own begin elsewhere"),
    };
    opener.flows.reserve(opener.core, pairs.len());
    for (src, dst) in pairs {
        match (kind, &mut *state) {
            (_, State::OnOff(on_off)) => {
                if let Some(flow) = opener.open(src, dst) {
                    on_off.add(opener.core, opener.entry, flow, random);
                }
            }
            (
                TrafficKind::Bulk { bytes, .. }
                | TrafficKind::RandomPairs { workload: Workload::Bulk { bytes }, .. }
                | TrafficKind::Permutation { workload: Workload::Bulk { bytes }, .. },
                _,
            ) => opener.send(src, dst, bytes.map_or(UNLIMITED, units::Bytes::get)),
            _ => unreachable!("every kind is one of these"),
        }
    }
}

impl Hear for Traffic {
    fn on_received(&mut self, core: &mut Core, socket: u32, _: Time) {
        let flow = flow_of(socket);
        let what = self.flows.list[flow as usize].entry;
        let source = &mut self.entries[what as usize];
        match &mut source.state {
            State::Rounds(rounds) => {
                let mut opener = Opener { core, flows: &mut self.flows, config: &source.config, entry: what };
                rounds.arrived(flow, &mut opener);
            }
            _ => self.flows.finish(core, flow),
        }
    }

    fn on_app(&mut self, core: &mut Core, what: u32, which: u32, _: Time) {
        if which == NEXT {
            let source = &mut self.entries[what as usize];
            if let State::Rounds(rounds) = &mut source.state
                && !rounds.started()
            {
                let mut opener = Opener { core, flows: &mut self.flows, config: &source.config, entry: what };
                rounds.set_up(&source.entry, &mut opener);
            }
            self.next(core, what);
            return;
        }
        if which == STOP {
            return self.flows.stop_writing(core, what);
        }
        let source = &mut self.entries[what as usize];
        if let State::OnOff(on_off) = &mut source.state {
            on_off.on_event(core, &mut self.flows, what, which, &mut source.random);
        }
    }
}

/// What an entry opens its flows with.
struct Opener<'a> {
    core: &'a mut Core,
    flows: &'a mut Flows,
    config: &'a Arc<tcp::Config>,
    entry: u32,
}

impl Opener<'_> {
    fn pairing(&self) -> Pairing<'_> {
        Pairing { topology: &self.flows.topology, hosts_per_pod: self.flows.hosts_per_pod }
    }

    fn open(&mut self, src: NodeId, dst: NodeId) -> Option<u32> {
        self.flows.open(self.core, Pair { src, dst, entry: self.entry }, self.config)
    }

    /// Opens a flow that sends `bytes` and closes.
    fn send(&mut self, src: NodeId, dst: NodeId, bytes: u64) {
        let Some(flow) = self.open(src, dst) else { return };
        self.flows.write(self.core, flow, bytes);
        if bytes < UNLIMITED {
            self.core.notify_at(receiver(flow), bytes);
            Flows::close(self.core, flow);
        }
    }
}
