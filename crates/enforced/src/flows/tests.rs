//! The list of flows, as it is asked for and as it is answered.

use super::*;
use enforcer::{Limits, Rule};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// An enforcer that answers with this text, and how asking it ends: how many flows came.
fn asked(answer: &str) -> (u64, Result<(), String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("status");
    let listener = UnixListener::bind(&path).expect("a socket");
    let answer = answer.to_string();
    let enforcer = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("it is asked");
        let mut question = String::new();
        BufReader::new(&stream).read_line(&mut question).expect("a question");
        assert_eq!(question, "flows\n");
        (&stream).write_all(answer.as_bytes()).expect("it is read");
    });
    let mut count = 0;
    let outcome = flows(&path, &mut |_| count += 1).map_err(|error| error.to_string());
    enforcer.join().expect("it has answered");
    (count, outcome)
}

fn row() -> String {
    let row = FlowRow {
        server: "10.0.0.1:80".parse().expect("an address"),
        client: "[2001:db8::1]:40000".parse().expect("an address"),
        vlan: 0,
        algorithm: "bbr".into(),
        state: "open".into(),
        age_ms: 1,
        cwnd: 10,
        ssthresh: None,
        srtt_us: 0,
        min_rtt_us: None,
        in_flight: 0,
        buffered_packets: 0,
        buffered_bytes: 0,
        bytes_acked: 0,
        sent: 0,
        retransmitted: 0,
        absorbed: 0,
    };
    serde_json::to_string(&Line::Flow(row)).expect("plain data") + "\n"
}

#[test]
fn a_list_is_whole_or_an_error() {
    let two = row() + &row();
    assert_eq!(asked(&format!("{two}{{\"end\":2}}\n")), (2, Ok(())));
    assert_eq!(asked("{\"end\":0}\n"), (0, Ok(())));
    assert_eq!(asked(&format!("{two}{{\"end\":3}}\n")), (2, Err("2 flows came, of 3".to_string())));
    assert_eq!(asked(&two), (2, Err("the list breaks off: the enforcer ends".to_string())));
    assert_eq!(asked(&two[..two.len() - 1]).1, Err("the list breaks off: the enforcer ends".to_string()));
    assert_eq!(asked("{\"refused\":\"try again\"}\n"), (0, Err("try again".to_string())));
    let (_, old) = asked("");
    assert!(old.is_err_and(|why| why.contains("it is of an earlier version, or it ends")));
    assert!(asked(&format!("\"{}\"\n", "x".repeat(5000))).1.is_err(), "a line that does not end is not waited for");
}

#[test]
fn two_lists_are_written_at_a_time_and_a_third_is_refused() {
    let enforcer = Enforcer::<OwnedFrame>::new(Limits::default(), Vec::<Rule>::new(), 1);
    let (mut listings, clock) = (Listings::default(), Clock::begin());
    assert_eq!(listings.turn(&clock, &enforcer), Turn::Nothing);
    let read = |stream: UnixStream| {
        let mut text = String::new();
        BufReader::new(stream).read_to_string(&mut text).expect("it is written and closed");
        text
    };
    let begin = |listings: &mut Listings| {
        let (near, far) = UnixStream::pair().expect("a socket");
        listings.begin(near);
        far
    };
    let open = [begin(&mut listings), begin(&mut listings)];
    let refused = read(begin(&mut listings));
    assert_eq!(refused, "{\"refused\":\"2 others list the flows now; try again in a moment\"}\n");
    // an empty slice, then the end, of each
    assert_eq!(listings.turn(&clock, &enforcer), Turn::More);
    assert_eq!(listings.turn(&clock, &enforcer), Turn::Nothing);
    assert_eq!(open.map(read), ["{\"end\":0}\n"; 2]);
    assert_eq!(listings.turn(&clock, &enforcer), Turn::Nothing, "there is room again");
}
