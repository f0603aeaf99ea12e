//! Scenarios from text, with all available algorithms: those of `cc/`, and the kernel's own.

use congestion::Algorithm;
use policy::{AlgorithmFacts, Measures};
use scenario::{Disk, FileRef, Files, Input, Known, Scenario};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Algorithms of the kernel that tests name.
const KERNELS: [&str; 3] = ["kernel:bbr", "kernel:cubic", "kernel:reno"];

/// The one run of the scenario `text`.
pub fn scenario(text: &str) -> Scenario {
    scenario_with(text, &[])
}

/// The same with overrides, as by `--set`: `network.rate=10 Gbit/s`.
pub fn scenario_set(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    read(text, &sets, &Given(BTreeMap::new()))
}

/// The same with the files that it names, each a name and a text.
pub fn scenario_with(text: &str, files: &[(&str, &str)]) -> Scenario {
    read(text, &[], &Given(files.iter().copied().collect()))
}

/// The same with files of a folder.
pub fn scenario_in(folder: &Path, text: &str) -> Scenario {
    read(text, &[], &Disk { base: folder.to_path_buf() })
}

fn read(text: &str, sets: &[String], files: &dyn Files) -> Scenario {
    let builtins = Algorithm::builtins();
    let names: Vec<&str> = builtins.iter().map(Algorithm::name).chain(KERNELS).collect();
    let of_kernel = |name| AlgorithmFacts { name, measures: Measures::default(), needs_ecn: false };
    let facts: Vec<AlgorithmFacts<'_>> = builtins.iter().map(facts).chain(KERNELS.map(of_kernel)).collect();
    let known = Known { algorithms: &names, policy: policy::Known { algorithms: &facts } };
    match Scenario::parse(&Input { name: "test.toml", text, sets, known, files }) {
        Ok(loaded) => loaded.runs.into_iter().next().expect("a scenario is at least one run").scenario,
        Err(diagnostic) => panic!("{}", diagnostic.render(false)),
    }
}

fn facts(algorithm: &'static Algorithm) -> AlgorithmFacts<'static> {
    let measures = Measures { loss: algorithm.measures_loss(), ecn: algorithm.measures_ecn(), ..Measures::default() };
    AlgorithmFacts { name: algorithm.name(), measures, needs_ecn: algorithm.needs_ecn() }
}

/// Files that a scenario names, by name; others are on the disk.
struct Given<'a>(BTreeMap<&'a str, &'a str>);

impl Files for Given<'_> {
    fn resolve(&self, written: &str) -> FileRef {
        FileRef { written: written.to_string(), path: PathBuf::from(written) }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let given = path.to_str().and_then(|name| self.0.get(name));
        given.map_or_else(|| std::fs::read_to_string(path), |text| Ok((*text).to_string()))
    }
}

/// A download from `left1` to `right1` through a bottleneck of 50 packets that loses data packets.
#[derive(Clone, Debug)]
pub struct LossyDownload<'a> {
    /// `60 s`.
    pub duration: &'a str,
    /// Of the losses.
    pub seed: u64,
    /// Of the bottleneck: `10 Mbit/s`.
    pub rate: &'a str,
    /// Of the bottleneck, one way; the two adjacent links have 50 us each.
    pub delay: &'a str,
    /// Probability that a data packet is lost: `1 %`.
    pub loss: &'a str,
    /// The server's algorithm.
    pub cc: &'a str,
    /// `10 MB`.
    pub bytes: &'a str,
    /// Of both hosts, if not the default.
    pub buffers: Option<&'a str>,
    /// The node where BBR is enforced on the server's data, if any.
    pub enforced_at: Option<&'a str>,
}

impl Default for LossyDownload<'_> {
    /// 8 MB over 10 Mbit/s and 30 ms, by CUBIC, with 0.3 % of losses; nothing is enforced.
    fn default() -> Self {
        LossyDownload {
            duration: "60 s",
            seed: 1,
            rate: "10 Mbit/s",
            delay: "14.9 ms",
            loss: "0.3 %",
            cc: "cubic",
            bytes: "8 MB",
            buffers: None,
            enforced_at: None,
        }
    }
}

impl LossyDownload<'_> {
    /// The scenario's text; tables may be added.
    pub fn text(&self) -> String {
        let LossyDownload { duration, seed, rate, delay, loss, cc, bytes, buffers, enforced_at } = self;
        let buffers = buffers
            .map_or_else(String::new, |bytes| format!("send_buffer = \"{bytes}\"\nreceive_buffer = \"{bytes}\"\n"));
        let enforcer = enforced_at.map_or_else(String::new, |node| {
            format!("[enforcer]\nat = \"{node}\"\n[[enforcer.rule]]\ncc = \"bbr\"\nsrc = \"left1\"\n")
        });
        format!(
            r#"
            duration = "{duration}"
            seed = {seed}
            [network]
            topology = {{ dumbbell = {{ pairs = 1 }} }}
            rate = "1 Gbit/s"
            delay = "50 us"
            [network.tier.bottleneck]
            rate = "{rate}"
            delay = "{delay}"
            queue = {{ drop_tail = {{ packets = 50 }} }}
            [[network.loss]]
            link = "s1->s2"
            probability = "{loss}"
            [tcp]
            cc = "{cc}"
            {buffers}
            [[traffic]]
            bulk = {{ from = "left1", to = "right1", bytes = "{bytes}" }}
            {enforcer}
            "#
        )
    }
}
