//! The emulator: the network model on the wall clock, with real Linux hosts attached, each in a network namespace.
//!
//! ```text
//! Scenario ─▶ hosts (namespace, TAP, sysctls)  ◀─ sockets ─ traffic: the scenario's applications
//!                │ TAP
//!                ▼
//!             ports ⇄ engine: LinkTable, hop by hop, at the model's instants ─▶ series, flows, lateness ─▶ RunResults
//! ```
//!
//! [`emulate`] runs a scenario in real time, or slower by a [`Slowdown`], and returns what the simulator returns and a
//! [`SelfCheck`](results::SelfCheck): how late the machine was, and whether that matters for what the scenario measures.
#![forbid(unsafe_code)]

pub mod address;
pub mod agenda;
mod cgroup;
pub mod check;
pub mod cpu;
pub mod driver;
pub mod engine;
mod error;
pub mod flowcount;
pub mod gate;
pub mod gauges;
pub mod hosts;
pub mod info;
pub mod lateness;
pub mod limits;
pub mod linux;
pub mod port;
mod retuning;
pub mod routes;
mod run;
mod scheduling;
mod setter;
mod slowdown;
mod sockets;
mod taps;
mod traffic;

pub use error::EmuError;
pub use run::{Emulated, Furnished, Network, Watch, emulate, open, open_with};
pub use scheduling::Awake;
pub use slowdown::Slowdown;
