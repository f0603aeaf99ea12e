//! Programs that run during a test.

use crate::network::inside;
use crate::wait::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};

/// Programs that keep CPUs busy, killed when dropped.
pub struct Burners(Vec<Child>);

impl Burners {
    /// Starts `n`; each takes as much of a CPU as it gets.
    pub fn start(n: usize) -> Burners {
        let burn = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("there is a shell");
        Burners((0..n).map(burn).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            let _ = burner.kill();
            let _ = burner.wait();
        }
    }
}

/// A process, killed when dropped, also by a failing test. Its stderr goes into a file.
pub struct Running {
    child: Child,
    log: PathBuf,
    /// Bytes of the file that were there before: of an earlier process.
    before: usize,
}

impl Running {
    /// Starts a program in a network namespace; its stderr is appended to the file `log`.
    pub fn start(namespace: &str, command: &mut Command, log: PathBuf) -> Running {
        let file = File::options().append(true).create(true).open(&log);
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let before = file.metadata().expect("the file is open").len() as usize;
        command.stderr(file);
        let child = inside(namespace, || command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
        Running { child, log, before }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its stderr so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).map(|log| log[self.before..].to_string()).unwrap_or_default()
    }

    /// Suspends it, or resumes it.
    pub fn pause(&self, on: bool) {
        self.signal(if on { Signal::SIGSTOP } else { Signal::SIGCONT });
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Ends it as a service manager does; its exit code must be 0.
    pub fn stop(self) {
        self.end(Signal::SIGTERM);
    }

    /// Ends it as Ctrl-C does; its exit code must be 0.
    pub fn interrupt(self) {
        self.end(Signal::SIGINT);
    }

    /// Waits until it has failed by itself; returns its stderr.
    pub fn fails(mut self) -> String {
        assert!(eventually(|| self.has_ended()), "it still runs: {}", self.said());
        assert_eq!(self.child.wait().expect("it is ours").code(), Some(1), "{}", self.said());
        self.said()
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }
}

impl Running {
    fn end(mut self, signal: Signal) {
        self.signal(signal);
        let code = self.child.wait().expect("it is ours").code();
        assert_eq!(code, Some(0), "{}", self.said());
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it has not been waited for");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
