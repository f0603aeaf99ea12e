//! Progress on stderr while runs go on, and data on stdout.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use study::{Event, Sink};

/// Writes to stdout.
///
/// # Errors
/// Writing failed. A reader that has closed the pipe (`opentcp … | head`) is no error.
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
/// As [`print`], or a number that JSON cannot express.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).map_err(|error| Failure::Run(error.to_string()))?;
    print(&format!("{json}\n"))
}

/// Whether stderr is a terminal.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Progress on stderr: a bar on a terminal, else a line for each run.
#[derive(Debug, Default)]
pub struct Terminal {
    progress: Mutex<Progress>,
}

/// Progress of the runs.
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
            Event::Repeated { name, words } => progress.repeated(name, words),
            Event::Ended => progress.end(),
            Event::Note(words) => eprintln!("{words}"),
        }
    }
}

impl Progress {
    /// For this many runs.
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

    /// This many more steps of a run are done.
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

    /// The run `name` is repeated, for the reason in `words`.
    fn repeated(&self, name: &str, words: &str) {
        match &self.bar {
            Some(bar) => bar.inc_length(Event::STEPS),
            None => eprintln!("{name}, repeated: {words}"),
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
