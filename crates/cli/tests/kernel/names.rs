//! Hosts of `opentcp emu shell` by their names, as everybody types them.

use crate::emulation::machine;
use std::env;
use std::fs;

fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !found {
        eprintln!("skipped in part: no {program} here");
    }
    found
}

#[test]
fn hosts_are_pinged_and_measured_by_their_names() {
    let Some((_machine, place)) = machine() else { return };
    let before = fs::read_to_string("/etc/hosts").unwrap();
    if has("ping") {
        let done = place.succeed(&["emu", "shell", "a.toml", "-c", "h1 ping -c 2 -i 0.2 -W 5 h2"]);
        assert!(done.stdout.contains("2 received"), "{}\n{}", done.stdout, done.stderr);
    }
    if has("iperf3") {
        // 200 kB at 20 Mbit/s: a tenth of a second
        let command = "h2 iperf3 -s -1 >log 2>&1 & until h1 iperf3 -c h2 -n 200K; do sleep 0.2; done; wait";
        let done = place.succeed(&["emu", "shell", "a.toml", "-c", command]);
        assert!(done.stdout.contains("Connecting to host h2") && done.stdout.contains("receiver"), "{}", done.stdout);
    }
    assert_eq!(fs::read_to_string("/etc/hosts").unwrap(), before, "the machine's own names are as they were");
}

#[test]
fn the_machines_own_names_are_known_to_hosts_too() {
    let Some((_machine, place)) = machine() else { return };
    let done = place.succeed(&["emu", "shell", "a.toml", "-c", "h1 getent ahostsv4 h2 localhost"]);
    assert!(
        done.stdout.lines().any(|line| line.ends_with("STREAM h2")) && done.stdout.contains("127.0.0.1"),
        "{}",
        done.stdout
    );
}
