//! [`open`]: the network of a scenario without its traffic, for a user's programs in its hosts.

use super::algorithms::Algorithms;
use super::network::Network;
use crate::engine::Counted;
use crate::error::EmuError;
use crate::port::WallClock;
use crate::slowdown::Slowdown;
use crate::{limits, linux};
use scenario::{Measure, Queues, Scenario};
use std::panic::resume_unwind;
use std::path::PathBuf;
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
    // a network without measurements is open until `work` returns
    let measure = Measure { links: None, queues: Queues::Links(Vec::new()), ..scenario.measure.clone() };
    let scenario = Scenario { measure, ..scenario.clone() };
    let topology = plan::topology(&scenario)?;
    let stack = super::agreed(
        limits::of_network(&scenario, &topology, Slowdown::NONE),
        linux::stack(&scenario, Slowdown::NONE),
    )?;
    let _algorithms = Algorithms::load(&scenario)?;
    // the load is unknown; at this rate it may be too much for one CPU
    let helped = limits::glues(&topology, Slowdown::NONE);
    let network = Network::create(&scenario, &topology, &stack, helped, (0, Slowdown::NONE), pcap)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let engine = network.start(scope, &scenario, WallClock::start(Slowdown::NONE), Time::NEVER, &stop)?;
        let worker = scope.spawn(|| {
            network.leave_the_engine_alone();
            work(&network)
        });
        let done = worker.join();
        stop.store(true, Ordering::Relaxed);
        let ran = engine.join().map_err(|_| EmuError::Broken)?;
        let (counted, _) = ran?;
        Ok((done.unwrap_or_else(|panic| resume_unwind(panic)), counted))
    })
}
