//! Result folders: written under another name next to their place, then moved there as a whole, or not at all.
//!
//! A folder that replaces another one replaces only what a run wrote: anything else in it is an error.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use parquet::errors::ParquetError;
use serde::Serialize;

use crate::{
    Comparison, RunInfo, RunResults, RunSummary, Table,
    digest::Digest,
    report::{Story, report, report_of},
    tables,
};

/// The file that makes a folder a results folder.
pub(crate) const SUMMARY: &str = "summary.json";

/// The folder with copies of the files that a run's scenario names.
const COPIES: &str = "files";

/// Every file that a results folder may hold, beside tables and copies.
const FILES: [&str; 4] = [SUMMARY, "run.json", "scenario.toml", "report.html"];

/// Whether a run writes a file of this name.
fn is_own(name: &str) -> bool {
    FILES.contains(&name) || name.strip_suffix(".parquet").is_some_and(|table| Table::named(table).is_some())
}

/// Why results could not be written. Nothing is left behind, and what was there before is still there.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The place is taken by something that is not a folder.
    #[error("{0} is not a folder: choose another folder (--out)")]
    NotAFolder(PathBuf),
    /// The place is taken by a folder that no run wrote.
    #[error("{0} exists and is not a results folder (it has no summary.json): choose another folder (--out)")]
    NotResults(PathBuf),
    /// The results folder to replace holds something else as well.
    #[error("{folder} holds {entry}, which no run wrote: move it away or choose another folder (--out)")]
    HoldsOther {
        /// The results folder.
        folder: PathBuf,
        /// What is in it.
        entry: String,
    },
    /// The place of a dataset is taken by something else.
    #[error("{folder} holds {entry}, which is no part of a sweep's dataset: choose another folder (--out)")]
    NotADataset {
        /// The folder.
        folder: PathBuf,
        /// What is in it.
        entry: String,
    },
    /// Two runs of a sweep would share a folder.
    #[error("two runs of the sweep are named {0:?}: each needs a name of its own")]
    DuplicateRun(String),
    /// A run's name cannot be a folder's.
    #[error("a run cannot be named {0:?}: use letters, digits, '.', '-' and '_'")]
    BadName(String),
    /// A copy would be outside of its folder.
    #[error("a copy cannot be stored as {0:?}: the path must be below files/")]
    BadCopy(String),
    /// The operating system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// What was being written.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// A table could not be written.
    #[error("cannot write {path}: {source}")]
    Table {
        /// What was being written.
        path: PathBuf,
        /// The table writer's reason.
        source: ParquetError,
    },
    /// A number that JSON cannot express, in a field that must be a number.
    #[error("cannot write {path}: {source}")]
    Json {
        /// What was being written.
        path: PathBuf,
        /// The serialiser's reason.
        source: serde_json::Error,
    },
}

/// A sweep's `summary.json`.
#[derive(Serialize)]
struct SweepSummary<'a> {
    runs: Vec<RunSummary<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    comparisons: &'a [Comparison],
}

/// Writes one run: its tables, `summary.json`, `scenario.toml` with copies of its files, `report.html`, and `run.json` if
/// there is an `info`.
///
/// # Errors
/// If `dir` is taken by something that is not a results folder, or the system refuses.
pub fn write_run(dir: &Path, run: &RunResults, info: Option<&RunInfo>) -> Result<(), WriteError> {
    let folder = Folder::beside(dir)?;
    write_tables(&folder.work, run)?;
    write_file(&folder.work, SUMMARY, RunSummary::of(run).to_json().as_bytes())?;
    if let Some(info) = info {
        write_json(&folder.work, "run.json", info)?;
    }
    write_file(&folder.work, "report.html", report_of(run).as_bytes())?;
    folder.publish()
}

/// Writes a sweep: each run in a folder of its own, one `summary.json`, one `report.html`, and `run.json` if there is an
/// `info`.
///
/// # Errors
/// As [`write_run`], and if two runs have the same name or a name is not fit for a folder.
pub fn write_sweep(dir: &Path, runs: &[RunResults], story: &Story, info: Option<&RunInfo>) -> Result<(), WriteError> {
    let mut sweep = SweepWriter::create(dir)?;
    for run in runs {
        sweep.add(run)?;
    }
    sweep.finish(story, info)
}

/// Writes a sweep run by run, so that a run's tables can be dropped before the next one is made.
///
/// Call [`add`](Self::add) for each run in the order to show, then [`finish`](Self::finish). Dropped before that, it
/// leaves nothing behind.
pub struct SweepWriter {
    folder: Folder,
    names: BTreeSet<String>,
    digests: Vec<Digest>,
}

impl SweepWriter {
    /// Begins a sweep that will be at `dir`.
    ///
    /// # Errors
    /// As [`write_run`].
    pub fn create(dir: &Path) -> Result<Self, WriteError> {
        Ok(Self { folder: Folder::beside(dir)?, names: BTreeSet::new(), digests: Vec::new() })
    }

    /// Writes one run's tables.
    ///
    /// # Errors
    /// If the name is taken or not fit for a folder, or the system refuses.
    pub fn add(&mut self, run: &RunResults) -> Result<(), WriteError> {
        let name = folder_name(&run.name)?;
        if !self.names.insert(name.clone()) {
            return Err(WriteError::DuplicateRun(run.name.clone()));
        }
        let path = self.folder.work.join(&name);
        fs::create_dir(&path).map_err(io_error(&path))?;
        write_tables(&path, run)?;
        write_file(&path, SUMMARY, RunSummary::of(run).to_json().as_bytes())?;
        self.digests.push(Digest { folder: Some(name), ..Digest::of(run) });
        Ok(())
    }

    /// Writes the summary and the report, and moves the whole to its place.
    ///
    /// # Errors
    /// As [`write_run`], and if a comparison's number is not finite.
    pub fn finish(self, story: &Story, info: Option<&RunInfo>) -> Result<(), WriteError> {
        let summary =
            SweepSummary { runs: self.digests.iter().map(Digest::summary).collect(), comparisons: &story.comparisons };
        let work = &self.folder.work;
        write_json(work, SUMMARY, &summary)?;
        if let Some(info) = info {
            write_json(work, "run.json", info)?;
        }
        let html = report(&self.digests, story);
        write_file(work, "report.html", html.as_bytes())?;
        self.folder.publish()
    }
}

fn write_tables(dir: &Path, run: &RunResults) -> Result<(), WriteError> {
    tables::write_tables(dir, run).map_err(|(path, source)| WriteError::Table { path, source })?;
    write_file(dir, "scenario.toml", run.scenario_toml.as_bytes())?;
    run.files.iter().try_for_each(|(name, text)| write_copy(dir, name, text))
}

fn write_copy(dir: &Path, name: &str, text: &str) -> Result<(), WriteError> {
    check_copy(name)?;
    let folder = dir.join(name).parent().map_or_else(|| dir.to_owned(), Path::to_owned);
    fs::create_dir_all(&folder).map_err(io_error(&folder))?;
    write_file(dir, name, text.as_bytes())
}

/// A copy's path is below [`COPIES`].
pub(crate) fn check_copy(name: &str) -> Result<(), WriteError> {
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    let inside = name.strip_prefix(COPIES).and_then(|rest| rest.strip_prefix('/'));
    if inside.is_some_and(|rest| rest.split('/').all(plain)) {
        Ok(())
    } else {
        Err(WriteError::BadCopy(name.to_owned()))
    }
}

fn write_json(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), WriteError> {
    let text = json(value).map_err(|source| WriteError::Json { path: dir.join(name), source })?;
    write_file(dir, name, text.as_bytes())
}

/// JSON as files of results have it.
pub(crate) fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn write_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
    let path = dir.join(name);
    fs::write(&path, bytes).map_err(io_error(&path))
}

pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { path, source }
}

/// The folder of a run inside its sweep: its name with everything but letters, digits, `.`, `-` and `_` turned to `-`.
pub(crate) fn folder_name(name: &str) -> Result<String, WriteError> {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let folder: String = name.chars().map(|c| if safe(c) { c } else { '-' }).collect();
    let hidden = folder.is_empty() || folder.starts_with('.');
    if hidden || folder == COPIES || is_own(&folder) {
        return Err(WriteError::BadName(name.to_owned()));
    }
    Ok(folder)
}

/// A folder under construction next to its final place; removed if it is not moved there.
struct Folder {
    work: PathBuf,
    target: PathBuf,
    /// Parents that were made for it, deepest first.
    parents: Vec<PathBuf>,
}

impl Folder {
    /// Checks the target and makes the working folder, and the target's parents if they are missing.
    fn beside(target: &Path) -> Result<Self, WriteError> {
        // "out/" and "." have no last component of their own; a folder is made and moved by its name.
        let target = std::path::absolute(target).map_err(io_error(target))?;
        let Some(name) = target.file_name().map(OsStr::to_owned) else {
            return Err(WriteError::NotResults(target));
        };
        check_replaceable(&target)?;
        let parent = target.parent().expect("a path with a name has a parent");
        let missing = parent.ancestors().take_while(|path| !path.exists());
        let parents = missing.map(Path::to_owned).collect();
        fs::create_dir_all(parent).map_err(io_error(parent))?;
        let work = make_sibling(parent, &name, "partial")?;
        Ok(Self { work, target, parents })
    }

    /// Moves the folder to its place; an earlier folder there is deleted only after that has worked.
    fn publish(self) -> Result<(), WriteError> {
        let target = &self.target;
        if !target.exists() {
            return fs::rename(&self.work, target).map_err(io_error(target));
        }
        // Checked again: during a run of minutes a file may have been put there.
        check_replaceable(target)?;
        let parent = target.parent().expect("a path with a name has a parent");
        let name = target.file_name().expect("checked when it was made");
        let old = make_sibling(parent, name, "replaced")?;
        fs::rename(target, &old).map_err(io_error(target))?;
        if let Err(source) = fs::rename(&self.work, target) {
            let _ = fs::rename(&old, target);
            return Err(io_error(target)(source));
        }
        fs::remove_dir_all(&old).map_err(io_error(&old))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // After a successful move nothing has this name; after an error there is nothing better to do.
        let _ = fs::remove_dir_all(&self.work);
        for parent in &self.parents {
            let _ = fs::remove_dir(parent); // only if it is empty
        }
    }
}

/// Makes a new hidden folder `.NAME.PURPOSE-N`, with the first N that is free.
fn make_sibling(parent: &Path, name: &OsStr, purpose: &str) -> Result<PathBuf, WriteError> {
    let mut number = 0_u32;
    loop {
        let mut sibling = OsStr::new(".").to_owned();
        sibling.push(name);
        sibling.push(format!(".{purpose}-{number}"));
        let path = parent.join(sibling);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(io_error(&path)(error)),
        }
    }
}

/// Nothing, an empty folder, or a results folder with nothing else in it.
fn check_replaceable(dir: &Path) -> Result<(), WriteError> {
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error(dir)(error)),
        Ok(metadata) if !metadata.is_dir() => return Err(WriteError::NotAFolder(dir.to_owned())),
        Ok(_) => {}
    }
    let mut entries = fs::read_dir(dir).map_err(io_error(dir))?.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    if !dir.join(SUMMARY).is_file() {
        return Err(WriteError::NotResults(dir.to_owned()));
    }
    for entry in entries {
        let path = entry.map_err(io_error(dir))?.path();
        let ours = if path.ends_with(COPIES) {
            are_copies(&path, COPIES, &fs::read_to_string(dir.join("scenario.toml")).unwrap_or_default())
        } else if path.is_dir() {
            path.join(SUMMARY).is_file() && check_replaceable(&path).is_ok()
        } else {
            path.file_name().and_then(OsStr::to_str).is_some_and(is_own)
        };
        if !ours {
            return Err(WriteError::HoldsOther {
                folder: dir.to_owned(),
                entry: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            });
        }
    }
    Ok(())
}

/// Whether everything in the folder `dir`, called `name` in the scenario, is a file that the scenario names.
fn are_copies(dir: &Path, name: &str, scenario: &str) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() { are_copies(&path, &name, scenario) } else { scenario.contains(&format!("\"{name}\"")) }
    })
}
