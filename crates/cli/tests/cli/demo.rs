//! The demonstration without real kernels.

use crate::common::Place;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// Runs it without the capabilities that emulation needs.
fn without_rights(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    if nix::unistd::geteuid().is_root() {
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set=-sys_admin,-net_admin,-bpf", "--inh-caps=-all"]);
        without.arg(command.get_program()).args(command.get_args()).current_dir(place.path());
        command = without;
    }
    command
}

#[test]
fn without_rights_nothing_is_emulated_more_slowly() {
    let place = Place::new();
    let output = without_rights(&place, &["demo", "--slower", "auto", "--out", "o"]).output();
    let output = output.expect("setpriv is a part of Debian's util-linux");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("--slower needs real kernels: "), "{stderr}");
    assert!(!place.join("o").exists(), "nothing is written");
}

#[test]
fn without_rights_the_demonstration_is_simulated_and_says_so_first() {
    let place = Place::new();
    let mut child = without_rights(&place, &["demo", "--out", "o"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    // a minute of computing: study's own test looks at what comes of it
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(first.starts_with("SIMULATED, not on real kernels: "), "{first}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(place.entries().is_empty(), "nothing is left half-written");
}
