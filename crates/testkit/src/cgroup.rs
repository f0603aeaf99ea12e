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
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // this process itself, should it not have left, is to say what fails next
        if !own().starts_with(&self.0) {
            let _ = fs::write(self.0.join("cgroup.kill"), "1");
        }
        // what was in it may need a moment to end
        if !eventually(|| remove(&self.0).is_ok()) {
            eprintln!("{}: could not be removed", self.0.display());
        }
    }
}

/// This process is in the cgroup that it entered; dropping this takes it back.
#[must_use = "dropping it leaves the cgroup"]
pub struct Entered {
    home: PathBuf,
}

impl Entered {
    /// Makes this process one of the cgroup with this folder.
    ///
    /// # Panics
    /// It may not.
    pub fn into(folder: &Path) -> Entered {
        let home = own();
        join(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Entered { home }
    }
}

impl Drop for Entered {
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

/// The folder of the cgroup that this process is in.
fn own() -> PathBuf {
    let own = fs::read_to_string("/proc/self/cgroup").expect("every process has one");
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).expect("a cgroup was made");
    cgroups().expect("a cgroup was made").join(own)
}

fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), process::id().to_string())
}

/// Removes a cgroup with those below.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir()) {
        remove(&entry.path())?;
    }
    fs::remove_dir(folder)
}
