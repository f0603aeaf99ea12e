//! `opentcp scenario`: a file is checked, and shown.

use crate::common::Place;
use crate::outputs::SMALL;

#[test]
fn every_mistake_of_every_file_is_reported() {
    let place = Place::with(SMALL);
    place.write("b.toml", &SMALL.replace("drop_tail", "drop_tial"));
    place.write("c.toml", &SMALL.replace("newreno", "newrene"));
    let done = place.opentcp(&["scenario", "check", "b.toml", "a.toml", "c.toml"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(done.stdout, "a.toml: good: 4 hosts, 2 switches, 5 cables; 1 run of 1 s\n");
    assert!(done.stderr.contains("drop_tial") && done.stderr.contains("newrene"), "{}", done.stderr);
}

#[test]
fn a_policy_may_set_the_kernels_own_algorithm() {
    let place = Place::with(&format!("{SMALL}[policy]\nfile = \"p.toml\"\nperiod = \"100 ms\"\n"));
    let rule = "[[rule]]\nname = \"own\"\nwhen = \"network.live_flows >= 1\"\nset = { cc = \"kernel:reno\" }\n";
    place.write("p.toml", &format!("mode = \"enforce\"\nperiod = \"60 s\"\n{rule}"));
    place.succeed(&["scenario", "check", "a.toml"]);
    assert_eq!(place.opentcp(&["run", "a.toml"]).code, Some(2), "the simulator does not have it");
}

#[test]
fn the_repositorys_scenarios_are_right_and_can_be_shown() {
    let place = Place::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let file = path.to_str().unwrap();
        place.succeed(&["scenario", "check", file]);
        place.succeed(&["--quiet", "scenario", "show", file, "--html", "page.html"]);
        let page = std::fs::read_to_string(place.join("page.html")).unwrap();
        assert!(page.contains("<svg") && page.contains("</svg>") && !page.contains("NaN"), "{file}");
    }
}

#[test]
fn a_network_is_shown_as_text() {
    let done = Place::with(SMALL).succeed(&["scenario", "show", "a.toml"]);
    for words in ["s1 ── left1–left2     to s2", "bottleneck", "20 Mbit/s", "4 flows between random pairs"] {
        assert!(done.stdout.contains(words), "{words:?} in\n{}", done.stdout);
    }
}

#[test]
fn a_quiet_command_says_nothing_but_its_data() {
    let done = Place::with(SMALL).succeed(&["run", "a.toml", "--quiet"]);
    assert_eq!(done.stderr, "");
    assert!(!done.stdout.is_empty());
}

#[test]
fn colours_are_the_users_to_choose() {
    let place = Place::with(&SMALL.replace("drop_tail", "drop_tial"));
    let plain = place.opentcp(&["scenario", "check", "a.toml"]);
    assert!(!plain.stderr.contains('\u{1b}'), "{}", plain.stderr);
    let coloured = place.opentcp(&["scenario", "check", "a.toml", "--color", "always"]);
    assert!(coloured.stderr.contains('\u{1b}'), "{}", coloured.stderr);
}

#[test]
fn a_measured_network_becomes_a_scenario_in_which_a_policy_can_be_tried() {
    let place = Place::new();
    let host =
        |name: &str| format!("{{\"name\": \"{name}\", \"rack\": \"r1\", \"cc\": \"cubic\", \"srtt_us\": [[100, 5]]}}");
    let transfers = r#"[{"from": "r1", "to": "r1", "starts": 40.0, "size": "20 kB"}]"#;
    let view = format!("{{\"hosts\": [{}, {}], \"transfers\": {transfers}}}", host("a"), host("b"));
    place.write("view.json", &view);
    let made = place.succeed(&["scenario", "from-view", "view.json", "--out", "made/fleet.toml"]);
    assert!(made.stderr.contains("assumed: queues hold 250 packets"), "{}", made.stderr);
    let checked = place.succeed(&["scenario", "check", "made/fleet.toml"]);
    assert!(checked.stdout.contains("good: 2 hosts, 1 switch"), "{}", checked.stdout);
    place.write("p.toml", "mode = \"enforce\"\nperiod = \"60 s\"\n[[rule]]\nname = \"r\"\nwhen = \"network.live_flows >= 0\"\nset = { initial_cwnd = 20 }\n");
    let sets = ["--set", "policy.period=1 s", "--set", "duration=3 s", "--seeds", "5"];
    let tried = place.succeed(&[&["policy", "try", "p.toml", "--scenario", "made/fleet.toml"][..], &sets].concat());
    assert!(tried.stdout.contains("acted in 5 of 5 seeds"), "{}", tried.stdout);
    place.write("idle.json", &view.replace(transfers, "[]"));
    let idle = place.opentcp(&["scenario", "from-view", "idle.json", "--out", "idle.toml"]);
    assert_eq!(
        (idle.code, idle.stderr.as_str()),
        (Some(2), "error: no transfer has been reported yet: agents report connections when they end\n")
    );
    assert!(!place.join("idle.toml").exists());
}
