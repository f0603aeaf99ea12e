//! Algorithms written for libbpf, unmodified, through the program: checked, and run in scenarios.

use crate::common::Place;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../congestion/tests/foreign").join(name)
}

/// A scenario with the algorithm of a file.
fn place(scenario: &str, algorithm: &str) -> Place {
    let place = Place::with(scenario);
    place.write("theirs.c", algorithm);
    place
}

/// Runs a scenario with the algorithm of a file; returns the run's summary.
fn run(scenario: &str, algorithm: &str) -> serde_json::Value {
    let done = place(scenario, algorithm).succeed(&["run", "a.toml", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    said["runs"][0]["summary"].clone()
}

fn number(summary: &serde_json::Value, key: &str) -> f64 {
    summary[key].as_f64().unwrap_or_else(|| panic!("{key} is a number in {summary}"))
}

const LOSS: &str = r#"
duration = "20 s"
[network]
topology = { dumbbell = { pairs = 1 } }
rate = "100 Mbit/s"
delay = "1 ms"
[network.tier.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { drop_tail = { packets = 50 } }
[[traffic]]
name = "one"
bulk = { from = "left1", to = "right1" }
cc = "theirs.c"
[measure]
warmup = "2 s"
"#;

const MARKS: &str = r#"
duration = "4 s"
[network]
topology = { star = { hosts = 3 } }
rate = "100 Mbit/s"
delay = "125 us"
queue = { threshold_ecn = { mark_packets = 20, packets = 120 } }
[[traffic]]
name = "first"
bulk = { from = "h1", to = "h3" }
cc = "theirs.c"
[[traffic]]
name = "second"
bulk = { from = "h2", to = "h3" }
cc = "theirs.c"
[measure]
warmup = "1 s"
"#;

#[test]
fn cubic_fills_a_link_and_reduces_on_losses() {
    let source = fs::read_to_string(fixture("cubic.c")).expect("readable");
    let summary = run(LOSS, &source);
    // payload of 10 Mbit/s: 1448 of 1538 bytes
    assert!(number(&summary, "goodput_bps") > 0.98 * 10e6 * 1448.0 / 1538.0, "{summary}");
    let drops = number(&summary, "drops_at_switches");
    assert!((2.0..100.0).contains(&drops), "the queue overflows occasionally: {summary}");
    assert!(number(&summary, "rtos") == 0.0, "{summary}");
    // With a smaller reduction it probes, and so loses, more often: so it is this file that runs.
    let gentle = run(LOSS, &source.replace("(__u64)cwnd * 7 / 10", "(__u64)cwnd * 19 / 20"));
    assert!(number(&gentle, "drops_at_switches") > 1.5 * drops, "{gentle}");
}

#[test]
fn dctcp_fills_a_link_and_keeps_the_queue_at_the_marking_threshold() {
    let source = fs::read_to_string(fixture("dctcp.c")).expect("readable");
    let summary = run(MARKS, &source);
    assert!(number(&summary, "goodput_bps") > 0.99 * 100e6 * 1448.0 / 1538.0, "{summary}");
    assert!(number(&summary, "marks") > 100.0, "{summary}");
    assert!(number(&summary, "drops_at_switches") == 0.0, "{summary}");
    // a mark at 20 takes a round trip to arrive, in which both flows grow by a segment
    assert!((20.0..45.0).contains(&number(&summary, "max_switch_queue_packets")), "{summary}");
    // Without reductions by marks the queue stays above the threshold: so it is this file that runs.
    let reduced = "max(tp->snd_cwnd - (__u32)(((__u64)tp->snd_cwnd * ca->alpha) >> 17), 2u)";
    assert!(source.contains(reduced), "the fixture's reduction");
    let deaf = run(MARKS, &source.replace(reduced, "max(tp->snd_cwnd, 2u)"));
    assert!(number(&deaf, "marks") > 3.0 * number(&summary, "marks"), "{deaf}");
}

#[test]
fn all_pass_the_check() {
    let place = Place::new();
    for file in ["cubic.c", "dctcp.c", "before_6_10.c"] {
        let said = place.succeed(&["cc", "check", fixture(file).to_str().expect("UTF-8")]).stdout;
        for step in ["native build", "BPF build", "invariants"] {
            assert!(said.lines().any(|line| line.starts_with(step) && line.contains("  ok  ")), "{step}: {said}");
        }
    }
}

#[test]
fn a_field_that_is_not_supported_is_bad_input() {
    let cubic = fs::read_to_string(fixture("cubic.c")).expect("readable");
    let place = place(LOSS, &cubic.replace("tp->snd_cwnd, acked)", "tp->prr_out, acked)"));
    for args in [["cc", "check", "theirs.c"], ["run", "a.toml", "--json"]] {
        let done = place.opentcp(&args);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, Some(2), "{said}");
        assert!(said.contains("struct tcp_sock has no field prr_out"), "{said}");
    }
}
