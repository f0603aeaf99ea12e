//! The status socket and the status' text.

use super::*;
use std::thread;

fn status() -> Status {
    let port = || PortStatus { interface: "a".into(), received: 1, sent: 2, lost: 0, bridged: 3, missed: 0 };
    Status {
        up_seconds: 1.0,
        servers: port(),
        clients: port(),
        flows: 0,
        flows_by_algorithm: BTreeMap::from([("bbr".to_string(), 2)]),
        echoes: 0,
        buffered_bytes: 0,
        buffered_bytes_max: 0,
        buffered_bytes_limit: 1,
        flows_limit: 1,
        turn_max_seconds: 0.0,
        listing_max_seconds: 0.0,
        mirrored: 0,
        mirror_refused: 0,
        oracle: Some(OracleStatus {
            at: "/run/o".to_string(),
            heard_seconds_ago: Some(2.0),
            ..OracleStatus::default()
        }),
        counters: BTreeMap::from([("sent".to_string(), 7)]),
    }
}

#[test]
fn who_says_nothing_is_answered_as_earlier_versions_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    let mut listener = Listener::bind(&path).expect("a socket");
    let mut silent = UnixStream::connect(&path).expect("it listens");
    let asking = connect(&path, "status").expect("it listens");
    let flows = connect(&path, "flows").expect("it listens");
    let odd = connect(&path, "something else").expect("it listens");
    let half = {
        let mut half = UnixStream::connect(&path).expect("it listens");
        half.write_all(b"flo").expect("it is open");
        half
    };
    let answer = |listener: &mut Listener| {
        let asked = listener.questions();
        let lists = asked.iter().filter(|(question, _)| *question == Question::Flows).count();
        for (question, mut stream) in asked {
            if question == Question::Status {
                stream.write_all(serde_json::to_string(&status()).expect("plain data").as_bytes()).expect("it is open");
            }
        }
        lists
    };
    assert_eq!(answer(&mut listener), 1, "one asks for flows");
    let text = |mut stream: UnixStream| {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    assert!(text(asking).contains("up_seconds"));
    assert_eq!(text(odd), "");
    silent.set_nonblocking(true).expect("a socket");
    assert!(silent.read(&mut [0; 1]).is_err(), "it may still say what it wants");
    assert_eq!(answer(&mut listener), 0);
    silent.set_nonblocking(false).expect("a socket");
    assert!(text(silent).contains("up_seconds"));
    assert_eq!(text(half), "");
    assert_eq!(text(flows), "", "its listing was never begun");
}

#[test]
fn the_status_says_how_the_oracle_is() {
    let never = OracleStatus {
        at: "/run/o".to_string(),
        why: Some("no such file".to_string()),
        next_try_seconds: Some(0.5),
        ..OracleStatus::default()
    };
    assert_eq!(never.to_string(), "Oracle at /run/o: not connected (no such file), never heard, next try in 0.5 s");
    let there = OracleStatus {
        at: "/run/o".to_string(),
        connected: true,
        heard_seconds_ago: Some(1.8),
        ..OracleStatus::default()
    };
    assert_eq!(there.to_string(), "Oracle at /run/o: connected, last heard 2 s ago");
    assert!(status().to_string().contains("\nOracle at /run/o: not connected"));
}

#[test]
fn an_enforcers_metrics_are_all_in_the_table() {
    let text = std::sync::Arc::new(status().page()).text();
    for metric in crate::watch::METRICS {
        assert!(text.contains(&format!("\n{}", metric.full_name())), "{}: {text}", metric.name);
    }
    assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), crate::watch::METRICS.len());
}

#[test]
fn an_answer_that_never_ends_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    let listener = UnixListener::bind(&path).expect("a socket");
    let endless = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it is asked");
        while stream.write_all(&[b'['; 4096]).is_ok() {}
    });
    assert!(Status::ask(&path).is_err());
    endless.join().expect("it ends when nobody reads");
}

#[test]
fn a_status_reads_as_lines_and_leaves_out_what_there_is_not() {
    let shown = status().to_string();
    let right = "enforcing for 1 s: 0 flows now\n  2 by bbr\nOracle at /run/o: not connected, last heard 2 s ago\nbuffered: 0 bytes now, 0 at most\n\
                 servers at a: 1 received, 3 bridged, 0 missed, 2 sent, 0 lost\n\
                 clients at a: 1 received, 3 bridged, 0 missed, 2 sent, 0 lost\n  sent            7\n";
    assert_eq!(shown, right);
    let more = Status { echoes: 4, mirrored: 5, mirror_refused: 6, ..status() }.to_string();
    assert!(more.contains("\n  of 4 more flows marks are echoed\n"), "{more}");
    assert!(more.contains("\nstandby of another enforcer: 5 flows; 6 reports were not taken\n"), "{more}");
}

#[test]
fn a_status_of_an_earlier_version_is_understood() {
    let mut old = serde_json::to_value(Status { flows: 3, ..status() }).expect("plain data");
    let since = [
        "echoes",
        "buffered_bytes_limit",
        "flows_limit",
        "turn_max_seconds",
        "listing_max_seconds",
        "mirrored",
        "mirror_refused",
    ];
    let fields = old.as_object_mut().expect("a table");
    for name in since {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    let read: Status = serde_json::from_value(old).expect("a status");
    assert_eq!((read.flows, read.mirrored, read.flows_limit), (3, 0, 0));
}

#[test]
fn a_socket_is_roots_alone_and_gone_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run/status");
    let listener = Listener::bind(&path).expect("its folder is made");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let taken = Listener::bind(&path).err().expect("an enforcer listens there");
    assert!(taken.contains("give this one another --socket"), "{taken}");
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn what_a_killed_enforcer_has_left_is_replaced_and_other_files_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    drop(UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists(), "nobody listens there any more");
    drop(Listener::bind(&path).expect("it is replaced"));
    fs::write(&path, "a letter").expect("there is room");
    let refused = Listener::bind(&path).err().expect("it is no socket");
    assert!(refused.contains("not a socket"), "{refused}");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "a letter");
}

#[test]
fn who_hands_over_leaves_the_sockets_file_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    let mut first = Listener::bind(&path).expect("a socket");
    let mut next = Listener::resume(first.file().try_clone_to_owned().expect("a file"));
    first.own(None);
    next.own(Some(&path));
    drop(first);
    assert!(path.exists());
    // and it is the same socket: who asks reaches the next one
    let asking = connect(&path, "hand over").expect("it listens");
    assert_eq!(next.questions().into_iter().map(|(question, _)| question).collect::<Vec<_>>(), [Question::HandOver]);
    drop((asking, next));
    assert!(!path.exists());
}

#[test]
fn who_connects_and_says_nothing_keeps_nobody_from_asking() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    let mut listener = Listener::bind(&path).expect("a socket");
    let _silent: Vec<UnixStream> = (0..ASKING_MAX).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
    assert!(listener.questions().is_empty());
    let _asking = connect(&path, "flows").expect("it listens");
    // the silent ones are answered as earlier versions were, and make room
    assert_eq!(listener.questions().len(), ASKING_MAX);
    assert_eq!(listener.questions().into_iter().map(|(question, _)| question).collect::<Vec<_>>(), [Question::Flows]);
    let long = "x".repeat(QUESTION_MAX + 1);
    let _odd = connect(&path, &long).expect("it listens");
    assert!(listener.questions().is_empty() && listener.asking.is_empty(), "what is too long is no question");
}
