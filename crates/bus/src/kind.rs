//! What kind of message it is: its first bytes say so, on every transport.

use policy::{QUESTION_BYTES, Question};

/// A collector's measurement: JSON follows.
pub const MEASUREMENT: &[u8] = b"opentcp measurement\0";
/// An operator's command: JSON follows.
pub const REQUEST: &[u8] = b"opentcp request\0";
/// The answer to a command: JSON follows.
pub const REPLY: &[u8] = b"opentcp reply\0";
/// A question of a member that does not report: random bytes follow, which the Oracle's signed answer repeats.
pub const HELLO: &[u8] = b"opentcp hello\0";
/// A member's wish to stay in the fleet: its identity is about to expire.
pub const RENEW: &[u8] = fleet::RENEW;
/// An operator's question about members, or the command to revoke one: JSON follows.
pub const FLEET: &[u8] = b"opentcp fleet\0";
/// Its answer: JSON follows.
pub const FLEET_REPLY: &[u8] = b"opentcp fleet reply\0";

/// What the Oracle is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A host's report.
    Report,
    /// [`MEASUREMENT`].
    Measurement,
    /// [`REQUEST`].
    Request,
    /// [`HELLO`].
    Hello,
    /// [`RENEW`].
    Renew,
    /// [`FLEET`].
    Fleet,
}

impl Kind {
    /// The kind of these bytes, if it is one that the Oracle is sent.
    pub fn of(bytes: &[u8]) -> Option<Kind> {
        let prefixes = [
            (&b"{"[..], Kind::Report),
            (MEASUREMENT, Kind::Measurement),
            (REQUEST, Kind::Request),
            (HELLO, Kind::Hello),
            (RENEW, Kind::Renew),
            (FLEET, Kind::Fleet),
        ];
        prefixes.into_iter().find(|(prefix, _)| bytes.starts_with(prefix)).map(|(_, kind)| kind)
    }
}

/// The message that asks `question`.
pub fn ask(question: &Question) -> Vec<u8> {
    [HELLO, question].concat()
}

/// The question of such a message.
pub fn hello(bytes: &[u8]) -> Option<Question> {
    let question = bytes.strip_prefix(HELLO)?;
    <[u8; QUESTION_BYTES]>::try_from(question).ok()
}
