//! A TCP endpoint without I/O, modelled on Linux's (6.18): it behaves on the wire as a Linux host does, and calls a
//! congestion-control algorithm's hooks as Linux calls them.
//!
//! # Driving it
//!
//! An [`Endpoint`] never reads a clock and never waits. Its host hands it inputs, each with the time:
//!
//! - [`Endpoint::on_segment`]: a [`Segment`] has arrived;
//! - [`Endpoint::on_timer`]: the moment that [`Endpoint::poll_timeout`] named has come (too early does no harm);
//! - [`Endpoint::write`], [`Endpoint::write_all`], [`Endpoint::close`], [`Endpoint::set_reading`]: the application;
//! - [`Endpoint::set_algorithm`], [`Endpoint::retune`]: an operator changes the algorithm, or more, of a live connection.
//!
//! After every input the host calls [`Endpoint::poll_transmit`] until it returns false ([`Endpoint::wants_transmit`]
//! is a cheap test for that), then looks at [`Endpoint::poll_timeout`]. Time never goes backwards. A host whose own queue holds
//! [`Endpoint::output_limit_bytes`] of the flow may stop polling and continue when it has drained: that is TCP small queues.
//! Payload is counted, not carried.
//!
//! # The code
//!
//! - `input` takes a segment the short way (new data in order; an ACK of new data with no loss, echoes included) or the long one of
//!   RFC 9293, `handshake` negotiates, `receiver` acknowledges and offers the window, with `reassembly` of what arrives out of order;
//! - `ack` accounts an acknowledgment in Linux's order: queue and SACK blocks (`scoreboard`, `sack`), `rtt`, the hooks,
//!   tail-loss probe, state machine (`recovery`, `rack`, `undo`), rate sample (`rate`), window (`prr` or the algorithm);
//! - `output` decides what leaves, `window` how much at once (pacing, bursts, validation, restart), `timers` when.
//!
//! The socket that algorithms see, [`congestion::TcpSock`], is the endpoint's own state: nothing is copied for a hook.
//! What an idle connection can do without (`busy`) is one box, allocated when first needed and freed when a flow is idle;
//! what few connections need (`rare`) is another in that. An idle connection is 424 bytes an end.
//!
//! # What is the same as in Linux, and what is not
//!
//! `tests/` compares with seventeen recorded scripts: the same hooks, in the same order, with the same columns. Each
//! [`Config`] switch is one in which stacks differ; [`Config::linux`] has 6.18's defaults. Known differences:
//!
//! - Timers are exact, without [`Config::timer_tick`]. Linux's fire on ticks (4 ms at HZ = 250) that round up and start up to a tick
//!   late: its timeouts come 2 to 8 ms later than theirs are set, a probe and a timeout in a row up to 16 ms (script 5).
//! - The receive buffer is constant, as the send buffer is: no autotuning. The window is what is free of it.
//! - Every segment is processed by itself: the kernel may merge segments before TCP sees them (GRO) and duplicate ACKs
//!   in the backlog of a busy socket (script 3), and it compresses the SACKs of a long gap; here each is answered.
//! - An application that reads has read a segment when it arrives, so one with PSH is acknowledged at once; in Linux the read
//!   comes some microseconds later.
//! - SYNs back off from the first retransmission on (RFC 6298); Linux keeps the first four equally spaced.
//! - SYN timeouts call no hooks: the algorithm has not begun.
//! - Payload is a stream without marks of the application's writes: bursts do not end at them, but where buffers would if it had
//!   been written at once. TCP_NODELAY is on; a writer that blocks in [`Endpoint::write_all`] fills its segments.
//! - TIME-WAIT has no timer: the endpoint is closed for its host and still answers what arrives late.
//!
//! Deliberately absent: urgent data, simultaneous open, TCP Fast Open, MD5 and AO, keep-alive, path MTU discovery, PAWS
//! rejection, AccECN, multipath.
#![forbid(unsafe_code)]

mod accecn;
mod ack;
mod busy;
mod checkpoint;
mod config;
mod endpoint;
mod handshake;
mod input;
mod output;
mod prr;
mod rack;
mod rare;
mod rate;
mod reassembly;
mod receiver;
mod recovery;
mod relay;
mod retune;
mod rtt;
mod sack;
mod scoreboard;
mod segment;
mod seq;
mod stats;
mod timers;
mod undo;
mod window;

pub use checkpoint::Checkpoint;
pub use config::{Config, DelayedAck, EcnMode, PacingMode};
pub use endpoint::{Endpoint, State};
pub use relay::{Leave, Next, Opening, Relay};
pub use segment::{Ecn, SACK_BLOCKS_MAX, SackBlock, Segment, flags};
pub use stats::Stats;
