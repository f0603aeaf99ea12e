//! TCon, congestion control enforced in the network (NPC 2017): completion times of files.
//!
//! Runs the scenario `scenarios/tcon.toml`, which is compiled in, on three paths and with files of several sizes: from a CUBIC server, from a
//! BBR server, and with BBR enforced on the CUBIC server. A run is many downloads in sequence that do not overlap. The same paths, files
//! and servers follow on real kernels with nginx and curl ([`kernel`]). Beyond the paper, every other algorithm takes BBR's place, and
//! servers have other stacks ([`stack`]).

mod findings;
mod kernel;
mod load;
mod measured;
mod nginx;
mod paper;
mod rows;
mod stack;
mod tables;

use super::{Reproduced, Request, Study, Wanted};
use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::monitor::Monitor;
use crate::run::{Words as _, speed};
use crate::sweep::{Job, run_all};
use congestion::Algorithm;
use load::Load;
use measured::{Measured, Run};
use results::{Comparison, Curve, Figure, Panel, Story, SweepWriter};
use scenario::{Disk, FileRef, Files};
use stack::Stack;
use std::fmt::Write as _;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::time::Instant;
use units::{Rate, Time};

const NAME: &str = "scenarios/tcon.toml";
const TEXT: &str = include_str!("../../../../scenarios/tcon.toml");
/// The part of the scenario that a run without an enforcer lacks.
const ENFORCER: &str = "[enforcer]\nat = \"s1\"\n\n[[enforcer.rule]]\ncc = \"bbr\"\n";
/// The part that a path without losses lacks.
const LOSS: &str = "[[network.loss]]\nlink = \"s1->s2\"\nprobability = \"0.3 %\"\n";
/// The scenario's one download, which is replaced by many.
const DOWNLOAD: &str = "bulk = { from = \"left1\", to = \"right1\", bytes = \"10 MB\" }";
const DOWNLOADS: &str = "trace = { file = \"downloads.csv\" }";
const TRACE: &str = "downloads.csv";
/// RTT beyond the bottleneck's: four host links, in both directions.
const NEAR: Time = Time::from_us(200);

/// The study.
pub const STUDY: Study = Study {
    name: "tcon",
    about: "TCon (NPC 2017): BBR enforced on CUBIC servers, completion times of files; as root also with nginx and curl",
    reproduce,
};

/// Options of this study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// At most this many downloads of a file. By default 10,000 of 10 MB on paths with losses, fewer of others, at other losses and on
    /// kernels.
    pub downloads: Option<u32>,
}

/// A path of the study. Rate and RTT are ours: the paper's stated rates contradict its own times, and it states nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Lan,
    Shanghai,
    Oregon,
}

impl Path {
    const ALL: [Path; 3] = [Path::Lan, Path::Shanghai, Path::Oregon];
    /// The paths with losses.
    const WAN: [Path; 2] = [Path::Shanghai, Path::Oregon];

    /// The paper's name of it.
    fn name(self) -> &'static str {
        match self {
            Path::Lan => "lan",
            Path::Shanghai => "wan-shanghai",
            Path::Oregon => "wan-oregon",
        }
    }

    fn rate(self) -> Rate {
        match self {
            Path::Lan => Rate::from_mbps(100),
            Path::Shanghai => Rate::from_mbps(10),
            Path::Oregon => Rate::from_bps(2_500_000),
        }
    }

    fn rtt(self) -> Time {
        match self {
            Path::Lan => Time::from_us(500),
            Path::Shanghai => Time::from_ms(30),
            Path::Oregon => Time::from_ms(180),
        }
    }

    /// Random loss of the path's packets, per mille.
    fn loss(self) -> u32 {
        if self == Path::Lan { 0 } else { 3 }
    }
}

/// The algorithm that the paper enforces.
const BBR: &str = "bbr";

/// The server and the algorithm that determines its sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Cubic,
    /// A server that runs the algorithm itself.
    Native,
    /// The algorithm enforced on a CUBIC server.
    Tcon,
}

impl Variant {
    const ALL: [Variant; 3] = [Variant::Cubic, Variant::Native, Variant::Tcon];

    /// The next one after `n` steps, cyclically.
    fn after(self, n: u32) -> Variant {
        Variant::ALL[(self as usize + n as usize) % Variant::ALL.len()]
    }
}

/// The backend of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    Simulator,
    Kernel,
}

/// A file, and the number of its downloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    kilobytes: u64,
    downloads: u32,
}

impl File {
    /// The file whose times and tails the paper prints; used for the sweep of losses.
    const MAIN: File = File { kilobytes: 10_000, downloads: 10_000 };
    const ALL: [File; 3] =
        [File { kilobytes: 1_700, downloads: 1_000 }, File::MAIN, File { kilobytes: 101_000, downloads: 100 }];
    const FULL: [File; 2] = [File { kilobytes: 562_000, downloads: 20 }, File { kilobytes: 630_000, downloads: 20 }];
    /// Downloads at each loss rate, and with other algorithms and servers.
    const SWEPT: File = File { downloads: 200, ..File::MAIN };

    /// Its size as the paper writes it.
    fn name(self) -> String {
        format!("{}MB", self.kilobytes as f64 / 1000.0)
    }

    /// The files that the paper calls large.
    fn is_large(self) -> bool {
        self.kilobytes >= 100_000
    }
}

/// Swept loss rates, per mille.
const LOSSES: [u32; 5] = [0, 1, 10, 20, 30];

/// Downloads of one file on one path by one variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    host: Host,
    path: Path,
    /// Loss, per mille.
    loss: u32,
    /// The server's TCP.
    stack: Stack,
    /// The algorithm that the server runs or that is enforced on it.
    algorithm: &'static str,
    file: File,
    variant: Variant,
}

impl Case {
    /// The paper's server and algorithm, simulated.
    fn of(path: Path, loss: u32, file: File) -> Case {
        let variant = Variant::Cubic;
        Case { host: Host::Simulator, path, loss, stack: Stack::Linux, algorithm: BBR, file, variant }
    }

    /// All cases, setting by setting, with at most this many downloads of a file.
    fn all(full: bool, most: u32) -> Vec<Case> {
        let mut settings = Vec::new();
        for path in Path::ALL {
            let more = if full { &File::FULL[..] } else { &[] };
            settings.extend(File::ALL.iter().chain(more).map(|file| Case::of(path, path.loss(), *file)));
        }
        settings.extend(Path::WAN.iter().flat_map(|path| LOSSES.map(|loss| Case::of(*path, loss, File::SWEPT))));
        settings.extend(Case::beyond());
        let of = |case: Case| {
            // without random losses, downloads do not differ
            let enough = if case.loss == 0 { File::ALL[0].downloads } else { case.file.downloads };
            let file = File { downloads: case.file.downloads.min(enough).min(most), ..case.file };
            Variant::ALL.map(|variant| Case { file, variant, ..case })
        };
        settings.into_iter().flat_map(of).collect()
    }

    /// Cases beyond the paper: other algorithms, and servers with other stacks.
    fn beyond() -> impl Iterator<Item = Case> {
        let case = Case::of(Path::Shanghai, Path::Shanghai.loss(), File::SWEPT);
        let algorithms = Algorithm::builtins().iter().map(Algorithm::name).filter(|name| *name != BBR);
        let algorithms = algorithms.map(move |algorithm| Case { algorithm, ..case });
        algorithms.chain(Stack::OTHERS.map(|stack| Case { stack, ..case }))
    }

    /// Whether it has the paper's server and algorithm.
    fn is_papers(&self) -> bool {
        self.stack == Stack::Linux && self.algorithm == BBR
    }

    /// Whether it has the file with most of the paper's numbers, and the path's own losses.
    fn is_main(&self) -> bool {
        self.is_papers() && self.file.kilobytes == File::MAIN.kilobytes && self.loss == self.path.loss()
    }

    /// Whether the paper may have numbers of it: it has no other losses, algorithms or stacks.
    fn is_printed(&self) -> bool {
        self.is_papers() && self.loss == self.path.loss()
    }

    /// `wan-oregon/10MB`; with other losses than the path's, `wan-oregon/10MB/2%`; with another algorithm or server
    /// `wan-oregon/10MB/vegas`, `wan-oregon/10MB/IW 3`; on kernels `kernel/wan-oregon/10MB`.
    fn setting(&self) -> String {
        let of = if self.host == Host::Kernel { "kernel/" } else { "" };
        let mut name = format!("{of}{}/{}", self.path.name(), self.file.name());
        if self.loss != self.path.loss() {
            let _ = write!(name, "/{}%", f64::from(self.loss) / 10.0);
        }
        if self.algorithm != BBR {
            let _ = write!(name, "/{}", self.algorithm);
        }
        if self.stack != Stack::Linux {
            let _ = write!(name, "/{}", self.stack.name());
        }
        name
    }

    /// The variant's name; the paper's native algorithm is `bbr`.
    fn variant_name(&self) -> &'static str {
        match self.variant {
            Variant::Cubic => "cubic",
            Variant::Native if self.algorithm == BBR => BBR,
            Variant::Native => "native",
            Variant::Tcon => "tcon",
        }
    }

    /// Time between the starts of two downloads: ten times what the link needs, plus a minute.
    fn gap(&self) -> Time {
        self.path.rate().serialization(self.file.kilobytes * 1000) * 10 + Time::from_secs(60)
    }

    fn text(&self) -> String {
        let mut text = TEXT.replace(DOWNLOAD, DOWNLOADS);
        if self.variant != Variant::Tcon {
            text = text.replace(ENFORCER, "");
        }
        if self.loss == 0 {
            text = text.replace(LOSS, "");
        }
        text
    }

    fn trace(&self) -> String {
        let mut csv = String::from("time_s,src,dst,bytes\n");
        for i in 0..self.file.downloads {
            let at = (self.gap() * u64::from(i)).as_secs_f64();
            let _ = writeln!(csv, "{at:.3},left1,right1,{}", self.file.kilobytes * 1000);
        }
        csv
    }

    fn sets(&self) -> Vec<String> {
        let cc = if self.variant == Variant::Native { self.algorithm } else { "cubic" };
        let mut sets = vec![
            format!("duration={}", self.gap() * u64::from(self.file.downloads)),
            format!("network.tier.bottleneck.rate={}", self.path.rate()),
            format!("network.tier.bottleneck.delay={}", (self.path.rtt() - NEAR) / 2),
            format!("tcp.cc={cc}"),
        ];
        if self.loss > 0 {
            sets.push(format!("network.loss.0.probability={} %", f64::from(self.loss) / 10.0));
        }
        if self.variant == Variant::Tcon {
            sets.push(format!("enforcer.rule.0.cc={}", self.algorithm));
        }
        sets.extend(self.stack.sets().iter().map(|set| (*set).to_string()));
        sets
    }

    fn job(&self, request: &Request, seed: u32) -> Result<Job, Failure> {
        let mut sets = self.sets();
        sets.push(format!("seed={seed}"));
        sets.extend(request.sets.iter().cloned());
        let files = Embedded { trace: self.trace(), disk: Disk { base: PathBuf::new() } };
        let runs = parse_scenario(NAME, &self.text(), &sets, &files)?;
        let [run] = &runs[..] else {
            return Err(Failure::Input(format!(
                "reproduce compares paths, files and seeds; to sweep, use `opentcp run {NAME}`"
            )));
        };
        let mut name = format!("{}/{}", self.setting(), self.variant_name());
        if request.seeds > 1 {
            let _ = write!(name, "/{seed}");
        }
        let parameters = vec![
            ("setting".to_string(), self.setting()),
            ("variant".to_string(), self.variant_name().to_string()),
            ("seed".to_string(), seed.to_string()),
        ];
        Ok(Job { name, parameters, scenario: run.scenario.clone() })
    }
}

/// The scenario's trace of downloads, which is generated.
struct Embedded {
    trace: String,
    disk: Disk,
}

impl Files for Embedded {
    fn resolve(&self, written: &str) -> FileRef {
        self.disk.resolve(written)
    }

    fn read(&self, path: &FilePath) -> io::Result<String> {
        if path.to_str() == Some(TRACE) { Ok(self.trace.clone()) } else { self.disk.read(path) }
    }
}

/// A backend's measurements and findings.
struct Compared {
    measured: Vec<Measured>,
    findings: Vec<String>,
}

/// Runs the study.
fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let wanted = request.backend;
    let absent = wanted.absent_kernels(kernel::absent, monitor)?;
    let most = request.tcon.downloads.unwrap_or(u32::MAX);
    let cases = if wanted == Wanted::Kernel { Vec::new() } else { Case::all(request.full, most) };
    let mut jobs = Vec::new();
    for case in &cases {
        for seed in 1..=request.seeds {
            jobs.push(case.job(request, seed)?);
        }
    }
    let mut writer = SweepWriter::create(&request.out).map_err(|error| Failure::bad_out(&error))?;
    let (began, mut hops) = (Instant::now(), 0);
    // first, since nothing else may run at the same time
    let (loads, real) = if absent.is_none() {
        monitor.note("kernel: nginx and curl in real time, about fifteen minutes");
        (load::measure(&load::STEPS, load::LASTS, monitor)?, kernel::downloads(request.full, most, monitor)?)
    } else {
        (Vec::new(), Compared { measured: Vec::new(), findings: Vec::new() })
    };
    let mut runs = Vec::new();
    run_all(&jobs, request.workers, monitor, |run| {
        hops += run.summary.packet_hops;
        runs.push(Run::of(&run));
        writer.add(&run).map_err(|error| Failure::writing(&error))
    })?;
    // in the order of the jobs
    let mut runs = runs.into_iter();
    let of = |case: &Case| Measured::of(*case, &runs.by_ref().take(request.seeds as usize).collect::<Vec<_>>());
    let mut measured: Vec<Measured> = cases.iter().map(of).collect();
    let mut findings = findings::findings(&measured);
    let kernels = findings::findings(&real.measured).into_iter().chain(real.findings);
    findings.extend(kernels.map(|finding| format!("On real kernels: {finding}")));
    findings.extend(findings::overhead(&loads));
    let tables = tables::render(&measured, &real.measured, &loads, &findings);
    measured.extend(real.measured);
    let comparisons = rows::comparisons(&measured, &loads);
    let info = speed(began, hops, request.workers.min(jobs.len().max(1)));
    writer
        .finish(&story(&measured, &loads, &comparisons, &findings), Some(&info))
        .map_err(|error| Failure::writing(&error))?;
    monitor.note(&info.words());
    Ok(Reproduced { tables, findings, comparisons, wall_s: info.wall_s })
}

/// The report's text and figures.
fn story(measured: &[Measured], loads: &[Load], comparisons: &[Comparison], findings: &[String]) -> Story {
    let of = |host: Host| measured.iter().filter(move |one| one.case.host == host);
    let times = |host: Host, path: Path| {
        let main = of(host).filter(|one| one.case.path == path && one.case.is_main() && !one.seconds.is_empty());
        let groups: Vec<_> = main.map(|one| (one.case.variant_name(), one.seconds.as_slice())).collect();
        Panel::distributions(path.name(), "completion time (s)", "downloads", &groups)
    };
    let swept = |host: Host, path: Path| Panel {
        title: path.name().to_string(),
        x: "losses (%)".to_string(),
        y: "mean completion time (s)".to_string(),
        curves: Variant::ALL.map(|variant| loss_curve(of(host), path, variant)).to_vec(),
        ..Panel::default()
    };
    let figures = |host: Host| {
        let with = if host == Host::Kernel { "nginx and curl on real kernels." } else { "SIMULATED." };
        let completion = Figure {
            title: "Completion times of 10 MB".to_string(),
            text: format!(
                "{with} Share of downloads that took at most this long; the second chart of a pair shows the tail."
            ),
            panels: Path::ALL.map(|path| times(host, path)).concat(),
        };
        let losses = Figure {
            title: "Completion times by loss rate".to_string(),
            text: format!("{with} Mean completion times of 10 MB, by the path's random loss rate."),
            panels: Path::WAN.map(|path| swept(host, path)).to_vec(),
        };
        if of(host).next().is_some() { vec![completion, losses] } else { Vec::new() }
    };
    Story {
        title: "Congestion control enforced in the network".to_string(),
        lead: "Downloads from a server that runs CUBIC or BBR, and from a CUBIC server whose packets an enforcer forwards by BBR, over three paths \
               with queues of 50 packets; after “TCon: A Transparent Congestion Control Deployment Platform for Optimizing WAN Transfers” \
               (NPC 2017). The paths' rates, RTTs and losses are ours, since the paper does not state them."
            .to_string(),
        figures: [Host::Simulator, Host::Kernel].into_iter().flat_map(figures).chain(overhead(loads)).collect(),
        paragraphs: findings.to_vec(),
        comparisons: comparisons.to_vec(),
    }
}

/// CPU use of the live enforcer.
fn overhead(loads: &[Load]) -> Option<Figure> {
    // one curve for each group
    let panel = |x: &str, point: fn(&Load) -> (f64, f64), name: fn(&Load) -> String| {
        let mut curves: Vec<Curve> = Vec::new();
        for load in loads {
            if !curves.iter().any(|curve| curve.name == name(load)) {
                curves.push(Curve { name: name(load), ..Curve::default() });
            }
            curves.iter_mut().filter(|curve| curve.name == name(load)).for_each(|curve| curve.points.push(point(load)));
        }
        // a curve needs two loads
        curves.retain(|curve| curve.points.len() > 1);
        Panel {
            title: format!("by {x}"),
            x: x.to_string(),
            y: "share of a CPU (%)".to_string(),
            curves,
            ..Panel::default()
        }
    };
    let by_rate = |load: &Load| (f64::from(load.asked), load.cpu);
    let by_connections = |load: &Load| (load.connections as f64, load.cpu);
    let panels = vec![
        panel("requests per second", by_rate, |load| format!("{} connections", load.connections)),
        panel("open connections", by_connections, |load| format!("{} requests/s", load.asked)),
    ];
    (!loads.is_empty()).then(|| Figure {
        title: "CPU use of the enforcer".to_string(),
        text: "The live enforcer between two TAPs, BBR over nginx, answers of 10 kB.".to_string(),
        panels,
    })
}

/// Mean completion times by loss rate.
fn loss_curve<'a>(measured: impl Iterator<Item = &'a Measured>, path: Path, variant: Variant) -> Curve {
    let of = |one: &&Measured| {
        let Case { path: its, file, variant: whose, .. } = one.case;
        one.case.is_papers() && its == path && file.kilobytes == File::MAIN.kilobytes && whose == variant
    };
    let name = Case { variant, ..Case::of(path, path.loss(), File::MAIN) }.variant_name();
    let point = |one: &Measured| Some((f64::from(one.case.loss) / 10.0, one.mean()?));
    let mut points: Vec<(f64, f64)> = measured.filter(of).filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Curve { name: name.to_string(), points, ..Curve::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_has_what_cases_take_out() {
        for part in [ENFORCER, LOSS, DOWNLOAD] {
            assert_eq!(TEXT.matches(part).count(), 1, "{part}");
        }
        assert_eq!(File::ALL[0].name(), "1.7MB");
        let case = Case::of(Path::Oregon, 20, File::SWEPT);
        assert_eq!(case.setting(), "wan-oregon/10MB/2%");
        let names: Vec<String> = Case::beyond().map(|case| case.setting()).collect();
        assert_eq!((names.len(), names[0].as_str()), (12 + 4, "wan-shanghai/10MB/bbr3"));
        assert_eq!(names[12], "wan-shanghai/10MB/SACK off");
        // 10 MB at 2.5 Mbit/s take 32 s
        assert_eq!(case.gap(), Time::from_secs(380));
    }
}
