//! An enforcer in a simulated network: what a flow through it gains, and what others lose.

use crate::support::run;
use results::RunResults;
use testkit::LossyDownload;

/// Seconds until the only flow had arrived.
fn seconds(results: &RunResults) -> f64 {
    results.flows[0].fct_ns().expect("it arrives") as f64 / 1e9
}

/// Means over seeds of 10 MB with 0.3 % of losses.
fn mean(cc: &str, enforced_at: Option<&str>) -> f64 {
    const SEEDS: u64 = 8;
    let download =
        |seed| run(&LossyDownload { seed, cc, bytes: "10 MB", enforced_at, ..LossyDownload::default() }.text());
    (1..=SEEDS).map(|seed| seconds(&download(seed))).sum::<f64>() / SEEDS as f64
}

#[test]
fn bbr_enforced_over_a_cubic_sender_keeps_the_gain_of_bbr() {
    let (cubic, bbr) = (mean("cubic", None), mean("bbr", None));
    for node in ["left1", "s1"] {
        let enforced = mean("cubic", Some(node));
        let kept = (cubic - enforced) / (cubic - bbr);
        println!("cubic {cubic:.3} s, bbr {bbr:.3} s, enforced at {node} {enforced:.3} s: {kept:.3} of the gain kept");
        assert!(bbr < 0.95 * cubic, "there is something to win: {cubic} {bbr}");
        assert!(kept >= 0.9, "at {node}: cubic {cubic}, bbr {bbr}, enforced {enforced}: {kept}");
    }
}

#[test]
fn a_flow_through_two_enforcers_has_a_row_of_each() {
    let results = run(r#"
duration = "2 s"
[network]
topology = { dumbbell = { pairs = 1 } }
rate = "100 Mbit/s"
delay = "1 ms"
[tcp]
[[enforcer]]
at = "s1"
rule = [{ cc = "bbr" }]
[[enforcer]]
at = "s2"
rule = [{ cc = "vegas" }]
[[traffic]]
bulk = { from = "left1", to = "right1", bytes = "1 MB" }
"#);
    let rows: Vec<_> = results.enforcer.iter().map(|row| (&*row.node, &*row.algorithm, row.flow)).collect();
    assert_eq!(rows, [("s1", "bbr", Some(0)), ("s2", "vegas", Some(0))]);
}
