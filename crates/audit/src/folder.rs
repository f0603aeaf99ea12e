//! The files of a log, and their lines.

use crate::LINE_MAX;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// What the name of a file of lines begins and ends with.
const NAME: (&str, &str) = ("audit-", ".jsonl");

/// The file whose first line has this sequence number.
pub(crate) fn file(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{}{start:020}{}", NAME.0, NAME.1))
}

/// The first sequence numbers of the files there, by their names, in order.
pub(crate) fn starts(folder: &Path) -> io::Result<Vec<u64>> {
    let mut starts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1));
        starts.extend(number.filter(|digits| digits.len() == 20).and_then(|digits| digits.parse::<u64>().ok()));
    }
    starts.sort_unstable();
    Ok(starts)
}

/// A line as it is in a file.
pub(crate) enum Raw {
    /// Whole, without its newline.
    Line(Vec<u8>),
    /// Longer than any that was written; so many bytes.
    Long(u64),
    /// Bytes at the end of the file, without a newline.
    Torn(Vec<u8>),
}

/// The lines of a file, one in memory at a time.
pub(crate) struct Lines(BufReader<File>);

impl Lines {
    pub fn open(path: &Path) -> io::Result<Lines> {
        Ok(Lines(BufReader::with_capacity(64 * 1024, File::open(path)?)))
    }

    /// The next; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Raw>> {
        let mut line = Vec::new();
        self.0.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(Raw::Line(line)));
        }
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() < LINE_MAX {
            return Ok(Some(Raw::Torn(line)));
        }
        let mut bytes = line.len() as u64;
        loop {
            line.clear();
            bytes += self.0.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)? as u64;
            if line.last().is_none_or(|last| *last == b'\n') {
                return Ok(Some(Raw::Long(bytes)));
            }
        }
    }
}
