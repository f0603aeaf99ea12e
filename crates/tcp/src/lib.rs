//! A TCP endpoint without I/O, shaped like Linux's.
#![forbid(unsafe_code)]

mod ack;
mod config;
mod endpoint;
mod handshake;
mod input;
mod output;
mod prr;
mod rack;
mod rare;
mod rate;
mod receiver;
mod recovery;
mod rtt;
mod sack;
mod scoreboard;
mod segment;
mod seq;
mod timers;
mod undo;
mod window;

pub use config::{Config, DelayedAck, EcnMode, PacingMode};
pub use endpoint::{Endpoint, State, Stats};
pub use segment::{Ecn, SACK_BLOCKS_MAX, SackBlock, Segment, flags};
