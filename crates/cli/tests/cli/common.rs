//! Running the program in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the program did.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A folder to work in.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    /// With a file `a.toml`.
    pub fn with(scenario: &str) -> Place {
        let place = Place::new();
        place.write("a.toml", scenario);
        place
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.join(name), text).unwrap();
    }

    /// The names of everything in it.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opentcp"));
        command.args(args).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    pub fn opentcp(&self, args: &[&str]) -> Done {
        let output = self.command(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// As [`Place::opentcp`], which must succeed.
    pub fn succeed(&self, args: &[&str]) -> Done {
        let done = self.opentcp(args);
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        done
    }
}
