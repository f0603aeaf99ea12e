//! Shared by the tests of whole runs: the machine, and runs that it did not distort.

use emu::{EmuError, Emulated, Slowdown, Watch, emulate};
use scenario::Scenario;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{Machine, or_skip};
use units::Time;

/// Runs of one test until one is valid: another program may take the CPUs for a while.
pub const ATTEMPTS: usize = 3;

/// How long a run waits for other programs to leave the machine alone.
const QUIET_WITHIN: Duration = Duration::from_secs(6);

/// The machine, for one real-time test at a time; or a printed reason why the test is skipped.
pub fn machine() -> Option<Machine> {
    or_skip(kernel::Kernel::probe())?;
    or_skip(emu::hosts::Host::new("probe", &emu::hosts::HostSettings::new(emu::address::address(0))))?;
    Some(Machine::take())
}

/// Lets a run continue in any case.
struct Unwatched;

impl Watch for Unwatched {
    fn on_progress(&mut self, _: Time) -> bool {
        true
    }
}

/// A run of the scenario, its self-check printed. None, and a printed reason, where cgroup v2, which a policy needs, is not available.
pub fn any(name: &str, scenario: &Scenario) -> Option<Emulated> {
    attempt(name, emulate(scenario, Slowdown::NONE, None, &mut Unwatched))
}

fn attempt(name: &str, run: Result<Emulated, EmuError>) -> Option<Emulated> {
    match run {
        Ok(run) => {
            print(name, &run);
            Some(run)
        }
        Err(error @ EmuError::Cgroup(_)) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A valid result of `run`, during which the machine's own host stole no more than `stolen` of its CPUs. None, and a printed
/// reason, on a machine where none is valid: one whose host steals CPUs for milliseconds at a time says nothing about the emulator.
pub fn valid(name: &str, stolen: f64, mut run: impl FnMut() -> Result<Emulated, EmuError>) -> Option<Emulated> {
    for n in 1..=ATTEMPTS {
        await_quiet();
        let run = attempt(name, run())?;
        if run.check.valid && run.check.cpu_stolen <= stolen {
            return Some(run);
        }
        println!("{name}: attempt {n} of {ATTEMPTS} was distorted by other programs");
    }
    println!("skipped: no run of {name} was valid on this machine");
    None
}

/// The same of a scenario.
pub fn valid_run(name: &str, stolen: f64, scenario: &Scenario) -> Option<Emulated> {
    valid(name, stolen, || emulate(scenario, Slowdown::NONE, None, &mut Unwatched))
}

/// The same of a scenario that runs more slowly.
pub fn valid_slower(name: &str, slowdown: Slowdown, scenario: &Scenario) -> Option<Emulated> {
    valid(name, 1.0, || emulate(scenario, slowdown, None, &mut Unwatched))
}

fn print(name: &str, run: &Emulated) {
    let check = &run.check;
    println!(
        "{name}: late by {:.1}/{:.1}/{:.0} us (50 %/99 %/most), read after {:.1} us (99 %), CPUs {:.0} % busy, \
         {:.1} % stolen, others waited for {:.2}: {}",
        check.lateness_p50_us,
        check.lateness_p99_us,
        check.lateness_max_us,
        check.reading_p99_us,
        check.cpu_busy * 100.0,
        check.cpu_stolen * 100.0,
        check.cpu_others_waited,
        if check.valid { "valid".to_string() } else { check.reasons.join("; ") }
    );
}

/// Waits briefly until the machine has little else to do; prints a line if it never has.
fn await_quiet() {
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/stat").expect("Linux has this");
        let numbers: Vec<u64> =
            stat.lines().next().unwrap_or_default().split_whitespace().filter_map(|n| n.parse().ok()).collect();
        (numbers.iter().take(8).sum::<u64>(), numbers[3] + numbers[4])
    };
    let began = Instant::now();
    while began.elapsed() < QUIET_WITHIN {
        let before = ticks();
        thread::sleep(Duration::from_millis(300));
        let after = ticks();
        if (after.1 - before.1) * 10 > (after.0 - before.0) * 9 {
            return;
        }
    }
    println!("the machine is busy with other programs: this run may not be valid");
}
