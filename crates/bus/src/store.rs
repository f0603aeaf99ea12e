//! A small store that several Oracles share: who of them decides, and what they must know of each other.

use crate::checksum::without_checksum;
use crate::files::{FileError, lock_file};
use crate::state::put_checked;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Longest value, bytes: a policy's text as JSON, and the progress of its rollout.
pub const VALUE_MAX: usize = 1 << 20;
/// How long a process may hold the lock of a folder; it needs a thousandth of it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the lock is tried.
const RETRY: Duration = Duration::from_millis(5);
/// How the first line of a file begins.
const REVISION: &str = "revision ";

/// Values by name, each with a revision that grows whenever it is put. Calls may wait, at most about a second.
pub trait Store: Send {
    /// The entry of a key; `None`: there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get(&mut self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Puts a value if the entry still has this revision (`None`: if there is no entry), and returns its new revision. `Ok(None)`:
    /// somebody else was first.
    ///
    /// # Errors
    /// [`StoreError`]; then it may have been put all the same.
    fn put(&mut self, key: &str, value: &[u8], revision: Option<u64>) -> Result<Option<u64>, StoreError>;
}

/// A value in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// It.
    pub value: Vec<u8>,
    /// How often it was put; where it is put from elsewhere too, any number that grows.
    pub revision: u64,
}

/// Why a store does not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is not reached in time.
    #[error("{0}")]
    Away(String),
    /// A file of a folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds something that no Oracle has put there.
    #[error("{place}: {reason}")]
    Content {
        /// Where.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// More than [`VALUE_MAX`] bytes.
    #[error("a value of {0} bytes; at most {VALUE_MAX}")]
    Long(usize),
}

/// A folder, which may be on storage that several machines share: a file for each key, changed under a lock of the folder (flock(2)).
///
/// A process that is stopped while it has the lock does not stop the others: after a second they go on without it. Two may then believe
/// to have put an entry; that is why nothing but epochs decides whom agents follow.
#[derive(Debug)]
pub struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    /// In `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(folder: &Path) -> Result<FileStore, FileError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| FileError::Io { path: folder.to_path_buf(), source })?;
        Ok(FileStore { folder: folder.to_path_buf() })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(key)
    }

    /// The folder's lock; `None`: another process has held it for longer than it can need it.
    fn lock(&self) -> Result<Option<File>, FileError> {
        let path = self.folder.join("lock");
        let io = |source: io::Error| FileError::Io { path: path.clone(), source };
        let file = lock_file(&path).map_err(io)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => thread::sleep(RETRY),
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(None),
                Err(error) => return Err(io(error.into())),
            }
        }
    }
}

impl Store for FileStore {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, StoreError> {
        let path = self.path(key);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(about) if about.len() > (VALUE_MAX + 256) as u64 => return Err(StoreError::Long(about.len() as usize)),
            _ => {}
        }
        let bytes = fs::read(&path).map_err(|source| FileError::Io { path: path.clone(), source })?;
        let entry = without_checksum(&bytes).and_then(entry);
        entry.map(Some).ok_or_else(|| StoreError::Content {
            place: path.display().to_string(),
            reason: "damaged: its checksum or its first line is wrong. Stop all Oracles, remove it, and start them"
                .into(),
        })
    }

    fn put(&mut self, key: &str, value: &[u8], revision: Option<u64>) -> Result<Option<u64>, StoreError> {
        if value.len() > VALUE_MAX {
            return Err(StoreError::Long(value.len()));
        }
        let lock = self.lock()?;
        if self.get(key)?.map(|entry| entry.revision) != revision {
            return Ok(None);
        }
        let next = revision.map_or(1, |revision| revision.saturating_add(1));
        let content = [format!("{REVISION}{next}\n").as_bytes(), value].concat();
        put_checked(&self.path(key), &content)?;
        drop(lock);
        Ok(Some(next))
    }
}

fn entry(content: &[u8]) -> Option<Entry> {
    let end = content.iter().position(|byte| *byte == b'\n')?;
    let (line, value) = content.split_at(end);
    let revision = std::str::from_utf8(line).ok()?.strip_prefix(REVISION)?.parse().ok()?;
    // a value that had no end of line has one now
    Some(Entry { value: value[1..].to_vec(), revision })
}
