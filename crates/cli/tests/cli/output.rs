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
fn results_of_another_content_are_not_replaced() {
    let place = Place::with(SMALL);
    let out = ["run", "a.toml", "--out", "out"];
    place.succeed(&out);
    place.succeed(&out);
    let vegas = [&out[..], &["--set", "tcp.cc=vegas"]].concat();
    let refused = place.opentcp(&vegas);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("has other results") && refused.stderr.contains("--replace"), "{}", refused.stderr);
    let scenario = || fs::read_to_string(place.join("out/scenario.toml")).unwrap();
    assert!(scenario().contains("newreno"), "they stay");
    place.succeed(&[&vegas[..], &["--replace"]].concat());
    assert!(scenario().contains("vegas"));
    place.succeed(&["run", "out/scenario.toml", "--out", "out"]);
    assert_eq!(place.entries(), ["a.toml", "out"]);
}

#[test]
fn the_default_folder_is_numbered_where_it_has_other_results() {
    let place = Place::with(SMALL);
    place.succeed(&["run", "a.toml"]);
    let vegas = ["run", "a.toml", "--set", "tcp.cc=vegas"];
    for _ in 0..2 {
        let done = place.succeed(&vegas);
        assert!(done.stderr.contains("report: opentcp-results/a-2/report.html"), "{}", done.stderr);
    }
    // two seeds are two runs in folders of their own
    let seeds = place.succeed(&["run", "a.toml", "--set", "sweep.seed=[1, 2]"]);
    assert!(seeds.stderr.contains("opentcp-results/a has other results, which stay"), "{}", seeds.stderr);
    let again = place.succeed(&["run", "a.toml", "--set", "sweep.seed=[1, 2]"]);
    assert!(again.stderr.contains("report: opentcp-results/a-3/report.html"), "{}", again.stderr);
    let folders = ["a", "a-2", "a-3"].map(|name| place.join("opentcp-results").join(name).is_dir());
    assert_eq!((folders, fs::read_dir(place.join("opentcp-results")).unwrap().count()), ([true; 3], 3));
}

#[test]
fn what_changes_nothing_is_said_with_its_reason() {
    let place = Place::with(&SMALL.replace("[[traffic]]\n", "[[traffic]]\ncc = \"newreno\"\n"));
    let done = place.succeed(&["run", "a.toml", "--set", "tcp.cc=vegas"]);
    assert!(
        done.stderr.contains("note: tcp.cc=vegas changes nothing: each traffic entry names its own"),
        "{}",
        done.stderr
    );
    let random = place.succeed(&["run", "a.toml", "--set", "sweep.seed=[1, 2]"]);
    assert!(!random.stderr.contains("note: "), "{}", random.stderr);
    let fixed = SMALL.replace(
        "random_pairs = { flows = 4, on_off = { rate = \"20 Mbit/s\", on = \"100 ms\", off = \"50 ms\" } }",
        "bulk = { from = \"left1\", to = \"right1\" }",
    );
    let place = Place::with(&fixed);
    for command in ["run", "sweep"] {
        let done = place.succeed(&[command, "a.toml", "--set", "sweep.seed=[1, 2]"]);
        assert!(done.stderr.contains("note: the seeds 1, 2 gave the same numbers: "), "{command}: {}", done.stderr);
    }
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
