//! The policies that were in force, and who applied them, for the way back; and what else an Oracle learns of its fleet.

use crate::record::now;
use bus::files::{FileError, read_checked, replace_checked};
use policy::Progress;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Most policies that are kept.
pub const VERSIONS_MAX: usize = 16;
/// What to do about a file that is damaged.
const DAMAGED: &str = "Remove it to begin anew: earlier policies cannot be returned to then, and algorithms are learnt from reports again";
/// Most names of algorithms that hosts have reported.
const ALGORITHMS_MAX: usize = 1024;

/// The SHA-256 of a policy's text, in 64 hexadecimal digits.
pub fn hash(text: &str) -> String {
    let mut hash = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        write!(hash, "{byte:02x}").expect("writing to a string");
    }
    hash
}

/// The algorithms that hosts had reported to an Oracle with this state folder. None where its file cannot be read: the Oracle says why.
pub fn reported(state: &Path) -> Vec<String> {
    Versions::open(state).map(|versions| versions.kept.algorithms).unwrap_or_default()
}

/// What is kept of policies.
#[derive(Debug)]
pub(crate) struct Versions {
    path: PathBuf,
    kept: Kept,
    /// What the file has.
    stored: Kept,
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The number of the version in force.
    current: u64,
    /// In the order of their numbers.
    versions: Vec<Version>,
    /// Algorithms that hosts have reported and this machine may not know.
    algorithms: Vec<String>,
}

/// A policy that is or was in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Version {
    /// Rises by one.
    pub number: u64,
    /// The one that was in force before.
    pub before: Option<u64>,
    /// The policy's name.
    pub policy: String,
    /// The name of its file.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Who applied it.
    pub by: String,
    /// When, RFC 3339.
    pub at: String,
    /// How far its rollout had come when it was replaced.
    pub progress: Progress,
}

impl Version {
    /// The hash of its text.
    pub fn hash(&self) -> String {
        hash(&self.text)
    }
}

impl Versions {
    /// Of the folder `state`; nothing is known yet if the file is missing.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn open(state: &Path) -> Result<Versions, FileError> {
        let path = state.join("policies.json");
        let kept = match read_checked(&path, DAMAGED)? {
            None => Kept::default(),
            Some(bytes) => {
                let in_file = |source: io::Error| FileError::Io { path: path.clone(), source };
                serde_json::from_slice(&bytes).map_err(|error| in_file(error.into()))?
            }
        };
        Ok(Versions { path, stored: kept.clone(), kept })
    }

    /// The version in force.
    pub fn current(&self) -> Option<&Version> {
        self.numbered(self.kept.current)
    }

    /// The version that was in force before.
    pub fn before(&self) -> Option<&Version> {
        self.numbered(self.current()?.before?)
    }

    /// All versions that are kept, the latest first.
    pub fn all(&self) -> impl Iterator<Item = &Version> {
        self.kept.versions.iter().rev()
    }

    fn numbered(&self, number: u64) -> Option<&Version> {
        self.kept.versions.iter().find(|version| version.number == number)
    }

    /// The name of the file of a version with this text, the latest if there are several.
    pub fn file_of(&self, text: &str) -> Option<&str> {
        self.all().find(|version| version.text == text).map(|version| version.file.as_str())
    }

    /// Has the policy of this text in force, which it is by other means than a request: a changed file, or another Oracle.
    pub fn follow(&mut self, text: &str, (policy, file): (&str, &str), by: &str) {
        if self.current().is_some_and(|current| current.text == text) {
            return;
        }
        if let Some(known) = self.kept.versions.iter().rev().find(|version| version.text == text && version.by != by) {
            // it was applied, and this Oracle ended before it was noted that it is in force
            self.kept.current = known.number;
            return;
        }
        let at = format!("{:.3}", now());
        let (policy, file, text, by) = (policy.to_string(), file.to_string(), text.to_string(), by.to_string());
        self.add(
            Version { number: 0, before: None, policy, file, text, by, at, progress: Progress::default() },
            Progress::default(),
        );
    }

    /// Adds a version, which is in force from now on; `progress` is that of the one before.
    pub fn add(&mut self, new: Version, progress: Progress) {
        let before = self.current().map(|current| current.number);
        self.note(progress);
        let number = self.kept.versions.last().map_or(1, |last| last.number + 1);
        self.kept.versions.push(Version { number, before, ..new });
        if self.kept.versions.len() > VERSIONS_MAX {
            self.kept.versions.remove(0);
        }
        self.kept.current = number;
    }

    /// The version before is in force from now on; `progress` is that of the one that is left.
    pub fn step_back(&mut self, progress: Progress) {
        if let Some(before) = self.before().map(|before| before.number) {
            self.note(progress);
            self.kept.current = before;
        }
    }

    fn note(&mut self, progress: Progress) {
        let current = self.kept.current;
        if let Some(version) = self.kept.versions.iter_mut().find(|version| version.number == current) {
            version.progress = progress;
        }
    }

    /// Algorithms that hosts have reported.
    pub fn algorithms(&self) -> &[String] {
        &self.kept.algorithms
    }

    /// Adds names that hosts report; whether one is new.
    pub fn learn<'a>(&mut self, names: impl Iterator<Item = &'a String>) -> bool {
        let before = self.kept.algorithms.len();
        for name in names {
            if self.kept.algorithms.len() < ALGORITHMS_MAX
                && let Err(at) = self.kept.algorithms.binary_search(name)
            {
                self.kept.algorithms.insert(at, name.clone());
            }
        }
        self.kept.algorithms.len() > before
    }

    /// Writes it down, if it has changed. When this returns it is on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn store(&mut self) -> Result<(), FileError> {
        if self.stored != self.kept {
            replace_checked(&self.path, &serde_json::to_vec_pretty(&self.kept).expect("it is plain data"))?;
            self.stored = self.kept.clone();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    fn version(text: &str) -> Version {
        let (policy, file, by, at) = ("p".into(), "p.toml".into(), "alice".into(), "2026-03-01T12:00:00.000Z".into());
        Version { number: 0, before: None, policy, file, text: text.into(), by, at, progress: Progress::default() }
    }

    fn lasted(seconds: u64) -> Progress {
        Progress { lasted: Time::from_secs(seconds), ..Progress::default() }
    }

    #[test]
    fn each_version_knows_the_one_before_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        assert!(versions.current().is_none() && versions.before().is_none());
        for (i, text) in ["a", "b", "c"].iter().enumerate() {
            versions.add(version(text), lasted(i as u64));
        }
        versions.step_back(lasted(9));
        versions.store().unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        let text = |version: Option<&Version>| version.map(|version| version.text.clone());
        assert_eq!((text(versions.current()), text(versions.before())), (Some("b".into()), Some("a".into())));
        // from b on to d, whose way back is to b
        versions.add(version("d"), lasted(3));
        assert_eq!((text(versions.current()), text(versions.before())), (Some("d".into()), Some("b".into())));
        let progress: Vec<u64> =
            versions.all().map(|version| version.progress.lasted.as_ns() / 1_000_000_000).collect();
        assert_eq!(progress, [0, 9, 3, 1], "of d, c, b, a when they were left");
        for _ in 0..3 {
            versions.step_back(lasted(0));
        }
        assert_eq!(text(versions.current()), Some("a".into()));
    }

    #[test]
    fn what_has_not_changed_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        versions.follow("a", ("p", "p.toml"), "the Oracle's start");
        versions.store().unwrap();
        // no other file can be made, as on a full disk
        std::fs::create_dir(folder.path().join("policies.new")).unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        versions.follow("a", ("p", "p.toml"), "the Oracle's start");
        versions.store().unwrap();
        versions.follow("b", ("p", "p.toml"), "the Oracle's start");
        versions.store().unwrap_err();
    }

    #[test]
    fn a_changed_file_is_a_new_version_and_one_that_was_applied_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        versions.follow("a", ("p", "p.toml"), "the Oracle's start");
        versions.add(version("b"), lasted(1));
        let number = |versions: &Versions| versions.current().map(|version| version.number);
        versions.follow("b", ("p", "p.toml"), "the Oracle's start");
        assert_eq!((number(&versions), versions.file_of("b"), versions.file_of("c")), (Some(2), Some("p.toml"), None));
        versions.follow("c", ("p", "p.toml"), "the Oracle's start");
        assert_eq!((number(&versions), versions.before().map(|version| version.number)), (Some(3), Some(2)));
        versions.follow("b", ("p", "p.toml"), "the Oracle's start");
        assert_eq!((number(&versions), versions.all().count()), (Some(2), 3));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        for i in 0..40 {
            versions.add(version(&i.to_string()), lasted(0));
        }
        assert_eq!((versions.all().count(), versions.current().unwrap().number), (VERSIONS_MAX, 40));
        let names: Vec<String> = (0..3000).map(|i| format!("a{i}")).collect();
        assert!(versions.learn(names.iter()) && !versions.learn(names.iter()));
        assert_eq!(versions.algorithms().len(), ALGORITHMS_MAX);
    }

    #[test]
    fn a_file_that_no_oracle_has_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{", "[]", "{\"versions\": 7}", &"[".repeat(100_000)] {
            std::fs::write(folder.path().join("policies.json"), text).unwrap();
            assert!(Versions::open(folder.path()).unwrap_err().to_string().contains("policies.json"));
        }
    }

    #[test]
    fn whatever_happens_to_a_byte_is_an_error_or_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = Versions::open(folder.path()).unwrap();
        versions.add(version("a"), lasted(1));
        versions.store().unwrap();
        let sound = std::fs::read(&versions.path).unwrap();
        for (at, flip) in (0..sound.len()).flat_map(|at| [1, 4, 32, 255].map(move |flip| (at, flip))) {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            std::fs::write(&versions.path, damaged).unwrap();
            if let Ok(read) = Versions::open(folder.path()) {
                assert_eq!(read.kept, versions.kept, "byte {at} changed by {flip}");
            }
        }
        // an earlier version's file
        std::fs::write(&versions.path, serde_json::to_vec(&versions.kept).unwrap()).unwrap();
        assert_eq!(Versions::open(folder.path()).unwrap().kept, versions.kept);
    }

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        // printf abc | sha256sum
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
