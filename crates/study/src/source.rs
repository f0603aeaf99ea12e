//! Where a scenario or a policy is written: a file, or a text of the front end's.

use crate::failure::Failure;
use scenario::{Diagnostic, Disk};
use std::path::{Path, PathBuf};

/// Where a scenario or a policy is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, read when it is needed. The paths in it begin at its folder.
    File(PathBuf),
    /// A text.
    Text {
        /// Its name in messages, as a file would have it: `incast.toml` is the scenario `incast`, unless it names itself.
        name: String,
        /// The text, TOML.
        text: String,
        /// Where the paths in it begin.
        base: PathBuf,
    },
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Source {
        Source::File(path)
    }
}

impl From<&Path> for Source {
    fn from(path: &Path) -> Source {
        Source::File(path.to_path_buf())
    }
}

impl From<&str> for Source {
    fn from(path: &str) -> Source {
        Source::File(path.into())
    }
}

impl Source {
    /// A scenario that is compiled in.
    pub(crate) fn built_in(name: &str, text: &str) -> Source {
        Source::Text { name: name.to_string(), text: text.to_string(), base: PathBuf::new() }
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Text { name, .. } => name.clone(),
        }
    }

    /// The text; `what` it is, for the message.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn text(&self, what: &str) -> Result<String, Failure> {
        match self {
            Source::File(path) => document::read_text(path)
                .map_err(|error| Failure::located(&Diagnostic::unreadable(what, &self.name(), &error))),
            Source::Text { text, .. } => Ok(text.clone()),
        }
    }

    /// The files that it may name.
    pub(crate) fn disk(&self) -> Disk {
        let base = match self {
            Source::File(path) => path.parent().map(Path::to_path_buf).unwrap_or_default(),
            Source::Text { base, .. } => base.clone(),
        };
        Disk { base }
    }
}
