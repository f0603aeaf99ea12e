//! Files that a user names: read in one way, with one limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Longest text of a file, bytes.
pub const FILE_MAX: u64 = 64 << 20;

/// The text of a file.
///
/// # Errors
/// It cannot be read, is no UTF-8, is longer than [`FILE_MAX`], or is no file: a folder, or a device or pipe, which may have no end.
pub fn read_text(path: &Path) -> io::Result<String> {
    let about = path.metadata()?;
    let refused = |words: String| Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    if about.is_dir() {
        return refused("it is a folder".to_string());
    }
    if !about.is_file() {
        return refused("it is a device, a pipe or a socket; save what it has as a file".to_string());
    }
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX {
        return refused(format!("it has more than {} MiB", FILE_MAX >> 20));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_has_no_end_or_is_too_long_is_refused() {
        let said = |path: &Path| read_text(path).expect_err("it is refused").to_string();
        assert!(said(Path::new("/dev/zero")).contains("a device, a pipe"));
        assert_eq!(said(Path::new("/")), "it is a folder");
        let path = std::env::temp_dir().join(format!("opentcp-long-{}", std::process::id()));
        let file = File::create(&path).expect("a file");
        file.set_len(FILE_MAX + 1).expect("a hole");
        let long = said(&path);
        file.set_len(3).expect("shorter");
        let short = read_text(&path);
        fs::remove_file(&path).expect("it was made");
        assert_eq!(long, "it has more than 64 MiB");
        assert_eq!(short.expect("three zeros"), "\0\0\0");
    }
}
