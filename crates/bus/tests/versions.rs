//! Messages between versions: those that the first version with this bus wrote are in `recorded`, and this one reads and writes the same.

use bus::files::{read_checked, replace_checked, store_epoch, stored_epoch};
use bus::{Report, SEVERAL};
use policy::{Cue, Gate, Identity, OracleKey, WireError};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const REPORT: &[u8] = include_bytes!("recorded/report.json");
const CUE: &[u8] = include_bytes!("recorded/cue");
const ANSWER: &[u8] = include_bytes!("recorded/answer");

fn key() -> OracleKey {
    OracleKey::from_secret([7; 32])
}

#[test]
fn an_old_agents_report_is_read_and_an_old_oracle_gets_the_same() {
    let report = Report::from_bytes(REPORT).unwrap();
    assert_eq!((report.host.name.as_str(), report.epoch, report.of_epoch), ("h1", Some(41), None));
    assert_eq!((report.question, report.telemetry[0].flows, report.links.len()), (Some([7; 32]), 9, 1));
    // without a beacon, which an old Oracle does not send, there is no field that it would refuse
    assert_eq!(report.clone().to_bytes(), REPORT);
    let new = Report { of_epoch: Some(SEVERAL), ..report };
    assert_eq!(Report::from_bytes(&new.clone().to_bytes()).unwrap(), new);
}

#[test]
fn an_old_oracles_cue_and_answer_are_taken_and_an_old_agent_gets_the_same() {
    let cue = key().public().open(CUE).unwrap();
    assert_eq!((cue.epoch, cue.id, cue.rule.as_str(), cue.set.initial_cwnd), (42, 3, "calm network", Some(20)));
    assert_eq!(key().sign(&cue), CUE);
    assert_eq!(key().answer(41, &[[7; 32], [9; 32]]), ANSWER);
    let mut gate = Gate::new(key().public(), Identity::default(), None);
    gate.ask([9; 32]);
    assert_eq!((gate.answered(ANSWER), gate.highest()), (Some(Ok(())), Some(41)));
}

#[test]
fn fields_of_a_later_version_are_ignored_wherever_they_are() {
    let known = Report::from_bytes(REPORT).unwrap();
    let value: Value = serde_json::from_slice(REPORT).unwrap();
    let more = json!({"later": [1, {"version": null}]});
    let places =
        ["", "/host", "/host/fct", "/links/0", "/counts", "/in_force/0", "/in_force/0/effective/0", "/telemetry/0"];
    for place in places {
        let mut later = value.clone();
        later.pointer_mut(place).unwrap().as_object_mut().unwrap().insert("later".into(), more.clone());
        assert_eq!(Report::from_bytes(later.to_string().as_bytes()).unwrap(), known, "{place}");
    }
}

#[test]
fn a_later_cue_is_taken_without_what_may_be_ignored_and_refused_for_what_must_not() {
    let cue = key().public().open(CUE).unwrap();
    let with = |field: &[u8]| Cue::from_bytes(&[cue.to_bytes().as_slice(), field].concat());
    assert_eq!(with(&[2, 3, 9, 9, 9]), Ok(cue.clone()));
    assert_eq!(with(&[2, 0, 4, 1, 9]), Ok(cue.clone()));
    assert_eq!(with(&[1, 0]), Err(WireError::Field(1)));
    assert_eq!(with(&[2, 0, 129, 1, 0]), Err(WireError::Field(129)));
    for broken in [&[2][..], &[2, 3, 9], &[0x80], &[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]] {
        assert_eq!(with(broken), Err(WireError::Short), "{broken:?}");
    }
    let mut later = cue.to_bytes();
    later[0] = 2;
    assert_eq!(Cue::from_bytes(&later), Err(WireError::Version(2)));
}

#[test]
fn numbers_beyond_every_range_are_refused_when_they_are_read() {
    let value: Value = serde_json::from_slice(REPORT).unwrap();
    let text = value.to_string();
    for (number, odd) in [
        ("12.0", "1e308"),
        ("12.0", "NaN"),
        ("3.5", "-1"),
        ("0.25", "1e308"),
        ("\"epoch\":41", "\"epoch\":9223372036854775808"),
    ] {
        let broken = text.replacen(number, odd, 1);
        assert_ne!(broken, text, "{number}");
        assert!(Report::from_bytes(broken.as_bytes()).is_err(), "{odd}");
    }
}

/// All that one byte can become, and all ends.
fn damaged(sound: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..sound.len()).map(|end| sound[..end].to_vec());
    let changed = (0..sound.len()).flat_map(|at| (1..=255).map(move |flip| (at, flip)));
    cut.chain(changed.map(|(at, flip)| {
        let mut bytes = sound.to_vec();
        bytes[at] ^= flip;
        bytes
    }))
}

fn in_file(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_epoch_is_an_error_or_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("epoch");
    for epoch in [0, 4242] {
        store_epoch(&path, epoch).unwrap();
        let sound = fs::read(&path).unwrap();
        for bytes in damaged(&sound) {
            in_file(&path, &bytes);
            match stored_epoch(&path) {
                Ok(read) => assert_eq!(read, Some(epoch), "{}", String::from_utf8_lossy(&bytes)),
                Err(error) => assert!(error.to_string().contains("at least the last epoch"), "{error}"),
            }
        }
    }
    // an earlier version's file, whole and cut
    in_file(&path, b"4242\n");
    assert_eq!(stored_epoch(&path).unwrap(), Some(4242));
    in_file(&path, b"42");
    assert!(stored_epoch(&path).is_err());
}

#[test]
fn other_damaged_files_are_an_error_or_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    assert_eq!(read_checked(&path, "").unwrap(), None);
    replace_checked(&path, b"{\"a\": 1}").unwrap();
    let sound = fs::read(&path).unwrap();
    for bytes in damaged(&sound) {
        in_file(&path, &bytes);
        // what has no checksum any more is not JSON either, or is whole
        let read =
            read_checked(&path, "").ok().flatten().and_then(|content| serde_json::from_slice::<Value>(&content).ok());
        assert!(read.is_none_or(|read| read == json!({"a": 1})), "{}", String::from_utf8_lossy(&bytes));
    }
}
