//! What stays on disk: keys, and the last epoch.

use crate::random;
pub use crate::state::{put_checked, read_checked, replace_checked, store_epoch, stored_epoch};
use policy::{KeyError, OracleKey, PublicKey};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Longest file that is read here, bytes: a key, a number.
const SMALL: u64 = 4096;
/// Nobody but the owner may change it.
const OTHERS_WRITE: u32 = 0o022;
/// Nobody but the owner may look.
const OTHERS: u32 = 0o077;

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system's.
    #[error("{}: {source}{}", path.display(), advice(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// It exists already.
    #[error("{}: the key already exists and is not overwritten: agents would reject CUEs of the new key. Remove it or choose another --out", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else may change or see it.
    #[error("{}: {what}; run: chown root {0} && chmod {mode} {0}", path.display())]
    Rights {
        /// The file.
        path: PathBuf,
        /// Who may do what.
        what: &'static str,
        /// What the rights ought to be.
        mode: &'static str,
    },
    /// No key.
    #[error("{}: {source}; `opentcp keygen` writes one", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: KeyError,
    },
    /// It holds something else.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
}

/// What to do about an error of the system's.
pub fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run this as root (`sudo`), or name files and folders of your own",
        _ => "",
    }
}

pub(crate) fn in_file(path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Io { path: path.to_path_buf(), source }
}

/// Makes a new key: the secret in `path`, and beside it `path.pub` for the agents. Only their owner reads them. Both must not be there
/// yet. Returns the public file.
///
/// # Errors
/// One is there, or cannot be written.
pub fn generate(path: &Path) -> Result<PathBuf, FileError> {
    let public = PathBuf::from(format!("{}.pub", path.display()));
    if let Some(there) = [path, &public].into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(FileError::Exists { path: there.to_path_buf() });
    }
    let key = OracleKey::from_secret(random().map_err(in_file(path))?);
    create(path, 0o600, &key.to_hex())?;
    create(&public, 0o600, &key.public().to_hex())?;
    Ok(public)
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), FileError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = file.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => FileError::Exists { path: path.to_path_buf() },
        _ => in_file(path)(source),
    })?;
    writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(in_file(path))
}

/// The secret of [`generate`], for the Oracle.
///
/// # Errors
/// It cannot be read, others may read it, or it is none.
pub fn secret_key(path: &Path) -> Result<OracleKey, FileError> {
    let text = owned(path, OTHERS, "other users can read or change it", "600")?;
    OracleKey::from_hex(&text).map_err(|source| FileError::Key { path: path.to_path_buf(), source })
}

/// The public key, for an agent: whoever can change this file can send CUEs.
///
/// # Errors
/// It cannot be read, others may change it, or it is none.
pub fn public_key(path: &Path) -> Result<PublicKey, FileError> {
    let text = owned(path, OTHERS_WRITE, "other users can change it, and so send CUEs", "600")?;
    PublicKey::from_hex(&text).map_err(|source| FileError::Key { path: path.to_path_buf(), source })
}

/// The text of a file on which nobody has the rights `forbidden`, and which is root's or this user's.
fn owned(path: &Path, forbidden: u32, what: &'static str, mode: &'static str) -> Result<String, FileError> {
    let io = in_file(path);
    let file = File::open(path).map_err(&io)?;
    let about = file.metadata().map_err(&io)?;
    let own = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
    if !own || about.mode() & forbidden != 0 {
        return Err(FileError::Rights { path: path.to_path_buf(), what, mode });
    }
    let mut text = String::new();
    file.take(SMALL).read_to_string(&mut text).map_err(&io)?;
    Ok(text)
}

/// Puts a file in the place of another, whole or not at all; when this returns it is on the disk.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = in_file(path);
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside).map_err(&io)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(&io)?;
    fs::rename(&beside, path).map_err(&io)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(&io)
}
