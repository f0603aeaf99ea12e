//! Why a command ends without having done its work, and with which exit code.

use crate::terminal::is_watched;
use results::WriteError;
use scenario::Diagnostic;
use sim::SimError;

/// Exit code of an interrupted program: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// What the user gave cannot be worked with; the text says where, what, and what to do instead.
    Input(String),
    /// A scenario or a policy is wrong; the text is the diagnostic, drawn.
    Located(String),
    /// The input was good, the work failed.
    Run(String),
    /// The user stopped it.
    Interrupted,
}

impl Failure {
    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) | Failure::Located(_) => 2,
            Failure::Run(_) => 1,
            Failure::Interrupted => INTERRUPTED,
        }
    }

    /// What stderr is told.
    pub fn message(&self) -> String {
        match self {
            Failure::Input(text) | Failure::Run(text) => format!("error: {}", text.trim()),
            Failure::Located(text) => text.trim_end().to_string(),
            Failure::Interrupted => "interrupted: nothing was written".to_string(),
        }
    }

    /// What is wrong with a file, with the lines that it is about.
    pub fn located(diagnostic: &Diagnostic) -> Failure {
        Failure::Located(diagnostic.render(is_watched()))
    }

    /// A results folder that cannot be begun is a bad `--out`.
    pub fn bad_out(error: &WriteError) -> Failure {
        Failure::Input(error.to_string())
    }

    /// Writing failed after the folder had been begun.
    pub fn writing(error: &WriteError) -> Failure {
        Failure::Run(error.to_string())
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        match error {
            SimError::Network(_) | SimError::Algorithm(_) => Failure::Input(error.to_string()),
            SimError::Interrupted => Failure::Interrupted,
        }
    }
}
