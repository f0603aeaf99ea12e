//! Sequence parity, live: the running kernel's TCP calls the hooks of an algorithm as the simulator's TCP does.
//!
//! Seventeen scripts (`sequence_parity/script.rs`: losses, marks, reordering, idle times, a bottleneck) are played to a kernel socket
//! by a peer that the test implements. The algorithm's tracing build records the hooks' calls. What
//! arrived at the kernel is then replayed to a `tcp::Endpoint` with the native build, whose hooks must come in the
//! same order with the same counters.

mod packet;
#[path = "../../../../tcp/tests/tcp/peer.rs"]
#[allow(dead_code, reason = "the scripts end before the FINs")]
mod peer;
mod recorded;
mod row;
mod script;
mod simulated;

use crate::support;
use congestion::Algorithm;
use congestion::replay::{Call, Event};
use congestion::replay_watch::{Missing, Watch};
use kernel::Kernel;
use recorded::{Bench, Recording};
use row::Row;
use script::Script;
use std::cell::RefCell;
use std::fmt::Write as _;

/// Times that a script is played again when the kernel has skipped a hook, or the machine stalled.
const TRIES: usize = 40;

/// Repetitions of a script in which a timer and an ACK come within microseconds of each other: their order in
/// both hosts is chance. Only a paced sender has such timers, and a real difference shows every time.
fn chances(algorithm: &str) -> usize {
    if algorithm == "bbr" { 5 } else { 1 }
}

/// How far cwnd may be from the kernel's, segments.
fn band(algorithm: &str, cwnd: u32) -> u32 {
    match algorithm {
        "cubic" => 1,
        "bbr" => (cwnd / 20).max(1),
        _ => 0,
    }
}

/// The first difference.
fn difference(algorithm: &str, linux: &[Row], ours: &[Row]) -> Result<(), String> {
    for i in 0..linux.len().max(ours.len()) {
        let what = match (linux.get(i), ours.get(i)) {
            (Some(linux), Some(ours)) => {
                let near = |a: u32, b: u32| a.abs_diff(b) <= band(algorithm, a);
                if (linux.hook, linux.argument) != (ours.hook, ours.argument) {
                    "another call"
                } else if linux.counters != ours.counters || linux.state != ours.state {
                    "other counters"
                } else if !near(linux.cwnd, ours.cwnd) || !near(linux.ssthresh, ours.ssthresh) {
                    "another window"
                } else {
                    continue;
                }
            }
            (None, _) => "a call more than Linux's",
            (_, None) => "a call less than Linux's",
        };
        let mut text = format!("row {i}: {what}\n");
        for (side, rows) in [("Linux", linux), ("the endpoint", ours)] {
            writeln!(text, "{side}:").expect("writing to a string");
            for (j, row) in rows.iter().enumerate().skip(i.saturating_sub(6)).take(10) {
                writeln!(text, "{} {row}", if i == j { '>' } else { ' ' }).expect("writing to a string");
            }
        }
        return Err(text);
    }
    Ok(())
}

/// Plays a script to the kernel until none of its hooks was skipped.
fn record(
    bench: &mut Bench,
    script: &Script,
    kernel: &Kernel,
    algorithm: &'static Algorithm,
) -> Result<(Recording, Vec<Row>), String> {
    for _ in 0..TRIES {
        let trace = kernel.trace(algorithm.name()).map_err(|error| error.to_string())?;
        let seen = RefCell::new((Watch::new(algorithm.ops()), Vec::<Call>::new()));
        let reader = trace.reader(|bytes| {
            let (watch, calls) = &mut *seen.borrow_mut();
            let event = Event::parse(bytes).expect("a record");
            watch.see(&event);
            if let Event::Call(call) = event {
                calls.push(*call);
            }
        });
        let (mut recording, socket) = bench.run(script, trace.name())?;
        reader.and_then(|reader| reader.drain()).map_err(|error| error.to_string())?;
        drop(socket);
        let (watch, calls) = &*seen.borrow();
        let (number, name, missing) = (script.number, algorithm.name(), watch.missing());
        if missing != Missing::default() {
            println!("script {number}, {name}: the kernel skipped hooks ({missing:?}); again");
        } else if recording.stalled {
            println!("script {number}, {name}: the machine stalled; again");
        } else {
            recording.correct(calls);
            return Ok((recording, row::of_kernel(calls)));
        }
    }
    Err(format!("the kernel skipped hooks, or the machine stalled, {TRIES} times"))
}

fn parity(name: &str) {
    let Some(kernel) = support::quiet_kernel() else { return };
    let algorithm = Algorithm::named(name).expect("it is built in");
    let mut bench = Bench::new();
    let mut failures = String::new();
    for script in script::all() {
        let mut once = || {
            let (recording, linux) = record(&mut bench, &script, &kernel, algorithm)?;
            let ours = simulated::run(&script, &recording, algorithm)?;
            difference(name, &linux, &ours).map(|()| linux.len())
        };
        let mut result = once();
        for _ in 1..chances(name) {
            let Err(error) = &result else { break };
            println!("script {}, {name}: {}; again", script.number, error.lines().next().unwrap_or_default());
            result = once();
        }
        match result {
            Ok(rows) => println!("script {}, {name}: {rows} calls alike", script.number),
            Err(error) => writeln!(failures, "script {}, {name}: {error}", script.number).expect("writing to a string"),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn the_comparison_notices_every_column() {
    let row = Row {
        hook: congestion::Hook::CongAvoid,
        argument: 1,
        cwnd: 40,
        ssthresh: 20,
        counters: [10, 3, 2, 1, 100],
        state: 0,
        at_us: 0,
    };
    let rows = vec![row; 3];
    let changes: [fn(&mut Row); 10] = [
        |row| row.hook = congestion::Hook::PktsAcked,
        |row| row.argument += 1,
        |row| row.cwnd += 3,
        |row| row.ssthresh -= 3,
        |row| row.counters[0] += 1,
        |row| row.counters[1] += 1,
        |row| row.counters[2] += 1,
        |row| row.counters[3] += 1,
        |row| row.counters[4] += 1,
        |row| row.state += 1,
    ];
    for name in ["newreno", "cubic", "dctcp", "bbr"] {
        assert_eq!(difference(name, &rows, &rows), Ok(()));
        assert!(difference(name, &rows, &rows[1..]).is_err());
        assert!(difference(name, &rows[1..], &rows).is_err());
        for change in changes {
            let mut changed = rows.clone();
            change(&mut changed[1]);
            assert!(difference(name, &rows, &changed).is_err());
        }
    }
    // the bands: 0 for newreno and dctcp, 1 for cubic, 5 % of 40 for bbr
    for (name, off, alike) in
        [("newreno", 1, false), ("dctcp", 1, false), ("cubic", 1, true), ("cubic", 2, false), ("bbr", 2, true)]
    {
        let mut changed = rows.clone();
        changed[1].cwnd += off;
        assert_eq!(difference(name, &rows, &changed).is_ok(), alike, "{name} {off}");
    }
}

#[test]
fn newreno_is_called_alike() {
    parity("newreno");
}

#[test]
fn cubic_is_called_alike() {
    parity("cubic");
}

#[test]
fn dctcp_is_called_alike() {
    parity("dctcp");
}

#[test]
fn bbr_is_called_alike() {
    parity("bbr");
}
