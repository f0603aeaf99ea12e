//! The demonstration without real kernels.

use crate::common::Place;
use std::fs;
use std::process::{Command, Output};

/// Runs it without the capabilities that emulation needs.
fn without_rights(place: &Place, arguments: &[&str]) -> Output {
    let mut command = place.command(arguments);
    if nix::unistd::geteuid().is_root() {
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set=-sys_admin,-net_admin,-bpf", "--inh-caps=-all"]);
        without.arg(command.get_program()).args(command.get_args()).current_dir(place.path());
        command = without;
    }
    command.output().expect("setpriv is a part of Debian's util-linux")
}

#[test]
fn without_rights_nothing_is_emulated_more_slowly() {
    let place = Place::new();
    let output = without_rights(&place, &["demo", "--slower", "auto", "--out", "o"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("--slower needs real kernels: "), "{stderr}");
    assert!(!place.join("o").exists(), "nothing is written");
}

#[test]
fn without_rights_the_demonstration_is_simulated_and_labelled_so() {
    let place = Place::new();
    let output = without_rights(&place, &["demo", "--json", "--out", "o"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.starts_with("SIMULATED, not on real kernels: "), "{stderr}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["backend"], "simulated");
    let findings = json["findings"].as_array().unwrap();
    assert!(
        findings[0].as_str().unwrap().contains("`sudo opentcp demo` on Linux with BPF measures those"),
        "{findings:?}"
    );
    let report = fs::read_to_string(place.join("o/report.html")).unwrap();
    assert!(report.contains("<title>SIMULATED: "), "{}", &report[..500]);
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        let turns = run["turns"].as_array().unwrap();
        let withheld: Vec<f64> =
            turns.iter().filter(|turn| turn["hosts"] == 0).map(|turn| turn["at_s"].as_f64().unwrap()).collect();
        // at first nothing is known; the congestion episodes are from 7.5 to 10.5 s and from 17.5 to 20.5 s
        assert!(withheld[0] < 1.0, "{withheld:?}");
        for epoch in [10.0, 20.0] {
            assert!(withheld.contains(&epoch), "{withheld:?}");
        }
        assert!(
            withheld.iter().all(|at| *at < 1.0 || (9.0..13.0).contains(at) || (19.0..23.0).contains(at)),
            "{withheld:?}"
        );
    }
    // by how much the policy helps is for docs/validation/policy-loop.md: it differs from seed to seed
    for run in runs {
        let [low, value, high] = ["low", "value", "high"].map(|key| run["p99_reduction"][key].as_f64().unwrap());
        assert!(low <= value && value <= high, "{}", run["p99_reduction"]);
        // of the simulated draws, seed 1 is this very run
        let draws: Vec<f64> = run["draws"].as_array().unwrap().iter().map(|draw| draw.as_f64().unwrap()).collect();
        assert!(draws.len() == 20 && draws.is_sorted() && draws.contains(&value), "{draws:?}, {value}");
        for group in ["control", "treated"] {
            assert!(run[group]["flows"].as_u64().unwrap() > 5000, "{}", run[group]);
        }
    }
}
