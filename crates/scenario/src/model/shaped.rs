//! Data-center networks beside fat tree and leaf–spine, and how flows are spread over their paths.

use net::Shape;
use serde::Serialize;
use units::Time;

/// A network that a few numbers describe; `net::Shape` has the wiring. Hosts are `h1`….
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shaped {
    /// ToRs `t`, aggregation switches `a`, intermediate switches `i`.
    Vl2 {
        /// DA: even.
        aggregation_ports: u32,
        /// DI: even.
        intermediate_ports: u32,
        /// Hosts of a ToR. Default 20.
        hosts_per_tor: u32,
    },
    /// Switches `s`, level by level; servers forward.
    BCube {
        /// Ports of a switch: at least 2.
        n: u32,
        /// The highest level.
        k: u32,
        /// What a packet waits in each server that forwards it.
        forwarding_delay: Time,
    },
    /// Switches `s`, one for each n servers; servers forward.
    DCell {
        /// Servers of a switch: at least 2.
        n: u32,
        /// The highest level.
        l: u32,
        /// What a packet waits in each server that forwards it.
        forwarding_delay: Time,
    },
    /// Switches `s` in a random regular graph.
    Jellyfish {
        /// Number of switches.
        switches: u32,
        /// Ports of a switch.
        ports: u32,
        /// Hosts of a switch; at least three ports are left.
        hosts_per_switch: u32,
        /// Chooses the graph, which is thus the same for all seeds of the traffic. Default 1.
        seed: u64,
    },
    /// Switches `s`, group by group.
    Dragonfly {
        /// p.
        hosts_per_switch: u32,
        /// a.
        switches_per_group: u32,
        /// h: cables of a switch to other groups.
        global_ports: u32,
    },
}

impl Shaped {
    /// Its wiring.
    pub fn shape(&self) -> Shape {
        match *self {
            Shaped::Vl2 { aggregation_ports, intermediate_ports, hosts_per_tor } => {
                Shape::Vl2 { aggregation_ports, intermediate_ports, hosts_per_tor }
            }
            Shaped::BCube { n, k, .. } => Shape::BCube { n, k },
            Shaped::DCell { n, l, .. } => Shape::DCell { n, l },
            Shaped::Jellyfish { switches, ports, hosts_per_switch, seed } => {
                Shape::Jellyfish { switches, ports, hosts_per_switch, seed }
            }
            Shaped::Dragonfly { hosts_per_switch, switches_per_group, global_ports } => {
                Shape::Dragonfly { hosts_per_switch, switches_per_group, global_ports }
            }
        }
    }

    /// What a packet waits in each server that forwards it; zero where none does.
    pub fn forwarding_delay(&self) -> Time {
        match *self {
            Shaped::BCube { forwarding_delay, .. } | Shaped::DCell { forwarding_delay, .. } => forwarding_delay,
            _ => Time::ZERO,
        }
    }
}

/// What takes one path together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Balancing {
    /// All packets of a flow. The default.
    #[default]
    Flow,
    /// Each packet for itself: packet spraying.
    Packet,
    /// Packets of a flow with no longer pause between them (Kandula et al., CCR 2007).
    Flowlet {
        /// After a longer pause the path is chosen anew.
        gap: Time,
    },
}

impl Balancing {
    /// Whether it is the default.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn is_by_flow(&self) -> bool {
        *self == Balancing::Flow
    }
}
