//! The Oracle of a real network. [`policy::Oracle`] decides and signs; this crate collects reports, keeps the periods, and sends what was
//! signed.
//!
//! A period's epoch is on the disk before anything that was signed in it is sent, so that a restarted Oracle never uses
//! one twice: agents would refuse the second as replayed. So is the rollout's state: one that was rolled back stays so.
#![forbid(unsafe_code)]

mod daemon;
mod gather;
mod links;
mod memory;

pub use daemon::{Config, OracleError, Refused, Status, run};
pub use gather::{Gathered, HOSTS_MAX, Intake};
pub use links::{COLLECTORS_MAX, FORGET_PERIODS, Links, MeasurementIntake, PAIRS_MAX, SWITCH_LINKS_MAX};
