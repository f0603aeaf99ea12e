//! Who sends to whom, for many seeds.

use super::*;
use std::collections::BTreeSet;

/// Runs a test with the hosts of a network.
fn with(topology: &str, traffic: &str, test: impl Fn(Pairing<'_>, &Scenario)) {
    let text =
        format!("duration = \"1 s\"\n[network]\ntopology = {topology}\nrate = \"1 Gbit/s\"\n[[traffic]]\n{traffic}\n");
    let scenario = testkit::scenario(&text);
    let topology = crate::topology(&scenario).expect("a checked scenario has a network");
    test(Pairing::of(&scenario, &topology), &scenario);
}

const LEAVES: &str = "{ leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 3 } }";
const STAR: &str = "{ star = { hosts = 5 } }";
const IDLE: &str = "idle = { flows = 1 }";

#[test]
fn a_permutation_leaves_nobody_out_and_sends_nothing_home() {
    with(LEAVES, IDLE, |pairing, _| {
        assert_eq!(pairing.hosts_per_pod, 3);
        for seed in 0..100 {
            for across in [Across::Hosts, Across::Pods] {
                let pairs = pairing.permutation(across, &mut Random::of_entry(seed, "p"));
                let from: BTreeSet<u32> = pairs.iter().map(|(from, _)| from.0).collect();
                let to: BTreeSet<u32> = pairs.iter().map(|(_, to)| to.0).collect();
                assert_eq!((pairs.len(), from.len(), to.len()), (6, 6, 6), "seed {seed} {across:?}");
                assert!(pairs.iter().all(|(from, to)| from != to), "seed {seed}");
                let leaves = pairs.iter().all(|(from, to)| from.0 / 3 != to.0 / 3);
                assert!(leaves || across == Across::Hosts, "seed {seed}: {pairs:?}");
            }
        }
    });
}

#[test]
fn pairs_are_of_two_hosts_and_all_pairs_are_as_likely() {
    with(STAR, IDLE, |pairing, _| {
        let mut random = Random::of_entry(1, "pairs");
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            let (src, dst) = pairing.random_pair(&mut random);
            assert_ne!(src, dst);
            *seen.entry((src.0, dst.0)).or_insert(0_u32) += 1;
        }
        // 5 x 4 pairs, a thousand times each; the standard deviation is sqrt(1000 x 0.95) = 31
        assert_eq!(seen.len(), 20);
        assert!(seen.values().all(|times| (850..=1150).contains(times)), "{seen:?}");
    });
}

#[test]
fn pairs_of_lists_stay_in_them() {
    with(STAR, IDLE, |pairing, _| {
        let listed = |names: &[&str]| pairing.listed(Some(&names.iter().map(ToString::to_string).collect::<Vec<_>>()));
        let (senders, receivers) = (listed(&["h1", "h2"]), listed(&["h2", "h3"]));
        let mut random = Random::of_entry(1, "pairs");
        let draw = |_| {
            let (src, dst) = pairing.random_pair_of(&senders, &receivers, &mut random);
            (src.0, dst.0)
        };
        let drawn: BTreeSet<(u32, u32)> = (0..200).map(draw).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)], "h2 sends nothing to itself");
        assert_eq!(pairing.listed(None).len(), 5);
    });
}

#[test]
fn the_receiver_of_an_incast_is_none_of_its_senders() {
    with(STAR, IDLE, |pairing, _| {
        let numbers =
            |pairs: Vec<(NodeId, NodeId)>| pairs.into_iter().map(|(from, to)| (from.0, to.0)).collect::<Vec<_>>();
        assert_eq!(numbers(pairing.incast(&Senders::First(3), "h2")), [(0, 1), (2, 1), (3, 1)]);
        let named = Senders::Named(vec!["h5".to_string(), "h1".to_string()]);
        assert_eq!(numbers(pairing.incast(&named, "h2")), [(4, 1), (0, 1)], "in the order of the file");
    });
}

#[test]
fn jobs_share_the_hosts_and_a_ring_has_its_neighbours() {
    let numbers = |pairs: &[(NodeId, NodeId)]| pairs.iter().map(|(from, to)| (from.0, to.0)).collect::<Vec<_>>();
    let ring = "exchange = { bytes = \"1 kB\", hosts = [\"h1\", \"h2\", \"h3\"] }";
    with(STAR, ring, |pairing, scenario| {
        let jobs = pairing.jobs(&scenario.traffic[0].kind, &mut Random::of_entry(1, "x"));
        assert_eq!(jobs.len(), 1);
        assert_eq!(numbers(&jobs[0]), [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
    });
    with(STAR, "exchange = { bytes = \"1 kB\", hosts = [\"h4\", \"h5\"] }", |pairing, scenario| {
        let jobs = pairing.jobs(&scenario.traffic[0].kind, &mut Random::of_entry(1, "x"));
        assert_eq!(numbers(&jobs[0]), [(3, 4), (4, 3)], "of two hosts each is the other's only neighbour");
    });
    with(STAR, "all_to_all = { bytes = \"1 kB\", jobs = 2 }", |pairing, scenario| {
        for seed in 0..20 {
            let jobs = pairing.jobs(&scenario.traffic[0].kind, &mut Random::of_entry(seed, "x"));
            let hosts: Vec<BTreeSet<u32>> =
                jobs.iter().map(|pairs| pairs.iter().map(|(from, _)| from.0).collect()).collect();
            // five hosts: two and three, with 2 x 1 and 3 x 2 pairs
            assert_eq!(jobs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 6], "seed {seed}");
            assert!(hosts[0].is_disjoint(&hosts[1]), "seed {seed}: {hosts:?}");
            for (pairs, of) in jobs.iter().zip(&hosts) {
                assert!(pairs.iter().all(|(_, to)| of.contains(&to.0)), "seed {seed}: no message leaves its job");
            }
        }
    });
}

#[test]
fn flows_arrive_as_often_as_fill_the_share_of_their_senders_links() {
    with(STAR, IDLE, |pairing, _| {
        let senders: Vec<NodeId> = pairing.listed(None).into_iter().take(4).collect();
        let gap = |arrivals: &Arrivals| mean_gap(arrivals, 1e6, (pairing.topology, &senders));
        // half of four links of 1 Gbit/s is 2 Gbit/s, or 250 flows of 8 Mbit a second
        let half = testkit::scenario(
            "duration = \"1 s\"\n[network]\ntopology = { star = { hosts = 2 } }\n[[traffic]]\npoisson = { load = \"50 %\", sizes = \"web-search\" }\n",
        );
        let TrafficKind::Poisson { arrivals: load @ Arrivals::Load(_), .. } = &half.traffic[0].kind else {
            panic!("{:?}", half.traffic)
        };
        assert_eq!(gap(load), Time::from_ms(4));
        assert_eq!(gap(&Arrivals::FlowsPerSecond(2000.0)), Time::from_us(500));
    });
}
