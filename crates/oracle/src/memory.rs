//! What a restarted Oracle must know: the last epoch, and the state of the rollout.

use bus::files::{FileError, replace, store_epoch, stored_epoch};
use policy::{History, Oracle, Progress};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

/// The folder, and the state of the rollout in it.
pub struct Memory {
    epoch: PathBuf,
    rollout: PathBuf,
    /// The text of the policy's file: the rollout of a changed policy starts again.
    policy: String,
    known: Progress,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rollout {
    policy: String,
    progress: Progress,
}

impl Memory {
    /// Of the folder `state`, which is made if it is missing; and the history that goes on from there.
    ///
    /// # Errors
    /// Files cannot be read, or are damaged.
    pub fn open(state: &Path, policy: String) -> Result<(Memory, History), FileError> {
        let (epoch, rollout) = (state.join("epoch"), state.join("rollout.json"));
        fs::create_dir_all(state).map_err(in_file(state))?;
        let history = stored_epoch(&epoch)?.map_or_else(History::default, History::after);
        let stored: Option<Rollout> = match fs::read(&rollout) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            bytes => {
                let stored = serde_json::from_slice(&bytes.map_err(in_file(&rollout))?);
                Some(stored.map_err(|error| in_file(&rollout)(error.into()))?)
            }
        };
        let known = stored.filter(|stored| stored.policy == policy).map(|stored| stored.progress).unwrap_or_default();
        let history = history.resume(known.clone());
        Ok((Memory { epoch, rollout, policy, known }, history))
    }

    /// Why the rollout was over before this Oracle began.
    pub fn ended(&self) -> Option<&str> {
        self.known.ended.as_deref()
    }

    /// Writes down what the last decision has changed. When this returns it is on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn store(&mut self, oracle: &Oracle) -> Result<(), FileError> {
        store_epoch(&self.epoch, oracle.epoch())?;
        let now = oracle.progress();
        // once it is over nothing changes any more
        if now == self.known || self.known.ended.is_some() {
            return Ok(());
        }
        let with_date = |reason: &String| {
            let (epoch, at, file) = (oracle.epoch(), date(SystemTime::now()), self.rollout.display());
            format!("{reason} (epoch {epoch}, {at}; to try it again, change the policy or remove {file})")
        };
        let ended = now.ended.as_ref().map(with_date);
        let progress = Progress { ended, ..now.clone() };
        let rollout = Rollout { policy: self.policy.clone(), progress };
        replace(&self.rollout, &serde_json::to_vec_pretty(&rollout).expect("a rollout is plain data"))?;
        self.known = now;
        Ok(())
    }
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Io { path: path.to_path_buf(), source }
}

/// As `2026-03-01 12:00 UTC`, for people.
fn date(at: SystemTime) -> String {
    let minutes = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
    // days since the first of March of the year 0, so that leap days end their years; 400 years have 146,097 of them
    let days = minutes / 1440 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // months from March on have 153 days in five
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (era * 400 + year, month + 3) } else { (era * 400 + year + 1, month - 9) };
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn files_that_no_oracle_has_written_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let opened = || Memory::open(folder.path(), "policy".to_string());
        let rollout =
            |lasted: &str| format!(r#"{{"policy": "policy", "progress": {{"lasted": {lasted}, "ended": null}}}}"#);
        fs::write(folder.path().join("rollout.json"), rollout("\"60 s\"")).unwrap();
        assert!(opened().is_ok());
        let broken = ["1e308", "-1", "\"1e308 s\"", "\"-1 s\"", "NaN", &"[".repeat(100_000)];
        for lasted in broken {
            fs::write(folder.path().join("rollout.json"), rollout(lasted)).unwrap();
            assert!(opened().is_err(), "{}", &lasted[..lasted.len().min(20)]);
        }
        fs::remove_file(folder.path().join("rollout.json")).unwrap();
        for epoch in ["-1", "1e3", "18446744073709551615", "18446744073709551616", ""] {
            fs::write(folder.path().join("epoch"), epoch).unwrap();
            assert!(opened().is_err(), "{epoch}");
        }
    }

    #[test]
    fn dates_are_the_calendars() {
        let of = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        // `date -u -d @SECONDS`
        assert_eq!(of(0), "1970-01-01 00:00 UTC");
        assert_eq!(of(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(of(1_772_323_199), "2026-02-28 23:59 UTC");
        assert_eq!(of(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
