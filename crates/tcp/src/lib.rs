//! A TCP endpoint without I/O, shaped like Linux's.
#![forbid(unsafe_code)]

mod config;
mod segment;

pub use config::{Config, DelayedAck, EcnMode, PacingMode};
pub use segment::{Ecn, SACK_BLOCKS_MAX, SackBlock, Segment, flags};
