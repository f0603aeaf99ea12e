//! The networks, the kinds of traffic, and all runs.

use crate::failure::Failure;
use crate::known::{algorithm_names, parse_scenario};
use crate::reproduce::{Request, VARIANTS, sets};
use crate::sweep::Job;
use scenario::Disk;
use std::path::PathBuf;

/// Seeds of the full study, at least.
const FULL_SEEDS: u32 = 3;
/// Flows of mice and of the web-search mix that begin in a second, a host.
const MICE_PER_HOST: u64 = 40;
const FLOWS_PER_HOST: u64 = 30;
/// Bytes from each mapper to each reducer.
const SHUFFLED: u64 = 100_000;

/// A network, in two sizes.
#[derive(Debug)]
pub struct Network {
    pub name: &'static str,
    key: &'static str,
    /// By size: the topology as a scenario has it, and its hosts.
    sizes: [(&'static str, u64); 2],
}

/// About fifty hosts, and about 125. All links have the same rate, and no level has less of them than the one below.
pub static NETWORKS: [Network; 5] = [
    Network {
        name: "fat tree",
        key: "fat-tree",
        sizes: [("{ fat_tree = { k = 6 } }", 54), ("{ fat_tree = { k = 8 } }", 128)],
    },
    Network {
        name: "leaf–spine",
        key: "leaf-spine",
        sizes: [
            ("{ leaf_spine = { leaves = 9, spines = 6, hosts_per_leaf = 6 } }", 54),
            ("{ leaf_spine = { leaves = 16, spines = 8, hosts_per_leaf = 8 } }", 128),
        ],
    },
    Network {
        name: "VL2",
        key: "vl2",
        sizes: [
            ("{ vl2 = { aggregation_ports = 6, intermediate_ports = 18, hosts_per_tor = 2 } }", 54),
            ("{ vl2 = { aggregation_ports = 8, intermediate_ports = 32, hosts_per_tor = 2 } }", 128),
        ],
    },
    Network {
        name: "BCube",
        key: "bcube",
        sizes: [
            ("{ bcube = { n = 7, k = 1, forwarding_delay = \"1 us\" } }", 49),
            ("{ bcube = { n = 11, k = 1, forwarding_delay = \"1 us\" } }", 121),
        ],
    },
    Network {
        name: "DCell",
        key: "dcell",
        sizes: [
            ("{ dcell = { n = 7, l = 1, forwarding_delay = \"1 us\" } }", 56),
            ("{ dcell = { n = 11, l = 1, forwarding_delay = \"1 us\" } }", 132),
        ],
    },
];

/// The sizes: their names; mappers, as many reducers as these; senders of incast.
pub const SIZES: [(&str, u64, u64); 2] = [("small", 24, 40), ("large", 60, 100)];

/// A kind of traffic.
#[derive(Debug)]
pub struct Traffic {
    pub name: &'static str,
    pub key: &'static str,
    file: &'static str,
    text: &'static str,
    /// Overrides for so many hosts in all, mappers and senders.
    sets: fn(u64, u64, u64) -> Vec<String>,
}

pub static TRAFFIC: [Traffic; 4] = [
    Traffic {
        name: "on–off",
        key: "on-off",
        file: "scenarios/data-centers-on-off.toml",
        text: include_str!("../../../../../scenarios/data-centers-on-off.toml"),
        sets: |hosts, _, _| vec![format!("traffic.flows.random_pairs.flows={}", 2 * hosts)],
    },
    Traffic {
        name: "web search",
        key: "web-search",
        file: "scenarios/data-centers-web-search.toml",
        text: include_str!("../../../../../scenarios/data-centers-web-search.toml"),
        sets: |hosts, _, _| vec![format!("traffic.flows.poisson.flows_per_second={}", FLOWS_PER_HOST * hosts)],
    },
    Traffic {
        name: "MapReduce",
        key: "mapreduce",
        file: "scenarios/data-centers-mapreduce.toml",
        text: include_str!("../../../../../scenarios/data-centers-mapreduce.toml"),
        sets: |_, mappers, _| {
            let of = |key: &str, value: String| format!("traffic.flows.job.mapreduce.{key}={value}");
            let bytes = format!("\"{} B\"", mappers * mappers * SHUFFLED);
            vec![of("mappers", mappers.to_string()), of("reducers", mappers.to_string()), of("bytes", bytes)]
        },
    },
    Traffic {
        name: "incast",
        key: "incast",
        file: "scenarios/data-centers-incast.toml",
        text: include_str!("../../../../../scenarios/data-centers-incast.toml"),
        sets: |_, _, senders| vec![format!("traffic.flows.incast.senders={senders}")],
    },
];

/// A run.
#[derive(Debug)]
pub struct Case {
    pub traffic: &'static Traffic,
    pub network: &'static Network,
    /// Index into [`SIZES`].
    pub size: usize,
    pub algorithm: String,
    pub job: Job,
}

/// Keys that the study itself sets.
const OWN: [&str; 6] = ["name", "network.topology", "traffic", "tcp.cc", "measure", "sweep"];

/// All runs: with `--full` also the larger networks, every algorithm, and three seeds. What the default runs is a part of it.
///
/// # Errors
/// `--set` is wrong.
pub fn all(request: &Request) -> Result<Vec<Case>, Failure> {
    let seeds = if request.full { request.seeds.max(FULL_SEEDS) } else { request.seeds };
    sets::check(request, &OWN, seeds, TRAFFIC[1].file)?;
    let algorithms = if request.full { algorithm_names() } else { VARIANTS.to_vec() };
    let sizes = if request.full { SIZES.len() } else { 1 };
    let mut cases = Vec::new();
    // a part of it is the whole grid once
    for size in 0..sizes {
        for seed in 1..=seeds {
            for traffic in &TRAFFIC {
                for network in &NETWORKS {
                    for algorithm in &algorithms {
                        cases.push(case(request, (traffic, network, size), algorithm, seed)?);
                    }
                }
            }
        }
    }
    Ok(cases)
}

fn case(
    request: &Request,
    (traffic, network, size): (&'static Traffic, &'static Network, usize),
    algorithm: &str,
    seed: u32,
) -> Result<Case, Failure> {
    let (name, mappers, senders) = SIZES[size];
    let (topology, hosts) = network.sizes[size];
    let mut sets = vec![
        format!("network.topology={topology}"),
        format!("tcp.cc={algorithm}"),
        format!("seed={seed}"),
        format!("traffic.mice.poisson.flows_per_second={}", MICE_PER_HOST * hosts),
    ];
    sets.extend((traffic.sets)(hosts, mappers, senders));
    sets.extend(request.sets.iter().cloned());
    // paths in --set are relative to the working directory
    let runs = parse_scenario(traffic.file, traffic.text, &sets, &Disk { base: PathBuf::new() })?;
    let scenario = runs.into_iter().next().expect("a scenario has a run").scenario;
    let parameters = [
        ("traffic", traffic.name.to_string()),
        ("network", network.name.to_string()),
        ("size", name.to_string()),
        ("algorithm", algorithm.to_string()),
        ("seed", scenario.seed.to_string()),
    ];
    let job = Job {
        name: format!("{name}.{}.{}.{algorithm}.{}", traffic.key, network.key, scenario.seed),
        parameters: parameters.map(|(key, value)| (key.to_string(), value)).to_vec(),
        scenario,
    };
    Ok(Case { traffic, network, size, algorithm: algorithm.to_string(), job })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_a_size_have_about_as_many_hosts_of_equal_links() {
        let request = Request { full: true, ..Request::new("data-centers") };
        let cases = all(&request).expect("it is a study");
        assert_eq!(cases.len(), 2 * 3 * 4 * 5 * algorithm_names().len());
        for case in &cases {
            let network = &case.job.scenario.network;
            assert_eq!(network.topology.hosts(), case.network.sizes[case.size].1, "{}", case.job.name);
            let range = [45..=60, 115..=135][case.size].clone();
            assert!(range.contains(&network.topology.hosts()), "{}", case.job.name);
            assert!(network.tier.values().all(|tier| tier.rate == network.rate && tier.queue == network.queue));
            assert_eq!(network.queue, network.nic_queue);
        }
    }

    #[test]
    fn the_default_is_a_part_of_the_full_study() {
        let names = |full: bool| -> Vec<String> {
            let request = Request { full, ..Request::new("data-centers") };
            all(&request).expect("it is a study").into_iter().map(|case| case.job.name).collect()
        };
        let (some, mut full) = (names(false), names(true));
        assert_eq!(some.len(), 200);
        assert!(some.iter().all(|name| full.contains(name)));
        full.sort_unstable();
        full.dedup();
        assert_eq!(full.len(), 2 * 3 * 4 * 5 * algorithm_names().len(), "each run has a name of its own");
    }
}
