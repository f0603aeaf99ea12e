//! The kinds of network: fat tree, leaf-spine, star, dumbbell, those of a [`Shape`], and any other given cable by cable.
//!
//! The order of cables is part of the result: routing prefers the lower link number where paths are equally short.

use super::{LinkId, LinkParams, LinkSpec, LinkTier, Node, NodeId, NodeKind, Shape, Tier, Topology};
use crate::BufferSpec;
use crate::error::{CABLES_MAX, NODES_MAX, NetError};
use std::collections::{BTreeMap, BTreeSet};

/// A cable of a network that is given cable by cable.
#[derive(Debug, Clone, PartialEq)]
pub struct Cable {
    /// The name of one end.
    pub a: String,
    /// The name of the other.
    pub b: String,
    /// The link from `a` to `b`.
    pub forward: LinkParams,
    /// The link from `b` to `a`.
    pub backward: LinkParams,
}

impl Topology {
    /// A fat tree of switches with `k` ports (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008): `k` pods of `k/2` edge and
    /// `k/2` aggregation switches, `k²/4` core switches, `k³/4` hosts `h1`… The aggregation switch number `j` of every
    /// pod connects to the `k/2` core switches of group `j`.
    ///
    /// # Errors
    /// [`NetError::FatTreePorts`] and [`NetError::TooManyNodes`].
    pub fn fat_tree(k: u64, params: impl Fn(LinkTier) -> LinkParams) -> Result<Topology, NetError> {
        if k == 0 || !k.is_multiple_of(2) {
            return Err(NetError::FatTreePorts(k));
        }
        let wide = u128::from(k);
        // k³ of a 64-bit k may exceed 128 bits; such a k is far too large in any case.
        let hosts = wide.checked_pow(3).map_or(u128::MAX, |cube| cube / 4);
        let switches = (wide * wide / 4).saturating_mul(5);
        check_size(hosts.saturating_add(switches), hosts.saturating_mul(3))?;

        let half = k as usize / 2;
        let (pods, hosts) = (k as usize, hosts as usize);
        let mut draft = Draft::new(&params);
        draft.add(hosts, "h", Tier::Host);
        let edges = draft.add(pods * half, "e", Tier::Edge);
        let aggregations = draft.add(pods * half, "a", Tier::Aggregation);
        let cores = draft.add(half * half, "c", Tier::Core);
        for host in 0..hosts {
            draft.attach(host, edges + host / half);
        }
        for pod in 0..pods {
            for edge in 0..half {
                for aggregation in 0..half {
                    let (a, b) = (edges + pod * half + edge, aggregations + pod * half + aggregation);
                    draft.connect(a, b, LinkTier::EdgeAggregation);
                }
            }
        }
        for aggregation in 0..pods * half {
            for port in 0..half {
                let core = cores + aggregation % half * half + port;
                draft.connect(aggregations + aggregation, core, LinkTier::AggregationCore);
            }
        }
        Ok(draft.finish())
    }

    /// `leaves` leaf switches with `hosts_per_leaf` hosts each, every leaf connected to each of `spines` spine
    /// switches.
    ///
    /// # Errors
    /// [`NetError::Zero`], [`NetError::TooManyNodes`] and [`NetError::TooManyCables`].
    pub fn leaf_spine(
        leaves: u64,
        spines: u64,
        hosts_per_leaf: u64,
        params: impl Fn(LinkTier) -> LinkParams,
    ) -> Result<Topology, NetError> {
        check_counts(&[(leaves, "leaf switches"), (spines, "spine switches"), (hosts_per_leaf, "hosts per leaf")])?;
        let hosts = u128::from(leaves) * u128::from(hosts_per_leaf);
        let switches = u128::from(leaves) + u128::from(spines);
        let uplinks = u128::from(leaves) * u128::from(spines);
        check_size(hosts.saturating_add(switches), hosts.saturating_add(uplinks))?;

        let (hosts, hosts_per_leaf) = (hosts as usize, hosts_per_leaf as usize);
        let mut draft = Draft::new(&params);
        draft.add(hosts, "h", Tier::Host);
        let first_leaf = draft.add(leaves as usize, "l", Tier::Leaf);
        let first_spine = draft.add(spines as usize, "s", Tier::Spine);
        for host in 0..hosts {
            draft.attach(host, first_leaf + host / hosts_per_leaf);
        }
        for leaf in 0..leaves as usize {
            for spine in 0..spines as usize {
                draft.connect(first_leaf + leaf, first_spine + spine, LinkTier::LeafSpine);
            }
        }
        Ok(draft.finish())
    }

    /// One switch `s1` with `hosts` hosts.
    ///
    /// # Errors
    /// [`NetError::Zero`] and [`NetError::TooManyNodes`].
    pub fn star(hosts: u64, params: impl Fn(LinkTier) -> LinkParams) -> Result<Topology, NetError> {
        check_counts(&[(hosts, "hosts")])?;
        check_size(u128::from(hosts) + 1, u128::from(hosts))?;
        let mut draft = Draft::new(&params);
        draft.add(hosts as usize, "h", Tier::Host);
        let switch = draft.add(1, "s", Tier::Switch);
        for host in 0..hosts as usize {
            draft.attach(host, switch);
        }
        Ok(draft.finish())
    }

    /// `pairs` hosts `left1`… on switch `s1`, as many `right1`… on `s2`, and one cable between the switches. The left
    /// hosts come first: the partner of host `i` is host `i + pairs`.
    ///
    /// # Errors
    /// [`NetError::Zero`] and [`NetError::TooManyNodes`].
    pub fn dumbbell(pairs: u64, params: impl Fn(LinkTier) -> LinkParams) -> Result<Topology, NetError> {
        check_counts(&[(pairs, "pairs of hosts")])?;
        check_size(u128::from(pairs) * 2 + 2, u128::from(pairs) * 2 + 1)?;
        let pairs = pairs as usize;
        let mut draft = Draft::new(&params);
        draft.add(pairs, "left", Tier::Host);
        draft.add(pairs, "right", Tier::Host);
        let left = draft.add(2, "s", Tier::Switch);
        for host in 0..2 * pairs {
            draft.attach(host, left + host / pairs);
        }
        draft.connect(left, left + 1, LinkTier::Bottleneck);
        Ok(draft.finish())
    }

    /// A data-center network of this shape.
    ///
    /// # Errors
    /// [`NetError::Shape`] for numbers that make none.
    pub fn shaped(shape: Shape, params: impl Fn(LinkTier) -> LinkParams) -> Result<Topology, NetError> {
        if let Some((_, fault)) = shape.fault() {
            return Err(NetError::Shape(fault));
        }
        let mut draft = Draft::new(&params);
        draft.add(shape.hosts() as usize, "h", Tier::Host);
        let first_switch = draft.nodes.len();
        for (prefix, count) in shape.switch_classes() {
            let first = draft.add(count as usize, prefix, Tier::Switch);
            for i in first..draft.nodes.len() {
                draft.nodes[i].tier = shape.switch_tier(i - first_switch);
            }
        }
        for (a, b, [forward, backward]) in shape.joined() {
            draft.cable(a, b, forward, backward);
        }
        Ok(Topology { shape: Some(shape), ..draft.finish() })
    }

    /// Any network, by the names of its hosts and switches and its cables.
    ///
    /// # Errors
    /// [`NetError::Zero`] without hosts, [`NetError::TooManyNodes`], [`NetError::TooManyCables`],
    /// [`NetError::DuplicateName`], [`NetError::UnknownNode`], [`NetError::Loop`], [`NetError::ParallelCables`],
    /// [`NetError::HostCables`] and [`NetError::Disconnected`].
    pub fn explicit(hosts: &[String], switches: &[String], cables: &[Cable]) -> Result<Topology, NetError> {
        check_counts(&[(hosts.len() as u64, "hosts")])?;
        check_size(hosts.len() as u128 + switches.len() as u128, cables.len() as u128)?;
        let mut nodes: Vec<Node> = Vec::with_capacity(hosts.len() + switches.len());
        nodes.extend(hosts.iter().map(|name| node(name.clone(), Tier::Host)));
        nodes.extend(switches.iter().map(|name| node(name.clone(), Tier::Switch)));
        let links = explicit_links(&nodes, cables)?;
        let topology = assemble(nodes, links);
        for host in 0..topology.n_hosts {
            let cables = topology.out_links(NodeId(host as u32)).len();
            if cables != 1 {
                return Err(NetError::HostCables { name: topology.nodes[host].name.clone(), cables });
            }
        }
        match topology.unreachable() {
            Some(id) => {
                Err(NetError::Disconnected(topology.nodes[0].name.clone(), topology.nodes[id.index()].name.clone()))
            }
            None => Ok(topology),
        }
    }

    /// A node that node 0 does not reach.
    fn unreachable(&self) -> Option<NodeId> {
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![NodeId(0)];
        seen[0] = true;
        while let Some(at) = open.pop() {
            for id in self.out_links(at) {
                let to = self.links[id.index()].to;
                if !std::mem::replace(&mut seen[to.index()], true) {
                    open.push(to);
                }
            }
        }
        seen.iter().position(|seen| !seen).map(|i| NodeId(i as u32))
    }
}

fn explicit_links(nodes: &[Node], cables: &[Cable]) -> Result<Vec<LinkSpec>, NetError> {
    let by_name: BTreeMap<&str, NodeId> =
        nodes.iter().enumerate().map(|(i, node)| (node.name.as_str(), NodeId(i as u32))).collect();
    if by_name.len() < nodes.len() {
        let mut names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]).expect("fewer names than nodes");
        return Err(NetError::DuplicateName(twice[0].to_string()));
    }
    let find = |name: &str| by_name.get(name).copied().ok_or_else(|| NetError::UnknownNode(name.to_string()));
    let mut pairs = BTreeSet::new();
    let mut links = Vec::with_capacity(2 * cables.len());
    for cable in cables {
        let (a, b) = (find(&cable.a)?, find(&cable.b)?);
        if a == b {
            return Err(NetError::Loop(cable.a.clone()));
        }
        if !pairs.insert((a.min(b), a.max(b))) {
            return Err(NetError::ParallelCables(cable.a.clone(), cable.b.clone()));
        }
        let tier = |from: NodeId, to: NodeId| match (nodes[from.index()].kind, nodes[to.index()].kind) {
            (NodeKind::Host, _) => LinkTier::FromHost,
            (_, NodeKind::Host) => LinkTier::ToHost,
            _ => LinkTier::Switches,
        };
        links.push(link(a, b, cable.forward, tier(a, b)));
        links.push(link(b, a, cable.backward, tier(b, a)));
    }
    Ok(links)
}

/// A network under construction, its links described by tier.
struct Draft<'a> {
    params: &'a dyn Fn(LinkTier) -> LinkParams,
    nodes: Vec<Node>,
    links: Vec<LinkSpec>,
}

impl Draft<'_> {
    fn new(params: &dyn Fn(LinkTier) -> LinkParams) -> Draft<'_> {
        Draft { params, nodes: Vec::new(), links: Vec::new() }
    }

    /// Adds `count` nodes called `prefix` and a number from 1; the index of the first.
    fn add(&mut self, count: usize, prefix: &str, tier: Tier) -> usize {
        let first = self.nodes.len();
        self.nodes.extend((1..=count).map(|i| node(format!("{prefix}{i}"), tier)));
        first
    }

    fn attach(&mut self, host: usize, switch: usize) {
        self.cable(host, switch, LinkTier::FromHost, LinkTier::ToHost);
    }

    fn connect(&mut self, a: usize, b: usize, tier: LinkTier) {
        self.cable(a, b, tier, tier);
    }

    fn cable(&mut self, a: usize, b: usize, forward: LinkTier, backward: LinkTier) {
        let (a, b) = (NodeId(a as u32), NodeId(b as u32));
        self.links.push(link(a, b, (self.params)(forward), forward));
        self.links.push(link(b, a, (self.params)(backward), backward));
    }

    fn finish(self) -> Topology {
        assemble(self.nodes, self.links)
    }
}

fn node(name: String, tier: Tier) -> Node {
    let kind = if tier == Tier::Host { NodeKind::Host } else { NodeKind::Switch };
    Node { name, kind, tier, buffer: BufferSpec::Private }
}

fn link(from: NodeId, to: NodeId, params: LinkParams, tier: LinkTier) -> LinkSpec {
    LinkSpec { from, to, rate: params.rate, delay: params.delay, queue: params.queue, tier }
}

/// Sorts the links by the node they leave (counting sort, which keeps their order).
fn assemble(nodes: Vec<Node>, links: Vec<LinkSpec>) -> Topology {
    let n_hosts = nodes.iter().take_while(|node| node.kind == NodeKind::Host).count();
    let mut first_out = vec![0u32; nodes.len() + 1];
    for link in &links {
        first_out[link.from.index() + 1] += 1;
    }
    for i in 0..nodes.len() {
        first_out[i + 1] += first_out[i];
    }
    let mut next = first_out.clone();
    let mut out = vec![LinkId(0); links.len()];
    for (i, link) in links.iter().enumerate() {
        let slot = &mut next[link.from.index()];
        out[*slot as usize] = LinkId(i as u32);
        *slot += 1;
    }
    Topology { nodes, n_hosts, shape: None, links, out, first_out }
}

fn check_counts(counts: &[(u64, &'static str)]) -> Result<(), NetError> {
    match counts.iter().find(|(count, _)| *count == 0) {
        Some((_, what)) => Err(NetError::Zero(what)),
        None => Ok(()),
    }
}

fn check_size(nodes: u128, cables: u128) -> Result<(), NetError> {
    if nodes > u128::from(NODES_MAX) {
        Err(NetError::TooManyNodes(nodes))
    } else if cables > u128::from(CABLES_MAX) {
        Err(NetError::TooManyCables(cables))
    } else {
        Ok(())
    }
}
