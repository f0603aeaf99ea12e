//! A line, and its hash.

use crate::Kind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Longest line, bytes, with its newline. A body that is longer is replaced by its length.
pub const LINE_MAX: usize = 1 << 20;
/// The hash before the first line.
pub(crate) const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a line says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// One more than that of the line before.
    pub sequence: u64,
    /// When it was written, UTC.
    pub time: Timestamp,
    /// What it is about: a [`Kind`].
    pub kind: String,
    /// What happened.
    pub body: Value,
    /// The SHA-256 of the line before.
    pub before: String,
}

impl Entry {
    /// Whether it is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind.as_str()
    }
}

/// A line to be written, with its newline, and its hash.
pub(crate) fn line(sequence: u64, at: Timestamp, kind: Kind, body: &impl Serialize, before: &str) -> (Vec<u8>, String) {
    #[derive(Serialize)]
    struct Line<'a, B> {
        sequence: u64,
        time: &'a str,
        kind: &'a str,
        body: &'a B,
        before: &'a str,
    }
    #[derive(Serialize)]
    struct Unwritten {
        unwritten: String,
    }
    let (time, kind) = (format!("{at:.3}"), kind.as_str());
    let line = serde_json::to_vec(&Line { sequence, time: &time, kind, body, before });
    let unwritten = match line {
        Ok(mut line) if line.len() < LINE_MAX => {
            let hash = hash(&line);
            line.push(b'\n');
            return (line, hash);
        }
        Ok(line) => format!("{} bytes, of at most {LINE_MAX}", line.len()),
        Err(error) => error.to_string(),
    };
    let body = &Unwritten { unwritten };
    let mut line = serde_json::to_vec(&Line { sequence, time: &time, kind, body, before }).expect("it is plain data");
    let hash = hash(&line);
    line.push(b'\n');
    (line, hash)
}

/// The SHA-256 in 64 hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("writing to a string");
    }
    text
}
