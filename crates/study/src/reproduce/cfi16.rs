//! Eight TCP variants on a 6-ary fat tree (CFI 2016).
//!
//! Runs the scenario `scenarios/cfi16-fat-tree.toml`, which is compiled in, once for each routing, variant and seed. Measures the
//! quantities of the paper's Figures 2 and 3 and Table 4. Computes from the numbers which of the paper's statements hold.

mod experiments;
mod findings;
mod measured;
mod paper;
mod rows;
mod tables;

use super::simulated::{Simulated, Texts};
use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::monitor::Monitor;
use crate::sweep::Job;
use experiments::Experiment;
use measured::{Cases, Measured};
use results::Story;
use scenario::{Disk, Routing, Run, Scenario};
use std::path::PathBuf;

const NAME: &str = "scenarios/cfi16-fat-tree.toml";
const TEXT: &str = include_str!("../../../../scenarios/cfi16-fat-tree.toml");

/// The study.
pub const STUDY: Study = Study {
    name: "cfi16",
    about: "eight TCP variants on a 6-ary fat tree (CFI 2016): Figures 2 and 3, Table 4",
    reproduce,
};

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let mut jobs = jobs(request, None)?;
    let experiments: &[Experiment] = if request.full { &experiments::ALL } else { &[] };
    for experiment in experiments {
        jobs.extend(self::jobs(request, Some(experiment))?);
    }
    let mut cases = Cases::default();
    let simulated = Simulated::run(request, &jobs, monitor, |number, run| {
        let job = &jobs[number];
        cases.add(environment(job), variant(job), Measured::of(run, &job.scenario));
    })?;
    let comparisons = rows::comparisons(&cases);
    let findings = findings::findings(&cases);
    let tables = tables::render(&cases, &findings);
    simulated.write(Texts { story: story(), tables, findings, comparisons })
}

/// The runs of the study, or of one further experiment.
fn jobs(request: &Request, experiment: Option<&Experiment>) -> Result<Vec<Job>, Failure> {
    let mut sets = request.sets.clone();
    if request.seeds > 1 {
        if sets.iter().any(|set| set.split('=').next().is_some_and(|key| key.trim() == "seed")) {
            let text = "--seeds runs the seeds 1 to N, --set seed=… runs one: keep one of the two";
            return Err(Failure::Input(text.to_string()));
        }
        let seeds: Vec<String> = (1..=request.seeds).map(|seed| seed.to_string()).collect();
        sets.push(format!("sweep.seed=[{}]", seeds.join(", ")));
    }
    sets.extend(experiment.iter().flat_map(|experiment| experiment.sets).map(ToString::to_string));
    // paths in --set are relative to the working directory
    let runs = parse_scenario(NAME, TEXT, &sets, &Disk { base: PathBuf::new() })?;
    let extra = |run: &Run| {
        let known = ["network.routing", "tcp.cc", "seed"];
        run.parameters.iter().find(|(key, _)| !known.contains(&key.as_str())).map(|(key, _)| key.clone())
    };
    if let Some(key) = runs.iter().find_map(extra) {
        return Err(Failure::Input(format!(
            "reproduce compares routings, variants and seeds; to sweep `{key}` use `opentcp run {NAME}`"
        )));
    }
    let seeds = runs.iter().any(|run| run.scenario.seed != runs[0].scenario.seed);
    Ok(runs.into_iter().map(|run| job(run.scenario, experiment, seeds, request.full)).collect())
}

/// A run's name: `single-path/vegas`, or `queue 25/vegas/3` with an experiment and several seeds.
fn job(scenario: Scenario, experiment: Option<&Experiment>, seeds: bool, full: bool) -> Job {
    let variant = scenario.tcp.cc.label().to_string();
    let routing = match scenario.network.routing {
        Routing::SinglePath => "single-path",
        Routing::Ecmp => "ecmp",
        Routing::WeightedEcmp => "weighted-ecmp",
        Routing::Valiant => "valiant",
        Routing::ScaledFatTree { .. } => unreachable!("no file asks for it"),
    };
    let environment = experiment.map_or(routing, |experiment| experiment.name);
    let mut name = format!("{environment}/{variant}");
    if seeds {
        name = format!("{name}/{}", scenario.seed);
    }
    let mut parameters = vec![("routing".to_string(), routing.to_string()), ("algorithm".to_string(), variant)];
    if full {
        let experiment = experiment.map_or("none", |experiment| experiment.name);
        parameters.push(("experiment".to_string(), experiment.to_string()));
    }
    parameters.push(("seed".to_string(), scenario.seed.to_string()));
    Job { name, parameters, scenario }
}

fn environment(job: &Job) -> &str {
    job.name.split('/').next().expect("a split has a first part")
}

fn variant(job: &Job) -> &str {
    job.scenario.tcp.cc.label()
}

/// The report's beginning.
fn story() -> Story {
    Story {
        title: "Eight TCP variants on a 6-ary fat tree".to_string(),
        lead: "54 on–off flows between random pairs of 54 hosts, 100 Mbit/s links, 60 s; after “Comparative Performance of \
               TCP Variants on Fat-Tree Networks” (CFI 2016): drops at the 45 switches (Figure 2), the queue of a core \
               switch (Figure 3), throughput and delay (Table 4), for a single path, as with the paper’s routing, and \
               for ECMP. Figure 2 has bars without numbers, so there is nothing to compare drops with."
            .to_string(),
        ..Story::default()
    }
}
