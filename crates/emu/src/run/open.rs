//! [`open`] and [`open_with`]: the network of a scenario without its traffic, for a user's programs in its hosts.

use super::algorithms::Algorithms;
use super::network::Network;
use crate::engine::Counted;
use crate::error::EmuError;
use crate::limits;
use crate::linux::{self, Stack};
use crate::port::WallClock;
use crate::slowdown::Slowdown;
use scenario::{Measure, Queues, Scenario};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use units::Time;

/// Opens the network of `scenario`, runs `work` while it forwards packets, and closes it. Failures come at their times; the
/// scenario's algorithms are in the kernel. With `pcap`, what each host sends and receives is captured in that folder. Returns the result
/// of `work` and the network's counters. `work` has a thread of its own, which like its children is off the engine's CPU.
///
/// # Errors
/// [`EmuError`]; in every case nothing is left behind.
pub fn open<T: Send>(
    scenario: &Scenario,
    pcap: Option<PathBuf>,
    work: impl FnOnce(&Network) -> T + Send,
) -> Result<(T, Counted), EmuError> {
    open_with(scenario, &[], pcap, |network, _| work(network))
}

/// What the hosts of an open network have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Furnished {
    /// The algorithm of connections that choose none, by the kernel's name.
    pub own: String,
    /// Those that were loaded for programs to choose.
    pub loaded: Vec<String>,
    /// What of the scenario's `[tcp]` the hosts do not have, with the reason.
    pub lacking: Vec<String>,
}

/// [`open`], with the algorithms that the scenarios `others` name loaded as well. Each host is set as the scenario's `[tcp]` says, its
/// algorithm included, so that programs that choose nothing run on the scenario's TCP. What this kernel cannot have is left out, and said.
///
/// # Errors
/// As [`open`].
pub fn open_with<T: Send>(
    scenario: &Scenario,
    others: &[Scenario],
    pcap: Option<PathBuf>,
    work: impl FnOnce(&Network, &Furnished) -> T + Send,
) -> Result<(T, Counted), EmuError> {
    // a network without measurements is open until `work` returns
    let measure = Measure { links: None, queues: Queues::Links(Vec::new()), ..scenario.measure.clone() };
    let scenario = Scenario { measure, ..scenario.clone() };
    let topology = plan::topology(&scenario)?;
    let objections = limits::of_network(&scenario, &topology, Slowdown::NONE);
    if !objections.is_empty() {
        return Err(EmuError::Asked(objections));
    }
    // dropped after the network: its sockets use the algorithms
    let algorithms = Algorithms::load_with(&scenario, &[others, std::slice::from_ref(&scenario)].concat())?;
    let (stack, lacking) = stack_of(&scenario, &algorithms);
    let furnished = Furnished {
        own: stack.congestion_control.clone().unwrap_or_default(),
        loaded: algorithms.loaded().map(str::to_string).collect(),
        lacking,
    };
    // the load is unknown; at this rate it may be too much for one CPU
    let helped = limits::glues(&topology, Slowdown::NONE);
    let network = Network::create(&scenario, &topology, &stack, helped, (0, Slowdown::NONE), pcap)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let engine = network.start(scope, &scenario, WallClock::start(Slowdown::NONE), Time::NEVER, &stop)?;
        let worker = scope.spawn(|| {
            network.leave_the_engine_alone();
            work(&network, &furnished)
        });
        let done = worker.join();
        stop.store(true, Ordering::Relaxed);
        let ran = engine.join().map_err(|_| EmuError::Broken)?;
        let (counted, _) = ran?;
        Ok((done.unwrap_or_else(|panic| resume_unwind(panic)), counted))
    })
}

/// The hosts' settings as far as this kernel has them, and what it lacks.
fn stack_of(scenario: &Scenario, algorithms: &Algorithms) -> (Stack, Vec<String>) {
    let own = algorithms.name(&scenario.tcp.cc).map(str::to_string);
    let mut stack = Stack { congestion_control: own, ..linux::nearest_stack(scenario, Slowdown::NONE) };
    // no policy acts in this network
    let of_tcp = linux::objections(scenario, Slowdown::NONE).into_iter().filter(|of| of.key.starts_with("tcp."));
    let mut lacking: Vec<String> = of_tcp.map(|of| format!("{}: {}", of.key, of.message)).collect();
    stack.sysctls.retain(|(name, value)| {
        let has = Path::new("/proc/sys").join(name.replace('.', "/")).exists();
        if !has {
            lacking.push(format!("this kernel has no {name}, which would be {value}"));
        }
        has
    });
    (stack, lacking)
}
