//! Running the program in a folder of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two flows on a small network for one simulated second: quick, with drops, and all tables.
pub const SMALL: &str = r#"
duration = "1 s"
[network]
topology = { dumbbell = { pairs = 2 } }
rate = "20 Mbit/s"
delay = "1 ms"
queue = { drop_tail = { packets = 20 } }
[tcp]
cc = "newreno"
[[traffic]]
random_pairs = { flows = 4, on_off = { rate = "20 Mbit/s", on = "100 ms", off = "50 ms" } }
[measure]
links = "50 ms"
cwnd = "50 ms"
packet_delay = true
"#;

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

/// Every file below a folder with its bytes, except `run.json`, which describes this machine.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_none_or(|name| name != "run.json") {
                files.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Names of the files that differ or exist on one side only.
pub fn differences(a: &Path, b: &Path) -> Vec<String> {
    let (a, b) = (files(a), files(b));
    let names: std::collections::BTreeSet<&PathBuf> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|name| a.get(*name) != b.get(*name)).map(|name| name.display().to_string()).collect()
}
