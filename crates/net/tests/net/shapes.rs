//! Data-center networks against the formulas of their papers: hosts, switches, cables, diameter, bisection, paths.
#![allow(clippy::print_stdout, reason = "the figures stand side by side in the test's output")]

use crate::common;
use net::{LinkId, LinkTier, NodeId, NodeKind, QueueSpec, Router, Routing, Shape, Topology};
use std::collections::{BTreeSet, VecDeque};
use units::{Rate, Time};

fn build(shape: Shape) -> Topology {
    Topology::shaped(shape, |_| common::params(Rate::from_gbps(10), QueueSpec::drop_tail(100))).unwrap()
}

fn vl2(aggregation_ports: u32, intermediate_ports: u32, hosts_per_tor: u32) -> Shape {
    Shape::Vl2 { aggregation_ports, intermediate_ports, hosts_per_tor }
}

fn bcube(n: u32, k: u32) -> Shape {
    Shape::BCube { n, k, forwarding_delay: Time::ZERO }
}

fn dcell(n: u32, l: u32) -> Shape {
    Shape::DCell { n, l, forwarding_delay: Time::ZERO }
}

fn jellyfish(switches: u32, ports: u32, hosts_per_switch: u32) -> Shape {
    Shape::Jellyfish { switches, ports, hosts_per_switch, seed: 1 }
}

fn dragonfly(hosts_per_switch: u32, switches_per_group: u32, global_ports: u32) -> Shape {
    Shape::Dragonfly { hosts_per_switch, switches_per_group, global_ports }
}

/// Longest of the shortest paths between hosts, as links or, where servers forward, as servers that a packet reaches.
fn diameter(topology: &Topology) -> usize {
    let longest = |from: usize| {
        let cost = |to: NodeId| {
            let is_host = topology.node(to).kind == NodeKind::Host;
            usize::from(!topology.servers_forward() || is_host)
        };
        let mut distances = vec![usize::MAX; topology.nodes().len()];
        distances[from] = 0;
        let mut open = VecDeque::from([NodeId(from as u32)]);
        while let Some(at) = open.pop_front() {
            for link in topology.out_links(at) {
                let to = topology.link(*link).to;
                let way = distances[at.index()] + cost(to);
                if way < distances[to.index()] {
                    distances[to.index()] = way;
                    if cost(to) == 0 { open.push_front(to) } else { open.push_back(to) }
                }
            }
        }
        distances[..topology.n_hosts()].iter().copied().max().unwrap()
    };
    (0..topology.n_hosts()).map(longest).max().unwrap()
}

/// The fewest cables between switches (and, where servers forward, of servers) that part one half of the hosts from the other:
/// by the greatest flow. Hosts are halved by number; a group in the middle belongs to neither half.
fn bisection(topology: &Topology, groups: u128) -> usize {
    let hosts = topology.n_hosts();
    let group = hosts / groups as usize;
    let left = hosts / group / 2 * group;
    // a host's only cable is no part of the network's
    let unlimited = |link: LinkId| {
        let tier = topology.link(link).tier;
        !topology.servers_forward() && matches!(tier, LinkTier::FromHost | LinkTier::ToHost)
    };
    let mut room: Vec<usize> =
        (0..topology.links().len() as u32).map(|link| if unlimited(LinkId(link)) { 1 << 20 } else { 1 }).collect();
    let mut flow = 0;
    loop {
        let mut came: Vec<Option<LinkId>> = vec![None; topology.nodes().len()];
        let mut seen = vec![false; topology.nodes().len()];
        let mut open: VecDeque<NodeId> = (0..left).map(|host| topology.host(host)).collect();
        for host in &open {
            seen[host.index()] = true;
        }
        let mut end = None;
        while let Some(at) = open.pop_front() {
            if at.index() >= hosts - left && at.index() < hosts {
                end = Some(at);
                break;
            }
            for &link in topology.out_links(at) {
                let to = topology.link(link).to;
                if room[link.index()] > 0 && !std::mem::replace(&mut seen[to.index()], true) {
                    came[to.index()] = Some(link);
                    open.push_back(to);
                }
            }
        }
        let Some(mut at) = end else { return flow };
        while let Some(link) = came[at.index()] {
            room[link.index()] -= 1;
            room[link.reverse().index()] += 1;
            at = topology.link(link).from;
        }
        flow += 1;
    }
}

#[test]
fn trees_have_the_bisection_of_their_formulas() {
    let params = |_| common::params(Rate::from_gbps(10), QueueSpec::drop_tail(100));
    for k in [4, 6, 8] {
        let topology = Topology::fat_tree(k, params).unwrap();
        let cut = bisection(&topology, u128::from(k));
        println!("fat tree k {k}: bisection {cut} = {}, diameter {} = 6", k * k * k / 8, diameter(&topology));
        assert_eq!((cut as u64, diameter(&topology)), (k * k * k / 8, 6));
    }
    // oversubscribed by 2, 4 and 3
    for (leaves, spines, hosts) in [(4, 4, 8), (8, 2, 8), (6, 2, 6)] {
        let topology = Topology::leaf_spine(leaves, spines, hosts, params).unwrap();
        let cut = bisection(&topology, u128::from(leaves));
        println!("leaf-spine {leaves} {spines} {hosts}: bisection {cut} = {}", leaves * spines / 2);
        assert_eq!((cut as u64, diameter(&topology)), (leaves * spines / 2, 4));
    }
}

struct Formula {
    hosts: usize,
    switches: usize,
    cables: usize,
    diameter: usize,
    bisection: usize,
}

fn check(shape: Shape, paper: &Formula) {
    let topology = build(shape);
    let (diameter, bisection) = (diameter(&topology), bisection(&topology, shape.groups()));
    let switches = topology.nodes().len() - topology.n_hosts();
    println!(
        "{shape:?}: hosts {} = {}, switches {switches} = {}, cables {} = {}, diameter {diameter} = {}, bisection {bisection} = {}",
        topology.n_hosts(),
        paper.hosts,
        paper.switches,
        topology.links().len() / 2,
        paper.cables,
        paper.diameter,
        paper.bisection
    );
    assert_eq!(topology.n_hosts(), paper.hosts, "{shape:?}");
    assert_eq!(switches, paper.switches, "{shape:?}");
    assert_eq!(topology.links().len() / 2, paper.cables, "{shape:?}");
    assert_eq!(
        (shape.hosts(), shape.switches(), shape.cables()),
        (paper.hosts as u128, switches as u128, paper.cables as u128)
    );
    assert_eq!(diameter, paper.diameter, "{shape:?}");
    assert_eq!(bisection, paper.bisection, "{shape:?}");
}

#[test]
fn vl2_has_its_papers_numbers() {
    for (da, di, s) in [(4, 4, 20), (8, 8, 5), (12, 8, 4)] {
        let tors = (da * di / 4) as usize;
        let formula = Formula {
            hosts: tors * s as usize,
            switches: tors + di as usize + da as usize / 2,
            cables: tors * s as usize + 2 * tors + (da * di / 2) as usize,
            // host, ToR, aggregation, intermediate, aggregation, ToR, host
            diameter: 6,
            // all uplinks of half of the ToRs
            bisection: tors,
        };
        check(vl2(da, di, s), &formula);
    }
}

#[test]
fn bcube_has_its_papers_numbers() {
    for (n, k) in [(4usize, 1u32), (4, 2), (8, 1)] {
        let hosts = n.pow(k + 1);
        let formula = Formula {
            hosts,
            switches: (k as usize + 1) * n.pow(k),
            cables: (k as usize + 1) * hosts,
            diameter: k as usize + 1,
            // half of the ports of the highest level
            bisection: hosts / 2,
        };
        check(bcube(n as u32, k), &formula);
    }
}

#[test]
fn dcell_has_its_papers_numbers() {
    for (n, l) in [(4u32, 1u32), (6, 1), (2, 2)] {
        let servers = (0..l).fold(n as usize, |t, _| t * (t + 1));
        let shape = dcell(n, l);
        let topology = build(shape);
        let (diameter, bisection) = (diameter(&topology), bisection(&topology, shape.groups()));
        let switches = topology.nodes().len() - topology.n_hosts();
        // theorem of the paper: at least t / (4 log_n t) times the bisection of an embedded complete graph
        let least = servers as f64 / (4.0 * (servers as f64).ln() / f64::from(n).ln());
        println!(
            "DCell n {n} l {l}: hosts {} = {servers}, switches {switches} = {}, cables {} = {}, diameter {diameter} <= {}, \
             bisection {bisection} > {least:.1}",
            topology.n_hosts(),
            servers / n as usize,
            topology.links().len() / 2,
            servers + servers * l as usize / 2,
            (1 << (l + 1)) - 1
        );
        assert_eq!(topology.n_hosts(), servers);
        assert_eq!(switches, servers / n as usize);
        assert_eq!(topology.links().len() / 2, servers + servers * l as usize / 2);
        assert!(diameter < 1 << (l + 1));
        assert!(bisection as f64 > least);
    }
}

#[test]
fn dragonfly_has_its_papers_numbers() {
    for (p, a, h) in [(2u32, 4u32, 2u32), (1, 2, 1), (3, 6, 3)] {
        let groups = (a * h + 1) as usize;
        let switches = groups * a as usize;
        let formula = Formula {
            hosts: switches * p as usize,
            switches,
            cables: switches * p as usize + groups * (a * (a - 1) / 2) as usize + groups * (groups - 1) / 2,
            // local, global, local, and the two of the hosts
            diameter: 5,
            // a cable between each two groups, one group in the middle, by which each of the others has one more
            bisection: (groups / 2) * (groups / 2) + groups / 2,
        };
        check(dragonfly(p, a, h), &formula);
    }
}

#[test]
fn a_jellyfish_is_a_connected_regular_graph_of_its_seed() {
    for (n, ports, hosts) in [(20u32, 8u32, 3u32), (40, 8, 4), (60, 12, 4)] {
        let shape = jellyfish(n, ports, hosts);
        let topology = build(shape);
        let degree = (ports - hosts) as usize;
        let free = (topology.n_hosts()..topology.nodes().len())
            .map(|switch| ports as usize - topology.out_links(NodeId(switch as u32)).len())
            .sum::<usize>();
        assert!(free <= 1, "{free} ports are free");
        assert_eq!(topology, build(shape));
        assert_ne!(topology, build(Shape::Jellyfish { switches: n, ports, hosts_per_switch: hosts, seed: 2 }));
        let ends: BTreeSet<_> = topology.links().iter().map(|link| (link.from, link.to)).collect();
        assert_eq!(ends.len(), topology.links().len(), "no two cables join the same switches");
        // Bollobás 1988, as the paper cites it: nearly every such graph has at least this bisection
        let (n, r) = (f64::from(n), degree as f64);
        let least = n * (r / 4.0 - (r * std::f64::consts::LN_2).sqrt() / 2.0);
        let (diameter, bisection) = (diameter(&topology), bisection(&topology, shape.groups()));
        println!(
            "{shape:?}: cables {}, diameter {diameter}, bisection {bisection} >= {least:.1}",
            topology.links().len() / 2
        );
        assert!(bisection as f64 >= least);
        // log_(r-1) of the switches, and a little, between switches
        let most = ((n.ln() / (r - 1.0).ln()).ceil() as usize) + 1 + 2;
        assert!(diameter <= most, "{diameter} of {most}");
    }
}

fn path(router: &Router, topology: &Topology, pair: (usize, usize), hash: u32) -> Vec<NodeId> {
    let mut links = Vec::new();
    router.path(topology.host(pair.0), topology.host(pair.1), hash, &mut links).unwrap();
    let mut nodes = vec![topology.link(links[0]).from];
    for link in links {
        assert_eq!(topology.link(link).from, nodes[nodes.len() - 1]);
        nodes.push(topology.link(link).to);
    }
    assert_eq!((nodes[0], nodes[nodes.len() - 1]), (topology.host(pair.0), topology.host(pair.1)));
    nodes
}

fn pairs(topology: &Topology) -> impl Iterator<Item = (usize, usize)> {
    let n = topology.n_hosts();
    (0..n).flat_map(move |a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b)
}

#[test]
fn bcube_corrects_one_digit_after_the_other_and_ecmp_takes_the_orders_in_turn() {
    let topology = build(bcube(4, 2));
    let first = Router::new(&topology, Routing::SinglePath);
    let spread = Router::new(&topology, Routing::Ecmp);
    for (a, b) in pairs(&topology) {
        let differ = [1, 4, 16].iter().filter(|stride| a / *stride % 4 != b / *stride % 4).count();
        assert_eq!(path(&first, &topology, (a, b), 0).len(), 1 + 2 * differ);
        let paths: BTreeSet<_> = (0..64).map(|hash| path(&spread, &topology, (a, b), hash)).collect();
        assert_eq!(paths.len(), differ, "as many parallel shortest paths as digits differ");
        let inner: Vec<NodeId> = paths.iter().flat_map(|path| path[1..path.len() - 1].to_vec()).collect();
        assert_eq!(inner.iter().collect::<BTreeSet<_>>().len(), inner.len(), "they share no node");
    }
    // from 000 to 321, the highest digit first: by h49 = 300 and h57 = 320
    let nodes = path(&first, &topology, (0, 57), 0);
    let names: Vec<&str> = nodes.iter().step_by(2).map(|node| topology.node(*node).name.as_str()).collect();
    assert_eq!(names, ["h1", "h49", "h57", "h58"]);
}

#[test]
fn bcube_and_dcell_go_around_links_that_are_down() {
    for shape in [bcube(4, 1), dcell(4, 1)] {
        let topology = build(shape);
        for (a, b) in [(0, 5), (0, 15), (3, 12), (0, 1)] {
            let mut router = Router::new(&topology, Routing::SinglePath);
            let mut links = Vec::new();
            router.path(topology.host(a), topology.host(b), 0, &mut links).unwrap();
            router.fail(links[0]);
            let around = path(&router, &topology, (a, b), 0);
            assert_ne!(around[1], topology.link(links[0]).to, "{shape:?} {a} {b}");
            router.restore(links[0]);
            let mut again = Vec::new();
            router.path(topology.host(a), topology.host(b), 0, &mut again).unwrap();
            assert_eq!(again, links);
        }
    }
}

#[test]
fn dcell_routes_over_the_cable_between_two_parts_and_keeps_to_its_bound() {
    for (n, l) in [(4, 1), (2, 2), (3, 2)] {
        let topology = build(dcell(n, l));
        let router = Router::new(&topology, Routing::Ecmp);
        let mut longest = 0;
        for pair in pairs(&topology) {
            let nodes = path(&router, &topology, pair, 0);
            let hops = nodes.iter().skip(1).filter(|node| topology.node(**node).kind == NodeKind::Host).count();
            assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len(), "no node twice");
            longest = longest.max(hops);
        }
        println!("DCell n {n} l {l}: the longest route has {longest} hops = {}", (1 << (l + 1)) - 1);
        assert_eq!(longest, (1 << (l + 1)) - 1, "theorem of the paper, for DCellRouting");
    }
}

#[test]
fn valiant_passes_a_random_intermediate_switch_each_as_often() {
    let topology = build(vl2(8, 4, 2));
    let router = Router::new(&topology, Routing::Valiant);
    let mut seen = [0; 4];
    for hash in 0..4000 {
        // ToRs of the same pair of aggregation switches: the shortest path would not leave the pair
        let nodes = path(&router, &topology, (0, 2), hash);
        assert_eq!(nodes.len(), 7);
        let via = topology.node(nodes[3]).name.strip_prefix('i').expect("an intermediate switch");
        seen[via.parse::<usize>().unwrap() - 1] += 1;
    }
    assert!(seen.iter().all(|times| (900..1100).contains(times)), "{seen:?}");
    assert_eq!(path(&router, &topology, (0, 1), 0).len(), 3, "within a ToR there is no detour");
    // 2 aggregation switches up, 4 intermediates, 2 down
    let ways = router.ways(topology.host(0), topology.host(2), 0, 256);
    assert_eq!(ways.len(), 16);
    assert!(ways.iter().all(|way| (way.share - 1.0 / 16.0).abs() < 1e-12 && way.links.len() == 6));
}

#[test]
fn weighted_ecmp_follows_the_rates_of_links_and_ways_have_these_shares() {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let cable = |a: &str, b: &str, gbps| {
        let params = common::params(Rate::from_gbps(gbps), QueueSpec::drop_tail(100));
        net::Cable { a: a.into(), b: b.into(), forward: params, backward: params }
    };
    let cables = [
        cable("a", "x", 10),
        cable("x", "u", 30),
        cable("x", "v", 10),
        cable("u", "y", 30),
        cable("v", "y", 10),
        cable("y", "b", 10),
    ];
    let topology = Topology::explicit(&names(&["a", "b"]), &names(&["x", "y", "u", "v"]), &cables).unwrap();
    let router = Router::new(&topology, Routing::Weighted);
    let u = topology.find_node("u").unwrap();
    let by_u = (0..4000).filter(|hash| path(&router, &topology, (0, 1), *hash).contains(&u)).count();
    assert!((2900..3100).contains(&by_u), "{by_u} of 4000 by the link of three quarters");
    let shares: Vec<f64> =
        router.ways(topology.host(0), topology.host(1), 0, 256).iter().map(|way| way.share).collect();
    assert_eq!(shares, [0.75, 0.25]);
    // more ways than are wanted: so many are drawn
    assert_eq!(router.ways(topology.host(0), topology.host(1), 0, 1).len(), 1);
}

#[test]
fn numbers_that_make_no_network_are_refused_with_their_key() {
    for (shape, key, words) in [
        (vl2(5, 4, 1), "aggregation_ports", "even"),
        (vl2(4, 3, 1), "intermediate_ports", "even"),
        (vl2(4, 4, 0), "hosts_per_tor", "at least 1"),
        (bcube(1, 1), "n", "at least 2"),
        (bcube(1000, 9), "n", "too many"),
        (dcell(10, 20), "n", "too many"),
        (jellyfish(4, 8, 4), "switches", "more than 4"),
        (jellyfish(9, 4, 2), "ports", "at least 3"),
        (jellyfish(9, 4, 0), "hosts_per_switch", "at least one"),
        (dragonfly(1, 0, 1), "switches_per_group", "at least 1"),
        (dragonfly(100, 1000, 1000), "switches_per_group", "too many"),
    ] {
        let (at, fault) = shape.fault().unwrap_or_else(|| panic!("{shape:?} is refused"));
        assert_eq!(at, key, "{fault}");
        assert!(fault.contains(words), "{fault}");
    }
}
