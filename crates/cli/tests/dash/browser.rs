//! The browser, driven by a script of `crates/dash/browser` with two packages of npm.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::{on_path, or_skip};

/// Folder of the script and of the list of its packages.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dash/browser");

/// Where the browser and the script's packages are.
pub struct Browser {
    program: PathBuf,
    packages: PathBuf,
}

impl Browser {
    /// Or a printed reason why the test is skipped.
    pub fn find() -> Option<Browser> {
        let skipped = |why: &str| {
            eprintln!("skipped: {why}");
            None
        };
        let program = or_skip(testkit::browser())?;
        if on_path("node").is_none() || on_path("npm").is_none() {
            return skipped("no node or npm on the PATH");
        }
        let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dash-browser");
        let lock = "package-lock.json";
        let is_there = |file: &str| fs::read(packages.join(file)).ok() == fs::read(Path::new(SCRIPT).join(file)).ok();
        if !is_there(lock) || !packages.join("node_modules/axe-core").exists() {
            fs::create_dir_all(&packages).unwrap();
            for file in ["package.json", lock] {
                fs::copy(Path::new(SCRIPT).join(file), packages.join(file)).unwrap();
            }
            let installed = Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .current_dir(&packages)
                .output()
                .unwrap();
            if !installed.status.success() {
                let _ = fs::remove_file(packages.join(lock));
                return skipped(&format!(
                    "npm cannot install its packages: {}",
                    String::from_utf8_lossy(&installed.stderr)
                ));
            }
        }
        Some(Browser { program, packages })
    }

    /// Has something done with the page at an address; what it found. It must find no fault.
    pub fn does(&self, what: &str, url: &str, more: &Value) -> Value {
        let mut asked = json!({
            "url": url, "browser": self.program, "out": Path::new(env!("CARGO_TARGET_TMPDIR")).join("dash"),
        });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.runs(what, &asked, |_| {}).pop().expect("it prints what it found")
    }

    /// The same, and `on` is called with each line as it is printed.
    pub fn follows(&self, what: &str, url: &str, on: impl FnMut(&Value)) -> Vec<Value> {
        self.runs(what, &json!({ "url": url, "browser": self.program }), on)
    }

    fn runs(&self, what: &str, asked: &Value, mut on: impl FnMut(&Value)) -> Vec<Value> {
        let mut child = Command::new("node")
            .arg(Path::new(SCRIPT).join("page.mjs"))
            .args([what, &asked.to_string()])
            .env("NODE_PACKAGES", &self.packages)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            on(&line);
            lines.push(line);
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        lines
    }
}
