//! A TCP endpoint without I/O, shaped like Linux's.
#![forbid(unsafe_code)]

mod config;
mod endpoint;
mod input;
mod output;
mod rare;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod seq;

pub use config::{Config, DelayedAck, EcnMode, PacingMode};
pub use endpoint::{Endpoint, State, Stats};
pub use segment::{Ecn, SACK_BLOCKS_MAX, SackBlock, Segment, flags};
