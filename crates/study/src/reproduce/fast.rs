//! How far scale models are from whole simulations: `run --fast` against `run`, on networks small enough for both.
//!
//! Runs the scenario `scenarios/fleet.toml`, which is compiled in, on smaller networks. `fast.csv` in the results folder is the table by
//! which `run --fast` knows its errors (`crates/study/data/fast.csv`).

use super::{Reproduced, Request, Study};
use crate::failure::Failure;
use crate::fast::{self, Calibration, Figure, SCENARIO, SCENARIO_TEXT};
use crate::known::parse_scenario;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::sweep::Job;
use crate::table::{Table, number};
use results::{Comparison, FlowRow, ModelError, RunResults, Slowdown, SlowdownOf, Story, Summary, SweepWriter};
use scenario::Disk;
use std::path::PathBuf;
use std::time::Instant;

/// The study.
pub const STUDY: Study = Study {
    name: "fast",
    about: "scale models (`run --fast`) against whole simulations of 1,024 hosts; with --full, also of 4,394",
    reproduce,
};

/// Algorithms that are compared.
const ALGORITHMS: [&str; 2] = ["dctcp", "cubic"];

/// A network that is simulated whole.
struct Network {
    shape: &'static str,
    hosts: u64,
    /// Its topology in a scenario.
    topology: &'static str,
    /// Percent of the hosts' links.
    loads: &'static [u32],
    /// Seeds, from the scenario's own up: the tails of one differ by some ten percent from the next one's where a network is small.
    seeds: u64,
}

const NETWORK: Network =
    Network { shape: "fat-tree", hosts: 1024, topology: "{fat_tree={k=16}}", loads: &[30, 50, 70], seeds: 4 };
/// With `--full`.
const LARGE: Network =
    Network { shape: "fat-tree", hosts: 4394, topology: "{fat_tree={k=26}}", loads: &[50], seeds: 1 };

/// A case, simulated whole.
struct Case {
    network: &'static Network,
    load: u32,
    job: Job,
}

impl Case {
    /// The case with each of its seeds.
    fn seeds(&self) -> impl Iterator<Item = Job> {
        let of = |seed| {
            let mut job = self.job.clone();
            job.scenario.seed = seed;
            job.name = format!("{}/seed {seed}", job.name);
            job.parameters.push(("seed".to_string(), seed.to_string()));
            job
        };
        (self.job.scenario.seed..).take(self.network.seeds as usize).map(of)
    }
}

fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let cases = cases(request)?;
    let mut writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let began = Instant::now();
    let jobs: Vec<Job> = cases.iter().map(|case| case.job.clone()).collect();
    let seeds = fast::seeds_of(&jobs)?;
    // of the whole runs only the slowdowns wait for those of the models
    let whole: Vec<Job> = cases.iter().flat_map(Case::seeds).collect();
    let (mut wholes, mut hops, mut order) = (Vec::new(), 0, cases.iter());
    let sizes = cases.iter().map(|case| case.network.seeds as usize);
    fast::run_groups(&whole, sizes, request.workers, monitor, |runs| {
        let case = order.next().expect("each case has its seeds");
        for run in &runs {
            hops += run.summary.packet_hops;
            writer.add(run).map_err(|error| Failure::writing(&error))?;
        }
        let flows: Vec<FlowRow> = runs.into_iter().flat_map(|run| run.flows).collect();
        wholes.extend(Summary::of(plan::identity(&case.job.scenario), &flows, &[]).slowdown);
        Ok(())
    })?;
    let (mut figures, mut next) = (Vec::new(), cases.iter().zip(&wholes));
    fast::model_each(&jobs, &seeds, request.workers, monitor, |run| {
        hops += run.summary.packet_hops;
        if let (Some((case, whole)), Some(model)) = (next.next(), &run.summary.slowdown) {
            figures.extend(compared(case, whole, model));
        }
        let run = RunResults { name: format!("{}/model", run.name), ..run };
        writer.add(&run).map_err(|error| Failure::writing(&error))
    })?;
    let info = speed(began, hops, request.workers);
    let table = Calibration { figures };
    let findings = findings(&table);
    let comparisons: Vec<Comparison> = table.figures.iter().flat_map(comparisons).collect();
    writer.finish(&story(&findings), Some(&info)).map_err(|error| Failure::writing(&error))?;
    let file = request.out.join("fast.csv");
    std::fs::write(&file, table.text()).map_err(|error| Failure::Run(format!("{}: {error}", file.display())))?;
    monitor.note(&info.words());
    let tables = format!("{}\n{}\n", rendered(&table), findings.join("\n"));
    Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
}

fn cases(request: &Request) -> Result<Vec<Case>, Failure> {
    if request.seeds > 1 {
        return Err(Failure::Input(
            "the study fast simulates seeds of its own: leave out --seeds, and choose the first by --set seed=N"
                .to_string(),
        ));
    }
    let networks = [&NETWORK].into_iter().chain(request.full.then_some(&LARGE));
    let mut cases = Vec::new();
    for network in networks {
        let Network { shape, hosts, topology, loads, .. } = network;
        for load in *loads {
            let mut sets = vec![format!("network.topology={topology}"), format!("traffic.0.poisson.load={load} %")];
            sets.extend_from_slice(&request.sets);
            for algorithm in ALGORITHMS {
                let mut sets = sets.clone();
                sets.push(format!("tcp.cc={algorithm}"));
                let runs = parse_scenario(SCENARIO, SCENARIO_TEXT, &sets, &Disk { base: PathBuf::new() })?;
                for run in runs {
                    let name = format!("{shape} {hosts}/{algorithm}/{load} %");
                    let parameters = vec![
                        ("network".to_string(), format!("{shape} {hosts}")),
                        ("algorithm".to_string(), algorithm.to_string()),
                        ("load".to_string(), format!("{load} %")),
                    ];
                    cases.push(Case { network, load: *load, job: Job { name, parameters, scenario: run.scenario } });
                }
            }
        }
    }
    Ok(cases)
}

/// A case's classes in both runs.
fn compared<'a>(case: &'a Case, whole: &'a Slowdown, model: &'a Slowdown) -> impl Iterator<Item = Figure> {
    let all = |slowdown: &'a Slowdown| slowdown.classes.iter().chain([&slowdown.all]);
    all(model).filter_map(move |of| {
        let same = all(whole).find(|same| same.class == of.class)?;
        let figure = |value: fn(&SlowdownOf) -> f64| (value(same), value(of));
        Some(Figure {
            shape: case.network.shape.to_string(),
            hosts: case.network.hosts,
            algorithm: case.job.scenario.tcp.cc.label().to_string(),
            load: f64::from(case.load),
            class: if of.class.is_empty() { "all".to_string() } else { of.class.clone() },
            p50: figure(|of| of.p50),
            p99: figure(|of| of.p99),
        })
    })
}

fn comparisons(figure: &Figure) -> [Comparison; 2] {
    let case = format!("{} {}/{}/{} %/{}", figure.shape, figure.hosts, figure.algorithm, figure.load, figure.class);
    let row = |quantity: &str, (whole, model): (f64, f64)| Comparison {
        figure: "whole simulation".to_string(),
        case: case.clone(),
        quantity: format!("{quantity} slowdown"),
        unit: "×".to_string(),
        paper: Some(whole),
        ours: model,
        note: String::new(),
    };
    [row("p50", figure.p50), row("p99", figure.p99)]
}

fn error((whole, model): (f64, f64)) -> f64 {
    model / whole - 1.0
}

fn rendered(table: &Calibration) -> String {
    let mut text = Table::new([
        "network",
        "algorithm",
        "load %",
        "size",
        "whole p50",
        "model",
        "error %",
        "whole p99",
        "model",
        "error %",
    ]);
    for figure in &table.figures {
        let percent = |pair| format!("{:.1}", error(pair) * 100.0);
        text.row(vec![
            format!("{} {}", figure.shape, figure.hosts),
            figure.algorithm.clone(),
            number(figure.load),
            figure.class.clone(),
            number(figure.p50.0),
            number(figure.p50.1),
            percent(figure.p50),
            number(figure.p99.0),
            number(figure.p99.1),
            percent(figure.p99),
        ]);
    }
    text.render()
}

/// Sentences from the numbers, a network each.
fn findings(table: &Calibration) -> Vec<String> {
    let mut networks: Vec<(&str, u64)> = Vec::new();
    for figure in &table.figures {
        if !networks.contains(&(&figure.shape, figure.hosts)) {
            networks.push((&figure.shape, figure.hosts));
        }
    }
    let sentence = |(shape, hosts): (&str, u64)| {
        let of = table.figures.iter().filter(|figure| (figure.shape.as_str(), figure.hosts) == (shape, hosts));
        let of: Vec<&Figure> = of.filter(|figure| figure.class != "all").collect();
        let within = of.iter().filter(|figure| error(figure.p99).abs() <= ModelError::MOST).count();
        let worst = of.iter().map(|figure| error(figure.p99).abs()).fold(0.0, f64::max);
        format!(
            "{shape} of {hosts} hosts: {within} of {} 99th percentiles within 10 % of the whole simulation; the worst is {:.1} % off.",
            of.len(),
            worst * 100.0
        )
    };
    networks.into_iter().map(sentence).collect()
}

fn story(findings: &[String]) -> Story {
    Story {
        title: "Scale models against whole simulations".to_string(),
        lead: "FCT slowdown of web-search flows by size, as `run --fast` has it from a scale model, and as a simulation of the whole \
               network has it."
            .to_string(),
        paragraphs: findings.to_vec(),
        ..Story::default()
    }
}
