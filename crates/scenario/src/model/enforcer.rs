//! An enforcer in the network.

use super::{Algorithm, Percent};
use policy::Prefix;
use serde::Serialize;
use serde::ser::SerializeMap;
use units::Bytes;

/// Congestion control enforced at one node: flows that pass there and match a rule are forwarded by the rule's algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Enforcer {
    /// Where: a host, for the flows that it sends, or a switch, for all flows that pass through it.
    pub at: String,
    /// Memory of all packets that are kept until they are acknowledged. Default 1 GiB.
    pub buffer: Bytes,
    /// Flows that are enforced at a time; others pass untouched. Default 1,048,576.
    pub flows: u32,
    /// What is done with which flows: the first rule that matches applies. Flows that none matches pass untouched.
    pub rule: Vec<EnforcerRule>,
}

/// Which flows, and what is done with them. An absent condition matches every flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnforcerRule {
    /// What is done with them.
    #[serde(flatten)]
    pub treatment: Treatment,
    /// The hosts that send the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<Hosts>,
    /// Those that receive it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<Hosts>,
    /// A port of either end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Payload that may be on its way to a client, over all of its flows that match. Each setting is that of the first match that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_total: Option<Bytes>,
}

/// What is done with a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Treatment {
    /// This algorithm is enforced.
    Enforce(Algorithm),
    /// ECN marks are echoed in the receiver's place.
    Echo,
    /// This share of their data is marked, if their ends agreed on ECN.
    Mark(Percent),
}

impl Treatment {
    /// The algorithm that is enforced.
    pub fn cc(&self) -> Option<&Algorithm> {
        match self {
            Treatment::Enforce(cc) => Some(cc),
            Treatment::Echo | Treatment::Mark(_) => None,
        }
    }
}

impl Serialize for Treatment {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        match self {
            Treatment::Enforce(cc) => map.serialize_entry("cc", cc)?,
            Treatment::Echo => map.serialize_entry("echo", &true)?,
            Treatment::Mark(share) => map.serialize_entry("mark", share)?,
        }
        map.end()
    }
}

/// A host, or all with addresses of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// By its name.
    Named(String),
    /// By their addresses.
    Prefix(Prefix),
}

impl Serialize for Hosts {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Hosts::Named(name) => s.serialize_str(name),
            Hosts::Prefix(prefix) => s.collect_str(prefix),
        }
    }
}
