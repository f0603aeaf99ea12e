//! The part of a scenario that is the same on the simulator and the emulator: the network, its failures, who sends to
//! whom (drawn from the scenario's seed), and what is recorded of links.
//!
//! Nothing here reads a clock or does I/O. `net` decides about packets, the backend about the time at which
//! applications write.
#![forbid(unsafe_code)]

mod address;
mod apps;
mod aqm;
mod control;
mod enforcement;
mod ideal;
mod identity;
mod known;
mod network;
mod pairs;
mod random;
mod series;
mod title;

pub use address::{FIRST_ADDRESS, RECEIVER_PORT, SENDER_PORT, SENDER_PORTS, address, host_of, sender_port};
pub use apps::{Applications, Arrived, Message, Opening, Stage, UNLIMITED, message_rows};
pub use control::{Completed, Control, FlowState, Managed, Segments};
pub use enforcement::{Enforcement, algorithm, summarize};
pub use ideal::{Ideal, IdealTimes, Transfer};
pub use identity::identity;
pub use known::{algorithm_facts, algorithm_names, facts, runs};
pub use network::{failures, find_links, forwarding_delay, framing_bytes, links, routing, tier_of, topology};
pub use pairs::{Pairing, mean_gap};
pub use random::{FlowName, Random};
pub use series::{Links, Series, sampled};
pub use title::{parameters, titled};
