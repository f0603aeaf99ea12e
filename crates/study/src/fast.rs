//! What-if for a network that is too large to simulate: a scale model of it is simulated whole, with several seeds.
//!
//! The model is the same network with fewer hosts: the same shape and depth, the same links, queues and TCP, the same traffic a host. It
//! fits where hosts are alike and any sends to any: then a flow meets as many others on its links, at the same rates, however many hosts
//! there are beyond. In a fat tree's model as many links lead to each as in the large tree ([`model`]): in a small tree fewer do, and of its flows
//! more meet no queue. What remains is the model's error. It is measured against whole simulations and shown ([`calibration`]), not assumed.
//!
//! What depends on the number of hosts or links is refused ([`check`]) or left out: sums, and the extremes of all links.

mod calibration;
mod check;
mod model;
mod tell;

pub(crate) use calibration::{Figure, SCENARIO, SCENARIO_TEXT, Table as Calibration};
pub(crate) use model::model_of;
pub use tell::tables as model_tables;

use crate::done::{Done, Kept};
use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::place::place_of;
use crate::request::Backend;
use crate::request::RunRequest;
use crate::run::{prepare, speed, title};
use crate::sweep::{Job, run_all};
use results::{FlowRow, Maker, OfModel, RunResults, Slowdown, SlowdownOf, Story, Summary, SweepWriter, write_run};
use scenario::Scenario;
use std::time::Instant;

/// Seeds of a model, from the scenario's own up.
const SEEDS: u64 = 8;
/// The 97.5th percentile of Student's distribution with one degree of freedom less than there are seeds.
const STUDENT: f64 = 2.365;

/// Simulates scale models of the scenario's runs, and writes a folder of results as [`run`](crate::run()) does.
///
/// # Errors
/// The input is wrong or asks for what a model cannot say, a run failed, or the user stopped it.
pub fn run_fast(request: &RunRequest, monitor: Monitor<'_>) -> Result<Done, Failure> {
    if request.backend != Backend::Sim {
        return Err(Failure::Input("--fast simulates; leave out --backend emu".to_string()));
    }
    let jobs = prepare(request, monitor)?;
    let seeds = seeds_of(&jobs)?;
    let scenario = &jobs[0].scenario;
    let out = place_of(request, &jobs, Maker::ScaleModel, monitor)?;
    // created before the first run, so that a bad --out is reported at once; dropped unfinished, it leaves nothing
    let mut sweep = SweepWriter::create(&out).map_err(|error| Failure::bad_out(&error))?;
    let (began, mut hops) = (Instant::now(), 0);
    let (mut runs, mut single) = (Vec::new(), None);
    model_each(&jobs, &seeds, request.workers, monitor, |run| {
        hops += run.summary.packet_hops;
        runs.push(Kept::of(&run));
        if jobs.len() == 1 {
            single = Some(run);
            return Ok(());
        }
        sweep.add(&run).map_err(|error| Failure::writing(&error))
    })?;
    let info = speed(began, hops, request.workers.min(seeds.len()));
    let written = if let Some(run) = &single {
        drop(sweep);
        write_run(&out, run, Some(&info))
    } else {
        sweep.finish(&Story::new(&title_of(title(scenario))), Some(&info))
    };
    written.map_err(|error| Failure::writing(&error))?;
    Ok(Done { scenario: scenario.name.clone(), out, runs, info })
}

/// The heading of a model's report.
fn title_of(title: &str) -> String {
    format!("SCALE MODEL: {title}")
}

/// The models of all runs, each with [`SEEDS`] seeds, in order.
///
/// # Errors
/// What a model cannot say.
pub(crate) fn seeds_of(jobs: &[Job]) -> Result<Vec<Job>, Failure> {
    let mut seeds = Vec::new();
    for job in jobs {
        let model = model_of(&job.scenario)?;
        for seed in (job.scenario.seed..).take(SEEDS as usize) {
            let name = format!("{}, model seed {seed}", job.name);
            seeds.push(Job { name, scenario: Scenario { seed, ..model.clone() }, parameters: Vec::new() });
        }
    }
    Ok(seeds)
}

/// Simulates `seeds`, and hands on what those of each job make together.
pub(crate) fn model_each(
    jobs: &[Job],
    seeds: &[Job],
    workers: usize,
    monitor: Monitor<'_>,
    mut take: impl FnMut(RunResults) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (sizes, mut order) = (jobs.iter().map(|_| SEEDS as usize), jobs.iter());
    run_groups(seeds, sizes, workers, monitor, |runs| {
        let job = order.next().expect("each job has its seeds");
        take(together(job, runs))
    })
}

/// Simulates `jobs`, which are groups of these sizes one after the other, and hands on the runs of each group.
pub(crate) fn run_groups(
    jobs: &[Job],
    mut sizes: impl Iterator<Item = usize>,
    workers: usize,
    monitor: Monitor<'_>,
    mut take: impl FnMut(Vec<RunResults>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut waiting, mut size) = (Vec::new(), sizes.next());
    run_all(jobs, workers, monitor, |run| {
        waiting.push(run);
        if Some(waiting.len()) < size {
            return Ok(());
        }
        size = sizes.next();
        take(std::mem::take(&mut waiting))
    })
}

/// The seeds' flows as those of one run, and what their differences say of it.
fn together(job: &Job, seeds: Vec<RunResults>) -> RunResults {
    let each: Vec<Slowdown> = seeds.iter().filter_map(|run| run.summary.slowdown.clone()).collect();
    let packet_hops = seeds.iter().map(|run| run.summary.packet_hops).sum();
    let flows = seeds.into_iter().flat_map(|run| run.flows).enumerate();
    let flows: Vec<FlowRow> = flows.map(|(number, flow)| FlowRow { flow: number as u64, ..flow }).collect();
    // sums over links and hosts are the model's own
    let mut summary =
        Summary { packet_hops, goodput_bps: None, ..Summary::of(plan::identity(&job.scenario), &flows, &[]) };
    if let Some(slowdown) = &mut summary.slowdown {
        slowdown.all.model = Some(interval(&each.iter().map(|seed| &seed.all)));
        for class in &mut slowdown.classes {
            let alike = each.iter().filter_map(|seed| seed.classes.iter().find(|of| of.class == class.class));
            class.model = Some(interval(&alike));
        }
    }
    Calibration::shipped().judge(&job.scenario, &mut summary);
    let run = RunResults { flows, summary, ..RunResults::default() };
    let run = plan::titled(run, &job.name, &job.parameters, &job.scenario);
    let title = title_of(if run.title.is_empty() { &run.name } else { &run.title });
    RunResults { title, ..run }
}

/// 95 % intervals of the percentiles, whose logarithms are taken to be normal over the seeds.
fn interval<'a>(seeds: &(impl Iterator<Item = &'a SlowdownOf> + Clone)) -> OfModel {
    let of = |value: fn(&SlowdownOf) -> f64| {
        let logs: Vec<f64> = seeds.clone().map(|of| libm::log(value(of))).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        let half = STUDENT * libm::sqrt(squares / (n - 1.0).max(1.0) / n);
        (libm::exp(mean - half), libm::exp(mean + half))
    };
    OfModel { p50: of(|of| of.p50), p99: of(|of| of.p99), error: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students_on_logarithms() {
        // logarithms -1 and 1, four of each: mean 0, variance 8/7, so 2.365 · √(8/7 / 8) = 0.894
        let of = |value: f64| SlowdownOf { p50: value, p99: value, ..SlowdownOf::default() };
        let e = std::f64::consts::E;
        let seeds: Vec<SlowdownOf> = [1.0 / e, e].into_iter().cycle().take(8).map(of).collect();
        let (low, high) = interval(&seeds.iter()).p50;
        assert!((libm::log(low) + 0.894).abs() < 0.001 && (libm::log(high) - 0.894).abs() < 0.001, "{low} {high}");
    }
}
