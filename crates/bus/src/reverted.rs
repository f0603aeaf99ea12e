//! What guards have reverted, in a file, so that a restarted agent or enforcer does not set it again.
//!
//! Times count since boot. After a reboot nobody knows how much of a hold was left, so it is held for all of it again.

use crate::Clock;
use crate::files::{FileError, read_checked, replace_checked};
use policy::{HELD_MAX, Reverted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use units::Time;

const DAMAGED: &str = "It lists rules that a guard has reverted. Remove it once these may be set again";
/// Longest hold, which policies limit too.
const HOLD_MAX: Duration = Duration::from_secs(100 * 86_400);

/// What guards have reverted, by the names of an enforcer's hosts. An agent has one host, whose name is left out (empty).
pub type Reverts = BTreeMap<String, Vec<Reverted>>;

/// The file.
#[derive(Debug)]
pub struct RevertedFile {
    path: PathBuf,
    /// /proc/sys/kernel/random/boot_id
    boot: String,
    /// What is in it.
    rules: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    boot: String,
    rules: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    host: String,
    policy: String,
    rule: String,
    /// Since boot.
    until_ms: u64,
    hold_ms: u64,
}

impl RevertedFile {
    /// What an earlier process has left in `path`, on `clock`, in the boot of this number.
    ///
    /// # Errors
    /// The file cannot be read, or no agent or enforcer has written it.
    pub fn open(path: &Path, boot: &str, clock: Clock) -> Result<(RevertedFile, Reverts), FileError> {
        let rules = match read_checked(path, DAMAGED)? {
            None => Vec::new(),
            Some(bytes) => {
                let content = Content::read(&bytes);
                let content = content.map_err(|reason| FileError::Content {
                    path: path.to_path_buf(),
                    reason: format!("{reason}. {DAMAGED}"),
                })?;
                content.since(boot, clock)
            }
        };
        let reverts = reverts(&rules, clock);
        Ok((RevertedFile { path: path.to_path_buf(), boot: boot.to_string(), rules }, reverts))
    }

    /// Writes what is reverted now, if that has changed. When this returns it is on the disk. Without any there is no file.
    ///
    /// # Errors
    /// The system's.
    pub fn store(&mut self, clock: Clock, reverts: &Reverts) -> Result<(), FileError> {
        let rules = entries(reverts, clock);
        if rules == self.rules {
            return Ok(());
        }
        if rules.is_empty() {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(FileError::Io { path: self.path.clone(), source: error });
                }
                _ => {}
            }
        } else {
            let content = Content { boot: self.boot.clone(), rules: rules.clone() };
            replace_checked(&self.path, &serde_json::to_vec(&content).expect("it is plain data"))?;
        }
        self.rules = rules;
        Ok(())
    }
}

/// The same on another clock of the machine, in the same boot.
pub fn on_another_clock(reverts: &Reverts, from: Clock, to: Clock) -> Reverts {
    self::reverts(&entries(reverts, from), to)
}

/// As bytes, for another process of the same boot.
pub fn to_bytes(reverts: &Reverts, clock: Clock) -> Vec<u8> {
    let content = Content { boot: String::new(), rules: entries(reverts, clock) };
    serde_json::to_vec(&content).expect("it is plain data")
}

/// From the bytes of [`to_bytes`].
///
/// # Errors
/// What is wrong with them.
pub fn from_bytes(bytes: &[u8], clock: Clock) -> Result<Reverts, String> {
    Content::read(bytes).map(|content| reverts(&content.since("", clock), clock))
}

fn entries(reverts: &Reverts, clock: Clock) -> Vec<Entry> {
    let entry = |host: &String, reverted: &Reverted| Entry {
        host: host.clone(),
        policy: reverted.policy.clone(),
        rule: reverted.rule.clone(),
        until_ms: clock.boot_time(reverted.until).as_millis() as u64,
        hold_ms: reverted.hold.as_ns() / 1_000_000,
    };
    reverts.iter().flat_map(|(host, of_host)| of_host.iter().map(move |reverted| entry(host, reverted))).collect()
}

fn reverts(entries: &[Entry], clock: Clock) -> Reverts {
    let mut reverts = Reverts::new();
    for entry in entries {
        reverts.entry(entry.host.clone()).or_default().push(Reverted {
            policy: entry.policy.clone(),
            rule: entry.rule.clone(),
            until: clock.of_boot_time(Duration::from_millis(entry.until_ms)),
            hold: Time::from_ms(entry.hold_ms),
            why: String::new(),
        });
    }
    reverts
}

impl Content {
    fn read(bytes: &[u8]) -> Result<Content, String> {
        let content: Content = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
        content.rules.iter().for_each(|rule| *of_host.entry(&rule.host).or_default() += 1);
        if let Some(count) = of_host.values().find(|count| **count > HELD_MAX) {
            return Err(format!("{count} rules; a host has at most {HELD_MAX}"));
        }
        match content.rules.iter().find(|rule| Duration::from_millis(rule.hold_ms) > HOLD_MAX) {
            Some(rule) => Err(format!("{}/{} is held for {} ms", rule.policy, rule.rule, rule.hold_ms)),
            None => Ok(content),
        }
    }

    /// In the boot of this number.
    fn since(self, boot: &str, clock: Clock) -> Vec<Entry> {
        let now_ms = clock.boot_time(clock.now()).as_millis() as u64;
        let rule = |rule: Entry| {
            // no hold is longer than itself, whatever the file says
            let most_ms = now_ms + rule.hold_ms;
            let until_ms = if self.boot == boot { rule.until_ms.min(most_ms) } else { most_ms };
            Entry { until_ms, ..rule }
        };
        self.rules.into_iter().map(rule).collect()
    }
}

/// Reads bytes as the file's content.
pub fn parsed(bytes: &[u8]) {
    let _ = from_bytes(bytes, Clock::begin());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hand;

    fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn of(host: &str, until: Time) -> Reverts {
        let reverted = Reverted { policy: "p".into(), rule: "r".into(), until, hold: s(60), why: String::new() };
        Reverts::from([(host.to_string(), vec![reverted])])
    }

    fn reverted(until: Time) -> Reverts {
        of("", until)
    }

    #[test]
    fn an_agent_that_begins_again_knows_how_much_of_a_hold_is_left() {
        let (folder, hand) = (tempfile::tempdir().unwrap(), Hand::default());
        let path = folder.path().join("reverted.json");
        hand.set(Duration::from_secs(1000));
        let clock = hand.begin();
        let (mut file, none) = RevertedFile::open(&path, "boot", clock).unwrap();
        file.store(clock, &none).unwrap();
        assert!(none.is_empty() && !path.exists(), "without any there is no file");
        file.store(clock, &reverted(s(70))).unwrap();
        hand.set(Duration::from_secs(1030));
        let clock = hand.begin();
        assert_eq!(RevertedFile::open(&path, "boot", clock).unwrap().1, reverted(s(40)));
        // another boot: its clock began anew
        hand.set(Duration::from_secs(5));
        let clock = hand.begin();
        let (mut file, after) = RevertedFile::open(&path, "another", clock).unwrap();
        assert_eq!(after, reverted(s(60)));
        file.store(clock, &Reverts::new()).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn an_enforcers_file_names_its_hosts_and_another_process_gets_the_same() {
        let (folder, hand) = (tempfile::tempdir().unwrap(), Hand::default());
        let path = folder.path().join("reverted.json");
        let clock = hand.begin();
        let both: Reverts = of("h1", s(30)).into_iter().chain(of("h2", s(50))).collect();
        let (mut file, _) = RevertedFile::open(&path, "boot", clock).unwrap();
        file.store(clock, &both).unwrap();
        hand.set(Duration::from_secs(10));
        let later = hand.begin();
        let left: Reverts = of("h1", s(20)).into_iter().chain(of("h2", s(40))).collect();
        assert_eq!(RevertedFile::open(&path, "boot", later).unwrap().1, left);
        assert_eq!(from_bytes(&to_bytes(&both, clock), later).unwrap(), left);
        assert_eq!(on_another_clock(&both, clock, later), left);
        assert!(from_bytes(b"{}", later).is_err());
    }

    #[test]
    fn a_file_that_no_agent_has_written_is_refused() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::default().begin());
        let path = folder.path().join("reverted.json");
        let opened = |text: &str| {
            fs::write(&path, text).unwrap();
            RevertedFile::open(&path, "b", clock).map(|(_, reverted)| reverted)
        };
        let with = |until: &str, hold: &str| {
            format!(
                r#"{{"boot": "b", "rules": [{{"policy": "p", "rule": "r", "until_ms": {until}, "hold_ms": {hold}}}]}}"#
            )
        };
        assert_eq!(opened(&with("60000", "60000")).unwrap(), reverted(s(60)));
        assert_eq!(opened(&with("18446744073709551615", "60000")).unwrap(), reverted(s(60)), "no longer than its hold");
        let many = with("1", "1").replace(
            "[{",
            &format!("[{}{{", r#"{"policy": "p", "rule": "r", "until_ms": 1, "hold_ms": 1},"#.repeat(HELD_MAX)),
        );
        for broken in
            [with("-1", "1"), with("1", "18446744073709551615"), with("1", "1e3"), "{}".into(), String::new(), many]
        {
            let error = opened(&broken).unwrap_err().to_string();
            assert!(error.contains("reverted.json") && error.contains("Remove it"), "{error}");
        }
    }
}
