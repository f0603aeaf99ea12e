//! Every byte that is changed, every line and file that is removed or moved is noticed.

use audit::{Kind, Limits, Log, Timestamp, verify};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A log of three files, the first of which is not the first that was written.
fn log() -> (TempDir, BTreeMap<PathBuf, Vec<u8>>) {
    let folder = TempDir::new().unwrap();
    let at = |second: i64| Timestamp::from_second(1_772_366_400 + second).unwrap();
    let mut log = Log::open(folder.path(), Limits { file_bytes: 600, files: 3 }, at(0)).unwrap();
    for second in 0..13 {
        log.append(at(second), Kind::Decision, &json!({ "epoch": second, "rules": [{ "name": "r", "on": true }] }));
    }
    drop(log);
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| !path.ends_with("lock"));
    let files: BTreeMap<PathBuf, Vec<u8>> = files.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    assert_eq!(files.len(), 4, "three files and the head");
    let report = verify(folder.path()).unwrap();
    assert_eq!((report.damages.len(), report.log.last), (0, 13));
    assert!(report.log.first > 1);
    (folder, files)
}

fn damages(folder: &Path) -> Vec<String> {
    verify(folder).unwrap().damages.iter().map(ToString::to_string).collect()
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (folder, files) = log();
    let mut flips = 0;
    for (path, bytes) in &files {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                fs::write(path, &changed).unwrap();
                assert_ne!(damages(folder.path()), Vec::<String>::new(), "{}: bit {bit} of byte {at}", path.display());
                flips += 1;
            }
        }
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(damages(folder.path()), Vec::<String>::new(), "all is as before");
    println!("{flips} flips, each noticed");
}

#[test]
fn every_line_that_is_removed_repeated_or_moved_is_noticed_and_located() {
    let (folder, files) = log();
    let mut changes = 0;
    for (path, bytes) in files.iter().filter(|(path, _)| !path.ends_with("head")) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut check = |lines: Vec<&str>, what: String| {
            fs::write(path, lines.iter().flat_map(|line| [line, "\n"]).collect::<String>()).unwrap();
            let damages = damages(folder.path());
            assert!(!damages.is_empty(), "{}: {what}", path.display());
            assert!(damages.iter().all(|damage| damage.starts_with(folder.path().to_str().unwrap())), "{damages:?}");
            changes += 1;
        };
        for i in 0..lines.len() {
            let without = [&lines[..i], &lines[i + 1..]].concat();
            check(without, format!("line {} removed", i + 1));
            check([&lines[..=i], &lines[i..]].concat(), format!("line {} twice", i + 1));
            for j in i + 1..lines.len() {
                let mut swapped = lines.clone();
                swapped.swap(i, j);
                check(swapped, format!("lines {} and {} swapped", i + 1, j + 1));
            }
        }
        check(Vec::new(), "all removed".to_string());
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(damages(folder.path()), Vec::<String>::new(), "all is as before");
    println!("{changes} changes, each noticed");
}

#[test]
fn every_file_that_is_removed_or_exchanged_is_noticed() {
    let (folder, files) = log();
    for (path, bytes) in &files {
        fs::remove_file(path).unwrap();
        assert_ne!(damages(folder.path()), Vec::<String>::new(), "{}", path.display());
        fs::write(path, bytes).unwrap();
    }
    let paths: Vec<&PathBuf> = files.keys().collect();
    for i in 0..paths.len() {
        for j in i + 1..paths.len() {
            fs::write(paths[i], &files[paths[j]]).unwrap();
            fs::write(paths[j], &files[paths[i]]).unwrap();
            assert_ne!(damages(folder.path()), Vec::<String>::new(), "{i} and {j} exchanged");
            fs::write(paths[i], &files[paths[i]]).unwrap();
            fs::write(paths[j], &files[paths[j]]).unwrap();
        }
    }
    assert_eq!(damages(folder.path()), Vec::<String>::new(), "all is as before");
}

#[test]
fn every_end_that_is_cut_off_is_noticed() {
    let (folder, files) = log();
    let last = files.keys().rfind(|path| !path.ends_with("head")).unwrap();
    for length in 0..files[last].len() {
        fs::write(last, &files[last][..length]).unwrap();
        assert_ne!(damages(folder.path()), Vec::<String>::new(), "cut to {length} bytes");
    }
}

#[test]
fn what_is_no_log_at_all_is_located() {
    let (folder, files) = log();
    let last = files.keys().rfind(|path| !path.ends_with("head")).unwrap();
    let longest = vec![b'x'; 3 << 20];
    for (bytes, what) in [
        (b"\x00\xff\n".to_vec(), ":1: the line was changed: "),
        (b"[]\n".to_vec(), ":1: the line was changed: "),
        (b"{}\n".to_vec(), "missing field `sequence`"),
        (longest, ":1: a line of 3145728 bytes"),
    ] {
        fs::write(last, bytes).unwrap();
        let damages = damages(folder.path());
        assert!(damages.iter().any(|damage| damage.contains(what)), "{what}: {damages:?}");
    }
    assert!(verify(&folder.path().join("none")).is_err());
    let empty = TempDir::new().unwrap();
    assert_eq!(verify(empty.path()).unwrap(), audit::Report::default());
}
