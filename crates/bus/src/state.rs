//! State files: the last epoch, and others with a checksum.

use crate::checksum::{with_checksum, without_checksum};
use crate::files::{FileError, in_file, replace};
use fleet::files::{NOFOLLOW, beside};
use policy::EPOCH_MAX;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Longest file of a number, bytes.
const SMALL: u64 = 4096;
/// Longest other file, bytes.
const LARGE: u64 = 64 << 20;

/// The number that [`store_epoch`] wrote; `None` if it never did.
///
/// # Errors
/// The file cannot be read, is damaged, or holds something else.
pub fn stored_epoch(path: &Path) -> Result<Option<u64>, FileError> {
    const ODD: &str = "not the number of an epoch; only this program writes this file. Write a number there that is at least the last \
                       epoch (the Oracle's decisions and every agent's status show it); remove it only if the Oracle's key is new";
    let Some(content) = read(path, SMALL, ODD)? else { return Ok(None) };
    // the number is a whole line: one that was cut short is not taken for a lower epoch
    let number = std::str::from_utf8(&content).ok().and_then(|text| text.strip_suffix('\n'));
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let epoch = number.filter(is_number).and_then(|text| text.parse().ok()).filter(|epoch| *epoch <= EPOCH_MAX);
    epoch.map(Some).ok_or_else(|| FileError::Content { path: path.to_path_buf(), reason: ODD.to_string() })
}

/// Writes the number of an epoch. When this returns it is on the disk.
///
/// # Errors
/// The system's.
pub fn store_epoch(path: &Path, epoch: u64) -> Result<(), FileError> {
    let content = with_checksum(format!("{epoch}\n").as_bytes());
    match replace(path, &content) {
        // a full disk is to stop no Oracle: the file has a block already, and the checksum shows what a crash leaves of it
        Err(why) => {
            let file = OpenOptions::new().write(true).custom_flags(NOFOLLOW).open(path);
            let length = content.len() as u64;
            let written = file.and_then(|file| {
                file.write_all_at(&content, 0).and_then(|()| file.set_len(length)).and_then(|()| file.sync_all())
            });
            written.map_err(|_| why)
        }
        Ok(()) => Ok(()),
    }
}

/// What [`replace_checked`] or [`put_checked`] wrote, or an earlier version without a checksum; `None`: there is no such file.
///
/// # Errors
/// It cannot be read, or is damaged; `advice` says what to do then.
pub fn read_checked(path: &Path, advice: &str) -> Result<Option<Vec<u8>>, FileError> {
    read(path, LARGE, &format!("damaged: its checksum is wrong. {advice}"))
}

fn read(path: &Path, most: u64, damaged: &str) -> Result<Option<Vec<u8>>, FileError> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(in_file(path))?,
    };
    let content = without_checksum(&bytes).map(<[u8]>::to_vec);
    content.map(Some).ok_or_else(|| FileError::Content { path: path.to_path_buf(), reason: damaged.to_string() })
}

/// [`replace`] with a checksum, which [`read_checked`] verifies.
///
/// # Errors
/// The system's.
pub fn replace_checked(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace(path, &with_checksum(content))
}

/// Puts a file with a checksum in the place of another, whole or not at all; it may be lost if the machine stops.
///
/// # Errors
/// The system's.
pub fn put_checked(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let io = in_file(path);
    let (beside, mut file) = beside(path)?;
    file.write_all(&with_checksum(content)).map_err(&io)?;
    fs::rename(&beside, path).map_err(&io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_in_a_state_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [epoch, theirs] = ["epoch", "theirs"].map(|name| folder.path().join(name));
        fs::write(&theirs, "precious").unwrap();
        let write: [&dyn Fn() -> Result<(), FileError>; 2] =
            [&|| store_epoch(&epoch, 7), &|| put_checked(&epoch, b"7")];
        for write in write {
            symlink(&theirs, folder.path().join("epoch.new")).unwrap();
            write().unwrap();
            assert!(!epoch.is_symlink() && epoch.metadata().unwrap().len() > 0);
        }
        // neither where there is no room for another file
        fs::remove_file(&epoch).unwrap();
        symlink(&theirs, &epoch).unwrap();
        fs::create_dir(folder.path().join("epoch.new")).unwrap();
        store_epoch(&epoch, 8).unwrap_err();
        assert!(fleet::files::lock_file(&epoch).is_err());
        assert_eq!(fs::read(&theirs).unwrap(), b"precious");
    }

    #[test]
    fn an_epoch_is_stored_without_room_for_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let epoch = folder.path().join("epoch");
        store_epoch(&epoch, 7).unwrap();
        fs::create_dir(folder.path().join("epoch.new")).unwrap();
        store_epoch(&epoch, 8).unwrap();
        assert_eq!(stored_epoch(&epoch).unwrap(), Some(8));
    }
}
