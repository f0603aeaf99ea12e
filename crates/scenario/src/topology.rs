//! The names of a topology's nodes, and which of them are linked: enough to check a scenario's references to them.

use crate::model::{NodeKind, Shaped, Tier, Topology};

/// A node by its class (what its name begins with) and its number in the class, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Host(u64),
    Switch(&'static str, u64),
}

impl Topology {
    /// Number of hosts.
    pub fn hosts(&self) -> u64 {
        match self {
            Topology::FatTree { k } => u64::from(*k).pow(3) / 4,
            Topology::LeafSpine { leaves, hosts_per_leaf, .. } => u64::from(*leaves) * u64::from(*hosts_per_leaf),
            Topology::Star { hosts } => u64::from(*hosts),
            Topology::Dumbbell { pairs } => 2 * u64::from(*pairs),
            Topology::Explicit { nodes, .. } => nodes.iter().filter(|node| node.kind == NodeKind::Host).count() as u64,
            Topology::Shaped(shaped) => shaped.shape().hosts() as u64,
        }
    }

    /// Number of switches.
    pub fn switches(&self) -> u64 {
        match self {
            Topology::FatTree { k } => u64::from(*k).pow(2) * 5 / 4,
            Topology::LeafSpine { leaves, spines, .. } => u64::from(*leaves) + u64::from(*spines),
            Topology::Star { .. } => 1,
            Topology::Dumbbell { .. } => 2,
            Topology::Explicit { nodes, .. } => {
                nodes.iter().filter(|node| node.kind == NodeKind::Switch).count() as u64
            }
            Topology::Shaped(shaped) => shaped.shape().switches() as u64,
        }
    }

    /// Number of cables, each a link in both directions.
    pub fn cables(&self) -> u64 {
        match self {
            Topology::FatTree { k } => u64::from(*k).pow(3) / 4 * 3,
            Topology::LeafSpine { leaves, spines, .. } => self.hosts() + u64::from(*leaves) * u64::from(*spines),
            Topology::Star { hosts } => u64::from(*hosts),
            Topology::Dumbbell { .. } => self.hosts() + 1,
            Topology::Explicit { links, .. } => links.len() as u64,
            Topology::Shaped(shaped) => shaped.shape().cables() as u64,
        }
    }

    /// The tiers that may have settings of their own.
    pub fn tiers(&self) -> &'static [Tier] {
        match self {
            Topology::FatTree { .. } => &[Tier::Host, Tier::Aggregation, Tier::Core],
            Topology::LeafSpine { .. } => &[Tier::Host, Tier::Spine],
            Topology::Star { .. } => &[Tier::Host],
            Topology::Dumbbell { .. } => &[Tier::Host, Tier::Bottleneck],
            Topology::Explicit { .. } => &[],
            Topology::Shaped(shaped) => match shaped {
                Shaped::Vl2 { .. } => &[Tier::Host, Tier::Aggregation, Tier::Intermediate],
                Shaped::BCube { .. } => &[Tier::Host],
                Shaped::DCell { .. } => &[Tier::Host, Tier::Server],
                Shaped::Jellyfish { .. } => &[Tier::Host, Tier::Switch],
                Shaped::Dragonfly { .. } => &[Tier::Host, Tier::Local, Tier::Global],
            },
        }
    }

    /// The name of host `index` (from 0, less than [`Topology::hosts`]).
    pub fn host_name(&self, index: u64) -> String {
        match self {
            Topology::Explicit { nodes, .. } => {
                let mut hosts = nodes.iter().filter(|node| node.kind == NodeKind::Host);
                hosts.nth(index as usize).map(|node| node.name.clone()).unwrap_or_default()
            }
            Topology::Dumbbell { pairs } if index >= u64::from(*pairs) => {
                format!("right{}", index + 1 - u64::from(*pairs))
            }
            Topology::Dumbbell { .. } => format!("left{}", index + 1),
            _ => format!("h{}", index + 1),
        }
    }

    /// The number, from 0, of the host with this name.
    pub fn host_index(&self, name: &str) -> Option<u64> {
        match self {
            Topology::Explicit { nodes, .. } => {
                let mut hosts = nodes.iter().filter(|node| node.kind == NodeKind::Host);
                hosts.position(|node| node.name == name).map(|i| i as u64)
            }
            _ => match self.named(name)? {
                Named::Host(index) => Some(index),
                Named::Switch(..) => None,
            },
        }
    }

    /// Whether servers forward for each other.
    pub fn servers_forward(&self) -> bool {
        matches!(self, Topology::Shaped(shaped) if shaped.shape().servers_forward())
    }

    /// Number of groups that traffic can be sent across: pods, leaves, and so on. Absent where there are none.
    pub fn pods(&self) -> Option<u64> {
        match self {
            Topology::FatTree { k } => Some(u64::from(*k)),
            Topology::LeafSpine { leaves, .. } => Some(u64::from(*leaves)),
            Topology::Shaped(shaped) => Some(shaped.shape().groups() as u64),
            _ => None,
        }
    }

    /// Whether there is a node with this name.
    pub(crate) fn has_node(&self, name: &str) -> bool {
        match self {
            Topology::Explicit { nodes, .. } => nodes.iter().any(|node| node.name == name),
            _ => self.named(name).is_some(),
        }
    }

    /// Whether a cable joins the two.
    pub(crate) fn linked(&self, one: &str, other: &str) -> bool {
        if let Topology::Explicit { links, .. } = self {
            let ends = |a: &str, b: &str| links.iter().any(|link| link.a == a && link.b == b);
            return ends(one, other) || ends(other, one);
        }
        let (Some(one), Some(other)) = (self.named(one), self.named(other)) else { return false };
        if let Topology::Shaped(shaped) = self {
            let (one, other) = (self.number(one), self.number(other));
            let joined = shaped.shape().joined();
            return joined.iter().any(|(a, b, _)| [(*a, *b), (*b, *a)].contains(&(one, other)));
        }
        self.joins(one, other) || self.joins(other, one)
    }

    /// The number of a node among all, hosts first.
    fn number(&self, node: Named) -> usize {
        let index = match node {
            Named::Host(index) => index,
            Named::Switch(class, index) => {
                let before = self.switch_classes().into_iter().take_while(|(name, _)| *name != class);
                self.hosts() + before.map(|(_, count)| count).sum::<u64>() + index
            }
        };
        index as usize
    }

    /// Whether a cable leads from `lower` up to `upper`.
    fn joins(&self, lower: Named, upper: Named) -> bool {
        use Named::{Host, Switch};
        match (self, lower, upper) {
            (Topology::FatTree { k }, lower, upper) => {
                let m = u64::from(*k) / 2;
                match (lower, upper) {
                    (Host(x), Switch("e", i)) => x / m == i,
                    (Switch("e", i), Switch("a", j)) => i / m == j / m,
                    (Switch("a", j), Switch("c", c)) => c / m == j % m,
                    _ => false,
                }
            }
            (Topology::LeafSpine { hosts_per_leaf, .. }, Host(x), Switch("l", i)) => {
                x / u64::from(*hosts_per_leaf) == i
            }
            (Topology::Dumbbell { pairs }, Host(x), Switch(_, i)) => x / u64::from(*pairs) == i,
            (Topology::LeafSpine { .. }, Switch("l", _), Switch("s", _))
            | (Topology::Star { .. }, Host(_), Switch(..))
            | (Topology::Dumbbell { .. }, Switch(_, 0), Switch(_, 1)) => true,
            _ => false,
        }
    }

    /// What the names of hosts begin with, and how many there are of each, in order.
    fn host_classes(&self) -> Vec<(&'static str, u64)> {
        match self {
            Topology::Dumbbell { pairs } => vec![("left", u64::from(*pairs)), ("right", u64::from(*pairs))],
            Topology::Explicit { .. } => Vec::new(),
            _ => vec![("h", self.hosts())],
        }
    }

    /// The same for switches.
    fn switch_classes(&self) -> Vec<(&'static str, u64)> {
        match self {
            Topology::FatTree { k } => {
                let k = u64::from(*k);
                vec![("e", k * k / 2), ("a", k * k / 2), ("c", k * k / 4)]
            }
            Topology::LeafSpine { leaves, spines, .. } => vec![("l", u64::from(*leaves)), ("s", u64::from(*spines))],
            Topology::Star { .. } => vec![("s", 1)],
            Topology::Dumbbell { .. } => vec![("s", 2)],
            Topology::Explicit { .. } => Vec::new(),
            Topology::Shaped(shaped) => {
                let classes = shaped.shape().switch_classes().into_iter();
                classes.map(|(name, count)| (name, count as u64)).collect()
            }
        }
    }

    /// Takes a generated name apart: a class and a number from 1 without leading zeros.
    fn named(&self, name: &str) -> Option<Named> {
        let (class, digits) = name.split_at(name.find(|c: char| !c.is_ascii_lowercase())?);
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let index = digits.parse::<u64>().ok()?.checked_sub(1)?;
        let mut first = 0;
        for (host_class, count) in self.host_classes() {
            if host_class == class {
                return (index < count).then_some(Named::Host(first + index));
            }
            first += count;
        }
        let (class, count) = self.switch_classes().into_iter().find(|(switch_class, _)| *switch_class == class)?;
        (index < count).then_some(Named::Switch(class, index))
    }

    /// "hosts are h1 to h54", for help.
    pub(crate) fn describe_hosts(&self) -> String {
        match self {
            Topology::Explicit { .. } => "hosts are the nodes of kind \"host\"".into(),
            _ => format!("hosts are {}", describe(&self.host_classes())),
        }
    }

    /// All names by class, for help.
    pub(crate) fn describe_nodes(&self) -> String {
        match self {
            Topology::Explicit { .. } => "nodes are those of `network.topology.explicit.nodes`".into(),
            _ => format!("{}; switches are {}", self.describe_hosts(), describe(&self.switch_classes())),
        }
    }

    /// Names for suggestions; only listed ones, since generated names are described instead.
    pub(crate) fn listed_names(&self, hosts_only: bool) -> Vec<&str> {
        match self {
            Topology::Explicit { nodes, .. } => nodes
                .iter()
                .filter(|node| !hosts_only || node.kind == NodeKind::Host)
                .map(|node| node.name.as_str())
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// "e1 to e18, a1 to a18, c1 to c9".
fn describe(classes: &[(&str, u64)]) -> String {
    let range = |&(class, count): &(&str, u64)| match count {
        1 => format!("{class}1"),
        _ => format!("{class}1 to {class}{count}"),
    };
    classes.iter().map(range).collect::<Vec<_>>().join(", ")
}
