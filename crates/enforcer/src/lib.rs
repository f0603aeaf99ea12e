//! Congestion control enforced in the network, for hosts that nobody changes (TCon, Zhang et al., NPC 2017).
//!
//! An [`Enforcer`] stands between servers and their clients. Of each flow that a [`Rule`] is for, it keeps a copy of what the server
//! has sent until the client has acknowledged it, forwards it by any algorithm of `cc/`, and retransmits what was lost.
//! The server's window is that of the algorithm, written into the window of the client's acknowledgments; what would make it
//! slow down by itself, duplicate acknowledgments, SACK blocks and echoes of congestion, does not reach it. What it retransmits because
//! of a loss that it cannot see is absorbed, and a D-SACK reports that there was no need. The ends keep their
//! connection: nothing is acknowledged that the client has not acknowledged.
//!
//! # Driving it
//!
//! It reads no clock and does no I/O. Its host hands it packets ([`Enforcer::on_packet`]), each with the time and the direction, and
//! calls [`Enforcer::on_timer`] at the moment that [`Enforcer::poll_timeout`] names. After each it takes what leaves from
//! [`Enforcer::poll_transmit`]. A packet is whatever the host has ([`Packet`]); [`Simulated`] is the simulator's.
//!
//! # The code
//!
//! - `half_open` remembers what a handshake agrees on, for a bounded time and room; `index` finds flows; `rules` say which
//!   algorithm;
//! - `flow` is one flow: what the client says goes to its [`tcp::Relay`], which is the sender of an [`tcp::Endpoint`] with all of
//!   its hooks, loss detection, recovery and pacing; `buffer` has the copies;
//! - `counters` is everything that is counted.
//!
//! # When in doubt, through
//!
//! What is not understood passes untouched: packets that are malformed or of a connection whose beginning was not seen, since
//! without its SYNs the scale of its windows is not known; flows that no rule is for, or for which there is no room; connections
//! whose ends both sent a SYN. Where a packet was lost before the enforcer, or there is no room for a copy of it, the client's
//! acknowledgments pass as they are until the gap is closed, so that the server repairs it.
//!
//! Deliberately absent: algorithms that the client's sending obeys (it is enforced where its host is the server), and multipath
//! options.
#![forbid(unsafe_code)]

mod answers;
mod buffer;
mod counters;
mod enforcer;
mod flow;
mod half_open;
mod index;
mod kept;
mod limits;
mod packet;
mod rules;
mod seq;
mod simulated;

pub use counters::{Counters, Ending, Record, Sent};
pub use enforcer::Enforcer;
pub use kept::Kept;
pub use limits::Limits;
pub use packet::{Action, Direction, End, Header, Packet};
pub use rules::Rule;
pub use simulated::Simulated;
