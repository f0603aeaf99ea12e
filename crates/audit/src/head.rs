//! Where the log begins and ends, so that a missing beginning or end is noticed.

use crate::entry::hash;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Name of its file.
pub(crate) const NAME: &str = "head";
/// Bytes of the file: less than a disk's sector, and overwritten in place, so that a crash leaves the old one or the new one.
const BYTES: usize = 20 + 1 + 20 + 1 + 64 + 1 + 64 + 1;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The first sequence number.
    pub first: u64,
    /// The last one; one less than `first` of an empty log.
    pub last: u64,
    /// The last line's hash.
    pub hash: String,
}

impl Head {
    /// As bytes: first, last, the last line's hash, and the hash of these three.
    fn to_bytes(&self) -> Vec<u8> {
        let Head { first, last, hash: of_line } = self;
        let front = format!("{first:020} {last:020} {of_line}");
        format!("{front} {}\n", hash(front.as_bytes())).into_bytes()
    }

    /// What [`Head::store`] wrote; `None` of anything else.
    pub fn load(folder: &Path) -> io::Result<Option<Head>> {
        let mut bytes = Vec::new();
        File::open(folder.join(NAME))?.take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(None) };
        let parts: Vec<&str> = text.trim_end().split(' ').collect();
        let [first, last, of_line, _] = parts[..] else { return Ok(None) };
        let (Ok(first), Ok(last)) = (first.parse(), last.parse()) else { return Ok(None) };
        let head = Head { first, last, hash: of_line.to_string() };
        Ok((head.to_bytes() == bytes).then_some(head))
    }

    /// Writes it, without waiting for the disk.
    pub fn store(&self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.to_bytes(), 0)
    }
}
