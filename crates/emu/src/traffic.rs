//! The scenario's applications on real sockets: one thread that opens, writes, reads and closes them all.

use crate::error::EmuError;
use crate::port::{Clock, WallClock};
use crate::retuning::{Retuned, Retuning};
use crate::sockets::{self, Due, Hosts, Sockets};
use plan::Applications;
use results::{CoflowRow, JobRow};
use scenario::Scenario;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Time;

/// Events of applications that may run before the sockets are polled.
const DUE_AT_ONCE: usize = 64;

/// The traffic's results.
pub struct Report {
    /// The sockets' results.
    pub sockets: sockets::Report,
    /// Measures that entries report themselves: name and value.
    pub extra: Vec<(String, f64)>,
    /// The tables `jobs` and `coflows`.
    pub jobs: (Vec<JobRow>, Vec<CoflowRow>),
    /// Share of the run for which the applications were ready but had no CPU, 0 to 1.
    pub waited: f64,
    /// In a run with a policy: its results.
    pub retuned: Option<Retuned>,
}

/// Runs the traffic of `scenario` on `hosts`, and its policy, until the end or until `stop`.
///
/// # Errors
/// A system call for polling sockets is refused, or a setting of the policy. Errors of single flows are in the report.
pub fn run(
    scenario: &Scenario,
    hosts: Hosts<'_>,
    mut retuning: Option<Retuning>,
    clock: WallClock,
    stop: &AtomicBool,
) -> Result<Report, EmuError> {
    let (began, waited_before) = (clock.now(), waited());
    let polling = |error| EmuError::Io("polling sockets", error);
    let mut sockets = Sockets::new(hosts, clock).map_err(polling)?;
    let mut applications = Applications::new(scenario, &mut sockets);
    sockets.schedule_measuring(&scenario.measure);
    if let Some(retuning) = &mut retuning {
        retuning.begin(clock, &mut sockets)?;
    }
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= scenario.duration {
            break;
        }
        if let Some(retuning) = retuning.as_mut().filter(|retuning| retuning.next() <= now) {
            retuning.on_time(now, &mut sockets)?;
        }
        // bounded, so that sockets do not wait for long
        for _ in 0..DUE_AT_ONCE {
            let Some(due) = sockets.next_due() else { break };
            match due {
                Due::Application { at, entry, which } => {
                    sockets.begin(at);
                    applications.on_app(&mut sockets, entry, which);
                    sockets.end();
                }
                Due::Sample => sockets.sample(),
                Due::Counting => sockets.begin_counting(),
            }
        }
        let turn = retuning.as_ref().map_or(Time::NEVER, Retuning::next);
        let until = scenario.duration.min(turn).min(clock.now() + clock.slowdown().of_real(Time::from_ms(20)));
        sockets.wait(until).map_err(polling)?;
        while let Some(flow) = sockets.take_received() {
            let entry = sockets.entry_of(flow);
            applications.on_received(&mut sockets, (entry, flow), clock.now());
        }
    }
    // events due from here on are dropped
    let ended = clock.now().min(scenario.duration);
    let ran = clock.slowdown().real(clock.now() - began);
    let waited = waited().saturating_sub(waited_before).as_secs_f64() / ran.as_secs_f64().max(1e-3);
    // the flows' records first: the rest takes a while
    let sockets = sockets.finish(ended);
    let retuned = retuning.map(Retuning::finish).transpose()?;
    let warmup = scenario.measure.warmup;
    Ok(Report { sockets, extra: applications.extra(warmup), jobs: applications.jobs(warmup), waited, retuned })
}

/// How long the calling thread has been ready and did not run; zero where Linux does not count it.
fn waited() -> Time {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    // ran, waited, how often
    Time::from_ns(text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0))
}
