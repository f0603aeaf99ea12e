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

    fn name(&self) -> String {
        self.0.file_name().expect("it has one").to_string_lossy().into_owned()
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of a cgroup below, which is made if need be.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn below(&self, name: &str) -> PathBuf {
        let folder = self.0.join(name);
        if !folder.exists() {
            fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        }
        folder
    }

    /// A program that starts as one of its processes.
    pub fn command(&self, program: &str) -> Command {
        command_in(&self.0, program)
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
        if let Err(error) = join(&self.home) {
            eprintln!("{}: {error}", self.home.display());
        }
    }
}

/// A program that starts as a process of the cgroup with this folder.
pub fn command_in(folder: &Path, program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(folder.join("cgroup.procs")).arg(program);
    command
}

/// Makes this process one of a cgroup's.
fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), process::id().to_string())
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // not this process itself, should it not have left
        if fs::read_to_string("/proc/self/cgroup").is_ok_and(|own| !own.contains(&self.name())) {
            let _ = fs::write(self.0.join("cgroup.kill"), "1");
        }
        // what was in it may need a moment to end
        if !eventually(|| remove(&self.0).is_ok()) {
            eprintln!("{}: could not be removed", self.0.display());
        }
    }
}

/// Removes a cgroup with those below.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path())?;
    }
    fs::remove_dir(folder)
}
