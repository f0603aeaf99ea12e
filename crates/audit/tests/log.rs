//! Writing, rotating, repairing and reading a log.

use audit::{Filter, Kind, Limits, Log, Timestamp, read, verify};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SMALL: Limits = Limits { file_bytes: 1000, files: 3 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

/// A log with lines `from..to`, one a second.
fn written(folder: &Path, limits: Limits, lines: std::ops::Range<i64>) {
    let mut log = Log::open(folder, limits, at(lines.start)).unwrap();
    for second in lines {
        let kind = if second % 3 == 0 { Kind::Cue } else { Kind::Decision };
        log.append(at(second), kind, &json!({ "epoch": second, "why": "ü \"quoted\"\n" }));
    }
    assert_eq!(log.notice(), None);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}

fn all(folder: &Path, filter: Filter) -> Vec<audit::Entry> {
    read(folder, filter).unwrap().map(Result::unwrap).collect()
}

#[test]
fn lines_are_chained_over_restarts_and_rotated_files() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), SMALL, 0..3);
    written(folder.path(), SMALL, 3..9);
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.damages, []);
    assert_eq!((report.log.files, report.log.first, report.log.last, report.log.lines), (2, 1, 9, 9));
    let entries = all(folder.path(), Filter::default());
    assert_eq!(entries[0].before, "0".repeat(64));
    assert_eq!(entries[3].time.to_string(), "2026-03-01T12:00:03Z");
    assert_eq!(entries[3].body, json!({ "epoch": 3, "why": "ü \"quoted\"\n" }));
    // what `head -n 1 FILE | tr -d '\n' | sha256sum` prints stands in the next line, and the last one's in `head`
    let text = fs::read_to_string(&files(folder.path())[0]).unwrap();
    let sum = std::process::Command::new("sh")
        .args(["-c", "printf %s \"$1\" | sha256sum | cut -c 1-64", "sh", text.lines().next().unwrap()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(sum.stdout).unwrap().trim(), entries[1].before);
    assert_eq!(text.lines().next().unwrap().split(',').next(), Some("{\"sequence\":1"));
    let head = fs::read_to_string(folder.path().join("head")).unwrap();
    assert!(head.starts_with(&format!("{:020} {:020} {} ", 1, 9, report.log.hash)), "{head}");
}

#[test]
fn disk_is_bounded_and_the_chain_of_what_is_kept_holds() {
    let folder = TempDir::new().unwrap();
    for round in 0..10 {
        written(folder.path(), SMALL, round * 10..round * 10 + 10);
        let kept = files(folder.path());
        let bytes: u64 = kept.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert!(kept.len() <= 3 && bytes <= 3000, "{kept:?}: {bytes}");
        let report = verify(folder.path()).unwrap();
        assert_eq!(report.damages, []);
        assert_eq!(report.log.last, round as u64 * 10 + 10);
    }
    assert!(verify(folder.path()).unwrap().log.first > 80);
}

#[test]
fn a_reader_gets_times_and_kinds() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), SMALL, 0..9);
    let of = |since: Option<i64>, until: Option<i64>, kinds: &[Kind]| -> Vec<u64> {
        let filter = Filter { since: since.map(at), until: until.map(at), kinds: kinds.to_vec() };
        all(folder.path(), filter).iter().map(|entry| entry.sequence).collect()
    };
    assert_eq!(of(Some(4), Some(7), &[]), [5, 6, 7]);
    assert_eq!(of(None, None, &[Kind::Cue]), [1, 4, 7]);
    assert_eq!(of(Some(4), None, &[Kind::Cue, Kind::Policy]), [7]);
    // of files that were last written before then, none is opened
    let old = std::time::SystemTime::try_from(at(0)).unwrap();
    OpenOptions::new().append(true).open(&files(folder.path())[0]).unwrap().set_modified(old).unwrap();
    fs::write(&files(folder.path())[0], "").unwrap();
    OpenOptions::new().append(true).open(&files(folder.path())[0]).unwrap().set_modified(old).unwrap();
    assert_eq!(of(Some(4), Some(7), &[]), [6, 7]);
    assert!(read(&folder.path().join("none"), Filter::default()).is_err());
}

#[test]
fn a_line_that_cannot_be_read_is_located_and_the_next_follow() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), SMALL, 0..9);
    let second = &files(folder.path())[1];
    let text = fs::read_to_string(second).unwrap();
    fs::write(second, text.replacen("\"kind\"", "\"king\"", 1)).unwrap();
    let read: Vec<_> = read(folder.path(), Filter::default()).unwrap().collect();
    assert_eq!(read.len(), 9);
    let damages: Vec<String> = read.iter().filter_map(|line| line.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(damages.len(), 1);
    assert!(damages[0].starts_with(&format!("{}:1: no entry: unknown field `king`", second.display())), "{damages:?}");
}

#[test]
fn a_line_that_a_crash_has_torn_is_removed_and_recorded_wherever_it_was_torn() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), SMALL, 0..4);
    let kept = files(folder.path());
    let bytes = fs::read(kept.last().unwrap()).unwrap();
    let last_line = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for length in last_line + 1..bytes.len() {
        let copy = TempDir::new().unwrap();
        for file in ["head", "lock"].iter().map(|name| folder.path().join(name)).chain(kept.iter().cloned()) {
            fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        fs::write(copy.path().join(kept.last().unwrap().file_name().unwrap()), &bytes[..length]).unwrap();
        assert_ne!(verify(copy.path()).unwrap().damages, [], "a line of the head is missing");
        let mut log = Log::open(copy.path(), SMALL, at(9)).unwrap();
        assert!(log.notice().unwrap().contains("the audit log's end was repaired"), "{length}");
        log.append(at(10), Kind::Decision, &json!({}));
        drop(log);
        let report = verify(copy.path()).unwrap();
        assert_eq!((report.damages.len(), report.log.repaired, report.log.torn), (0, 1, 0), "{length}: {report:?}");
        let entries = all(copy.path(), Filter::default());
        let repaired = entries.iter().find(|entry| entry.is(Kind::Repaired)).unwrap();
        assert_eq!(repaired.body["torn_bytes"], length - last_line);
        assert_eq!(repaired.body["missing_lines"], 1);
        assert_eq!(entries.last().unwrap().sequence, 5);
    }
}

#[test]
fn a_crash_before_the_head_was_written_loses_nothing() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), SMALL, 0..2);
    let head = fs::read(folder.path().join("head")).unwrap();
    written(folder.path(), SMALL, 2..4);
    fs::write(folder.path().join("head"), head).unwrap();
    assert_eq!(verify(folder.path()).unwrap().damages, [], "lines after the head's last are chained");
    written(folder.path(), SMALL, 4..5);
    let report = verify(folder.path()).unwrap();
    assert_eq!((report.damages.len(), report.log.lines, report.log.repaired), (0, 5, 0));
}

#[test]
fn a_lost_head_and_a_damaged_last_line_are_recorded_when_the_log_is_opened() {
    for (damage, what) in [("head", "head_lost"), ("line", "last_line_changed")] {
        let folder = TempDir::new().unwrap();
        written(folder.path(), SMALL, 0..4);
        let last = files(folder.path()).pop().unwrap();
        if damage == "head" {
            fs::remove_file(folder.path().join("head")).unwrap();
        } else {
            let text = fs::read_to_string(&last).unwrap();
            let end = text.len() - 10;
            fs::write(&last, format!("{}xx\n", &text[..end])).unwrap();
        }
        assert!(!verify(folder.path()).unwrap().damages.is_empty());
        let mut log = Log::open(folder.path(), SMALL, at(9)).unwrap();
        assert!(log.notice().is_some());
        drop(log);
        let entries: Vec<_> = read(folder.path(), Filter::default()).unwrap().flatten().collect();
        assert_eq!((&*entries.last().unwrap().kind, &entries.last().unwrap().body[what]), ("repaired", &json!(true)));
        assert_eq!(entries.last().unwrap().sequence, 5);
        assert_eq!(
            verify(folder.path()).unwrap().damages.is_empty(),
            damage == "head",
            "what is damaged stays visible"
        );
    }
}

#[test]
fn a_log_has_one_writer_and_readers_do_not_disturb_it() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::open(folder.path(), SMALL, at(0)).unwrap();
    let second = Log::open(folder.path(), SMALL, at(0)).unwrap_err().to_string();
    assert!(second.contains("another process writes this audit log"), "{second}");
    for second in 0..50 {
        log.append(at(second), Kind::Decision, &json!({ "epoch": second }));
        assert_eq!(verify(folder.path()).unwrap().damages, []);
        let last = all(folder.path(), Filter::default()).last().map(|entry| entry.sequence);
        assert_eq!(last, Some(second as u64 + 1));
    }
}

#[test]
fn a_piece_of_a_line_is_being_written_and_is_no_damage() {
    let folder = TempDir::new().unwrap();
    written(folder.path(), SMALL, 0..2);
    let mut last = OpenOptions::new().append(true).open(files(folder.path()).pop().unwrap()).unwrap();
    last.write_all(b"{\"sequence\":3,").unwrap();
    let report = verify(folder.path()).unwrap();
    assert_eq!((report.damages.len(), report.log.torn, report.log.last), (0, 14, 2));
    assert_eq!(all(folder.path(), Filter::default()).len(), 2);
}

#[test]
fn a_body_that_is_too_long_is_replaced_by_its_length() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::open(folder.path(), SMALL, at(0)).unwrap();
    log.append(at(0), Kind::Decision, &"x".repeat(audit::LINE_MAX));
    log.append(at(1), Kind::Decision, &"x".repeat(audit::LINE_MAX - 500));
    drop(log);
    assert_eq!(verify(folder.path()).unwrap().damages, []);
    let entries = all(folder.path(), Filter::default());
    assert!(entries[0].body["unwritten"].as_str().unwrap().ends_with("bytes, of at most 1048576"), "{:?}", entries[0]);
    assert_eq!(entries[1].body.as_str().unwrap().len(), audit::LINE_MAX - 500);
}

#[test]
fn the_folder_is_the_oracles_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let place = TempDir::new().unwrap();
    let folder = place.path().join("state/audit");
    written(&folder, SMALL, 0..2);
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    for file in fs::read_dir(&folder).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
}
