//! Paths in a scale model of a fat tree: its flows come together as those of the large tree do.
//!
//! A queue grows where packets come together that arrived by different links; those of one link are already one behind the other. A
//! switch with k ports has k/2 links up and as many down, so of what leaves it by a link about 2/k came by one and the same link. In a small
//! tree that is more, as is the traffic that stays in a rack or a pod: queues of switches are shorter, fewer packets are marked or lost, and
//! windows grow.
//!
//! So a model takes from a small tree its hosts and the links of each tier, but not which link leads to which. Each link leads on
//! to as many of the next tier as in the large tree, drawn at random, and as many of one tier to each of the next. Two hosts are in one rack or
//! one pod as often as two of the large tree are.

use crate::mix::{SplitMix64, mix64};
use crate::topology::{LinkTier, Tier};
use crate::{LinkId, NodeId, Topology};

/// What the wiring is drawn with: it is the same in every run.
const WIRING: u64 = 0x5ca1_ed00;
/// What says how far two hosts are from each other.
const DISTANCE: u64 = 0xd157_a4ce;

/// The wiring of a scale model.
#[derive(Debug)]
pub struct Scaled {
    /// Up to aggregation and core, down to aggregation and edge switches.
    tiers: [Links; 4],
    /// The share of pairs of hosts of the large tree in one rack, and in one pod.
    near: [f64; 2],
}

/// The links of a tier in one direction.
#[derive(Debug)]
struct Links {
    links: Vec<LinkId>,
    /// From number `i` of the tier nearer to the hosts, ways lead to `i + steps[..]`, counted in a circle.
    steps: Vec<usize>,
}

impl Scaled {
    /// `topology`, a fat tree, as a model of one with switches of `k` ports.
    ///
    /// # Panics
    /// `k` is odd or less than 4, or the topology lacks a fat tree's tiers.
    pub fn new(topology: &Topology, k: u32) -> Scaled {
        assert!(k >= 4 && k.is_multiple_of(2), "a fat tree has switches of 4 ports or more, an even number, not {k}");
        let half = f64::from(k / 2);
        let (pod, hosts) = (half * half, half * half * f64::from(k));
        let up = |link: LinkId| matches!(topology.node(topology.link(link).from).tier, Tier::Edge);
        let ascends = |link: LinkId| matches!(topology.node(topology.link(link).to).tier, Tier::Core);
        let all = || (0..topology.links().len() as u32).map(LinkId);
        let of = |tier: LinkTier| all().filter(move |link| topology.link(*link).tier == tier);
        let (edge, core) = (LinkTier::EdgeAggregation, LinkTier::AggregationCore);
        let tiers: [Vec<LinkId>; 4] = [
            of(edge).filter(|link| up(*link)).collect(),
            of(core).filter(|link| ascends(*link)).collect(),
            of(core).filter(|link| !ascends(*link)).collect(),
            of(edge).filter(|link| !up(*link)).collect(),
        ];
        assert!(tiers.iter().all(|links| !links.is_empty()), "a fat tree has two tiers of links between switches");
        let mut number = 0;
        let tiers = tiers.map(|links| {
            number += 1;
            Links::wired(links, k as usize / 2, SplitMix64::new(WIRING, number))
        });
        Scaled { tiers, near: [(half - 1.0) / (hosts - 1.0), (pod - 1.0) / (hosts - 1.0)] }
    }

    /// Writes the links between those of the hosts `src` and `dst` to `out`.
    pub fn path(&self, src: NodeId, dst: NodeId, flow_hash: u32, out: &mut Vec<LinkId>) {
        // the same in both directions
        let pair = (u64::from(src.0.min(dst.0)) << 32) | u64::from(src.0.max(dst.0));
        let far = SplitMix64::new(DISTANCE, pair).unit();
        let [rack, pod] = self.near;
        if far < rack {
            return;
        }
        let choice = |tier: u64| mix64((u64::from(flow_hash) << 32) | tier) >> 32;
        let [edge_up, core_up, core_down, edge_down] = &self.tiers;
        // down is found from the destination back
        let (up, down) = (edge_up.next(src.index(), choice(0)), edge_down.next(dst.index(), choice(3)));
        out.push(edge_up.links[up]);
        if far >= pod {
            out.push(core_up.links[core_up.next(up, choice(1))]);
            out.push(core_down.links[core_down.next(down, choice(2))]);
        }
        out.push(edge_down.links[down]);
    }
}

impl Links {
    fn wired(links: Vec<LinkId>, ways: usize, mut random: SplitMix64) -> Links {
        let mut steps: Vec<usize> = (0..links.len()).collect();
        let ways = ways.min(steps.len());
        for i in 0..ways {
            let rest = (steps.len() - i) as f64;
            steps.swap(i, i + (random.unit() * rest) as usize);
        }
        steps.truncate(ways);
        Links { links, steps }
    }

    /// The number of a link that number `from` of the tier before leads to; `choice` of 32 bits is which.
    fn next(&self, from: usize, choice: u64) -> usize {
        let step = self.steps[((choice * self.steps.len() as u64) >> 32) as usize];
        (from + step) % self.links.len()
    }
}
