//! The disk of the Oracle's audit log is full.

use crate::world::{POLICY, World};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use testkit::until;

#[test]
fn a_full_disk_under_the_audit_log_stops_no_cue_and_is_counted() {
    let Some(world) = World::new() else { return };
    // the lifetime is longer than all of this takes
    fs::write(world.path("policy.toml"), POLICY.replace("\"1 s\"", "\"1 s\"\nlifetime = \"30 s\"")).unwrap();
    // a small file system that only the Oracle sees, and that ends with it
    let mounted =
        "mkdir -p oracle/audit && mount -t tmpfs -o size=32k,mode=0700 audit oracle/audit && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.current_dir(&world.place).args(["--mount", "sh", "-c", mounted, env!("CARGO_BIN_EXE_opentcp")]);
    command.args(["oracle", "policy.toml", "--identity", "fleet/oracle-0", "--state", "oracle"]);
    let oracle = world.launch(0, "oracle", command);
    let agents = world.agents(1..=1);
    until("it is steered", || world.is_set(1));
    let inside = |name: &str| -> PathBuf {
        let folder = fs::canonicalize(&world.place).unwrap();
        PathBuf::from(format!("/proc/{}/root{}/oracle/audit/{name}", oracle.id(), folder.display()))
    };
    let status = || -> Value {
        serde_json::from_str(&world.done(0, &["status", "--identity", "fleet/operator", "--json"], "")).unwrap()
    };
    assert_eq!(status()["audit_lost"], 0);
    let mut filler = File::create(inside("filler")).unwrap();
    while filler.write_all(&[0; 1024]).is_ok() {}
    drop(filler);
    until("the loss is counted", || status()["audit_lost"].as_u64() > Some(0));
    let full = world.epoch(1).number();
    let taken = world.count(1, "taken");
    until("CUEs go on", || {
        assert!(world.is_set(1), "{}{}{:?}", oracle.said(), agents[0].said(), world.decisions("oracle").last());
        world.epoch(1).number() >= full + 3 && world.count(1, "taken") >= taken + 3
    });
    let lost = status()["audit_lost"].as_u64().unwrap();
    let shown = world.done(0, &["status", "--identity", "fleet/operator"], "");
    let line = shown.lines().find(|line| line.contains("could not be written")).unwrap_or_else(|| panic!("{shown}"));
    println!("after {} periods on a full disk: {line}", world.epoch(1).number() - full);
    assert!(lost >= 3, "a decision and a CUE each period: {lost}");
    let said = oracle.said();
    assert_eq!(said.matches("the audit log cannot be written").count(), 1, "{said}");

    fs::remove_file(inside("filler")).unwrap();
    until("it is written again", || status()["audit_lost"] == 0);
    let mut log = String::new();
    for file in fs::read_dir(inside("")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("audit-") {
            log += &fs::read_to_string(file.path()).unwrap();
        }
    }
    let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let gap = lines.rfind(|line| line["kind"] == "gap").expect("the gap is recorded");
    println!("recorded: {}", gap["body"]);
    assert!(gap["body"]["lost_lines"].as_u64() >= Some(lost), "{gap}");
    assert!(oracle.said().contains("the audit log is written again"), "{}", oracle.said());
    agents.into_iter().for_each(testkit::Running::stop);
    oracle.stop();
    world.untouched();
}
