//! The emulator: the network model on the wall clock, with real Linux hosts in network namespaces attached.
//!
//! ```text
//! host ─ TAP ─▶ ports ─▶ engine: LinkTable, hop by hop, at the model's instants ─▶ ports ─ TAP ─▶ host
//! ```
#![forbid(unsafe_code)]

pub mod agenda;
pub mod engine;
pub mod flowcount;
pub mod lateness;
pub mod port;
pub mod routes;
pub mod series;
