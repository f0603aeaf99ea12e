//! What is said on stderr while runs go on, and how data gets to stdout.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use study::{Event, Sink};

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

/// What is said while runs go on: on stderr, a bar if a person looks at it, a line for each run elsewhere.
#[derive(Debug, Default)]
pub struct Terminal {
    progress: Mutex<Progress>,
}

/// How far the runs are.
#[derive(Debug, Default)]
struct Progress {
    bar: Option<ProgressBar>,
    runs: usize,
    finished: usize,
}

impl Sink for Terminal {
    fn on_event(&self, event: Event<'_>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Began { runs } => *progress = Progress::of(runs),
            Event::Advanced { steps } => progress.advance(steps),
            Event::Finished { name, words } => progress.finished(name, words),
            Event::Again { name, words } => progress.once_more(name, words),
            Event::Ended => progress.end(),
            Event::Note(words) => eprintln!("{words}"),
        }
    }
}

impl Progress {
    /// Of `runs` runs.
    fn of(runs: usize) -> Progress {
        let bar = is_watched().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}  {elapsed} (about {eta} left)");
            let bar = ProgressBar::new(runs as u64 * Event::STEPS);
            bar.with_style(style.expect("the template is a constant"))
        });
        let progress = Progress { bar, runs, finished: 0 };
        progress.say_count();
        progress
    }

    /// So many more steps of a run are done.
    fn advance(&self, steps: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(steps);
        }
    }

    /// The run `name` is done; `words` say how it went.
    fn finished(&mut self, name: &str, words: &str) {
        self.finished += 1;
        if self.bar.is_none() {
            eprintln!("[{}/{}] {name}: {words}", self.finished, self.runs);
        }
        self.say_count();
    }

    /// The run `name` is made again, for the reason that `words` say.
    fn once_more(&self, name: &str, words: &str) {
        match &self.bar {
            Some(bar) => bar.inc_length(Event::STEPS),
            None => eprintln!("{name}, once more: {words}"),
        }
    }

    fn say_count(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}/{} runs", self.finished, self.runs));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
