//! `opentcp doctor` where everything is there, and where something is not.

use crate::common::Place;
use crate::loading::{Exclusive, as_nobody, hide_btf, with_mounts};
use serde_json::Value;
use std::process::Command;

/// Whether a command works, and what it lacks.
fn command<'a>(examined: &'a Value, name: &str) -> (bool, Vec<&'a str>) {
    let all = examined["commands"].as_array().unwrap();
    let one = all.iter().find(|one| one["command"] == name).unwrap();
    let lacks = one["lacks"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    (one["works"].as_bool().unwrap(), lacks)
}

#[test]
fn where_everything_is_there_every_command_works() {
    let Some(kernel) = Exclusive::new() else { return };
    let done = kernel.place.succeed(&["doctor", "--json"]);
    let examined: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(examined["fit"], true);
    for name in ["run", "cc load", "run --backend emu", "emu shell", "enforce"] {
        assert_eq!(command(&examined, name), (true, Vec::new()), "{examined}");
    }
    let text = kernel.place.succeed(&["doctor"]).stdout;
    assert!(text.lines().any(|line| line.starts_with("ok        struct_ops")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("works     opentcp enforce")), "{text}");
}

#[test]
fn without_rights_the_simulator_works_and_sudo_is_the_advice() {
    let Some(_kernel) = Exclusive::new() else { return };
    let [json, text] = as_nobody([&["doctor", "--json"], &["doctor"]]);
    assert_eq!(json.status.code(), Some(0), "{}", String::from_utf8_lossy(&json.stderr));
    let examined: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(command(&examined, "run"), (true, Vec::new()), "{examined}");
    for name in ["cc load", "run --backend emu", "agent", "enforce"] {
        let (works, lacks) = command(&examined, name);
        assert!(!works && lacks.contains(&"rights"), "{name}: {examined}");
    }
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("→ run the command with `sudo`"), "{text}");
}

#[test]
fn under_ip_netns_exec_commands_whose_work_must_last_say_where_to_start_them() {
    let Some(_kernel) = Exclusive::new() else { return };
    let name = format!("otd-{}", std::process::id());
    let ip = |args: &[&str]| assert!(Command::new("ip").args(args).status().unwrap().success());
    ip(&["netns", "add", &name]);
    let output =
        Command::new("ip").args(["netns", "exec", &name, env!("CARGO_BIN_EXE_opentcp"), "doctor", "--json"]).output();
    ip(&["netns", "del", &name]);
    let examined: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(command(&examined, "enforce"), (true, Vec::new()), "{examined}");
    let (works, lacks) = command(&examined, "cc load");
    assert!(!works && lacks == ["bpffs"], "{examined}");
    assert!(examined.to_string().contains(&format!("nsenter --net=/run/netns/{name}")), "{examined}");
}

#[test]
fn a_kernel_without_btf_is_named_as_the_reason() {
    let Some(kernel) = Exclusive::new() else { return };
    let done = with_mounts(&kernel, hide_btf, &["doctor", "--json"]);
    let examined: Value = serde_json::from_str(&done.stdout).unwrap();
    let (works, lacks) = command(&examined, "cc load");
    assert!(!works && lacks.contains(&"BTF"), "{examined}");
    assert!(done.stdout.contains("CONFIG_DEBUG_INFO_BTF=y"), "{}", done.stdout);
}

#[test]
fn an_examination_leaves_nothing_behind() {
    let place = Place::new();
    place.succeed(&["doctor"]);
    assert!(place.entries().is_empty(), "{:?}", place.entries());
}
