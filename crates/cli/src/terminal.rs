//! Progress on stderr while runs go on, and data on stdout.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write as _};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
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

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless the variable NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// What is printed on stderr, and in which colours.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output {
    /// Errors only: no messages, no progress.
    pub quiet: bool,
    /// When output is coloured.
    pub colour: Colour,
}

static OUTPUT: OnceLock<Output> = OnceLock::new();

/// Sets it, before anything is printed.
pub fn set_output(output: Output) {
    let _ = OUTPUT.set(output);
}

fn output() -> Output {
    OUTPUT.get().copied().unwrap_or_default()
}

/// Whether only errors go to stderr.
pub fn is_quiet() -> bool {
    output().quiet
}

/// Whether stderr is a terminal, and more than errors goes there.
pub fn is_watched() -> bool {
    io::stderr().is_terminal() && !is_quiet()
}

/// Whether output to this stream may have colours.
pub fn is_coloured(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    match output().colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            stream.is_terminal() && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Prints a line to stderr. Where it is closed (`2>&1 | head`) there is nowhere to report that, and the work goes on: `eprintln!` would
/// end the program, and lose what it was about to write.
macro_rules! message {
    ($($words:tt)*) => {{
        let line = format!("{}\n", format_args!($($words)*));
        let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), line.as_bytes());
    }};
}
pub(crate) use message;

/// The same, unless only errors go there.
macro_rules! note {
    ($($words:tt)*) => {
        if !$crate::terminal::is_quiet() {
            $crate::terminal::message!($($words)*);
        }
    };
}
pub(crate) use note;

/// Progress on stderr: a bar on a terminal, else a line for each run.
#[derive(Debug, Default)]
pub struct Terminal {
    progress: Mutex<Progress>,
}

/// A shorter wait shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

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
            Event::Note(words) => progress.note(words),
            Event::Warning(words) => progress.note(&format!("note: {words}")),
        }
    }
}

impl Progress {
    /// For this many runs.
    fn of(runs: usize) -> Progress {
        let bar = is_watched().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}  {elapsed} (about {eta} left)");
            let bar = ProgressBar::with_draw_target(Some(runs as u64 * Event::STEPS), ProgressDrawTarget::hidden());
            bar.with_style(style.expect("the template is a constant"))
        });
        let progress = Progress { bar, runs, finished: 0 };
        progress.say_count();
        progress
    }

    /// This many more steps of a run are done.
    fn advance(&self, steps: u64) {
        if let Some(bar) = &self.bar {
            if bar.is_hidden() && bar.elapsed() > PATIENCE {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.inc(steps);
        }
    }

    /// The run `name` is done; `words` say how it went.
    fn finished(&mut self, name: &str, words: &str) {
        self.finished += 1;
        if self.bar.is_none() {
            note!("[{}/{}] {name}: {words}", self.finished, self.runs);
        }
        self.say_count();
    }

    /// The run `name` is repeated, for the reason in `words`.
    fn repeated(&self, name: &str, words: &str) {
        match &self.bar {
            Some(bar) => bar.inc_length(Event::STEPS),
            None => note!("{name}, repeated: {words}"),
        }
    }

    /// Prints a message above the bar.
    fn note(&self, words: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note!("{words}")),
            None => note!("{words}"),
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
