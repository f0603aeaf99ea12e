//! A cgroup (version 2) of the run, so that programs attached to it see only the run's sockets.
//!
//! A socket belongs to the cgroup of the process that made it, and Linux keeps a process's threads together. So the whole
//! process is in this cgroup during the run, below the one where it was, with no further limits.

use crate::hosts::Mark;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// Why there is no cgroup.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The machine has no cgroups of version 2.
    #[error(
        "a scenario with a policy on real kernels needs cgroup v2, which is not mounted: mount -t cgroup2 none /sys/fs/cgroup"
    )]
    Absent,
    /// It cannot be made or entered.
    #[error("{}: cannot create the cgroup that a scenario with a policy needs on real kernels: {source}", path.display())]
    Refused {
        /// Its folder.
        path: PathBuf,
        /// The system call's error.
        source: io::Error,
    },
}

/// The cgroup, with this process in it. Dropping it moves the process back and removes the cgroup.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    before: PathBuf,
}

impl Cgroup {
    /// Creates and enters it.
    ///
    /// # Errors
    /// [`CgroupError`]; nothing is left behind then.
    pub fn enter() -> Result<Cgroup, CgroupError> {
        let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let before = root().and_then(|root| own(&root, &cgroups)).ok_or(CgroupError::Absent)?;
        let refused = |path: &Path| {
            let path = path.to_path_buf();
            move |source| CgroupError::Refused { path, source }
        };
        let mark = Mark::of_this_process("run").map_err(refused(Path::new("/proc/self/stat")))?;
        let path = before.join(mark.to_string());
        fs::create_dir(&path).map_err(refused(&path))?;
        let cgroup = Cgroup { path, before };
        move_to(&cgroup.path).map_err(refused(&cgroup.path))?;
        Ok(cgroup)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // if either fails, `clean` removes it once this process has ended
        let _ = move_to(&self.before);
        let _ = fs::remove_dir(&self.path);
    }
}

fn move_to(cgroup: &Path) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), process::id().to_string())
}

/// Removes the cgroups of runs that have died. Returns their number.
pub fn clean() -> usize {
    root().map_or(0, |root| clean_below(&root))
}

fn clean_below(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        removed += clean_below(&entry.path());
        let is_dead = entry.file_name().to_str().and_then(Mark::parse).is_some_and(|mark| !mark.owner_lives());
        removed += usize::from(is_dead && fs::remove_dir(entry.path()).is_ok());
    }
    removed
}

/// Where cgroups of version 2 are mounted.
fn root() -> Option<PathBuf> {
    kernel::cgroup_mounts().pop()
}

/// The cgroup of this process, below `root`.
fn own(root: &Path, cgroups: &str) -> Option<PathBuf> {
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(root.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found() {
        let root = Path::new("/sys/fs/cgroup/unified");
        assert_eq!(own(root, "1:cpu:/a\n0::/user.slice/b\n").unwrap(), root.join("user.slice/b"));
        assert_eq!(own(root, "0::/\n").unwrap(), root.join(""));
        assert_eq!(own(root, "1:cpu:/a\n"), None);
    }
}
