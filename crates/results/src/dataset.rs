//! A sweep's runs as one dataset, to which each run is added when it is done.
//!
//! ```text
//! DIR/flows/run=NAME/part.parquet       one folder for each table, one part for each run: libraries read `flows` as one table with a
//! DIR/links/run=NAME/part.parquet       column `run`, in which characters other than letters, digits and `-_.,` are percent-encoded
//! DIR/runs/NAME/                        summary.json, scenario.toml, files/ as `write_run` writes them: the run is done
//! DIR/runs.parquet                      a row for each run that is done: parameters and numbers
//! DIR/report.html                       of a study
//! ```
//!
//! What is there is whole: everything is written below `DIR/.partial` and then moved. A run's folder is moved last, so a part without it
//! is of a run that did not come to its end, and is removed when the dataset is opened again. One process at a time has a dataset
//! open; whoever opens it sees to that.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    RunResults, RunSummary, Summary, Table, WriteError,
    run_table::run_table,
    tables,
    write::{SUMMARY, check_copy, io_error, json},
};

/// Folder of the runs that are done.
pub(crate) const RUNS: &str = "runs";
/// The table of the runs.
pub(crate) const RUN_TABLE: &str = "runs.parquet";
/// The report.
const REPORT: &str = "report.html";
/// What is being written.
const PARTIAL: &str = ".partial";
/// Name of a run's part of a table.
const PART: &str = "part.parquet";
const SCENARIO: &str = "scenario.toml";

/// A run's files, in memory. The same run has the same bytes, wherever it was simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedRun {
    /// Name and contents: `flows.parquet`, `summary.json`, `scenario.toml`, `files/mine.c` and so on.
    pub files: Vec<(String, Vec<u8>)>,
}

impl PackedRun {
    /// The files of a run.
    ///
    /// # Errors
    /// A table or the summary cannot be expressed.
    pub fn of(run: &RunResults) -> Result<PackedRun, WriteError> {
        let mut files = Vec::new();
        for table in Table::ALL {
            let name = format!("{}.parquet", table.name());
            let bytes = tables::encode(run, table);
            let bytes = bytes.map_err(|source| WriteError::Table { path: PathBuf::from(&name), source })?;
            files.extend(bytes.map(|bytes| (name, bytes)));
        }
        let summary = json(&RunSummary::of(run)).map_err(|source| WriteError::Json { path: SUMMARY.into(), source })?;
        files.push((SUMMARY.to_owned(), summary.into_bytes()));
        files.push((SCENARIO.to_owned(), run.scenario_toml.clone().into_bytes()));
        files.extend(run.files.iter().map(|(name, text)| (name.clone(), text.as_bytes().to_vec())));
        Ok(PackedRun { files })
    }
}

/// What a dataset keeps of a run beside its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// The scenario with every default.
    pub scenario_toml: String,
    /// Copies of the files that it names, as in [`RunResults::files`].
    pub files: BTreeMap<String, String>,
    /// Its numbers.
    pub summary: Summary,
}

/// The part of `summary.json` that is read again.
#[derive(Deserialize)]
struct Numbers {
    summary: Summary,
}

/// An open dataset.
#[derive(Debug)]
pub struct Dataset {
    dir: PathBuf,
    /// Folders that were made for it, deepest first: removed in the end if nothing has come into them.
    made: Vec<PathBuf>,
    /// Whether what is partial is this process's.
    owned: bool,
}

impl Dataset {
    /// Opens the dataset in the folder `dir`, or makes one if there is nothing.
    ///
    /// # Errors
    /// The folder holds something else, or the system refuses.
    pub fn open(dir: &Path) -> Result<Dataset, WriteError> {
        let dir = std::path::absolute(dir).map_err(io_error(dir))?;
        if dir.exists() && !dir.is_dir() {
            return Err(WriteError::NotAFolder(dir));
        }
        let made: Vec<PathBuf> = dir.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
        fs::create_dir_all(&dir).map_err(io_error(&dir))?;
        let dataset = Dataset { dir, made, owned: false };
        dataset.check()?;
        Ok(dataset)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// Names of the runs that are done, sorted.
    ///
    /// # Errors
    /// The system refuses.
    pub fn done(&self) -> Result<Vec<String>, WriteError> {
        entries(&self.dir.join(RUNS))
    }

    /// Removes what is unfinished. Call it before runs are added, when no other process has the dataset open.
    ///
    /// # Errors
    /// The system refuses.
    pub fn clean(&mut self) -> Result<(), WriteError> {
        self.owned = true;
        remove(&self.dir.join(PARTIAL))?;
        for table in Table::ALL {
            let folder = self.dir.join(table.name());
            let done: Vec<String> = self.done()?.iter().map(|name| partition(name)).collect();
            for part in entries(&folder)?.into_iter().filter(|part| !done.contains(part)) {
                remove(&folder.join(part))?;
            }
        }
        Ok(())
    }

    /// The run of this name, if it is done and its flows and links are there.
    ///
    /// # Errors
    /// The name is not fit for a folder, or a file cannot be read.
    pub fn stored(&self, name: &str) -> Result<Option<StoredRun>, WriteError> {
        let folder = self.dir.join(RUNS).join(checked(name)?);
        let has = |table: Table| self.part(table, name).is_file();
        if !folder.is_dir() || !has(Table::Flows) || !has(Table::Links) {
            return Ok(None);
        }
        let read = |path: &Path| fs::read_to_string(path).map_err(io_error(path));
        let path = folder.join(SUMMARY);
        let Numbers { summary } =
            serde_json::from_str(&read(&path)?).map_err(|source| WriteError::Json { path, source })?;
        let mut files = BTreeMap::new();
        copies(&folder, "files", &mut files)?;
        Ok(Some(StoredRun { scenario_toml: read(&folder.join(SCENARIO))?, files, summary }))
    }

    /// Adds the run of this name; in the place of an unfinished one, if there is one. From any thread.
    ///
    /// # Errors
    /// A file's name is none of a run's, or the system refuses; then the run is not done.
    pub fn add(&self, name: &str, run: &PackedRun) -> Result<(), WriteError> {
        let work = self.dir.join(PARTIAL).join(checked(name)?);
        remove(&work)?;
        let kept = work.join(RUNS);
        fs::create_dir_all(&kept).map_err(io_error(&kept))?;
        let mut parts = Vec::new();
        for (file, bytes) in &run.files {
            let table = file.strip_suffix(".parquet").and_then(Table::named);
            if table.is_none() && ![SUMMARY, SCENARIO].contains(&file.as_str()) {
                check_copy(file)?;
            }
            let path = if table.is_some() { work.join(file) } else { kept.join(file) };
            let folder = path.parent().expect("it is below the dataset's folder");
            fs::create_dir_all(folder).map_err(io_error(folder))?;
            fs::write(&path, bytes).map_err(io_error(&path))?;
            parts.extend(table.map(|table| (table, path)));
        }
        for (table, path) in parts {
            rename(&path, &self.part(table, name))?;
        }
        let place = self.dir.join(RUNS).join(name);
        remove(&place)?;
        rename(&kept, &place)?;
        remove(&work)
    }

    /// Writes the table of the runs that are done.
    ///
    /// # Errors
    /// The system refuses.
    pub fn finish(&self, runs: &[RunSummary<'_>]) -> Result<(), WriteError> {
        let path = self.dir.join(RUN_TABLE);
        let bytes = run_table(runs).map_err(|source| WriteError::Table { path, source })?;
        self.write(RUN_TABLE, &bytes)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write_report(&self, html: &str) -> Result<(), WriteError> {
        self.write(REPORT, html.as_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let work = self.dir.join(PARTIAL);
        fs::create_dir_all(&work).map_err(io_error(&work))?;
        let partial = work.join(name);
        fs::write(&partial, bytes).map_err(io_error(&partial))?;
        rename(&partial, &self.dir.join(name))
    }

    /// Where a run's part of a table is.
    fn part(&self, table: Table, name: &str) -> PathBuf {
        part(&self.dir, table, name)
    }

    /// Whether there is nothing but what a dataset has.
    fn check(&self) -> Result<(), WriteError> {
        let tables = Table::ALL.map(Table::name);
        let own = |entry: &&String| {
            tables.contains(&entry.as_str()) || [RUNS, RUN_TABLE, REPORT, PARTIAL].contains(&entry.as_str())
        };
        match entries(&self.dir)?.iter().find(|entry| !own(entry)) {
            Some(entry) => Err(WriteError::NotADataset { folder: self.dir.clone(), entry: entry.clone() }),
            None => Ok(()),
        }
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        // What is empty is removed; after an error there is nothing better to do.
        if self.owned {
            let _ = fs::remove_dir_all(self.dir.join(PARTIAL));
        }
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The name of a run as that of a folder, if it is one on every file system.
fn checked(name: &str) -> Result<&str, WriteError> {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.=,+".contains(c);
    let fit = !name.is_empty() && !name.starts_with('.') && name.chars().all(safe);
    if fit { Ok(name) } else { Err(WriteError::BadName(name.to_owned())) }
}

/// Moves a file or a folder to its place, and makes the folder that it is in.
fn rename(from: &Path, place: &Path) -> Result<(), WriteError> {
    let folder = place.parent().expect("it is below the dataset's folder");
    fs::create_dir_all(folder).map_err(io_error(folder))?;
    fs::rename(from, place).map_err(io_error(place))
}

/// Where a run's part of a table is in the dataset `dir`.
pub(crate) fn part(dir: &Path, table: Table, name: &str) -> PathBuf {
    dir.join(table.name()).join(partition(name)).join(PART)
}

/// `run=NAME`, percent-encoded as libraries decode it.
fn partition(name: &str) -> String {
    let mut folder = String::from("run=");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.,".contains(&byte) {
            folder.push(char::from(byte));
        } else {
            write!(folder, "%{byte:02X}").expect("writing to a string");
        }
    }
    folder
}

/// Names of what is in a folder, sorted; none if there is no folder.
fn entries(folder: &Path) -> Result<Vec<String>, WriteError> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(io_error(folder))?,
    };
    let mut names = Vec::new();
    for entry in listed {
        names.push(entry.map_err(io_error(folder))?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Texts of the files in the folder `name` of a run's, and below.
pub(crate) fn copies(run: &Path, name: &str, into: &mut BTreeMap<String, String>) -> Result<(), WriteError> {
    for entry in entries(&run.join(name))? {
        let name = format!("{name}/{entry}");
        let path = run.join(&name);
        if path.is_dir() {
            copies(run, &name, into)?;
        } else {
            into.insert(name, fs::read_to_string(&path).map_err(io_error(&path))?);
        }
    }
    Ok(())
}

/// Removes a folder with what is in it, if it is there.
fn remove(folder: &Path) -> Result<(), WriteError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(folder)(error)),
        _ => Ok(()),
    }
}
