//! Runs scenarios in real time, by the emulator.

use crate::failure::Failure;
use crate::monitor::{Monitor, Progress};
use crate::slower::Slower;
use crate::source::Source;
use crate::stop::Stop;
use crate::sweep::Job;
use crate::table::scaled;
use ::emu::hosts::{Host, HostSettings};
use ::emu::{EmuError, Watch, emulate};
use results::{RunResults, SelfCheck};
use scenario::{Bundle, Scenario};
use units::Time;

/// The algorithms of emulated scenarios: ours, and the running kernel's own as `kernel:NAME`.
pub(crate) fn algorithm_names(ours: &[&str]) -> Vec<String> {
    let of_kernel = kernel::algorithms().unwrap_or_default();
    let own = of_kernel.into_iter().filter(|name| name.starts_with(kernel::KERNEL_PREFIX));
    ours.iter().map(ToString::to_string).chain(own).collect()
}

/// Why this process cannot use real kernels, if so.
pub fn absent() -> Option<String> {
    if let Err(missing) = kernel::Kernel::probe() {
        return Some(missing.to_string());
    }
    Host::new("probe", &HostSettings::new(::emu::address::address(0))).err().map(|error| error.to_string())
}

/// The origin of a scenario, to report where it asks for what cannot be emulated.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Where it is written.
    pub source: &'a Source,
    /// The overrides.
    pub sets: &'a [String],
}

/// How often runs are repeated that are not valid, and whether more slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    /// A run that can be made more slowly is repeated so, whatever `repeats`.
    pub slower: Slower,
    /// So many others, in all.
    pub repeats: u32,
}

/// Emulates all `jobs`, one after the other, and passes the results to `take`.
///
/// # Errors
/// The first failure, of a run or of `take`.
pub(crate) fn run_all(
    jobs: &[Job],
    origin: Origin<'_>,
    monitor: Monitor<'_>,
    mut attempts: Attempts,
    mut take: impl FnMut(RunResults, SelfCheck) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // programs that a killed run left in its hosts would use CPU time of this run
    let _ = ::emu::hosts::clean();
    let progress = Progress::of(monitor, jobs.len());
    for job in jobs {
        let (results, check) =
            emulate_job(job, &progress, monitor.stop(), &mut attempts).map_err(|error| failure(error, origin))?;
        progress.finished(&job.name, &words(&check));
        take(results, check)?;
    }
    Ok(())
}

/// Emulates `job`; repeats it while it is not valid and `allowed`, of which it takes its repetitions.
///
/// # Errors
/// The emulator fails.
pub(crate) fn emulate_job(
    job: &Job,
    progress: &Progress<'_>,
    stop: &Stop,
    allowed: &mut Attempts,
) -> Result<(RunResults, SelfCheck), EmuError> {
    let (mut attempts, mut slowdown) = (0, allowed.slower.first());
    loop {
        attempts += 1;
        let mut watched = Watched { progress, stop, end: job.scenario.duration, reported: 0 };
        let emulated = match emulate(&job.scenario, slowdown, None, &mut watched) {
            // a slower network may be within what this machine can do
            Err(EmuError::Asked(objections)) => match allowed.slower.next(slowdown, None) {
                Some(slower) => {
                    slowdown = slower;
                    continue;
                }
                None => return Err(EmuError::Asked(objections)),
            },
            other => other?,
        };
        let check = SelfCheck { run: job.name.clone(), attempts, ..emulated.check };
        let slower = if check.valid { None } else { allowed.slower.next(slowdown, Some(&check)) };
        if let Some(slower) = slower {
            progress.repeated(&job.name, &format!("{}; {} times slower now", check.reasons.join("; "), slower.times()));
            slowdown = slower;
        } else if check.valid || allowed.repeats == 0 {
            return Ok((complete(emulated.results, job, &check), check));
        } else {
            allowed.repeats -= 1;
            progress.repeated(&job.name, &check.reasons.join("; "));
        }
    }
}

/// Adds what the emulator does not know: name, parameters, and whether the run is valid.
fn complete(results: RunResults, job: &Job, check: &SelfCheck) -> RunResults {
    let Bundle { toml, files } = job.scenario.bundle();
    let mut parameters = job.parameters.clone();
    if check.slowdown > 1 {
        parameters.push(("slowed".to_string(), slowed(job, check.slowdown)));
    }
    if !check.valid {
        parameters.push(("self-check".to_string(), format!("not valid: {}", check.reasons.join("; "))));
    }
    let title = job.scenario.title.clone().unwrap_or_default();
    RunResults { name: job.name.clone(), title, parameters, scenario_toml: toml, files, ..results }
}

/// `8 times; in real time: delayed ACK, initial RTO, the clock of cubic`.
fn slowed(job: &Job, times: u32) -> String {
    format!("{times} times; in real time: {}", ::emu::linux::in_real_time(&job.scenario).join(", "))
}

/// Reports a run's progress, and stops it on request.
struct Watched<'a> {
    progress: &'a Progress<'a>,
    stop: &'a Stop,
    end: Time,
    reported: u64,
}

impl Watch for Watched<'_> {
    fn on_progress(&mut self, now: Time) -> bool {
        let done = Progress::share(now, self.end);
        self.progress.advance(done - self.reported);
        self.reported = done;
        !self.stop.is_set()
    }
}

/// A run's summary, in a line.
fn words(check: &SelfCheck) -> String {
    let valid = if check.valid { "valid" } else { "NOT VALID" };
    let slowed = if check.slowdown > 1 { format!(", slowed {} times", check.slowdown) } else { String::new() };
    format!(
        "{valid}{slowed}; {} packets, lateness {:.1} us (99 %), {:.0} us at most; CPUs {:.0} % busy, {:.1} % \
         stolen",
        scaled(check.packets as f64),
        check.lateness_p99_us,
        check.lateness_max_us,
        check.cpu_busy * 100.0,
        check.cpu_stolen * 100.0
    )
}

/// The runs that are not valid, and why, a line each; `None` if all are valid.
pub fn distortions(checks: &[SelfCheck]) -> Option<String> {
    let distorted = checks.iter().filter(|check| !check.valid);
    let lines = distorted.map(|check| format!("run {} is not valid: {}", check.run, check.reasons.join("; ")));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Sorts an emulation's failures into wrong input and failed work.
pub fn failure(error: EmuError, origin: Origin<'_>) -> Failure {
    match error {
        EmuError::Asked(objections) => match origin.source.text("scenario") {
            Ok(text) => Failure::located(&Scenario::objections(&origin.source.name(), &text, origin.sets, &objections)),
            Err(unreadable) => unreadable,
        },
        EmuError::Interrupted => Failure::Interrupted,
        EmuError::Model(_)
        | EmuError::Kernel(_)
        | EmuError::Algorithm(_)
        | EmuError::Cgroup(_)
        | EmuError::Retune(_)
        | EmuError::Hosts(::emu::hosts::Error::NotRoot) => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}
