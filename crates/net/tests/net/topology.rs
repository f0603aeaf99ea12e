//! The kinds of network, and the errors of impossible ones.

use crate::common;
use net::{Cable, LinkParams, LinkTier, NetError, NodeKind, QueueSpec, Tier, Topology};
use std::collections::BTreeSet;
use units::{Rate, Time};

fn plain(_: LinkTier) -> LinkParams {
    common::params(Rate::from_gbps(10), QueueSpec::drop_tail(100))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn cables(pairs: &[(&str, &str)]) -> Vec<Cable> {
    let cable = |(a, b): &(&str, &str)| Cable {
        a: (*a).to_string(),
        b: (*b).to_string(),
        forward: plain(LinkTier::Switches),
        backward: plain(LinkTier::Switches),
    };
    pairs.iter().map(cable).collect()
}

#[test]
fn a_fat_tree_has_its_number_of_everything() {
    // k: hosts k³/4, edge and aggregation k²/2 each, core k²/4, cables 3 k³/4.
    for (k, hosts, edges, cores) in [(2, 2, 2, 1), (4, 16, 8, 4), (6, 54, 18, 9), (16, 1024, 128, 64)] {
        let topology = Topology::fat_tree(k, plain).unwrap();
        assert_eq!(topology.n_hosts(), hosts);
        assert_eq!(topology.count(Tier::Host), hosts);
        assert_eq!(topology.count(Tier::Edge), edges);
        assert_eq!(topology.count(Tier::Aggregation), edges);
        assert_eq!(topology.count(Tier::Core), cores);
        assert_eq!(topology.links().len(), 2 * 3 * hosts);
        for (i, node) in topology.nodes().iter().enumerate() {
            let ports = topology.out_links(net::NodeId(i as u32)).len() as u64;
            assert_eq!(ports, if node.kind == NodeKind::Host { 1 } else { k }, "{}", node.name);
        }
    }
}

#[test]
fn aggregation_j_of_every_pod_connects_to_core_group_j() {
    let topology = Topology::fat_tree(4, plain).unwrap();
    let neighbours = |name: &str| -> BTreeSet<&str> {
        let node = topology.find_node(name).unwrap();
        topology.out_links(node).iter().map(|id| topology.node(topology.link(*id).to).name.as_str()).collect()
    };
    assert_eq!(neighbours("a1"), BTreeSet::from(["e1", "e2", "c1", "c2"]));
    assert_eq!(neighbours("a2"), BTreeSet::from(["e1", "e2", "c3", "c4"]));
    assert_eq!(neighbours("a7"), BTreeSet::from(["e7", "e8", "c1", "c2"]));
    assert_eq!(neighbours("e8"), BTreeSet::from(["a7", "a8", "h15", "h16"]));
    assert_eq!(neighbours("c3"), BTreeSet::from(["a2", "a4", "a6", "a8"]));
}

#[test]
fn the_links_of_a_cable_are_neighbours() {
    let topology = Topology::fat_tree(4, plain).unwrap();
    for i in 0..topology.links().len() as u32 {
        let id = net::LinkId(i);
        let (there, back) = (topology.link(id), topology.link(id.reverse()));
        assert_eq!((there.from, there.to), (back.to, back.from));
        assert_eq!(topology.find_link(&topology.link_name(id)), Some(id));
    }
    let nic = topology.nic(topology.host(2));
    assert_eq!(topology.link_name(nic), "h3->e2");
    assert_eq!(topology.find_link("h3->e1"), None);
}

#[test]
fn links_are_described_by_tier_and_direction() {
    let params = |tier| LinkParams {
        rate: if tier == LinkTier::Bottleneck { Rate::from_mbps(10) } else { Rate::from_gbps(1) },
        delay: Time::from_us(1),
        queue: if tier == LinkTier::FromHost { QueueSpec::unlimited() } else { QueueSpec::drop_tail(50) },
    };
    let topology = Topology::dumbbell(3, params).unwrap();
    assert_eq!((topology.n_hosts(), topology.nodes().len(), topology.links().len()), (6, 8, 14));
    let link = |name: &str| topology.link(topology.find_link(name).unwrap()).clone();
    assert_eq!(link("s1->s2").rate, Rate::from_mbps(10));
    assert_eq!(link("s2->s1").tier, LinkTier::Bottleneck);
    assert_eq!(link("left3->s1").queue, QueueSpec::unlimited());
    assert_eq!(link("s2->right1").queue, QueueSpec::drop_tail(50));
    assert_eq!(topology.node(topology.host(3)).name, "right1", "the partner of left1");
}

#[test]
fn leaf_spine_and_star_have_their_number_of_everything() {
    let topology = Topology::leaf_spine(4, 2, 8, plain).unwrap();
    assert_eq!((topology.count(Tier::Host), topology.count(Tier::Leaf), topology.count(Tier::Spine)), (32, 4, 2));
    assert_eq!(topology.links().len(), 2 * (32 + 4 * 2));
    assert_eq!(topology.link_name(topology.nic(topology.host(31))), "h32->l4");
    let topology = Topology::star(5, plain).unwrap();
    assert_eq!((topology.count(Tier::Host), topology.count(Tier::Switch), topology.links().len()), (5, 1, 10));
}

#[test]
fn any_network_can_be_given_cable_by_cable() {
    let pairs = [("x", "sw"), ("sw", "y"), ("sw", "far"), ("far", "z")];
    let topology = Topology::explicit(&names(&["x", "y", "z"]), &names(&["sw", "far"]), &cables(&pairs)).unwrap();
    let tier = |name: &str| topology.link(topology.find_link(name).unwrap()).tier;
    assert_eq!(tier("x->sw"), LinkTier::FromHost);
    assert_eq!(tier("y->sw"), LinkTier::FromHost);
    assert_eq!(tier("sw->y"), LinkTier::ToHost);
    assert_eq!(tier("sw->far"), LinkTier::Switches);
    assert_eq!(topology.link_name(topology.nic(topology.host(2))), "z->far");
}

#[test]
fn impossible_networks_are_refused_before_memory_is_allocated() {
    let huge = 1_000_000_000_000;
    assert_eq!(Topology::fat_tree(5, plain), Err(NetError::FatTreePorts(5)));
    assert_eq!(Topology::fat_tree(0, plain), Err(NetError::FatTreePorts(0)));
    assert!(matches!(Topology::fat_tree(16_000, plain), Err(NetError::TooManyNodes(1_024_320_000_000))));
    assert!(matches!(Topology::fat_tree(u64::MAX - 1, plain), Err(NetError::TooManyNodes(_))));
    assert!(matches!(Topology::leaf_spine(huge, huge, huge, plain), Err(NetError::TooManyNodes(_))));
    assert!(matches!(Topology::leaf_spine(u64::MAX, u64::MAX, u64::MAX, plain), Err(NetError::TooManyNodes(_))));
    // Few nodes, but each leaf with each spine.
    assert_eq!(Topology::leaf_spine(1 << 18, 1 << 18, 1, plain), Err(NetError::TooManyCables((1 << 36) + (1 << 18))));
    assert_eq!(Topology::leaf_spine(2, 0, 2, plain), Err(NetError::Zero("spine switches")));
    assert!(matches!(Topology::star(huge, plain), Err(NetError::TooManyNodes(_))));
    assert_eq!(Topology::star(0, plain), Err(NetError::Zero("hosts")));
    assert!(matches!(Topology::dumbbell(u64::MAX, plain), Err(NetError::TooManyNodes(_))));
    assert_eq!(Topology::dumbbell(0, plain), Err(NetError::Zero("pairs of hosts")));
    // The smallest fat tree of over 2^20 nodes: 1,024,000 + 32,000.
    assert!(matches!(Topology::fat_tree(160, plain), Err(NetError::TooManyNodes(1_056_000))));
}

#[test]
fn mistakes_in_a_list_of_cables_are_named() {
    let message = |hosts: &[&str], switches: &[&str], pairs: &[(&str, &str)]| {
        Topology::explicit(&names(hosts), &names(switches), &cables(pairs)).unwrap_err().to_string()
    };
    assert!(message(&[], &["s"], &[]).contains("hosts is zero"));
    assert!(message(&["a", "b"], &["s"], &[("a", "s"), ("b", "t")]).contains("`t`"));
    assert!(message(&["a", "b"], &["a"], &[("a", "b")]).contains("two nodes are called `a`"));
    assert!(message(&["a"], &["s"], &[("a", "s"), ("s", "s")]).contains("`s` to itself"));
    assert!(message(&["a"], &["s", "t"], &[("a", "s"), ("s", "t"), ("t", "s")]).contains("sum of their rates"));
    assert!(message(&["a", "b"], &["s"], &[("a", "s")]).contains("host `b` has 0 cables"));
    assert!(message(&["a", "b"], &["s"], &[("a", "s"), ("a", "b")]).contains("host `a` has 2 cables"));
    let apart = message(&["a", "b"], &["s", "t"], &[("a", "s"), ("b", "t")]);
    assert!(apart.contains("no path from `a` to `b`"), "{apart}");
}
