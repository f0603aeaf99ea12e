//! What a restarted Oracle must know: the last epoch, and the state of the rollout.

use crate::lease::Shared;
use audit::{Filter, Kind};
use bus::files::{FileError, read_checked, replace_checked, store_epoch, stored_epoch};
use policy::{EPOCH_MAX, History, Oracle, Progress};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The folder, and what is in it.
pub struct Memory {
    epoch: PathBuf,
    rollout: PathBuf,
    /// The last epoch that was stored.
    last: u64,
    /// It is that of the audit log: the file was missing when this Oracle began.
    is_logged: bool,
    /// The text of the policy's file, which was there when this Oracle began.
    file: String,
    known: Rollout,
}

/// The state of the rollout, as it is in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Rollout {
    /// The text of the policy: the rollout of a changed policy starts again.
    policy: String,
    progress: Progress,
    /// No CUEs are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<Pause>,
    /// Of a policy that was applied while the Oracle ran: the text of the policy's file at that time. Once the file is changed, it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instead_of: Option<String>,
    /// The epoch in which the policy was applied; 0: it is that of a file. A policy that is applied again begins anew.
    #[serde(default)]
    began: u64,
}

/// An operator has paused: no CUE is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Who.
    pub by: String,
    /// When, RFC 3339.
    pub at: String,
    /// Until when, seconds since 1970; `None`: until it is resumed.
    pub until_s: Option<i64>,
}

impl Memory {
    /// Of the folder `state`, which is made if it is missing, and the text of the policy's file; and the history that goes on from there.
    ///
    /// # Errors
    /// Files cannot be read, or are damaged.
    pub fn open(state: &Path, file: String) -> Result<(Memory, History), FileError> {
        const DAMAGED: &str = "Remove it to begin the rollout anew";
        let (epoch, rollout) = (state.join("epoch"), state.join("rollout.json"));
        fs::create_dir_all(state).map_err(in_file(state))?;
        let stored = stored_epoch(&epoch)?;
        let logged = if stored.is_none() { logged_epoch(state) } else { None };
        let last = stored.or(logged);
        let stored: Option<Rollout> = match read_checked(&rollout, DAMAGED)? {
            None => None,
            Some(bytes) => {
                let stored = serde_json::from_slice(&bytes);
                Some(stored.map_err(|error| in_file(&rollout)(error.into()))?)
            }
        };
        let is_current = |stored: &Rollout| match &stored.instead_of {
            Some(replaced) => *replaced == file,
            None => stored.policy == file,
        };
        let new = || Rollout { policy: file.clone(), ..Rollout::default() };
        let known = stored.filter(is_current).unwrap_or_else(new);
        let history = last.map_or_else(History::default, History::after).resume(known.progress.clone());
        Ok((Memory { epoch, rollout, last: last.unwrap_or(0), is_logged: logged.is_some(), file, known }, history))
    }

    /// The last epoch that was stored.
    pub fn epoch(&self) -> u64 {
        self.last
    }

    /// Why the last epoch is not that of its file, if it is not.
    pub fn recovered(&self) -> Option<String> {
        let (last, file) = (self.last, self.epoch.display());
        self.is_logged.then(|| {
            format!(
                "{file} is missing; the audit log has decisions up to epoch {last}, and this Oracle goes on after it"
            )
        })
    }

    /// The text of the policy in force.
    pub fn policy(&self) -> &str {
        &self.known.policy
    }

    /// How far its rollout has come.
    pub fn progress(&self) -> &Progress {
        &self.known.progress
    }

    /// Whether and until when no CUEs are to be sent.
    pub fn paused(&self) -> Option<&Pause> {
        self.known.paused.as_ref()
    }

    /// Why the rollout was over before this Oracle began.
    pub fn ended(&self) -> Option<&str> {
        self.known.progress.ended.as_deref()
    }

    /// Follows another policy from `epoch` on, whose rollout has come so far. When this returns it is on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(&mut self, policy: String, progress: Progress, epoch: u64) -> Result<(), FileError> {
        self.adopt(policy, progress, self.known.paused.clone(), epoch)
    }

    /// Goes on with the rollout of another Oracle. One that this Oracle knows to be over remains so.
    ///
    /// # Errors
    /// The system's.
    pub fn adopt(
        &mut self,
        policy: String,
        progress: Progress,
        paused: Option<Pause>,
        began: u64,
    ) -> Result<(), FileError> {
        let instead_of = (policy != self.file).then(|| self.file.clone());
        let known = &self.known;
        let ended = known.progress.ended.clone().filter(|_| known.policy == policy && known.began == began);
        let progress = Progress { ended: progress.ended.or(ended), ..progress };
        self.write(Rollout { policy, progress, paused, instead_of, began })
    }

    /// The epoch in which the policy was applied; 0: it is that of a file.
    pub fn began(&self) -> u64 {
        self.known.began
    }

    /// Whether the policy that this Oracle knows was applied after the one that is shared: the store has lost that.
    pub fn is_newer(&self, shared: &Shared) -> bool {
        self.known.began > shared.began
    }

    /// Notes that the rollout is over, if another Oracle has ended it.
    ///
    /// # Errors
    /// The system's.
    pub fn learn_rollback(&mut self, shared: &Shared) -> Result<(), FileError> {
        let known = &self.known;
        let is_same = known.policy == shared.policy && known.began == shared.began;
        if !is_same || known.progress.ended.is_some() || shared.progress.ended.is_none() {
            return Ok(());
        }
        self.write(Rollout { progress: shared.progress.clone(), ..known.clone() })
    }

    /// Stores that CUEs are not to be sent, or are.
    ///
    /// # Errors
    /// The system's.
    pub fn pause(&mut self, paused: Option<Pause>) -> Result<(), FileError> {
        self.write(Rollout { paused, ..self.known.clone() })
    }

    /// Stores what the last decision has changed, at `unix_s`, and returns whether that is more than the epoch. When this returns it is on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn store(&mut self, oracle: &Oracle, unix_s: u64) -> Result<bool, FileError> {
        store_epoch(&self.epoch, oracle.epoch())?;
        self.last = oracle.epoch();
        self.store_progress(oracle, unix_s)
    }

    /// Stores how far the rollout has come, at `unix_s`, and returns whether that was news.
    ///
    /// # Errors
    /// The system's.
    pub fn store_progress(&mut self, oracle: &Oracle, unix_s: u64) -> Result<bool, FileError> {
        let now = oracle.progress();
        // once it is over nothing changes any more
        if now == self.known.progress || self.known.progress.ended.is_some() {
            return Ok(false);
        }
        let with_date = |reason: &String| {
            let (epoch, at, file) = (oracle.epoch(), date(unix_s), self.rollout.display());
            format!("{reason} (epoch {epoch}, {at}; to try it again, change the policy or remove {file})")
        };
        let ended = now.ended.as_ref().map(with_date);
        self.write(Rollout { progress: Progress { ended, ..now }, ..self.known.clone() })?;
        Ok(true)
    }

    fn write(&mut self, rollout: Rollout) -> Result<(), FileError> {
        if rollout != self.known {
            let json = serde_json::to_vec_pretty(&rollout).expect("a rollout is plain data");
            replace_checked(&self.rollout, &json)?;
            self.known = rollout;
        }
        Ok(())
    }
}

/// The highest epoch of a decision in the folder's audit log. Agents take no lower one, so an Oracle whose file of the epoch is gone must not begin
/// anew.
fn logged_epoch(state: &Path) -> Option<u64> {
    let filter = Filter { kinds: vec![Kind::Decision], ..Filter::default() };
    let lines = audit::read(&state.join("audit"), filter).ok()?;
    let epochs = lines.filter_map(|line| line.ok()?.body["epoch"].as_u64());
    epochs.filter(|epoch| *epoch <= EPOCH_MAX).max().filter(|epoch| *epoch > 0)
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Io { path: path.to_path_buf(), source }
}

/// As `2026-03-01 12:00 UTC`, for people.
fn date(unix_s: u64) -> String {
    let minutes = unix_s / 60;
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
    use audit::{Limits, Log};
    use serde_json::json;

    #[test]
    fn without_its_file_the_epoch_is_that_of_the_audit_log() {
        let folder = tempfile::tempdir().unwrap();
        let opened = || Memory::open(folder.path(), "policy".to_string()).unwrap().0;
        assert_eq!((opened().epoch(), opened().recovered()), (0, None), "a new Oracle");
        let now = crate::now();
        let mut log = Log::open(&folder.path().join("audit"), Limits::default(), now).unwrap();
        for epoch in [40, 42, 41, u64::MAX] {
            log.append(now, Kind::Decision, &json!({ "epoch": epoch }));
        }
        log.append(now, Kind::Rollback, &json!({ "epoch": 99 }));
        log.sync();
        assert_eq!(opened().epoch(), 42);
        assert!(opened().recovered().unwrap().contains("up to epoch 42"));
        fs::write(folder.path().join("epoch"), "50\n").unwrap();
        assert_eq!((opened().epoch(), opened().recovered()), (50, None));
    }

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
    fn an_oracle_goes_on_from_an_epoch_that_is_written_by_hand() {
        // the highest that hosts can make an Oracle advise
        let most = policy::Epoch { term: policy::TERM_MAX / 2, member: u8::MAX, sequence: u32::MAX }.number();
        let folder = tempfile::tempdir().unwrap();
        let opened = || Memory::open(folder.path(), "policy".to_string()).unwrap();
        for epoch in [41, most] {
            fs::write(folder.path().join("epoch"), format!("{epoch}\n")).unwrap();
            let (memory, history) = opened();
            assert_eq!((memory.epoch(), history.epoch()), (epoch, epoch));
            store_epoch(&memory.epoch, epoch + 1000).unwrap();
            assert_eq!(opened().0.epoch(), epoch + 1000);
        }
    }

    #[test]
    fn whatever_happens_to_a_byte_is_an_error_or_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let opened = || Memory::open(folder.path(), "policy".to_string());
        let (mut memory, _) = opened().unwrap();
        let ended = Some("rolled back: it hurts".to_string());
        let progress = Progress { lasted: units::Time::from_secs(60), ended, ..Progress::default() };
        memory.adopt("another policy".into(), progress, Some(pause()), 7).unwrap();
        store_epoch(&memory.epoch, 4242).unwrap();
        let known = memory.known.clone();
        // each bit, all of them, and what makes other digits of digits
        let flips = [1, 2, 3, 4, 7, 8, 16, 32, 64, 128, 255];
        for name in ["epoch", "rollout.json"] {
            let path = folder.path().join(name);
            let sound = fs::read(&path).unwrap();
            let cut = (0..sound.len()).map(|end| sound[..end].to_vec());
            let flipped = (0..sound.len()).flat_map(|at| flips.map(move |flip| (at, flip))).map(|(at, flip)| {
                let mut damaged = sound.clone();
                damaged[at] ^= flip;
                damaged
            });
            for damaged in cut.chain(flipped) {
                fs::write(&path, &damaged).unwrap();
                let text = String::from_utf8_lossy(&damaged).into_owned();
                match opened() {
                    Ok((read, history)) => {
                        assert_eq!((history.epoch(), read.epoch(), &read.known), (4242, 4242, &known), "{text}");
                    }
                    Err(error) => assert!(error.to_string().contains(name), "{error}"),
                }
            }
            fs::write(&path, &sound).unwrap();
        }
        // an earlier version's files
        fs::write(folder.path().join("epoch"), "41\n").unwrap();
        fs::write(
            folder.path().join("rollout.json"),
            r#"{"policy": "policy", "progress": {"lasted": "60 s", "ended": null}}"#,
        )
        .unwrap();
        let (memory, history) = opened().unwrap();
        assert_eq!((history.epoch(), memory.progress().lasted), (41, units::Time::from_secs(60)));
    }

    fn pause() -> Pause {
        Pause { by: "alice".into(), at: "2026-03-01T12:00:00Z".into(), until_s: None }
    }

    #[test]
    fn a_policy_that_was_applied_stays_until_the_file_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let opened = |file: &str| Memory::open(folder.path(), file.to_string()).unwrap().0;
        let mut memory = opened("file");
        memory.begin("applied".to_string(), Progress::default(), 0).unwrap();
        memory.pause(Some(pause())).unwrap();
        assert_eq!((opened("file").policy(), opened("file").paused()), ("applied", Some(&pause())));
        assert_eq!((opened("changed").policy(), opened("changed").paused()), ("changed", None));
        memory.begin("file".to_string(), Progress::default(), 0).unwrap();
        assert_eq!((opened("file").policy(), opened("changed").policy()), ("file", "changed"));
    }

    #[test]
    fn dates_are_the_calendars() {
        let of = date;
        // `date -u -d @SECONDS`
        assert_eq!(of(0), "1970-01-01 00:00 UTC");
        assert_eq!(of(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(of(1_772_323_199), "2026-02-28 23:59 UTC");
        assert_eq!(of(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
