//! Positions of nodes: switches by level, hosts in rows.

use net::{LinkId, NodeId, NodeKind, Tier, Topology};

/// Up to so many hosts, each has a row of its own.
const ROWS_OF_HOSTS_MAX: usize = 24;

/// A row: hosts of one switch, in their order.
pub struct Row {
    /// The switch.
    pub switch: NodeId,
    /// One host, or all of the switch.
    pub hosts: Vec<NodeId>,
}

/// The layout.
pub struct Layout {
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// Switches by level: first those with hosts, last the farthest from hosts.
    pub levels: Vec<Vec<NodeId>>,
}

impl Layout {
    /// Of this topology.
    pub fn of(topology: &Topology) -> Layout {
        let level = levels(topology);
        let highest = level.iter().copied().max().unwrap_or(0);
        let switches = (topology.n_hosts()..topology.nodes().len()).map(|i| NodeId(i as u32));
        let of_level = |wanted: usize| switches.clone().filter(|id| level[id.index()] == wanted).collect();
        let levels: Vec<Vec<NodeId>> = (1..=highest).map(of_level).collect();
        let together = topology.n_hosts() > ROWS_OF_HOSTS_MAX;
        let mut rows = Vec::new();
        for &switch in levels.first().into_iter().flatten() {
            let hosts = hosts_of(topology, switch);
            if together {
                rows.push(Row { switch, hosts });
            } else {
                rows.extend(hosts.into_iter().map(|host| Row { switch, hosts: vec![host] }));
            }
        }
        Layout { rows, levels }
    }
}

/// The hosts at a switch.
pub fn hosts_of(topology: &Topology, switch: NodeId) -> Vec<NodeId> {
    let ends = topology.out_links(switch).iter().map(|id| topology.link(*id).to);
    ends.filter(|node| topology.node(*node).kind == NodeKind::Host).collect()
}

/// Cables between switches: ids of their links from the first end, and the ends. A cable of a server that forwards counts as
/// one of the switch at which the server is drawn.
pub fn between_switches(topology: &Topology) -> Vec<(LinkId, [NodeId; 2])> {
    let drawn_at = |node: NodeId| match topology.node(node).kind {
        NodeKind::Host => topology.link(topology.nic(node)).to,
        NodeKind::Switch => node,
    };
    // the two links of a cable are beside each other
    let cables = (0..topology.links().len() as u32).step_by(2).map(LinkId);
    let ends = cables.map(|id| (id, [topology.link(id).from, topology.link(id).to].map(drawn_at)));
    ends.filter(|(_, [from, to])| from != to).collect()
}

/// Distance of each node from the hosts: in a tree by its tiers, otherwise by the shortest path.
fn levels(topology: &Topology) -> Vec<usize> {
    let mut level: Vec<usize> = topology.nodes().iter().map(|node| known_level(node.tier)).collect();
    // switches of no known tier: those with hosts are at 1, their neighbours at 2, and so on
    for distance in 1..level.len() {
        let mut found = false;
        for link in topology.links() {
            if level[link.from.index()] == distance - 1 && level[link.to.index()] == usize::MAX {
                level[link.to.index()] = distance;
                found = true;
            }
        }
        if !found {
            break;
        }
    }
    level
}

fn known_level(tier: Tier) -> usize {
    match tier {
        Tier::Host => 0,
        Tier::Edge | Tier::Leaf | Tier::Tor => 1,
        Tier::Aggregation | Tier::Spine => 2,
        Tier::Core | Tier::Intermediate => 3,
        Tier::Level(level) => 1 + usize::from(level),
        Tier::Switch => usize::MAX,
    }
}
