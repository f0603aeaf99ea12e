//! What must outlive the enforcer, in files: the highest epoch, and what guards have reverted. A thread writes them ([`Disk`]), so that
//! packets do not wait for the disk.

use bus::Clock;
use bus::files::{FileError, store_epoch, stored_epoch};
use bus::reverted::{RevertedFile, Reverts};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// How long an enforcer that ends waits for a file.
const FINISHED_WITHIN: Duration = Duration::from_secs(2);

/// What there is, and what of it is on disk.
pub struct Keeper {
    highest: Option<u64>,
    kept: Option<u64>,
    /// Why the highest epoch is not on disk.
    refused: Option<FileError>,
    /// Given to the disk last; `None`: nothing yet, or it has refused that.
    reverts: Option<Reverts>,
    /// Why what guards have reverted is not on disk.
    trouble: Option<String>,
    to_disk: Sender<Job>,
    from_disk: Receiver<Done>,
}

enum Job {
    Epoch(u64),
    Reverts(Clock, Reverts),
}

enum Done {
    Epoch(Result<u64, FileError>),
    Reverts(Result<(), FileError>),
}

/// The files, and what is to be written to them.
pub struct Disk {
    epoch: PathBuf,
    reverted: RevertedFile,
    jobs: Receiver<Job>,
    done: Sender<Done>,
}

impl Keeper {
    /// Continues from the files in `folder`, if there are any, in the boot of this number.
    ///
    /// # Errors
    /// One cannot be read, or is damaged.
    pub fn begin(folder: &Path, boot: &str, clock: Clock) -> Result<(Keeper, Disk, Reverts), FileError> {
        let epoch = folder.join("epoch");
        let kept = stored_epoch(&epoch)?;
        let (reverted, reverts) = RevertedFile::open(&folder.join("reverted.json"), boot, clock)?;
        let (to_disk, jobs) = mpsc::channel();
        let (done, from_disk) = mpsc::channel();
        let keeper = Keeper { highest: kept, kept, refused: None, reverts: None, trouble: None, to_disk, from_disk };
        Ok((keeper, Disk { epoch, reverted, jobs, done }, reverts))
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
            self.give(Job::Epoch(higher));
        }
        while let Ok(done) = self.from_disk.try_recv() {
            self.note(done);
        }
        self.refused.take().map_or(Ok(self.kept >= epoch), Err)
    }

    /// Stores what guards have reverted, where that has changed. A revert itself must not wait for a disk.
    pub fn keep_reverts(&mut self, clock: Clock, reverts: Reverts) {
        if self.reverts.as_ref() != Some(&reverts) {
            self.give(Job::Reverts(clock, reverts.clone()));
            self.reverts = Some(reverts);
        }
    }

    /// Waits until all is on disk.
    ///
    /// # Errors
    /// A file is not written [`FINISHED_WITHIN`], or the disk has refused something.
    pub fn finish(mut self) -> Result<(), String> {
        // the disk ends after what it was given
        self.to_disk = mpsc::channel().0;
        loop {
            match self.from_disk.recv_timeout(FINISHED_WITHIN) {
                Ok(done) => self.note(done),
                Err(RecvTimeoutError::Disconnected) => {
                    return self.refused.map(|error| error.to_string()).or(self.trouble).map_or(Ok(()), Err);
                }
                Err(RecvTimeoutError::Timeout) => return Err("the disk does not answer".to_string()),
            }
        }
    }

    fn note(&mut self, done: Done) {
        match done {
            Done::Epoch(Ok(kept)) => (self.kept, self.refused) = (Some(kept), None),
            Done::Epoch(Err(error)) => self.refused = Some(error),
            Done::Reverts(Ok(())) => self.trouble = None,
            Done::Reverts(Err(error)) => (self.reverts, self.trouble) = (None, Some(error.to_string())),
        }
    }

    /// Why an enforcer that is started after this one would not know what guards have reverted.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn give(&self, job: Job) {
        // without a disk nothing is ever kept
        let _ = self.to_disk.send(job);
    }
}

impl Disk {
    /// Writes until the keeper is gone.
    pub fn work(mut self) {
        while let Ok(job) = self.jobs.recv() {
            self.write(job);
        }
    }

    /// Writes what waits.
    pub fn turn(&mut self) {
        while let Ok(job) = self.jobs.try_recv() {
            self.write(job);
        }
    }

    fn write(&mut self, job: Job) {
        let done = match job {
            Job::Epoch(epoch) => Done::Epoch(store_epoch(&self.epoch, epoch).map(|()| epoch)),
            Job::Reverts(clock, reverts) => Done::Reverts(self.reverted.store(clock, &reverts)),
        };
        // the keeper may be gone
        let _ = self.done.send(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Reverted;
    use std::fs;
    use std::thread;
    use std::time::Duration;
    use units::Time;

    fn begin(folder: &Path, clock: Clock) -> (Keeper, Reverts) {
        let (keeper, disk, reverts) = Keeper::begin(folder, "boot", clock).expect("files of its own");
        thread::spawn(move || disk.work());
        (keeper, reverts)
    }

    #[test]
    fn an_epoch_is_kept_once_it_is_in_the_file() {
        let (folder, clock) = (tempfile::tempdir().expect("a folder"), Clock::begin());
        let (mut keeper, _) = begin(folder.path(), clock);
        assert!(keeper.keeps(None).expect("nothing to store"));
        while !keeper.keeps(Some(7)).expect("a disk") {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(stored_epoch(&folder.path().join("epoch")).expect("it was written atomically"), Some(7));
        let (mut keeper, _) = begin(folder.path(), clock);
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

    #[test]
    fn an_enforcer_that_ends_waits_for_its_disk_and_says_what_it_has_refused() {
        let (folder, clock) = (tempfile::tempdir().expect("a folder"), Clock::begin());
        let (mut keeper, _) = begin(folder.path(), clock);
        keeper.keeps(Some(7)).expect("nothing is refused yet");
        keeper.keep_reverts(clock, Reverts::new());
        assert_eq!(keeper.finish(), Ok(()));
        assert_eq!(stored_epoch(&folder.path().join("epoch")).expect("it was written atomically"), Some(7));
        // a refused epoch is not forgotten over what is written after it
        let (mut keeper, disk, _) = Keeper::begin(folder.path(), "boot", clock).expect("files of its own");
        keeper.keeps(Some(8)).expect("nothing is refused yet");
        keeper.keep_reverts(clock, Reverts::new());
        fs::remove_file(folder.path().join("epoch")).expect("it is ours");
        fs::create_dir_all(folder.path().join("epoch/in-the-way")).expect("there is room");
        thread::spawn(move || disk.work());
        assert!(keeper.finish().is_err_and(|why| why.contains("epoch")));
        // but over a higher one that the disk has taken
        let (mut keeper, mut disk, _) =
            Keeper::begin(&folder.path().join("new"), "boot", clock).expect("there is none yet");
        keeper.keeps(Some(8)).expect("nothing is refused yet");
        disk.turn();
        fs::create_dir(folder.path().join("new")).expect("it is ours");
        keeper.give(Job::Epoch(9));
        disk.turn();
        drop(disk);
        assert_eq!(keeper.finish(), Ok(()));
    }

    #[test]
    fn reverts_that_a_disk_refuses_are_written_as_soon_as_it_takes_them() {
        let (folder, clock) = (tempfile::tempdir().expect("a folder"), Clock::begin());
        let state = folder.path().join("state");
        let (mut keeper, mut disk, _) = Keeper::begin(&state, "boot", clock).expect("there is none yet");
        let of = Reverted {
            policy: "p".into(),
            rule: "r".into(),
            until: Time::from_secs(60),
            hold: Time::from_secs(60),
            why: String::new(),
        };
        let reverts = Reverts::from([("h1".to_string(), vec![of])]);
        let mut turn = |keeper: &mut Keeper| {
            keeper.keep_reverts(clock, reverts.clone());
            disk.turn();
            keeper.keeps(None).expect("no epoch is refused");
        };
        turn(&mut keeper);
        assert!(keeper.trouble().is_some_and(|why| why.contains("reverted")), "its folder is not there");
        fs::create_dir(&state).expect("it is ours");
        turn(&mut keeper);
        assert_eq!(keeper.trouble(), None);
        let (_, _, kept) = Keeper::begin(&state, "boot", clock).expect("files of its own");
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["h1"]);
    }
}
