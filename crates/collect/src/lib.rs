//! Collectors: what switches say of their links and of the traffic, by OpenFlow, gNMI, SNMP, sFlow and IPFIX.
#![forbid(unsafe_code)]

mod counters;
pub mod openflow;

pub use counters::{Counts, Neighbour, PortCounters, QueueCounters, SwitchCounters};
