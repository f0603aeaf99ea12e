//! Several Oracles with the servers' lease: one that is killed, one that is suspended, one that ignores the lease.

use crate::world::{POLICY, World};
use policy::Epoch;
use std::fs;
use std::time::{Duration, Instant};
use testkit::{Running, asked, eventually, until};

/// T of the policy here, seconds.
const PERIOD_S: u64 = 2;
const AGENTS: [usize; 2] = [1, 2];

/// An Oracle that shares the lease, and the name of its files.
struct Oracle {
    process: Running,
    name: String,
}

impl Oracle {
    /// The `run`th of this number.
    fn start(world: &World, number: u8, run: u8) -> Oracle {
        let (name, identity) = (format!("oracle-{number}-{run}"), format!("fleet/oracle-{number}"));
        let state = format!("state-{number}");
        let arguments = ["oracle", "policy.toml", "--identity", &identity, "--state", &state, "--lease", "nats"];
        Oracle { process: world.start(0, &name, &arguments), name }
    }

    /// Its newest decision.
    fn epoch(&self, world: &World) -> Epoch {
        Epoch::of(world.decisions(&self.name).last().and_then(|last| last["epoch"].as_u64()).unwrap_or(0))
    }
}

/// Waits until both agents follow this Oracle; returns the term.
fn followed(world: &World, oracle: &Oracle, member: u8) -> u32 {
    let follow = || AGENTS.iter().all(|agent| world.epoch(*agent).member == member && world.epoch(*agent).term > 0);
    let newest = || world.epoch(1) <= oracle.epoch(world);
    assert!(eventually(|| follow() && newest()), "not Oracle {member}: {}", oracle.process.said());
    oracle.epoch(world).term
}

#[test]
fn agents_follow_whoever_decides_and_no_older_epoch() {
    let Some(world) = World::of(3) else { return };
    // longer than the two periods that another Oracle may need
    let policy = POLICY.replace("\"1 s\"", &format!("\"{PERIOD_S} s\"\nlifetime = \"{} s\"", 4 * PERIOD_S));
    fs::write(world.path("policy.toml"), &policy).unwrap();
    let one = Oracle::start(&world, 1, 1);
    let agents = world.agents(AGENTS.into_iter());
    let first = followed(&world, &one, 1);
    assert!(eventually(|| AGENTS.iter().all(|agent| world.is_set(*agent))), "{}", agents[0].said());
    let two = Oracle::start(&world, 2, 1);
    until("the second follows", || two.process.said().contains("agents at"));
    // it has heard of the lease, and of the hosts
    std::thread::sleep(Duration::from_secs(PERIOD_S));

    one.process.kill();
    let killed = Instant::now();
    until("another decides", || !world.decisions(&two.name).is_empty());
    let took = killed.elapsed();
    println!("the Oracle that decides is killed: another decides after {:.2} s, T = {PERIOD_S} s", took.as_secs_f64());
    let second = followed(&world, &two, 2);
    assert!(second > first, "term {second} after {first}");
    for agent in AGENTS {
        assert_eq!(world.count(agent, "expired"), 0, "h{agent} had the rule all the time");
    }

    let one = Oracle::start(&world, 1, 2);
    until("the first is back", || one.process.said().contains("agents at"));
    std::thread::sleep(Duration::from_secs(PERIOD_S));
    two.process.pause(true);
    // the suspended one is not informed of this, so whatever it still sends shows on a route
    let third = followed(&world, &one, 1);
    assert!(third > second, "term {third} after {second}");
    fs::write(world.path("new.toml"), policy.replace("= 20", "= 30")).unwrap();
    world.done(0, &["policy", "apply", "new.toml", "--yes", "--identity", "fleet/operator"], "");
    until("the new policy is in force", || AGENTS.iter().all(|agent| world.has_window(*agent, 30)));
    // a lease lasts one period
    let paused = if asked::<u32>("OPENTCP_LOAD") == Some(1) { 60 } else { 2 * PERIOD_S };
    std::thread::sleep(Duration::from_secs(paused));
    two.process.pause(false);
    let stays = |what: &str, periods: usize| {
        let from = world.decisions(&one.name).len();
        let mut last = AGENTS.map(|agent| world.epoch(agent));
        until("periods pass", || {
            for (agent, last) in AGENTS.into_iter().zip(&mut last) {
                let now = world.epoch(agent);
                assert!(now >= *last && now.member == 1, "{what}: h{agent} has taken {now} after {last}");
                assert!(world.has_window(agent, 30), "{what}: h{agent} has lost the newer decision");
                *last = now;
            }
            world.decisions(&one.name).len() >= from + periods
        });
    };
    stays("an Oracle wakes", 3);
    let said = two.process.said();
    assert!(said.contains("Oracle 2 does not decide: Oracle 1 has the lease"), "{said}");

    // the same key, and no lease
    let rogue = ["oracle", "policy.toml", "--identity", "fleet/oracle-2", "--state", "rogue"];
    let rejected = AGENTS.map(|agent| world.count(agent, "rejected"));
    let rogue = Oracle { process: world.start(0, "rogue", &rogue), name: "rogue".into() };
    until("it decides", || world.decisions("rogue").len() >= 2);
    stays("an Oracle ignores the lease", 2);
    assert!(rogue.process.said().contains("above this Oracle's"), "{}", rogue.process.said());
    for (agent, before) in AGENTS.into_iter().zip(rejected) {
        until("what it sends is counted as rejected", || world.count(agent, "rejected") > before);
    }
    for process in [rogue.process, two.process, one.process].into_iter().chain(agents) {
        process.stop();
    }
    world.untouched();
}
