//! The names that scenarios and policies may use, and checks of their files.

use crate::emu;
use crate::failure::Failure;
use crate::mistaken;
use crate::monitor::Monitor;
use crate::request::Backend;
use crate::source::Source;
use crate::sweep::Job;
use congestion::Algorithm;
use plan::facts;
pub use plan::{algorithm_facts, algorithm_names};
use policy::{AlgorithmFacts, KERNEL_PREFIX, Measures, Mode, Policy};
use scenario::{Diagnostic, Files, Input, Known, Run, Scenario};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

/// The algorithms of Linux 6.18's source.
const LINUX: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// The same of those that an emulation runs on this machine's kernel: Linux's own only where the kernel has them.
fn emulated_algorithm_facts() -> Vec<AlgorithmFacts<'static>> {
    let has = kernel::algorithms().unwrap_or_default();
    let runs = |facts: &AlgorithmFacts<'_>| {
        !facts.name.starts_with(KERNEL_PREFIX) || has.iter().any(|name| name == facts.name)
    };
    host_algorithm_facts().into_iter().filter(runs).collect()
}

/// The same of those that Linux hosts run: also Linux's own, and what is loaded on this machine.
fn host_algorithm_facts() -> Vec<AlgorithmFacts<'static>> {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let own = LINUX.iter().map(|name| format!("{KERNEL_PREFIX}{name}"));
        let mut names: Vec<String> = own.chain(kernel::algorithms().unwrap_or_default()).collect();
        names.retain(|name| Algorithm::named(name).is_none());
        names.sort_unstable();
        names.dedup();
        names
    });
    let of = |name: &'static String| {
        let own = name.strip_prefix(KERNEL_PREFIX).unwrap_or_default();
        let same = Algorithm::named(if own == "reno" { "newreno" } else { own });
        let unknown = AlgorithmFacts { name, measures: Measures::default(), needs_ecn: false };
        same.map_or(unknown, |same| AlgorithmFacts { name, ..facts(same) })
    };
    algorithm_facts().into_iter().chain(names.iter().map(of)).collect()
}

/// Reads and checks a scenario file with the algorithms of a backend; a sweep has several runs.
///
/// # Errors
/// The file's mistakes.
pub fn load_scenario(file: &Path, sets: &[String], backend: Backend) -> Result<Vec<Run>, Failure> {
    read_scenario(&file.into(), sets, backend)
}

/// The same, wherever it is written.
///
/// # Errors
/// Its mistakes.
pub fn read_scenario(source: &Source, sets: &[String], backend: Backend) -> Result<Vec<Run>, Failure> {
    let text = source.text("scenario")?;
    if let Some(words) = mistaken::for_scenario(&source.name(), &text) {
        return Err(Failure::Input(words));
    }
    parse_for(backend, &source.name(), &text, sets, &source.disk())
}

/// The overrides and axes that change none of these runs, which [`read_scenario`] gave: a sentence each.
pub(crate) fn unused(source: &Source, sets: &[String], backend: Backend, runs: &[Run]) -> Vec<String> {
    let Ok(text) = source.text("scenario") else { return Vec::new() };
    let (name, files) = (source.name(), source.disk());
    let unused = with_known(backend, |known| {
        Scenario::unused(&Input { name: &name, text: &text, sets, known, files: &files }, runs)
    });
    unused.into_iter().map(|unused| format!("{} changes nothing: {}", unused.what, unused.why)).collect()
}

/// The same of a scenario that is compiled in, with the simulator's algorithms.
pub fn parse_scenario(name: &str, text: &str, sets: &[String], files: &dyn Files) -> Result<Vec<Run>, Failure> {
    parse_for(Backend::Sim, name, text, sets, files)
}

fn parse_for(
    backend: Backend,
    name: &str,
    text: &str,
    sets: &[String],
    files: &dyn Files,
) -> Result<Vec<Run>, Failure> {
    let loaded = with_known(backend, |known| Scenario::parse(&Input { name, text, sets, known, files }));
    loaded.map(|loaded| loaded.runs).map_err(|diagnostic| Failure::located(&diagnostic))
}

/// Passes on the algorithms that a backend has.
fn with_known<T>(backend: Backend, then: impl FnOnce(Known<'_>) -> T) -> T {
    let ours = algorithm_names();
    match backend {
        Backend::Sim => then(Known { algorithms: &ours, policy: policy::Known { algorithms: &algorithm_facts() } }),
        Backend::Emu => {
            let (names, facts) = (emu::algorithm_names(&ours), emulated_algorithm_facts());
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            then(Known { algorithms: &names, policy: policy::Known { algorithms: &facts } })
        }
    }
}

/// Reads and checks a policy file.
///
/// # Errors
/// The file's mistakes.
pub fn load_policy(file: &Path) -> Result<Policy, Failure> {
    read_policy(&file.into())
}

/// The same, wherever it is written.
///
/// # Errors
/// Its mistakes.
pub fn read_policy(source: &Source) -> Result<Policy, Failure> {
    let text = source.text("policy")?;
    if let Some(words) = mistaken::for_policy(&source.name(), &text) {
        return Err(Failure::Input(words));
    }
    parse_policy(&source.name(), &text, &[]).map_err(|diagnostic| Failure::located(&diagnostic))
}

/// A policy in a line: `good: 2 rules, T = 60 s, treats 50 % of the hosts, enforces`.
pub fn policy_words(policy: &Policy) -> String {
    let plural = if policy.rules.len() == 1 { "" } else { "s" };
    let mode = match policy.mode {
        Mode::Observe => "observes",
        Mode::Enforce => "enforces",
    };
    let last = policy.rollout.stages.last().map_or(1.0, |stage| stage.fraction);
    format!(
        "good: {} rule{plural}, T = {}, treats {} % of the hosts, {mode}",
        policy.rules.len(),
        policy.period,
        last * 100.0
    )
}

/// Reads the text of a policy that has the name of the file `name`, unless it names itself, for hosts that have `reported` these
/// algorithms, beside those that this machine knows.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse_policy(name: &str, text: &str, reported: &[String]) -> Result<Policy, Diagnostic> {
    let mut algorithms = host_algorithm_facts();
    let known: BTreeSet<&str> = algorithms.iter().map(|facts| facts.name).collect();
    let new: BTreeSet<&str> = reported.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
    let of = |name| AlgorithmFacts { name, measures: Measures::default(), needs_ecn: false };
    algorithms.extend(new.into_iter().map(of));
    Policy::parse(name, text, policy::Known { algorithms: &algorithms })
}

/// Compiles every algorithm file that the runs name, so that a mistake in one is reported before anything runs.
///
/// # Errors
/// The compiler's message.
pub fn check_algorithm_files(jobs: &[Job], monitor: Monitor<'_>) -> Result<(), Failure> {
    let mut files: BTreeSet<&Path> = BTreeSet::new();
    for scenario in jobs.iter().map(|job| &job.scenario) {
        let overrides = scenario.traffic.iter().filter_map(|entry| entry.cc.as_ref());
        let enforced =
            scenario.enforcer.iter().flat_map(|enforcer| &enforcer.rule).filter_map(|rule| rule.treatment.cc());
        for cc in overrides.chain(enforced).chain([&scenario.tcp.cc]) {
            if let scenario::Algorithm::File(file) = cc {
                files.insert(&file.file.path);
            }
        }
    }
    for file in files {
        let algorithm = Algorithm::load(file).map_err(|error| Failure::Input(error.to_string()))?;
        if !algorithm.warnings().is_empty() {
            monitor.note(algorithm.warnings().trim_end());
        }
    }
    Ok(())
}
