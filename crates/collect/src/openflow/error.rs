//! What goes wrong with a reading by OpenFlow.

/// Why a switch could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing accepts the connection.
    #[error("no connection to {address}: {why}")]
    Connect {
        /// Of the switch.
        address: String,
        /// The system's message.
        why: String,
    },
    /// It connects to us, and has not yet, or its connection ended and it has not returned.
    #[error(
        "the switch is not connected{last}; is its controller set to this address, and is this its address or datapath?"
    )]
    NotConnected {
        /// Why the last connection ended, in parentheses; or empty.
        last: String,
    },
    /// It did not answer, or not all, within the timeout.
    #[error("no complete answer to the request for {what} within the timeout")]
    Timeout {
        /// What was asked for.
        what: &'static str,
    },
    /// The connection ended.
    #[error("the connection ended: {why}")]
    Closed {
        /// The system's message.
        why: String,
    },
    /// Bytes that are no OpenFlow 1.3, or not what was asked for.
    #[error("not OpenFlow 1.3: {what}: {why}")]
    Malformed {
        /// Which message.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The versions of both ends have none in common.
    #[error(
        "it does not speak OpenFlow 1.3 (its highest version number is {highest}; 1.3 is 4); enable OpenFlow13 on it"
    )]
    Version {
        /// Wire number of its highest version.
        highest: u8,
    },
    /// It answered with an error.
    #[error("it refuses the request for {what}: {error}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The standard's names of the error's type and code.
        error: String,
    },
    /// More of something than is taken from a switch.
    #[error("more than {most} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// Another switch than the configured one.
    #[error("it is datapath {found:016x}, not {expected:016x}")]
    WrongSwitch {
        /// As configured.
        expected: u64,
        /// As it says.
        found: u64,
    },
    /// TLS could not be set up, or the other end is not who it should be.
    #[error("TLS: {why}")]
    Tls {
        /// The library's message.
        why: String,
    },
    /// The reader's task has ended.
    #[error("the reader has been closed")]
    Stopped,
}
