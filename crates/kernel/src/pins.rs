//! Algorithms that outlive the program that loaded them.
//!
//! An algorithm is registered as long as somebody holds its BPF link. [`Pins`] gives the link a file in bpffs,
//! `/sys/fs/bpf/opentcp/cc/ot_NAME`, which holds it until it is removed or the machine restarts. There is no other
//! record: the loaded algorithms are read there and from the kernel, never from a list of our own that could be wrong.

use crate::bpffs::{self, BPFFS, MountError};
use crate::error::Error;
use crate::load::Prepared;
use crate::sockets::available;
use libbpf_rs::Link;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Our folder in it.
const FOLDER: &str = "/sys/fs/bpf/opentcp/cc";

/// Longest wait for the kernel to free a name; it does within one RCU grace period, some milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why an algorithm was not kept in the kernel, or not removed from it.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// There is no BPF file system, and none that lasts can be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The folder in bpffs cannot be used.
    #[error("{}: {reason}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The system call's error.
        reason: String,
    },
    /// No algorithm of that name is loaded.
    #[error("{name} is not loaded; {}", what_is(loaded))]
    NotLoaded {
        /// The name to unload.
        name: String,
        /// The loaded names.
        loaded: Vec<String>,
    },
    /// Another program holds it.
    #[error("{name} is in the kernel, but not pinned in {FOLDER}: the program that loaded it must unload it")]
    NotOurs {
        /// The algorithm.
        name: String,
    },
    /// The algorithm itself was refused.
    #[error(transparent)]
    Load(#[from] Error),
    /// The kernel kept the version loaded before.
    #[error("{name} could not be replaced, the version loaded before stays: {reason}")]
    Replace {
        /// The algorithm.
        name: String,
        /// The system call's error.
        reason: String,
    },
    /// The kernel still has the name.
    #[error("{name} was unloaded, but the kernel still has it after {} s: another program holds it too", PATIENCE.as_secs())]
    Stays {
        /// The algorithm.
        name: String,
    },
}

fn what_is(loaded: &[String]) -> String {
    if loaded.is_empty() { "nothing is".to_string() } else { format!("loaded: {}", loaded.join(", ")) }
}

/// The effect of [`Pins::load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The name is new in the kernel.
    Loaded,
    /// It has replaced the version loaded before; connections that use that one keep it.
    Replaced,
}

/// The names of the algorithms that are pinned, sorted. Without the right to look, or without bpffs, there are none.
pub fn pinned() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The folder of pinned algorithms, for one program at a time.
#[derive(Debug)]
pub struct Pins {
    mounted: bool,
    _lock: Flock<File>,
}

impl Pins {
    /// Opens the folder, and waits for another program that has it open. Mounts bpffs if it is missing, as other BPF
    /// tools do.
    ///
    /// # Errors
    /// There is no bpffs and none can be mounted, or not so that it would outlive the caller.
    pub fn open() -> Result<Pins, PinError> {
        let mounted = bpffs::mount_to_last()?;
        let bpffs = File::open(BPFFS).map_err(|error| in_folder(BPFFS, &error))?;
        let lock = Flock::lock(bpffs, FlockArg::LockExclusive);
        let lock = lock.map_err(|(_, errno)| in_folder(BPFFS, &errno.into()))?;
        Ok(Pins { mounted, _lock: lock })
    }

    /// As [`Pins::open`], but mounts nothing: `None` where there is no bpffs, and so nothing pinned.
    ///
    /// # Errors
    /// As [`Pins::open`].
    pub fn existing() -> Result<Option<Pins>, PinError> {
        if bpffs::is_mounted() {
            return Pins::open().map(Some);
        }
        match bpffs::hidden() {
            Some(error) => Err(error.into()),
            None => Ok(None),
        }
    }

    /// Whether opening has mounted bpffs.
    pub fn mounted(&self) -> bool {
        self.mounted
    }

    /// Loads and pins an algorithm, new or in place of the version loaded before.
    ///
    /// # Errors
    /// Somebody else has loaded the name, or the kernel refuses the registration. Then everything is as before.
    pub fn load(&self, mut algorithm: Prepared) -> Result<Change, PinError> {
        let path = pin_of(algorithm.name());
        let mut link = match algorithm.link() {
            Ok(link) => link,
            Err(Error::Exists { .. }) if path.exists() => return replace(algorithm, &path),
            Err(error) => return Err(error.into()),
        };
        fs::create_dir_all(FOLDER).map_err(|error| in_folder(FOLDER, &error))?;
        // A pinned file whose algorithm is no longer in the kernel: it was detached by other means.
        let _ = fs::remove_file(&path);
        link.pin(&path).map_err(|error| PinError::Folder { path, reason: error.to_string() })?;
        Ok(Change::Loaded)
    }

    /// Unloads an algorithm: no further socket can choose it, those that use it keep it. When this
    /// returns, the name is free.
    ///
    /// # Errors
    /// It is not pinned, or the kernel does not free the name.
    pub fn unload(&self, name: &str) -> Result<(), PinError> {
        let path = pin_of(name);
        if !path.exists() {
            return Err(not_pinned(name));
        }
        let link =
            Link::open(&path).map_err(|error| PinError::Folder { path: path.clone(), reason: error.to_string() })?;
        // Where links of algorithms cannot be detached (before Linux 6.11), dropping the last reference does it.
        let _ = link.detach();
        fs::remove_file(&path).map_err(|error| in_folder(&path, &error))?;
        drop(link);
        remove_empty_folders();
        wait_until_gone(name)
    }
}

/// Why `name` cannot be unloaded although such an algorithm may exist.
pub fn not_pinned(name: &str) -> PinError {
    let name = name.to_string();
    let known = available().unwrap_or_default().contains(&name);
    if known { PinError::NotOurs { name } } else { PinError::NotLoaded { name, loaded: pinned() } }
}

fn replace(algorithm: Prepared, path: &Path) -> Result<Change, PinError> {
    let name = algorithm.name().to_string();
    let failed = |reason: String| PinError::Replace { name: name.clone(), reason };
    let link = Link::open(path).map_err(|error| failed(error.to_string()))?;
    algorithm.replace(link.as_fd()).map_err(|error| failed(error.to_string()))?;
    Ok(Change::Replaced)
}

/// Waits for the kernel's own delay: nobody but us holds the name now.
fn wait_until_gone(name: &str) -> Result<(), PinError> {
    let start = Instant::now();
    while available().is_ok_and(|names| names.iter().any(|known| known == name)) {
        if start.elapsed() > PATIENCE {
            return Err(PinError::Stays { name: name.to_string() });
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn pin_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Removes the folders that are now empty.
fn remove_empty_folders() {
    let folder = Path::new(FOLDER);
    for folder in [Some(folder), folder.parent()].into_iter().flatten() {
        let _ = fs::remove_dir(folder);
    }
}

fn in_folder(path: impl AsRef<Path>, error: &io::Error) -> PinError {
    PinError::Folder { path: path.as_ref().to_path_buf(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_loaded_is_answered_with_what_is() {
        let of = |loaded: &[&str]| {
            let loaded = loaded.iter().map(ToString::to_string).collect();
            PinError::NotLoaded { name: "ot_x".to_string(), loaded }.to_string()
        };
        assert_eq!(of(&[]), "ot_x is not loaded; nothing is");
        assert_eq!(of(&["ot_a", "ot_b"]), "ot_x is not loaded; loaded: ot_a, ot_b");
    }
}
