//! `opentcp enforce --status --flows`, with real flows.

use crate::load::Program;
use crate::world::World;
use crate::{check, send};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use testkit::eventually;

const ASK: [&str; 5] = ["enforce", "--status", "--flows", "--socket", "enforce.sock"];
const BYTES: usize = 8 << 20;

fn listed(world: &World, more: &[&str]) -> Value {
    let (code, out, error) = world.opentcp(&[&ASK, more, &["--json"]].concat());
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn flows_are_listed_with_their_ends_and_what_became_of_them() {
    let Some(world) = World::new() else { return };
    let _enforcer = world.enforce(&["--rule", "vegas port=7002", "--rule", "bbr"]);
    world.lose_at_client();
    let (mut client, mut server) = world.connection();
    let other = world.connection_to(7002);
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, BYTES, None));
        check(&mut client, BYTES, &AtomicU64::new(0));
    });
    let ends = |end: &std::net::TcpStream| end.local_addr().expect("it is bound").to_string();
    // the last acknowledgment may be on its way
    assert!(eventually(|| listed(&world, &["--filter", "bbr"])["flows"][0]["in_flight"] == 0));
    let all = listed(&world, &["--sort", "acked"]);
    let flow = &all["flows"][0];
    assert_eq!((&all["total"], &all["matched"]), (&2.into(), &2.into()), "{all}");
    assert_eq!((flow["server"].as_str(), flow["client"].as_str()), (Some(&*ends(&server)), Some(&*ends(&client))));
    assert_eq!((flow["algorithm"].as_str(), &flow["bytes_acked"]), (Some("bbr"), &BYTES.into()), "{flow}");
    let number = |name: &str| flow[name].as_u64().unwrap_or_else(|| panic!("{name}: {flow}"));
    let counted = |name: &str| world.status()["counters"][name].as_u64().expect("it is counted");
    assert!(number("retransmitted") > 0 && number("retransmitted") == counted("retransmitted"), "{flow}");
    assert!(number("srtt_us") > 0 && number("cwnd") > 1 && number("buffered_bytes") == 0, "{flow}");
    let one = listed(&world, &["--filter", "port=7002"]);
    assert_eq!((&one["matched"], one["flows"][0]["client"].as_str()), (&1.into(), Some(&*ends(&other.0))), "{one}");

    let (code, table, error) = world.opentcp(&[&ASK[..], &["--sort", "-acked", "--limit", "1"]].concat());
    assert_eq!(code, Some(0), "{error}");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("SERVER") && lines[1].contains("vegas"), "{table}");
    assert_eq!(lines[2..], ["1 of 2 that match, of 2 flows"], "{table}");
    for (bad, expected) in [(["--sort", "size"], "no column `size`"), (["--filter", "port=x"], "a port is a number")] {
        let (code, _, error) = world.opentcp(&[&ASK[..], &bad].concat());
        assert!(code == Some(2) && error.contains(expected), "{error}");
    }
}

#[test]
fn a_reader_that_stops_reading_stops_neither_packets_nor_other_readers() {
    let Some(world) = World::new() else { return };
    let enforcer = world.enforce(&["--rule", "cubic"]);
    let mut server = Program::start(&world, 0, "serve.py", &["9000".to_string(), "2000".to_string()]);
    assert_eq!(server.said(), "ready");
    let mut client = Program::start(&world, 2, "ask.py", &["10.97.0.1", "9000", "2000"].map(str::to_string));
    assert_eq!(client.said(), "ready");
    // as many as the enforcer answers at a time, and one more
    let ask = || {
        let mut asking = UnixStream::connect(world.path("enforce.sock")).expect("it listens");
        asking.write_all(b"flows\n").expect("it listens");
        asking
    };
    let stopped = [ask(), ask()];
    let mut refused = String::new();
    assert!(eventually(|| {
        refused.clear();
        ask().read_to_string(&mut refused).expect("it answers");
        refused.contains("try again in a moment")
    }));
    let (mut one, mut other) = world.connection();
    thread::scope(|scope| {
        scope.spawn(|| send(&mut other, BYTES, None));
        check(&mut one, BYTES, &AtomicU64::new(0));
    });
    drop(stopped);
    assert!(eventually(|| world.opentcp(&ASK).0 == Some(0)), "{}", enforcer.said());
    assert!(listed(&world, &[])["total"].as_u64() >= Some(2001));
}

/// With `OPENTCP_LOAD` set, 19,800 flows and 2,500 requests a second; otherwise few.
#[test]
fn listing_many_flows_does_not_stop_the_packets() {
    let Some(world) = World::new() else { return };
    let full = std::env::var_os("OPENTCP_LOAD").is_some();
    let (pairs, connections, rate) = if full { (2, 9_900, 1250) } else { (1, 1000, 250) };
    let enforcer = world.enforce(&["--rule", "bbr"]);
    let mut programs: Vec<(Program, Program)> = (0..pairs)
        .map(|i| {
            let (port, connections) = ((9000 + i).to_string(), connections.to_string());
            let mut server = Program::start(&world, 0, "serve.py", &[port.clone(), connections.clone()]);
            assert_eq!(server.said(), "ready");
            let client = Program::start(&world, 2, "ask.py", &["10.97.0.1".to_string(), port, connections]);
            (server, client)
        })
        .collect();
    for (_, client) in &mut programs {
        assert_eq!(client.said(), "ready");
    }
    let before = world.status();
    for (_, client) in &mut programs {
        writeln!(client.to, "{rate} 5").expect("it listens");
    }
    let done = AtomicBool::new(false);
    let (said, lists) = thread::scope(|scope| {
        let lists = scope.spawn(|| {
            let mut lists = 0;
            while !done.load(Ordering::Relaxed) {
                let list = listed(&world, &["--limit", "10", "--sort", "rtt"]);
                assert!(list["total"].as_u64() >= Some((pairs * connections) as u64), "{}", list["total"]);
                lists += 1;
            }
            lists
        });
        let said: Vec<String> = programs.iter_mut().map(|(_, client)| client.said()).collect();
        done.store(true, Ordering::Relaxed);
        (said, lists.join().expect("it lists"))
    });
    let status = world.status();
    let ms = |name: &str| status[name].as_f64().expect("a number") * 1e3;
    println!(
        "{lists} lists of {} flows while {said:?} (answers, seconds, p99 ms): the longest slice took {:.3} ms, the longest turn of the \
         loop {:.3} ms (without lists {:.3} ms)",
        pairs * connections,
        ms("listing_max_seconds"),
        ms("turn_max_seconds"),
        before["turn_max_seconds"].as_f64().expect("a number") * 1e3,
    );
    assert!(lists > 0 && ms("listing_max_seconds") > 0.0, "{status} {}", enforcer.said());
    assert_eq!(status["counters"]["passed_unknown"], before["counters"]["passed_unknown"], "{status}");
}
