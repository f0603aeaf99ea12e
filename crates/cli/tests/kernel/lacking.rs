//! Errors for a user who lacks a capability, or a machine without a BPF file system: they name what is missing and what to do.

use crate::loading::{Exclusive, as_nobody};
use std::process::Command;

#[test]
fn without_rights_errors_name_those_that_are_missing_and_what_to_do() {
    let Some(_kernel) = Exclusive::new() else { return };
    let outputs = as_nobody([
        &["agent"],
        &["agent", "--state", "/tmp/nobodys-agent", "--means", "routes"],
        &["enforce", "--between", "lo", "lo2", "--rule", "cubic"],
        &["keygen"],
    ]);
    let expected = [
        "needs root, or the capability CAP_NET_ADMIN",
        "needs root, or the capability CAP_NET_ADMIN",
        "CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK is missing",
        "/etc/opentcp",
    ];
    for (output, words) in outputs.iter().zip(expected) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("error: ") && said.contains(words) && said.contains("sudo"), "{words:?} in {said}");
    }
    assert!(outputs[..3].iter().all(|output| output.status.code() == Some(2)));
}

#[test]
fn an_agent_whose_settings_could_not_last_says_where_to_start_it() {
    let Some(_kernel) = Exclusive::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let name = format!("otl-{}", std::process::id());
    let ip = |args: &[&str]| assert!(Command::new("ip").args(args).status().unwrap().success());
    let opentcp = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_opentcp")).args(args).current_dir(&place).output();
    opentcp(&["keygen", "--out", "key"]).unwrap();
    ip(&["netns", "add", &name]);
    let mut agent = Command::new("ip");
    agent.args(["netns", "exec", &name, env!("CARGO_BIN_EXE_opentcp"), "agent"]).current_dir(&place);
    let output = agent.args(["--state", "state", "--key", "key.pub", "--socket", "none"]).output();
    ip(&["netns", "del", &name]);
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("nsenter --net=/run/netns/{name}")) && said.contains("--means routes"), "{said}");
}
