//! What `opentcp init` writes runs as it is.

use crate::common::Place;
use std::fs;

#[test]
fn a_new_scenario_runs_as_it_is() {
    let place = Place::new();
    let done = place.succeed(&["init", "scenario", "first"]);
    assert!(done.stdout.starts_with("opentcp dash first.toml\nopentcp run first.toml\n"), "{}", done.stdout);
    assert_eq!(place.entries(), ["first.toml"]);
    place.succeed(&["scenario", "check", "first.toml"]);
    place.succeed(&["run", "first.toml"]);
    assert!(place.join("opentcp-results/first/report.html").exists());
}

#[test]
fn a_new_policy_acts_on_the_network_beside_it() {
    let place = Place::new();
    place.succeed(&["init", "policy", "calm"]);
    assert_eq!(place.entries(), ["calm-network.toml", "calm.toml"]);
    place.succeed(&["policy", "check", "calm.toml"]);
    let tried =
        place.succeed(&["policy", "try", "calm.toml", "--scenario", "calm-network.toml", "--seeds", "5", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&tried.stdout).unwrap();
    assert_eq!((&said["acted"], &said["answer"]), (&5.into(), &"helps".into()), "{said}");
}

#[test]
fn a_new_algorithm_passes_the_check_and_is_compared_with_newreno_in_one_command() {
    let place = Place::new();
    place.succeed(&["init", "algorithm", "mine"]);
    assert_eq!(place.entries(), ["mine.c", "mine.toml"]);
    place.succeed(&["cc", "check", "mine.c"]);
    let done = place.succeed(&["run", "mine.toml", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let runs = said["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4, "{said}");
    // payload of 20 Mbit/s: 1448 of 1538 bytes
    for run in runs {
        let goodput = run["summary"]["goodput_bps"].as_f64().unwrap();
        assert!(goodput > 0.95 * 20e6 * 1448.0 / 1538.0, "{run}");
    }
    let drops = |i: usize| runs[i]["summary"]["drops_at_switches"].as_u64().unwrap();
    assert!(drops(0) != drops(3), "both of the user's file are not both of NewReno: {said}");
}

#[test]
fn nothing_is_ever_overwritten() {
    let place = Place::new();
    place.write("mine.toml", "mine");
    for args in [["init", "algorithm", "mine"], ["init", "scenario", "mine"], ["init", "policy", "mine"]] {
        let done = place.opentcp(&args);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains("mine.toml already exists"), "{}", done.stderr);
    }
    assert_eq!(place.entries(), ["mine.toml"]);
    assert_eq!(fs::read_to_string(place.join("mine.toml")).unwrap(), "mine");
}

#[test]
fn a_name_that_cannot_be_one_is_refused() {
    let place = Place::new();
    for (kind, name, words) in [
        ("algorithm", "Mine", "lower-case letters"),
        ("algorithm", "a_name_too_long", "at most 12 characters"),
        ("algorithm", "cubic", "is a built-in algorithm"),
        ("scenario", "../a", "letters, digits"),
        ("policy", "", "letters, digits"),
    ] {
        let done = place.opentcp(&["init", kind, name]);
        assert_eq!(done.code, Some(2), "{name}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{name}: {}", done.stderr);
    }
    assert!(place.entries().is_empty());
}
