//! The scenario file: one TOML file that says what network, what traffic, what TCP, and what to measure.
#![forbid(unsafe_code)]

mod model;
mod sizes;

pub use model::*;
pub use sizes::{SizeDistribution, SizeError};
