//! Child processes that end with us.

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the process that `command` will start killed (SIGKILL) when the *thread* that starts it ends, for example because
/// our process was killed. Processes that it starts in turn are not covered.
pub fn die_with_this_thread(command: &mut Command) {
    let parent = getpid();
    // SAFETY: between fork and exec only async-signal-safe calls may be made, and nothing may be allocated: these are two
    // system calls and errors that hold a number.
    unsafe { command.pre_exec(move || bind_to(parent)) };
}

fn bind_to(parent: Pid) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // It may have ended just before: then no signal would come.
    if getppid() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}
