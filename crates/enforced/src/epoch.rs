//! The highest epoch, in a file. A thread writes it, so that packets do not wait for the disk.

use bus::files::{FileError, store_epoch, stored_epoch};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// The highest epoch, and the one on disk.
pub struct Keeper {
    highest: Option<u64>,
    kept: Option<u64>,
    to_disk: Sender<u64>,
    from_disk: Receiver<Result<u64, FileError>>,
}

impl Keeper {
    /// Continues from the file, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or holds no epoch.
    pub fn begin(file: PathBuf) -> Result<Keeper, FileError> {
        let kept = stored_epoch(&file)?;
        let (to_disk, epochs) = mpsc::channel();
        let (done, from_disk) = mpsc::channel();
        thread::spawn(move || {
            for epoch in epochs {
                // the receiver may be gone
                let _ = done.send(store_epoch(&file, epoch).map(|()| epoch));
            }
        });
        Ok(Keeper { highest: kept, kept, to_disk, from_disk })
    }

    /// The highest epoch, stored or not.
    pub fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Stores a higher epoch; returns whether this one is on disk by now.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn keeps(&mut self, epoch: Option<u64>) -> Result<bool, FileError> {
        if let Some(higher) = epoch.filter(|_| epoch > self.highest) {
            self.highest = epoch;
            self.to_disk.send(higher).expect("the thread lives as long as this");
        }
        while let Ok(done) = self.from_disk.try_recv() {
            self.kept = Some(done?);
        }
        Ok(self.kept >= epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn an_epoch_is_kept_once_it_is_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("epoch");
        let mut keeper = Keeper::begin(file.clone()).expect("there is none yet");
        assert!(keeper.keeps(None).expect("nothing to store"));
        while !keeper.keeps(Some(7)).expect("a disk") {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(stored_epoch(&file).expect("it was written atomically"), Some(7));
        let mut keeper = Keeper::begin(file.clone()).expect("it is an epoch");
        assert_eq!(keeper.highest(), Some(7));
        assert!(keeper.keeps(Some(6)).expect("it is below the highest"));
        fs::remove_dir_all(folder.path()).expect("it is ours");
        let refused = loop {
            match keeper.keeps(Some(8)) {
                Ok(kept) => assert!(!kept, "its folder is gone"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(refused.contains("epoch"), "{refused}");
    }
}
