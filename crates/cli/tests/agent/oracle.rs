//! The Oracle as a process.

use crate::world::{THERE, World, comes_within};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};
use testkit::{eventually, policy_for_all};

/// Sets values that are no default, whatever the network does, and decides every second.
fn policy() -> String {
    policy_for_all("1 s", r#"cc = "newreno", initial_cwnd = 20"#)
}

#[test]
fn when_the_oracle_is_killed_hosts_return_to_defaults_within_the_cues_lifetime() {
    // 1.5 periods, and a moment for a busy machine to wake the agent and this test
    comes_within(Duration::from_millis(1500 + 200), after_the_oracle_is_killed);
}

fn after_the_oracle_is_killed() -> Option<Duration> {
    let world = World::new()?;
    fs::write(world.path("policy.toml"), policy()).unwrap();
    let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
    assert_eq!(code, Some(0), "{error}");
    let arguments = ["oracle", "policy.toml", "--key", "oracle.key", "--socket", "oracle.sock", "--state", "oracle"];
    let places = world.places();
    let mut agents = vec!["agent", "--host", "h1", "--key", "oracle.key.pub", "--socket", "oracle.sock"];
    agents.extend(places.iter().map(String::as_str));
    let agent = world.start(&agents);
    let oracle = world.start(&arguments);
    let open = world.connection(THERE);
    let out = || fs::read_to_string(world.path("out")).unwrap();
    assert!(eventually(|| world.uses(&open.0, "reno")), "{}{}{}", oracle.said(), agent.said(), out());
    let decisions = || -> Vec<Value> {
        // the last line may be half-written
        out().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let is_printed = || decisions().iter().any(|decision| decision["cues"][0]["rule"] == "always");
    assert!(eventually(is_printed), "{:?}", decisions());
    let last = decisions().last().unwrap()["epoch"].as_u64().unwrap();
    let killed = Instant::now();
    oracle.kill();
    assert!(eventually(|| !world.uses(&open.0, "reno")), "{}", agent.said());
    let took = killed.elapsed();
    println!("Oracle killed -9: at the defaults after {:.2} s of at most 1.5", took.as_secs_f64());

    let oracle = world.start(&arguments);
    assert!(
        eventually(|| world.uses(&open.0, "reno")),
        "the next epoch is accepted: {}{}",
        oracle.said(),
        agent.said()
    );
    assert!(eventually(|| !decisions().is_empty()), "{}", oracle.said());
    assert!(decisions()[0]["epoch"].as_u64().unwrap() > last, "epochs continue: {:?}", decisions()[0]);
    oracle.interrupt();
    agent.interrupt();
    world.assert_as_before();
    Some(took)
}

#[test]
fn an_oracle_refuses_a_key_that_others_can_read_and_a_bad_policy() {
    let Some(world) = World::new() else { return };
    fs::write(world.path("policy.toml"), policy()).unwrap();
    world.opentcp(&["keygen", "--out", "oracle.key"]);
    let (code, _, error) = world.opentcp(&["keygen", "--out", "oracle.key"]);
    assert!(code == Some(2) && error.contains("not overwritten"), "{error}");
    fs::set_permissions(world.path("oracle.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let arguments = |policy| ["oracle", policy, "--key", "oracle.key", "--socket", "oracle.sock", "--state", "oracle"];
    let (code, _, error) = world.opentcp(&arguments("policy.toml"));
    assert!(code == Some(2) && error.contains("other users can read"), "{error}");
    fs::write(world.path("bad.toml"), policy().replace(">= 0", ">= \"x\"")).unwrap();
    let (code, _, error) = world.opentcp(&arguments("bad.toml"));
    assert!(code == Some(2) && error.contains("bad.toml:7:"), "{error}");
}
