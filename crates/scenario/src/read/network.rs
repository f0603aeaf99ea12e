//! The `[network]` table.

use super::{INTEGER_MAX, Reader, Section, shaped};
use crate::model::{
    Buffer, Cable, Failure, Framing, Limit, LimitOutput, LinkRef, LinkSettings, Loss, Network, Node as NetworkNode,
    NodeKind, Queue, Routing, SharedBuffer, Tcp, Tier, Topology,
};
use document::tree::{Node, Value};
use document::{list, nearest, suggestion};
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Rate, Time};

/// Maximum of hosts and switches together.
const NODES_MAX: u128 = 1 << 20;
/// Maximum of cables.
const CABLES_MAX: u128 = 1 << 22;
/// Minimum delay of a link: the engine's lookahead.
const DELAY_MIN: Time = Time::from_ns(1);
const DELAY_MAX: Time = Time::from_secs(1000);
/// Minimum rate: the fullest queue still empties before the clock ends.
pub(super) const RATE_MIN: Rate = Rate::from_bps(10_000);
pub(super) const RATE_MAX: Rate = Rate::from_gbps(10_000);
const ROUTINGS: [(&str, Routing); 4] = [
    ("ecmp", Routing::Ecmp),
    ("single-path", Routing::SinglePath),
    ("weighted-ecmp", Routing::WeightedEcmp),
    ("valiant", Routing::Valiant),
];
/// Bytes that Ethernet adds to an IP packet: header, preamble, check sequence, gap.
const ETHERNET: u64 = 38;

impl Reader<'_, '_> {
    /// The `[network]` table of hosts that speak TCP as `tcp` says.
    pub(super) fn network(&self, node: &Node, end: Time, tcp: &Tcp) -> Option<Network> {
        let packet_bytes = u64::from(tcp.mtu());
        let section = self.section(node, "`[network]`")?;
        let framing = section
            .get("framing", |r, n| r.word(n, &[("ethernet", Framing::Ethernet), ("ip", Framing::Ip)]))
            .unwrap_or(Framing::Ethernet);
        let frame_bytes = if framing == Framing::Ethernet { packet_bytes + ETHERNET } else { packet_bytes };
        let standard = LinkSettings {
            rate: Rate::from_gbps(10),
            delay: Time::from_us(1),
            queue: Queue::DropTail(Limit::Packets(100)),
        };
        let standard = link_settings(&section, &standard, frame_bytes);
        let nic_queue =
            section.get("nic_queue", |r, n| r.queue(n, frame_bytes)).unwrap_or(Queue::DropTail(Limit::Packets(1000)));
        let host_jitter = section.get("host_jitter", Self::span);
        let routing = section.get("routing", |r, n| r.word(n, &ROUTINGS));
        let balancing = section.get("balancing", Self::balancing);
        let buffer = section.get("buffer", |r, n| r.buffer(n, frame_bytes)).unwrap_or(Buffer::Private);
        let topology = section.require("topology", |r, n| r.topology(n, &standard, frame_bytes));
        let tier = section.take("tier");
        let (failure, loss) = (section.take("failure"), section.take("loss"));
        section.finish();
        let topology = topology?;
        let (routing, balancing) = shaped::ways(&section, &topology, (routing, balancing))?;
        if topology.servers_forward() && nic_queue.is_held() && tcp.limit_output == LimitOutput::Auto {
            let help = "write another queue, or `limit_output = false` in `[tcp]`".to_string();
            let message = "what waits in this queue cannot be limited by flow (`tcp.limit_output`)";
            return section.problem("nic_queue", message, Some(help));
        }
        let tier = self.tiers(tier, &topology, &standard, frame_bytes)?;
        let failure = match failure {
            Some(node) => self.each(node, |r, n| r.failure(n, end, &topology))?,
            None => Vec::new(),
        };
        let loss = match loss {
            Some(node) => self.each(node, |r, n| r.loss(n, &topology))?,
            None => Vec::new(),
        };
        let network = Network {
            topology,
            rate: standard.rate,
            delay: standard.delay,
            queue: standard.queue,
            nic_queue,
            host_jitter,
            routing,
            balancing,
            framing,
            buffer,
            tier,
            failure,
            loss,
        };
        Some(network)
    }

    fn topology(&self, node: &Node, standard: &LinkSettings, frame_bytes: u64) -> Option<Topology> {
        let names = [&["fat_tree", "leaf_spine", "star", "dumbbell", "explicit"][..], &shaped::SHAPES].concat();
        let entry = self.variant(node, "topology", &names)?;
        let section = self.section(&entry.value, &format!("topology `{}`", entry.key))?;
        let topology = match entry.key.as_str() {
            "fat_tree" => fat_tree(&section),
            "leaf_spine" => leaf_spine(&section),
            "star" => size(&section, "hosts", 2).map(|hosts| Topology::Star { hosts }),
            "dumbbell" => size(&section, "pairs", 1).map(|pairs| Topology::Dumbbell { pairs }),
            "explicit" => explicit(&section, standard, frame_bytes),
            shape => shaped::shaped(&section, shape),
        };
        section.finish();
        topology
    }

    fn buffer(&self, node: &Node, frame_bytes: u64) -> Option<Buffer> {
        if let Value::Text(_) = node.value {
            return self.word(node, &[("private", Buffer::Private)]);
        }
        let entry = self.variant(node, "buffer", &["shared"])?;
        let section = self.section(&entry.value, "buffer `shared`")?;
        let rule = format!("at least one full packet ({frame_bytes} B), 1 TB at most");
        let bytes = section.require("bytes", |r, n| {
            r.within(n, |bytes: &Bytes| (frame_bytes..=1_000_000_000_000).contains(&bytes.get()), &rule)
        });
        let alpha = section.get("alpha", |r, n| r.number(n, 1024.0)).unwrap_or(1.0);
        let alpha_not_ect = section.get("alpha_not_ect", |r, n| r.number(n, 1024.0));
        let reserve = section.get("reserve", |r, n| {
            r.within(n, |reserve: &Bytes| bytes.is_none_or(|bytes| *reserve <= bytes), "at most `bytes`")
        });
        let headroom = section.get("headroom", |r, n| {
            let share = r.percentage(n)?;
            let rule = "the headroom is below 100 %, or no port could hold more than an equal share";
            if share.fraction() < 1.0 { Some(share) } else { r.problem(&n.at, rule.to_string(), None) }
        });
        section.finish();
        Some(Buffer::Shared(SharedBuffer { bytes: bytes?, alpha, alpha_not_ect, reserve, headroom }))
    }

    /// The settings of each tier that the topology has.
    fn tiers(
        &self,
        node: Option<&Node>,
        topology: &Topology,
        standard: &LinkSettings,
        frame_bytes: u64,
    ) -> Option<BTreeMap<Tier, LinkSettings>> {
        let section = self.section_or_empty(node, "`[network.tier]` of this topology")?;
        let mut tiers = BTreeMap::new();
        for tier in topology.tiers() {
            let settings = section.get(tier.key(), |r, n| {
                let inner = r.section(n, &format!("`[network.tier.{}]`", tier.key()))?;
                let settings = link_settings(&inner, standard, frame_bytes);
                inner.finish();
                Some(settings)
            });
            tiers.insert(*tier, settings.unwrap_or_else(|| standard.clone()));
        }
        section.finish();
        Some(tiers)
    }

    fn failure(&self, node: &Node, end: Time, topology: &Topology) -> Option<Failure> {
        let section = self.section(node, "a failure")?;
        let link = section.require("link", |r, n| r.link(n, topology, true));
        let at = section.require("at", |r, n| r.until(n, end));
        let until = section.get("until", Self::span);
        section.finish();
        let (link, at) = (link?, at?);
        if let Some(until) = until.filter(|until| *until <= at) {
            return section.problem("until", format!("`until` ({until}) is not after `at` ({at})"), None);
        }
        Some(Failure { link, at, until })
    }

    fn loss(&self, node: &Node, topology: &Topology) -> Option<Loss> {
        let section = self.section(node, "a loss")?;
        let link = section.require("link", |r, n| r.link(n, topology, true));
        let probability = section.require("probability", Self::percentage);
        section.finish();
        Some(Loss { link: link?, probability: probability? })
    }

    /// `"a->b"`, or `"a-b"` if a cable may be named.
    pub(super) fn link(&self, node: &Node, topology: &Topology, cable: bool) -> Option<LinkRef> {
        let text = self.text(node)?;
        let (from, to, both) = match (text.split_once("->"), text.split_once('-')) {
            (Some((from, to)), _) => (from.trim(), to.trim(), false),
            (None, Some((from, to))) if cable => (from.trim(), to.trim(), true),
            _ => {
                let form = if cable { "`a->b`, or `a-b` for both directions" } else { "`a->b`" };
                return self.problem(&node.at, format!("`{text}` is not a link"), Some(format!("write {form}")));
            }
        };
        for name in [from, to] {
            if !topology.has_node(name) {
                return self.unknown_node(node, name, topology, false);
            }
        }
        if !topology.linked(from, to) {
            let help = format!("no cable joins `{from}` and `{to}`; {}", topology.describe_nodes());
            return self.problem(&node.at, format!("there is no link `{text}`"), Some(help));
        }
        Some(LinkRef { from: from.into(), to: to.into(), both })
    }

    pub(super) fn unknown_node<T>(&self, node: &Node, name: &str, topology: &Topology, host: bool) -> Option<T> {
        let described = if host { topology.describe_hosts() } else { topology.describe_nodes() };
        let help = match nearest(name, topology.listed_names(host)) {
            Some(near) => format!("did you mean `{near}`? {described}"),
            None => described,
        };
        let kind = if host { "host" } else { "node" };
        self.problem(&node.at, format!("there is no {kind} `{name}`"), Some(help))
    }
}

impl Tier {
    /// Its key in the file.
    pub fn key(self) -> &'static str {
        match self {
            Tier::Host => "host",
            Tier::Aggregation => "aggregation",
            Tier::Core => "core",
            Tier::Spine => "spine",
            Tier::Bottleneck => "bottleneck",
            Tier::Intermediate => "intermediate",
            Tier::Server => "server",
            Tier::Switch => "switch",
            Tier::Local => "local",
            Tier::Global => "global",
        }
    }
}

/// Rate, delay and queue of a table, each with a default.
fn link_settings(section: &Section, defaults: &LinkSettings, frame_bytes: u64) -> LinkSettings {
    let rate = section.get("rate", |r, n| {
        let rule = format!("from {RATE_MIN} to {RATE_MAX}");
        r.within(n, |rate: &Rate| (RATE_MIN..=RATE_MAX).contains(rate), &rule)
    });
    let delay = section.get("delay", |r, n| {
        let rule = "from 1 ns to 1000 s (the engine looks ahead by the delay, so it cannot be zero)";
        r.within(n, |delay: &Time| (DELAY_MIN..=DELAY_MAX).contains(delay), rule)
    });
    LinkSettings {
        rate: rate.unwrap_or(defaults.rate),
        delay: delay.unwrap_or(defaults.delay),
        queue: section.get("queue", |r, n| r.queue(n, frame_bytes)).unwrap_or(defaults.queue),
    }
}

/// A number of hosts, switches or ports; the number of nodes is checked separately.
fn size(section: &Section, key: &'static str, least: u32) -> Option<u32> {
    let value = section.require(key, |r, n| r.integer(n, u64::from(least), INTEGER_MAX))?;
    match u32::try_from(value).ok().filter(|value| u128::from(*value) <= NODES_MAX) {
        Some(value) => Some(value),
        None => too_large(section, key, u128::from(value), "nodes", NODES_MAX),
    }
}

fn too_large<T>(section: &Section, key: &str, count: u128, what: &str, most: u128) -> Option<T> {
    section.problem(key, format!("{count} {what} are too many: at most {most}"), None)
}

/// Refuses a network that is too large, at `key`.
fn within_limits(section: &Section, key: &str, nodes: u128, cables: u128) -> Option<()> {
    if nodes > NODES_MAX {
        return too_large(section, key, nodes, "nodes", NODES_MAX);
    }
    if cables > CABLES_MAX {
        return too_large(section, key, cables, "cables", CABLES_MAX);
    }
    Some(())
}

fn fat_tree(section: &Section) -> Option<Topology> {
    let k = size(section, "k", 2)?;
    if k % 2 == 1 {
        let help = format!("half of a switch's ports lead up; write k = {} or k = {}", k - 1, k + 1);
        return section.problem("k", format!("k = {k} is odd"), Some(help));
    }
    let wide = u128::from(k);
    within_limits(section, "k", wide.pow(3) / 4 + wide.pow(2) * 5 / 4, wide.pow(3) / 4 * 3)?;
    Some(Topology::FatTree { k })
}

fn leaf_spine(section: &Section) -> Option<Topology> {
    let leaves = size(section, "leaves", 1);
    let spines = size(section, "spines", 1);
    let hosts_per_leaf = size(section, "hosts_per_leaf", 1);
    let (leaves, spines, hosts_per_leaf) = (leaves?, spines?, hosts_per_leaf?);
    let [l, s, h] = [leaves, spines, hosts_per_leaf].map(u128::from);
    within_limits(section, "leaves", l * h + l + s, l * h + l * s)?;
    if l * h < 2 {
        return section.problem("leaves", "a network needs at least 2 hosts", None);
    }
    Some(Topology::LeafSpine { leaves, spines, hosts_per_leaf })
}

fn explicit(section: &Section, standard: &LinkSettings, frame_bytes: u64) -> Option<Topology> {
    let mut names = BTreeMap::new();
    let nodes = section.require("nodes", |r, n| {
        let nodes = r.each(n, network_node)?;
        for (node, at) in nodes.iter().zip(items(n)) {
            if names.insert(node.name.clone(), node.kind).is_some() {
                return r.problem(&at.at, format!("a second node `{}`", node.name), None);
            }
        }
        Some(nodes)
    });
    let links_node = section.take("links");
    let (Some(nodes), Some(links_node)) = (nodes, links_node) else {
        return if links_node.is_none() { section.require("links", |_, _| None) } else { None };
    };
    within_limits(section, "nodes", nodes.len() as u128, items(links_node).len() as u128)?;
    if names.values().filter(|kind| **kind == NodeKind::Host).count() < 2 {
        return section.problem("nodes", "fewer than two hosts", None);
    }
    let links = section.reader.each(links_node, |r, n| cable(r, n, &names, standard, frame_bytes))?;
    check_cables(section, links_node, &links, &names)?;
    Some(Topology::Explicit { nodes, links })
}

/// The items of a list, none for anything else.
fn items(node: &Node) -> &[Node] {
    if let Value::Array(items) = &node.value { items } else { &[] }
}

fn network_node(reader: &Reader, node: &Node) -> Option<NetworkNode> {
    let section = reader.section(node, "a node")?;
    let name = section.require("name", |r, n| {
        let name = r.identifier(n)?;
        if !name.contains('-') {
            return Some(name);
        }
        let help = Some("a link is written `a-b`, so a node's name has no `-`".to_string());
        r.problem(&n.at, format!("`{name}` is not a node's name"), help)
    });
    let kind = section.require("kind", |r, n| r.word(n, &[("host", NodeKind::Host), ("switch", NodeKind::Switch)]));
    section.finish();
    Some(NetworkNode { name: name?, kind: kind? })
}

fn cable(
    reader: &Reader,
    node: &Node,
    names: &BTreeMap<String, NodeKind>,
    standard: &LinkSettings,
    frame_bytes: u64,
) -> Option<Cable> {
    let section = reader.section(node, "a link")?;
    let end = |key| {
        section.require(key, |r, n| {
            let name = r.text(n)?;
            if names.contains_key(name) {
                return Some(name.to_string());
            }
            let all: Vec<&str> = names.keys().map(String::as_str).collect();
            // The whole list of a large network does not help.
            let help = if all.len() > 20 {
                nearest(name, all).map(|near| format!("did you mean `{near}`?"))
            } else {
                Some(suggestion(name, &all))
            };
            r.problem(&n.at, format!("there is no node `{name}`"), help)
        })
    };
    let (a, b) = (end("a"), end("b"));
    let LinkSettings { rate, delay, queue } = link_settings(&section, standard, frame_bytes);
    section.finish();
    let (a, b) = (a?, b?);
    if a == b {
        return section.problem("b", format!("`{a}` is linked to itself"), None);
    }
    Some(Cable { a, b, rate, delay, queue })
}

/// No cable twice, one cable per host, and every node reachable.
fn check_cables(
    section: &Section,
    links_node: &Node,
    links: &[Cable],
    names: &BTreeMap<String, NodeKind>,
) -> Option<()> {
    let mut seen = BTreeSet::new();
    let mut neighbours: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (link, item) in links.iter().zip(items(links_node)) {
        let (a, b) = (link.a.as_str(), link.b.as_str());
        if !seen.insert((a.min(b), a.max(b))) {
            return section.reader.problem(&item.at, format!("a second cable between `{a}` and `{b}`"), None);
        }
        for (one, other) in [(a, b), (b, a)] {
            let others = neighbours.entry(one).or_default();
            others.push(other);
            if names[one] == NodeKind::Host && others.len() > 1 {
                let help = Some("a host has one cable; put a switch in front of it".to_string());
                return section.reader.problem(&item.at, format!("host `{one}` has a second cable"), help);
            }
        }
    }
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = names.keys().next().map(String::as_str).into_iter().collect();
    while let Some(name) = next.pop() {
        if reached.insert(name) {
            next.extend(neighbours.get(name).into_iter().flatten());
        }
    }
    let lost: Vec<&str> = names.keys().map(String::as_str).filter(|name| !reached.contains(name)).take(3).collect();
    if lost.is_empty() {
        return Some(());
    }
    let start = names.keys().next().map_or("", String::as_str);
    let message = format!("no path leads from `{start}` to {}", list(lost));
    section.problem("links", message, Some("each node must be reachable from each other".to_string()))
}
