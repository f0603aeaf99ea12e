//! An enforcer in a simulated network: what a flow through it gains, and what others lose.

mod support;

use results::RunResults;
use support::run;

/// 10 MB from `left1` to `right1` over 10 Mbit/s and 30 ms with 0.3 % of losses and 50 packets of queue.
fn download(cc: &str, enforcer: &str, seed: u64) -> RunResults {
    run(&format!(
        r#"
        duration = "60 s"
        seed = {seed}
        [network]
        topology = {{ dumbbell = {{ pairs = 1 }} }}
        rate = "1 Gbit/s"
        delay = "50 us"
        [network.tier.bottleneck]
        rate = "10 Mbit/s"
        delay = "14.9 ms"
        queue = {{ drop_tail = {{ packets = 50 }} }}
        [[network.loss]]
        link = "s1->s2"
        probability = "0.3 %"
        [tcp]
        cc = "{cc}"
        [[traffic]]
        bulk = {{ from = "left1", to = "right1", bytes = "10 MB" }}
        {enforcer}
        "#
    ))
}

fn at(node: &str) -> String {
    format!("[enforcer]\nat = \"{node}\"\n[[enforcer.rule]]\ncc = \"bbr\"\n")
}

/// Seconds until the only flow had arrived.
fn seconds(results: &RunResults) -> f64 {
    results.flows[0].fct_ns().expect("it arrives") as f64 / 1e9
}

/// Means over seeds.
fn mean(cc: &str, enforcer: &str) -> f64 {
    const SEEDS: u64 = 8;
    (1..=SEEDS).map(|seed| seconds(&download(cc, enforcer, seed))).sum::<f64>() / SEEDS as f64
}

#[test]
fn bbr_enforced_over_a_cubic_sender_keeps_the_gain_of_bbr() {
    let (cubic, bbr) = (mean("cubic", ""), mean("bbr", ""));
    for node in ["left1", "s1"] {
        let enforced = mean("cubic", &at(node));
        let kept = (cubic - enforced) / (cubic - bbr);
        println!("cubic {cubic:.3} s, bbr {bbr:.3} s, enforced at {node} {enforced:.3} s: {kept:.3} of the gain kept");
        assert!(bbr < 0.95 * cubic, "there is something to win: {cubic} {bbr}");
        assert!(kept >= 0.9, "at {node}: cubic {cubic}, bbr {bbr}, enforced {enforced}: {kept}");
    }
}
