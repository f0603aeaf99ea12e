//! Collectors: what switches say of their links and of the traffic, by OpenFlow, gNMI, SNMP, sFlow and IPFIX.
#![forbid(unsafe_code)]

pub mod config;
mod counters;
mod credentials;
mod error;
pub mod flows;
pub mod gnmi;
mod meter;
pub mod openflow;
pub mod parsers;
mod process;
pub mod snmp;
mod text;
mod trust;
pub mod watch;

pub use counters::{Counts, Neighbour, PortCounters, QueueCounters, SwitchCounters};
pub use credentials::CredentialError;
pub use error::ReadError;
pub use meter::{Meter, MeterCounts, Moment, PORTS_MAX, PortSettings, QUEUES_MAX, SWITCH_NAME_MAX};
pub use process::{CollectError, Seen, Status, Target, run};

/// A switch that is asked for its counters.
///
/// Each call is one question. It ends within the reader's own timeout, and connects anew where the connection has gone. It may be
/// dropped before it has ended; the next call is then as good as the first.
pub trait Reader {
    /// Asks once.
    fn read(&mut self) -> impl Future<Output = Result<SwitchCounters, ReadError>>;
}
