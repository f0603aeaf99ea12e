//! `opentcp sweep`: one dataset of all combinations, continued by the same command.

use crate::common::Place;
use crate::outputs::SMALL;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn axes_and_seeds_give_every_combination() {
    let place = Place::with(SMALL);
    let args = [
        "sweep",
        "a.toml",
        "--axis",
        "tcp.cc=newreno,vegas",
        "--seeds",
        "2",
        "--set",
        "duration=100 ms",
        "--out",
        "set",
    ];
    let done = place.succeed(&args);
    for run in ["cc=newreno,seed=1", "cc=newreno,seed=2", "cc=vegas,seed=1", "cc=vegas,seed=2"] {
        assert!(done.stdout.contains(run) && place.join("set/runs").join(run).is_dir(), "{}", done.stdout);
    }
    assert!(place.join("set/flows/run=cc%3Dvegas,seed%3D2/part.parquet").is_file());
    let json = place.succeed(&[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 4);
    assert_eq!(json["runs"][3]["parameters"]["algorithm"], "vegas");
    assert_eq!(json["run"]["packet_hops_per_s"], 0.0, "nothing was left to do");
}

#[test]
fn a_wrong_axis_is_reported_and_makes_nothing() {
    let place = Place::with(SMALL);
    for (axis, words) in [
        ("tcp.cc", "write KEY=V1,V2"),
        ("tcp.cc=newreno,vegass", "did you mean `vegas`?"),
        ("tcp.ccc=newreno", "ccc"),
        ("duration=[\"1 s\", ", "is not a value"),
    ] {
        let failed = place.opentcp(&["sweep", "a.toml", "--axis", axis, "--out", "set"]);
        assert_eq!(failed.code, Some(2), "{axis}");
        assert!(failed.stderr.contains(words), "{axis}: {}", failed.stderr);
        assert_eq!(place.entries(), ["a.toml"]);
    }
}

#[test]
fn interrupted_it_says_how_far_it_came_and_the_same_command_does_the_rest() {
    let place = Place::with(SMALL);
    let args = ["sweep", "a.toml", "--axis", "duration=60 ms,300 s,100 s", "--jobs", "1", "--out", "set"];
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.starts_with("[1/3]")));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(
        rest.iter().any(|line| line.starts_with("interrupted: ") && line.contains("of 3 runs are done")),
        "{rest:?}"
    );
    let resumed = place.succeed(&args);
    assert!(resumed.stderr.contains("of 3 runs were done before"), "{}", resumed.stderr);
    assert!(!resumed.stderr.contains("] duration=60ms:"), "it was done: {}", resumed.stderr);
    assert!(place.join("set/runs/duration=100s").is_dir());
}
