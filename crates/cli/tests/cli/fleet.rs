//! `opentcp fleet` without a bus: a new fleet, tokens, the Oracle's key, the certificate; and every mistake in asking for them.

use crate::common::Place;
use crate::outputs::files;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// A place with a fleet of two Oracles in `fleet`.
fn fleet() -> Place {
    let place = Place::new();
    let done = place.succeed(&[
        "fleet",
        "init",
        "fleet",
        "--server",
        "127.0.0.1:4222",
        "--server",
        "nats.example",
        "--oracles",
        "2",
    ]);
    let lines: Vec<&str> = done.stdout.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["fleet/nats", "fleet/oracle-0", "fleet/oracle-1", "fleet/operator", "fleet/keys"]);
    assert_eq!(done.stderr, "");
    place
}

/// The input is wrong: exit code 2, one line that says what, and nothing changes.
fn refused(place: &Place, args: &[&str], words: &str) {
    let before = files(place.path());
    let done = place.opentcp(args);
    assert_eq!(done.code, Some(2), "{args:?}: {}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "{args:?}");
    assert!(done.stderr.contains(words), "{args:?}: expected {words:?} in\n{}", done.stderr);
    assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert!(files(place.path()) == before, "{args:?} changed something");
}

#[test]
fn a_new_fleets_server_starts_and_its_identities_are_shown() {
    let place = fleet();
    let shown = place.succeed(&["fleet", "show", "fleet/oracle-1", "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["name"], &shown["role"], &shown["number"]), (&"oracle-1".into(), &"oracle".into(), &1.into()));
    assert_eq!(shown["servers"][1], "tls://nats.example:4222");
    let text = place.succeed(&["fleet", "show", "fleet/operator"]).stdout;
    assert!(text.starts_with("operator operator\n") && text.contains("valid for "), "{text}");
    for seed in ["operator.seed", "account.seed"] {
        let seed = fs::read_to_string(place.join("fleet/oracle-1").join(seed)).unwrap();
        assert!(!text.contains(seed.trim()));
    }
    let Ok(checked) = Command::new("nats-server")
        .args(["-c", "nats-server.conf", "-t"])
        .current_dir(place.join("fleet/nats"))
        .output()
    else {
        eprintln!("skipped: nats-server is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.contains("configuration file nats-server.conf is valid"), "{said}");
}

#[test]
fn a_token_is_one_line_on_stdout() {
    let place = fleet();
    let done = place.succeed(&["fleet", "token", "--fleet", "fleet", "--host", "h1", "--for", "10 min", "--uses", "1"]);
    assert_eq!(done.stdout.lines().count(), 1);
    assert!(done.stderr.contains("a secret, valid for 10 min"), "{}", done.stderr);
    assert!(done.stdout.len() < 4096, "a terminal takes a line of 4096 characters: {}", done.stdout.len());
    let token = fleet::Token::parse(&done.stdout, 0).unwrap();
    let ticket = &token.ticket.user;
    assert_eq!((ticket.member.hosts.as_slice(), ticket.uses), (["h1".to_string()].as_slice(), Some(1)));
    assert_eq!(ticket.expires - ticket.issued, 600);
    // from one Oracle's own folder, and quietly
    let done = place.succeed(&["--quiet", "fleet", "token", "--fleet", "fleet/oracle-1", "--role", "collector"]);
    assert_eq!(done.stderr, "");
    assert_eq!(fleet::Token::parse(&done.stdout, 0).unwrap().ticket.user.member.role, fleet::Role::Collector);
}

#[test]
fn the_oracles_key_is_replaced_in_two_steps() {
    let place = fleet();
    let keys = || {
        let text = fs::read_to_string(place.join("fleet/oracle-0/oracle.pub")).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect::<Vec<_>>()
    };
    let first = keys();
    let done = place.succeed(&["fleet", "rotate-key", "--fleet", "fleet"]);
    assert_eq!(done.stdout, "fleet/oracle-0: 2 keys are valid\nfleet/oracle-1: 2 keys are valid\n");
    assert!(done.stderr.contains("restart the Oracles"), "{}", done.stderr);
    let both = keys();
    assert_eq!(both[0], first[0]);
    refused(&place, &["fleet", "rotate-key", "--fleet", "fleet"], "end that rotation first");
    let done = place.succeed(&["fleet", "rotate-key", "--fleet", "fleet", "--finish"]);
    assert!(done.stdout.contains("1 key is valid"), "{}", done.stdout);
    assert_eq!(keys(), [both[1].clone()]);
    refused(&place, &["fleet", "rotate-key", "--fleet", "fleet", "--finish"], "there is no rotation to finish");
}

#[test]
fn the_certificate_is_renewed() {
    let place = fleet();
    let read = || fs::read_to_string(place.join("fleet/nats/server.pem")).unwrap();
    let before = read();
    let done = place.succeed(&["fleet", "certificate", "fleet", "--days", "90"]);
    assert_eq!(done.stdout, "fleet/nats/server.pem: valid for 90 days\n");
    assert_ne!(read(), before);
    refused(&place, &["fleet", "certificate", "fleet", "--days", "0"], "valid for 1 to 3650 days");
    refused(&place, &["fleet", "certificate", "fleet", "--server", "a b"], "\"a b\"");
    refused(&place, &["fleet", "certificate", "fleet/nats"], "fleet/nats/keys/ca.key: No such file");
    fs::write(place.join("fleet/keys/ca.key"), "x").unwrap();
    refused(&place, &["fleet", "certificate", "fleet"], "fleet/keys/ca.key: it holds no secret key in PEM");
}

#[test]
fn mistakes_in_making_a_fleet() {
    let place = Place::new();
    place.write("file", "x");
    let init = |more: &[&str], words: &str| {
        refused(&place, &[&["fleet", "init"], more].concat(), words);
    };
    let many: Vec<String> = (0..17).flat_map(|number| ["--server".to_string(), format!("s{number}")]).collect();
    let many: Vec<&str> = ["fleet"].into_iter().chain(many.iter().map(String::as_str)).collect();
    init(&["fleet"], "--server");
    init(&["--server", "a"], "<DIR>");
    init(&["fleet", "--server", ""], "the name is empty");
    init(&["fleet", "--server", "a:b"], "\"b\" is no port");
    init(&["fleet", "--server", "nats://a:4222"], "is no port");
    init(&["fleet", "--server", "a", "--server", "a:4222"], "named twice");
    init(&many, "17 servers");
    init(&["fleet", "--server", "a", "--oracles", "0"], "0 Oracles: from 1 to 256");
    init(&["fleet", "--server", "a", "--oracles", "300"], "300 Oracles");
    init(&["fleet", "--server", "a", "--oracles", "-1"], "-1");
    init(&["fleet", "--server", "a", "--certificate-days", "4000"], "4000 days");
    init(&["file", "--server", "a"], "file: it already exists and is not overwritten");
    init(&["fleet", "--server", "a", "--force"], "--force");
    assert_eq!(place.entries(), ["file"]);
    let made = fleet();
    refused(&made, &["fleet", "init", "fleet", "--server", "a"], "is not overwritten: it may hold the keys of a fleet");
}

#[test]
fn mistakes_in_asking_for_a_token() {
    let place = fleet();
    let token = |more: &[&str], words: &str| {
        refused(&place, &[&["fleet", "token", "--fleet", "fleet"], more].concat(), words);
    };
    token(&["--role", "oracle"], "invalid value 'oracle'");
    token(&["--role", "boss"], "agent, enforcer, collector, operator");
    token(&["--role", "enforcer"], "names the hosts that it may report for");
    token(&["--host", "a b"], "character other than letters");
    token(&["--host", ""], "the name is empty");
    token(&["--host", "h1", "--host", "h1"], "named twice");
    token(&["--for", "1"], "lacks a unit");
    token(&["--for", "1 week"], "`week` is not one of s, min, h and d");
    token(&["--for", "h"], "whole number and a unit");
    token(&["--for", "0s"], "valid for 1 s to 604800 s");
    token(&["--for", "8d"], "691200 s");
    token(&["--for", "99999999999999999d"], "too long");
    token(&["--uses", "0"], "1 to 65536 times");
    token(&["--uses", "many"], "many");
    refused(&place, &["fleet", "token", "--fleet", "none"], "none: No such file");
    refused(
        &place,
        &["fleet", "token", "--fleet", "fleet/operator"],
        "identity of an operator operator, not of an Oracle",
    );
    refused(&place, &["fleet", "token", "--fleet", "fleet/nats"], "fleet/nats/fleet.json: No such file");
    let seed = place.join("fleet/oracle-0/account.seed");
    fs::set_permissions(&seed, fs::Permissions::from_mode(0o644)).unwrap();
    token(&[], "account.seed: other users can read or change it; run: chown root");
    refused(&place, &["fleet", "show", "fleet"], "fleet/fleet.json: No such file");
    refused(&place, &["fleet", "show", "fleet/oracle-7"], "fleet/oracle-7: No such file");
    refused(&place, &["fleet", "rotate-key", "--fleet", "fleet/operator"], "not of an Oracle");
}
