//! All runs: scenarios and settings.

use crate::failure::Failure;
use crate::known::parse_scenario;
use crate::reproduce::{Request, sets};
use crate::sweep::Job;
use scenario::Disk;
use std::path::PathBuf;

/// Long flows beside short ones.
const FLOWS: [u32; 3] = [2, 10, 40];
/// Those of the two runs in which every segment is acknowledged.
const ACKED_FLOWS: u32 = 10;
/// Shares of marked packets, %.
pub const SHARES: [f64; 5] = [0.3, 1.0, 3.0, 10.0, 30.0];
/// Of the flows that are slowed; 0: none.
pub const SLOWING: [f64; 7] = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];
/// The algorithms that are marked.
pub const MARKED: [&str; 3] = ["newreno", "cubic", "dctcp"];

/// A part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// DCTCP for hosts without ECN.
    Enforced,
    /// Windows by the share of marks.
    Marks,
    /// Background flows slowed by marks.
    Slowed,
}

impl Part {
    /// As in the rows.
    pub fn name(self) -> &'static str {
        match self {
            Part::Enforced => "two enforcers",
            Part::Marks => "marks",
            Part::Slowed => "slowed by marks",
        }
    }

    fn file(self) -> (&'static str, &'static str) {
        match self {
            Part::Enforced => {
                ("scenarios/ecn-enforced.toml", include_str!("../../../../../scenarios/ecn-enforced.toml"))
            }
            Part::Marks => ("scenarios/ecn-marks.toml", include_str!("../../../../../scenarios/ecn-marks.toml")),
            Part::Slowed => ("scenarios/ecn-slowed.toml", include_str!("../../../../../scenarios/ecn-slowed.toml")),
        }
    }
}

pub const CUBIC: &str = "cubic";
pub const DCTCP: &str = "dctcp";
pub const BOTH: &str = "cubic, two enforcers";
pub const SERVERS: &str = "cubic, the servers' enforcer";
pub const CLIENTS: &str = "cubic, the clients' enforcer";
/// The same as [`DCTCP`] and [`BOTH`], every segment acknowledged.
pub const DCTCP_ACKED: &str = "dctcp, each segment acknowledged";
pub const BOTH_ACKED: &str = "cubic, two enforcers, each segment acknowledged";
/// The hosts and enforcers of the first part, in the order of the tables, and what they differ in from the file's.
const VARIANTS: [(&str, &[&str]); 5] = [
    (CUBIC, &["enforcer=[]"]),
    (DCTCP, &["enforcer=[]", "tcp.cc=dctcp", "tcp.ecn=auto"]),
    (BOTH, &[]),
    (SERVERS, &["enforcer=[{ at = \"s1\", rule = [{ cc = \"dctcp\" }] }]"]),
    (CLIENTS, &["enforcer=[{ at = \"s2\", rule = [{ echo = true }] }]"]),
];
const ACKED: [(&str, &[&str]); 2] = [
    (DCTCP_ACKED, &["enforcer=[]", "tcp.cc=dctcp", "tcp.ecn=auto", "tcp.delayed_ack={ segments = 1 }"]),
    (BOTH_ACKED, &["tcp.delayed_ack={ segments = 1 }"]),
];

/// The links of the first part: name, and what differs from the file's.
const LINKS: [(&str, &[&str]); 2] = [
    (
        "1 Gbit/s",
        &[
            "network.rate=4 Gbit/s",
            "network.tier.bottleneck.rate=1 Gbit/s",
            "network.tier.bottleneck.queue.threshold_ecn.mark_packets=20",
            "measure.queue_sample=100 us",
            "traffic.short.incast.interval=10 ms",
            "duration=6 s",
        ],
    ),
    ("10 Gbit/s", &[]),
];

/// A run.
#[derive(Clone, Debug)]
pub struct Case {
    pub part: Part,
    /// What the table's groups differ in: links and number of flows, or the algorithm.
    pub setting: String,
    /// What is compared within a group.
    pub variant: String,
    /// The share of marks, 0 to 1, of the parts that have one.
    pub share: f64,
    pub seed: u64,
    pub job: Job,
}

/// Keys that the study itself sets: with other values the rows would be mislabelled.
const OWN: [&str; 8] = ["name", "network", "traffic", "enforcer", "sweep", "tcp.cc", "tcp.ecn", "tcp.delayed_ack"];

/// All runs.
///
/// # Errors
/// `--set` is wrong.
pub fn all(request: &Request) -> Result<Vec<Case>, Failure> {
    sets::check(request, &OWN, request.seeds, "scenarios/ecn-enforced.toml")?;
    let mut cases = Vec::new();
    for seed in 1..=u64::from(request.seeds) {
        for (links, sets) in LINKS {
            for flows in FLOWS {
                let acked: &[(&str, &[&str])] = if flows == ACKED_FLOWS { &ACKED } else { &[] };
                for (variant, hosts) in VARIANTS.iter().chain(acked) {
                    let mut own = vec![format!("traffic.long.incast.senders={flows}")];
                    own.extend(sets.iter().chain(*hosts).map(ToString::to_string));
                    cases.push(case(request, Part::Enforced, (format!("{links}, N = {flows}"), variant), seed, own)?);
                }
            }
        }
        for algorithm in MARKED {
            for percent in SHARES {
                let own = vec![format!("tcp.cc={algorithm}"), marking(percent, "")];
                let names = (algorithm.to_string(), format!("{percent} %"));
                let new = case(request, Part::Marks, (names.0, &names.1), seed, own)?;
                cases.push(Case { share: percent / 100.0, ..new });
            }
        }
        for algorithm in MARKED {
            for percent in SLOWING {
                let enforcer =
                    if percent > 0.0 { marking(percent, ", port = 5001") } else { "enforcer=[]".to_string() };
                let names = (algorithm.to_string(), format!("{percent} %"));
                let own = vec![format!("tcp.cc={algorithm}"), enforcer];
                let new = case(request, Part::Slowed, (names.0, &names.1), seed, own)?;
                cases.push(Case { share: percent / 100.0, ..new });
            }
        }
    }
    Ok(cases)
}

fn marking(percent: f64, more: &str) -> String {
    format!("enforcer=[{{ at = \"s1\", rule = [{{ mark = \"{percent} %\"{more} }}] }}]")
}

fn case(
    request: &Request,
    part: Part,
    (setting, variant): (String, &str),
    seed: u64,
    mut sets: Vec<String>,
) -> Result<Case, Failure> {
    let (file, text) = part.file();
    sets.push(format!("seed={seed}"));
    sets.extend(request.sets.iter().cloned());
    let runs = parse_scenario(file, text, &sets, &Disk { base: PathBuf::new() })?;
    let scenario = runs.into_iter().next().expect("a scenario has a run").scenario;
    let parameters = [
        ("part", part.name().to_string()),
        ("setting", setting.clone()),
        ("variant", variant.to_string()),
        ("seed", scenario.seed.to_string()),
    ];
    let job = Job {
        name: format!("{}/{setting}/{variant}/{seed}", part.name()),
        parameters: parameters.map(|(key, value)| (key.to_string(), value)).to_vec(),
        scenario,
    };
    Ok(Case { part, setting, variant: variant.to_string(), share: 0.0, seed, job })
}
