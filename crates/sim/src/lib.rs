//! The simulator: the network model on a virtual clock, with simulated hosts and the traffic between them.
//!
//! [`simulate`] runs one scenario on one core and returns its measurements. The same scenario and seed give the same
//! results on every machine: there is one order of events; each flow and
//! each generator of traffic draws from a random stream of its own; and there is no floating point but in the traffic's
//! random times, where `libm` computes it.
//!
//! ```text
//! Scenario ─ setup ─▶ Topology, LinkTable, stacks
//!                         │
//! traffic ─ requests ─▶ core: calendar ⇄ links, sockets (tcp + cc) ─▶ record ─▶ RunResults
//! ```
//!
//! The parts that make it fast are described in place: the event set in `calendar`, a packet's path in `core`, a link's
//! arithmetic in `net`, a segment's in `tcp`.

mod calendar;
mod core;
mod fabric;
mod fanin;
mod flows;
mod gate;
mod ictcp;
mod managed;
mod moment;
mod network;
mod nic;
mod packets;
mod parts;
mod record;
mod requests;
mod setup;
mod spread;
mod traffic;
mod tuning;

use crate::core::{Core, Framing};
use crate::flows::Flows;
use crate::gate::Gate;
use crate::ictcp::Ictcp;
use crate::network::Network;
use crate::packets::Packets;
use crate::parts::{Layout, Parts};
use crate::record::{Baseline, Recorder};
use crate::requests::Requests;
use crate::traffic::Traffic;
use crate::tuning::Tuning;
pub use moment::{FlowEnds, Totals};
use net::{LinkId, LinkTable, NetError, Router, Topology};
use plan::{Control, Enforcement, Ideal, Links};
use results::{Identity, RunResults, Summary};
use scenario::Scenario;
use units::Time;

/// Why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The network model refuses it.
    #[error(transparent)]
    Network(#[from] NetError),
    /// An algorithm is missing, or a user's file is not one.
    #[error("{0}")]
    Algorithm(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// How far a run is, and whether it may go on.
pub trait Watch {
    /// Called a hundred times a run with the simulated time; false stops the run.
    fn on_progress(&mut self, now: Time) -> bool;
}

/// Watches nothing.
impl Watch for () {
    fn on_progress(&mut self, _: Time) -> bool {
        true
    }
}

/// A run that is set up, to be driven from outside: `simulate` in steps. Where the steps end does not change the results.
pub struct Simulation {
    network: Network,
    traffic: Traffic,
    recorder: Recorder,
    /// Failures and repairs, latest first: when, which links, does it fail.
    failures: Vec<(Time, Vec<LinkId>, bool)>,
    /// The Oracle, if the scenario has one.
    control: Option<Control>,
    /// When counting begins.
    warmup: Time,
    baseline: Baseline,
    ideal: Ideal,
    measure_delay: bool,
    identity: Identity,
}

impl Simulation {
    /// Sets `scenario` up.
    ///
    /// # Errors
    /// [`SimError`]; a checked scenario can only fail for a user's algorithm file.
    pub fn new(scenario: &Scenario) -> Result<Simulation, SimError> {
        let topology = plan::topology(scenario)?;
        let layout = Layout::of(scenario, &topology);
        Simulation::with_layout(scenario, topology, layout.as_ref())
    }

    /// The same in so many parts, or as many as can be, whatever the number of hosts; whole if it is one or the network cannot be cut. For
    /// comparisons: results depend on the number of parts.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn in_parts(scenario: &Scenario, most: usize) -> Result<Simulation, SimError> {
        let topology = plan::topology(scenario)?;
        let layout = Layout::with(scenario, &topology, most);
        Simulation::with_layout(scenario, topology, layout.as_ref())
    }

    fn with_layout(scenario: &Scenario, topology: Topology, layout: Option<&Layout>) -> Result<Simulation, SimError> {
        let mut links = plan::links(scenario, &topology)?;
        let forwarding = setup::forwarding(scenario, &topology, &mut links);
        let recorder = Recorder::new(scenario, &topology);
        let failures = plan::failures(scenario, &topology);
        let pods = scenario.network.topology.pods().map(|n| n as usize);
        let router = Router::new(&topology, plan::routing(scenario));
        let control = Control::of(scenario, &topology);
        let stacks = setup::stacks(scenario)?;
        let mut network = match layout {
            Some(layout) => Network::Parts(Box::new(Parts::new(scenario, &topology, layout, &links, &stacks))),
            None => Network::Whole(Box::new(whole(scenario, &topology, links)?)),
        };
        let mut flows = Flows::new(topology, router, pods, scenario.seed);
        flows.tuning = control.as_ref().map(|control| Tuning::new(flows.topology.n_hosts(), control.counted_at()));
        flows.ictcp = scenario.tcp.ictcp.then(Ictcp::default);
        flows.forwarding = forwarding;
        flows.spread = setup::spread(scenario);
        flows.messages = scenario.measure.messages.then(Vec::new);
        let requests = match &mut network {
            Network::Whole(core) => &mut core.requests,
            Network::Parts(parts) => &mut parts.director.requests,
        };
        let mut traffic = Traffic::new(scenario, stacks, flows, requests);
        match &mut network {
            Network::Whole(core) => core.post_requests(),
            Network::Parts(parts) => parts.begin(&mut traffic),
        }
        let (warmup, baseline) = (scenario.measure.warmup, Baseline::default());
        Ok(Simulation {
            network,
            traffic,
            recorder,
            failures,
            control,
            warmup,
            baseline,
            ideal: Ideal::of(scenario),
            measure_delay: scenario.measure.packet_delay,
            identity: plan::identity(scenario),
        })
    }

    /// The network runs on at most so many threads, of which a small one needs but one: see [`Simulation::parts`]. Results do not depend on
    /// it.
    pub fn use_threads(&mut self, threads: usize) {
        if let Network::Parts(parts) = &mut self.network {
            parts.threads = threads;
        }
    }

    /// Into how many parts the network is cut: so many threads have something to do.
    pub fn parts(&self) -> usize {
        match &self.network {
            Network::Whole(_) => 1,
            Network::Parts(parts) => parts.len(),
        }
    }

    /// Runs up to `end`.
    pub fn run_to(&mut self, end: Time) {
        loop {
            let now = self.network.now();
            let failure = self.failures.last().map_or(Time::NEVER, |(at, ..)| *at);
            let sample = self.recorder.next_after(now);
            let turn = self.control.as_ref().map_or(Time::NEVER, Control::next);
            let warmed_up = if now < self.warmup { self.warmup } else { Time::NEVER };
            let next = failure.min(sample).min(warmed_up).min(turn).min(end);
            self.network.run_to(next, &mut self.traffic);
            if next == warmed_up {
                self.baseline = Baseline::of(&self.network);
                self.recorder.links.begin_counting(&self.network, self.traffic.flows.topology.links().len(), next);
            }
            if next == failure {
                let (at, links, fails) = self.failures.pop().expect("it is the next failure");
                self.fail(at, &links, fails);
            }
            if let Some(control) = self.control.as_mut().filter(|_| next == turn) {
                self.network.take_turn(control, next, &mut self.traffic);
            }
            if next == sample {
                self.recorder.sample(&self.network, next);
            }
            if next == end {
                break;
            }
        }
    }

    fn fail(&mut self, at: Time, links: &[LinkId], fails: bool) {
        for &link in links {
            self.network.fail(link, at, fails);
            let router = &mut self.traffic.flows.router;
            if fails { router.fail(link) } else { router.restore(link) }
        }
        self.network.reroute(&mut self.traffic);
    }

    /// Packets accepted by links so far: the work done. It falls by what a queue drops at departure, as CoDel does.
    pub fn packet_hops(&self) -> u64 {
        self.network.packet_hops(&self.traffic.flows.topology)
    }

    /// What was measured. Name, parameters and scenario text are the caller's to fill in.
    ///
    /// # Panics
    /// If a link has lost count of a packet.
    pub fn finish(mut self) -> RunResults {
        self.network.settle(&mut self.traffic);
        let topology = &self.traffic.flows.topology;
        let entries = self.traffic.names().to_vec();
        let Recorder { links: series, cwnd, .. } = self.recorder;
        let in_flight = self.network.in_flight();
        let links = series.rows(&self.network, topology, &in_flight, self.network.now());
        for server in
            self.traffic.flows.forwarding.iter().flat_map(|first| first.0..first.0 + topology.n_hosts() as u32)
        {
            let counters = self.network.counters(LinkId(server));
            assert!(counters.conserves(in_flight[server as usize]), "a server forwards every packet");
        }
        let flows = record::flow_rows(&self.network, &self.traffic, &self.baseline, &self.ideal, self.measure_delay);
        let mut summary = Summary::of(self.identity, &flows, &links);
        for (name, value) in self.traffic.extra(self.warmup) {
            summary.insert(name, value);
        }
        if let Some(control) = &self.control {
            control.summarize(&mut summary);
        }
        let now = self.network.now();
        let gates = match &mut self.network {
            Network::Whole(core) => std::mem::take(&mut core.fabric.gates),
            Network::Parts(_) => Vec::new(),
        };
        let enforcer = gates.into_iter().flatten().flat_map(|gate| gate.results(now, topology, &mut summary)).collect();
        let rules = self.control.as_ref().map_or_else(Vec::new, |control| control.rules().to_vec());
        let cues = self.control.map_or_else(Vec::new, Control::into_rows);
        let (jobs, coflows) = self.traffic.jobs(self.warmup);
        let messages = self.traffic.flows.messages.unwrap_or_default();
        let messages = plan::message_rows(&messages, self.warmup, &entries);
        let link_series = series.into_samples();
        RunResults {
            cues,
            rules,
            flows,
            links,
            link_series,
            cwnd,
            enforcer,
            messages,
            jobs,
            coflows,
            summary,
            ..RunResults::default()
        }
    }
}

/// The idle network in one piece.
fn whole(scenario: &Scenario, topology: &Topology, mut links: LinkTable) -> Result<Core, SimError> {
    let framing = plan::framing_bytes(scenario);
    let enforcements = Enforcement::of(scenario, topology).map_err(SimError::Algorithm)?;
    let gate = |enforcement| Some(Box::new(Gate::new(enforcement, links.add_closed())));
    let gates: Vec<_> = enforcements.into_iter().map(gate).collect();
    let calendar = setup::calendar(topology, framing, !gates.is_empty() || links.any_holds(), None);
    let requests = Requests::new(setup::reaction(topology, framing));
    let mut core = Core::new(links, calendar, requests, Framing(framing), Packets::new(scenario.measure.packet_delay));
    core.fabric.gates = gates;
    Ok(core)
}

/// Simulates `scenario` from beginning to end.
///
/// # Errors
/// [`SimError`]: a user's algorithm file that is not one, or `watch` said stop.
pub fn simulate(scenario: &Scenario, watch: &mut impl Watch) -> Result<RunResults, SimError> {
    const STEPS: u64 = 100;
    let mut simulation = Simulation::new(scenario)?;
    for step in 1..=STEPS {
        // the last step ends exactly at the end
        let end = if step == STEPS { scenario.duration } else { scenario.duration / STEPS * step };
        simulation.run_to(end);
        if !watch.on_progress(end) {
            return Err(SimError::Interrupted);
        }
    }
    Ok(simulation.finish())
}
