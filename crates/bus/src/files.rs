//! What stays on disk: keys, and the last epoch.

use crate::random;
pub use crate::state::{put_checked, read_checked, replace_checked, store_epoch, stored_epoch};
pub(crate) use fleet::files::in_file;
pub use fleet::files::{FileError, advice, lock_file, replace};
use fleet::files::{Guard, create, owned};
use policy::{OracleKey, PublicKeys};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a new key would break.
const KEPT: &str = "agents would reject CUEs of the new key. Remove it or choose another --out";

/// Makes a new key: the secret in `path`, and beside it `path.pub` for the agents. Only their owner reads them. Both must not be there
/// yet. Returns the public file.
///
/// # Errors
/// One is there, or cannot be written.
pub fn generate(path: &Path) -> Result<PathBuf, FileError> {
    let public = PathBuf::from(format!("{}.pub", path.display()));
    if let Some(there) = [path, &public].into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(FileError::Exists { path: there.to_path_buf(), why: KEPT });
    }
    let key = OracleKey::from_secret(random().map_err(in_file(path))?);
    create(path, &format!("{}\n", key.to_hex()), KEPT)?;
    create(&public, &format!("{}\n", key.public().to_hex()), KEPT)?;
    Ok(public)
}

/// The secret of [`generate`], for the Oracle.
///
/// # Errors
/// It cannot be read, others may read it, or it is none.
pub fn secret_key(path: &Path) -> Result<OracleKey, FileError> {
    let text = owned(path, Guard::Secret).map_err(missing)?;
    OracleKey::from_hex(&text).map_err(|error| no_key(path, &error))
}

/// The Oracle's public keys, one a line, for an agent: whoever can change this file can send CUEs. Lines that begin with `#` are not keys.
///
/// # Errors
/// It cannot be read, others may change it, or a line is no key, or there are too many.
pub fn public_keys(path: &Path) -> Result<PublicKeys, FileError> {
    let text = owned(path, Guard::Trusted("other users can change it, and so send CUEs")).map_err(missing)?;
    PublicKeys::parse(&text).map_err(|error| no_key(path, &error))
}

/// The file of the Oracle's public keys, which may be replaced while it is used: during a rotation of the key two are valid.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// When it was changed.
    of: Option<SystemTime>,
}

impl KeyFile {
    /// The keys, and the file.
    ///
    /// # Errors
    /// As [`public_keys`].
    pub fn read(path: &Path) -> Result<(KeyFile, PublicKeys), FileError> {
        let mut file = KeyFile { path: path.to_path_buf(), of: None };
        // what is changed in between is read once more
        file.of = file.changed();
        Ok((file, public_keys(path)?))
    }

    /// The keys, if the file has changed; an error if they cannot be read, once for each change.
    pub fn anew(&mut self) -> Option<Result<PublicKeys, FileError>> {
        let changed = self.changed();
        if changed.is_none() || changed == self.of {
            return None;
        }
        self.of = changed;
        Some(public_keys(&self.path))
    }

    fn changed(&self) -> Option<SystemTime> {
        self.path.metadata().and_then(|about| about.modified()).ok()
    }
}

/// Of a file that is not there: where it comes from.
fn missing(error: FileError) -> FileError {
    match error {
        FileError::Io { path, source } if source.kind() == ErrorKind::NotFound => {
            let reason =
                "there is no such file; `opentcp keygen` makes the Oracle's key, and beside it NAME.pub for the agents";
            FileError::Content { path, reason: reason.to_string() }
        }
        other => other,
    }
}

fn no_key(path: &Path, error: &dyn std::error::Error) -> FileError {
    FileError::Content { path: path.to_path_buf(), reason: format!("{error}; `opentcp keygen` writes one") }
}
