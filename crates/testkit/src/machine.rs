//! The machine of a test: whether it offers what the test needs, and the lock that serialises tests.

use nix::fcntl::{Flock, FlockArg};
use std::env;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;
use std::sync::{Condvar, Mutex};

/// Where cgroups of version 2 are mounted.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// The lock of all crates' tests of the kernel or in real time. Dropping it releases the machine.
#[must_use = "dropping it starts the next test"]
pub struct Machine {
    _lock: Flock<File>,
    _turn: Turn,
}

impl Machine {
    /// Waits until no other test has it.
    pub fn take() -> Machine {
        Machine::locked(FlockArg::LockExclusive)
    }

    /// Waits until no other test of this program has it, and none that must be alone. For a test that mostly waits, and whose namespaces,
    /// cgroups and BPF programs have names of their own, and that loads no algorithm that another loads, or has the [`Algorithms`] as well.
    pub fn share() -> Machine {
        Machine::locked(FlockArg::LockShared)
    }

    fn locked(how: FlockArg) -> Machine {
        let turn = Turn::wait();
        Machine { _lock: lock("opentcp-kernel-tests.lock", how), _turn: turn }
    }
}

/// The names of algorithms in the kernel, of which there is one set for the whole machine. For a test that shares the machine and loads what
/// another loads too; [`Machine::take`] needs no more.
#[must_use = "dropping it starts the next test"]
pub struct Algorithms {
    _lock: Flock<File>,
}

impl Algorithms {
    /// Waits until no other test has them. A test that needs both shares the machine first.
    pub fn take() -> Algorithms {
        Algorithms { _lock: lock("opentcp-algorithms-tests.lock", FlockArg::LockExclusive) }
    }
}

fn lock(name: &str, how: FlockArg) -> Flock<File> {
    let path = env::temp_dir().join(name);
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Flock::lock(file, how).unwrap_or_else(|(_, error)| panic!("locking: {error}"))
}

/// Of a program's tests one has its turn, until this is dropped. A mutex's guard could not go to the thread that some tests work in.
struct Turn;

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static RETURNED: Condvar = Condvar::new();

impl Turn {
    fn wait() -> Turn {
        let taken = IS_TAKEN.lock().expect("nothing panics while it is locked");
        *RETURNED.wait_while(taken, |taken| *taken).expect("nothing panics while it is locked") = true;
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *IS_TAKEN.lock().expect("nothing panics while it is locked") = false;
        RETURNED.notify_one();
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
