//! The built page, and what opens it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{on_path, or_skip};

/// Folder of the list of npm's packages, the dashboard's.
const LIST: &str = "../dash/browser";

/// The folder that `tools/playground checked` made, or a printed reason why the test is skipped.
pub fn page() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let page = target.join("checked/playground");
    if page.join("playground.wasm").is_file() {
        return Some(page);
    }
    eprintln!("skipped: {} is not there: tools/playground checked builds it", page.display());
    None
}

/// A browser, and the packages that drive it.
pub struct Browser {
    pub program: PathBuf,
    pub packages: PathBuf,
}

/// Or a printed reason why the test is skipped.
pub fn browser() -> Option<Browser> {
    let skipped = |why: &str| {
        eprintln!("skipped: {why}");
        None
    };
    let program = or_skip(testkit::browser())?;
    if on_path("node").is_none() || on_path("npm").is_none() {
        return skipped("no node or npm on the PATH");
    }
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("playground-browser");
    if !packages.join("node_modules/axe-core").exists() {
        fs::create_dir_all(&packages).expect("a folder");
        for file in ["package.json", "package-lock.json"] {
            fs::copy(Path::new(LIST).join(file), packages.join(file)).expect("it is copied");
        }
        let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let installed = Command::new("npm").args(install).current_dir(&packages).output().expect("npm starts");
        if !installed.status.success() {
            let why = String::from_utf8_lossy(&installed.stderr).into_owned();
            return skipped(&format!("npm cannot install its packages: {why}"));
        }
    }
    Some(Browser { program, packages })
}
