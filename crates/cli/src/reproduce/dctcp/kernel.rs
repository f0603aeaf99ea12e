//! The runs in real time, one after the other.

use super::cases::Case;
use crate::failure::Failure;
use crate::stop::Stop;
use crate::sweep::Job;
use crate::terminal::Progress;
use emu::hosts::{Host, HostSettings};
use emu::{EmuError, Watch, emulate};
use results::{RunResults, SelfCheck};
use scenario::Bundle;
use units::Time;

/// Making the hosts of a run and ending its connections, about.
const SETUP: Time = Time::from_ms(500);

/// Why this process has no kernels to run on, if it has none.
pub fn absent() -> Option<String> {
    if let Err(missing) = kernel::Kernel::probe() {
        return Some(missing.to_string());
    }
    Host::new("probe", &HostSettings::new(emu::address::address(0))).err().map(|error| error.to_string())
}

/// Emulates all `cases`, and gives each one's results to `take`. A run that fails is told in a sentence and the others go
/// on: they took minutes.
///
/// # Errors
/// The user stopped it, or `take` failed.
pub fn run_all(
    cases: &[Case],
    stop: &Stop,
    mut take: impl FnMut(&Case, &RunResults, SelfCheck) -> Result<(), Failure>,
) -> Result<Vec<String>, Failure> {
    let mut failed = Vec::new();
    if cases.is_empty() {
        return Ok(failed);
    }
    let seconds: f64 = cases.iter().map(|case| (case.scenario.duration + SETUP).as_secs_f64()).sum();
    eprintln!("kernel: {} runs in real time, about {seconds:.0} s", cases.len());
    // what a killed run has left running in its hosts would take this one's processors
    let _ = emu::hosts::clean();
    let progress = Progress::of(cases.len());
    for case in cases {
        let job = case.job();
        let mut watched = Watched { progress: &progress, stop, end: case.scenario.duration, told: 0 };
        match emulate(&job.scenario, None, &mut watched) {
            Ok(emulated) => {
                let check = SelfCheck { run: job.name.clone(), ..emulated.check };
                progress.finished(&job.name, &words(&check));
                take(case, &complete(emulated.results, job, &check), check)?;
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

/// With what the emulator leaves to its caller.
fn complete(results: RunResults, job: Job, check: &SelfCheck) -> RunResults {
    let Bundle { toml, files } = job.scenario.bundle();
    let mut parameters = job.parameters;
    if !check.valid {
        parameters.push(("self-check".to_string(), format!("not valid: {}", check.reasons.join("; "))));
    }
    RunResults { name: job.name, parameters, scenario_toml: toml, files, ..results }
}

fn words(check: &SelfCheck) -> String {
    let valid = if check.valid { "valid".to_string() } else { format!("NOT VALID ({})", check.reasons.join("; ")) };
    format!("{valid}; 99 % of packets late by {:.1} us at most", check.lateness_p99_us)
}

/// Tells how far a run is, and stops it when the user says so.
struct Watched<'a> {
    progress: &'a Progress,
    stop: &'a Stop,
    end: Time,
    told: u64,
}

impl Watch for Watched<'_> {
    fn on_progress(&mut self, now: Time) -> bool {
        let done = Progress::share(now, self.end);
        self.progress.advance(done - self.told);
        self.told = done;
        !self.stop.is_set()
    }
}
