//! Paths: their lengths, their choice among equals, and their way around failures.

use crate::common;
use net::{Cable, LinkId, LinkParams, LinkTier, NoPath, NodeId, QueueSpec, Router, Routing, Tier, Topology};
use std::collections::{BTreeMap, BTreeSet};
use units::Rate;

fn plain(_: LinkTier) -> LinkParams {
    common::params(Rate::from_gbps(10), QueueSpec::drop_tail(100))
}

/// The names of the nodes along a path, after checking that it is one.
fn nodes(topology: &Topology, src: NodeId, dst: NodeId, path: &[LinkId]) -> Vec<String> {
    let mut at = src;
    let mut names = vec![topology.node(src).name.clone()];
    for id in path {
        assert_eq!(topology.link(*id).from, at);
        at = topology.link(*id).to;
        names.push(topology.node(at).name.clone());
    }
    assert_eq!(at, dst);
    names
}

fn route(topology: &Topology, router: &Router, src: usize, dst: usize, hash: u32) -> Option<Vec<String>> {
    let (src, dst) = (topology.host(src), topology.host(dst));
    let mut path = vec![LinkId(7)];
    match router.path(src, dst, hash, &mut path) {
        Ok(()) => Some(nodes(topology, src, dst, &path)),
        Err(error) => {
            assert_eq!(error, NoPath { src, dst });
            assert!(path.is_empty());
            None
        }
    }
}

/// Links of a path in a fat tree: 2 under one edge switch, 4 within a pod, 6 between pods.
fn fat_tree_hops(k: usize, src: usize, dst: usize) -> usize {
    let (edge, pod) = (k / 2, k * k / 4);
    if src / edge == dst / edge {
        2
    } else if src / pod == dst / pod {
        4
    } else {
        6
    }
}

#[test]
fn every_path_in_a_fat_tree_is_as_short_as_it_can_be() {
    for (k, routing) in [(4, Routing::SinglePath), (4, Routing::Ecmp), (6, Routing::SinglePath), (6, Routing::Ecmp)] {
        let topology = Topology::fat_tree(k as u64, plain).unwrap();
        let router = Router::new(&topology, routing);
        for src in 0..topology.n_hosts() {
            for dst in (0..topology.n_hosts()).filter(|dst| *dst != src) {
                let names = route(&topology, &router, src, dst, (src * 977 + dst) as u32).unwrap();
                assert_eq!(names.len() - 1, fat_tree_hops(k, src, dst), "{names:?}");
            }
        }
    }
}

/// The path that breadth-first search from `src` finds first, with links in their order; written independently of the
/// router, over all nodes.
fn first_found(topology: &Topology, src: NodeId, dst: NodeId) -> Vec<LinkId> {
    let mut found_by = BTreeMap::from([(src, None)]);
    let mut queue = std::collections::VecDeque::from([src]);
    while let Some(at) = queue.pop_front() {
        for id in topology.out_links(at) {
            let to = topology.link(*id).to;
            found_by.entry(to).or_insert_with(|| {
                queue.push_back(to);
                Some(*id)
            });
        }
    }
    let mut path = Vec::new();
    let mut at = dst;
    while let Some(id) = found_by[&at] {
        path.push(id);
        at = topology.link(id).from;
    }
    path.reverse();
    path
}

#[test]
fn single_path_is_what_breadth_first_search_finds_first() {
    let topologies = [
        Topology::fat_tree(4, plain).unwrap(),
        Topology::leaf_spine(3, 4, 2, plain).unwrap(),
        Topology::dumbbell(3, plain).unwrap(),
        grid(5),
    ];
    for topology in &topologies {
        let router = Router::new(topology, Routing::SinglePath);
        let mut path = Vec::new();
        for src in 0..topology.n_hosts() {
            for dst in (0..topology.n_hosts()).filter(|dst| *dst != src) {
                let (src, dst) = (topology.host(src), topology.host(dst));
                router.path(src, dst, 0, &mut path).unwrap();
                assert_eq!(path, first_found(topology, src, dst));
            }
        }
    }
}

/// `n` × `n` switches in a grid, a host at each, with cables in an order that is not that of the switches.
fn grid(n: usize) -> Topology {
    let cable =
        |a: String, b: String| Cable { a, b, forward: plain(LinkTier::Switches), backward: plain(LinkTier::Switches) };
    let all = || (0..n * n).map(|i| (i * 7 + 3) % (n * n));
    let mut cables: Vec<Cable> = all().map(|i| cable(format!("h{i}"), format!("s{i}"))).collect();
    cables.extend(all().filter(|i| i % n + 1 < n).map(|i| cable(format!("s{}", i + 1), format!("s{i}"))));
    cables.extend(all().filter(|i| i + n < n * n).map(|i| cable(format!("s{i}"), format!("s{}", i + n))));
    let names = |prefix: &str| (0..n * n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    Topology::explicit(&names("h"), &names("s"), &cables).unwrap()
}

#[test]
fn single_path_sends_everything_through_one_core() {
    let topology = Topology::fat_tree(6, plain).unwrap();
    let router = Router::new(&topology, Routing::SinglePath);
    for src in 0..54 {
        for dst in (0..54).filter(|dst| fat_tree_hops(6, src, *dst) == 6) {
            let names = route(&topology, &router, src, dst, (src * 54 + dst) as u32).unwrap();
            assert_eq!(names[3], "c1");
        }
    }
}

#[test]
fn equal_cost_multipath_spreads_flows_evenly_over_all_cores() {
    let topology = Topology::fat_tree(6, plain).unwrap();
    let router = Router::new(&topology, Routing::Ecmp);
    let mut flows_by_core = BTreeMap::new();
    for hash in 0..9000 {
        let names = route(&topology, &router, 0, 53, hash).unwrap();
        *flows_by_core.entry(names[3].clone()).or_insert(0u32) += 1;
    }
    assert_eq!(flows_by_core.len(), topology.count(Tier::Core));
    // 9 cores, 1000 flows each, standard deviation 30.
    assert!(flows_by_core.values().all(|flows| (880..1120).contains(flows)), "{flows_by_core:?}");
    assert_eq!(route(&topology, &router, 0, 53, 17), route(&topology, &router, 0, 53, 17));
}

#[test]
fn switches_choose_independently_of_each_other() {
    // With one choice for all switches, flows would use only 3 of the 9 paths over aggregation and core.
    let topology = Topology::fat_tree(6, plain).unwrap();
    let router = Router::new(&topology, Routing::Ecmp);
    let mut ways = BTreeMap::new();
    for hash in 0..900 {
        let names = route(&topology, &router, 0, 53, hash).unwrap();
        *ways.entry((names[2].clone(), names[3].clone())).or_insert(0u32) += 1;
    }
    assert_eq!(ways.len(), 9, "{ways:?}");
}

#[test]
fn paths_avoid_failed_links_and_return_to_restored_ones() {
    let topology = Topology::fat_tree(4, plain).unwrap();
    let mut router = Router::new(&topology, Routing::SinglePath);
    let link = |name: &str| topology.find_link(name).unwrap();
    let usual = route(&topology, &router, 0, 15, 0).unwrap();
    assert_eq!(usual, ["h1", "e1", "a1", "c1", "a7", "e8", "h16"]);
    router.fail(link("a1->c1"));
    assert_eq!(route(&topology, &router, 0, 15, 0).unwrap()[3], "c2");
    router.fail(link("e1->a1"));
    assert_eq!(route(&topology, &router, 0, 15, 0).unwrap()[2..5], ["a2", "c3", "a8"]);
    // One direction has failed; the other still works.
    assert_eq!(route(&topology, &router, 15, 0, 0).unwrap()[3], "c1");
    router.fail(link("e1->a2"));
    assert_eq!(route(&topology, &router, 0, 15, 0), None);
    assert_eq!(route(&topology, &router, 0, 1, 0).unwrap().len(), 3, "below the edge switch nothing has failed");
    for name in ["e1->a2", "e1->a1", "a1->c1"] {
        router.restore(link(name));
    }
    assert_eq!(route(&topology, &router, 0, 15, 0).unwrap(), usual);
}

#[test]
fn multipath_uses_what_is_left() {
    let topology = Topology::leaf_spine(2, 3, 1, plain).unwrap();
    let mut router = Router::new(&topology, Routing::Ecmp);
    router.fail(topology.find_link("s2->l2").unwrap());
    let mut spines = BTreeMap::new();
    for hash in 0..1000 {
        *spines.entry(route(&topology, &router, 0, 1, hash).unwrap()[2].clone()).or_insert(0u32) += 1;
    }
    assert_eq!(spines.keys().collect::<Vec<_>>(), ["s1", "s3"]);
    assert!(spines.values().all(|flows| (420..580).contains(flows)), "{spines:?}");
}

#[test]
fn a_host_without_its_cable_is_cut_off() {
    let topology = Topology::star(3, plain).unwrap();
    let mut router = Router::new(&topology, Routing::SinglePath);
    router.fail(topology.find_link("h1->s1").unwrap());
    assert_eq!(route(&topology, &router, 0, 1, 0), None);
    assert_eq!(route(&topology, &router, 1, 0, 0).unwrap(), ["h2", "s1", "h1"]);
    router.fail(topology.find_link("s1->h3").unwrap());
    assert_eq!(route(&topology, &router, 1, 2, 0), None);
}

#[test]
fn there_is_no_path_to_oneself_or_to_a_switch() {
    let topology = Topology::star(2, plain).unwrap();
    let router = Router::new(&topology, Routing::SinglePath);
    assert_eq!(route(&topology, &router, 1, 1, 0), None);
    let switch = topology.find_node("s1").unwrap();
    assert!(router.path(switch, topology.host(0), 0, &mut Vec::new()).is_err());
    assert!(router.path(topology.host(0), switch, 0, &mut Vec::new()).is_err());
}

#[test]
fn two_hosts_on_one_cable_reach_each_other() {
    let cable = Cable {
        a: "x".to_string(),
        b: "y".to_string(),
        forward: plain(LinkTier::FromHost),
        backward: plain(LinkTier::FromHost),
    };
    let topology = Topology::explicit(&["x".to_string(), "y".to_string()], &[], &[cable]).unwrap();
    let router = Router::new(&topology, Routing::Ecmp);
    assert_eq!(route(&topology, &router, 0, 1, 0).unwrap(), ["x", "y"]);
    assert_eq!(route(&topology, &router, 1, 0, 0).unwrap(), ["y", "x"]);
}

/// Paths in trees of 128 and 1024 hosts: of 8 ways up from a host's switch in the large one, instead of 4.
#[test]
fn a_scale_model_has_as_many_ways_as_the_large_tree_and_uses_all_links_alike() {
    let topology = Topology::fat_tree(8, plain).unwrap();
    let router = Router::new(&topology, Routing::ScaledFatTree { k: 16 });
    let place = |link: LinkId| (topology.link(link).tier, topology.node(topology.link(link).from).tier);
    let along = [
        (LinkTier::FromHost, Tier::Host),
        (LinkTier::EdgeAggregation, Tier::Edge),
        (LinkTier::AggregationCore, Tier::Aggregation),
        (LinkTier::AggregationCore, Tier::Core),
        (LinkTier::EdgeAggregation, Tier::Aggregation),
        (LinkTier::ToHost, Tier::Edge),
    ];
    let (mut onward, mut before) = (BTreeMap::new(), BTreeMap::new());
    let mut path = Vec::new();
    for (src, hash) in (0..128).flat_map(|src| (0..600).map(move |hash| (src, hash))) {
        let dst = (src + 1 + hash as usize % 127) % 128;
        router.path(topology.host(src), topology.host(dst), hash, &mut path).unwrap();
        if path.len() == 6 {
            assert_eq!(path.iter().map(|link| place(*link)).collect::<Vec<_>>(), along);
            // between the cores' two tiers any link leads to any
            for (from, to) in [(0, 1), (1, 2), (3, 4), (4, 5)] {
                onward.entry(path[from]).or_insert_with(BTreeSet::new).insert(path[to]);
                before.entry(path[to]).or_insert_with(BTreeSet::new).insert(path[from]);
            }
        }
    }
    // each of 128 links, in each of four places
    assert_eq!((onward.len(), before.len()), (4 * 128, 4 * 128));
    assert!(onward.values().chain(before.values()).all(|links| links.len() == 8));
}

#[test]
fn hosts_of_a_scale_model_are_as_far_apart_as_those_of_the_large_tree() {
    let topology = Topology::fat_tree(10, plain).unwrap();
    let router = Router::new(&topology, Routing::ScaledFatTree { k: 16 });
    let hops = |src: usize, dst: usize| {
        let mut path = Vec::new();
        router.path(topology.host(src), topology.host(dst), (src * 250 + dst) as u32, &mut path).unwrap();
        path.len()
    };
    let mut pairs = [0; 3];
    for (src, dst) in (0..250).flat_map(|src| (0..src).map(move |dst| (src, dst))) {
        assert_eq!(hops(src, dst), hops(dst, src));
        pairs[hops(src, dst) / 2 - 1] += 1;
    }
    // of 31,125 pairs 7 of 1,023 are in one rack and 56 of 1,023 in one pod but not in one rack: 213 and 1,704, with standard deviations
    // of 15 and 40
    assert_eq!(pairs.iter().sum::<i32>(), 31_125);
    assert!((168..258).contains(&pairs[0]) && (1_584..1_824).contains(&pairs[1]), "{pairs:?}");
    assert!(router.path(topology.host(3), topology.host(3), 1, &mut Vec::new()).is_err());
}
