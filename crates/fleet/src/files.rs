//! Files of keys: who may read and change them, and how they are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Longest file that is read here, bytes: credentials, a certificate.
const READ_MAX: u64 = 64 * 1024;
/// Nobody but the owner may change it.
const OTHERS_WRITE: u32 = 0o022;
/// Nobody but the owner may look.
const OTHERS: u32 = 0o077;

/// Who must not do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A secret: nobody else may read or change it.
    Secret,
    /// Public, and trusted: nobody else may change it; what a change would allow.
    Trusted(&'static str),
}

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
    #[error("{}: it already exists and is not overwritten: {why}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// What would be lost, and what to do.
        why: &'static str,
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

/// An error of the system's, of this file.
pub fn in_file(path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Io { path: path.to_path_buf(), source }
}

/// The text of a file that is root's or this user's, and that is guarded as it has to be.
///
/// # Errors
/// It cannot be read, is too long, or others may do with it what they must not.
pub fn owned(path: &Path, guard: Guard) -> Result<String, FileError> {
    let (forbidden, what) = match guard {
        Guard::Secret => (OTHERS, "other users can read or change it"),
        Guard::Trusted(what) => (OTHERS_WRITE, what),
    };
    let io = in_file(path);
    let file = File::open(path).map_err(&io)?;
    let about = file.metadata().map_err(&io)?;
    let own = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
    if !own || about.mode() & forbidden != 0 {
        return Err(FileError::Rights { path: path.to_path_buf(), what, mode: "600" });
    }
    let mut text = String::new();
    file.take(READ_MAX + 1).read_to_string(&mut text).map_err(&io)?;
    if text.len() as u64 > READ_MAX {
        let reason = format!("longer than {READ_MAX} bytes: it is another file than expected");
        return Err(FileError::Content { path: path.to_path_buf(), reason });
    }
    Ok(text)
}

/// Whether a folder is root's or this user's, and nobody else may look into it or change it. On a read-only file system, such as a mounted
/// secret, nobody changes it, and its files are guarded one by one.
///
/// # Errors
/// It is not, or is no folder.
pub fn owned_folder(path: &Path) -> Result<(), FileError> {
    let about = fs::metadata(path).map_err(in_file(path))?;
    if !about.is_dir() {
        return Err(in_file(path)(io::ErrorKind::NotADirectory.into()));
    }
    let own = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
    let is_read_only =
        || rustix::fs::statvfs(path).is_ok_and(|fs| fs.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
    if own && (about.mode() & OTHERS == 0 || is_read_only()) {
        return Ok(());
    }
    let what = "other users can look into this folder or change it";
    Err(FileError::Rights { path: path.to_path_buf(), what, mode: "700" })
}

/// Writes a new file that only its owner reads. When this returns it is on the disk.
///
/// # Errors
/// It exists already, of which `why` says what would be lost; the system's.
pub fn create(path: &Path, text: &str, why: &'static str) -> Result<(), FileError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => FileError::Exists { path: path.to_path_buf(), why },
        _ => in_file(path)(source),
    })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(in_file(path))
}

/// Puts a file in the place of another, whole or not at all; when this returns it is on the disk.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = in_file(path);
    let (beside, mut file) = beside(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(&io)?;
    fs::rename(&beside, path).map_err(&io)?;
    sync_folder(path).map_err(&io)
}

/// A new file that is to take the place of another, and its name. What has that name already is removed and not written to: it may be a link that
/// another user has put there.
///
/// # Errors
/// The system's.
pub fn beside(path: &Path) -> Result<(PathBuf, File), FileError> {
    let beside = path.with_extension("new");
    let _ = fs::remove_file(&beside);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(in_file(path))?;
    Ok((beside, file))
}

/// A file that is locked and not written: it is made if it is missing, and no link is followed to it.
///
/// # Errors
/// The system's.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(NOFOLLOW).open(path)
}

/// Flag of files in folders that others may be able to write: a link there is an error, and does not lead elsewhere.
pub const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Writes to the disk that this file is in its folder.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all())
}
