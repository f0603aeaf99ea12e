//! Ctrl-C: the runs end, and nothing is left half-written; a closed stderr: they go on.

use crate::common::Place;
use crate::outputs::SMALL;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// A sweep with one short run, whose line on stderr shows that all have started, and long ones that no test waits for.
fn endless() -> String {
    let scenario = SMALL.replace("duration = \"1 s\"\n", "").replace("links = \"50 ms\"\ncwnd = \"50 ms\"\n", "");
    format!("{scenario}[sweep]\nduration = [\"10 ms\", \"8000000 s\", \"8000000 s\"]\n")
}

fn interrupted(args: &[&str], scenario: &str, signal: &str) {
    let place = Place::with(scenario);
    let mut child = place.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("[1/"));
    assert!(first.is_some(), "no run came to an end");
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line == "interrupted: nothing was written"), "{rest:?}");
    assert_eq!(place.entries(), ["a.toml"], "something was left behind");
}

#[test]
fn ctrl_c_ends_a_sweep_and_leaves_nothing() {
    interrupted(&["run", "a.toml", "--jobs", "2", "--out", "deep/out"], &endless(), "-INT");
}

#[test]
fn a_request_to_terminate_does_the_same() {
    interrupted(&["run", "a.toml", "--jobs", "1"], &endless(), "-TERM");
}

#[test]
fn an_earlier_runs_results_outlive_an_interrupted_one() {
    let place = Place::with(SMALL);
    place.succeed(&["run", "a.toml", "--out", "out"]);
    place.write("long.toml", &endless());
    let before = std::fs::read(place.join("out/summary.json")).unwrap();
    let args = ["run", "long.toml", "--out", "out", "--replace", "--jobs", "1"];
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.starts_with("[1/")));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read(place.join("out/summary.json")).unwrap(), before);
    assert_eq!(place.entries(), ["a.toml", "long.toml", "out"]);
}

#[test]
fn a_run_goes_on_where_nobody_reads_its_messages() {
    let place = Place::with(SMALL);
    let mut child = place.command(&["run", "a.toml", "--out", "out"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(place.join("out/summary.json").exists());
}
