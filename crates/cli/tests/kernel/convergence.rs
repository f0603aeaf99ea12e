//! `opentcp reproduce dctcp`, its Figure 16, as root on the running kernel.

use crate::common::Place;
use serde_json::Value;
use std::fs::read_to_string;
use testkit::{Machine, or_skip};

/// The machine, for one real-time test at a time; or a printed reason why the test is skipped.
fn machine() -> Option<Machine> {
    or_skip(kernel::Kernel::probe())?;
    or_skip(emu::hosts::Host::new("probe", &emu::hosts::HostSettings::new(emu::address::address(0))))?;
    Some(Machine::take())
}

#[test]
fn kernels_converge_in_stages_of_a_second() {
    let Some(_machine) = machine() else { return };
    let place = Place::new();
    let fixed =
        ["reproduce", "dctcp", "--backend", "kernel", "--figure", "16", "--stage", "1 s", "--json", "--out", "out"];
    let short = ["--set", "duration=1 s", "--set", "measure.warmup=500 ms"];
    let done = place.succeed(&[&fixed[..], &short].concat());
    let output: Value = serde_json::from_str(&done.stdout).unwrap();
    let quantity = "Jain index, stage 5 (5 flows)";
    let mut rows = output["comparisons"].as_array().unwrap().iter();
    let jain = rows.find(|row| row["case"] == "kernel/100M/dctcp" && row["quantity"] == quantity).unwrap();
    // a run that the machine distorted is reported, not judged
    if jain["note"].as_str().unwrap().contains("NOT VALID") {
        let findings = output["studies"][0]["findings"].to_string();
        assert!(findings.contains("NOT VALID: Figure 16 (kernel/100M/dctcp)"), "{findings}");
    } else {
        assert!(jain["ours"].as_f64().unwrap() >= 0.9, "{jain}");
    }
    let run: Value = serde_json::from_str(&read_to_string(place.join("out/run.json")).unwrap()).unwrap();
    assert_eq!(run["emulations"].as_array().unwrap().len(), 10);
    assert_eq!(kernel::pinned(), [""; 0], "nothing stays loaded");
}
