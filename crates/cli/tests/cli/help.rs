//! Finding a command: groups, `help`, `version`, what was meant, and files of another kind.

use crate::common::Place;
use crate::outputs::SMALL;
use std::time::Instant;

#[test]
fn help_lists_the_commands_in_groups() {
    let place = Place::new();
    let help = place.succeed(&["--help"]).stdout;
    let places =
        ["Start here:\n  doctor ", "Simulate and emulate:\n  run ", "Live hosts:\n  oracle ", "About:\n  help "]
            .map(|words| help.find(words).unwrap_or_else(|| panic!("no {words:?} in {help}")));
    assert!(places.is_sorted(), "{help}");
    assert_eq!(help, place.succeed(&["help"]).stdout);
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn help_and_version_are_commands_too() {
    let place = Place::new();
    for command in [&["run"][..], &["policy", "try"]] {
        let help = place.succeed(&[&["help"][..], command].concat());
        assert_eq!(help.stdout, place.succeed(&[command, &["--help"]].concat()).stdout);
    }
    assert_eq!(place.succeed(&["version"]).stdout, place.succeed(&["--version"]).stdout);
    let none = place.opentcp(&["help", "policy", "tyr"]);
    assert_eq!(
        (none.code, none.stderr.contains("did you mean `opentcp policy try`?")),
        (Some(2), true),
        "{}",
        none.stderr
    );
}

#[test]
fn a_command_that_does_not_exist_is_answered_with_what_was_meant() {
    let place = Place::with(SMALL);
    for (typed, meant) in [
        (&["rnu", "a.toml"][..], "`opentcp run`"),
        (&["-q", "shell", "a.toml"], "`opentcp emu shell`"),
        (&["a.toml"], "`opentcp run a.toml`"),
        (&["policy", "chekc", "a.toml"], "`opentcp policy check`"),
    ] {
        let done = place.opentcp(typed);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{typed:?}");
        assert!(done.stderr.contains(&format!("did you mean {meant}?")), "{typed:?}: {}", done.stderr);
    }
    let none = place.opentcp(&["xyzzyx"]);
    assert_eq!(none.stderr, "error: there is no command `opentcp xyzzyx`; `opentcp help` lists all\n");
}

#[test]
fn a_file_of_another_kind_is_answered_with_the_command_for_it() {
    let place = Place::with(SMALL);
    place.succeed(&["init", "algorithm", "mine"]);
    place.succeed(&["init", "policy", "calm"]);
    place.write("first.cc", "int main() { return 0; }\n");
    for (command, file, words) in [
        ("run", "mine.c", "opentcp cc check mine.c"),
        ("sweep", "mine.c", "opentcp cc check mine.c"),
        ("run", "calm.toml", "opentcp policy try calm.toml"),
        ("run", "first.cc", "opentcp init scenario NAME"),
    ] {
        let done = place.opentcp(&[command, file]);
        assert_eq!((done.code, done.stderr.lines().count()), (Some(2), 2), "{}", done.stderr);
        assert!(done.stderr.contains(words), "{}", done.stderr);
    }
    let policy = place.opentcp(&["policy", "try", "a.toml", "--scenario", "a.toml"]);
    assert!(policy.stderr.contains("`opentcp run a.toml` runs it"), "{}", policy.stderr);
}

#[test]
fn units_of_other_programs_are_read() {
    let place = Place::with(&SMALL.replace("20 Mbit/s\"\ndelay", "20Mbps\"\ndelay").replace("1 ms", "1000 usec"));
    place.succeed(&["run", "a.toml", "--out", "out"]);
    let written = std::fs::read_to_string(place.join("out/scenario.toml")).unwrap();
    assert!(written.contains("rate = \"20 Mbit/s\"") && written.contains("delay = \"1 ms\""), "{written}");
}

#[test]
fn an_oracle_that_is_not_there_is_said_at_once_with_what_was_tried() {
    let place = Place::new();
    let began = Instant::now();
    let mut command = place.command(&["status"]);
    let output = command.env_remove("OPENTCP_IDENTITY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        eprintln!("skipped: an Oracle runs on this machine");
        return;
    }
    assert!(began.elapsed().as_secs() < 5, "{said}");
    assert!(said.contains("tried: --identity (not given), OPENTCP_IDENTITY (not set)"), "{said}");
    let output = place.command(&["status"]).env("OPENTCP_IDENTITY", "nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("nowhere"), "the variable names it: {said}");
}
