//! What is said on stderr while runs go on, and how data gets to stdout.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Time;

/// Writes to stdout.
///
/// # Errors
/// Whatever hinders writing, except that the reader has seen enough (`opentcp … | head`).
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON object.
///
/// # Errors
/// As [`print`], and a number that JSON has no word for.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).map_err(|error| Failure::Run(error.to_string()))?;
    print(&format!("{json}\n"))
}

/// Whether a person looks at stderr.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// How far the runs are: a bar on a terminal, a line for each run elsewhere.
pub struct Progress {
    bar: Option<ProgressBar>,
    runs: usize,
    finished: AtomicUsize,
}

impl Progress {
    /// Steps of the bar that a run is worth.
    pub const STEPS: u64 = 1000;

    /// Of `runs` runs.
    pub fn of(runs: usize) -> Progress {
        let bar = is_watched().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}  {elapsed} (about {eta} left)");
            let bar = ProgressBar::new(runs as u64 * Progress::STEPS);
            bar.with_style(style.expect("the template is a constant"))
        });
        let progress = Progress { bar, runs, finished: AtomicUsize::new(0) };
        progress.say_count();
        progress
    }

    /// How many of a run's steps are done when it has come from 0 to `now` of `end`.
    pub fn share(now: Time, end: Time) -> u64 {
        (u128::from(now.as_ps()) * u128::from(Progress::STEPS) / u128::from(end.as_ps().max(1))) as u64
    }

    /// So many more steps of a run are done.
    pub fn advance(&self, steps: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(steps);
        }
    }

    /// The run `name` is done; `words` say how it went.
    pub fn finished(&self, name: &str, words: &str) {
        let number = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        if self.bar.is_none() {
            eprintln!("[{number}/{}] {name}: {words}", self.runs);
        }
        self.say_count();
    }

    /// The run `name` is made again, for the reason that `words` say.
    pub fn once_more(&self, name: &str, words: &str) {
        match &self.bar {
            Some(bar) => bar.inc_length(Progress::STEPS),
            None => eprintln!("{name}, once more: {words}"),
        }
    }

    fn say_count(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}/{} runs", self.finished.load(Ordering::Relaxed), self.runs));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
