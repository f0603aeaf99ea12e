//! Both ways of the bus: what arrives, what is refused, and what is kept on disk.

use bus::files::{FileError, generate, public_keys, secret_key, store_epoch, stored_epoch};
use bus::kind::MEASUREMENT;
use bus::{
    Bus, BusError, FctTimes, Hub, MESSAGE_MAX, Measurement, PROBLEMS_MAX, QUEUE_MAX, Received, Report, Telemetry,
    UnixAgent, UnixOracle, channel,
};
use rustix::fs::{Mode, chmod};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType, connect, send, socket};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use tempfile::tempdir;
use units::{Rate, Time};

const SOON: Duration = Duration::from_secs(20);
const NOW: Duration = Duration::ZERO;

/// What both ways promise.
fn carries(oracle: &mut dyn Hub, agents: &mut [&mut dyn Bus; 2]) {
    for (i, agent) in agents.iter_mut().enumerate() {
        agent.send(format!("report {i}").as_bytes()).unwrap();
    }
    let mut reports: Vec<Received> = (0..2).map(|_| oracle.receive(SOON).unwrap().unwrap()).collect();
    reports.sort_by(|one, other| one.bytes.cmp(&other.bytes));
    assert_eq!(reports.iter().map(|report| &report.bytes[..]).collect::<Vec<_>>(), [b"report 0", b"report 1"]);
    assert_eq!(oracle.receive(NOW).unwrap(), None);
    assert_eq!(oracle.counts().peers, 2);
    for (report, agent) in reports.iter().zip(agents.iter_mut()) {
        oracle.answer(&report.reply, &report.bytes).unwrap();
        assert_eq!(agent.receive(SOON).unwrap().unwrap(), report.bytes, "for it alone");
    }
    oracle.send(b"first").unwrap();
    oracle.send(&vec![7; MESSAGE_MAX]).unwrap();
    for agent in agents.iter_mut() {
        assert_eq!(agent.receive(SOON).unwrap().unwrap(), b"first");
        assert_eq!(agent.receive(SOON).unwrap().unwrap(), vec![7; MESSAGE_MAX], "whole");
        assert_eq!(agent.receive(NOW).unwrap(), None);
        assert!(matches!(agent.send(&vec![0; MESSAGE_MAX + 1]), Err(BusError::Long(_))));
    }
    assert!(matches!(oracle.send(&vec![0; MESSAGE_MAX + 1]), Err(BusError::Long(_))));
}

/// An agent that never reads is dropped, and the other one has every message.
fn drops_the_slow(oracle: &mut dyn Hub, reader: &mut dyn Bus, slow: &mut dyn Bus) {
    let message = vec![1; MESSAGE_MAX];
    let mut sent = 0;
    while oracle.counts().slow == 0 {
        oracle.send(&message).unwrap();
        sent += 1;
        assert_eq!(reader.receive(SOON).unwrap().unwrap().len(), MESSAGE_MAX);
        assert!(sent <= 2 * QUEUE_MAX, "what waits is bounded");
    }
    assert_eq!(oracle.counts().peers, 1);
    // what it was sent before is still there; then it knows
    let mut waiting = 0;
    while let Ok(Some(_)) = slow.receive(SOON) {
        waiting += 1;
    }
    assert!(waiting < sent, "{waiting} of {sent}");
    assert!(matches!(slow.receive(NOW), Err(BusError::Gone)));
}

#[test]
fn a_channel_carries_whole_messages_and_drops_who_does_not_read() {
    let mut oracle = channel();
    let (mut one, mut other) = (oracle.agent().unwrap(), oracle.agent().unwrap());
    carries(&mut oracle, &mut [&mut one, &mut other]);
    drops_the_slow(&mut oracle, &mut one, &mut other);
    drop(oracle);
    assert!(matches!(one.send(b"report"), Err(BusError::Gone)));
}

#[test]
fn a_socket_carries_whole_messages_and_drops_who_does_not_read() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("bus/oracle.sock");
    assert!(matches!(UnixAgent::connect(&path), Err(BusError::Socket { .. })), "nobody listens");
    let mut oracle = UnixOracle::listen(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let error = UnixOracle::listen(&path).unwrap_err().to_string();
    assert!(error.contains("another Oracle listens there"), "{error}");
    let (mut one, mut other) = (UnixAgent::connect(&path).unwrap(), UnixAgent::connect(&path).unwrap());
    carries(&mut oracle, &mut [&mut one, &mut other]);
    drops_the_slow(&mut oracle, &mut one, &mut other);
    drop(oracle);
    assert!(matches!(one.receive(SOON), Err(BusError::Gone)));
    assert!(!path.exists(), "its file goes with it");
}

#[test]
fn an_oracle_takes_the_place_of_one_that_was_killed_and_no_other_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("oracle.sock");
    // a killed one leaves its file, but no lock
    std::mem::forget(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(UnixOracle::listen(&path).unwrap());
    fs::write(&path, "precious").unwrap();
    assert!(UnixOracle::listen(&path).unwrap_err().to_string().contains("not a socket"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn who_sends_too_long_a_message_is_dropped_and_counted() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("oracle.sock");
    let mut oracle = UnixOracle::listen(&path).unwrap();
    let stranger = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    connect(&stranger, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    send(&stranger, &vec![0; MESSAGE_MAX + 1], SendFlags::empty()).unwrap();
    let mut agent = UnixAgent::connect(&path).unwrap();
    agent.send(b"report").unwrap();
    assert_eq!(oracle.receive(SOON).unwrap().unwrap().bytes, b"report");
    // one look at each other end at least
    assert_eq!(oracle.receive(Duration::from_millis(50)).unwrap(), None);
    assert_eq!((oracle.counts().long, oracle.counts().peers), (1, 1));
}

#[test]
fn a_key_is_made_once_and_only_read_where_nobody_else_can_change_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("oracle.key");
    let public = generate(&path).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), public.file_name().unwrap().to_str().unwrap()), (0o600, "oracle.key.pub"));
    assert_eq!(public_keys(&public).unwrap().keys(), [secret_key(&path).unwrap().public()]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(matches!(generate(&path), Err(FileError::Exists { .. })));
    fs::remove_file(&public).unwrap();
    assert!(matches!(generate(&path), Err(FileError::Exists { .. })), "one of both is enough");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    chmod(&path, Mode::from_raw_mode(0o640)).unwrap();
    assert!(matches!(secret_key(&path), Err(FileError::Rights { .. })), "its group can read it");
    fs::write(&public, secret_key_text(&text)).unwrap();
    chmod(&public, Mode::from_raw_mode(0o664)).unwrap();
    assert!(matches!(public_keys(&public), Err(FileError::Rights { .. })), "its group can change it");
    chmod(&public, Mode::from_raw_mode(0o644)).unwrap();
    assert!(public_keys(&public).is_ok());
    fs::write(&public, "12").unwrap();
    assert!(public_keys(&public).unwrap_err().to_string().contains("64 hexadecimal digits"));
    let none = public_keys(&folder.path().join("none")).unwrap_err().to_string();
    assert!(none.contains("`opentcp keygen` makes the Oracle's key"), "{none}");
}

fn secret_key_text(secret: &str) -> String {
    policy::OracleKey::from_hex(secret).unwrap().public().to_hex()
}

#[test]
fn two_keys_are_two() {
    let folder = tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| fs::read(generate(&folder.path().join(name)).unwrap()).unwrap());
    assert_ne!(one, other);
}

#[test]
fn an_epoch_is_read_as_it_was_stored() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("epoch");
    assert_eq!(stored_epoch(&path).unwrap(), None);
    for epoch in [0, 41, u64::MAX / 2] {
        store_epoch(&path, epoch).unwrap();
        assert_eq!(stored_epoch(&path).unwrap(), Some(epoch));
    }
    fs::write(&path, "4x").unwrap();
    assert!(matches!(stored_epoch(&path), Err(FileError::Content { .. })));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn completion_times_are_the_same_after_a_report() {
    let mut times = FctTimes::default();
    (1..=1000).for_each(|ms| times.record(ms * 1000));
    let mut read = FctTimes::default();
    read.add(&times.bins());
    assert_eq!(read.percentiles(), times.percentiles());
    let p50 = times.percentiles().p50.unwrap();
    // 16 steps for each doubling: 6 % apart
    assert!(p50 >= Time::from_ms(500) && p50 < Time::from_ms(532), "{p50}");
    assert_eq!(FctTimes::default().percentiles().p50, None);
}

#[test]
fn a_report_has_room_for_what_matters_most() {
    let mut times = FctTimes::default();
    (0..20_000).for_each(|us| times.record(us * us));
    let kind = |i: u64| Telemetry { group: format!("p/{i}"), flows: i, fct_us: times.bins(), ..Telemetry::default() };
    let host = policy::Host { name: "h".into(), ..policy::Host::default() };
    let report = Report { host, telemetry: (0..100).map(kind).collect(), ..Report::default() };
    let bytes = report.to_bytes();
    assert!(bytes.len() <= MESSAGE_MAX);
    let read = Report::from_bytes(&bytes).unwrap();
    assert!(!read.telemetry.is_empty() && read.telemetry[0].flows == 99, "the one with most");
    assert_eq!(read.telemetry.len() + read.left_out, 100);
    assert!(Report::from_bytes(&bytes[..100]).is_err());
}

#[test]
fn a_report_of_many_links_and_kinds_is_cut_to_what_is_taken() {
    let link = |i: usize| policy::Link { name: format!("{i:0>255}"), ..policy::Link::default() };
    let kind = |i: u64| Telemetry { group: format!("{i:0>200}"), flows: i, ..Telemetry::default() };
    let host = policy::Host { name: "h".into(), ..policy::Host::default() };
    let links = (0..300).map(link).collect();
    let notes = vec!["n".repeat(200); 2000];
    let report = Report { host, links, telemetry: (0..400).map(kind).collect(), notes, ..Report::default() };
    let bytes = report.to_bytes();
    assert!(bytes.len() <= MESSAGE_MAX);
    let taken = Report::from_bytes(&bytes).unwrap();
    assert_eq!((taken.links.len(), taken.left_out), (64, 300 - 64 + 400 - taken.telemetry.len()));
    assert!(
        taken.telemetry.iter().all(|kind| kind.flows >= 399 - taken.telemetry.len() as u64),
        "the largest are kept"
    );
}

fn measured(i: usize) -> policy::Link {
    let name = format!("spine-{i} Ethernet1/{i} out");
    policy::Link { name, from: "\u{1F600}\"".repeat(40), utilization: Some(0.5), ..policy::Link::default() }
}

#[test]
fn a_measurement_of_any_size_arrives_in_messages_that_are_taken() {
    let pair =
        |i: usize| policy::RackPair { from: format!("r{i}"), to: "\u{e9}".repeat(100), rate: Rate::from_mbps(1) };
    let measurement = Measurement {
        source: "\"".repeat(255),
        round: u64::MAX,
        links: (0..9000).map(measured).collect(),
        matrix: (0..3000).map(pair).collect(),
        problems: vec!["\\".repeat(255); PROBLEMS_MAX],
    };
    let messages = measurement.clone().to_messages();
    assert!(messages.len() > 40 && messages.iter().all(|message| message.len() <= MESSAGE_MAX));
    let mut all = Measurement { problems: measurement.problems.clone(), ..Measurement::default() };
    for (i, message) in messages.iter().enumerate() {
        assert!(Measurement::is(message));
        let part = Measurement::from_bytes(message).unwrap();
        assert_eq!((part.source, part.round), (measurement.source.clone(), u64::MAX));
        assert_eq!(part.problems.is_empty(), i > 0);
        all.links.extend(part.links);
        all.matrix.extend(part.matrix);
    }
    assert_eq!((all.links, all.matrix), (measurement.links, measurement.matrix));
    let empty = Measurement { source: "c".into(), ..Measurement::default() }.to_messages();
    assert_eq!(Measurement::from_bytes(&empty[0]).unwrap().source, "c");
}

type Change<'a> = &'a dyn Fn(&mut serde_json::Value);

#[test]
fn a_measurement_out_of_range_is_refused() {
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = serde_json::json!({"source": "c", "round": 1, "links": [{"name": "l", "utilization": 0.5}]});
        change(&mut json);
        let bytes = [MEASUREMENT, json.to_string().as_bytes()].concat();
        Measurement::from_bytes(&bytes).map_err(|error| error.to_string())
    };
    assert!(refused(&|_| ()).is_ok());
    let cases: [(Change, &str); 9] = [
        (&|json| json["source"] = "".into(), "source"),
        (&|json| json["source"] = "c".repeat(256).into(), "source"),
        (&|json| json["links"][0]["utilization"] = 1.5.into(), "a share, from 0 to 1"),
        (&|json| json["links"][0]["name"] = "".into(), "no name"),
        (&|json| json["links"][0]["queue"] = "99999999999999999 B".into(), "queue"),
        (&|json| json["links"] = vec![json["links"][0].clone(); 1025].into(), "1025 links"),
        (&|json| json["problems"] = vec!["p"; 65].into(), "65 problems"),
        (&|json| json["problems"] = vec!["p\n"].into(), "control character"),
        (&|json| json["matrix"] = serde_json::json!([{"from": "r".repeat(256), "to": "", "rate": "1 Gbit/s"}]), "255"),
    ];
    for (change, expected) in cases {
        let error = refused(change).unwrap_err();
        assert!(error.contains(expected), "{error} lacks {expected}");
    }
    assert!(Measurement::from_bytes(b"{}").is_err() && Measurement::from_bytes(MEASUREMENT).is_err());
}
