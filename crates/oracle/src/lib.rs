//! The Oracle of a real network. [`policy::Oracle`] decides and signs; here reports are gathered, periods are kept, and what was signed
//! goes out.
//!
//! A period's epoch is on the disk before anything that was signed in it is sent, so that an Oracle which was started again never uses
//! one twice: agents would take what comes second for replayed. So is what has become of the rollout: one that was rolled back stays so.
#![forbid(unsafe_code)]

mod daemon;
mod gather;
mod memory;

pub use daemon::{Config, OracleError, Refused, Status, run};
pub use gather::{Gathered, HOSTS_MAX, Intake};
