//! `opentcp reproduce dctcp`: the properties that programs may rely on, in the simulator.

use crate::common::{Done, Place};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::read_to_string;

/// Short enough for a test, long enough for slow start to end.
const SHORT: [&str; 8] =
    ["--stage", "600 ms", "--set", "duration=1 s", "--set", "measure.warmup=500 ms", "--jobs", "2"];

fn output(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stdout))
}

fn rows(output: &Value) -> &Vec<Value> {
    output["comparisons"].as_array().unwrap()
}

/// The row of a case's quantity.
fn row<'a>(output: &'a Value, case: &str, quantity: &str) -> &'a Value {
    let found = rows(output).iter().find(|row| row["case"] == case && row["quantity"] == quantity);
    found.unwrap_or_else(|| panic!("no {quantity} of {case}"))
}

fn close(value: &Value, expected: f64, by: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() <= by)
}

#[test]
fn the_simulator_has_every_figure() {
    let place = Place::new();
    let args = [&["reproduce", "dctcp", "--backend", "sim", "--json", "--out", "out"], &SHORT[..]].concat();
    let output = output(&place.succeed(&args));
    for row in rows(&output) {
        let mut keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["case", "figure", "note", "ours", "paper", "quantity", "unit"]);
        assert!(row["ours"].is_number() && row["case"].as_str().unwrap().starts_with("sim/"), "{row}");
    }
    let cases: BTreeSet<&str> = rows(&output).iter().map(|row| row["case"].as_str().unwrap()).collect();
    for setting in ["100M", "1G"] {
        for variant in ["dctcp", "newreno", "cubic", "N=2", "N=10", "N=40"] {
            assert!(cases.contains(format!("sim/{setting}/{variant}").as_str()), "{setting} {variant}: {cases:?}");
        }
    }
    for (n, q_max, amplitude) in [(2, 42.0, 11.01), (10, 50.0, 24.63), (40, 80.0, 49.25)] {
        let case = format!("sim/10G/N={n}");
        assert_eq!(row(&output, &case, "Q_max")["figure"], "Figure 12");
        assert!(close(&row(&output, &case, "Q_max")["paper"], q_max, 1e-9), "{case}");
        assert!(close(&row(&output, &case, "A")["paper"], amplitude, 0.01), "{}", row(&output, &case, "A"));
    }
    assert!(close(&row(&output, "sim/10G/N=2", "Q_max")["ours"], 42.0, 4.2), "two flows follow the theory");
    let stalled = row(&output, "sim/100M/N=40", "Q_max")["ours"].as_f64().unwrap();
    assert!(stalled > 66.0, "forty windows of two segments cannot stay under 60 packets: {stalled}");
    assert!(close(&row(&output, "sim/100M/dctcp", "Jain index, stage 5 (5 flows)")["ours"], 1.0, 0.1));
    assert!(row(&output, "sim/100M/newreno N=20", "coefficient of variation")["ours"].is_number());
    let report = read_to_string(place.join("out/report.html")).unwrap();
    for heading in ["Figure 1: the queue over time", "Figure 12: the sawtooth", "Figure 16: convergence", "dashed"] {
        assert!(report.contains(heading), "{heading}");
    }
    assert!(!report.contains("http://") && !report.contains("https://"), "the report loads nothing from elsewhere");
    for file in ["summary.json", "run.json", "figure12-sim-10G-N-2/link_series.parquet"] {
        assert!(place.join("out").join(file).is_file(), "{file}");
    }
}

#[test]
fn the_text_compares_theory_and_simulator_and_has_findings() {
    let args = [&["reproduce", "dctcp", "--backend", "sim", "--figure", "12"], &SHORT[..]].concat();
    let done = Place::new().succeed(&args);
    assert!(done.stdout.starts_with("\nFigure 12\nlinks"), "{}", done.stdout);
    let unbroken = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["theory", "simulator", "Q_max", "the equations do not hold here, as expected: 40 windows"] {
        assert!(unbroken.contains(words), "no {words:?} in\n{}", done.stdout);
    }
    assert!(!done.stdout.contains("Figure 1\n") && !done.stdout.contains("Figure 16"), "{}", done.stdout);
}

#[test]
fn bad_requests_are_refused() {
    let place = Place::new();
    let refused = |args: &[&str], part: &str| {
        let done = place.opentcp(&[&["reproduce"], args].concat());
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(part), "{args:?}: {}", done.stderr);
        assert_eq!(place.entries(), [""; 0], "{args:?} left something behind");
    };
    refused(&["dctcp", "--figure", "2"], "the figures 1, 12 and 16");
    refused(&["dctcp", "--stage", "5"], "has no unit");
    refused(&["dctcp", "--stage", "1 ms"], "a stage lasts");
    refused(&["dctcp", "--backend", "sim", "--set", "network.rate=1 Gbit/s"], "sets `network.rate` itself");
    refused(&["dctcp", "--backend", "sim", "--set", "traffic.flows.start=1 s"], "sets `traffic.flows.start` itself");
    refused(&["dctcp", "--backend", "sim", "--set", "duration=1 s"], "warmup");
    refused(&["dctcp", "--backend", "sim", "--seeds", "2", "--set", "seed=3"], "keep one of the two");
    refused(&["cfi16", "--figure", "12"], "dctcp");
}
