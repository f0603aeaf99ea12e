//! What an operator does with a running Oracle: apply, diff, rollback, pause, resume, show.

use crate::common::Place;
use crate::hosts::{Fleet, PERIOD, policy};
use bus::{Address, Ask, Outcome, Request, Target};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;
use testkit::{PATIENCE, eventually};

const PLAIN: &[&str] = &["kernel:cubic", "kernel:reno"];
const OWN: &[&str] = &["kernel:cubic", "kernel:reno", "mine"];

#[test]
fn a_policy_is_compared_applied_and_returned_from_and_the_log_says_who_did_it() {
    let fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN, PLAIN]);
    assert!(fleet.gets(0, "initial_cwnd = 20"), "{}", fleet.said());
    fleet.place.write("new.toml", &policy("initial_cwnd = 30, ecn = true"));
    for part in [
        "rule `r` is changed",
        "initial_cwnd: 20 → 30",
        "ecn: not set → true",
        "2 hosts have it and would get the new values: h0, h1",
        "on 2 hosts",
    ] {
        // a host whose report comes late is not counted for a decision
        let diff = || fleet.succeed(&["diff", "new.toml"]);
        assert!(eventually(|| diff().contains(part)), "{part}: {}", diff());
    }
    let unconfirmed = fleet.policy(&["apply", "new.toml"]);
    assert_eq!(unconfirmed.code, Some(2), "{}", unconfirmed.stderr);
    assert!(unconfirmed.stderr.contains("without a terminal --yes confirms it"), "{}", unconfirmed.stderr);
    assert!(fleet.gets(1, "initial_cwnd = 20"), "nothing was changed");
    let applied = fleet.succeed(&["apply", "new.toml", "--yes"]);
    assert!(applied.contains("applied: `p` decides within 200 ms"), "{applied}");
    assert!(fleet.gets(0, "initial_cwnd = 30, ecn = true") && fleet.gets(1, "initial_cwnd = 30, ecn = true"));
    let shown: serde_json::Value = serde_json::from_str(&fleet.succeed(&["show", "--json"])).unwrap();
    assert_eq!((&shown["version"]["file"], &shown["version"]["number"]), (&"new.toml".into(), &2.into()));
    assert_eq!(fleet.succeed(&["show"]), policy("initial_cwnd = 30, ecn = true"));
    let same = fleet.succeed(&["apply", "new.toml", "--yes"]);
    assert!(same.contains("it is in force already"), "{same}");

    let back = fleet.succeed(&["rollback", "--yes"]);
    assert!(back.contains("initial_cwnd: 30 → 20") && back.contains("ecn: true → not set"), "{back}");
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    let none = fleet.policy(&["rollback", "--yes"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no policy was in force before this one"), "{}", none.stderr);
    let history = fleet.history(&["--kind", "policy"]).stdout;
    assert_eq!(history.matches("(uid ").count(), 2, "{history}");
    assert!(history.contains("applied by ") && history.contains("rolled back by "), "{history}");
}

#[test]
fn a_pause_withdraws_what_is_set_outlives_a_restart_and_ends_in_time() {
    let mut fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN]);
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    assert!(fleet.succeed(&["pause"]).contains("until `opentcp policy resume`"));
    assert!(fleet.is_quiet(0), "no CUE is sent");
    assert!(fleet.until(|status| status["paused"] == true && status["rules"][0]["on"] == 1), "it goes on deciding");
    fleet.kill_oracle();
    fleet.start_oracle(&[]);
    assert!(fleet.is_quiet(0), "a restarted Oracle is paused as well");
    assert!(fleet.said().contains("paused by "), "{}", fleet.said());
    // what is applied meanwhile is not sent either
    fleet.place.write("new.toml", &policy("initial_cwnd = 30"));
    assert!(fleet.until(|status| status["hosts"] == 1));
    assert!(fleet.succeed(&["apply", "new.toml", "--yes"]).contains("paused: no CUE is sent until"));
    assert!(fleet.is_quiet(0));
    fleet.succeed(&["resume"]);
    assert!(fleet.gets(0, "initial_cwnd = 30"));
    let twice = fleet.policy(&["resume"]);
    assert_eq!(twice.code, Some(2));
    assert!(twice.stderr.contains("`p` is not paused"), "{}", twice.stderr);
    assert!(fleet.succeed(&["pause", "--for", "2s"]).contains("paused until 20"));
    assert!(fleet.until(|status| status["paused"] == true));
    assert!(fleet.gets(0, "initial_cwnd = 30"), "the pause is over");
    let history = fleet.history(&["--kind", "pause", "--kind", "resume"]).stdout;
    for part in ["paused by ", "until it is resumed: no CUE is sent", "resumed by ", "the pause is over"] {
        assert!(history.contains(part), "{part}: {history}");
    }
    // no CUE was recorded that was not sent
    let cues = fleet.history(&["--all", "--json", "--since", "all"]).stdout;
    let entries: serde_json::Value = serde_json::from_str(&cues).unwrap();
    let entries = entries["entries"].as_array().unwrap();
    let paused: Vec<u64> = entries
        .iter()
        .filter(|entry| entry["body"]["paused"] == true)
        .filter_map(|entry| entry["body"]["epoch"].as_u64())
        .collect();
    assert!(paused.len() > 5, "{}", paused.len());
    assert!(
        !entries
            .iter()
            .any(|entry| entry["kind"] == "cue" && paused.contains(&entry["body"]["epoch"].as_u64().unwrap()))
    );
}

#[test]
fn what_was_applied_outlives_a_restart_until_the_file_is_changed() {
    let mut fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN]);
    fleet.place.write("new.toml", &policy("initial_cwnd = 30"));
    fleet.succeed(&["apply", "new.toml", "--yes"]);
    fleet.kill_oracle();
    fleet.start_oracle(&[]);
    assert!(fleet.said().contains("the one that was applied last (new.toml, by "), "{}", fleet.said());
    assert!(fleet.gets(0, "initial_cwnd = 30"));
    fleet.kill_oracle();
    fleet.place.write("p.toml", &policy("initial_cwnd = 40"));
    fleet.start_oracle(&[]);
    assert!(fleet.gets(0, "initial_cwnd = 40"));
    // and from there back
    assert!(fleet.until(|status| status["hosts"] == 1));
    fleet.succeed(&["rollback", "--yes"]);
    assert!(fleet.gets(0, "initial_cwnd = 30"));
    let verified = fleet.history(&["--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stderr);
    assert!(verified.stdout.starts_with("intact: "), "{}", verified.stdout);
}

#[test]
fn an_algorithm_of_the_hosts_own_is_known_by_their_reports_and_hosts_that_lack_it_are_named() {
    let mut fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN, OWN, OWN]);
    fleet.place.write("own.toml", &policy("cc = \"mine\""));
    let here = fleet.place.opentcp(&["policy", "check", "own.toml"]);
    assert_eq!(here.code, Some(2), "this machine has no such algorithm: {}", here.stdout);
    let diff = || fleet.succeed(&["diff", "own.toml"]);
    assert!(eventually(|| diff().contains("1 hosts lack `mine`: h0")), "{}", diff());
    let refused = fleet.policy(&["apply", "own.toml", "--yes"]);
    assert_eq!(refused.code, Some(2));
    for part in ["rule `r`: 1 hosts lack `mine`: h0", "--allow-lacking", "nothing was changed"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(fleet.gets(1, "initial_cwnd = 20"), "nothing was changed");
    fleet.succeed(&["apply", "own.toml", "--yes", "--allow-lacking"]);
    assert!(fleet.gets(1, "cc = mine") && fleet.gets(2, "cc = mine"));
    assert!(fleet.is_quiet(0), "a host that lacks it gets nothing");
    // the names that hosts reported are known after a restart, also to the file that it is started with
    fleet.kill_oracle();
    fleet.place.write("p.toml", &policy("cc = \"mine\", pacing = true"));
    fleet.start_oracle(&[]);
    assert!(fleet.gets(1, "cc = mine, pacing = true"), "{}", fleet.said());
    fleet.place.write("typo.toml", &policy("cc = \"mien\""));
    let typo = fleet.policy(&["apply", "typo.toml", "--yes"]);
    assert_eq!(typo.code, Some(2));
    for part in ["typo.toml:9:14", "unknown algorithm `mien`", "did you mean `mine`?"] {
        assert!(typo.stderr.contains(part), "{part}: {}", typo.stderr);
    }
    let linux = policy("cc = \"kernel:reno\"");
    fleet.place.write("linux.toml", &linux);
    fleet.succeed(&["apply", "linux.toml", "--yes"]);
    assert!(fleet.gets(0, "cc = kernel:reno"));
    let history = fleet.history(&["--kind", "refused"]).stdout;
    assert!(history.contains("policy apply") && history.contains("lack `mine`"), "{history}");
}

#[test]
fn an_oracle_may_be_given_the_name_of_an_algorithm_that_no_host_has_reported_yet() {
    let place = Place::new();
    place.write("p.toml", &policy("cc = \"mine\""));
    place.succeed(&["keygen", "--out", "key"]);
    let oracle = ["oracle", "p.toml", "--key", "key", "--socket", "sock", "--state", "state"];
    let unknown = place.opentcp(&oracle);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("unknown algorithm `mine`"), "{}", unknown.stderr);
    let mut fleet = Fleet::start(&policy("initial_cwnd = 20"), &[&["mine"]]);
    fleet.kill_oracle();
    fs::remove_dir_all(fleet.place.join("state")).unwrap();
    fleet.place.write("p.toml", &policy("cc = \"mine\""));
    fleet.start_oracle(&["--algorithm", "mine"]);
    assert!(fleet.gets(0, "cc = mine"), "{}", fleet.said());
}

#[test]
fn a_comparison_that_is_out_of_date_applies_nothing() {
    let fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN]);
    let mut bus = Address::Unix(fleet.place.join("sock")).connect().unwrap();
    let mut ask = |ask: Ask| {
        let request = Request::new("bob (uid 7)".into(), ask).unwrap();
        bus::ask(&mut *bus, &request, PATIENCE).unwrap()
    };
    let file = |set: &str| Target::File { name: "bob.toml".into(), text: policy(set) };
    let Outcome::Answer(compared) = ask(Ask::Diff { to: file("initial_cwnd = 50") }) else { panic!() };
    let against = compared["against"].as_str().unwrap().to_string();
    fleet.place.write("new.toml", &policy("initial_cwnd = 30"));
    fleet.succeed(&["apply", "new.toml", "--yes"]);
    let apply =
        |against: String| Ask::Apply { to: file("initial_cwnd = 50"), against, allow_lacking: false, trial: None };
    let Outcome::Refused(stale) = ask(apply(against)) else { panic!("it was applied") };
    assert!(
        stale.is_input && stale.why.contains("another policy is in force than the one that was compared with"),
        "{}",
        stale.why
    );
    assert!(stale.why.contains("applied by ") && stale.why.contains("opentcp policy diff"), "{}", stale.why);
    assert!(fleet.gets(0, "initial_cwnd = 30"));
    let Outcome::Refused(_) = ask(apply(String::new())) else { panic!("no hash is no agreement") };
    let history = fleet.history(&["--kind", "refused"]).stdout;
    assert!(history.contains("refused by bob (uid 7): another policy is in force"), "{history}");
}

#[test]
fn bytes_that_are_no_request_harm_nobody() {
    let fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN]);
    let mut bus = Address::Unix(fleet.place.join("sock")).connect().unwrap();
    for junk in [
        &b"opentcp request\0"[..],
        b"opentcp request\0{",
        b"opentcp request\0\xff\xff",
        b"opentcp request\0{\"id\":\"\",\"by\":\"\",\"command\":\"x\"}",
        b"opentcp reply\0{}",
    ] {
        bus.send(junk).unwrap();
    }
    let _ = bus.send(&[b"opentcp request\0", "[".repeat(50_000).as_bytes()].concat());
    let replies = eventually(|| {
        bus.receive(Duration::from_millis(100))
            .unwrap()
            .is_some_and(|reply| reply.starts_with(b"opentcp reply\0{\"id\":\"\",\"refused\""))
    });
    assert!(replies, "{}", fleet.said());
    assert!(fleet.gets(0, "initial_cwnd = 20"), "{}", fleet.said());
}

#[test]
fn a_terminal_is_asked() {
    let fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN]);
    fleet.place.write("new.toml", &policy("initial_cwnd = 30"));
    let ask = |answer: &str| {
        let command = format!("{} policy apply new.toml --socket sock", env!("CARGO_BIN_EXE_opentcp"));
        let mut script = std::process::Command::new("script");
        script.args(["-qefc", &command, "/dev/null"]).current_dir(fleet.place.path());
        let Ok(mut child) = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            eprintln!("skipped: there is no script(1)");
            return None;
        };
        // the pseudo-terminal ends with its input, so that stays open until the answer was read
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(answer.as_bytes()).unwrap();
        stdin.flush().unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        Some((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    let Some((code, text)) = ask("n\n") else { return };
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("Apply `p`? [y/N]") && text.contains("nothing was changed: not confirmed"), "{text}");
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    let (code, text) = ask("y\n").unwrap();
    assert_eq!(code, Some(0), "{text}");
    assert!(fleet.gets(0, "initial_cwnd = 30"), "{text}");
}

#[test]
fn a_trial_may_be_required() {
    let fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN]);
    let network = "duration = \"3 s\"\n[network]\ntopology = { leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 4 } }\nrate = \"1 \
                   Gbit/s\"\ndelay = \"5 us\"\nqueue = { drop_tail = { packets = 200 } }\n[[traffic]]\nstart = \"1 ms\"\nall_to_all = { bytes = \
                   [\"1 kB\", \"64 kB\"], rounds = 1000000, think = { exponential = \"20 ms\" } }\n";
    fleet.place.write("network.toml", network);
    // T must be more than a hundred RTTs there
    let slow = |set: &str| {
        policy(set).replace(PERIOD, "1 s").replace("lifetime = \"1 s\"", "lifetime = \"2 s\"")
            + "[objective]\nminimize = \"network.fct_p90\"\n"
    };
    fleet.place.write("harm.toml", &slow("max_pacing_rate = \"10 Mbit/s\""));
    let trial = |file: &str| fleet.policy(&["apply", file, "--yes", "--require-trial", "network.toml", "--seeds", "6"]);
    let refused = trial("harm.toml");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("says: hurts") && refused.stderr.contains("nothing was applied"),
        "{}",
        refused.stderr
    );
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    fleet.place.write("idle.toml", &policy("initial_cwnd = 30"));
    let idle = trial("idle.toml");
    assert_eq!(idle.code, Some(1), "{}", idle.stderr);
    assert!(
        idle.stderr.contains("no rule was on in any of 6 seeds") && idle.stderr.contains("100 RTTs"),
        "{}",
        idle.stderr
    );
    fleet.place.write("good.toml", &slow("initial_cwnd = 10"));
    let good = trial("good.toml");
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert!(fleet.gets(0, "initial_cwnd = 10"));
    let history = fleet.history(&["--kind", "policy"]).stdout;
    assert!(history.contains("; trial: no difference in network.toml (6 seeds)"), "{history}");
}

#[test]
fn reverted_rules_and_everything_else_are_in_the_history_of_a_killed_oracle() {
    let mut fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN, PLAIN]);
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    fleet.revert(1, 3);
    let seen = || fleet.history(&["--kind", "guard"]).stdout;
    assert!(eventually(|| seen().contains("its guard has reverted a rule, 3 times")), "{}", seen());
    for _ in 0..5 {
        fleet.kill_oracle();
        fleet.start_oracle(&[]);
    }
    let verified: serde_json::Value = serde_json::from_str(&fleet.history(&["--verify", "--json"]).stdout).unwrap();
    assert_eq!((&verified["intact"], &verified["lost_lines"]), (&true.into(), &0.into()));
    let text = fleet.history(&[]).stdout;
    assert_eq!(text.matches("the Oracle began").count(), 6, "{text}");
    assert!(
        text.contains("on, 1 of 1 hosts: initial_cwnd = 20") || text.contains("on, 2 of 2 hosts: initial_cwnd = 20"),
        "{text}"
    );
    let all = fleet.history(&["--all"]).stdout;
    assert!(all.contains("CUE 0 of epoch ") && all.contains("`r` on, 2 of 2 hosts"), "{all}");
    assert!(fleet.state("audit").join("head").exists());
    let report = fleet.history(&["--report"]).stdout;
    assert!(report.contains("p/r: set initial_cwnd = 20"), "{report}");
}

#[test]
fn a_full_disk_stops_no_cue_and_the_gap_is_recorded() {
    let Some(fleet) = Fleet::start_on_small_disk(&policy("initial_cwnd = 20"), &[PLAIN]) else { return };
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    let ballast = fleet.state("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 1024]).is_ok() {}
    let is_said = |words: &str| eventually(|| fleet.said().contains(words));
    assert!(is_said("the audit log cannot be written: state/audit: No space left on device"), "{}", fleet.said());
    for _ in 0..3 {
        assert!(fleet.gets(0, "initial_cwnd = 20"), "{}", fleet.said());
    }
    assert_eq!(fleet.said().matches("cannot be written").count(), 1, "it is said once: {}", fleet.said());
    drop(file);
    fs::remove_file(&ballast).unwrap();
    assert!(is_said("the audit log is written again; "), "{}", fleet.said());
    assert!(fleet.gets(0, "initial_cwnd = 20"));
    let gap = fleet.history(&["--kind", "gap"]).stdout;
    assert!(gap.contains("lines could not be written since 20") && gap.contains("No space left on device"), "{gap}");
    let verified: serde_json::Value = serde_json::from_str(&fleet.history(&["--verify", "--json"]).stdout).unwrap();
    assert_eq!(verified["intact"], true);
    assert!(verified["lost_lines"].as_u64() > Some(0), "{verified}");
    println!("{} lines lost and recorded", verified["lost_lines"]);
}

#[test]
fn a_policy_is_tried_in_a_scenario_of_the_fleet() {
    let fleet = Fleet::start(&policy("initial_cwnd = 20"), &[PLAIN, PLAIN, PLAIN]);
    let idle = fleet.policy(&["try", "p.toml", "--from-fleet"]);
    assert_eq!(idle.code, Some(2), "{}", idle.stderr);
    assert!(idle.stderr.contains("no transfer has been reported yet"), "{}", idle.stderr);
    fleet.transfer();
    let known = || {
        let view: serde_json::Value = serde_json::from_str(&fleet.succeed(&["network"])).unwrap();
        let starts = view["transfers"][0]["starts"].as_f64();
        (view["hosts"].as_array().map(Vec::len), starts.is_some_and(|starts| starts > 20.0)) == (Some(3), true)
    };
    assert!(eventually(known), "{}", fleet.said());
    fleet.place.write("new.toml", &policy("initial_cwnd = 30"));
    let args = ["try", "new.toml", "--from-fleet", "--keep", "fleet.toml", "--seeds", "5", "--set", "duration=5 s"];
    let tried = fleet.policy(&args);
    assert_eq!(tried.code, Some(0), "{}", tried.stderr);
    assert!(tried.stdout.contains("acted in 5 of 5 seeds"), "{}", tried.stdout);
    assert!(tried.stderr.contains("assumed: 3 hosts reported no link"), "{}", tried.stderr);
    let scenario = fs::read_to_string(fleet.place.join("fleet.toml")).unwrap();
    assert!(scenario.contains("{ name = \"h2\", kind = \"host\" }"), "{scenario}");
    let mut bus = Address::Unix(fleet.place.join("sock")).connect().unwrap();
    let request = Request::new("bob (uid 7)".into(), Ask::Network { from: 1 << 30 }).unwrap();
    let beyond = bus::ask(&mut *bus, &request, PATIENCE).unwrap();
    assert!(
        matches!(beyond, Outcome::Refused(refusal) if refusal.why.contains("is not one that a part can begin with"))
    );
}
