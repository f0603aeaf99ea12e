//! How a network is cut into parts: from the scenario alone, never from the number of threads, so that results do not depend on it.
//!
//! A part is some neighbouring groups of hosts, as the shape has them (pods, leaves, ToRs, groups), with the switches that lead to no other
//! group. Above these, nothing is owned by a switch but its ports, and each port by the part that it leads to: so a packet crosses
//! once on its way, not into the switch and out of it.

use crate::setup;
use net::{LinkId, LinkSpec, NodeId, Topology};
use scenario::{Balancing, Buffer, Routing, Scenario};
use units::Time;

/// Smaller networks are not cut. On one core parts cost 12 to 20 % at 1,024 hosts, which must not slow sweeps, whose runs have a core each.
pub const HOSTS_MIN: usize = 2048;
/// About so many hosts a part of up to 16 parts, and of more. On few cores larger parts are faster; smaller ones are for more cores.
const PART_HOSTS: [usize; 2] = [256, 512];
const FEW_PARTS: usize = 16;
/// So many parts at most: more would only wait for each other.
const PARTS_MAX: usize = 64;
/// Full packets on all links of a part in a window, so that the barrier is a small part of a window's time.
const WINDOW_PACKETS: f64 = 64.0;

/// The parts of a network.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    pub parts: usize,
    /// By link.
    pub owners: Vec<u32>,
    /// How far a part may run ahead of the others: nothing in one has an effect in another sooner, by packets or by applications.
    pub window: Time,
}

impl Layout {
    /// The parts of `topology`, if `scenario` can be simulated in parts and it is worth it.
    pub fn of(scenario: &Scenario, topology: &Topology) -> Option<Layout> {
        if topology.n_hosts() < HOSTS_MIN {
            return None;
        }
        let [few, many] = PART_HOSTS.map(|hosts| topology.n_hosts() / hosts);
        let most = few.min(FEW_PARTS).max(many).min(PARTS_MAX);
        let layout = Layout::with(scenario, topology, most)?;
        let packets = setup::density(topology) * layout.window.as_secs_f64();
        let worth = (packets / WINDOW_PACKETS) as usize;
        if worth < layout.parts { Layout::with(scenario, topology, worth) } else { Some(layout) }
    }

    /// At most so many parts, whose numbers of groups differ by one at most; none if there would be less than two.
    pub fn with(scenario: &Scenario, topology: &Topology, most: usize) -> Option<Layout> {
        let groups = scenario.network.topology.pods()? as usize;
        let parts = groups.min(most);
        if parts < 2 || is_whole(scenario, topology) {
            return None;
        }
        let nodes = nodes(topology, groups, parts);
        let owner = |link: &LinkSpec| {
            let ends = [link.from, link.to].map(|node| nodes[node.index()]);
            let any = link.from.0 % parts as u32;
            match ends {
                // the ports of a switch with one memory stay together
                [None, _] if scenario.network.buffer != Buffer::Private => any,
                [from, to] => from.or(to).unwrap_or(any),
            }
        };
        let owners: Vec<u32> = topology.links().iter().map(owner).collect();
        let window = window(scenario, topology, &owners);
        (window > Time::ZERO).then_some(Layout { parts, owners, window })
    }

    /// The links of each part.
    pub fn links(&self) -> Vec<Vec<LinkId>> {
        let mut links = vec![Vec::new(); self.parts];
        for (i, owner) in self.owners.iter().enumerate() {
            links[*owner as usize].push(LinkId(i as u32));
        }
        links
    }
}

/// Does something in `scenario` look at several parts at one instant? A policy sees and sets all hosts in one, an enforcer is one place on
/// many routes, ICTCP's receivers and routes that change from packet to packet act on whole routes, servers that forward and the links of a
/// scale model join all parts, and hooks in another language run on the thread that began the run.
fn is_whole(scenario: &Scenario, topology: &Topology) -> bool {
    let hooks = |cc: &scenario::Algorithm| plan::algorithm(cc).is_ok_and(congestion::Algorithm::is_registered);
    let mut algorithms = scenario.traffic.iter().map(|entry| entry.cc.as_ref().unwrap_or(&scenario.tcp.cc));
    scenario.policy.is_some()
        || !scenario.enforcer.is_empty()
        || scenario.tcp.ictcp
        || scenario.network.balancing != Balancing::Flow
        || topology.servers_forward()
        || matches!(scenario.network.routing, Routing::ScaledFatTree { .. })
        || algorithms.any(hooks)
}

/// The part of each node; none for a switch that leads to several.
fn nodes(topology: &Topology, groups: usize, parts: usize) -> Vec<Option<u32>> {
    let hosts = topology.n_hosts();
    let of_group = hosts / groups;
    let of_host = |host: usize| (host < hosts).then_some((host / of_group * parts / groups) as u32);
    let mut nodes: Vec<Option<u32>> = (0..topology.nodes().len()).map(of_host).collect();
    // from the hosts upwards: a switch whose known neighbours are in one part is in it, one with several neither is nor tells others
    let mut known: Vec<bool> = nodes.iter().map(Option::is_some).collect();
    loop {
        let found: Vec<(usize, Option<u32>)> = (hosts..nodes.len())
            .filter(|node| !known[*node])
            .filter_map(|node| {
                let links = topology.out_links(NodeId(node as u32)).iter();
                let mut below = links.filter_map(|link| nodes[topology.link(*link).to.index()]);
                let first = below.next()?;
                Some((node, below.all(|part| part == first).then_some(first)))
            })
            .collect();
        if found.is_empty() {
            return nodes;
        }
        for (node, part) in found {
            (nodes[node], known[node]) = (part, true);
        }
    }
}

/// The least time between a packet's acceptance by a link and its arrival in another part, but not more than applications take to react.
fn window(scenario: &Scenario, topology: &Topology, owners: &[u32]) -> Time {
    let framing = plan::framing_bytes(scenario);
    let crosses = |(i, link): &(usize, &LinkSpec)| {
        topology.out_links(link.to).iter().any(|onward| owners[onward.index()] != owners[*i])
    };
    let crossing = topology.links().iter().enumerate().filter(crosses);
    let least = crossing.map(|(_, link)| setup::least_time(link, framing)).min().unwrap_or(Time::NEVER);
    least.min(setup::reaction(topology, framing))
}
