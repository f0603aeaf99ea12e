//! Reading, one line in memory at a time.

use crate::folder::{Lines, Raw, file, starts};
use crate::{AuditError, Damage, Entry, Kind, in_file};
use jiff::Timestamp;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Which lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Not earlier.
    pub since: Option<Timestamp>,
    /// Earlier than this.
    pub until: Option<Timestamp>,
    /// Of these kinds; empty: of any.
    pub kinds: Vec<Kind>,
}

/// Lines in the order in which they were written. A line that cannot be read is given as what is wrong with it, and the next follow.
#[derive(Debug)]
pub struct Reader {
    filter: Filter,
    files: VecDeque<PathBuf>,
    open: Option<Open>,
}

struct Open {
    path: PathBuf,
    lines: Lines,
    line: usize,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// Reads a log, also one that is being written. Files that were last written before [`Filter::since`] are not opened.
///
/// # Errors
/// The folder cannot be read.
pub fn read(folder: &Path, filter: Filter) -> Result<Reader, AuditError> {
    let since = filter.since.and_then(|since| SystemTime::try_from(since).ok());
    let mut files = VecDeque::new();
    for start in starts(folder).map_err(in_file(folder))? {
        let path = file(folder, start);
        let is_old = |since| fs::metadata(&path).and_then(|about| about.modified()).is_ok_and(|at| at < since);
        if !since.is_some_and(is_old) {
            files.push_back(path);
        }
    }
    Ok(Reader { filter, files, open: None })
}

impl Reader {
    fn wants(&self, entry: &Entry) -> bool {
        let Filter { since, until, kinds } = &self.filter;
        since.is_none_or(|since| entry.time >= since)
            && until.is_none_or(|until| entry.time < until)
            && (kinds.is_empty() || kinds.iter().any(|kind| entry.is(*kind)))
    }

    /// The next line of the files, whatever the filter says.
    fn line(&mut self) -> Option<Result<Entry, Damage>> {
        loop {
            let Some(open) = &mut self.open else {
                let path = self.files.pop_front()?;
                match Lines::open(&path) {
                    Ok(lines) => self.open = Some(Open { path, lines, line: 0 }),
                    // the oldest file may have been removed meanwhile
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Some(Err(Damage { file: path, line: 1, what: error.to_string() })),
                }
                continue;
            };
            open.line += 1;
            let damage = |what: String| Damage { file: open.path.clone(), line: open.line, what };
            match open.lines.next() {
                // the end of a file; what is torn there may be about to be written
                Ok(None | Some(Raw::Torn(_))) => self.open = None,
                Ok(Some(Raw::Line(line))) => {
                    return Some(serde_json::from_slice(&line).map_err(|error| damage(format!("no entry: {error}"))));
                }
                Ok(Some(Raw::Long(bytes))) => return Some(Err(damage(format!("no entry: a line of {bytes} bytes")))),
                Err(error) => {
                    let damage = damage(error.to_string());
                    self.open = None;
                    return Some(Err(damage));
                }
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Entry, Damage>;

    fn next(&mut self) -> Option<Result<Entry, Damage>> {
        loop {
            match self.line()? {
                Ok(entry) if !self.wants(&entry) => {}
                other => return Some(other),
            }
        }
    }
}
