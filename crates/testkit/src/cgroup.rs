//! A cgroup of a test.

use crate::machine::cgroups;
use crate::wait::eventually;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// A cgroup (version 2) with a name of its own. On drop its processes are killed, and it is removed with those below.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// # Errors
    /// They are not mounted here.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn new(name: &str) -> Result<Cgroup, &'static str> {
        let folder = cgroups()?.join(format!("opentcp-{name}-{}", process::id()));
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Ok(Cgroup(folder))
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A program that starts as one of its processes.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(self.0.join("cgroup.procs")).arg(program);
        command
    }

    /// Makes this process one of its processes, until the result is dropped.
    ///
    /// # Panics
    /// It may not.
    #[must_use = "dropping it leaves the cgroup"]
    pub fn enter(&self) -> Inside {
        let own = fs::read_to_string("/proc/self/cgroup").expect("every process has one");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).expect("it is mounted");
        let home = self.0.parent().expect("it is below the root").join(own);
        join(&self.0).expect("root may");
        Inside { home }
    }
}

/// This process is in a cgroup of a test; dropping it takes the process back.
pub struct Inside {
    home: PathBuf,
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = join(&self.home);
    }
}

/// Makes this process one of a cgroup's processes.
fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), process::id().to_string())
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        // what was in it may need a moment to end
        eventually(|| remove(&self.0).is_ok());
    }
}

/// Removes a cgroup with those below.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path())?;
    }
    fs::remove_dir(folder)
}
