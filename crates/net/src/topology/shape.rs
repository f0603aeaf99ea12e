//! [`Shape`]: data-center networks that a few numbers describe, and their cables.
//!
//! ```text
//! VL2        t1…  ToRs, each to two aggregation switches a1…, each of which to all intermediate switches i1…
//! BCube      s1…  (k+1) levels of n^k switches; a server has a cable to one switch of each level
//! DCell      s1…  one switch per n servers; the other cables join two servers
//! Jellyfish  s1…  a random regular graph of switches
//! Dragonfly  s1…  groups of switches, all joined within a group, and each group joined to each other
//! ```
//!
//! Sources: Greenberg et al., "VL2", SIGCOMM 2009; Guo et al., "BCube", SIGCOMM 2009; Guo et al., "DCell", SIGCOMM 2008;
//! Singla et al., "Jellyfish", NSDI 2012; Kim et al., "Technology-driven, highly-scalable dragonfly topology", ISCA 2008.

mod jellyfish;

use super::{LinkTier, Tier};
use crate::error::{CABLES_MAX, NODES_MAX};

/// A network that a few numbers describe. Hosts are `h1`…; of all but the first tree, those of one group are numbered in a
/// row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Folded Clos network.
    Vl2 {
        /// DA, ports of an aggregation switch: even.
        aggregation_ports: u32,
        /// DI, ports of an intermediate switch: even.
        intermediate_ports: u32,
        /// Hosts of a ToR switch.
        hosts_per_tor: u32,
    },
    /// Servers with an interface to one switch of each level; servers forward.
    BCube {
        /// Ports of a switch: at least 2.
        n: u32,
        /// The highest level.
        k: u32,
    },
    /// Servers with an interface to a switch and one for each further level; servers forward.
    DCell {
        /// Servers of a switch: at least 2.
        n: u32,
        /// The highest level.
        l: u32,
    },
    /// A random regular graph of switches.
    Jellyfish {
        /// Number of switches.
        switches: u32,
        /// Ports of a switch.
        ports: u32,
        /// Hosts of a switch; its other ports lead to switches.
        hosts_per_switch: u32,
        /// Chooses the graph.
        seed: u64,
    },
    /// Groups with a cable between each two, a·h + 1 of them.
    Dragonfly {
        /// p, hosts of a switch.
        hosts_per_switch: u32,
        /// a, switches of a group.
        switches_per_group: u32,
        /// h, cables of a switch to other groups.
        global_ports: u32,
    },
}

/// A cable: its ends, and the tier of each of its links, that out of the first end first.
pub type Joined = (usize, usize, [LinkTier; 2]);

const UP: [LinkTier; 2] = [LinkTier::FromHost, LinkTier::ToHost];

impl Shape {
    /// Number of hosts; a number beyond all limits if it is too large to be counted.
    pub fn hosts(&self) -> u128 {
        match *self {
            Shape::Vl2 { hosts_per_tor, .. } => self.tors().saturating_mul(u128::from(hosts_per_tor)),
            Shape::BCube { n, k } => power(n, k.saturating_add(1)),
            Shape::DCell { n, l } => dcell_servers(n, l),
            Shape::Jellyfish { switches, hosts_per_switch, .. } => u128::from(switches) * u128::from(hosts_per_switch),
            Shape::Dragonfly { hosts_per_switch, .. } => self.switches().saturating_mul(u128::from(hosts_per_switch)),
        }
    }

    /// Number of switches.
    pub fn switches(&self) -> u128 {
        self.switch_classes().iter().fold(0u128, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// What the names of switches begin with, and how many there are of each, in order.
    pub fn switch_classes(&self) -> Vec<(&'static str, u128)> {
        match *self {
            Shape::Vl2 { aggregation_ports, intermediate_ports, .. } => vec![
                ("t", self.tors()),
                ("a", u128::from(intermediate_ports)),
                ("i", u128::from(aggregation_ports) / 2),
            ],
            Shape::BCube { n, k } => vec![("s", power(n, k).saturating_mul(u128::from(k) + 1))],
            Shape::DCell { n, .. } => vec![("s", self.hosts() / u128::from(n.max(1)))],
            Shape::Jellyfish { switches, .. } => vec![("s", u128::from(switches))],
            Shape::Dragonfly { switches_per_group, .. } => {
                vec![("s", self.groups().saturating_mul(u128::from(switches_per_group)))]
            }
        }
    }

    /// Number of groups that hosts are numbered by: ToRs, BCubes or DCells below the highest level, switches, groups.
    pub fn groups(&self) -> u128 {
        match *self {
            Shape::Vl2 { .. } => self.tors(),
            Shape::BCube { n, .. } | Shape::DCell { n, l: 0 } => u128::from(n),
            Shape::DCell { n, l } => dcell_servers(n, l - 1).saturating_add(1),
            Shape::Jellyfish { switches, .. } => u128::from(switches),
            Shape::Dragonfly { switches_per_group, global_ports, .. } => {
                u128::from(switches_per_group) * u128::from(global_ports) + 1
            }
        }
    }

    /// Whether servers forward for each other.
    pub fn servers_forward(&self) -> bool {
        matches!(self, Shape::BCube { .. } | Shape::DCell { .. })
    }

    /// Number of cables. Of a Jellyfish with an odd number of ports between switches, one port may stay free.
    pub fn cables(&self) -> u128 {
        let hosts = self.hosts();
        match *self {
            Shape::Vl2 { aggregation_ports, intermediate_ports, .. } => {
                let to_tors = self.tors() * 2;
                hosts.saturating_add(to_tors + u128::from(aggregation_ports) * u128::from(intermediate_ports) / 2)
            }
            Shape::BCube { k, .. } => hosts.saturating_mul(u128::from(k) + 1),
            // each server has one to its switch and, at each level, half of one
            Shape::DCell { l, .. } => hosts.saturating_add(hosts.saturating_mul(u128::from(l)) / 2),
            Shape::Jellyfish { switches, ports, hosts_per_switch, .. } => {
                hosts.saturating_add(u128::from(switches) * u128::from(ports.saturating_sub(hosts_per_switch)) / 2)
            }
            Shape::Dragonfly { switches_per_group, .. } => {
                let (groups, a) = (self.groups(), u128::from(switches_per_group));
                let pairs = |n: u128| n.saturating_mul(n.saturating_sub(1)) / 2;
                hosts.saturating_add(groups.saturating_mul(pairs(a))).saturating_add(pairs(groups))
            }
        }
    }

    /// What is wrong with it: the key of a scenario where it is, and in words.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let even = |key: &'static str, ports: u32| {
            (ports < 2 || !ports.is_multiple_of(2))
                .then(|| (key, format!("{ports} is not an even number from 2: half of the ports lead up or to a pair")))
        };
        let least = |key: &'static str, value: u32, least: u32| {
            (value < least).then(|| (key, format!("`{key}` is {value}; it is at least {least}")))
        };
        let (key, wrong) = match *self {
            Shape::Vl2 { aggregation_ports, intermediate_ports, hosts_per_tor } => (
                "aggregation_ports",
                even("aggregation_ports", aggregation_ports)
                    .or_else(|| even("intermediate_ports", intermediate_ports))
                    .or_else(|| least("hosts_per_tor", hosts_per_tor, 1)),
            ),
            Shape::BCube { n, .. } | Shape::DCell { n, .. } => ("n", least("n", n, 2)),
            Shape::Jellyfish { switches, ports, hosts_per_switch, .. } => {
                ("switches", jellyfish_fault(switches, ports, hosts_per_switch))
            }
            Shape::Dragonfly { hosts_per_switch, switches_per_group, global_ports } => (
                "switches_per_group",
                least("hosts_per_switch", hosts_per_switch, 1)
                    .or_else(|| least("switches_per_group", switches_per_group, 1))
                    .or_else(|| least("global_ports", global_ports, 1)),
            ),
        };
        if wrong.is_some() {
            return wrong;
        }
        let (nodes, cables) = (self.hosts().saturating_add(self.switches()), self.cables());
        let more = |what: &str, count: u128, most: u64| {
            let count = if count > 1 << 64 { "over 10^19".to_string() } else { count.to_string() };
            Some((key, format!("{count} {what} are too many: at most {most}")))
        };
        if nodes > u128::from(NODES_MAX) {
            more("nodes", nodes, NODES_MAX)
        } else if cables > u128::from(CABLES_MAX) {
            more("cables", cables, CABLES_MAX)
        } else {
            None
        }
    }

    /// The tier of switch `i`, counted from 0.
    pub(super) fn switch_tier(&self, i: usize) -> Tier {
        match *self {
            Shape::Vl2 { intermediate_ports, .. } => {
                let (tors, aggregations) = (self.tors() as usize, intermediate_ports as usize);
                match i {
                    _ if i < tors => Tier::Tor,
                    _ if i < tors + aggregations => Tier::Aggregation,
                    _ => Tier::Intermediate,
                }
            }
            Shape::BCube { n, k } => Tier::Level((i / power(n, k) as usize) as u8),
            Shape::DCell { .. } | Shape::Jellyfish { .. } | Shape::Dragonfly { .. } => Tier::Switch,
        }
    }

    /// All cables, of a shape without fault. Nodes are numbered from 0, hosts first; each host's first cable leads to a
    /// switch.
    pub fn joined(&self) -> Vec<Joined> {
        let hosts = self.hosts() as usize;
        match *self {
            Shape::Vl2 { aggregation_ports, intermediate_ports, hosts_per_tor } => {
                let (tors, per_tor) = (self.tors() as usize, hosts_per_tor as usize);
                let (half, aggregations) = (aggregation_ports as usize / 2, intermediate_ports as usize);
                let mut cables: Vec<Joined> = (0..hosts).map(|host| (host, hosts + host / per_tor, UP)).collect();
                let first = hosts + tors;
                for tor in 0..tors {
                    // each pair of aggregation switches has DA/2 ToRs
                    let pair = first + tor / half * 2;
                    cables.extend([0, 1].map(|i| (hosts + tor, pair + i, [LinkTier::EdgeAggregation; 2])));
                }
                for aggregation in 0..aggregations {
                    let tier = [LinkTier::AggregationIntermediate; 2];
                    cables.extend((0..half).map(|i| (first + aggregation, first + aggregations + i, tier)));
                }
                cables
            }
            Shape::BCube { n, k } => {
                let (n, of_level) = (n as usize, power(n, k) as usize);
                let mut cables = Vec::with_capacity(self.cables() as usize);
                let mut stride = 1;
                for level in 0..=k as usize {
                    for host in 0..hosts {
                        // the digits of the host's address without that of this level
                        let switch = host / (stride * n) * stride + host % stride;
                        cables.push((host, hosts + level * of_level + switch, UP));
                    }
                    stride *= n;
                }
                cables
            }
            Shape::DCell { n, l } => {
                let mut cables: Vec<Joined> = (0..hosts).map(|host| (host, hosts + host / n as usize, UP)).collect();
                for level in 1..=l {
                    let inner = dcell_servers(n, level - 1) as usize;
                    for first in (0..hosts).step_by(inner * (inner + 1)) {
                        for (i, j) in (0..=inner).flat_map(|i| (i + 1..=inner).map(move |j| (i, j))) {
                            let ends = (first + i * inner + j - 1, first + j * inner + i);
                            cables.push((ends.0, ends.1, [LinkTier::HostToHost; 2]));
                        }
                    }
                }
                cables
            }
            Shape::Jellyfish { switches, ports, hosts_per_switch, seed } => {
                let of_each = hosts_per_switch as usize;
                let mut cables: Vec<Joined> = (0..hosts).map(|host| (host, hosts + host / of_each, UP)).collect();
                let graph = jellyfish::graph(switches as usize, (ports - hosts_per_switch) as usize, seed);
                cables.extend(graph.into_iter().map(|(a, b)| (hosts + a, hosts + b, [LinkTier::Switches; 2])));
                cables
            }
            Shape::Dragonfly { hosts_per_switch, switches_per_group, global_ports } => {
                let (p, a, h) = (hosts_per_switch as usize, switches_per_group as usize, global_ports as usize);
                let groups = a * h + 1;
                let mut cables: Vec<Joined> = (0..hosts).map(|host| (host, hosts + host / p, UP)).collect();
                for group in 0..groups {
                    let first = hosts + group * a;
                    for (i, j) in (0..a).flat_map(|i| (i + 1..a).map(move |j| (i, j))) {
                        cables.push((first + i, first + j, [LinkTier::Local; 2]));
                    }
                }
                for (group, port) in (0..groups).flat_map(|group| (0..a * h).map(move |port| (group, port))) {
                    // the port with this number leads so many groups on, and that group's counted from the end leads back
                    let (other, back) = ((group + port + 1) % groups, a * h - 1 - port);
                    if group < other {
                        let end = |group: usize, port: usize| hosts + group * a + port / h;
                        cables.push((end(group, port), end(other, back), [LinkTier::Global; 2]));
                    }
                }
                cables
            }
        }
    }

    /// VL2's ToR switches: DA·DI/4.
    fn tors(&self) -> u128 {
        match *self {
            Shape::Vl2 { aggregation_ports, intermediate_ports, .. } => {
                u128::from(aggregation_ports) * u128::from(intermediate_ports) / 4
            }
            _ => 0,
        }
    }
}

/// Servers of a DCell of level `l`: t = t' (t' + 1) of one level less.
pub fn dcell_servers(n: u32, l: u32) -> u128 {
    (0..l.min(8)).fold(u128::from(n), |servers, _| servers.saturating_mul(servers.saturating_add(1)))
}

fn power(n: u32, exponent: u32) -> u128 {
    u128::from(n).checked_pow(exponent).unwrap_or(u128::MAX)
}

fn jellyfish_fault(switches: u32, ports: u32, hosts: u32) -> Option<(&'static str, String)> {
    let between = ports.saturating_sub(hosts);
    if hosts == 0 {
        Some(("hosts_per_switch", "a switch has at least one host".to_string()))
    } else if between < 3 {
        let message =
            format!("{between} ports lead to other switches; at least 3 are needed for one connected network");
        Some(("ports", message))
    } else if switches <= between {
        Some(("switches", format!("each switch is joined to {between} others, so there are more than {between}")))
    } else {
        None
    }
}
