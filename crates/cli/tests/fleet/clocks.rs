//! Machines whose wall clocks are wrong.

use crate::world::{HOSTS, POLICY, World};
use std::fs;
use testkit::{Running, WallClock, until};

const DAY: i64 = 86_400;

#[test]
fn wrong_clocks_change_nothing_unless_a_certificate_is_not_valid_by_them() {
    let Some(world) = World::new() else { return };
    // a restart of the Oracle is shorter
    fs::write(world.path("policy.toml"), POLICY.replace("\"1 s\"", "\"1 s\"\nlifetime = \"20 s\"")).unwrap();
    let oracle = world.oracle();
    let token = world.token();
    // the certificate is a few seconds old and valid from a day earlier on: a clock that is a day behind is just within
    let wrong_by = [DAY, -DAY, -3 * DAY, 0];
    let clocks: Vec<WallClock> =
        (1..=HOSTS).map(|host| WallClock::new(&world.path(&format!("clock-{host}")))).collect();
    let start = |host: usize| -> Running {
        world.enroll(host, &token);
        clocks[host - 1].set(wrong_by[host - 1]);
        let mut command = world.agent_command(host);
        command.envs(clocks[host - 1].environment());
        world.launch(host, &format!("h{host}"), command)
    };
    let agents: Vec<Running> = (1..=HOSTS).map(start).collect();
    let near = [1, 2, 4];
    for host in near {
        until("it is steered", || world.is_set(host));
        println!("h{host}: a clock {:+} days off, steered", wrong_by[host - 1] / DAY);
    }
    until("it says why it is not connected", || agents[2].said().contains("no server of the fleet yet"));
    let said = agents[2].said();
    println!("h3: {}", said.lines().last().unwrap_or_default());
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("no server")).collect();
    assert!(lines.len() == 1 && lines[0].contains("not valid yet") && lines[0].contains("machine's clock"), "{said}");
    assert!(!world.is_set(3));

    oracle.stop();
    let clock = WallClock::new(&world.path("clock-oracle"));
    clock.set(DAY);
    let mut command = world.command(&["oracle", "policy.toml", "--identity", "fleet/oracle-0", "--state", "oracle"]);
    command.envs(clock.environment());
    let before = near.map(|host| world.epoch(host));
    let oracle = world.launch(0, "oracle", command);
    let goes_on = || {
        let from = near.map(|host| world.epoch(host));
        until("epochs go on", || {
            for host in near {
                assert!(world.is_set(host), "h{host}: {}", oracle.said());
            }
            near.iter().zip(from).all(|(host, from)| world.epoch(*host).number() >= from.number() + 3)
        });
    };
    goes_on();
    assert!(near.iter().zip(before).all(|(host, before)| world.epoch(*host) > before));
    println!("an Oracle a day ahead: epochs go on");
    assert!(clock.is_read(), "the Oracle reads it, for its log");
    // a step while it runs
    clocks[0].set(-DAY);
    goes_on();

    // somebody corrects it
    clocks[2].set(0);
    until("it is steered without a restart", || world.is_set(3));
    for host in near {
        assert_eq!(world.count(host, "expired"), 0, "h{host}");
    }
    assert_eq!(agents[2].said().matches("no server of the fleet").count(), 1, "{}", agents[2].said());
    agents.into_iter().for_each(Running::stop);
    oracle.stop();
    world.untouched();
}
