//! Servers whose certificates members do not accept.

use crate::world::World;
use std::fs;
use testkit::{Running, WallClock, until};

/// The line in which a process says that no server is connected, and why; there is one, and no other but that the server was away.
fn reason(process: &Running, why: &str) -> String {
    let lines = |said: &str| -> Vec<String> {
        let lines = said.lines().filter(|line| line.contains("no server of the fleet") && !line.contains("refused"));
        lines.map(str::to_string).collect()
    };
    until("it says why it is not connected", || !lines(&process.said()).is_empty());
    let lines = lines(&process.said());
    println!("{}", lines[0]);
    assert!(lines.len() == 1 && lines[0].contains(why), "{}", process.said());
    lines[0].clone()
}

#[test]
fn a_certificate_that_members_do_not_accept_is_said_in_a_line_and_changes_no_host() {
    let Some(mut world) = World::new() else { return };
    let oracle = world.oracle();
    let mut agents = world.agents(1..=1);
    until("it is steered", || world.is_set(1));
    let token = world.token();
    for host in [2, 3] {
        world.enroll(host, &token);
    }
    // another fleet's authority
    world.done(0, &["fleet", "init", "other", "--server", "10.97.0.1:4222"], "");
    fs::copy(world.path("other/oracle-0/ca.pem"), world.path("h3/ca.pem")).unwrap();
    agents.push(world.agent(3));
    reason(&agents[1], "is not of this fleet's authority");

    // made three days ago for a day
    let clock = WallClock::new(&world.path("clock"));
    clock.set(-3 * 86_400);
    let mut made = world.command(&["fleet", "certificate", "fleet", "--days", "1"]);
    made.envs(clock.environment());
    let made = world.finish(0, made, "");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    world.server.kill();
    world.server.again();
    agents.push(world.agent(2));
    for (host, agent) in [(1, &agents[0]), (2, &agents[2])] {
        let why = reason(agent, "expired");
        assert!(why.contains("`opentcp fleet certificate`") && why.contains("this machine's clock"), "{why}");
        until("nothing is in force", || !world.is_set(host));
    }
    reason(&oracle, "expired");

    world.done(0, &["fleet", "certificate", "fleet"], "");
    world.server.kill();
    world.server.again();
    for host in [1, 2] {
        until("it is steered", || world.is_set(host));
    }
    assert!(!world.is_set(3), "{}", agents[1].said());
    assert!(oracle.said().contains("connected to a server of the fleet"), "{}", oracle.said());
    agents.into_iter().for_each(Running::stop);
    oracle.stop();
    world.untouched();
}
