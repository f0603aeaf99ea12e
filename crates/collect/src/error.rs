//! Why a switch could not be read, whichever protocol it speaks.

use units::Time;

/// Why there is no answer. Each is of one reading: the next may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing came within the time that was allowed.
    #[error("no answer within {0}")]
    Timeout(Time),
    /// No connection: refused, no route, no such name.
    #[error("not reachable: {0}")]
    Unreachable(String),
    /// It closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// It stopped answering within a reading.
    #[error("it stopped in the middle: {0}")]
    Interrupted(String),
    /// It, or this side, does not accept the other's identity: a certificate, a password, a community.
    #[error("refused: {0}")]
    Refused(String),
    /// It answered something that the protocol does not allow.
    #[error("a wrong answer: {0}")]
    Protocol(String),
    /// It answered more than is kept.
    #[error("{what}: more than {most}")]
    Beyond {
        /// Of what: `ports`.
        what: &'static str,
        /// So many are taken.
        most: usize,
    },
    /// It does not have what is asked for.
    #[error("it does not offer {0}")]
    Unsupported(String),
    /// This machine's.
    #[error("{0}")]
    Io(String),
}

impl ReadError {
    /// A word for the kind of it.
    pub fn reason(&self) -> &'static str {
        match self {
            ReadError::Timeout(_) => "timeout",
            ReadError::Unreachable(_) => "unreachable",
            ReadError::Closed => "closed",
            ReadError::Interrupted(_) => "interrupted",
            ReadError::Refused(_) => "refused",
            ReadError::Protocol(_) => "protocol",
            ReadError::Beyond { .. } => "limit",
            ReadError::Unsupported(_) => "unsupported",
            ReadError::Io(_) => "io",
        }
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> ReadError {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                ReadError::Unreachable(error.to_string())
            }
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => ReadError::Closed,
            _ => ReadError::Io(error.to_string()),
        }
    }
}

impl From<crate::openflow::Error> for ReadError {
    fn from(error: crate::openflow::Error) -> ReadError {
        use crate::openflow::Error;
        let text = error.to_string();
        match error {
            Error::Connect { .. } | Error::NotConnected { .. } => ReadError::Unreachable(text),
            Error::Timeout { .. } => ReadError::Interrupted(text),
            Error::Tls { .. } | Error::WrongSwitch { .. } => ReadError::Refused(text),
            Error::Version { .. } => ReadError::Unsupported(text),
            Error::Malformed { .. } | Error::Refused { .. } | Error::TooMany { .. } => ReadError::Protocol(text),
            Error::Closed { .. } | Error::Stopped => ReadError::Closed,
        }
    }
}
