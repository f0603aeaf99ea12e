//! Writing.

use crate::entry::{Entry, NONE, hash, line};
use crate::folder::{file, starts};
use crate::head::{self, Head};
use crate::{AuditError, Kind, LINE_MAX, in_file};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;
use serde_json::json;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// How much of a disk a log takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest file, bytes; a longer line has a file of its own.
    pub file_bytes: u64,
    /// Most files, at least 2.
    pub files: usize,
}

impl Default for Limits {
    /// 32 files of 16 MiB: half a gigabyte.
    fn default() -> Limits {
        Limits { file_bytes: 16 << 20, files: 32 }
    }
}

/// The end of a log. One process has it.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    limits: Limits,
    _lock: File,
    head_file: File,
    /// The file that is written, and how many bytes of whole lines it has; `None`: the next line begins one.
    open: Option<(File, u64)>,
    /// First sequence numbers of the files.
    starts: Vec<u64>,
    head: Head,
    lost: Option<Lost>,
    notice: Option<String>,
}

/// Lines that could not be written.
#[derive(Debug)]
struct Lost {
    lines: u64,
    since: Timestamp,
    why: String,
}

/// Lines to be written together.
struct Lines {
    bytes: Vec<u8>,
    /// The sequence number of the last one, and its hash.
    last: u64,
    hash: String,
}

impl Lines {
    fn add(&mut self, at: Timestamp, kind: Kind, body: &impl Serialize) {
        let (line, hash) = line(self.last + 1, at, kind, body, &self.hash);
        self.bytes.extend(line);
        (self.last, self.hash) = (self.last + 1, hash);
    }
}

/// What is at the end of the files.
struct End {
    /// The last whole line.
    last: u64,
    hash: String,
    /// Bytes of a line that was not written whole.
    torn: u64,
    /// The last whole line cannot be read.
    is_damaged: bool,
}

impl Log {
    /// Opens the log of a folder, which is made if it is missing. What a crash has left is repaired and recorded as of `at`.
    ///
    /// # Errors
    /// Another process has it, or files cannot be made or read.
    pub fn open(folder: &Path, limits: Limits, at: Timestamp) -> Result<Log, AuditError> {
        let io = in_file(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(&io)?;
        let mut options = own_file();
        options.create(true).truncate(false);
        let lock = options.open(folder.join("lock")).map_err(&io)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| AuditError::Locked(folder.to_path_buf()))?;
        let known = match Head::load(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            other => Some(other.map_err(in_file(&folder.join(head::NAME)))?),
        };
        let head_file = options.open(folder.join(head::NAME)).map_err(&io)?;
        let mut starts = starts(folder).map_err(&io)?;
        let end = End::repair(folder, &mut starts).map_err(&io)?;
        let known_last = known.as_ref().and_then(Option::as_ref).map_or(0, |head| head.last);
        let last = if end.is_damaged { end.last.max(known_last) } else { end.last };
        // files before the first that is kept are those that a crash kept from being removed
        let first =
            known.as_ref().and_then(Option::as_ref).map(|head| head.first).filter(|first| starts.contains(first));
        let first = first.or(starts.first().copied()).unwrap_or(last + 1);
        for start in starts.extract_if(.., |start| *start < first) {
            fs::remove_file(file(folder, start)).map_err(&io)?;
        }
        let open = match starts.last().filter(|_| !end.is_damaged) {
            Some(start) => {
                let path = file(folder, *start);
                let file = own_file().open(&path).map_err(in_file(&path))?;
                let bytes = file.metadata().map_err(in_file(&path))?.len();
                Some((file, bytes))
            }
            None => None,
        };
        let missing = known_last.saturating_sub(last);
        // one that nothing was written to has an empty head
        let is_lost = last > 0 && !matches!(known, Some(Some(_)));
        let changed = known.iter().flatten().any(|head| head.last == last && head.hash != end.hash);
        let head = Head { first, last, hash: end.hash };
        let (folder, lost, notice) = (folder.to_path_buf(), None, None);
        let mut log = Log { folder, limits, _lock: lock, head_file, open, starts, head, lost, notice };
        if end.torn > 0 || missing > 0 || is_lost || changed || end.is_damaged {
            let body = json!({ "torn_bytes": end.torn, "missing_lines": missing, "head_lost": is_lost,
                "last_line_changed": changed || end.is_damaged });
            log.append(at, Kind::Repaired, &body);
            let words = format!(
                "the audit log's end was repaired: {} bytes of an unfinished line removed, {missing} lines missing",
                end.torn
            );
            log.notice.get_or_insert(words);
        }
        Ok(log)
    }

    /// Appends a line. What cannot be written is counted, and recorded once something can be.
    pub fn append(&mut self, at: Timestamp, kind: Kind, body: &impl Serialize) {
        let mut lines = Lines { bytes: Vec::new(), last: self.head.last, hash: self.head.hash.clone() };
        if let Some(Lost { lines: lost, since, why }) = &self.lost {
            lines.add(at, Kind::Gap, &json!({ "lost_lines": lost, "since": format!("{since:.3}"), "why": why }));
        }
        lines.add(at, kind, body);
        match (self.write(lines), &mut self.lost) {
            (Ok(()), None) => {}
            (Ok(()), lost @ Some(_)) => {
                let Lost { lines, since, why } = lost.take().expect("it is there");
                let words =
                    format!("the audit log is written again; {lines} lines are missing since {since:.3}: {why}");
                self.notice = Some(words);
            }
            (Err(_), Some(lost)) => lost.lines += 1,
            (Err(error), none) => {
                self.notice = Some(format!(
                    "the audit log cannot be written: {}: {error}; decisions go on and are counted, not logged",
                    self.folder.display()
                ));
                *none = Some(Lost { lines: 1, since: at, why: error.to_string() });
            }
        }
    }

    /// Puts what was appended on the disk.
    pub fn sync(&mut self) {
        let Some((file, _)) = &self.open else { return };
        if let Err(error) = file.sync_data().and_then(|()| self.head_file.sync_data()) {
            self.notice.get_or_insert(format!("the audit log is not on the disk: {}: {error}", self.folder.display()));
        }
    }

    /// What people should hear of the log itself since the last call.
    pub fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// Lines that could not be written and are not recorded yet.
    pub fn lost(&self) -> u64 {
        self.lost.as_ref().map_or(0, |lost| lost.lines)
    }

    /// The last line's sequence number; 0 of an empty log.
    pub fn last(&self) -> u64 {
        self.head.last
    }

    /// The last line's hash.
    pub fn hash(&self) -> &str {
        &self.head.hash
    }

    fn write(&mut self, lines: Lines) -> io::Result<()> {
        let length = lines.bytes.len() as u64;
        if self.open.as_ref().is_none_or(|(_, bytes)| bytes + length > self.limits.file_bytes) {
            self.rotate(self.head.last + 1)?;
        }
        let (file, bytes) = self.open.as_mut().expect("a file was opened");
        let written = file.write_all_at(&lines.bytes, *bytes);
        let head = Head { first: self.head.first, last: lines.last, hash: lines.hash };
        // the head is overwritten in place, which takes no space
        if let Err(error) = written.and_then(|()| head.store(&self.head_file)) {
            // a piece that cannot be removed is overwritten by the next line, or repaired when the log is opened
            let _ = file.set_len(*bytes);
            return Err(error);
        }
        *bytes += length;
        self.head = head;
        Ok(())
    }

    /// Begins a file, and removes the oldest if there are too many.
    fn rotate(&mut self, sequence: u64) -> io::Result<()> {
        if let Some((file, _)) = &self.open {
            file.sync_data()?;
        }
        let path = file(&self.folder, sequence);
        // one of this name has no whole line
        let next = own_file().create(true).truncate(true).open(path)?;
        self.open = Some((next, 0));
        if self.starts.last() != Some(&sequence) {
            self.starts.push(sequence);
        }
        while self.starts.len() > self.limits.files.max(2) {
            let head = Head { first: self.starts[1], ..self.head.clone() };
            head.store(&self.head_file)?;
            self.head = head;
            fs::remove_file(file(&self.folder, self.starts.remove(0)))?;
        }
        File::open(&self.folder)?.sync_all()
    }
}

/// How files of the log are opened to write: a link that another user has put there does not lead elsewhere.
fn own_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

impl End {
    /// Finds the last whole line, and removes what follows it.
    fn repair(folder: &Path, starts: &mut Vec<u64>) -> io::Result<End> {
        let mut torn = 0;
        while let Some(start) = starts.last().copied() {
            let path = file(folder, start);
            let handle = own_file().read(true).open(&path)?;
            let bytes = handle.metadata()?.len();
            let mut tail = vec![0; bytes.min(2 * LINE_MAX as u64) as usize];
            let from = bytes - tail.len() as u64;
            handle.read_exact_at(&mut tail, from)?;
            let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            torn += (tail.len() - whole) as u64;
            if whole == 0 {
                // a file without a whole line was begun by a line that a crash interrupted
                fs::remove_file(&path)?;
                starts.pop();
                continue;
            }
            if whole < tail.len() {
                handle.set_len(bytes - (tail.len() - whole) as u64)?;
                handle.sync_data()?;
            }
            let line = &tail[..whole - 1];
            let line = &line[line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)..];
            let entry: Option<Entry> = serde_json::from_slice(line).ok();
            let (is_damaged, last) = (entry.is_none(), entry.map_or(start, |entry| entry.sequence));
            return Ok(End { last, hash: hash(line), torn, is_damaged });
        }
        Ok(End { last: 0, hash: NONE.to_string(), torn, is_damaged: false })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some((file, _)) = &mut self.open {
            let _ = file.flush();
        }
        self.sync();
    }
}
