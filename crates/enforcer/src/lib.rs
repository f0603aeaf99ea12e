//! Congestion control enforced in the network, for hosts that cannot be changed (TCon, Zhang et al., NPC 2017).
//!
//! An [`Enforcer`] is on the path between servers and their clients. For each flow that a [`Rule`] matches, it buffers what the server
//! sends until the client has acknowledged it, forwards it by any algorithm of `cc/`, and retransmits what is lost.
//! It writes the algorithm's window into the client's ACKs for the server. Signals that would make the server
//! slow down by itself (duplicate ACKs, SACK blocks, ECN echoes) are removed. The server's own retransmissions
//! are absorbed and answered with a D-SACK. The connection stays end to
//! end: nothing is acknowledged that the client has not acknowledged.
//!
//! # Driving it
//!
//! It reads no clock and does no I/O. Its host passes it packets ([`Enforcer::on_packet`]), each with the time and the direction, and
//! calls [`Enforcer::on_timer`] at the time that [`Enforcer::poll_timeout`] returns. After each call it sends the packets of
//! [`Enforcer::poll_transmit`]. A packet is any type of the host's ([`Packet`]); [`Simulated`] is the simulator's, and
//! [`Annotated`] adds to one what the host knows of it.
//!
//! # The code
//!
//! - `half_open` stores what a handshake negotiates, for bounded time and memory; `index` finds flows; `rules` choose the
//!   algorithm;
//! - `flow` is one flow: the client's ACKs go to its [`tcp::Relay`], the sender of an [`tcp::Endpoint`] with all of
//!   its hooks, loss detection, recovery and pacing; `buffer` has the copies, `dress` the header with which
//!   one leaves;
//! - `echo` is the other end of an enforced DCTCP: it echoes marks in the place of clients that know no ECN;
//! - `mark` slows hosts with ECN by marks alone;
//! - `receivers` bounds what is on its way to a client, over all of its flows;
//! - `counters` has all counters, `listing` the state of each flow;
//! - `checkpoint` is what another enforcer needs to take over, `standby` has it while that one waits.
//!
//! # When in doubt, pass
//!
//! What cannot be enforced passes untouched: malformed packets; connections whose handshake was not seen, since
//! the window scale is not known then; flows that no rule matches, or for which there is no room; connections
//! whose ends both sent a SYN. Where a packet was lost before the enforcer, or there is no room for a copy of it, the client's
//! ACKs pass unchanged until the gap is closed, so that the server repairs it.
//!
//! Not supported: enforcing the client's sending (a rule with the client as server does that), and multipath
//! options.
#![forbid(unsafe_code)]

mod annotated;
mod answers;
mod buffer;
mod checkpoint;
mod counters;
mod dress;
mod echo;
mod ect;
mod enforcer;
mod flow;
mod half_open;
mod index;
mod kept;
mod limits;
mod listing;
mod mark;
mod packet;
mod receivers;
mod rules;
mod seq;
mod simulated;
mod standby;

pub use annotated::Annotated;
pub use checkpoint::{Buffered, Checkpoint, Handshake, Handshakes, Piece};
pub use counters::{Counters, Ending, Record, Sent};
pub use enforcer::Enforcer;
pub use kept::Kept;
pub use limits::Limits;
pub use listing::{CaState, FlowState};
pub use packet::{Action, Direction, End, Header, Packet};
pub use rules::{Rule, Treatment};
pub use simulated::Simulated;
