//! The runs in real time, one after the other.

use super::cases::Case;
use crate::emu::emulate_job;
use crate::failure::Failure;
use crate::monitor::{Monitor, Progress};
use emu::EmuError;
use results::{RunResults, SelfCheck};
use units::Time;

/// Making the hosts of a run and ending its connections, about.
const SETUP: Time = Time::from_ms(500);

/// Emulates all `cases`, and gives each one's results to `take`; a quarter of them once more, if they are not valid. A run that fails is told in a sentence and the others go
/// on: they took minutes.
///
/// # Errors
/// The user stopped it, or `take` failed.
pub fn run_all(
    cases: &[Case],
    monitor: Monitor<'_>,
    mut take: impl FnMut(&Case, &RunResults, SelfCheck) -> Result<(), Failure>,
) -> Result<Vec<String>, Failure> {
    let mut failed = Vec::new();
    if cases.is_empty() {
        return Ok(failed);
    }
    let seconds: f64 = cases.iter().map(|case| (case.scenario.duration + SETUP).as_secs_f64()).sum();
    monitor.note(&format!("kernel: {} runs in real time, about {seconds:.0} s", cases.len()));
    // what a killed run has left running in its hosts would take this one's processors
    let _ = emu::hosts::clean();
    let progress = Progress::of(monitor, cases.len());
    let mut again = cases.len() as u32 / 4;
    for case in cases {
        let job = case.job();
        match emulate_job(&job, &progress, monitor.stop(), &mut again) {
            Ok((results, check)) => {
                progress.finished(&job.name, &words(&check));
                take(case, &results, check)?;
            }
            Err(EmuError::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => {
                progress.finished(&job.name, &format!("FAILED: {error}"));
                failed.push(format!("{} failed, its rows are missing: {error}.", case.name()));
            }
        }
    }
    Ok(failed)
}

fn words(check: &SelfCheck) -> String {
    let valid = if check.valid { "valid".to_string() } else { format!("NOT VALID ({})", check.reasons.join("; ")) };
    format!("{valid}; 99 % of packets late by {:.1} us at most", check.lateness_p99_us)
}
