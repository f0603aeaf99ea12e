//! Completions and manual pages are made from the commands themselves.

use crate::common::Place;
use std::process::Command;

#[test]
fn every_shells_completions_know_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let done = place.succeed(&["completions", shell]);
        for word in ["doctor", "enforce", "backend", "--quiet"] {
            let plain = word.trim_start_matches('-');
            assert!(done.stdout.contains(plain), "{shell} does not know {word}");
        }
    }
    let script = place.succeed(&["completions", "bash"]).stdout;
    place.write("opentcp.bash", &script);
    let output = Command::new("bash")
        .args([
            "-c",
            "source opentcp.bash; COMP_WORDS=(opentcp cc l); COMP_CWORD=2; _opentcp opentcp l cc; echo ${COMPREPLY[@]}",
        ])
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said.trim(), "list load", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let place = Place::new();
    place.succeed(&["man", "pages"]);
    for (page, words) in
        [("opentcp.1", "opentcp"), ("opentcp-cc-load.1", "verified"), ("opentcp-enforce.1", "Examples")]
    {
        let text = std::fs::read_to_string(place.join("pages").join(page)).unwrap();
        assert!(
            text.starts_with(".ie \\n(.g") || text.starts_with(".TH") || text.contains(".TH opentcp"),
            "{page}: {text}"
        );
        assert!(text.contains(words), "{page}: {text}");
    }
}
