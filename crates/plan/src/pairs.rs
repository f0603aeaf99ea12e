//! Who sends to whom.

#[cfg(test)]
mod tests;

use crate::Random;
use net::{NodeId, Topology};
use scenario::{Across, Arrivals, Collective, Scenario, Senders, TrafficKind};
use units::Time;

/// The hosts of a run, from which senders and receivers are chosen.
#[derive(Clone, Copy)]
pub struct Pairing<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// Hosts of a pod or leaf, which are numbered in a row; one where there are none.
    pub hosts_per_pod: usize,
}

impl<'a> Pairing<'a> {
    /// The hosts of `scenario`, whose network is `topology`.
    pub fn of(scenario: &Scenario, topology: &'a Topology) -> Pairing<'a> {
        let pods = scenario.network.topology.pods();
        let hosts_per_pod = pods.map_or(1, |pods| topology.n_hosts() / pods as usize);
        Pairing { topology, hosts_per_pod }
    }

    /// The host called `name`.
    ///
    /// # Panics
    /// If there is none; a checked scenario names hosts that exist.
    pub fn host(&self, name: &str) -> NodeId {
        self.topology.find_node(name).expect("a checked scenario names hosts that exist")
    }

    fn all(&self) -> impl Iterator<Item = NodeId> {
        let topology = self.topology;
        (0..topology.n_hosts()).map(|i| topology.host(i))
    }

    /// The hosts of these names; `None`: all.
    pub fn listed(&self, names: Option<&[String]>) -> Vec<NodeId> {
        match names {
            Some(names) => names.iter().map(|name| self.host(name)).collect(),
            None => self.all().collect(),
        }
    }

    /// Two different hosts.
    pub fn random_pair(&self, random: &mut Random) -> (NodeId, NodeId) {
        let n = self.topology.n_hosts() as u32;
        let src = random.below(n);
        let other = random.below(n - 1);
        let dst = if other < src { other } else { other + 1 };
        (self.topology.host(src as usize), self.topology.host(dst as usize))
    }

    /// A sender and a different receiver of these lists, of which not both are one and the same host.
    pub fn random_pair_of(&self, senders: &[NodeId], receivers: &[NodeId], random: &mut Random) -> (NodeId, NodeId) {
        let all = self.topology.n_hosts();
        if senders.len() == all && receivers.len() == all {
            return self.random_pair(random);
        }
        loop {
            let of = |hosts: &[NodeId], random: &mut Random| hosts[random.below(hosts.len() as u32) as usize];
            let (src, dst) = (of(senders, random), of(receivers, random));
            if src != dst {
                return (src, dst);
            }
        }
    }

    /// Every host sends to one and receives from one, none to itself or, if asked, to its own pod.
    pub fn permutation(&self, across: Across, random: &mut Random) -> Vec<(NodeId, NodeId)> {
        let n = self.topology.n_hosts();
        let group = |host: usize| match across {
            Across::Hosts => host,
            Across::Pods => host / self.hosts_per_pod,
        };
        let mut to: Vec<usize> = (0..n).collect();
        random.shuffle(&mut to);
        // repair: swap a forbidden receiver with one so that both become allowed; the search starts at random, to be unbiased
        for i in 0..n {
            if group(i) == group(to[i]) {
                let start = random.below(n as u32) as usize;
                let fits = |j: &usize| group(i) != group(to[*j]) && group(*j) != group(to[i]);
                if let Some(j) = (0..n).map(|d| (start + d) % n).find(fits) {
                    to.swap(i, j);
                }
            }
        }
        let hosts = (0..n).zip(to).filter(|(from, to)| group(*from) != group(*to));
        hosts.map(|(from, to)| (self.topology.host(from), self.topology.host(to))).collect()
    }

    /// Each of the senders to the one receiver.
    pub fn incast(&self, senders: &Senders, receiver: &str) -> Vec<(NodeId, NodeId)> {
        let to = self.host(receiver);
        let from: Vec<NodeId> = match senders {
            Senders::First(n) => self.all().filter(|&host| host != to).take(*n as usize).collect(),
            Senders::Named(names) => names.iter().map(|name| self.host(name)).collect(),
        };
        from.into_iter().map(|from| (from, to)).collect()
    }

    /// The pairs of each job of a collective of this `kind`; nothing of another kind.
    pub fn jobs(&self, kind: &TrafficKind, random: &mut Random) -> Vec<Vec<(NodeId, NodeId)>> {
        let (TrafficKind::AllToAll(collective) | TrafficKind::Exchange(collective)) = kind else { return Vec::new() };
        let Collective { hosts, jobs, .. } = collective;
        let mut hosts: Vec<NodeId> = match hosts {
            Some(names) => names.iter().map(|name| self.host(name)).collect(),
            None => self.all().collect(),
        };
        let jobs = *jobs as usize;
        if jobs > 1 {
            random.shuffle(&mut hosts);
        }
        let share = |job: usize| job * hosts.len() / jobs..(job + 1) * hosts.len() / jobs;
        let pairs = match kind {
            TrafficKind::Exchange(_) => ring,
            _ => all_to_all,
        };
        (0..jobs).map(|job| pairs(&hosts[share(job)])).collect()
    }
}

fn all_to_all(hosts: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let mut pairs = Vec::new();
    for (i, &from) in hosts.iter().enumerate() {
        // host i begins with the one after it, so that a round's first messages form a permutation
        pairs.extend((1..hosts.len()).map(|d| (from, hosts[(i + d) % hosts.len()])));
    }
    pairs
}

/// Each host to the one after it, and to the one before unless that is the same.
fn ring(hosts: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let n = hosts.len();
    let neighbours = |i: usize| [(i + 1) % n, (i + n - 1) % n].into_iter().take(if n == 2 { 1 } else { 2 });
    (0..n).flat_map(|i| neighbours(i).map(move |to| (i, to))).map(|(from, to)| (hosts[from], hosts[to])).collect()
}

/// Mean time between the arrivals of flows of `mean_bytes` on average.
pub fn mean_gap(arrivals: &Arrivals, mean_bytes: f64, (topology, senders): (&Topology, &[NodeId])) -> Time {
    let per_second = match arrivals {
        Arrivals::FlowsPerSecond(rate) => *rate,
        Arrivals::Load(load) => {
            let bits: u64 = senders.iter().map(|host| topology.host_rate(*host)).sum();
            load.fraction() * bits as f64 / (8.0 * mean_bytes)
        }
    };
    Time::from_secs_f64(1.0 / per_second)
}
