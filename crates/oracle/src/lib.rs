//! The Oracle of a real network. [`policy::Oracle`] decides and signs; this crate collects reports, keeps the periods, and sends what was
//! signed.
//!
//! A period's epoch is on the disk before anything that was signed in it is sent, so that a restarted Oracle never uses
//! one twice: agents would refuse the second as replayed. So is the rollout's state: one that was rolled back stays so.
#![forbid(unsafe_code)]

mod base;
mod board;
mod commands;
mod config;
mod daemon;
mod ended;
mod fleet;
mod gather;
mod happened;
mod lease;
mod links;
pub mod log;
mod memory;
mod overview;
mod record;
mod robust;
mod status;
mod table;
mod transfers;
mod versions;
mod watch;

pub use board::{Board, EventLine, Span};
pub use commands::{Applied, Compared, NetworkPart, Paused, Shown, ShownVersion};
pub use config::{Config, Event, LeaseAt, OracleError, Parse, Record};
pub use daemon::{Daemon, Decided, Ends, Say, run};
pub use fleet::{Agents, Seen};
pub use gather::{Gathered, HOST_LINKS_MAX, HOSTS_MAX, Intake};
pub use lease::{Lease, LeaseError, Shared, Standing};
pub use links::{COLLECTORS_MAX, FORGET_PERIODS, Links, MeasurementIntake, PAIRS_MAX, SWITCH_LINKS_MAX};
pub use memory::Pause;
pub use overview::{
    DecisionLine, HostLine, LinkLine, Overview, QuantityLine, RevertedLine, RuleLine, VerdictLine, treated_words,
    verdict_words,
};
pub use record::{AuditLog, now};
pub use robust::{Outlier, Outliers};
pub use status::{Refused, Status};
pub use table::METRICS;
pub use versions::{VERSIONS_MAX, hash, reported};
pub use watch::{HostsAsked, PeriodEnd, Watch};
