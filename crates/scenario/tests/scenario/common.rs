//! Shared by the tests: a correct scenario, and files in memory.

use scenario::{Diagnostic, FileRef, Files, Input, Known, Loaded, Scenario};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub const ALGORITHMS: [&str; 10] =
    ["newreno", "vegas", "highspeed", "scalable", "westwood", "bic", "cubic", "yeah", "dctcp", "bbr"];
pub const KNOWN: Known<'static> = Known { algorithms: &ALGORITHMS, policy: policy::Known { algorithms: &[] } };

/// Files by name.
#[derive(Default)]
pub struct Memory(pub BTreeMap<String, String>);

impl Memory {
    pub fn of(files: &[(&str, &str)]) -> Memory {
        Memory(files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }
}

impl Files for Memory {
    fn resolve(&self, written: &str) -> FileRef {
        FileRef { written: written.into(), path: PathBuf::from(written) }
    }
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.0.get(&path.display().to_string()).cloned();
        text.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }
}

pub fn parse_with(text: &str, sets: &[&str], files: &Memory) -> Result<Loaded, Diagnostic> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_string()).collect();
    Scenario::parse(&Input { name: "a.toml", text, sets: &sets, known: KNOWN, files })
}

pub fn parse(text: &str, sets: &[&str]) -> Result<Loaded, Diagnostic> {
    parse_with(text, sets, &Memory::default())
}

/// The single run of a correct scenario.
pub fn one(text: &str, sets: &[&str]) -> Scenario {
    let mut loaded = parse(text, sets).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.runs.len(), 1);
    loaded.runs.remove(0).scenario
}

/// Every kind of value somewhere.
pub const RICH: &str = r#"title = "everything"
seed = 7
duration = "10 s"

[network]
topology = { fat_tree = { k = 4 } }
rate = "1 Gbit/s"
delay = "2 us"
queue = { threshold_ecn = { mark_bytes = "30 kB", bytes = "150 kB" } }
buffer = { shared = { bytes = "1 MB", alpha = 0.5 } }
routing = "single-path"
framing = "ip"
host_jitter = "20 us"

[network.tier.core]
rate = "2.5 Gbit/s"
queue = { red = { min = 5, max = 15.5, max_probability = "7 %", ecn = true } }

[[network.failure]]
link = "a1->c2"
at = "1 s"
until = "2 s"

[[network.loss]]
link = "h1-e1"
probability = "0.3 %"

[tcp]
preset = "ns-3.25"
cc = "mine/my_reno.c"
mtu = 9000
initial_ssthresh = "unlimited"
delayed_ack = { segments = 1 }
limit_output = "auto"

[[traffic]]
random_pairs = { flows = 3, on_off = { rate = "50 Mbit/s", on = "0.5 s", packet = "1000 B" } }
[[traffic]]
permutation = { across = "pods", bulk = { bytes = "3 MB" } }
label = "shuffle"
[[traffic]]
bulk = { from = "h1", to = "h16", count = 2 }
cc = "vegas"
start = "1 s"
stop = "2 s"
[[traffic]]
bulk = { from = "h2", to = "h1" }
cc = "other/my_reno.c"
[[traffic]]
incast = { senders = ["h3", "h4"], bytes = "20 kB", repeat = 5, interval = "10 ms" }
[[traffic]]
incast = { senders = 5, receiver = "h9", bytes = "20 kB" }
[[traffic]]
all_to_all = { bytes = "1 MB", rounds = 2, hosts = ["h1", "h5", "h9"], connections = "new" }
[[traffic]]
poisson = { load = "30 %", sizes = "web-search", flows = 1000 }
[[traffic]]
poisson = { flows_per_second = 12.5, sizes = "sizes.csv" }
[[traffic]]
trace = { file = "flows.csv" }
[[traffic]]
idle = { flows = 9 }
[[traffic]]
all_to_all = { bytes = ["1 B", "4 MB"], jobs = 2, think = { exponential = "50 ms" } }
[[traffic]]
exchange = { bytes = "64 kB", rounds = 3, think = "10 ms" }

[enforcer]
at = "h1"
buffer = "64 MiB"
[[enforcer.rule]]
cc = "bbr"
src = "h1"
dst = "10.64.0.0/24"
[[enforcer.rule]]
cc = "other/my_reno.c"
port = 5002

[measure]
links = "10 ms"
cwnd = "1 ms"
queues = ["c1->a1", "e1->h1"]
packet_delay = true
warmup = "100 ms"
"#;

/// The files that [`RICH`] names.
pub fn rich_files() -> Memory {
    Memory::of(&[
        ("mine/my_reno.c", "/* one */\n"),
        ("other/my_reno.c", "/* another */\n"),
        ("sizes.csv", "bytes,cdf\n100,0\n300,0.5\n1000,1\n"),
        ("flows.csv", "time_s,src,dst,bytes\n0,h1,h2,1000\n0.25, h2, h3, 5\n"),
    ])
}
