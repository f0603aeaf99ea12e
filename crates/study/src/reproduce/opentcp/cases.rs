//! The runs: the paper's own setting, and experiments that leave parts of it out.

use super::measured::Run;
use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::reproduce::Request;
use crate::statistics::median;
use crate::sweep::Job;
use scenario::{Disk, FileRef, Files};
use std::io;
use std::path::{Path, PathBuf};

/// A file of the repository that is compiled in.
type Part = (&'static str, &'static str);

pub const SCINET: Part =
    ("scenarios/opentcp-scinet.toml", include_str!("../../../../../scenarios/opentcp-scinet.toml"));
const DAY: Part = ("scenarios/opentcp-day.toml", include_str!("../../../../../scenarios/opentcp-day.toml"));
const SIZES: Part = ("scinet-files.csv", include_str!("../../../../../scenarios/scinet-files.csv"));
const DIURNAL: Part = ("../policies/diurnal.toml", include_str!("../../../../../policies/diurnal.toml"));
const OPENTCP1: &str = include_str!("../../../../../policies/opentcp1.toml");
const OPENTCP2: &str = include_str!("../../../../../policies/opentcp2.toml");
/// The paper's T is a minute; its days are compressed thirty times.
const PERIOD: &str = "policy.period=2 s";
/// The policies' settings, of which experiments keep a part.
const SET: &str = "initial_cwnd = 20, rto_min = \"2 ms\"";
/// The hold time of opentcp2's guard, and one longer than any run.
const HOLD: [&str; 2] = ["hold = \"60 s\"", "hold = \"36000 s\""];

/// The policy of a run's treated hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Default,
    OpenTcp1,
    OpenTcp2,
    /// opentcp1 without the RTO.
    WindowOnly,
    /// opentcp1 without the window.
    TimeoutOnly,
    /// opentcp2 whose hosts never release a guard.
    GuardKept,
}

impl Variant {
    pub fn name(self) -> &'static str {
        match self {
            Variant::Default => "default",
            Variant::OpenTcp1 => "opentcp1",
            Variant::OpenTcp2 => "opentcp2",
            Variant::WindowOnly => "window only",
            Variant::TimeoutOnly => "RTO only",
            Variant::GuardKept => "guard kept",
        }
    }

    fn policy(self) -> Option<String> {
        match self {
            Variant::Default => None,
            Variant::OpenTcp1 => Some(OPENTCP1.to_string()),
            Variant::OpenTcp2 => Some(OPENTCP2.to_string()),
            Variant::WindowOnly => Some(OPENTCP1.replace(SET, "initial_cwnd = 20")),
            Variant::TimeoutOnly => Some(OPENTCP1.replace(SET, "rto_min = \"2 ms\"")),
            Variant::GuardKept => Some(OPENTCP2.replace(HOLD[0], HOLD[1])),
        }
    }
}

/// Overrides of the scenario, for several variants.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its unique prefix of the variants' names; empty for the paper's own.
    pub name: &'static str,
    pub sets: &'static [&'static str],
    pub variants: &'static [Variant],
}

const THREE: &[Variant] = &[Variant::Default, Variant::OpenTcp1, Variant::OpenTcp2];

/// The paper's setting.
pub const PAPER: &Setting = &Setting { name: "", sets: &[], variants: THREE };

/// The whole of SciNet.
pub const WHOLE: &Setting = &Setting {
    name: "92 racks",
    sets: &[
        "network.topology={ leaf_spine = { leaves = 92, spines = 1, hosts_per_leaf = 42 } }",
        "traffic.0.all_to_all.jobs=241",
        "traffic.3.exchange.jobs=241",
    ],
    variants: THREE,
};

/// A network that one machine can emulate: a tenth of the rates, and today's Linux with the paper's algorithm, initial window and minimum
/// RTO. The episode's load fills uplinks of 4 : 1 to (3 + 25) % · 400 Mbit/s · 3/4 = 84 %.
const SMALL_SETS: &[&str] = &[
    "network.topology={ leaf_spine = { leaves = 4, spines = 1, hosts_per_leaf = 4 } }",
    "network.rate=100 Mbit/s",
    "network.tier.spine.rate=100 Mbit/s",
    "network.delay=50 us",
    "network.queue={ drop_tail = { packets = 25 } }",
    "tcp.preset=linux",
    "tcp.initial_cwnd=3",
    "traffic.0.all_to_all.jobs=2",
    "traffic.2.poisson.load=25 %",
    "traffic.3.exchange.jobs=2",
];

/// At emulator size, simulated.
pub const SMALL: &Setting = &Setting { name: "small", sets: SMALL_SETS, variants: THREE };

/// The same on real kernels.
pub const KERNEL: &Setting = &Setting { name: "kernel", sets: SMALL_SETS, variants: THREE };

const HALF: [&str; 3] = [
    "network.topology={ leaf_spine = { leaves = 4, spines = 1, hosts_per_leaf = 42 } }",
    "traffic.0.all_to_all.jobs=10",
    "traffic.3.exchange.jobs=10",
];

/// Half of the network, and each of opentcp1's settings alone.
pub const PARTS: &Setting = &Setting {
    name: "4 racks",
    sets: &HALF,
    variants: &[
        Variant::Default,
        Variant::OpenTcp1,
        Variant::OpenTcp2,
        Variant::WindowOnly,
        Variant::TimeoutOnly,
        Variant::GuardKept,
    ],
};

/// The runs of a variant, by seed.
pub struct Case {
    pub setting: &'static Setting,
    pub variant: Variant,
    pub runs: Vec<Run>,
}

impl Case {
    /// `opentcp1`, `4 racks/opentcp1`.
    pub fn name(&self) -> String {
        name(self.setting, self.variant)
    }

    /// The median over seeds.
    pub fn median(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(&self.runs.iter().filter_map(of).collect::<Vec<f64>>())
    }
}

/// The cases in order.
pub struct Cases(pub Vec<Case>);

impl Cases {
    pub fn of(&self, setting: &Setting, variant: Variant) -> Option<&Case> {
        self.0.iter().find(|case| *case.setting == *setting && case.variant == variant)
    }

    /// The case to compare with: the same network without a policy.
    pub fn default_of(&self, case: &Case) -> Option<&Case> {
        self.of(case.setting, Variant::Default)
    }
}

fn name(setting: &Setting, variant: Variant) -> String {
    match setting.name {
        "" => variant.name().to_string(),
        setting => format!("{setting}/{}", variant.name()),
    }
}

/// The runs of a setting, seed by seed within each variant.
///
/// # Errors
/// An override of the user's is wrong.
pub fn jobs(request: &Request, setting: &Setting) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    for variant in setting.variants {
        for seed in 1..=request.seeds {
            let mut sets: Vec<String> = setting.sets.iter().map(ToString::to_string).collect();
            let policy = variant.policy();
            if policy.is_some() {
                sets.extend([format!("policy.file={POLICY}"), PERIOD.to_string()]);
            }
            if request.seeds > 1 {
                sets.push(format!("seed={seed}"));
            }
            // without a policy, overrides of it do not apply
            let fits = |set: &&String| policy.is_some() || !set.starts_with("policy.");
            sets.extend(request.sets.iter().filter(fits).cloned());
            let mut name = name(setting, *variant);
            if request.seeds > 1 {
                name = format!("{name}/{seed}");
            }
            let files = Embedded { policy: policy.unwrap_or_default(), disk: Disk { base: PathBuf::new() } };
            jobs.push(job(name, (SCINET, &sets), &files, variant.name())?);
        }
    }
    Ok(jobs)
}

/// The day of a core link.
///
/// # Errors
/// None can occur, since its files are compiled in.
pub fn day() -> Result<Job, Failure> {
    let files = Embedded { policy: String::new(), disk: Disk { base: PathBuf::new() } };
    job("day".to_string(), (DAY, &[]), &files, "diurnal")
}

fn job(name: String, ((file, text), sets): (Part, &[String]), files: &Embedded, variant: &str) -> Result<Job, Failure> {
    let runs = parse_scenario(file, text, sets, files)?;
    let [run] = &runs[..] else {
        return Err(Failure::Input(format!(
            "reproduce compares policies and seeds; to sweep, use `opentcp run {file}`"
        )));
    };
    let scenario = run.scenario.clone();
    let parameters =
        vec![("variant".to_string(), variant.to_string()), ("seed".to_string(), scenario.seed.to_string())];
    Ok(Job { name, parameters, scenario })
}

/// The files that the scenarios name are compiled in, too.
struct Embedded {
    policy: String,
    disk: Disk,
}

const POLICY: &str = "policy.toml";

impl Files for Embedded {
    fn resolve(&self, written: &str) -> FileRef {
        self.disk.resolve(written)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let part = |(name, text): Part| (path.to_str() == Some(name)).then(|| text.to_string());
        match path.to_str() {
            Some(POLICY) => Ok(self.policy.clone()),
            _ => [SIZES, DIURNAL].into_iter().find_map(part).map_or_else(|| self.disk.read(path), Ok),
        }
    }
}
