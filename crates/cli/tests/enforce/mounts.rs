//! The most natural first try: `ip netns exec NS opentcp enforce`, where the machine's BPF file system is not to be seen.

use crate::transfer;
use crate::world::World;
use std::process::Command;
use testkit::eventually;

#[test]
fn an_enforcer_started_by_ip_netns_exec_enforces_and_takes_its_programs_with_it_when_killed() {
    let Some(world) = World::new() else { return };
    for _ in 0..2 {
        let enforcer = world.enforce_by_ip_netns_exec(&["--rule", "cubic"]);
        assert!(enforcer.said().contains("programs end with its process"), "{}", enforcer.said());
        assert!(world.has_xdp());
        transfer(&world, 1 << 20);
        let status = world.status();
        assert!(status["counters"]["data_taken"].as_u64().is_some_and(|packets| packets > 0), "{status}");
        enforcer.kill();
        assert!(eventually(|| !world.has_xdp()), "a killed enforcer's program is still there");
        transfer(&world, 1 << 20);
    }
    let stopped = world.enforce_by_ip_netns_exec(&["--rule", "cubic"]);
    stopped.stop();
    assert!(eventually(|| !world.has_xdp()), "a stopped enforcer's program is still there");
}

#[test]
fn a_reset_that_cannot_see_what_is_left_says_so() {
    let Some(world) = World::new() else { return };
    let [_, between, _] = world.hosts();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", between, env!("CARGO_BIN_EXE_opentcp"), "enforce", "--reset"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("nsenter --net=/run/netns/{between}")), "{said}");
}
