//! What stays on disk: keys, and the last epoch.

use crate::checksum::{with_checksum, without_checksum};
use crate::random;
use policy::{EPOCH_MAX, KeyError, OracleKey, PublicKey};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Longest file that is read here, bytes: a key, a number.
const SMALL: u64 = 4096;
/// Longest other file, bytes.
const LARGE: u64 = 64 << 20;
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
    /// No number.
    #[error("{}: not the number of an epoch; only this program writes this file. Remove it only if the Oracle's key is new", path.display())]
    Epoch {
        /// The file.
        path: PathBuf,
    },
    /// It was changed by something else than this program.
    #[error("{}: damaged: its last line is not the checksum of the others. {advice}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
}

/// What to do about an error of the system's.
pub fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run this as root (`sudo`), or name files and folders of your own",
        _ => "",
    }
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> FileError {
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

/// The number that [`store_epoch`] wrote; `None` if it never did.
///
/// # Errors
/// The file cannot be read, is damaged, or holds something else.
pub fn stored_epoch(path: &Path) -> Result<Option<u64>, FileError> {
    const ADVICE: &str = "Put a number that is at least the last epoch there (the Oracle's `status` shows it), or remove the file only if the Oracle's key is new";
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.and_then(|file| file.take(SMALL).read_to_end(&mut bytes)).map_err(in_file(path))?,
    };
    let content = without_checksum(&bytes).ok_or(FileError::Damaged { path: path.to_path_buf(), advice: ADVICE })?;
    // the number is a whole line: one that was cut short is not taken for a lower epoch
    let number = std::str::from_utf8(content).ok().and_then(|text| text.strip_suffix('\n'));
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let epoch = number.filter(is_number).and_then(|text| text.parse().ok()).filter(|epoch| *epoch <= EPOCH_MAX);
    epoch.map(Some).ok_or_else(|| FileError::Epoch { path: path.to_path_buf() })
}

/// Writes the number of an epoch. When this returns it is on the disk.
///
/// # Errors
/// The system's.
pub fn store_epoch(path: &Path, epoch: u64) -> Result<(), FileError> {
    replace(path, &with_checksum(format!("{epoch}\n").as_bytes()))
}

/// What was written with [`replace_checked`], or by an earlier version without a checksum; `None`: there is no such file.
///
/// # Errors
/// It cannot be read, or is damaged; `advice` says what to do then.
pub fn read_checked(path: &Path, advice: &'static str) -> Result<Option<Vec<u8>>, FileError> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.and_then(|file| file.take(LARGE).read_to_end(&mut bytes)).map_err(in_file(path))?,
    };
    match without_checksum(&bytes) {
        Some(content) => Ok(Some(content.to_vec())),
        None => Err(FileError::Damaged { path: path.to_path_buf(), advice }),
    }
}

/// [`replace`] with a checksum, which [`read_checked`] verifies.
///
/// # Errors
/// The system's.
pub fn replace_checked(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace(path, &with_checksum(content))
}

/// Puts a file with a checksum in the place of another, whole or not at all; it may be lost if the machine stops.
///
/// # Errors
/// The system's.
pub fn put_checked(path: &Path, content: &[u8]) -> Result<(), FileError> {
    put(path, &with_checksum(content))
}

/// Puts a file in the place of another, whole or not at all; it may be lost if the machine stops.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = in_file(path);
    let beside = path.with_extension("new");
    beside_file(&beside).and_then(|mut file| file.write_all(bytes)).map_err(&io)?;
    fs::rename(&beside, path).map_err(&io)
}

/// Puts a file in the place of another, whole or not at all; when this returns it is on the disk.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = in_file(path);
    let beside = path.with_extension("new");
    let mut file = beside_file(&beside).map_err(&io)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(&io)?;
    fs::rename(&beside, path).map_err(&io)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(&io)
}

fn beside_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
