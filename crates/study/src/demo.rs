//! The policy loop on a small network of real kernels, in three minutes; simulated without the rights for that.
//!
//! Four runs of `scenarios/demo.toml`: two baselines, each with opentcp1 and with opentcp2 on half of its hosts. The other half is
//! the control group, in the same network at the same time.
//!
//! The seed draws which hosts share a job and which are treated, and decides more than the policy. So each of the four is also
//! simulated with many seeds.

mod compare;
mod tell;

use crate::emu::{self, Attempts, Origin};
use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::monitor::Monitor;
use crate::run::speed;
use crate::slower::Slower;
use crate::source::Source;
use crate::sweep::{self, Job};
pub use compare::{Compared, Estimate, Group, Turn};
use results::{RunInfo, RunResults, SelfCheck, SweepWriter};
use scenario::{FileRef, Files};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

const NAME: &str = "scenarios/demo.toml";
const TEXT: &str = include_str!("../../../scenarios/demo.toml");

/// The policies, which are compiled in as the scenario is.
const POLICIES: [(&str, &str); 2] = [
    ("opentcp1", include_str!("../../../policies/opentcp1.toml")),
    ("opentcp2", include_str!("../../../policies/opentcp2.toml")),
];

/// Hosts without a policy: name, and overrides of the scenario.
const BASELINES: [(&str, &[&str]); 2] =
    [("paper", &["tcp.cc=bic", "tcp.initial_cwnd=3"]), ("today", &["tcp.cc=cubic", "tcp.initial_cwnd=10"])];

/// The demonstration's results.
#[derive(Clone, Debug)]
pub struct Demonstrated {
    /// Whether it ran without real kernels.
    pub simulated: bool,
    /// Sentences, computed from the data.
    pub findings: Vec<String>,
    /// Treated hosts and the control group, run by run.
    pub runs: Vec<Compared>,
    /// Text with tables.
    pub tables: String,
    /// Speed, and the emulator's self-checks.
    pub info: RunInfo,
}

/// The policies by the paths that the scenario uses.
struct BuiltIn;

impl Files for BuiltIn {
    fn resolve(&self, written: &str) -> FileRef {
        FileRef { written: written.to_string(), path: PathBuf::from(written) }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let known = POLICIES.iter().find(|(name, _)| path.file_stem().is_some_and(|stem| stem == *name));
        known.map(|(_, text)| (*text).to_string()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// At most one run is repeated, so that the demonstration takes under three minutes.
const AGAIN: u32 = 1;

/// Seeds with which each run is simulated besides.
const DRAWS: u64 = 20;

/// Runs the demonstration into the folder `out`, `slower` than real time; if it must be simulated, with `workers` in parallel.
///
/// # Errors
/// A run failed, the user stopped it, or it would be simulated `slower`.
pub fn demonstrate(
    out: &Path,
    slower: Option<Slower>,
    workers: usize,
    monitor: Monitor<'_>,
) -> Result<Demonstrated, Failure> {
    let absent = emu::absent();
    if let (Some(reason), Some(_)) = (&absent, slower) {
        return Err(Failure::Input(format!("--slower needs real kernels: {reason}")));
    }
    Means { absent, slower: slower.unwrap_or_default(), draws: DRAWS, workers }.demonstrate(out, monitor)
}

/// What the demonstration is made with.
struct Means {
    /// Why there are no real kernels to run it on.
    absent: Option<String>,
    slower: Slower,
    /// Seeds with which each run is simulated besides.
    draws: u64,
    /// Simulations in parallel.
    workers: usize,
}

impl Means {
    fn demonstrate(self, out: &Path, monitor: Monitor<'_>) -> Result<Demonstrated, Failure> {
        let Means { absent, slower, draws, workers } = self;
        let jobs = jobs(1)?;
        let simulated = absent.is_some();
        if let Some(reason) = &absent {
            monitor.note(&format!("SIMULATED, not on real kernels: {reason}"));
        } else {
            let real = |job: &Job| slower.first().real(job.scenario.duration).as_secs_f64();
            let seconds: f64 = jobs.iter().map(real).sum();
            monitor.note(&format!("{} runs on real kernels {} {seconds:.0} s", jobs.len(), slower.pace()));
        }
        let mut writer = SweepWriter::create(out).map_err(|error| Failure::bad_out(&error))?;
        let began = Instant::now();
        let (mut compared, mut checks, mut hops) = (Vec::new(), Vec::new(), 0);
        let mut take = |run: RunResults, check: Option<SelfCheck>| {
            hops += run.summary.packet_hops;
            compared.push(Compared::of(&run, check.as_ref()));
            checks.extend(check);
            writer.add(&run).map_err(|error| Failure::writing(&error))
        };
        if simulated {
            sweep::run_all(&jobs, workers, monitor, |run| take(run, None))?;
        } else {
            let origin = Origin { source: &Source::built_in(NAME, TEXT), sets: &[] };
            emu::run_all(&jobs, origin, monitor, Attempts { slower, repeats: AGAIN }, |run, check| {
                take(run, Some(check))
            })?;
        }
        let used = if simulated { workers.min(jobs.len()) } else { 1 };
        let info = RunInfo { emulations: checks, ..speed(began, hops, used) };
        draw(&mut compared, draws, workers, monitor)?;
        let findings = tell::findings(&compared, absent.as_deref());
        writer
            .finish(&tell::story(&compared, &findings, simulated), Some(&info))
            .map_err(|error| Failure::writing(&error))?;
        let tables = tell::text(&compared, &findings, simulated);
        Ok(Demonstrated { simulated, findings, runs: compared, tables, info })
    }
}

/// Simulates each run with so many seeds.
fn draw(compared: &mut [Compared], draws: u64, workers: usize, monitor: Monitor<'_>) -> Result<(), Failure> {
    let runs = compared.len();
    monitor.note(&format!("simulating each of the {runs} runs with {draws} draws of jobs and treated hosts"));
    let draws = (1..=draws).map(jobs).collect::<Result<Vec<_>, _>>()?.concat();
    let mut number = 0;
    sweep::run_all(&draws, workers, monitor, |run| {
        // each draw has the runs in the same order
        compared[number % runs].draws.push(compare::p99_reduction(&run));
        number += 1;
        Ok(())
    })?;
    for run in compared {
        run.draws.sort_by(f64::total_cmp);
    }
    Ok(())
}

/// The runs with one seed: each baseline with each policy.
fn jobs(seed: u64) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    for (baseline, settings) in BASELINES {
        for (policy, _) in POLICIES {
            let mut sets: Vec<String> = settings.iter().map(ToString::to_string).collect();
            sets.push(format!("policy.file=../policies/{policy}.toml"));
            sets.push(format!("seed={seed}"));
            let parameters = [("baseline", baseline), ("policy", policy)];
            jobs.extend(parse_scenario(NAME, TEXT, &sets, &BuiltIn)?.into_iter().map(|run| Job {
                name: format!("{baseline}/{policy}"),
                parameters: parameters.map(|(key, value)| (key.to_string(), value.to_string())).to_vec(),
                scenario: run.scenario,
            }));
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Event;
    use crate::stop::Stop;
    use std::fs;

    #[test]
    fn without_real_kernels_it_is_simulated_and_labelled_so() {
        let place = tempfile::tempdir().unwrap();
        let means = Means { absent: Some("no rights".to_string()), slower: Slower::default(), draws: 2, workers: 2 };
        let (unheard, stop) = (|_: Event<'_>| {}, Stop::default());
        let done = means.demonstrate(place.path(), Monitor::new(&unheard, &stop)).unwrap();
        assert!(done.simulated);
        assert!(
            done.findings[0].contains("`sudo opentcp demo` on Linux with BPF measures those"),
            "{:?}",
            done.findings
        );
        let report = fs::read_to_string(place.path().join("report.html")).unwrap();
        assert!(report.contains("<title>SIMULATED: "), "{}", &report[..500]);
        assert_eq!(done.runs.len(), 4);
        for run in &done.runs {
            let withheld: Vec<f64> = run.turns.iter().filter(|turn| turn.hosts == 0).map(|turn| turn.at_s).collect();
            // at first nothing is known; the congestion episodes are from 7.5 to 10.5 s and from 17.5 to 20.5 s
            assert!(withheld[0] < 1.0, "{withheld:?}");
            for epoch in [10.0, 20.0] {
                assert!(withheld.contains(&epoch), "{withheld:?}");
            }
            assert!(
                withheld.iter().all(|at| *at < 1.0 || (9.0..13.0).contains(at) || (19.0..23.0).contains(at)),
                "{withheld:?}"
            );
            // by how much the policy helps is for docs/validation/policy-loop.md: it differs from seed to seed
            let Estimate { low, value, high } = run.p99_reduction;
            assert!(low <= value && value <= high, "{:?}", run.p99_reduction);
            // of the simulated draws, seed 1 is this very run
            assert!(run.draws.len() == 2 && run.draws.is_sorted() && run.draws.contains(&value), "{:?}", run.draws);
            assert!(run.control.flows > 5000 && run.treated.flows > 5000, "{:?} {:?}", run.control, run.treated);
        }
    }
}
