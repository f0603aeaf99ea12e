//! A disk that is full, for which a small tmpfs is mounted.

use audit::{Filter, Kind, Limits, Log, Timestamp, read, verify};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A file system of 64 kB; unmounted on drop.
struct Small(TempDir);

impl Small {
    /// Or a printed reason why the test is skipped.
    fn mount() -> Option<Small> {
        let small = Small(TempDir::new().unwrap());
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(small.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(small),
            Ok(output) => {
                eprintln!("skipped: no tmpfs: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped: mount: {error}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

#[test]
fn a_full_disk_loses_lines_that_are_counted_and_recorded_once_there_is_space() {
    let Some(small) = Small::mount() else { return };
    let ballast = small.path().join("ballast");
    fs::write(&ballast, vec![0; 32 * 1024]).unwrap();
    let folder = small.path().join("audit");
    let mut log = Log::open(&folder, Limits { file_bytes: 5000, files: 32 }, at(0)).unwrap();
    let mut second = 0;
    let mut append = |log: &mut Log| {
        log.append(at(second), Kind::Decision, &json!({ "epoch": second, "why": "x".repeat(300) }));
        second += 1;
    };
    while log.lost() == 0 {
        append(&mut log);
    }
    let notice = log.notice().unwrap();
    assert!(notice.contains("No space left on device") && notice.contains("decisions go on"), "{notice}");
    for _ in 0..9 {
        append(&mut log);
    }
    assert_eq!((log.lost(), log.notice()), (10, None), "it is said once");
    assert_eq!(verify(&folder).unwrap().damages, [], "what was written before is whole");
    let whole = log.last();
    fs::remove_file(&ballast).unwrap();
    append(&mut log);
    let notice = log.notice().unwrap();
    assert!(notice.contains("is written again; 10 lines are missing since 2026-03-01T12:"), "{notice}");
    assert_eq!((log.lost(), log.last()), (0, whole + 2));
    drop(log);
    let report = verify(&folder).unwrap();
    assert_eq!((report.damages.len(), report.log.lost, report.log.last), (0, 10, whole + 2));
    let gap = Filter { kinds: vec![Kind::Gap], ..Filter::default() };
    let gap = read(&folder, gap).unwrap().next().unwrap().unwrap();
    assert_eq!(gap.body["lost_lines"], 10);
    assert!(gap.body["why"].as_str().unwrap().contains("No space left"), "{gap:?}");
    println!("{whole} lines, then 10 lost and recorded");
}

#[test]
fn a_log_opened_on_a_full_disk_starts_and_recovers() {
    let Some(small) = Small::mount() else { return };
    let folder = small.path().join("audit");
    drop(Log::open(&folder, Limits::default(), at(0)).unwrap());
    let ballast = small.path().join("ballast");
    let _ = fs::write(&ballast, vec![0; 128 * 1024]);
    let mut log = Log::open(&folder, Limits::default(), at(1)).unwrap();
    log.append(at(2), Kind::Started, &json!({}));
    assert_eq!(log.lost(), 1);
    fs::remove_file(&ballast).unwrap();
    log.append(at(3), Kind::Started, &json!({}));
    drop(log);
    let report = verify(&folder).unwrap();
    assert_eq!((report.damages.len(), report.log.lost, report.log.lines), (0, 1, 2));
}

#[test]
fn a_crash_while_the_disk_is_full_leaves_a_log_that_can_be_repaired() {
    let Some(small) = Small::mount() else { return };
    let folder = small.path().join("audit");
    let limits = Limits { file_bytes: 1 << 20, files: 2 };
    let mut log = Log::open(&folder, limits, at(0)).unwrap();
    while log.lost() == 0 {
        log.append(at(0), Kind::Decision, &"x".repeat(900));
    }
    let last = log.last();
    // as kill -9 leaves it: nothing is written or synced at the end
    let copy = TempDir::new().unwrap();
    for file in fs::read_dir(&folder).unwrap() {
        let file = file.unwrap().path();
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let mut log = Log::open(copy.path(), limits, at(9)).unwrap();
    log.append(at(9), Kind::Started, &json!({}));
    assert_eq!((log.notice(), log.last()), (None, last + 1), "no piece of a line was left");
    assert_eq!(verify(copy.path()).unwrap().damages, []);
}
