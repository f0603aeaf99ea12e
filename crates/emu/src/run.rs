//! [`emulate`]: a scenario from beginning to end.

mod algorithms;
mod network;
mod open;
mod rows;

use crate::check::{self, Scale};
use crate::cpu::Look;
use crate::engine::{Counted, Totals};
use crate::error::EmuError;
use crate::hosts::Host;
use crate::linux::Stack;
use crate::port::{Clock, WallClock};
use crate::retuning::{Retuned, Retuning};
use crate::setter::Place;
use crate::slowdown::Slowdown;
use crate::sockets::Hosts;
use crate::taps::Trouble;
use crate::traffic::{self, Report};
use crate::{address, limits, linux};
use algorithms::Algorithms;
use net::Router;
use plan::Control;
use results::{LinkRow, RunResults, SelfCheck, Summary};
use scenario::{Objection, Scenario};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::Time;

pub use network::Network;
pub use open::{Furnished, open, open_with};

/// Reports progress and decides whether to continue.
pub trait Watch {
    /// Called several times a second with the time since the start; false stops the run.
    fn on_progress(&mut self, now: Time) -> bool;
}

/// A run's results and their validity.
pub struct Emulated {
    /// The measurements. Name, parameters and scenario text are for the caller to fill in.
    pub results: RunResults,
    /// How the machine disturbed it.
    pub check: SelfCheck,
}

/// Interval of [`Progress`] calls.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `scenario`, slower than real time by `slowdown`. With `pcap`, what each host sends and receives is captured in that folder.
///
/// # Errors
/// [`EmuError`]; in every case nothing is left behind.
pub fn emulate(
    scenario: &Scenario,
    slowdown: Slowdown,
    pcap: Option<PathBuf>,
    watch: &mut impl Watch,
) -> Result<Emulated, EmuError> {
    let topology = plan::topology(scenario)?;
    let router = Router::new(&topology, plan::routing(scenario));
    let objections = limits::objections(scenario, &topology, &router, slowdown);
    let stack = agreed(objections, linux::stack(scenario, slowdown))?;
    // dropped after the network: its sockets use the algorithms
    let algorithms = Algorithms::load(scenario)?;
    let helped = limits::needs_help(scenario, &topology, &router, slowdown);
    let network = Network::create(scenario, &topology, &stack, helped, (scenario.traffic.len(), slowdown), pcap)?;
    let hosts = Hosts {
        topology: &topology,
        per_pod: plan::Pairing::of(scenario, &topology).hosts_per_pod,
        namespaces: network.namespaces()?,
        entries: algorithms.entries().to_vec(),
        flows: network.flow_ports(),
        pace: stack.pace,
        counted_at: scenario.policy.as_ref().map(|control| control.policy.counted_at()),
    };
    let retuning = match (Control::of(scenario, &topology), &scenario.policy) {
        (Some(control), Some(section)) => {
            let (policy, ecn) = (section.policy.clone(), linux::ecn(scenario).to_string());
            let place = |(namespace, host): (File, &Host)| Place { namespace, route: host.route() };
            let places = network.namespaces()?.into_iter().zip(network.hosts()).map(place).collect();
            Some(Retuning::attach(control, policy, network.gauges(), places, ecn, slowdown)?)
        }
        _ => None,
    };
    let before = Look::now();
    let (end, stop) = (scenario.duration, AtomicBool::new(false));
    let clock = WallClock::start(slowdown);
    let (ran, report) = thread::scope(|scope| {
        let engine = network.start(scope, scenario, clock, end, &stop)?;
        let traffic = scope.spawn(|| {
            network.serve_the_hosts();
            traffic::run(scenario, hosts, retuning, clock, &stop)
        });
        while clock.now() < end && !engine.is_finished() && !traffic.is_finished() {
            thread::sleep(LOOK.min(slowdown.duration(end.saturating_sub(clock.now())) + Duration::from_millis(1)));
            if !watch.on_progress(clock.now().min(end)) {
                stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        let report = traffic.join();
        if !matches!(report, Ok(Ok(_))) {
            stop.store(true, Ordering::Relaxed);
        }
        let ran = engine.join().map_err(|_| EmuError::Broken)?;
        let report = report.map_err(|_| EmuError::Broken)??;
        Ok::<_, EmuError>((ran, report))
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(EmuError::Interrupted);
    }
    let cpu = Look::now().since(&before);
    let (counted, trouble) = ran?;
    if let (failed @ 1.., Some(first)) = &report.sockets.failed {
        return Err(EmuError::Traffic(*failed, first.clone()));
    }

    let pairs: BTreeSet<(u32, u32)> = report.sockets.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    let (measured, _) = plan::sampled(scenario, &topology);
    let packet = (u64::from(scenario.tcp.mtu()), u64::from(plan::framing_bytes(scenario)));
    let links = counted.series.rows(&counted.links, &topology, &counted.under_way, counted.ended);
    let full_queue = check::full_queue(&topology, &links, packet);
    let scale = Scale { slowdown, full_queue, ..Scale::of(&topology, &router, &pairs, &measured, packet) };
    let mut against = reasons(&report, trouble, counted.totals, slowdown);
    against.extend(late_policy(scenario, &report));
    let check = check::judge(&counted.lateness, report.sockets.late, scale, cpu, against);
    let results = results(scenario, (&topology, links), &algorithms, &counted, report, &check);
    Ok(Emulated { results, check })
}

/// The hosts' settings, or everything that speaks against the scenario.
fn agreed(mut objections: Vec<Objection>, stack: Result<Stack, Vec<Objection>>) -> Result<Stack, EmuError> {
    match stack {
        Ok(stack) if objections.is_empty() => Ok(stack),
        Ok(_) => Err(EmuError::Asked(objections)),
        Err(more) => {
            objections.extend(more);
            Err(EmuError::Asked(objections))
        }
    }
}

/// Share of a run for which its applications may have waited for a CPU. On an idle machine of two CPUs they
/// wait 2.7 % at 1 Gbit/s and 3 to 5.5 % at 10 Gbit/s, for the kernel's own work on their packets.
const WAITED_MAX: f64 = 0.1;

/// Objections to a run besides lateness.
fn reasons(report: &Report, trouble: Trouble, totals: Totals, slowdown: Slowdown) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut count = |n: u64, what: &str| {
        if n > 0 {
            reasons.push(format!("{n} {what}"));
        }
    };
    count(trouble.lost_in_hosts, "packets were lost in hosts because the network did not take them in time");
    count(trouble.refused, "packets were refused by the host that they had reached");
    count(trouble.unreadable, "frames of hosts could not be read");
    count(report.sockets.absurd, "windows that no algorithm sets: the kernel skipped hooks");
    let refused = report.retuned.as_ref().map_or(0, |retuned| retuned.counts.failed);
    count(refused, "settings of the policy were refused by the kernel");
    if report.waited > WAITED_MAX * f64::from(slowdown.times()) {
        let waited = report.waited * 100.0;
        reasons.push(format!("the hosts' applications waited for a CPU for {waited:.1} % of the run"));
    }
    if totals.entered == 0 && !report.sockets.flows.is_empty() {
        reasons.push("no host sent a packet".to_string());
    }
    reasons
}

/// Largest lateness of the Oracle and the agents, as a share of the policy's period. By default CUEs live for one and a half
/// periods: at half a period more, a rule expires that the Oracle meant to renew.
const POLICY_LATE_MAX: f64 = 0.2;

fn late_policy(scenario: &Scenario, report: &Report) -> Option<String> {
    let (late, period) = (report.retuned.as_ref()?.late, scenario.policy.as_ref()?.policy.period);
    (late.as_secs_f64() > period.as_secs_f64() * POLICY_LATE_MAX)
        .then(|| format!("the policy acted up to {late} late, with a period of {period}"))
}

fn results(
    scenario: &Scenario,
    (topology, links): (&net::Topology, Vec<LinkRow>),
    algorithms: &Algorithms,
    counted: &Counted,
    report: Report,
    check: &SelfCheck,
) -> RunResults {
    let flows = rows::flows(scenario, topology, algorithms, counted, &report.sockets.flows);
    let mut summary = Summary::of(plan::identity(scenario), &flows, &links);
    for (name, value) in report.extra {
        summary.insert(name, value);
    }
    summary.insert("emulation.valid", f64::from(u8::from(check.valid)));
    summary.insert("emulation.lateness_p99_us", check.lateness_p99_us);
    summary.insert("emulation.lateness_max_us", check.lateness_max_us);
    let link_series = counted.series.samples().to_vec();
    let entries: Vec<std::sync::Arc<str>> = scenario.traffic.iter().map(|entry| entry.name.as_str().into()).collect();
    let messages = plan::message_rows(&report.sockets.messages, scenario.measure.warmup, &entries);
    if let Some(retuned) = &report.retuned {
        retuned.control.summarize(&mut summary);
    }
    let rules = report.retuned.as_ref().map_or_else(Vec::new, |retuned| retuned.control.rules().to_vec());
    let cues = report.retuned.map_or_else(Vec::new, Retuned::into_rows);
    let opened = (flows.len(), scenario.traffic.len());
    let gates = counted.gates.iter();
    let enforcer = gates.flat_map(|gate| gate.results(counted.ended, opened, &mut summary)).collect();
    let (jobs, coflows) = report.jobs;
    RunResults {
        jobs,
        coflows,
        enforcer,
        flows,
        links,
        link_series,
        messages,
        cwnd: report.sockets.cwnd,
        cues,
        rules,
        summary,
        ..RunResults::default()
    }
}

const _: () = assert!(
    address::RECEIVER_PORT as usize + address::ENTRIES_MAX < address::SENDER_PORT as usize,
    "receivers' and senders' ports are apart"
);
