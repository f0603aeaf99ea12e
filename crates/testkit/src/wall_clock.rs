//! A wall clock that is wrong, for one process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// A wall clock that can be set for some processes: time namespaces have none, and the machine's must not change.
pub struct WallClock {
    library: PathBuf,
    /// The file that says by how many seconds it is wrong.
    file: PathBuf,
}

impl WallClock {
    /// Compiles it into a folder. It is right until [`WallClock::set`].
    pub fn new(folder: &Path) -> WallClock {
        fs::create_dir_all(folder).expect("a folder can be made");
        let (library, file) = (folder.join("wall_clock.so"), folder.join("wall"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/wall_clock.c");
        let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"];
        let done = Command::new("cc").args(flags).arg(&library).arg(source).status();
        assert!(done.is_ok_and(|status| status.success()), "the build has found a C compiler");
        fs::write(&file, "0").expect("the folder can be written");
        WallClock { library, file }
    }

    /// The environment of a process that is to have this clock.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.library.clone()), ("WALL_CLOCK", self.file.clone())]
    }

    /// Sets it wrong by so many seconds, and checks that programs see that.
    pub fn set(&self, by: i64) {
        fs::write(&self.file, by.to_string()).expect("the folder can be written");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_secs() as i64;
        let wrong_by = self.date() - now;
        assert!((by - 60..=by + 60).contains(&wrong_by), "other programs see it: {wrong_by} s");
        assert!(self.forget_reads(), "the library notes that they read the clock");
    }

    /// Whether a process has read it since [`WallClock::set`] or [`WallClock::forget_reads`].
    pub fn is_read(&self) -> bool {
        self.reads().exists()
    }

    /// Forgets who has read it; whether anybody had.
    pub fn forget_reads(&self) -> bool {
        fs::remove_file(self.reads()).is_ok()
    }

    fn reads(&self) -> PathBuf {
        self.file.with_extension("read")
    }

    fn date(&self) -> i64 {
        let output = Command::new("date").arg("+%s").envs(self.environment()).output().expect("date runs");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number of seconds")
    }
}
