//! `opentcp policy`.

use crate::common::Place;
use std::fs;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");

/// A folder with a policy and the network view of the documentation.
fn place(policy: &str) -> Place {
    let place = Place::new();
    place.write("p.toml", &fs::read_to_string(format!("{FOLDER}/{policy}.toml")).unwrap());
    place.write("view.json", &fs::read_to_string(format!("{FOLDER}/example-view.json")).unwrap());
    place
}

#[test]
fn the_policies_that_are_shipped_are_right_with_the_algorithms_that_are_built_in() {
    for name in ["opentcp1", "opentcp2", "paced", "diurnal", "dctcp-when-ecn"] {
        let done = place(name).succeed(&["policy", "check", "p.toml"]);
        assert!(done.stdout.starts_with("p.toml: good: "), "{}", done.stdout);
        assert_eq!(done.stderr, "");
    }
}

#[test]
fn a_mistake_is_reported_with_its_place_and_what_to_write() {
    let place = place("opentcp1");
    let text = fs::read_to_string(place.join("p.toml")).unwrap();
    place.write("bad.toml", &text.replace("max_link_utilization < 0.70", "max_link_utilization < 70"));
    let done = place.opentcp(&["policy", "check", "bad.toml", "p.toml"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stdout.starts_with("p.toml: good"), "the next file is checked, too: {}", done.stdout);
    for part in ["bad.toml:23:40", "it is never 70", "write 0.7 for 70 %"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
}

#[test]
fn variables_and_settings_are_listed() {
    let text = Place::new().succeed(&["policy", "check", "--list"]).stdout;
    for line in
        ["network.max_link_utilization", "host.drop_rate", "link.marks", "group.fct_p99", "initial_cwnd", "rto_min"]
    {
        assert!(text.lines().any(|l| l.starts_with(line)), "{line}: {text}");
    }
}

#[test]
fn what_a_policy_would_do_is_explained_in_text_and_in_json() {
    let place = place("opentcp2");
    let explain = ["policy", "explain", "p.toml", "--view", "view.json"];
    let text = place.succeed(&explain).stdout;
    for part in
        ["rule 1 `calm network` fires", "network.max_link_utilization = 0.58", "initial_cwnd = 20, rto_min = 2 ms"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = place.succeed(&[&explain[..], &["--json"]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["decision"]["cues"][0]["set"]["rto_min"], "2 ms");
    assert_eq!(json["decision"]["rules"][0]["turn"], "on");
}

#[test]
fn a_malformed_view_is_reported_with_its_place() {
    let place = place("opentcp2");
    let view = fs::read_to_string(place.join("view.json")).unwrap();
    for (broken, part) in [
        (view.replace("\"hosts\"", "\"hosst\""), "view.json:"),
        (view.replace("\"utilization\": 0.52", "\"utilization\": 52"), "it is a share, from 0 to 1"),
        (String::new(), "view.json:1:0"),
    ] {
        place.write("view.json", &broken);
        let done = place.opentcp(&["policy", "explain", "p.toml", "--view", "view.json"]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{}", done.stderr);
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let done = place.opentcp(&["policy", "explain", "none.toml", "--view", "view.json"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("cannot read the policy `none.toml`"), "{}", done.stderr);
}

/// Bursts between eight hosts for some seconds.
const NETWORK: &str = "duration = \"3 s\"\n[network]\ntopology = { leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 4 } }\n\
                       rate = \"1 Gbit/s\"\ndelay = \"5 us\"\nqueue = { drop_tail = { packets = 200 } }\n[[traffic]]\nstart = \
                       \"1 ms\"\nall_to_all = { bytes = [\"1 kB\", \"64 kB\"], rounds = 1000000, think = { exponential = \"20 ms\" } }\n";

fn tried(place: &Place, set: &str) -> serde_json::Value {
    let policy = format!(
        "mode = \"enforce\"\nperiod = \"1 s\"\n[objective]\nminimize = \"network.fct_p90\"\n[[rule]]\nname = \"r\"\nwhen = \
         \"network.max_link_utilization <= 1.0\"\nset = {{ {set} }}\n[rollout]\nfraction = 0.5\n"
    );
    place.write("p.toml", &policy);
    let args = ["policy", "try", "p.toml", "--scenario", "a.toml", "--seeds", "6", "--json"];
    serde_json::from_str(&place.succeed(&args).stdout).unwrap()
}

#[test]
fn a_policy_is_tried_in_the_simulator() {
    let place = Place::with(NETWORK);
    let nothing = tried(&place, "initial_cwnd = 10");
    assert_eq!((&nothing["answer"], &nothing["acted"]), (&"no difference".into(), &6.into()));
    assert_eq!(nothing["verdict"]["quantities"][2]["interval"], serde_json::json!([0.0, 0.0]), "{nothing}");
    // 64 kB take 51 ms at this rate, and less than 5 ms without it
    let harm = tried(&place, "max_pacing_rate = \"10 Mbit/s\"");
    assert_eq!(harm["answer"], "hurts", "{harm}");
    let text = place.succeed(&["policy", "try", "p.toml", "--scenario", "a.toml", "--seeds", "6"]).stdout;
    assert!(text.starts_with("SIMULATED: `p` hurts: p90 FCT +"), "{text}");
    assert!(text.contains("The policy acted in 6 of 6 seeds."), "{text}");
}

#[test]
fn a_trial_needs_no_objective_but_flows() {
    let place = Place::with(NETWORK);
    let policy = "mode = \"enforce\"\nperiod = \"1 s\"\n[objective]\nminimize = \"network.max_link_drop_rate\"\n[[rule]]\nname = \
                  \"r\"\nwhen = \"true\"\nset = { max_pacing_rate = \"10 Mbit/s\" }\n";
    let tried = |duration: &str| -> serde_json::Value {
        let set = format!("duration={duration}");
        let args = ["policy", "try", "p.toml", "--scenario", "a.toml", "--seeds", "6", "--json", "--set", &set];
        serde_json::from_str(&place.succeed(&args).stdout).unwrap()
    };
    // links without drops have no logarithm to compare, but harm is still detected
    place.write("p.toml", policy);
    let harm = tried("6 s");
    assert_eq!(harm["answer"], "hurts", "{harm}");
    assert!(harm["verdict"]["reason"].as_str().unwrap().starts_with("p99 FCT +"), "{harm}");
    // 56 messages a round; one of 1 kB and one of 64 kB before it ends
    place.write("a.toml", &NETWORK.replace("1000000", "2"));
    assert_eq!(tried("3 s")["answer"], "cannot say");
}

#[test]
fn a_sweep_cannot_be_tried() {
    let place = Place::with(&format!("{NETWORK}[sweep]\n\"tcp.cc\" = [\"cubic\", \"bic\"]\n"));
    place.write("p.toml", &fs::read_to_string(format!("{FOLDER}/opentcp1.toml")).unwrap());
    let done = place.opentcp(&["policy", "try", "p.toml", "--scenario", "a.toml"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("the scenario sweeps `tcp.cc`"), "{}", done.stderr);
}

#[test]
fn every_shipped_policy_acts_in_every_seed_of_the_shipped_scenario() {
    let scenario = format!("{FOLDER}/../scenarios/policy-try.toml");
    for name in ["opentcp1", "opentcp2", "paced", "diurnal", "dctcp-when-ecn"] {
        let file = format!("{FOLDER}/{name}.toml");
        let args = ["policy", "try", &file, "--scenario", &scenario, "--seeds", "5", "--json"];
        let tried: serde_json::Value = serde_json::from_str(&Place::new().succeed(&args).stdout).unwrap();
        assert_eq!(tried["acted"], 5, "{name}: {tried}");
        assert_ne!(tried["answer"], "cannot say", "{name}: {tried}");
    }
}

#[test]
fn a_rule_that_is_never_on_gets_the_reason() {
    let place = Place::with(NETWORK);
    let tried = |period: &str, when: &str, set: &str| {
        let policy = format!(
            "mode = \"enforce\"\nperiod = \"{period}\"\n[[rule]]\nname = \"r\"\nwhen = '{when}'\nset = {{ {set} }}\n"
        );
        place.write("p.toml", &policy);
        place.succeed(&["policy", "try", "p.toml", "--scenario", "a.toml", "--seeds", "5"]).stdout
    };
    let busy = tried("500 ms", "network.max_link_utilization > 0.999", "initial_cwnd = 20");
    // of the seven decisions of a run, at 0, 0.5, … 3 s, the first knows nothing
    let reason = "of 35 decisions `network.max_link_utilization > 0.999` was false, or the hold time kept it off: \
                  network.max_link_utilization was 0.";
    assert!(busy.contains("acted in 0 of 5 seeds") && busy.contains(reason), "{busy}");
    assert!(busy.contains("; in 5 of 35 decisions `network.max_link_utilization > 0.999` was not known"), "{busy}");
    let of_hosts = tried("500 ms", "host.live_flows > 1000", "initial_cwnd = 20");
    assert!(of_hosts.contains("host.live_flows was 7"), "{of_hosts}");
    // 40 us of propagation are more than a hundredth of it; at 0 s, without sessions, the utilization is not known either
    let hasty = tried("2 ms", "network.max_link_utilization <= 1.0", "initial_cwnd = 20");
    assert!(hasty.contains("withheld: T = 2 ms is not more than 100 RTTs"), "{hasty}");
    let long = tried("60 s", "network.max_link_utilization < 1.0", "initial_cwnd = 20");
    for part in ["T = 60 s, and a run lasts 3 s", "--set \"policy.period=150 ms\"", "was not known"] {
        assert!(long.contains(part), "{part}: {long}");
    }
}

#[test]
fn linuxs_own_algorithms_are_allowed_on_hosts_and_refused_by_the_simulator() {
    let place = Place::with(NETWORK);
    let with = |cc: &str| {
        let policy = format!(
            "mode = \"enforce\"\nperiod = \"1 s\"\n[[rule]]\nname = \"r\"\nwhen = \"true\"\nset = {{ cc = \"{cc}\" }}\n"
        );
        place.write("p.toml", &policy);
    };
    with("kernel:reno");
    assert!(place.succeed(&["policy", "check", "p.toml"]).stdout.starts_with("p.toml: good"));
    let refused = place.opentcp(&["policy", "try", "p.toml", "--scenario", "a.toml"]);
    assert_eq!(refused.code, Some(2));
    for part in
        ["6:14", "the simulator has no kernel, so no `kernel:reno`", "write `newreno`, or run it on Linux hosts"]
    {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    for (cc, near) in [("reno", "did you mean `kernel:reno`?"), ("kernel:cubik", "did you mean `kernel:cubic`?")] {
        with(cc);
        let unknown = place.opentcp(&["policy", "check", "p.toml"]);
        assert_eq!(unknown.code, Some(2));
        for part in [near, "Allowed: `bbr`", "Linux's own as `kernel:NAME`", "opentcp cc load FILE"] {
            assert!(unknown.stderr.contains(part), "{part}: {}", unknown.stderr);
        }
    }
}
