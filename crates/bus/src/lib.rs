//! How the Oracle and its agents reach each other.
//!
//! [`Hub`] is the Oracle's end, and [`Bus`] everybody else's: what the Oracle sends goes to every agent, what others send goes to it. A
//! message is at most [`MESSAGE_MAX`] bytes; it arrives whole or not at all, and none is delivered twice. A message may be lost: the next
//! period renews its CUEs, and what is not renewed ends by itself. The bus is not trusted: CUEs are signed.
//!
//! [`channel()`] joins an Oracle and agents of one process, [`UnixOracle`] and [`UnixAgent`] processes of one machine, [`NatsHub`] and
//! [`NatsBus`] machines of a fleet, whose messages are [`sealed`]. [`Report`] is what agents say. [`files`] keeps what both must not
//! forget, keys and the last epoch, and [`reverted`] what guards have reverted.
#![forbid(unsafe_code)]

mod address;
mod channel;
mod checksum;
mod clock;
pub mod files;
pub mod kind;
mod measurement;
mod members;
mod nats;
mod reasons;
mod report;
mod request;
pub mod reverted;
pub mod sealed;
mod state;
mod store;
mod timetable;
mod unix;

pub use address::Address;
pub use channel::{ChannelAgent, ChannelOracle, channel};
pub use clock::{Clock, Hand, unix_s};
pub use fleet::{Member, Role, random};
pub use kind::hello;
pub use measurement::{MEASURED_LINKS_MAX, MEASURED_PAIRS_MAX, Measurement, MeasurementError, PROBLEMS_MAX};
pub use members::Rejected;
pub use nats::{EnrollError, NatsBus, NatsHub, NatsStore, STORED_MAX, ask_fleet, enroll};
pub use reasons::Reasons;
pub use report::{
    Effective, FctTimes, InForce, KINDS_MAX, LINKS_MAX, Report, ReportError, SEVERAL, Telemetry, Tripped,
};
pub use request::{
    Ask, AskError, BoardList, HostsQuery, Outcome, POLICY_MAX, REPLY, REQUEST, Refusal, Reply, Request, Target, ask,
};
pub use store::{Entry, FileStore, Store, StoreError, VALUE_MAX};
pub use timetable::{EACH_SECOND_BELOW, Timetable};
pub use unix::{UnixAgent, UnixOracle};

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest message, bytes: a signed CUE is at most half of it.
pub const MESSAGE_MAX: usize = 64 * 1024;
/// Messages that wait for a reader of a channel, and about as many of full length in a socket.
pub const QUEUE_MAX: usize = 64;
/// Most agents of one Oracle on one machine.
pub const AGENTS_MAX: usize = 4096;

/// An agent's, a collector's or an operator's end of the bus.
pub trait Bus {
    /// Sends to the Oracle, without waiting.
    ///
    /// # Errors
    /// [`BusError::Long`], [`BusError::Gone`] and [`BusError::Full`].
    fn send(&mut self, message: &[u8]) -> Result<(), BusError>;

    /// The next message; `None` if there is none within `wait`.
    ///
    /// # Errors
    /// [`BusError::Gone`]; the system's.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError>;

    /// An epoch of the Oracle's, as its signature proved: what is sent from now on names the highest, so that the Oracle knows it to be new.
    fn heard(&mut self, _epoch: u64) {}

    /// Whether the bus reaches its server now. A bus that has one finds it again by itself.
    fn is_connected(&self) -> bool {
        true
    }

    /// Why it does not, if that is known.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// The Oracle's end.
pub trait Hub {
    /// Sends to every agent, without waiting. An agent that has not taken what was sent before is dropped, and may come again.
    ///
    /// # Errors
    /// [`BusError::Long`]; the system's.
    fn send(&mut self, message: &[u8]) -> Result<(), BusError>;

    /// Sends to the one from which a message came. It may be gone: that is no error.
    ///
    /// # Errors
    /// [`BusError::Long`]; the system's.
    fn answer(&mut self, to: &ReplyTo, message: &[u8]) -> Result<(), BusError>;

    /// The next message; `None` if there is none within `wait`.
    ///
    /// # Errors
    /// The system's.
    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, BusError>;

    /// An epoch of this fleet: what was sent by one who has heard of it, or of one of the two before it, is new.
    fn epoch(&mut self, _epoch: u64) {}

    /// What has happened to members since the last call, for the log.
    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// What has been counted.
    fn counts(&self) -> BusCounts;

    /// Why no server is connected, if this transport needs one and the reason is known.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The store that this transport brings for several Oracles, if it does.
    fn store(&mut self) -> Option<Box<dyn Store>> {
        None
    }
}

/// A message to the Oracle, as its transport vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Who sent it.
    pub from: Peer,
    /// What.
    pub bytes: Vec<u8>,
    /// Where an answer goes.
    pub reply: ReplyTo,
}

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A process of root's, or of the Oracle's user, on the Oracle's machine.
    Local,
    /// A member of the fleet: its signature was verified.
    Member(Arc<Member>),
}

impl Peer {
    /// Whether it may report as this host.
    pub fn may_report_as(&self, host: &str) -> bool {
        match self {
            Peer::Local => true,
            Peer::Member(member) => match member.role {
                Role::Agent => member.name == host,
                Role::Enforcer => member.hosts.iter().any(|one| one == host),
                Role::Collector | Role::Operator | Role::Oracle => false,
            },
        }
    }

    /// Whether it may act as `role`.
    pub fn is(&self, role: Role) -> bool {
        match self {
            Peer::Local => true,
            Peer::Member(member) => member.role == role,
        }
    }
}

/// Where an answer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyTo {
    /// A connection of this process.
    Connection(u64),
    /// A member of the fleet, by its public key.
    Member(sealed::Key),
}

/// Something that happened to a member of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `enrolled`, `renewed`, `revoked` or `refused`.
    pub what: &'static str,
    /// Who, and by whom or why.
    pub about: String,
}

/// What one end has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Other ends, now.
    pub peers: usize,
    /// Hosts for which somebody may report, whether connected or not; 0: the transport does not know.
    pub reporters: usize,
    /// Agents that were dropped because they did not read.
    pub slow: u64,
    /// Messages that were longer than [`MESSAGE_MAX`]; their senders were dropped.
    pub long: u64,
    /// Processes that were turned away: another user's, or more than [`AGENTS_MAX`] or this process may open files for.
    pub refused: u64,
    /// Messages of a fleet that were refused.
    pub rejected: Rejected,
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
    /// The identity of a fleet's member cannot be used.
    #[error("{}: {reason}", folder.display())]
    Identity {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The system's.
    #[error("the bus: {0}")]
    Io(#[from] io::Error),
}
