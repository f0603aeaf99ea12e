//! What a switch says of its ports, whichever protocol carried it.

use units::{Bytes, Rate, Time};

/// One answer of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Its name in views: the operator's, else what it calls itself.
    pub switch: String,
    /// Its ports, in ascending order of `number`.
    pub ports: Vec<PortCounters>,
}

/// Counters of one port since the switch started them. `None`: not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// The protocol's number of the port.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// No cable is in it: a loopback, a tunnel, a bridge, a VLAN, or an aggregate, whose members are counted themselves.
    pub is_virtual: bool,
    /// What it can carry.
    pub rate: Option<Rate>,
    /// Whether packets can take it.
    pub up: Option<bool>,
    /// What is at the other end, by LLDP.
    pub neighbour: Option<Neighbour>,
    /// Received by the switch.
    pub received: Counts,
    /// Sent by the switch.
    pub sent: Counts,
    /// Its queues, if the switch counts them apart.
    pub queues: Vec<QueueCounters>,
    /// Width of the byte counters, bits: 32 or 64. A 32-bit counter at 10 Gbit/s wraps in 3.4 s.
    pub width: u32,
    /// When the switch last started its counters, by its own clock: for example SNMP's ifCounterDiscontinuityTime. A change is a reset.
    pub discontinuity: Option<u64>,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes, as the protocol counts them.
    pub bytes: Option<u64>,
    /// Packets.
    pub packets: Option<u64>,
    /// Packets dropped for want of buffer.
    pub dropped: Option<u64>,
    /// Packets dropped as damaged.
    pub errors: Option<u64>,
    /// When `bytes` was read, by one clock of the reader's choice: the switch's own (gNMI), or this machine's at the moment of the answer
    /// (SNMP). Only the difference between two answers of one reader means anything. `None`: the time of the answer as a whole.
    pub at: Option<Time>,
}

/// Counters of one queue of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Its name or number.
    pub name: String,
    /// Packets sent.
    pub packets: Option<u64>,
    /// Packets dropped.
    pub dropped: Option<u64>,
    /// Packets marked (ECN CE).
    pub marked: Option<u64>,
    /// Its length now, or its mean since the last answer.
    pub length: Option<Bytes>,
}

/// The other end of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbour {
    /// The switch or host.
    pub system: String,
    /// Its port.
    pub port: String,
}

/// Kinds of interfaces that no cable is in, by their numbers in ifType and their names in gNMI (iana.org/assignments/ianaiftype-mib).
const VIRTUAL: [(u64, &str); 10] = [
    (24, "softwareLoopback"),
    (53, "propVirtual"),
    (54, "propMultiplexor"),
    (131, "tunnel"),
    (135, "l2vlan"),
    (136, "l3ipvlan"),
    (137, "l3ipxvlan"),
    (150, "mplsTunnel"),
    (161, "ieee8023adLag"),
    (209, "bridge"),
];

/// Whether no cable is in interfaces of this ifType.
pub(crate) fn is_virtual_type(number: u64) -> bool {
    VIRTUAL.iter().any(|(one, _)| *one == number)
}

/// Whether no cable is in interfaces of the kind with this name.
pub(crate) fn is_virtual_kind(name: &str) -> bool {
    VIRTUAL.iter().any(|(_, one)| *one == name)
}
