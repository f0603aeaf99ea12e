//! Programs of the machine that a test may use.

use std::env;
use std::path::PathBuf;

/// Browsers that speak the DevTools protocol; the first has no desktop's libraries.
const BROWSERS: [&str; 2] = ["chromium-headless-shell", "chromium"];

/// A program of PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A browser.
///
/// # Errors
/// There is none.
pub fn browser() -> Result<PathBuf, &'static str> {
    BROWSERS.into_iter().find_map(on_path).ok_or("no chromium-headless-shell or chromium on the PATH")
}
