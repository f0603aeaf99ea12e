//! One agent a folder: the lock that an agent holds while it lives.

use crate::config::Places;
use bus::files::{FileError, lock_file};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt as _;

/// The right to be the agent of a folder; it ends with the process. `None`: another process has it.
///
/// # Errors
/// The folder cannot be made.
pub fn lock(places: &Places) -> Result<Option<File>, FileError> {
    let io = |source| FileError::Io { path: places.state.clone(), source };
    if !places.state.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&places.state).map_err(io)?;
    }
    let file = lock_file(&places.lock()).map_err(io)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(io(error.into())),
    }
}
