//! [`Router`]: the links between two hosts.
//!
//! Shortest paths by hops. Per destination switch, the distances of all switches are computed by breadth-first search at
//! first use, and kept until a link fails or is restored. A path follows decreasing distances. Where servers forward, paths
//! are those of their network's own routing instead.

mod scaled;
mod servers;
mod ways;

use crate::mix::mix64;
use crate::{LinkId, NoPath, NodeId, Topology};
use scaled::Scaled;
use servers::Servers;
use std::sync::OnceLock;
pub use ways::Way;

/// How one of several equally short paths is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// The first that breadth-first search from the source finds, with links tried in their order: the same for all
    /// flows, so that in a fat tree all of them meet in one core switch.
    SinglePath,
    /// Equal-cost multipath: every switch hashes the flow to one of the equally short next hops.
    Ecmp,
    /// The same with weights: a next hop is chosen as often as its link's rate says.
    Weighted,
    /// Valiant load balancing: each flow goes by a shortest path to a switch that its hash chooses among those farthest from
    /// the hosts, whatever the destination, and by a shortest path on from there; on both, every switch hashes as under
    /// [`Routing::Ecmp`]. Within one switch there is no detour.
    Valiant,
    /// The topology, a fat tree, is a scale model of one with switches of so many ports: flows meet on its links as under
    /// [`Routing::Ecmp`] in the large tree, and paths are not those of the small one. No link fails.
    ScaledFatTree {
        /// Even, at least 4.
        k: u32,
    },
}

/// Distance of a switch that has no path.
const FAR: u16 = u16::MAX;

/// The routes of one topology. Paths of over 65,534 hops count as none.
#[derive(Debug)]
pub struct Router {
    routing: Routing,
    /// Hops of each switch to a switch, by destination; 2 bytes for each pair that was asked for.
    distances: Vec<OnceLock<Box<[u16]>>>,
    switches: Adjacency,
    /// Under [`Routing::Valiant`]: the switches to go by.
    vias: Vec<u32>,
    /// Under [`Routing::Weighted`]: bits per second by link.
    weights: Option<Vec<u64>>,
    /// Where servers forward.
    servers: Option<Servers>,
    /// Under [`Routing::ScaledFatTree`].
    scaled: Option<Scaled>,
    /// For each host: its link out, and the node at the other end of its cable.
    attachments: Vec<(LinkId, NodeId)>,
    n_hosts: usize,
    down: Vec<bool>,
}

/// The links between switches, by the switch they leave; switches are numbered from 0, after the hosts.
#[derive(Debug)]
struct Adjacency {
    first: Vec<u32>,
    /// Link and the switch at its far end.
    out: Vec<(LinkId, u32)>,
}

impl Adjacency {
    fn new(topology: &Topology) -> Adjacency {
        let n_hosts = topology.n_hosts() as u32;
        let mut adjacency = Adjacency { first: vec![0], out: Vec::new() };
        for switch in n_hosts..topology.nodes().len() as u32 {
            for &id in topology.out_links(NodeId(switch)) {
                let to = topology.link(id).to.0;
                if to >= n_hosts {
                    adjacency.out.push((id, to - n_hosts));
                }
            }
            adjacency.first.push(adjacency.out.len() as u32);
        }
        adjacency
    }

    fn out(&self, switch: u32) -> &[(LinkId, u32)] {
        &self.out[self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize]
    }
}

impl Router {
    /// Routes in `topology`, all links working.
    pub fn new(topology: &Topology, routing: Routing) -> Router {
        let n_hosts = topology.n_hosts();
        let attachments = (0..n_hosts)
            .map(|host| {
                let nic = topology.nic(topology.host(host));
                (nic, topology.link(nic).to)
            })
            .collect();
        let mut router = Router {
            routing,
            distances: (n_hosts..topology.nodes().len()).map(|_| OnceLock::new()).collect(),
            switches: Adjacency::new(topology),
            vias: Vec::new(),
            weights: (routing == Routing::Weighted)
                .then(|| topology.links().iter().map(|link| link.rate.as_bps()).collect()),
            servers: Servers::of(topology),
            scaled: match routing {
                Routing::ScaledFatTree { k } => Some(Scaled::new(topology, k)),
                _ => None,
            },
            attachments,
            n_hosts,
            down: vec![false; topology.links().len()],
        };
        if routing == Routing::Valiant {
            router.vias = router.farthest();
        }
        router
    }

    /// The switches farthest from those with hosts.
    fn farthest(&self) -> Vec<u32> {
        let starts = self.attachments.iter().filter_map(|(_, at)| self.switch(*at));
        let mut distances = vec![FAR; self.distances.len()];
        starts.for_each(|start| distances[start as usize] = 0);
        let queue = (0..distances.len() as u32).filter(|switch| distances[*switch as usize] == 0).collect();
        self.spread(&mut distances, queue);
        let most = distances.iter().copied().filter(|distance| *distance != FAR).max();
        (0..distances.len() as u32).filter(|switch| Some(distances[*switch as usize]) == most).collect()
    }

    /// Writes the links from host `src` to host `dst` into `out`, which is emptied first. `flow_hash` chooses among
    /// equal paths, but not under [`Routing::SinglePath`].
    ///
    /// # Errors
    /// [`NoPath`] if working links do not connect the two, if they are the same, or if one is not a host.
    pub fn path(&self, src: NodeId, dst: NodeId, flow_hash: u32, out: &mut Vec<LinkId>) -> Result<(), NoPath> {
        out.clear();
        let found = match &self.servers {
            None => self.walk(src, dst, flow_hash, out),
            Some(servers) => {
                let choice = (self.routing != Routing::SinglePath).then(|| (mix64(u64::from(flow_hash)) >> 32) as u32);
                servers.path((src, dst), choice, &self.down, out)
            }
        };
        found.ok_or_else(|| {
            out.clear();
            NoPath { src, dst }
        })
    }

    fn walk(&self, src: NodeId, dst: NodeId, flow_hash: u32, out: &mut Vec<LinkId>) -> Option<()> {
        let &(nic, start) = self.attachments.get(src.index())?;
        let &(back, end) = self.attachments.get(dst.index())?;
        if src == dst || self.down[nic.index()] {
            return None;
        }
        out.push(nic);
        if start == dst {
            return Some(());
        }
        if self.down[back.reverse().index()] {
            return None;
        }
        if let Some(scaled) = &self.scaled {
            scaled.path(src, dst, flow_hash, out);
            out.push(back.reverse());
            return Some(());
        }
        let mut at = self.switch(start)?;
        let end = self.switch(end)?;
        if let Some(vias) = self.detours(at, end) {
            let first = (u64::from(mix64(u64::from(flow_hash)) as u32) * vias.len() as u64) >> 32;
            let (before, after) = vias.split_at(first as usize);
            let via = after.iter().chain(before).find(|via| self.is_between(at, **via, end))?;
            self.walk_to(&mut at, *via, flow_hash, out)?;
        }
        self.walk_to(&mut at, end, flow_hash, out)?;
        out.push(back.reverse());
        Some(())
    }

    /// Between switches, from `at` to `end`.
    fn walk_to(&self, at: &mut u32, end: u32, flow_hash: u32, out: &mut Vec<LinkId>) -> Option<()> {
        let distances = self.distances(end);
        while *at != end {
            let (link, next) = self.step(*at, distances, flow_hash)?;
            out.push(link);
            *at = next;
        }
        Some(())
    }

    /// The switches one of which is on the way between two, if the routing wants one.
    fn detours(&self, start: u32, end: u32) -> Option<&[u32]> {
        (self.routing == Routing::Valiant && start != end).then_some(&self.vias)
    }

    /// Whether links that work lead from `start` to `via` and from there to `end`.
    fn is_between(&self, start: u32, via: u32, end: u32) -> bool {
        self.distances(via)[start as usize] != FAR && self.distances(end)[via as usize] != FAR
    }

    /// Hops from every switch to `end` over working links.
    fn distances(&self, end: u32) -> &[u16] {
        self.distances[end as usize].get_or_init(|| self.search(end))
    }

    /// The link from switch `at` to one that is nearer to the destination.
    fn step(&self, at: u32, distances: &[u16], flow_hash: u32) -> Option<(LinkId, u32)> {
        if distances[at as usize] == FAR {
            return None;
        }
        let mut nearer = self.nearer(at, distances);
        let hash = mix64((u64::from(flow_hash) << 32) | u64::from(at)) >> 32;
        match (self.routing, &self.weights) {
            (Routing::SinglePath, _) => nearer.next().copied(),
            (_, Some(rates)) => {
                let rate = |link: &LinkId| u128::from(rates[link.index()]);
                let all: u128 = nearer.clone().map(|(link, _)| rate(link)).sum();
                let mut chosen = (u128::from(hash) * all) >> 32;
                nearer
                    .find(|(link, _)| {
                        let rate = rate(link);
                        let here = chosen < rate;
                        chosen = chosen.saturating_sub(rate);
                        here
                    })
                    .copied()
            }
            _ => {
                let ways = nearer.clone().count() as u64;
                // A 32-bit hash times the number of next hops: its upper half selects one, each equally likely.
                nearer.nth(((hash * ways) >> 32) as usize).copied()
            }
        }
    }

    /// The links out of switch `at` that lead nearer to where `distances` are from, and the switches there.
    fn nearer<'a>(&'a self, at: u32, distances: &'a [u16]) -> impl Iterator<Item = &'a (LinkId, u32)> + Clone {
        let here = distances[at as usize];
        let leads = move |&&(link, to): &&(LinkId, u32)| {
            distances[to as usize].checked_add(1) == Some(here) && !self.down[link.index()]
        };
        self.switches.out(at).iter().filter(leads)
    }

    /// What [`Router::distances`] keeps.
    fn search(&self, end: u32) -> Box<[u16]> {
        let mut distances = vec![FAR; self.distances.len()];
        distances[end as usize] = 0;
        self.spread(&mut distances, vec![end]);
        distances.into_boxed_slice()
    }

    /// Completes `distances` of those in `queue`, over working links towards them.
    fn spread(&self, distances: &mut [u16], mut queue: Vec<u32>) {
        let mut next = 0;
        while next < queue.len() {
            let at = queue[next];
            next += 1;
            let beyond = distances[at as usize] + 1;
            if beyond == FAR {
                break;
            }
            // The links towards `at` are the reverses of those out of it.
            for &(link, from) in self.switches.out(at) {
                if distances[from as usize] == FAR && !self.down[link.reverse().index()] {
                    distances[from as usize] = beyond;
                    queue.push(from);
                }
            }
        }
    }

    fn switch(&self, node: NodeId) -> Option<u32> {
        node.index().checked_sub(self.n_hosts).map(|i| i as u32)
    }

    /// From now on no path uses `link`.
    pub fn fail(&mut self, link: LinkId) {
        self.set_down(link, true);
    }

    /// Paths may use `link` again.
    pub fn restore(&mut self, link: LinkId) {
        self.set_down(link, false);
    }

    fn set_down(&mut self, link: LinkId, down: bool) {
        if std::mem::replace(&mut self.down[link.index()], down) != down {
            self.distances.iter_mut().for_each(|distances| *distances = OnceLock::new());
        }
    }
}
