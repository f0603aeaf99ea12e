//! The Oracle's key is changed while agents run.

use crate::world::{HOSTS, POLICY, World};
use std::fs;
use std::process::Command;
use std::time::Instant;
use testkit::{Running, WallClock, eventually, until};

#[test]
fn agents_follow_through_a_change_of_the_oracles_key() {
    let Some(mut world) = World::new() else { return };
    // a restart of the server or the Oracle is shorter
    fs::write(world.path("policy.toml"), POLICY.replace("\"1 s\"", "\"1 s\"\nlifetime = \"20 s\"")).unwrap();
    let mut oracle = world.oracle();
    let token = world.token();
    // by this clock half of each identity's time is over: it asks for news within seconds of a connection, not within an hour
    let clock = WallClock::new(&world.path("clock"));
    clock.set(46 * 86_400);
    let start = |host: usize| -> Running {
        world.enroll(host, &token);
        let mut command = world.agent_command(host);
        command.envs(clock.environment());
        world.launch(host, &format!("h{host}"), command)
    };
    let agents: Vec<Running> = (1..=HOSTS).map(start).collect();
    until("all are steered", || (1..=HOSTS).all(|host| world.is_set(host)));
    let copied = Command::new("cp").args(["-a", "fleet/oracle-0", "earlier"]).current_dir(&world.place).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let keys = |world: &World, host: usize| {
        let text = fs::read_to_string(world.path(&format!("h{host}/oracle.pub"))).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    for (step, valid) in [
        (&["fleet", "rotate-key", "--fleet", "fleet"][..], 2),
        (&["fleet", "rotate-key", "--fleet", "fleet", "--finish"], 1),
    ] {
        let before: Vec<_> = (1..=HOSTS).map(|host| world.epoch(host)).collect();
        println!("{}", world.done(0, step, "").lines().next().unwrap_or_default());
        oracle.stop();
        oracle = world.oracle();
        let restarted = Instant::now();
        until("all take CUEs of the restarted Oracle", || {
            assert!((1..=HOSTS).all(|host| world.is_set(host)), "{}", oracle.said());
            (1..=HOSTS).zip(&before).all(|(host, before)| world.epoch(host).number() >= before.number() + 2)
        });
        println!("  CUEs are taken {:.1} s after the restart", restarted.elapsed().as_secs_f64());
        // whoever connects asks
        world.server.kill();
        world.server.again();
        let connected = Instant::now();
        let have = || (1..=HOSTS).all(|host| keys(&world, host) == valid);
        let said = || agents.iter().map(Running::said).collect::<String>();
        assert!(eventually(have), "{}\n{}{:?}", said(), oracle.said(), world.decisions("oracle").last());
        println!(
            "  {HOSTS} agents have the change {:.1} s after they lost the server",
            connected.elapsed().as_secs_f64()
        );
    }
    for (host, agent) in (1..=HOSTS).zip(&agents) {
        until("the key is used", || agent.said().matches("the Oracle's keys were replaced").count() >= 2);
        assert_eq!(world.count(host, "expired"), 0, "h{host} has missed CUEs: {}", agent.said());
    }

    // the key before is worth nothing, however high the epoch is
    oracle.stop();
    let last = (1..=HOSTS).map(|host| world.epoch(host).number()).max().unwrap();
    fs::create_dir(world.path("rogue")).unwrap();
    fs::write(world.path("rogue/epoch"), format!("{}\n", last + 1000)).unwrap();
    let rejected: Vec<u64> = (1..=HOSTS).map(|host| world.count(host, "rejected")).collect();
    let rogue = world.start(0, "rogue", &["oracle", "policy.toml", "--identity", "earlier", "--state", "rogue"]);
    for (host, before) in (1..=HOSTS).zip(rejected) {
        until("what the earlier key signed is rejected", || world.count(host, "rejected") > before);
        assert!(world.epoch(host).number() < last + 1000, "h{host}");
    }
    rogue.stop();
    agents.into_iter().for_each(Running::stop);
    world.untouched();
}
