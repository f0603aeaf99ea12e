//! How the Oracle and its agents reach each other.
//!
//! [`Bus`] is one end: what the Oracle sends goes to every agent, what an agent sends goes to the Oracle. A message is at most
//! [`MESSAGE_MAX`] bytes; it arrives whole or not at all, and none is delivered twice. A message may be lost: the next
//! period renews its CUEs, and what is not renewed ends by itself. The bus is not trusted: CUEs are signed.
//!
//! [`channel()`] joins an Oracle and agents of one process, [`UnixOracle`] and [`UnixAgent`] processes of one machine. [`Report`] is what
//! agents say. [`files`] keeps what both must not forget: keys, and the last epoch.
#![forbid(unsafe_code)]

mod channel;
mod clock;
pub mod files;
mod report;
mod unix;

pub use channel::{ChannelAgent, ChannelOracle, channel};
pub use clock::Clock;
pub use report::{Effective, FctTimes, InForce, KINDS_MAX, LINKS_MAX, Report, ReportError, Telemetry};
pub use unix::{UnixAgent, UnixOracle};

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Longest message, bytes: a signed CUE is at most half of it.
pub const MESSAGE_MAX: usize = 64 * 1024;
/// Messages that wait for a reader of a channel, and about as many of full length in a socket.
pub const QUEUE_MAX: usize = 64;
/// Most agents of one Oracle on one machine.
pub const AGENTS_MAX: usize = 4096;

/// Random bytes for a key or a question.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    const { assert!(N <= 256, "so many at once are given whole (getrandom(2))") };
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// One end of the way between the Oracle and the agents.
pub trait Bus {
    /// Sends without waiting. A reader that has not taken what was sent before is not waited for: an agent is dropped, and may
    /// come again.
    ///
    /// # Errors
    /// [`BusError::Long`]; at an agent also [`BusError::Gone`] and [`BusError::Full`].
    fn send(&mut self, message: &[u8]) -> Result<(), BusError>;

    /// The next message; `None` if there is none within `wait`.
    ///
    /// # Errors
    /// At an agent [`BusError::Gone`]; the system's.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError>;

    /// What has been counted.
    fn counts(&self) -> BusCounts;
}

/// What one end has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Other ends, now.
    pub peers: usize,
    /// Agents that were dropped because they did not read.
    pub slow: u64,
    /// Messages that were longer than [`MESSAGE_MAX`]; their senders were dropped.
    pub long: u64,
    /// Processes that were turned away: another user's, or more than [`AGENTS_MAX`] or this process may open files for.
    pub refused: u64,
}

/// Why a message did not go.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// More than [`MESSAGE_MAX`] bytes.
    #[error("a message of {0} bytes: the bus carries at most {MESSAGE_MAX}")]
    Long(usize),
    /// The other end is not there, or dropped this one.
    #[error("the other end of the bus has closed")]
    Gone,
    /// The other end has not read what was sent before.
    #[error("the other end of the bus does not read")]
    Full,
    /// The socket cannot be made or reached.
    #[error("{}: {reason}", path.display())]
    Socket {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The system's.
    #[error("the bus: {0}")]
    Io(#[from] io::Error),
}
