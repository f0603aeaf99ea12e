//! Runs work without the interpreter's lock, while the calling thread takes signals and reports progress.

use crate::errors::{self, In};
use congestion::interrupted;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use study::{Event, Failure, Monitor, Sink, Stop};

/// Between two looks at signals and progress: short for a person, rare for the interpreter's lock.
const LOOK: Duration = Duration::from_millis(100);

/// How far the work is.
#[derive(Debug, Default)]
struct Position {
    runs: usize,
    finished: usize,
    steps: u64,
    notes: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Debug, Default)]
struct Shared(Mutex<Position>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Position> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Shared {
    fn on_event(&self, event: Event<'_>) {
        let mut position = self.lock();
        match event {
            Event::Began { runs } => (position.runs, position.finished, position.steps) = (runs, 0, 0),
            Event::Advanced { steps } => position.steps += steps,
            Event::Finished { .. } => position.finished += 1,
            Event::Repeated { name, words } => position.notes.push(format!("{name}, repeated: {words}")),
            Event::Note(words) => position.notes.push(words.to_string()),
            Event::Warning(words) => position.warnings.push(words.to_string()),
            Event::Ended => {}
        }
    }
}

/// Does `work`, and calls `report(share, finished, runs, notes, warnings)` several times a second, if there is one, and at the end.
///
/// # Errors
/// The work's failure; what `report` raises; or what a signal's handler raises, such as KeyboardInterrupt. Then the work was stopped
/// between two steps, and has left nothing.
pub fn drive<T: Send>(
    py: Python<'_>,
    report: Option<&Bound<'_, PyAny>>,
    place: In,
    work: impl FnOnce(Monitor<'_>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let report = report.map(|report| report.clone().unbind());
    let (shared, stop) = (Shared::default(), Stop::default());
    let look = || {
        Python::attach(|py| {
            py.check_signals()?;
            let Some(report) = &report else { return Ok(()) };
            let Position { runs, finished, steps, notes, warnings } = {
                let mut position = shared.lock();
                let (notes, warnings) = (std::mem::take(&mut position.notes), std::mem::take(&mut position.warnings));
                Position { notes, warnings, ..*position }
            };
            let share = steps as f64 / (runs as u64 * Event::STEPS).max(1) as f64;
            report.call1(py, (share, finished, runs, notes, warnings)).map(drop)
        })
    };
    let (outcome, raised) = py.detach(|| {
        let (sink, flag) = (&shared, &stop);
        let (ended, end) = channel::<()>();
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                // dropped when the work ends, also by a panic
                let _ended = ended;
                work(Monitor::new(sink, flag))
            });
            let mut raised = None;
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = look().err();
                    if raised.is_some() {
                        stop.interrupt();
                        // a hook of a C file that does not return ends the process then: nothing else can end it
                        interrupted().store(true, Ordering::Relaxed);
                    }
                }
            }
            interrupted().store(false, Ordering::Relaxed);
            let outcome = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            (outcome, raised.or_else(|| look().err()))
        })
    });
    match raised {
        Some(raised) => Err(raised),
        None => outcome.map_err(|failure| errors::exception(py, failure, place)),
    }
}
