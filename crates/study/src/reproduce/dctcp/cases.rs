//! All runs of the study: scenarios and settings.

use super::theory::Port;
use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::reproduce::Request;
use crate::slower::Slower;
use crate::sweep::Job;
use emu::Slowdown;
use scenario::{Disk, Framing, Limit, Queue, Scenario};
use std::path::PathBuf;
use units::Time;

/// A scenario of the study.
struct File {
    name: &'static str,
    text: &'static str,
}

const QUEUE: File =
    File { name: "scenarios/dctcp-queue.toml", text: include_str!("../../../../../scenarios/dctcp-queue.toml") };
const SAWTOOTH: File =
    File { name: "scenarios/dctcp-sawtooth.toml", text: include_str!("../../../../../scenarios/dctcp-sawtooth.toml") };
const CONVERGENCE: File = File {
    name: "scenarios/dctcp-convergence.toml",
    text: include_str!("../../../../../scenarios/dctcp-convergence.toml"),
};

/// The backend of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The simulator.
    Sim,
    /// Linux hosts in real time.
    Kernel,
}

/// The purpose of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Figure 1: the queue over time and its distribution.
    Queue,
    /// Figure 12: the sawtooth and the equations.
    Sawtooth,
    /// Figure 16: flows that start and stop, one stage apart.
    Convergence { stage: Time },
    /// Figure 16: the variation of each flow's throughput.
    Variation,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: Kind,
    pub backend: Backend,
    /// The links' name in the rows: `100M`.
    pub setting: &'static str,
    /// `dctcp`, `N=2`, `dctcp N=2`.
    pub variant: String,
    pub seed: u64,
    /// More than one seed is run, so names include it.
    pub seeds: bool,
    /// The receiver's port, and its flows.
    pub port: Port,
    /// The queue's limit, packets.
    pub buffer: f64,
    /// Maximum rate of application bytes on the links, bit/s.
    pub ideal_bps: f64,
    pub scenario: Scenario,
}

impl Backend {
    /// The backend's name in the rows.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Sim => "sim",
            Backend::Kernel => "kernel",
        }
    }
}

impl Kind {
    /// The paper's name of the figure.
    pub fn figure(self) -> &'static str {
        match self {
            Kind::Queue => "Figure 1",
            Kind::Sawtooth => "Figure 12",
            Kind::Convergence { .. } | Kind::Variation => "Figure 16",
        }
    }
}

impl Case {
    /// `kernel/100M/dctcp`.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.backend.name(), self.setting, self.variant)
    }

    /// The run, with a unique name.
    pub fn job(&self) -> Job {
        let figure = self.kind.figure().to_lowercase().replace(' ', "");
        let seed = if self.seeds { format!("/{}", self.seed) } else { String::new() };
        let parameters = [
            ("algorithm", self.scenario.tcp.cc.label().to_string()),
            ("figure", self.kind.figure().to_string()),
            ("case", self.name()),
            ("seed", self.seed.to_string()),
        ];
        Job {
            name: format!("{figure}/{}{seed}", self.name()),
            parameters: parameters.map(|(key, value)| (key.to_string(), value)).to_vec(),
            scenario: self.scenario.clone(),
        }
    }
}

/// A scenario's links.
struct Setting {
    /// The rows' name.
    name: &'static str,
    sets: &'static [&'static str],
    /// Kernels are slowed this many times at least: the fastest links whose queues are valid in real time have 1 Gbit/s.
    slowdown_min: u32,
}

const QUEUE_SETTINGS: [Setting; 3] = [
    Setting {
        name: "10G",
        sets: &[
            "network.rate=10 Gbit/s",
            "network.delay=25 us",
            "network.queue.threshold_ecn.mark_packets=65",
            "network.queue.threshold_ecn.packets=477",
            "measure.queue_sample=100 us",
            "measure.warmup=500 ms",
            "duration=2 s",
        ],
        slowdown_min: 10,
    },
    Setting { name: "100M", sets: &[], slowdown_min: 1 },
    Setting {
        name: "1G",
        sets: &["network.rate=1 Gbit/s", "network.queue.threshold_ecn.packets=477"],
        slowdown_min: 1,
    },
];

const SLOW: &[&str] = &[
    "network.rate=100 Mbit/s",
    "network.delay=125 us",
    "network.queue.threshold_ecn.mark_packets=20",
    "network.queue.threshold_ecn.packets=120",
    "measure.queue_sample=200 us",
    "measure.warmup=1 s",
    "duration=5 s",
];

const SAWTOOTH_SETTINGS: [Setting; 3] = [
    Setting { name: "10G", sets: &[], slowdown_min: 10 },
    Setting { name: "100M", sets: SLOW, slowdown_min: 1 },
    Setting {
        name: "1G",
        sets: &[
            "network.rate=1 Gbit/s",
            "network.delay=250 us",
            "measure.queue_sample=100 us",
            "measure.warmup=1 s",
            "duration=5 s",
        ],
        slowdown_min: 1,
    },
];

const CONVERGENCE_SETTINGS: [Setting; 2] = [
    Setting { name: "100M", sets: &[], slowdown_min: 1 },
    Setting {
        name: "1G",
        sets: &["network.rate=1 Gbit/s", "network.queue.threshold_ecn.packets=477"],
        slowdown_min: 1,
    },
];

/// Flow counts of Figure 12.
const SAWTOOTH_FLOWS: [u32; 3] = [2, 10, 40];
/// Flow counts of the variation.
const VARIATION_FLOWS: [u32; 4] = [2, 5, 10, 20];
/// Flows of Figure 16; each starts and stops once.
pub const CONVERGENCE_FLOWS: u64 = 5;
/// Stages of Figure 16.
pub const STAGES: u64 = 2 * CONVERGENCE_FLOWS - 1;
/// Samples per stage.
pub const STAGE_SAMPLES: u64 = 100;
const STAGE: Time = Time::from_secs(10);
const STAGE_FULL: Time = Time::from_secs(30);

/// Keys that the study itself sets: with other values the rows would be mislabelled.
const OWN: [&str; 8] =
    ["name", "network.topology", "network.rate", "network.delay", "network.queue", "network.tier", "traffic", "tcp.cc"];

/// All requested runs, those of the simulator first.
///
/// # Errors
/// `--set` is wrong.
pub fn all(request: &Request) -> Result<Vec<Case>, Failure> {
    check_sets(request)?;
    let maker = Maker { request };
    let mut cases = Vec::new();
    for backend in [Backend::Sim, Backend::Kernel] {
        for seed in 1..=u64::from(request.seeds) {
            if request.dctcp.wants(1) {
                maker.queues(backend, seed, &mut cases)?;
            }
            if request.dctcp.wants(12) {
                maker.sawtooths(backend, seed, &mut cases)?;
            }
            if request.dctcp.wants(16) {
                maker.convergence(backend, seed, &mut cases)?;
                maker.variation(backend, seed, &mut cases)?;
            }
        }
    }
    Ok(cases)
}

fn key(set: &str) -> &str {
    set.split('=').next().unwrap_or_default().trim()
}

fn check_sets(request: &Request) -> Result<(), Failure> {
    for set in &request.sets {
        let key = key(set);
        let within = |own: &str| key == own || key.strip_prefix(own).is_some_and(|rest| rest.starts_with('.'));
        if OWN.iter().any(|own| within(own)) || within("sweep") || ["measure.links", "measure.queues"].contains(&key) {
            return Err(Failure::Input(format!(
                "reproduce dctcp sets `{key}` itself; to change it use `opentcp run {} --set …`",
                QUEUE.name
            )));
        }
        if key == "seed" && request.seeds > 1 {
            let text = "--seeds runs the seeds 1 to N, --set seed=… runs one: keep one of the two";
            return Err(Failure::Input(text.to_string()));
        }
    }
    Ok(())
}

/// A run's parameters beyond its scenario file.
struct Shape<'a> {
    kind: Kind,
    backend: Backend,
    setting: &'static str,
    variant: String,
    flows: u32,
    seed: u64,
    sets: &'a [String],
}

struct Maker<'a> {
    request: &'a Request,
}

impl Maker<'_> {
    fn possible(&self, settings: &'static [Setting], backend: Backend) -> impl Iterator<Item = &'static Setting> {
        let slowdown = match self.request.slower {
            Slower::Auto => Slowdown::MAX,
            Slower::Times(times) => times.times(),
        };
        settings.iter().filter(move |setting| backend == Backend::Sim || slowdown >= setting.slowdown_min)
    }

    fn queues(&self, backend: Backend, seed: u64, cases: &mut Vec<Case>) -> Result<(), Failure> {
        for setting in self.possible(&QUEUE_SETTINGS, backend) {
            for cc in ["dctcp", "newreno", "cubic"] {
                let sets = with(setting.sets, &[format!("tcp.cc={cc}")]);
                let (setting, variant) = (setting.name, cc.to_string());
                let shape = Shape { kind: Kind::Queue, backend, setting, variant, flows: 2, seed, sets: &sets };
                cases.push(self.case(&QUEUE, shape)?);
            }
        }
        Ok(())
    }

    fn sawtooths(&self, backend: Backend, seed: u64, cases: &mut Vec<Case>) -> Result<(), Failure> {
        for setting in self.possible(&SAWTOOTH_SETTINGS, backend) {
            for flows in SAWTOOTH_FLOWS {
                let sets = with(setting.sets, &senders(flows));
                let (setting, variant) = (setting.name, format!("N={flows}"));
                let shape = Shape { kind: Kind::Sawtooth, backend, setting, variant, flows, seed, sets: &sets };
                cases.push(self.case(&SAWTOOTH, shape)?);
            }
        }
        Ok(())
    }

    fn convergence(&self, backend: Backend, seed: u64, cases: &mut Vec<Case>) -> Result<(), Failure> {
        let stage = self.request.dctcp.stage.unwrap_or(if self.request.full { STAGE_FULL } else { STAGE });
        let settings = &CONVERGENCE_SETTINGS[..if self.request.full { 2 } else { 1 }];
        for setting in settings {
            for cc in ["dctcp", "newreno"] {
                let sets = with(setting.sets, &stages(stage, cc));
                let (setting, variant) = (setting.name, cc.to_string());
                let (kind, flows) = (Kind::Convergence { stage }, CONVERGENCE_FLOWS as u32);
                let shape = Shape { kind, backend, setting, variant, flows, seed, sets: &sets };
                cases.push(self.case(&CONVERGENCE, shape)?);
            }
        }
        Ok(())
    }

    fn variation(&self, backend: Backend, seed: u64, cases: &mut Vec<Case>) -> Result<(), Failure> {
        let own = ["measure.warmup=2 s", "measure.links=100 ms", "duration=12 s"];
        let free = |set: &&str| own.iter().all(|other| key(other) != key(set));
        let slow: Vec<&str> = SLOW.iter().copied().filter(free).chain(own).collect();
        for flows in VARIATION_FLOWS {
            for cc in ["dctcp", "newreno"] {
                let sets = with(&slow, &[&senders(flows)[..], &[format!("tcp.cc={cc}")]].concat());
                let (setting, variant) = ("100M", format!("{cc} N={flows}"));
                let shape = Shape { kind: Kind::Variation, backend, setting, variant, flows, seed, sets: &sets };
                cases.push(self.case(&SAWTOOTH, shape)?);
            }
        }
        Ok(())
    }

    /// Parses the scenario with the study's settings, then the user's.
    fn case(&self, file: &File, shape: Shape) -> Result<Case, Failure> {
        let staged = matches!(shape.kind, Kind::Convergence { .. });
        // the stages determine this run's duration and measurements
        let theirs = |set: &&String| !(staged && (key(set) == "duration" || key(set).starts_with("measure.")));
        let theirs: Vec<String> = self.request.sets.iter().filter(theirs).cloned().collect();
        let free = |set: &&String| theirs.iter().all(|other| key(other) != key(set));
        let mut sets: Vec<String> = shape.sets.iter().filter(free).cloned().collect();
        if theirs.iter().all(|set| key(set) != "seed") {
            sets.push(format!("seed={}", shape.seed));
        }
        sets.extend(theirs);
        let runs = parse_scenario(file.name, file.text, &sets, &Disk { base: PathBuf::new() })?;
        let scenario = runs.into_iter().next().expect("a scenario has a run").scenario;
        Ok(self.describe(scenario, shape))
    }

    /// The receiver's port in the scenario.
    fn describe(&self, scenario: Scenario, shape: Shape) -> Case {
        let network = &scenario.network;
        let framing = if network.framing == Framing::Ethernet { 38 } else { 0 };
        let frame_bytes = f64::from(scenario.tcp.mtu() + framing);
        let Queue::ThresholdEcn { mark: Limit::Packets(mark), limit: Limit::Packets(limit) } = network.queue else {
            unreachable!("the study's scenarios mark by packets, and --set cannot change this")
        };
        let bps = network.rate.as_bps() as f64;
        let port = Port {
            packets_per_s: bps / 8.0 / frame_bytes,
            // the round trip has two cables in each direction
            rtt_s: network.delay.as_secs_f64() * 4.0,
            mark: f64::from(mark),
            flows: f64::from(shape.flows),
        };
        let Shape { kind, backend, setting, variant, .. } = shape;
        let (seed, seeds, buffer) = (scenario.seed, self.request.seeds > 1, f64::from(limit));
        let ideal_bps = bps * f64::from(scenario.tcp.mss) / frame_bytes;
        Case { kind, backend, setting, variant, seed, seeds, port, buffer, ideal_bps, scenario }
    }
}

fn with(setting: &[&str], own: &[String]) -> Vec<String> {
    setting.iter().map(ToString::to_string).chain(own.iter().cloned()).collect()
}

/// This many senders, and no idle host.
fn senders(flows: u32) -> Vec<String> {
    let receiver = flows + 1;
    vec![
        format!("network.topology.star.hosts={receiver}"),
        format!("traffic.flows.incast.senders={flows}"),
        format!("traffic.flows.incast.receiver=h{receiver}"),
        format!("measure.queues=[\"s1->h{receiver}\"]"),
    ]
}

/// Five flows that start one stage apart, and stop in reverse order.
fn stages(stage: Time, cc: &str) -> Vec<String> {
    let at = |stages: u64| format!("{} ns", stage.as_ns() * stages);
    let mut sets = vec![
        format!("tcp.cc={cc}"),
        format!("duration={}", at(STAGES)),
        format!("measure.links={} ns", stage.as_ns() / STAGE_SAMPLES),
    ];
    for flow in 1..CONVERGENCE_FLOWS {
        sets.push(format!("traffic.flow{}.start={}", flow + 1, at(flow)));
        sets.push(format!("traffic.flow{}.stop={}", flow + 1, at(STAGES - flow)));
    }
    sets
}
