//! Overrides and axes that change nothing are known, with the reason.

use crate::common::{KNOWN, Memory};
use scenario::{Input, Scenario};

/// Each entry has its own algorithm, and each tier its own rate.
const OWN: &str = r#"duration = "1 s"
[network]
topology = { dumbbell = { pairs = 2 } }
rate = "1 Gbit/s"
[network.tier.host]
rate = "100 Mbit/s"
[network.tier.bottleneck]
rate = "10 Mbit/s"
[[traffic]]
name = "new"
bulk = { from = "left1", to = "right1" }
cc = "cubic"
[[traffic]]
name = "old"
bulk = { from = "left2", to = "right2" }
cc = "newreno"
"#;

fn unused(text: &str, sets: &[&str]) -> Vec<String> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let files = Memory::default();
    let input = Input { name: "a.toml", text, sets: &sets, known: KNOWN, files: &files };
    let runs = Scenario::parse(&input).unwrap_or_else(|error| panic!("{error}")).runs;
    Scenario::unused(&input, &runs).into_iter().map(|unused| format!("{}: {}", unused.what, unused.why)).collect()
}

#[test]
fn an_override_that_every_user_of_it_overrides_changes_nothing() {
    assert_eq!(
        unused(OWN, &["tcp.cc=vegas", "duration=2 s", "network.rate=2 Gbit/s"]),
        [
            "tcp.cc=vegas: each traffic entry names its own algorithm; set traffic.new.cc or traffic.old.cc",
            "network.rate=2 Gbit/s: each tier of the network has a rate of its own; set network.tier.host.rate or \
             network.tier.bottleneck.rate",
        ]
    );
}

#[test]
fn an_override_that_one_entry_or_one_tier_uses_counts() {
    assert_eq!(unused(OWN, &["traffic.old.cc=vegas", "network.delay=1 ms", "seed=2"]), [""; 0]);
    assert_eq!(unused(OWN, &["seed=1"]), [""; 0], "a loop over seeds comes to the scenario's own");
    let shared = OWN.replace("cc = \"newreno\"", "");
    assert_eq!(unused(&shared, &["tcp.cc=vegas"]), [""; 0]);
    assert_eq!(unused(&shared, &["tcp.cc=bic", "tcp.cc=vegas"]), ["tcp.cc=bic: a later override replaces it"]);
}

#[test]
fn an_override_with_the_value_that_is_there_changes_nothing() {
    assert_eq!(
        unused(OWN, &["duration=1000 ms", "tcp.preset=linux"]),
        [
            "duration=1000 ms: the scenario has this value without it",
            "tcp.preset=linux: the scenario has this value without it"
        ]
    );
}

#[test]
fn so_does_an_axis() {
    let why = "tcp.cc: each traffic entry names its own algorithm; set traffic.new.cc or traffic.old.cc";
    assert_eq!(unused(OWN, &["sweep.tcp.cc=[\"bic\", \"vegas\"]", "sweep.seed=[1, 2]"]), [why]);
    assert_eq!(unused(OWN, &["sweep.seed=[1, 2]", "sweep.tcp.cc=[\"bic\", \"vegas\"]"]), [why]);
    assert_eq!(unused(OWN, &["sweep.traffic.old.cc=[\"bic\", \"vegas\"]", "sweep.seed=[1, 2]"]), [""; 0]);
}
