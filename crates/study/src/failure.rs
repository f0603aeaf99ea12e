//! Why a request failed.

use results::WriteError;
use scenario::Diagnostic;
use sim::SimError;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is wrong; the text says where, what, and what to do instead.
    #[error("{0}")]
    Input(String),
    /// A scenario or a policy is wrong.
    #[error("{0}")]
    Located(Box<Diagnostic>),
    /// The request was right, the work failed.
    #[error("{0}")]
    Run(String),
    /// It was stopped.
    #[error("interrupted: nothing was written")]
    Interrupted,
    /// It was stopped, and what is done stays; the text says how much.
    #[error("{0}")]
    Paused(String),
}

impl Failure {
    /// A mistake in a file, with the lines that it concerns.
    pub(crate) fn located(diagnostic: &Diagnostic) -> Failure {
        Failure::Located(Box::new(diagnostic.clone()))
    }

    /// A results folder that cannot be created is a bad `out`.
    pub(crate) fn bad_out(error: &WriteError) -> Failure {
        Failure::Input(error.to_string())
    }

    /// Writing failed after the folder was created.
    pub(crate) fn writing(error: &WriteError) -> Failure {
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
