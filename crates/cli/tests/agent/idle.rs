//! The CPU time of an agent on an idle host.

use crate::world::{THERE, TestOracle, World, comes_within, cue, guarded, guardian, reno};
use policy::Cue;
use std::time::Duration;
use std::{fs, thread};
use testkit::eventually;
use units::Time;

/// The time observed, and 0.1 % of it.
const WATCHED: Duration = Duration::from_secs(20);
const MOST: Duration = Duration::from_millis(20);

#[test]
fn an_idle_agent_with_a_guarded_rule_in_force_takes_at_most_a_thousandth_of_a_cpu() {
    comes_within(MOST, time_of_an_idle_agent);
}

fn time_of_an_idle_agent() -> Option<Duration> {
    let world = World::new()?;
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--link", "eth0=1 Gbit/s"]);
    let idle = world.connection(THERE);
    oracle.send(&guarded(Cue { lifetime: Time::from_secs(300), ..cue(1, reno()) }));
    assert!(eventually(|| world.uses(&idle.0, "reno")), "{}", agent.said());
    oracle.wait_for_reports(&agent);
    let of_both = || processor_time(agent.id()) + processor_time(guardian(&agent).cast_unsigned());
    let before = of_both();
    thread::sleep(WATCHED);
    let took = of_both().saturating_sub(before);
    println!("idle for {WATCHED:?} with a guarded rule in force: {took:?} of a CPU, agent and guardian");
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.in_force.len(), report.counts.expired), (1, 0), "it was in force all the time");
    agent.interrupt();
    world.assert_as_before();
    Some(took)
}

/// A process's CPU time (proc(5), schedstat: nanoseconds first).
fn processor_time(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}
