//! Topologies of a few numbers, and `balancing`.

use super::{INTEGER_MAX, Reader, Section};
use crate::model::{Balancing, Routing, Shaped, Topology};
use document::tree::{Node, Value};
use units::Time;

/// The topologies read here.
pub(super) const SHAPES: [&str; 5] = ["vl2", "bcube", "dcell", "jellyfish", "dragonfly"];

const NUMBER_MAX: u32 = 1 << 20;
/// The deepest that makes a network of at most 2^20 nodes.
const LEVEL_MAX: u32 = 20;
const DELAY_MAX: Time = Time::from_secs(1);

/// The topology called `kind`, one of [`SHAPES`].
pub(super) fn shaped(section: &Section, kind: &str) -> Option<Topology> {
    let number = |key: &'static str, least: u32| section.require(key, |r, n| r.count(n, least, NUMBER_MAX));
    let level = |key: &'static str| section.require(key, |r, n| r.count(n, 0, LEVEL_MAX));
    let delay = || {
        section.require("forwarding_delay", |r, n| {
            r.within(n, |delay: &Time| *delay <= DELAY_MAX, &format!("at most {DELAY_MAX}"))
        })
    };
    let shaped = match kind {
        "vl2" => {
            let (da, di) = (number("aggregation_ports", 2), number("intermediate_ports", 2));
            let hosts = section.get("hosts_per_tor", |r, n| r.count(n, 1, NUMBER_MAX));
            Shaped::Vl2 { aggregation_ports: da?, intermediate_ports: di?, hosts_per_tor: hosts.unwrap_or(20) }
        }
        "bcube" => {
            let (n, k, delay) = (number("n", 2), level("k"), delay());
            Shaped::BCube { n: n?, k: k?, forwarding_delay: delay? }
        }
        "dcell" => {
            let (n, l, delay) = (number("n", 2), level("l"), delay());
            Shaped::DCell { n: n?, l: l?, forwarding_delay: delay? }
        }
        "jellyfish" => {
            let (switches, ports) = (number("switches", 1), number("ports", 1));
            let hosts = number("hosts_per_switch", 1);
            let seed = section.get("seed", |r, n| r.integer(n, 0, INTEGER_MAX)).unwrap_or(1);
            Shaped::Jellyfish { switches: switches?, ports: ports?, hosts_per_switch: hosts?, seed }
        }
        _ => {
            let hosts = number("hosts_per_switch", 1);
            let (switches, global) = (number("switches_per_group", 1), number("global_ports", 1));
            Shaped::Dragonfly { hosts_per_switch: hosts?, switches_per_group: switches?, global_ports: global? }
        }
    };
    match shaped.shape().fault() {
        Some((key, fault)) => section.problem(key, fault, None),
        None => Some(Topology::Shaped(shaped)),
    }
}

impl Reader<'_, '_> {
    /// `"flow"`, `"packet"`, or `{ flowlet = { gap = "…" } }`.
    pub(super) fn balancing(&self, node: &Node) -> Option<Balancing> {
        if let Value::Text(_) = node.value {
            return self.word(node, &[("flow", Balancing::Flow), ("packet", Balancing::Packet)]);
        }
        let entry = self.variant(node, "balancing", &["flowlet"])?;
        let section = self.section(&entry.value, "balancing `flowlet`")?;
        let gap = section.require("gap", Self::span);
        section.finish();
        Some(Balancing::Flowlet { gap: gap? })
    }
}

/// What was written of a network's ways, checked against its topology; the defaults are VL2's valiant load balancing, ECMP
/// elsewhere, and a path for each flow.
pub(super) fn ways(
    section: &Section,
    topology: &Topology,
    (routing, balancing): (Option<Routing>, Option<Balancing>),
) -> Option<(Routing, Balancing)> {
    let standard = match topology {
        Topology::Shaped(Shaped::Vl2 { .. }) => Routing::Valiant,
        _ => Routing::Ecmp,
    };
    let (routing, balancing) = (routing.unwrap_or(standard), balancing.unwrap_or_default());
    let forward = topology.servers_forward();
    if forward && !matches!(routing, Routing::Ecmp | Routing::SinglePath) {
        let help = "write \"ecmp\" for one of its parallel paths by flow, or \"single-path\"".to_string();
        return section.problem("routing", "this network's servers forward by its own routing", Some(help));
    }
    if balancing != Balancing::Flow {
        if forward {
            let message = "a flow keeps to one interface of its server in this network";
            return section.problem("balancing", message, Some("write \"flow\"".to_string()));
        }
        if routing == Routing::SinglePath {
            let help = "write `routing = \"ecmp\"`".to_string();
            return section.problem("balancing", "`routing` \"single-path\" leaves one path only", Some(help));
        }
    }
    Some((routing, balancing))
}
