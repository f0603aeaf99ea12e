//! The runs on real kernels, in real time, one after the other.

use super::cases::Case;
use crate::emu::{Attempts, emulate_job};
use crate::failure::Failure;
use crate::monitor::{Monitor, Progress};
use crate::slower::Slower;
use emu::EmuError;
use results::{RunResults, SelfCheck};
use units::Time;

/// Approximate time to build a run's hosts and to close its connections.
const SETUP: Time = Time::from_ms(500);

/// Emulates all `cases`, and passes each one's results to `take`. A quarter of them may be repeated if they are not valid. A run that
/// fails is reported, and the others continue, since they take minutes.
///
/// # Errors
/// The user stopped it, or `take` failed.
pub fn run_all(
    cases: &[Case],
    slower: Slower,
    monitor: Monitor<'_>,
    mut take: impl FnMut(&Case, &RunResults, SelfCheck) -> Result<(), Failure>,
) -> Result<Vec<String>, Failure> {
    let mut failed = Vec::new();
    if cases.is_empty() {
        return Ok(failed);
    }
    let times = slower.first();
    let seconds: f64 = cases.iter().map(|case| (times.real(case.scenario.duration) + SETUP).as_secs_f64()).sum();
    monitor.note(&format!("kernel: {} runs {} {seconds:.0} s", cases.len(), slower.pace()));
    // programs that a killed run left in its hosts would use CPU time of this run
    let _ = emu::hosts::clean();
    let progress = Progress::of(monitor, cases.len());
    let mut attempts = Attempts { slower, repeats: cases.len() as u32 / 4 };
    for case in cases {
        let job = case.job();
        match emulate_job(&job, &progress, monitor.stop(), &mut attempts) {
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
    let slowed = if check.slowdown > 1 { format!(", slowed {} times", check.slowdown) } else { String::new() };
    format!("{valid}{slowed}; lateness of 99 % of the packets at most {:.1} us", check.lateness_p99_us)
}
