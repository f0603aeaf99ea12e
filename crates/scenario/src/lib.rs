//! The scenario file: one TOML file that says what network, what traffic, what TCP, and what to measure.
//!
//! ```text
//! file + --set ──▶ tree (values that know where they were written) ──▶ sweep ──▶ read ──▶ Scenario
//! ```
//!
//! [`Scenario::load`] reads a file and everything that it names; [`Scenario::parse`] does the same with a text and a
//! [`Files`] of the caller's, without touching a disk. Both give every mistake that they find, each with its place.
//! The caller says which algorithms exist ([`Known`]), so that this crate needs none.
#![forbid(unsafe_code)]

mod bundle;
mod graph;
mod load;
mod model;
mod objection;
mod overrides;
mod read;
mod sizes;
mod topology;
mod unused;

pub use bundle::Bundle;
pub use document::{Diagnostic, Located};
pub use graph::{Graph, GraphError, Task, Work};
pub use load::{Disk, Files, Input, Known, Loaded, Run};
pub use model::*;
pub use objection::Objection;
pub use sizes::{SizeDistribution, SizeError};
pub use unused::Unused;
