//! `opentcp history` of logs that were written here.

use crate::common::Place;
use audit::{Kind, Limits, Log, Timestamp};
use oracle::log::{ConstraintLine, DecisionLine, HostsLine, RuleLine, VerdictLine};
use serde_json::{Value, json};
use std::fs;
use testkit::until;

fn at(second: i64) -> Timestamp {
    // 2026-03-01 12:00 UTC
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

/// A decision of two rules, of which the first is on for so many of ten hosts.
fn decision(epoch: u64, mode: &str, on: usize, withheld: Option<&str>, utilization: f64) -> DecisionLine {
    let values = vec![format!("network.max_link_utilization = {utilization}")];
    let seen = vec![("network.max_link_utilization".to_string(), Some(utilization), Some(utilization))];
    let hosts = HostsLine { matched: 10, on, ..HostsLine::default() };
    let calm = RuleLine {
        name: "calm network".into(),
        set: "initial_cwnd = 20".into(),
        values,
        seen,
        hosts,
        ..RuleLine::default()
    };
    let hosts = HostsLine { matched: 4, unknown: usize::from(withheld.is_none()), ..HostsLine::default() };
    let withheld = withheld.map(str::to_string);
    let other = RuleLine { name: "other".into(), set: "cc = dctcp".into(), withheld, hosts, ..RuleLine::default() };
    DecisionLine {
        policy: "p".into(),
        hash: "0123456789ab".into(),
        period_s: 60.0,
        time_zone: "Europe/Zurich".into(),
        epoch,
        mode: mode.into(),
        hosts: 10,
        treated: 10,
        constraints: vec![ConstraintLine { name: "quiet".into(), holds: Some(utilization < 0.9), values: vec![] }],
        rules: vec![calm, other],
        verdict: VerdictLine { judgement: "unclear".into(), ..VerdictLine::default() },
        ..DecisionLine::default()
    }
}

/// Ten decisions, one a minute: the first rule is on from the third to the sixth.
fn place(mode: &str) -> Place {
    let place = Place::new();
    let mut log = Log::open(&place.join("state/audit"), Limits { file_bytes: 4000, files: 50 }, at(0)).unwrap();
    log.append(at(0), Kind::Started, &json!({ "policy": "p", "hash": "0123456789ab", "epoch": 0 }));
    for i in 0..10_u64 {
        let on = match i {
            2 | 3 => 4,
            4 | 5 => 10,
            _ => 0,
        };
        let withheld = (i >= 7).then(|| {
            format!("T = 60 s is not more than 100 RTTs: the p99 of srtt over the matched sessions is {i}.5 s")
        });
        let line = decision(i + 1, mode, on, withheld.as_deref(), if i == 9 { 0.95 } else { 0.1 * i as f64 });
        log.append(at(60 * i as i64), Kind::Decision, &line);
    }
    log.append(
        at(600),
        Kind::Policy,
        &json!({ "how": "applied", "policy": "q", "hash": "abc", "before": "012", "by": "alice (uid 0)" }),
    );
    log.append(at(660), Kind::Leader, &json!({ "words": "Oracle 2 leads in term 7" }));
    drop(log);
    place
}

fn history(place: &Place, args: &[&str]) -> String {
    place.succeed(&[&["history", "--state", "state", "--since", "all", "--time-zone", "UTC"], args].concat()).stdout
}

#[test]
fn only_changes_are_shown_with_their_reasons() {
    let text = history(&place("enforce"), &[]);
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "UTC                  kind      about             what happened",
        "2026-03-01 12:00:00  started   p                 the Oracle began, epoch 0, policy 0123456789ab",
        "2026-03-01 12:00:00  decision  p                 10 of 10 hosts treated",
        "2026-03-01 12:02:00  decision  calm network      on, 4 of 10 hosts: initial_cwnd = 20; network.max_link_utilization = 0.2",
        "2026-03-01 12:04:00  decision  calm network      on, 10 of 10 hosts (4 before)",
        "2026-03-01 12:06:00  decision  calm network      off after 4 min; network.max_link_utilization = 0.6000000000000001",
        "2026-03-01 12:07:00  decision  other             withheld: T = 60 s is not more than 100 RTTs: the p99 of srtt over the matched \
         sessions is 7.5 s",
        "2026-03-01 12:09:00  decision  quiet             the constraint does not hold, so nothing is set: ",
        "2026-03-01 12:10:00  policy    q                 applied by alice (uid 0) (abc, before 012)",
        "2026-03-01 12:11:00  leader                      Oracle 2 leads in term 7",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert_eq!(line.trim_end(), expected.trim_end());
    }
    assert_eq!(lines.len(), expected.len(), "{text}");
}

#[test]
fn rules_kinds_times_and_zones_narrow_it() {
    let place = place("enforce");
    let lines = |args: &[&str]| history(&place, args).lines().count();
    assert_eq!(lines(&["--rule", "calm network"]), 4);
    assert_eq!(lines(&["--kind", "policy", "--kind", "leader"]), 3);
    assert_eq!(lines(&["--kind", "policy", "--rule", "calm network"]), 0);
    let since = |when: &str| {
        place
            .succeed(&[
                "history",
                "--state",
                "state",
                "--since",
                when,
                "--until",
                "2026-03-01T12:10:30Z",
                "--time-zone",
                "policy",
            ])
            .stdout
    };
    let later = since("2026-03-01T12:04:30Z");
    assert!(
        later.contains("2026-03-01 13:06:00  decision  calm network      off after"),
        "in the policy's zone: {later}"
    );
    assert!(later.contains("on, 10 of 10 hosts: initial_cwnd = 20"), "what was on at the beginning is said: {later}");
    assert!(!later.contains("Oracle 2"), "{later}");
    let local =
        place.command(&["history", "--state", "state", "--since", "all"]).env("TZ", "Asia/Tokyo").output().unwrap();
    assert!(String::from_utf8(local.stdout).unwrap().contains("2026-03-01 21:02:00  decision  calm network"));
    let nothing = place.succeed(&["history", "--state", "state", "--since", "1h"]);
    assert_eq!(nothing.stdout, "");
    assert!(nothing.stderr.contains("nothing has changed in that time"), "{}", nothing.stderr);
}

#[test]
fn colours_are_for_terminals_and_names_cannot_change_one() {
    let place = place("enforce");
    // a process that another test starts has its lock until it executes its program
    let open = || Log::open(&place.join("state/audit"), Limits::default(), at(700));
    let mut log = None;
    until("the log is free", || {
        log = open().ok();
        log.is_some()
    });
    let mut log = log.expect("it is open");
    log.append(at(700), Kind::Guard, &json!({ "host": "h\u{1b}[2J", "reverted": 1 }));
    drop(log);
    assert!(!history(&place, &[]).contains('\x1b'));
    let coloured = history(&place, &["--color", "always"]);
    assert!(coloured.contains("\x1b[32mcalm network") && coloured.contains("\x1b[33mother"), "{coloured}");
    assert!(!coloured.contains("\x1b[2J") && coloured.contains("h [2J"), "{coloured}");
}

#[test]
fn json_holds_the_changes_or_every_line() {
    let place = place("enforce");
    let parsed = |args: &[&str]| -> Value { serde_json::from_str(&history(&place, args)).unwrap() };
    let changes = parsed(&["--json", "--rule", "calm network"]);
    assert_eq!(changes["entries"].as_array().unwrap().len(), 3);
    assert_eq!(changes["entries"][0]["time"], "2026-03-01T12:02:00.000Z");
    assert_eq!(changes["entries"][2]["words"], "off after 4 min; network.max_link_utilization = 0.6000000000000001");
    let all = parsed(&["--json", "--all", "--kind", "decision"]);
    assert_eq!(all["entries"].as_array().unwrap().len(), 10);
    assert_eq!(all["entries"][3]["body"]["rules"][0]["hosts"], json!({ "matched": 10, "on": 4 }));
    assert_eq!(parsed(&["--json", "--kind", "rollback"]), json!({ "entries": [] }));
    let text = history(&place, &["--all"]);
    assert!(text.contains("epoch 4, enforce: 10 of 10 hosts treated; `calm network` on, 4 of 10 hosts"), "{text}");
}

#[test]
fn an_observing_policy_gets_a_report_of_what_it_would_have_done() {
    let place = place("observe");
    let changes = history(&place, &[]);
    assert!(
        changes
            .contains("on, 4 of 10 hosts: initial_cwnd = 20; network.max_link_utilization = 0.2 (not sent: observing)"),
        "{changes}"
    );
    let text = history(&place, &["--report"]);
    for part in [
        "Decisions from 2026-03-01 12:00:00 to 2026-03-01 12:09:00 (UTC): 10 observed: nothing was sent.",
        "p/calm network: would have set initial_cwnd = 20",
        "on           4 of 10 decisions (40 %), switched on 1 times, 4 min in total, at most 4 min without a break",
        "hosts        4 to 10, 7.0 on average, of 10 that it is for",
        "values, on   network.max_link_utilization was 0.2 to 0.5",
        "values, off  network.max_link_utilization was 0 to 0.95",
        "p/other: would have set cc = dctcp",
        "on           never",
        "withheld     3 of 10 decisions: T = 60 s is not more than 100 RTTs: the p99 of srtt over the matched sessions is 7.5 s",
        "unknown      7 of 10 decisions",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value =
        serde_json::from_str(&history(&place, &["--report", "--json", "--rule", "calm network"])).unwrap();
    assert_eq!(json["rules"].as_array().unwrap().len(), 1);
    assert_eq!((&json["rules"][0]["on_s"], &json["rules"][0]["hosts_mean"]), (&240.0.into(), &7.0.into()));
    assert_eq!((&json["observing"], &json["enforcing"]), (&10.into(), &0.into()));
    history(&place, &["--report", "--out", "report.html"]);
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<h1>What the policy would have done</h1>"), "{page}");
    assert!(page.contains("initial_cwnd = 20") && page.contains("width:40.0%"), "{page}");
    assert_eq!(history(&place, &["--report", "--out", "-"]), page);
}

#[test]
fn damage_is_found_located_and_the_rest_is_still_read() {
    let place = place("enforce");
    let verify = ["history", "--state", "state", "--verify"];
    let intact = place.succeed(&verify).stdout;
    assert!(intact.starts_with("intact: 13 lines in ") && intact.contains("last hash: "), "{intact}");
    let mut files: Vec<_> =
        fs::read_dir(place.join("state/audit")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some());
    files.sort();
    let second = fs::read_to_string(&files[1]).unwrap();
    fs::write(&files[1], second.replacen("\"on\":", "\"no\":", 1)).unwrap();
    let damaged = place.opentcp(&verify);
    assert_eq!(damaged.code, Some(1));
    assert!(
        damaged.stderr.contains("the audit log is damaged in 1 places") && damaged.stderr.contains("the hashes differ"),
        "{}",
        damaged.stderr
    );
    let json: Value = serde_json::from_str(&place.opentcp(&[&verify[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!((&json["intact"], json["damages"].as_array().unwrap().len()), (&false.into(), 1));
    fs::write(&files[1], second.replacen('{', "", 1)).unwrap();
    let read = place.opentcp(&["history", "--state", "state", "--since", "all"]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert!(read.stderr.contains(".jsonl:1: no entry") && read.stderr.contains("--verify"), "{}", read.stderr);
    assert!(read.stdout.contains("Oracle 2 leads in term 7"), "{}", read.stdout);
}

#[test]
fn bad_input_gets_one_located_message() {
    let place = place("enforce");
    place.write("p.toml", "mode = \"enforce\"\n");
    place.write("broken.toml", "mode = \"enforce\"\nperiod = 7\n");
    place.write("long.toml", &"#".repeat(50_000));
    fs::write(place.join("binary.toml"), [0xff, 0xfe]).unwrap();
    fs::create_dir(place.join("folder")).unwrap();
    let history = |args: &[&'static str]| [&["history", "--state", "state"], args].concat();
    let live = |args: &[&'static str]| [&["policy"], args, &["--socket", "none.sock"]].concat();
    let cases: Vec<(Vec<&str>, i32, &str)> = vec![
        (vec!["history", "--state", "nowhere"], 2, "nowhere/audit: there is no audit log"),
        (vec!["history", "--state", "p.toml"], 2, "p.toml/audit: there is no audit log"),
        (history(&["--since", "yesterday"]), 2, "--since yesterday: no time; write a time ago"),
        (history(&["--since", "1"]), 2, "--since 1: no time"),
        (history(&["--since", ""]), 2, "--since : no time"),
        (history(&["--since", "2026-13-01T00:00:00Z"]), 2, "no time"),
        (history(&["--since", "9223372036854775s"]), 2, "that is too long ago"),
        (history(&["--until", "soon"]), 2, "--until soon: no time"),
        (history(&["--since", "1h", "--until", "2h"]), 2, "--until is not after --since"),
        (history(&["--kind", "decisions"]), 2, "there is no such kind; kinds are started, decision, cue"),
        (
            history(&["--time-zone", "Zurich"]),
            2,
            "--time-zone Zurich: there is no such time zone; did you mean `Europe/Zurich`?",
        ),
        (history(&["--report", "--all"]), 2, "cannot be used with"),
        (history(&["--report", "--verify"]), 2, "cannot be used with"),
        (history(&["--out", "x.html"]), 2, "--report"),
        (history(&["--report", "--out", "none/x.html"]), 2, "--out none/x.html: No such file"),
        (history(&["--report", "--out", "x.html", "--json"]), 2, "cannot be used with"),
        (history(&["--verify", "--rule", "r"]), 2, "cannot be used with"),
        (live(&["apply", "none.toml"]), 2, "cannot read the policy `none.toml`"),
        (live(&["apply", "folder"]), 2, "cannot read the policy `folder`"),
        (live(&["apply", "binary.toml"]), 2, "cannot read the policy `binary.toml`"),
        (live(&["apply", "long.toml"]), 2, "long.toml: 50000 bytes; a policy that is applied has at most 49152"),
        (live(&["apply", "p.toml", "--json"]), 2, "--yes"),
        (live(&["apply", "p.toml", "--seeds", "9"]), 2, "--require-trial"),
        (live(&["diff"]), 2, "<FILE>"),
        (live(&["diff", "p.toml"]), 1, "none.sock: No such file or directory (os error 2); is the Oracle running?"),
        (live(&["pause", "--for", "forever"]), 2, "write a time of at most 180 days with its unit"),
        (live(&["pause", "--for", "0s"]), 2, "write a time of at most 180 days"),
        (live(&["pause", "--for", "400d"]), 2, "write a time of at most 180 days"),
        (live(&["pause", "--for", "-1h"]), 2, "unexpected argument"),
        (live(&["rollback", "--json"]), 2, "--yes"),
        (live(&["resume"]), 1, "is the Oracle running?"),
        (live(&["show"]), 1, "is the Oracle running?"),
        (vec!["status", "--socket", "p.toml"], 1, "p.toml: Connection refused"),
    ];
    for (args, code, words) in cases {
        let before = place.entries();
        let done = place.opentcp(&args);
        assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
        assert_eq!(done.stdout, "", "{args:?}");
        let flat = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&words), "{args:?}: expected {words:?} in {}", done.stderr);
        assert!(!flat.contains("panicked") && flat.matches("error:").count() <= 1, "{args:?}: {}", done.stderr);
        assert_eq!(place.entries(), before, "{args:?} left something");
    }
}

#[test]
fn state_files_that_no_oracle_has_written_are_refused_with_their_place() {
    let place = Place::new();
    place.write("p.toml", &crate::hosts::policy("initial_cwnd = 20"));
    place.succeed(&["keygen", "--out", "key"]);
    fs::create_dir(place.join("state")).unwrap();
    let oracle = ["oracle", "p.toml", "--key", "key", "--socket", "sock", "--state", "state"];
    for text in ["", "{", "{\"versions\": {}}", "[1]"] {
        place.write("state/policies.json", text);
        let done = place.opentcp(&oracle);
        assert_eq!(done.code, Some(2), "{text}: {}", done.stderr);
        assert!(done.stderr.contains("state/policies.json: "), "{}", done.stderr);
    }
    fs::remove_file(place.join("state/policies.json")).unwrap();
    fs::remove_dir_all(place.join("state/audit")).unwrap();
    place.write("state/audit", "no folder");
    let done = place.opentcp(&oracle);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("state/audit: "), "{}", done.stderr);
}
