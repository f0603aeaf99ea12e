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
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let root = root(&read("/proc/self/mountinfo")).ok_or(CgroupError::Absent)?;
        let before = own(&root, &read("/proc/self/cgroup")).ok_or(CgroupError::Absent)?;
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
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    root(&mounts).map_or(0, |root| clean_below(&root))
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
fn root(mountinfo: &str) -> Option<PathBuf> {
    let mut mounts = mountinfo.lines().filter_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let is_cgroup2 = system.split(' ').next()? == "cgroup2";
        is_cgroup2.then(|| place.split(' ').nth(4)).flatten()
    });
    // the last of several: at one place it hides the others
    mounts.next_back().map(PathBuf::from)
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
    fn the_mount_and_the_own_cgroup_are_found() {
        let mounts = "25 1 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                      26 25 0:23 / /sys/fs/cgroup/cpu rw,relatime shared:3 - cgroup cgroup rw,cpu\n\
                      27 25 0:24 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n";
        let root = root(mounts).unwrap();
        assert_eq!(root, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(own(&root, "1:cpu:/a\n0::/user.slice/b\n").unwrap(), root.join("user.slice/b"));
        assert_eq!(own(&root, "0::/\n").unwrap(), root.join(""));
        assert_eq!(own(&root, "1:cpu:/a\n"), None);
    }
}
