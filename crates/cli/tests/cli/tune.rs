//! `opentcp policy tune`.

use crate::common::{Done, Place};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// Some twelve hundred flows a run, on paths so long that a small initial window costs round trips.
const SCENARIO: &str = r#"
duration = "600 ms"
[network]
topology = { star = { hosts = 4 } }
rate = "1 Gbit/s"
delay = "50 us"
queue = { drop_tail = { packets = 200 } }
[[traffic]]
name = "web"
poisson = { flows_per_second = 2000, sizes = "sizes.csv" }
"#;

/// Its initial window is far too small.
const POLICY: &str = r#"
mode = "enforce"
period = "100 ms"   # T
lifetime = "250 ms"
[objective]
minimize = "network.fct_p50"
[[rule]]
name = "calm"
when = "network.max_link_utilization < 0.99"
set = { initial_cwnd = 2 }   # "segments"
"#;

const FEW: [&str; 6] = ["--trials", "8", "--seeds", "2", "--held-back-seeds", "5"];

fn place() -> Place {
    let place = Place::new();
    place.write("s.toml", SCENARIO);
    place.write("sizes.csv", "bytes,cdf\n1000,0\n20000,0.5\n60000,1\n");
    place.write("p.toml", POLICY);
    place
}

fn tune(place: &Place, more: &[&str]) -> Done {
    place.opentcp(
        &[&["policy", "tune", "p.toml", "--scenario", "s.toml", "--set", "policy.period=50 ms"], more].concat(),
    )
}

#[test]
fn numbers_that_cost_time_are_replaced_and_the_file_says_why() {
    let place = place();
    let done = tune(&place, &FEW);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.starts_with("SIMULATED: `p` is better with other numbers: p50 FCT -"), "{}", done.stdout);
    assert!(done.stderr.contains("wrote p-tuned.toml"), "{}", done.stderr);
    place.succeed(&["policy", "check", "p-tuned.toml"]);
    let text = fs::read_to_string(place.join("p-tuned.toml")).unwrap();
    let (evidence, policy) = text.split_at(text.find("\n\n").unwrap());
    assert!(evidence.lines().all(|line| line.starts_with('#')), "{evidence}");
    for part in [
        "8 trials on seeds 1 to 2, judged on seeds 3 to 7",
        "rule.calm.set.initial_cwnd: 2 -> ",
        "--set policy.period=50 ms",
    ] {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_string).collect::<Vec<_>>();
    let changed: Vec<String> = lines(policy).into_iter().filter(|line| !lines(POLICY).contains(line)).collect();
    assert!(
        changed.iter().any(|line| line.starts_with("set = { initial_cwnd = ") && line.ends_with("}   # \"segments\""))
    );
    assert!(changed.iter().all(|line| line.starts_with("set") || line.starts_with("when")), "{changed:?}");
}

#[test]
fn the_number_of_jobs_changes_no_byte() {
    let place = place();
    let answers = ["1", "2"].map(|jobs| {
        let out = format!("{jobs}.toml");
        let done = tune(&place, &[&FEW[..], &["--json", "--jobs", jobs, "--out", &out]].concat());
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        (done.stdout, fs::read_to_string(place.join(&out)).unwrap())
    });
    assert_eq!(answers[0], answers[1]);
    let json: serde_json::Value = serde_json::from_str(&answers[0].0).unwrap();
    assert_eq!((&json["answer"], &json["objective"]), (&"better".into(), &"p50 FCT".into()));
    let interval = |i: usize| json["gain"]["interval"][i].as_f64().unwrap();
    let gain = json["gain"]["change"].as_f64().unwrap();
    assert!(interval(0) < gain && gain < interval(1) && interval(1) < 0.0, "{json}");
}

#[test]
fn numbers_without_influence_are_no_gain_and_stay() {
    let place = place();
    place.write(
        "p.toml",
        &POLICY
            .replace("network.max_link_utilization < 0.99", "host.live_flows < 90000")
            .replace("initial_cwnd = 2", "pacing = true"),
    );
    let done = tune(&place, &FEW);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stdout.starts_with("SIMULATED: no gain for `p`: its numbers have no influence here."),
        "{}",
        done.stdout
    );
    let text = fs::read_to_string(place.join("p-tuned.toml")).unwrap();
    assert!(
        text.contains("\n# no gain for `p`") && text.ends_with(&fs::read_to_string(place.join("p.toml")).unwrap()),
        "{text}"
    );
}

#[test]
fn a_limit_that_cannot_be_kept_leaves_the_policy_as_it_is() {
    let place = place();
    // what is searched is worse than what the policy has, so nothing is found within
    place.write("p.toml", &POLICY.replace("initial_cwnd = 2", "initial_cwnd = 40"));
    let vary = ["--vary", "rule.calm.set.initial_cwnd=1..2", "--limit", "network.fct_p90=0 %"];
    let done = tune(&place, &[&FEW[..], &vary, &["--json"]].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&json["answer"], &json["influence"], &json["numbers"][0]["best"]),
        (&"no gain".into(), &true.into(), &"40".into())
    );
    assert!(done.stderr.contains("there are no other values in these ranges: 2 were tried"), "{}", done.stderr);
}

#[test]
fn what_is_held_back_is_in_no_trial() {
    let place = place();
    place.write(
        "s.toml",
        &(SCENARIO.to_string() + "[sweep]\n\"traffic.web.poisson.flows_per_second\" = [1000, 2000]\n"),
    );
    let held_back = ["--hold-back", "traffic.web.poisson.flows_per_second=2000"];
    let done = tune(&place, &[&FEW[..], &held_back].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let runs = |of: &str| -> Vec<&str> {
        done.stderr
            .lines()
            .filter_map(|line| line.split_once(of))
            .map(|(_, run)| run.split(": ").next().unwrap())
            .collect()
    };
    let trials = runs("] trial ");
    assert_eq!(trials.len(), 16, "{}", done.stderr);
    for trial in trials {
        let seed = trial.rsplit('=').next().unwrap();
        assert!(trial.contains("=1000,") && ["1", "2"].contains(&seed), "{trial}");
    }
    let judged = runs("] best, ");
    assert_eq!(judged.len(), 10, "{}", done.stderr);
    assert!(judged.iter().all(|run| !run.ends_with("seed=1") && !run.ends_with("seed=2")), "{judged:?}");
    let row = "flows_per_second=2000 (not in the training)";
    assert!(done.stdout.contains(row), "{}", done.stdout);
}

#[test]
fn bad_input_is_one_error_before_anything_is_simulated() {
    let place = place();
    place.write(
        "bare.toml",
        &POLICY
            .replace("network.max_link_utilization < 0.99", "links.all(l, l.marks)")
            .replace("initial_cwnd = 2", "pacing = true"),
    );
    place.write("wrong.toml", &POLICY.replace("0.99", "99"));
    place.write("taken.toml", "");
    let scenario = ["--scenario", "s.toml"];
    let cases: [(&[&str], &str); 20] = [
        (&["none.toml"], "cannot read the policy `none.toml`"),
        (&["wrong.toml"], "wrong.toml:9:"),
        (&["bare.toml"], "nothing that is set has a number; name others by --vary: period, lifetime"),
        (
            &["p.toml", "--vary", "rule.clam.when"],
            "the policy has no number `rule.clam.when`; did you mean `rule.calm.when`?",
        ),
        (&["p.toml", "--vary", "rule.calm.when=0.5"], "--vary rule.calm.when=0.5: write LOW..HIGH, such as 0.25..1"),
        (&["p.toml", "--vary", "rule.calm.when=0.9..0.5"], "end above its beginning"),
        (&["p.toml", "--vary", "rule.calm.when=0..0.5"], "begin above zero"),
        (&["p.toml", "--vary", "rule.calm.when=0.5..5"], "5 is not possible there:"),
        (&["p.toml", "--vary", "period=5..9"], "`5` is no value here; write LOW..HIGH, such as 25 ms..400 ms"),
        (&["p.toml", "--vary", "period", "--vary", "period"], "named before"),
        (&["p.toml", "--limit", "network.fct_p5=5 %"], "no quantity is called `network.fct_p5`; did you mean"),
        (&["p.toml", "--limit", "network.fct_p90=-5 %"], "in percent from 0 on"),
        (&["p.toml", "--limit", "network.fct_p90"], "in percent from 0 on"),
        (&["p.toml", "--hold-back", "load=5"], "the scenario sweeps nothing, so no run has it"),
        (&["p.toml", "--set", "seed=7"], "`seed` belongs to the search"),
        (&["p.toml", "--set", "network.rate=fast"], "--set"),
        (&["p.toml", "--out", "taken.toml"], "`taken.toml` exists already"),
        (&["p.toml", "--out", "no/where.toml"], "there is no folder `no`"),
        (&["p.toml", "--held-back-seeds", "4"], "5..=1000"),
        (&["p.toml", "--trials", "0"], "1..=100000"),
    ];
    for (args, part) in cases {
        let done = place.opentcp(&[&["policy", "tune"], args, &scenario].concat());
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(part), "{args:?}: {part}: {}", done.stderr);
        assert!(!done.stderr.contains("[1/"), "{args:?}: {}", done.stderr);
        let errors = done.stderr.matches("error: ").count() + done.stderr.matches(" × ").count();
        assert_eq!(errors, 1, "{args:?}: {}", done.stderr);
    }
    let few = tune(&place, &["--set", "duration=60 ms"]);
    assert_eq!(few.code, Some(2), "{}", few.stderr);
    assert!(few.stderr.contains("which are too few for a percentile: 200 are needed"), "{}", few.stderr);
    assert_eq!(place.entries(), ["bare.toml", "p.toml", "s.toml", "sizes.csv", "taken.toml", "wrong.toml"]);
}

#[test]
fn ctrl_c_ends_a_search_and_leaves_nothing() {
    let place = place();
    let args = ["policy", "tune", "p.toml", "--scenario", "s.toml", "--trials", "100000", "--jobs", "2"];
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().map(Result::unwrap).any(|line| line.contains("] trial ")), "no trial came to an end");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(lines.map(Result::unwrap).any(|line| line == "interrupted: nothing was written"));
    assert_eq!(place.entries(), ["p.toml", "s.toml", "sizes.csv"]);
}
