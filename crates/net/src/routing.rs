//! [`Router`]: the links between two hosts.
//!
//! Shortest paths by hops. Per destination switch, the distances of all switches are computed by breadth-first search at
//! first use, and kept until a link fails or is restored. A path follows decreasing distances.

use crate::mix::mix64;
use crate::{LinkId, NoPath, NodeId, Topology};
use std::sync::OnceLock;

/// How one of several equally short paths is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// The first that breadth-first search from the source finds, with links tried in their order: the same for all
    /// flows, so that in a fat tree all of them meet in one core switch.
    SinglePath,
    /// Equal-cost multipath: every switch hashes the flow to one of the equally short next hops.
    Ecmp,
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
        Router {
            routing,
            distances: (n_hosts..topology.nodes().len()).map(|_| OnceLock::new()).collect(),
            switches: Adjacency::new(topology),
            attachments,
            n_hosts,
            down: vec![false; topology.links().len()],
        }
    }

    /// Writes the links from host `src` to host `dst` into `out`, which is emptied first. `flow_hash` chooses among
    /// equal paths under [`Routing::Ecmp`].
    ///
    /// # Errors
    /// [`NoPath`] if working links do not connect the two, if they are the same, or if one is not a host.
    pub fn path(&self, src: NodeId, dst: NodeId, flow_hash: u32, out: &mut Vec<LinkId>) -> Result<(), NoPath> {
        out.clear();
        self.walk(src, dst, flow_hash, out).ok_or_else(|| {
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
        let mut at = self.switch(start)?;
        let end = self.switch(end)?;
        let distances = self.distances[end as usize].get_or_init(|| self.search(end));
        while at != end {
            let (link, next) = self.step(at, distances, flow_hash)?;
            out.push(link);
            at = next;
        }
        out.push(back.reverse());
        Some(())
    }

    /// The link from switch `at` to one that is nearer to the destination.
    fn step(&self, at: u32, distances: &[u16], flow_hash: u32) -> Option<(LinkId, u32)> {
        let here = distances[at as usize];
        if here == FAR {
            return None;
        }
        let mut nearer = self
            .switches
            .out(at)
            .iter()
            .filter(|&&(link, to)| distances[to as usize] == here - 1 && !self.down[link.index()]);
        match self.routing {
            Routing::SinglePath => nearer.next().copied(),
            Routing::Ecmp => {
                let ways = nearer.clone().count() as u64;
                let hash = mix64((u64::from(flow_hash) << 32) | u64::from(at)) >> 32;
                // A 32-bit hash times the number of next hops: its upper half selects one, each equally likely.
                nearer.nth(((hash * ways) >> 32) as usize).copied()
            }
        }
    }

    /// Hops from every switch to `end` over working links.
    fn search(&self, end: u32) -> Box<[u16]> {
        let mut distances = vec![FAR; self.distances.len()].into_boxed_slice();
        distances[end as usize] = 0;
        let mut queue = vec![end];
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
        distances
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
