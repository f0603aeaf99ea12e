//! Incast on real hosts, without and with a policy that bounds the sum of the client's receive windows. Root only; one test at a time
//! on a machine.

use crate::run_support::{machine, valid_run};
use emu::Emulated;
use std::path::Path;
use testkit::scenario_in;

/// A valid run of the shipped scenario, changed.
fn run(name: &str, policy: bool, changes: &[(&str, &str)]) -> Option<Emulated> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = std::fs::read_to_string(root.join("scenarios/incast-kernel.toml")).unwrap();
    let mut text = shipped.split("[sweep]").next().expect("it has a beginning").to_string();
    if !policy {
        text = text.replace("\"../policies/incast.toml\"", "\"none\"");
    }
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    valid_run(name, 1.0, &scenario_in(&root.join("scenarios"), &text))
}

/// What a run has shown.
#[derive(Debug)]
struct Shown {
    rounds: f64,
    p50_ms: f64,
    p99_ms: f64,
    dropped: u64,
}

fn shown(run: &Emulated) -> Shown {
    let extra = |name: &str| run.results.summary.extra.get(name).copied().unwrap_or(f64::NAN);
    Shown {
        rounds: extra("reads.rounds_completed"),
        p50_ms: extra("reads.round_ms_median"),
        p99_ms: extra("reads.round_ms_p99"),
        dropped: run.results.links.iter().map(|link| link.dropped).sum(),
    }
}

/// A changed run, and what it has shown.
fn see(name: &str, policy: bool, changes: &[(&str, &str)]) -> Option<Shown> {
    let shown = shown(&run(name, policy, changes)?);
    let Shown { rounds, p50_ms, p99_ms, dropped } = shown;
    println!("{name:24} {rounds} reads, median {p50_ms:.2} ms, p99 {p99_ms:.2} ms, {dropped} packets dropped");
    Some(shown)
}

/// A hundred reads with SACK, whose losses cost a round trip and no timeout; more without it, of which a few in a hundred show timeouts.
const SHORT: (&str, &str) = ("duration = \"10 s\"", "duration = \"4 s\"");
const LONG: (&str, &str) = ("duration = \"10 s\"", "duration = \"6 s\"");
const FAST: (&str, &str) = ("rto_min = \"200 ms\"", "rto_min = \"2 ms\"");

#[test]
fn a_total_of_windows_prevents_incast() {
    const DCTCP: (&str, &str) = ("cc = \"cubic\"", "cc = \"dctcp\"");
    let Some(_machine) = machine() else { return };
    let Some(slow) = see("cubic, 200 ms", false, &[SHORT]) else { return };
    let Some(dctcp) = see("dctcp, 200 ms", false, &[SHORT, DCTCP]) else { return };
    let Some(ours) = see("cubic, 200 ms, policy", true, &[SHORT]) else { return };
    let Some(both) = see("dctcp, 200 ms, policy", true, &[SHORT, DCTCP]) else { return };
    // 960 kB at 200 Mbit/s
    assert!(ours.rounds > 50.0 && ours.p50_ms > 38.0, "no more than the link carries: {ours:?}");
    assert!(ours.dropped * 10 <= slow.dropped && both.dropped <= dctcp.dropped);
    // what 15 senders lose Linux repairs without timeouts, and a pause of the machine makes a read longer by milliseconds
    let best = |of: fn(&Shown) -> f64| [&slow, &dctcp].map(of).into_iter().fold(f64::INFINITY, f64::min);
    for shown in [&ours, &both] {
        assert!(shown.p50_ms <= 1.05 * best(|shown| shown.p50_ms) && shown.p99_ms <= 1.5 * best(|shown| shown.p99_ms));
    }
}

/// Linux as it was when incast was found: without SACK it has neither RACK nor loss probes, and repairs most of such losses by timeouts.
#[test]
fn a_total_of_windows_ends_the_timeouts_of_hosts_without_sack() {
    let Some(_machine) = machine() else { return };
    let old = ("[tcp]", "[tcp]\nsack = false");
    let Some(slow) = see("no SACK, 200 ms", false, &[LONG, old]) else { return };
    let Some(fast) = see("no SACK, 2 ms", false, &[LONG, old, FAST]) else { return };
    let Some(ours) = see("no SACK, 200 ms, policy", true, &[LONG, old]) else { return };
    assert!(ours.rounds > 50.0 && ours.p50_ms > 38.0, "no more than the link carries: {ours:?}");
    assert!(slow.p99_ms > 200.0, "a timeout: {slow:?}");
    assert!(2.0 * ours.p99_ms <= slow.p99_ms, "{ours:?} {slow:?}");
    assert!(ours.dropped * 10 <= slow.dropped.min(fast.dropped));
    // a pause of the machine makes a read longer by milliseconds
    assert!(ours.p99_ms <= 1.1 * fast.p99_ms, "{ours:?} {fast:?}");
}
