//! The machine of a test: whether it offers what the test needs, and the lock that serialises tests.

use nix::fcntl::{Flock, FlockArg};
use std::env;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;

/// Where cgroups of version 2 are mounted.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// The lock of all crates' tests of the kernel or in real time. Dropping it releases the machine.
#[must_use = "dropping it starts the next test"]
pub struct Machine {
    _lock: Flock<File>,
}

impl Machine {
    /// Waits until no other test has it.
    pub fn take() -> Machine {
        let path = env::temp_dir().join("opentcp-kernel-tests.lock");
        let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lock = Flock::lock(file, FlockArg::LockExclusive).unwrap_or_else(|(_, error)| panic!("locking: {error}"));
        Machine { _lock: lock }
    }
}

/// The requirement of a test; or `None`, and a printed reason why the test is skipped.
pub fn or_skip<T, E: Display>(needed: Result<T, E>) -> Option<T> {
    needed.inspect_err(|reason| eprintln!("skipped: {reason}")).ok()
}

/// The right to make network namespaces.
///
/// # Errors
/// The test does not run as root.
pub fn root() -> Result<(), &'static str> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err("network namespaces need root") }
}

/// The root of the cgroups of version 2, where all processes are.
///
/// # Errors
/// There are none.
pub fn cgroups() -> Result<&'static Path, &'static str> {
    let found = CGROUPS.map(Path::new).into_iter().find(|folder| folder.join("cgroup.procs").exists());
    found.ok_or("no cgroups of version 2 here")
}
