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
#![forbid(unsafe_code)]

mod calendar;
mod core;
mod fabric;
mod fanin;
mod flows;
mod gate;
mod ictcp;
mod managed;
mod moment;
mod nic;
mod packets;
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
use crate::managed::Still;
use crate::record::{Baseline, Recorder};
use crate::requests::Requests;
use crate::traffic::Traffic;
use crate::tuning::Tuning;
pub use moment::{FlowEnds, Totals};
use net::{LinkId, NetError, Router};
use plan::{Control, Enforcement, Ideal};
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
    core: Core,
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
        let framing = plan::framing_bytes(scenario);
        let mut links = plan::links(scenario, &topology)?;
        let enforcement = Enforcement::of(scenario, &topology).map_err(SimError::Algorithm)?;
        let gate = enforcement.map(|enforcement| Box::new(Gate::new(enforcement, links.add_closed())));
        let calendar = setup::calendar(&topology, framing, gate.is_some() || links.any_holds());
        let forwarding = setup::forwarding(scenario, &topology, &mut links);
        let measure_delay = scenario.measure.packet_delay;
        let requests = Requests::new(setup::reaction(&topology, framing));
        let mut core = Core::new(links, calendar, requests, Framing(framing), measure_delay);
        core.fabric.gate = gate;
        let recorder = Recorder::new(scenario, &topology);
        let failures = plan::failures(scenario, &topology);
        let pods = scenario.network.topology.pods().map(|n| n as usize);
        let router = Router::new(&topology, plan::routing(scenario));
        let control = Control::of(scenario, &topology);
        let mut flows = Flows::new(topology, router, pods, scenario.seed);
        flows.tuning = control.is_some().then(|| Tuning::new(flows.topology.n_hosts()));
        flows.ictcp = scenario.tcp.ictcp.then(Ictcp::default);
        flows.forwarding = forwarding;
        flows.spread = setup::spread(scenario);
        flows.messages = scenario.measure.messages.then(Vec::new);
        let traffic = Traffic::new(scenario, setup::stacks(scenario)?, flows, &mut core);
        let (warmup, baseline) = (scenario.measure.warmup, Baseline::default());
        Ok(Simulation {
            core,
            traffic,
            recorder,
            failures,
            control,
            warmup,
            baseline,
            ideal: Ideal::of(scenario),
            measure_delay,
            identity: plan::identity(scenario),
        })
    }

    /// Runs up to `end`.
    pub fn run_to(&mut self, end: Time) {
        loop {
            let now = self.core.now();
            let failure = self.failures.last().map_or(Time::NEVER, |(at, ..)| *at);
            let sample = self.recorder.next_after(now);
            let turn = self.control.as_ref().map_or(Time::NEVER, Control::next);
            let warmed_up = if now < self.warmup { self.warmup } else { Time::NEVER };
            let next = failure.min(sample).min(warmed_up).min(turn).min(end);
            self.core.run_to(next, &mut self.traffic);
            if next == warmed_up {
                self.baseline = Baseline::of(&self.core);
                self.recorder.links.begin_counting(&self.core.fabric.links, next);
            }
            if next == failure {
                let (at, links, fails) = self.failures.pop().expect("it is the next failure");
                self.fail(at, &links, fails);
            }
            if let Some(control) = self.control.as_mut().filter(|_| next == turn) {
                control.on_time(next, &mut Still { core: &mut self.core, traffic: &mut self.traffic });
            }
            if next == sample {
                self.recorder.sample(&self.core, next);
            }
            if next == end {
                break;
            }
        }
    }

    fn fail(&mut self, at: Time, links: &[LinkId], fails: bool) {
        for &link in links {
            if fails {
                self.core.fabric.links.fail(link, at);
                self.traffic.flows.router.fail(link);
            } else {
                self.core.fabric.links.restore(link);
                self.traffic.flows.router.restore(link);
            }
        }
        self.traffic.reroute(&mut self.core);
    }

    /// Packets accepted by links so far: the work done. It falls by what a queue drops at departure, as CoDel does.
    pub fn packet_hops(&self) -> u64 {
        let links = self.traffic.flows.topology.links().len() as u32;
        (0..links).map(|i| self.core.fabric.links.counters(LinkId(i)).accepted).sum()
    }

    /// What was measured. Name, parameters and scenario text are the caller's to fill in.
    ///
    /// # Panics
    /// If a link has lost count of a packet.
    pub fn finish(mut self) -> RunResults {
        let topology = &self.traffic.flows.topology;
        let entries = self.traffic.names().to_vec();
        let Recorder { links: series, cwnd, .. } = self.recorder;
        let in_flight = self.core.in_flight();
        let links = series.rows(&self.core.fabric.links, topology, &in_flight, self.core.now());
        for server in
            self.traffic.flows.forwarding.iter().flat_map(|first| first.0..first.0 + topology.n_hosts() as u32)
        {
            let counters = self.core.fabric.links.counters(LinkId(server));
            assert!(counters.conserves(in_flight[server as usize]), "a server forwards every packet");
        }
        let flows = record::flow_rows(&self.core, &self.traffic, &self.baseline, &self.ideal, self.measure_delay);
        let mut summary = Summary::of(self.identity, &flows, &links);
        for (name, value) in self.traffic.extra(self.warmup) {
            summary.insert(name, value);
        }
        if let Some(control) = &self.control {
            control.summarize(&mut summary);
        }
        let gate = self.core.fabric.gate.take();
        let enforcer = gate.map_or_else(Vec::new, |gate| gate.results(self.core.now(), topology, &mut summary));
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
