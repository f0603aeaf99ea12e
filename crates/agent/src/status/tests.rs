//! The status file.

use super::*;
use std::fs;

#[test]
fn whatever_happens_to_a_byte_of_a_status_is_an_error_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let places = Places { state: folder.path().to_path_buf(), pins: folder.path().join("pins") };
    let host = Host { name: "h".into(), live_flows: Some(12.0), ..Host::default() };
    let report = Report { host, epoch: Some(4242), ..Report::default() };
    let written = Status { applied: 1234, report: Some(report), ..Status::default() };
    written.write(&places).unwrap();
    let sound = fs::read(places.status()).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(places.status(), bytes).unwrap();
        status(&places)
    };
    assert_eq!(read(&sound).unwrap(), written);
    for at in 0..sound.len() {
        if let Ok(read) = read(&sound[..at]) {
            assert_eq!(read, written, "cut at {at}");
        }
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            if let Ok(read) = read(&damaged) {
                assert_eq!(read, written, "byte {at} changed by {flip}");
            }
        }
    }
}

fn places(folder: &std::path::Path) -> Places {
    Places { state: folder.join("state"), pins: folder.join("pins") }
}

#[test]
fn whether_an_agent_runs_is_seen_by_its_lock_and_not_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    assert_eq!(status(&places).unwrap(), Status::default(), "there has been none");
    assert!(!places.state.exists(), "to ask makes nothing");
    let agent = lock(&places).unwrap();
    assert!(status(&places).unwrap().running, "it has not written a status yet");
    let written = Status { running: true, connected: true, applied: 7, ..Status::default() };
    written.write(&places).unwrap();
    assert_eq!(status(&places).unwrap(), written);
    drop(agent);
    assert_eq!(status(&places).unwrap(), Status { running: false, ..written }, "it was killed, and its file stays");
}

#[test]
fn a_status_is_written_again_for_news_and_not_for_numbers_that_always_change() {
    let rule = |left, found: &str| bus::InForce {
        policy: "p".into(),
        rule: "r".into(),
        left,
        effective: vec![bus::Effective {
            setting: "cc".into(),
            found: Some(found.into()),
            ..bus::Effective::default()
        }],
    };
    let of = |live_flows, left, found, epoch| {
        let host = Host { live_flows: Some(live_flows), ..Host::default() };
        let report = Report { host, epoch: Some(epoch), in_force: vec![rule(left, found)], ..Report::default() };
        Status { report: Some(report), ..Status::default() }.without_time()
    };
    let now = of(1.0, Time::from_secs(5), "reno on 1", 3);
    assert_eq!(of(2.0, Time::from_secs(4), "reno on 1", 3), now);
    assert_ne!(of(1.0, Time::from_secs(5), "reno on 2", 3), now);
    assert_ne!(of(1.0, Time::from_secs(5), "reno on 1", 4), now);
}

#[test]
fn a_status_knows_its_age_and_how_long_the_oracle_was_silent() {
    let status = |written_ms, heard_ms| Status { written_ms, heard_ms, ..Status::default() };
    assert_eq!(status(60_000, Some(57_500)).silence(), Some(Time::from_ms(2500)));
    assert_eq!(status(60_000, None).silence(), None, "never heard");
    let now = boot_time().as_millis() as u64;
    let age = status(now - 40_000, None).age();
    assert!(age >= Time::from_secs(40) && age < Time::from_secs(60), "{age}");
    assert_eq!(status(60_000, Some(57_500)).without_time(), status(61_000, Some(60_500)).without_time());
}
