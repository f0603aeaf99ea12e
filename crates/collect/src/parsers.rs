//! What reads bytes of switches and is not public, for whoever tries them with changed bytes (`crates/parsers`). Answers are dropped.

pub use crate::gnmi::parsed as gnmi;
pub use crate::openflow::parsed as openflow;
pub use crate::snmp::parsed as snmp;
