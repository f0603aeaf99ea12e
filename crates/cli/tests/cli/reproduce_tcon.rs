//! `opentcp reproduce tcon`: the properties that programs may rely on.

use crate::common::Place;
use serde_json::Value;

#[test]
fn enforcing_keeps_the_gain_and_says_so() {
    let place = Place::new();
    let done = place.succeed(&["reproduce", "tcon", "--backend", "sim", "--downloads", "3", "--json", "--out", "out"]);
    let output: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let rows = output["comparisons"].as_array().expect("a list");
    let row = |case: &str, quantity: &str| {
        let found = rows.iter().find(|row| row["case"] == case && row["quantity"] == quantity);
        found.unwrap_or_else(|| panic!("no {quantity} of {case}"))
    };
    let mean = row("wan-shanghai/10MB/cubic", "completion time, mean");
    assert_eq!(mean["paper"], 10.0857);
    for path in ["wan-shanghai", "wan-oregon"] {
        // without losses BBR and the enforced flow take as long as the path's rate dictates
        let over =
            row(&format!("{path}/10MB/tcon"), "mean over the native algorithm's")["ours"].as_f64().expect("a number");
        assert!((0.9..1.05).contains(&over), "{path}: {over}");
        let buffered = row(&format!("{path}/101MB/tcon"), "buffered packets, median");
        assert!(
            buffered["paper"].is_number() && buffered["ours"].as_f64().is_some_and(|kept| kept > 1.0),
            "{buffered}"
        );
    }
    // the paper's times, the largest file first
    let first = row("wan-oregon/tcon", "completion time");
    assert!(first["note"].as_str().is_some_and(|note| note.starts_with("101MB, mean of 3")), "{first}");
    let of_10mb = rows.iter().filter(|row| row["case"] == "wan-oregon/tcon" && row["paper"] == 38.831);
    assert_eq!(of_10mb.count(), 1);
    for beyond in ["vegas", "SACK off"] {
        let over =
            row(&format!("wan-shanghai/10MB/{beyond}/tcon"), "mean over the native algorithm's")["ours"].as_f64();
        assert!(over.is_some_and(|over| (0.4..1.1).contains(&over)), "{beyond}: {over:?}");
    }
    let findings = output["studies"][0]["findings"].as_array().expect("a list");
    assert!(
        findings.iter().all(|finding| !finding.as_str().unwrap_or_default().contains("so these times are not valid")),
        "{findings:?}"
    );
    assert!(place.path().join("out/report.html").exists());
}
