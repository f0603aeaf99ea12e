//! Where the bus is, and how it is joined.

use crate::{Bus, BusError, Hub, NatsBus, NatsHub, UnixAgent, UnixOracle};
use std::fmt;
use std::path::PathBuf;

/// Where the Oracle and the others meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket of this machine.
    Unix(PathBuf),
    /// The servers of a fleet, which the identity in this folder names.
    Nats(PathBuf),
}

impl Address {
    /// Joins as an agent, a collector or an operator.
    ///
    /// # Errors
    /// The bus cannot be reached.
    pub fn connect(&self) -> Result<Box<dyn Bus>, BusError> {
        match self {
            Address::Unix(path) => Ok(Box::new(UnixAgent::connect(path)?)),
            Address::Nats(folder) => Ok(Box::new(NatsBus::join(folder)?)),
        }
    }

    /// Whether several Oracles may listen at a time; of a Unix socket only the one that decides.
    pub fn is_shared(&self) -> bool {
        match self {
            Address::Unix(_) => false,
            Address::Nats(_) => true,
        }
    }

    /// Joins as the Oracle that decides, where another may still listen: one that was stopped, or does not know yet that it lost its lease.
    ///
    /// # Errors
    /// The bus cannot be reached.
    pub fn take_over(&self) -> Result<Box<dyn Hub>, BusError> {
        match self {
            Address::Unix(path) => Ok(Box::new(UnixOracle::take_over(path)?)),
            Address::Nats(folder) => Ok(Box::new(NatsHub::listen(folder)?)),
        }
    }

    /// Joins as the Oracle.
    ///
    /// # Errors
    /// The bus cannot be reached, or has an Oracle already.
    pub fn listen(&self) -> Result<Box<dyn Hub>, BusError> {
        match self {
            Address::Unix(path) => Ok(Box::new(UnixOracle::listen(path)?)),
            Address::Nats(folder) => Ok(Box::new(NatsHub::listen(folder)?)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Nats(folder) => write!(f, "the servers of {}", folder.display()),
        }
    }
}
