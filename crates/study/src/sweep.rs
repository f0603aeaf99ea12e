//! Parallel runs, each on one core, or on several where there are fewer runs than cores. Their results are delivered in order, so that output
//! depends neither on the number of jobs nor on which run ends first.

use crate::failure::Failure;
use crate::monitor::{Monitor, Progress};
use crate::stop::Stop;
use crate::table::scaled;
use results::RunResults;
use scenario::Scenario;
use sim::{SimError, Simulation};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Instant;
use units::Time;

/// Per job, this many runs may be started before the oldest is delivered: it bounds the memory of results that wait for a slow run.
const AHEAD: usize = 4;

/// A run to do.
#[derive(Clone, Debug)]
pub struct Job {
    /// Unique among the runs.
    pub name: String,
    /// Its parameters, for tables and reports: `algorithm`, `routing`, `seed` and so on.
    pub parameters: Vec<(String, String)>,
    /// The scenario to simulate.
    pub scenario: Scenario,
}

/// Runs all `jobs` on `workers` cores, as many at a time as there are cores, and passes the results to `take`, in order.
///
/// # Errors
/// The first failure, of a run or of `take`; the other runs are stopped.
pub fn run_all(
    jobs: &[Job],
    workers: usize,
    monitor: Monitor<'_>,
    mut take: impl FnMut(RunResults) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (progress, stop) = (Progress::of(monitor, jobs.len()), &monitor.stop().of_batch());
    let line = Line::new(jobs.len(), workers * AHEAD);
    let threads = threads_of(workers, jobs.len());
    let (sender, receiver) = mpsc::channel();
    let outcome = thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            let (sender, line, progress) = (sender.clone(), &line, &progress);
            scope.spawn(move || {
                while let Some(number) = line.next(stop) {
                    let outcome = run_one(&jobs[number], threads, progress, stop);
                    if sender.send((number, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut delivered = 0;
        let deliver = || {
            for (number, outcome) in receiver {
                waiting.insert(number, outcome?);
                while let Some(results) = waiting.remove(&delivered) {
                    take(results)?;
                    delivered += 1;
                    line.delivered(delivered);
                }
            }
            Ok(())
        };
        let outcome = deliver();
        if outcome.is_err() {
            stop.fail();
            line.delivered(jobs.len());
        }
        outcome
    });
    if stop.interrupted() { Err(Failure::Interrupted) } else { outcome }
}

/// Threads of each run where `workers` cores are to do so many: cores that would have no run of their own help with large networks.
pub(crate) fn threads_of(workers: usize, runs: usize) -> usize {
    (workers / runs.max(1)).max(1)
}

pub(crate) fn run_one(job: &Job, threads: usize, progress: &Progress<'_>, stop: &Stop) -> Result<RunResults, Failure> {
    let began = Instant::now();
    // A broken invariant of the simulator must not look like the user's mistake, nor leave a half-written folder.
    let outcome = catch_unwind(AssertUnwindSafe(|| simulate(&job.scenario, threads, progress, stop)));
    let results = outcome.map_err(|_| {
        Failure::Run(format!(
            "run {} (seed {}) broke an invariant of the simulator, see above",
            job.name, job.scenario.seed
        ))
    })??;
    let hops = results.summary.packet_hops as f64;
    let seconds = began.elapsed().as_secs_f64();
    let words =
        format!("{} packet-hops in {seconds:.2} s ({} a second)", scaled(hops), scaled(hops / seconds.max(1e-9)));
    progress.finished(&job.name, &words);
    Ok(plan::titled(results, &job.name, &job.parameters, &job.scenario))
}

/// Packet-hops between two checks of the stop flag: some tens of milliseconds.
const STEP_HOPS: u64 = 1_000_000;
/// Even an idle run has this many steps.
const STEPS_MIN: u64 = 100;

/// [`sim::simulate`] in steps of about equal work, so that it can stop soon. The steps follow from the scenario, never from real time.
fn simulate(scenario: &Scenario, threads: usize, progress: &Progress<'_>, stop: &Stop) -> Result<RunResults, SimError> {
    // what ended an earlier run on this thread is not this run's
    congestion::take_fault();
    let mut simulation = Simulation::new(scenario)?;
    simulation.use_threads(threads);
    let end = scenario.duration;
    let longest = (end / STEPS_MIN).max(Time::from_ps(1));
    let mut step = Time::from_ms(1).min(longest);
    let (mut now, mut reported) = (Time::ZERO, 0);
    while now < end {
        let hops = simulation.packet_hops();
        now = now.saturating_add(step).min(end);
        simulation.run_to(now);
        if stop.is_set() {
            return Err(SimError::Interrupted);
        }
        if let Some(fault) = congestion::take_fault() {
            return Err(SimError::Algorithm(fault));
        }
        let done = Progress::share(now, end);
        progress.advance(done - reported);
        reported = done;
        step = match simulation.packet_hops().saturating_sub(hops) {
            few if few < STEP_HOPS / 2 => (step * 2).min(longest),
            many if many > STEP_HOPS * 2 => (step / 2).max(Time::from_ps(1)),
            _ => step,
        };
    }
    Ok(simulation.finish())
}

/// Hands out runs to workers, in order.
struct Line {
    state: Mutex<Position>,
    moved: Condvar,
    runs: usize,
    ahead: usize,
}

#[derive(Default)]
struct Position {
    next: usize,
    delivered: usize,
}

impl Line {
    fn new(runs: usize, ahead: usize) -> Line {
        Line { state: Mutex::default(), moved: Condvar::new(), runs, ahead }
    }

    /// The next run's number, once it is not too far ahead of the deliveries; none if all are taken or the batch stops.
    fn next(&self, stop: &Stop) -> Option<usize> {
        let far = |position: &mut Position| {
            position.next < self.runs && position.next >= position.delivered + self.ahead && !stop.is_set()
        };
        let mut position = self.moved.wait_while(self.lock(), far).unwrap_or_else(PoisonError::into_inner);
        if position.next >= self.runs || stop.is_set() {
            return None;
        }
        position.next += 1;
        Some(position.next - 1)
    }

    fn delivered(&self, count: usize) {
        self.lock().delivered = count;
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_without_a_run_help_with_others() {
        assert_eq!([threads_of(8, 1), threads_of(8, 3), threads_of(2, 8), threads_of(1, 0)], [8, 2, 1, 1]);
    }

    #[test]
    fn runs_are_handed_out_in_order_and_not_too_far_ahead() {
        let (line, stop) = (Line::new(4, 2), Stop::default());
        assert_eq!([line.next(&stop), line.next(&stop)], [Some(0), Some(1)]);
        line.delivered(1);
        assert_eq!(line.next(&stop), Some(2));
        stop.fail();
        assert_eq!(line.next(&stop), None, "a stopped line hands out no run, and does not wait");
    }
}
