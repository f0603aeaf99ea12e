//! A new enforcer takes the place of a running one, which has a thousand flows.

use crate::killed::{FLOWS, SLOW, SLOW_RULES, with_a_thousand_flows};
use crate::world::World;
use crate::{LONG, check, send};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::{Running, eventually};

/// The servers' side, the clients' side.
const PORTS: [&str; 2] = ["s", "c"];
/// Takes over three times in a row.
const TIMES: usize = 3;

fn counter(status: &Value, name: &str) -> u64 {
    status["counters"][name].as_u64().unwrap_or_else(|| panic!("{name} is counted"))
}

/// Frames that passed by the bridge, in both directions.
fn bridged(status: &Value) -> u64 {
    ["servers", "clients"].iter().map(|side| status[side]["bridged"].as_u64().expect("it is counted")).sum()
}

/// Starts an enforcer that replaces the running one, and waits until that has ended. Prints what the new one says.
fn replace(world: &World, old: &mut Running, between: [&str; 2], rules: &[&str]) -> Running {
    let new = world.enforce_between(between, &[rules, &["--replace"]].concat());
    assert!(eventually(|| old.has_ended()), "{}", old.said());
    let said = new.said();
    println!("{}", said.lines().find(|line| line.contains("took over")).unwrap_or_else(|| panic!("{said}")));
    new
}

#[test]
fn a_thousand_flows_pass_from_enforcer_to_enforcer() {
    let Some(world) = World::new() else { return };
    fs::write(world.path("slow.c"), SLOW).expect("there is room");
    let mut enforcer = world.enforce(&SLOW_RULES);
    with_a_thousand_flows(&world, |flows| {
        let before = bridged(&world.status());
        for n in 1..=TIMES {
            let mut next = None;
            flows.silences_after(&format!("replaced, {n}"), || {
                next = Some(replace(&world, &mut enforcer, PORTS, &SLOW_RULES));
            });
            enforcer = next.expect("it runs");
            let status = world.status();
            assert_eq!(status["flows"], FLOWS, "all are still enforced: {status}");
            assert!(counter(&status, "data_taken") > 1000 && counter(&status, "flows_astray") == 0, "{status}");
            // the counter is the program's, which all of them share; neighbours ask for addresses now and then
            assert!(bridged(&status) < before + 100, "packets bypass it: {before}, {status}");
            assert_eq!(status["clients"]["missed"], 0, "{status}");
            assert_eq!(status["servers"]["missed"], 0, "{status}");
        }
    });
}

#[test]
fn a_transfer_continues_with_another_algorithm() {
    let Some(world) = World::new() else { return };
    let mut enforcer = world.enforce(&["--rule", "bbr"]);
    let (mut client, mut server) = world.connection();
    let same = server.try_clone().expect("a socket can be cloned");
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, LONG, Some(8 << 20)));
        let checking = scope.spawn(|| check(&mut client, LONG, &seen));
        for rule in ["cubic", "vegas", "bbr"] {
            let had = seen.load(Ordering::Relaxed);
            enforcer = replace(&world, &mut enforcer, PORTS, &["--rule", rule]);
            let status = world.status();
            assert_eq!(status["flows_by_algorithm"][rule], 1, "{status}");
            assert!(eventually(|| seen.load(Ordering::Relaxed) > had + 1_000_000), "it goes on");
        }
        checking.join().expect("every byte is right");
    });
    println!("the server retransmitted {} packets", world.retransmits(&same));
    enforcer.stop();
    assert!(!World::pins().exists() && !world.path("enforce.sock").exists(), "the last one leaves nothing");
    assert!(eventually(|| !world.has_xdp()));
}

#[test]
fn an_enforcer_goes_on_if_the_new_one_fails() {
    let Some(world) = World::new() else { return };
    let enforcer = world.enforce(&["--rule", "bbr"]);
    let (mut client, mut server) = world.connection();
    // one is gone once it has asked, one while it is given the flows, two say nonsense
    let failed = |n| eventually(|| enforcer.said().matches("this one goes on").count() == n);
    for (n, says) in [&b""[..], b"p", b"px", b"x"].into_iter().enumerate() {
        let mut asks = UnixStream::connect(world.path("enforce.sock")).expect("it listens");
        asks.write_all(b"hand over\n").expect("it reads");
        asks.read_exact(&mut [0; 1]).expect("the sockets are named first");
        for byte in says {
            asks.write_all(&[*byte]).expect("it reads");
            thread::sleep(Duration::from_millis(300));
        }
        drop(asks);
        assert!(failed(n + 1), "{}", enforcer.said());
    }
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, LONG, None));
        check(&mut client, LONG, &AtomicU64::new(0));
    });
    let status = world.status();
    assert!(status["flows"] == 1 && counter(&status, "data_taken") > (LONG / 1460) as u64, "{status}");
    // without one that runs it starts as usual; at other interfaces it is refused
    let pins = World::pins().display().to_string();
    let other =
        ["enforce", "--between", "c", "s", "--rule", "bbr", "--replace", "--socket", "enforce.sock", "--pins", &pins];
    let (code, _, error) = world.opentcp(&other);
    assert!(code == Some(2) && error.contains("in its place"), "{error}");
    assert_eq!(world.status()["flows"], 1, "the running one has gone on");
    enforcer.stop();
    let anew = world.enforce(&["--rule", "bbr", "--replace"]);
    assert_eq!(world.status()["flows"], 0);
    anew.stop();
}

#[test]
fn taps_pass_from_enforcer_to_enforcer() {
    let Some(world) = World::new() else { return };
    let mut enforcer = world.enforce_between_taps(&["--rule", "bbr"]);
    let (mut client, mut server) = world.connection_at([10, 99, 0, 1].into());
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, LONG, Some(16 << 20)));
        let checking = scope.spawn(|| check(&mut client, LONG, &seen));
        assert!(eventually(|| seen.load(Ordering::Relaxed) > 1_000_000));
        enforcer = replace(&world, &mut enforcer, ["ts", "tc"], &["--rule", "cubic"]);
        checking.join().expect("every byte is right");
    });
    assert_eq!(world.status()["flows_by_algorithm"]["cubic"], 1, "{}", world.status());
}
