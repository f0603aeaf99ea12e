//! Why a command failed, and its exit code.

use document::Diagnostic;

/// Exit code of an interrupted program: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// Exit code of a question about a program that does not run, as systemctl and other tools have it.
const NOT_RUNNING: u8 = 3;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The input is wrong; the text says where, what, and what to do instead.
    Input(String),
    /// Scenarios or policies are wrong.
    Located(Vec<Diagnostic>),
    /// The input was right, the work failed.
    Run(String),
    /// What was asked about does not run; that was printed.
    NotRunning,
    /// The user stopped it.
    Interrupted,
    /// The user stopped it, and what is done stays.
    Paused(String),
}

impl Failure {
    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) | Failure::Located(_) => 2,
            Failure::Run(_) => 1,
            Failure::NotRunning => NOT_RUNNING,
            Failure::Interrupted | Failure::Paused(_) => INTERRUPTED,
        }
    }

    /// The message for stderr, coloured if that is wanted.
    pub fn message(&self, colours: bool) -> String {
        match self {
            Failure::Input(text) | Failure::Run(text) if colours => format!("\x1b[1;31merror:\x1b[0m {}", text.trim()),
            Failure::Input(text) | Failure::Run(text) => format!("error: {}", text.trim()),
            Failure::Located(all) => {
                let drawn: Vec<String> = all.iter().map(|diagnostic| diagnostic.render(colours)).collect();
                drawn.join("\n").trim_end().to_string()
            }
            Failure::Paused(text) => text.clone(),
            Failure::NotRunning => String::new(),
            Failure::Interrupted => "interrupted: nothing was written".to_string(),
        }
    }
}

impl From<study::Failure> for Failure {
    fn from(failure: study::Failure) -> Failure {
        match failure {
            study::Failure::Input(text) => Failure::Input(text),
            study::Failure::Located(diagnostic) => Failure::Located(vec![*diagnostic]),
            study::Failure::Run(text) => Failure::Run(text),
            study::Failure::Interrupted => Failure::Interrupted,
            study::Failure::Paused(text) => Failure::Paused(text),
        }
    }
}
