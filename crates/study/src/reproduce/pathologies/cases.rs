//! The pathologies: scenarios, settings, quantities and what was published; and all runs.

use super::measured;
use crate::failure::Failure;
use crate::known::parse_scenario;
pub(crate) use crate::reproduce::VARIANTS as ALGORITHMS;
use crate::reproduce::{Request, sets};
use crate::sweep::Job;
use results::RunResults;
use scenario::Disk;
use std::path::PathBuf;

/// Numbers of servers of incast, in rising order; the last is the largest published.
const SERVERS: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 47];
/// Half of the link, Mbit/s: below it, incast has collapsed.
const COLLAPSED: f64 = 500.0;

/// A pathology.
pub struct Pathology {
    pub name: &'static str,
    file: &'static str,
    text: &'static str,
    /// A run for each, with the settings.
    variants: fn() -> Vec<Vec<String>>,
    /// A run's values.
    pub measure: fn(&RunResults) -> Vec<f64>,
    /// What follows from the values of all variants, in their order.
    pub quantities: &'static [Quantity],
}

/// A row for each algorithm.
pub struct Quantity {
    pub figure: &'static str,
    pub name: &'static str,
    /// Heading of its column, if it is the pathology's one number.
    pub short: Option<&'static str>,
    pub unit: &'static str,
    /// What was published for the algorithm.
    pub paper: fn(&str) -> Option<f64>,
    /// In words, and why ours differs.
    pub note: &'static str,
    pub of: fn(&[f64]) -> f64,
}

/// A run.
pub struct Case {
    pub pathology: &'static Pathology,
    pub algorithm: &'static str,
    pub seed: u64,
    pub job: Job,
}

/// What most quantities are: the first value of a run, of which nothing was published.
const PLAIN: Quantity =
    Quantity { figure: "", name: "", short: None, unit: "ms", paper: |_| None, note: "", of: |values| values[0] };

fn of_tcp_and_dctcp(algorithm: &str, tcp: f64, dctcp: f64) -> Option<f64> {
    match algorithm {
        "newreno" => Some(tcp),
        "dctcp" => Some(dctcp),
        _ => None,
    }
}

fn alone() -> Vec<Vec<String>> {
    vec![Vec::new()]
}

/// As the file has it, and without the entry.
fn without(entry: &str) -> Vec<Vec<String>> {
    vec![Vec::new(), vec![format!("traffic.{entry}.stop=1 us")]]
}

fn incast() -> Vec<Vec<String>> {
    let sets =
        |rto: &str, servers: u32| vec![format!("traffic.read.incast.senders={servers}"), format!("tcp.rto_min={rto}")];
    let last = SERVERS[SERVERS.len() - 1];
    SERVERS.iter().map(|servers| sets("200 ms", *servers)).chain([sets("1 ms", last)]).collect()
}

/// The first number of servers with which, and with all larger ones, goodput is below half of the link; NaN if there is none.
fn collapse(goodputs: &[f64]) -> f64 {
    let standing = goodputs[..SERVERS.len()].iter().rposition(|goodput| *goodput >= COLLAPSED);
    SERVERS.get(standing.map_or(0, |last| last + 1)).map_or(f64::NAN, |servers| f64::from(*servers))
}

pub static PATHOLOGIES: [Pathology; 7] = [
    Pathology {
        name: "incast",
        file: "scenarios/pathology-incast.toml",
        text: include_str!("../../../../../scenarios/pathology-incast.toml"),
        variants: incast,
        measure: measured::goodput,
        quantities: &[
            Quantity {
                figure: "FAST 2008, Figure 1",
                name: "servers from which goodput is below half of the link",
                short: Some("incast: servers"),
                unit: "servers",
                note: "published: collapse between 4 and 8 servers; depends on the hosts' jitter and preset, see docs/pathologies.md",
                of: collapse,
                ..PLAIN
            },
            Quantity {
                figure: "FAST 2008, Figure 1",
                name: "goodput of 47 servers, minimum RTO 200 ms",
                unit: "Mbit/s",
                note: "published: an order of magnitude below the link",
                of: |goodputs| goodputs[SERVERS.len() - 1],
                ..PLAIN
            },
            Quantity {
                figure: "SIGCOMM 2009",
                name: "goodput of 47 servers, minimum RTO 1 ms",
                short: Some("47 servers, RTO 1 ms: Mbit/s"),
                unit: "Mbit/s",
                note: "published: goodput stays high up to 47 servers with a minimum RTO of the order of the round trip",
                of: |goodputs| goodputs[SERVERS.len()],
                ..PLAIN
            },
        ],
    },
    Pathology {
        name: "outcast",
        file: "scenarios/pathology-outcast.toml",
        text: include_str!("../../../../../scenarios/pathology-outcast.toml"),
        variants: alone,
        measure: measured::outcast,
        quantities: &[Quantity {
            figure: "NSDI 2012",
            name: "goodput of the flows with the longer path / that of the shorter",
            short: Some("outcast: ratio"),
            unit: "ratio",
            note: "published: almost an order of magnitude; depends on how far the two ports' clocks differ, see docs/pathologies.md",
            ..PLAIN
        }],
    },
    Pathology {
        name: "queue build-up",
        file: "scenarios/pathology-queue.toml",
        text: include_str!("../../../../../scenarios/pathology-queue.toml"),
        variants: || without("long"),
        measure: measured::short_messages,
        quantities: &[
            Quantity {
                figure: "DCTCP, Figure 21",
                name: "median time of 20 kB beside two long flows",
                short: Some("build-up: ms"),
                paper: |algorithm| of_tcp_and_dctcp(algorithm, 19.0, 1.0),
                note: "DCTCP is published as below 1 ms; the initial window is not the reason: 3 segments give the same",
                ..PLAIN
            },
            Quantity {
                figure: "DCTCP, Figure 21",
                name: "95th percentile beside two long flows",
                of: |values| values[1],
                ..PLAIN
            },
            Quantity {
                figure: "DCTCP, Figure 21",
                name: "95th percentile without them",
                of: |values| values[3],
                ..PLAIN
            },
        ],
    },
    Pathology {
        name: "buffer pressure",
        file: "scenarios/pathology-buffer.toml",
        text: include_str!("../../../../../scenarios/pathology-buffer.toml"),
        variants: alone,
        measure: measured::queries,
        quantities: &[
            Quantity {
                figure: "DCTCP, Table 2",
                name: "95th percentile of queries without long flows",
                paper: |algorithm| of_tcp_and_dctcp(algorithm, 9.87, 9.17),
                ..PLAIN
            },
            Quantity {
                figure: "DCTCP, Table 2",
                name: "95th percentile of queries beside 66 long flows",
                short: Some("pressure: ms"),
                paper: |algorithm| of_tcp_and_dctcp(algorithm, 46.94, 9.09),
                note: "RACK and tail loss probes avoid the timeouts: with the preset linux-2.6.18 and alpha 0.1, 8.6 and 16 ms; alpha and which hosts exchange the long flows are our choice",
                of: |values| values[1],
                ..PLAIN
            },
        ],
    },
    Pathology {
        name: "RTT",
        file: "scenarios/pathology-rtt.toml",
        text: include_str!("../../../../../scenarios/pathology-rtt.toml"),
        variants: alone,
        measure: measured::unfairness,
        quantities: &[Quantity {
            figure: "ToN 1997",
            name: "goodput of the flow with 100 us / that with 300 us",
            short: Some("RTT: ratio"),
            unit: "ratio",
            note: "published for Reno: 3 to 9 where the RTT is all propagation; both flows share the queue's delay here (up to 560 us)",
            ..PLAIN
        }],
    },
    Pathology {
        name: "minimum window",
        file: "scenarios/pathology-window.toml",
        text: include_str!("../../../../../scenarios/pathology-window.toml"),
        variants: alone,
        measure: measured::queue,
        quantities: &[Quantity {
            figure: "2 n − C·RTT",
            name: "median queue of 40 flows",
            short: Some("40 flows: packets"),
            unit: "packets",
            paper: |algorithm| (algorithm == "dctcp").then_some(71.9),
            note: "the least queue of 40 windows of two segments; only marks or delay bring an algorithm there",
            ..PLAIN
        }],
    },
    Pathology {
        name: "ACK path",
        file: "scenarios/pathology-ack.toml",
        text: include_str!("../../../../../scenarios/pathology-ack.toml"),
        variants: || without("reverse"),
        measure: measured::forward,
        quantities: &[Quantity {
            figure: "SIGCOMM 1991",
            name: "goodput against four opposite flows, of that without them",
            short: Some("ACK path: %"),
            unit: "%",
            note: "published: below 100 %, without a number for these links",
            of: |values| 100.0 * values[0] / values[1],
            ..PLAIN
        }],
    },
];

/// Keys that the study itself sets: with other values the rows would be mislabelled.
const OWN: [&str; 7] = ["name", "network.topology", "traffic", "tcp.cc", "tcp.rto_min", "measure", "sweep"];

/// All runs.
///
/// # Errors
/// `--set` is wrong.
pub fn all(request: &Request) -> Result<Vec<Case>, Failure> {
    sets::check(request, &OWN, request.seeds, "scenarios/pathology-incast.toml")?;
    let mut cases = Vec::new();
    for pathology in &PATHOLOGIES {
        for algorithm in ALGORITHMS {
            for seed in 1..=u64::from(request.seeds) {
                cases.extend(of(request, pathology, algorithm, seed)?);
            }
        }
    }
    Ok(cases)
}

/// A run for each variant.
fn of(
    request: &Request,
    pathology: &'static Pathology,
    algorithm: &'static str,
    seed: u64,
) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for (number, variant) in (pathology.variants)().into_iter().enumerate() {
        let mut sets = vec![format!("tcp.cc={algorithm}"), format!("seed={seed}")];
        sets.extend(variant);
        sets.extend(request.sets.iter().cloned());
        let runs = parse_scenario(pathology.file, pathology.text, &sets, &Disk { base: PathBuf::new() })?;
        let scenario = runs.into_iter().next().expect("a scenario has a run").scenario;
        let parameters = [
            ("pathology", pathology.name.to_string()),
            ("algorithm", algorithm.to_string()),
            ("variant", (number + 1).to_string()),
            ("seed", scenario.seed.to_string()),
        ];
        let job = Job {
            name: format!("{}/{algorithm}/{}/{seed}", pathology.name, number + 1),
            parameters: parameters.map(|(key, value)| (key.to_string(), value)).to_vec(),
            scenario,
        };
        cases.push(Case { pathology, algorithm, seed, job });
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_lasts_to_the_largest_number() {
        let mut goodputs = [900.0; SERVERS.len() + 1];
        assert!(collapse(&goodputs).is_nan());
        goodputs[2] = 100.0;
        assert!(collapse(&goodputs).is_nan(), "one dip is no collapse");
        goodputs[5..].fill(100.0);
        assert!((collapse(&goodputs) - 6.0).abs() < 1e-9);
        goodputs.fill(100.0);
        assert!((collapse(&goodputs) - 1.0).abs() < 1e-9);
    }
}
