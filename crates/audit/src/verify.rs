//! Whether a log is as it was written.

use crate::entry::{Entry, NONE, hash};
use crate::folder::{Lines, Raw, file, starts};
use crate::head::{self, Head};
use crate::{AuditError, Kind, in_file};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Most damages that are named.
pub const DAMAGES_MAX: usize = 100;
/// How often a log is read anew that was written or rotated meanwhile.
const READINGS: usize = 5;

/// A line that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub file: PathBuf,
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files.
    pub files: usize,
    /// Lines that can be read.
    pub lines: u64,
    /// The first sequence number that is kept.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The last line's hash: noted elsewhere, it vouches for all lines up to there.
    pub hash: String,
    /// Lines that could not be written, as lines of kind `gap` say.
    pub lost: u64,
    /// Times that the end was repaired after a crash.
    pub repaired: u64,
    /// Bytes at the end of a line that is being written, or that a crash has left.
    pub torn: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What the log holds.
    pub log: Verified,
    /// What is wrong, at most [`DAMAGES_MAX`].
    pub damages: Vec<Damage>,
    /// Damages that are not named.
    pub more: u64,
}

/// Reads a whole log, also one that is being written, and checks each line against the next and the end.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn verify(folder: &Path) -> Result<Report, AuditError> {
    let mut reading = 0;
    loop {
        let head = match Head::load(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            other => other.map_err(in_file(&folder.join(head::NAME)))?,
        };
        let outcome = Chain::new(folder, head.clone()).follow();
        reading += 1;
        let is_well = outcome.as_ref().is_ok_and(|report| report.damages.is_empty());
        // one that is written while it is read may have lost its oldest file meanwhile
        if is_well || reading == READINGS || Head::load(folder).ok().flatten() == head {
            return outcome;
        }
    }
}

/// The state of a reading.
struct Chain<'a> {
    folder: &'a Path,
    head: Option<Head>,
    report: Report,
    /// What the next line must be; `None` before the first.
    next: Option<(u64, String)>,
    /// The hash of the line that the head calls the last.
    at_head: Option<String>,
}

impl<'a> Chain<'a> {
    fn new(folder: &'a Path, head: Option<Head>) -> Chain<'a> {
        Chain { folder, head, report: Report::default(), next: None, at_head: None }
    }

    fn follow(mut self) -> Result<Report, AuditError> {
        let starts = starts(self.folder).map_err(in_file(self.folder))?;
        // those before the first that is kept were about to be removed
        let first = self.head.as_ref().map_or(0, |head| head.first);
        let is_kept = |start: &u64| *start >= first || !starts.contains(&first);
        let kept: Vec<u64> = starts.iter().copied().filter(is_kept).collect();
        self.report.log.files = kept.len();
        for (i, start) in kept.iter().enumerate() {
            self.follow_file(*start, i + 1 == kept.len())?;
        }
        self.compare_with_head(kept.first().copied());
        Ok(self.report)
    }

    fn follow_file(&mut self, start: u64, is_last: bool) -> Result<(), AuditError> {
        let path = file(self.folder, start);
        let mut lines = Lines::open(&path).map_err(in_file(&path))?;
        let mut line = 0;
        while let Some(raw) = lines.next().map_err(in_file(&path))? {
            line += 1;
            match raw {
                Raw::Line(bytes) => self.follow_line(&path, (line, start), &bytes),
                Raw::Torn(bytes) if is_last => self.report.log.torn = bytes.len() as u64,
                Raw::Torn(_) => self.damage(&path, line, "the line has no end".to_string()),
                Raw::Long(bytes) => {
                    self.damage(&path, line, format!("a line of {bytes} bytes: longer than any that is written"));
                    self.next = None;
                }
            }
        }
        if line == 0 && !is_last {
            self.damage(&path, 1, "the file is empty".to_string());
        }
        Ok(())
    }

    fn follow_line(&mut self, path: &Path, (line, start): (usize, u64), bytes: &[u8]) {
        let of_line = hash(bytes);
        let expected = self.next.take();
        let entry: Entry = match serde_json::from_slice(bytes) {
            Ok(entry) => entry,
            Err(error) => {
                self.damage(path, line, format!("the line was changed: {error}"));
                self.next = expected.map(|(sequence, _)| (sequence + 1, of_line));
                return;
            }
        };
        let Entry { sequence, before, .. } = &entry;
        if line == 1 && *sequence != start {
            self.damage(path, line, format!("the file begins with line {sequence}, and by its name with {start}"));
        }
        match &expected {
            Some((next, _)) if sequence > next => {
                let lines = if sequence - next == 1 {
                    format!("line {next} is")
                } else {
                    format!("lines {next} to {} are", sequence - 1)
                };
                self.damage(path, line, format!("{lines} missing before line {sequence}"));
            }
            Some((next, _)) if sequence < next => {
                self.damage(path, line, format!("line {sequence} is out of order: line {next} was expected"));
            }
            Some((_, hash)) if hash != before => {
                self.damage(
                    path,
                    line,
                    format!("line {sequence}, or the line before it, was changed: the hashes differ"),
                );
            }
            None if *sequence == 1 && before != NONE => {
                self.damage(path, line, "line 1 was changed: nothing comes before it".to_string());
            }
            _ => {}
        }
        let log = &mut self.report.log;
        log.lines += 1;
        log.first = if log.first == 0 { *sequence } else { log.first };
        (log.last, log.hash) = (*sequence, of_line.clone());
        log.repaired += u64::from(entry.is(Kind::Repaired));
        if entry.is(Kind::Gap) {
            log.lost += entry.body["lost_lines"].as_u64().unwrap_or(0);
        }
        if self.head.as_ref().is_some_and(|head| head.last == *sequence) {
            self.at_head = Some(of_line.clone());
        }
        self.next = Some((sequence.saturating_add(1), of_line));
    }

    /// Whether the beginning and the end are those that were written last.
    fn compare_with_head(&mut self, start: Option<u64>) {
        let path = self.folder.join(head::NAME);
        let Some(head) = self.head.clone() else {
            // a log that nothing was written to has none
            if start.is_some() {
                self.damage(&path, 1, "the file is missing, or was changed: the end cannot be checked".to_string());
            }
            return;
        };
        if start.is_some_and(|start| start > head.first) || (start.is_none() && head.last >= head.first) {
            self.damage(&path, 1, format!("the log began with line {}: files are missing", head.first));
        }
        match &self.at_head {
            Some(of_line) if *of_line != head.hash => {
                self.damage(&path, 1, format!("line {} was changed: its hash differs from the one here", head.last));
            }
            None if head.last >= head.first => {
                self.damage(&path, 1, format!("the log ended with line {}, which is missing", head.last));
            }
            _ => {}
        }
    }

    fn damage(&mut self, file: &Path, line: usize, what: String) {
        let Report { damages, more, .. } = &mut self.report;
        if damages.len() < DAMAGES_MAX {
            damages.push(Damage { file: file.to_path_buf(), line, what });
        } else {
            *more += 1;
        }
    }
}
