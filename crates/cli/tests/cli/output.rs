//! The output of a run.

use crate::common::Place;
use crate::outputs::SMALL;
use serde_json::Value;
use std::fs;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn a_run_prints_a_table_and_the_path_of_its_report() {
    let place = Place::with(SMALL);
    let done = place.succeed(&["run", "a.toml"]);
    assert!(done.stderr.contains("report: opentcp-results/a/report.html"), "{}", done.stderr);
    let mut lines = done.stdout.lines();
    assert!(lines.next().unwrap().starts_with("run"), "{}", done.stdout);
    assert!(lines.next().unwrap().starts_with('a'), "{}", done.stdout);
    let report = fs::read_to_string(place.join("opentcp-results/a/report.html")).unwrap();
    assert!(report.contains("newreno"), "the report names the algorithm");
}

#[test]
fn json_is_one_object_with_the_numbers_of_each_run() {
    let place = Place::with(&format!("{SMALL}[sweep]\n\"tcp.cc\" = [\"vegas\", \"cubic\"]\n"));
    let done = place.succeed(&["run", "a.toml", "--json", "--out", "out"]);
    let output = json(&done.stdout);
    assert_eq!(output["out"], "out");
    assert_eq!(output["report"], "out/report.html");
    let runs = output["runs"].as_array().unwrap();
    let algorithms: Vec<&Value> = runs.iter().map(|run| &run["parameters"]["algorithm"]).collect();
    assert_eq!(algorithms, ["vegas", "cubic"]);
    assert!(runs.iter().all(|run| run["summary"]["packet_hops"].as_u64().unwrap() > 1000));
    assert!(output["run"]["packet_hops_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(output["run"], json(&fs::read_to_string(place.join("out/run.json")).unwrap()));
}

#[test]
fn speed_is_in_run_json_and_nowhere_else() {
    let place = Place::with(SMALL);
    place.succeed(&["run", "a.toml", "--out", "out", "--jobs", "1"]);
    let run = json(&fs::read_to_string(place.join("out/run.json")).unwrap());
    assert_eq!(run["jobs"], 1);
    assert!(run["wall_s"].as_f64().unwrap() > 0.0);
    assert_eq!(run["checks"][0], "packet conservation on every link");
    let summary = fs::read_to_string(place.join("out/summary.json")).unwrap();
    assert!(!summary.contains("wall") && !summary.contains(&place.path().display().to_string()), "{summary}");
}

#[test]
fn a_second_run_replaces_the_first() {
    let place = Place::with(SMALL);
    place.succeed(&["run", "a.toml", "--out", "out"]);
    place.succeed(&["run", "a.toml", "--out", "out", "--set", "tcp.cc=vegas"]);
    assert!(fs::read_to_string(place.join("out/scenario.toml")).unwrap().contains("vegas"));
    assert_eq!(place.entries(), ["a.toml", "out"]);
}

#[test]
fn help_shows_examples_and_exit_codes() {
    let place = Place::new();
    for command in [vec!["run"], vec!["reproduce"], vec!["cc"], vec!["cc", "list"], vec!["cc", "check"]] {
        let done = place.succeed(&[&command[..], &["--help"]].concat());
        assert!(done.stdout.contains("Examples:\n  opentcp "), "{command:?}: {}", done.stdout);
    }
    let done = place.succeed(&["--help"]);
    assert!(done.stdout.contains("2 bad input"), "{}", done.stdout);
}
