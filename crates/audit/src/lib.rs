//! The log of every decision and every CUE: append-only, hash-chained, rotated.
//!
//! A folder holds files `audit-N.jsonl`, N being the sequence number of the first line, and `head`. A line is one JSON object:
//!
//! ```text
//! {"sequence":7,"time":"2026-03-01T12:00:00.000Z","kind":"decision","body":{…},"before":"<SHA-256 of line 6>"}
//! ```
//!
//! - **The chain.** `before` is the SHA-256 of the line before, without its newline, in 64 hexadecimal digits; the first line of all has
//!   zeros. It continues over rotation: the first line of a file holds the hash of the last line of the file before. `head` holds the first
//!   sequence number that is kept, the last one, and the last line's hash, so that a removed end is noticed as well. Whoever may
//!   write the folder can compute all of it anew; to find that, compare with a hash that was noted elsewhere ([`Verified::hash`]).
//! - **Disk.** At most [`Limits::files`] files of [`Limits::file_bytes`]; the oldest is removed.
//! - **fsync.** [`Log::append`] writes, so that what was appended outlives this process. [`Log::sync`] puts it on the disk: the Oracle calls
//!   it once a period, before CUEs are sent, and after each command. A rotated file is synced when it is left.
//! - **A crash** may leave half a line, which [`Log::open`] removes and records (`repaired`).
//! - **A full disk** stops nothing: what cannot be written is counted, [`Log::notice`] says so, and a line of kind `gap` records it when
//!   there is space again.
#![forbid(unsafe_code)]

mod entry;
mod folder;
mod head;
mod kind;
mod log;
mod read;
mod verify;
mod zone;

pub use entry::{Entry, LINE_MAX};
pub use jiff::Timestamp;
pub use kind::Kind;
pub use log::{Limits, Log};
pub use read::{Filter, Reader, read};
pub use verify::{DAMAGES_MAX, Damage, Report, Verified, verify};
pub use zone::Zone;

use std::io;
use std::path::{Path, PathBuf};

/// Why a log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The system's.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// Another process writes it.
    #[error("{}: another process writes this audit log; give each Oracle a state folder of its own", .0.display())]
    Locked(PathBuf),
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> AuditError {
    move |source| AuditError::Io { path: path.to_path_buf(), source }
}
