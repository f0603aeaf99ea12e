//! The CPU time of an agent on an idle host.

use crate::world::{THERE, TestOracle, World, cue, guarded, guardian, reno};
use policy::Cue;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::thread;
use std::time::Duration;
use testkit::eventually;
use units::Time;

/// How often an idle agent reads counters for a guard, and how often it does so here.
const WAKE_UP: Duration = Duration::from_millis(500);
const WAKE_UPS: u32 = 40;
/// Writing files makes it wait now and then.
const WAKE_UPS_MAX: u32 = WAKE_UPS * 5 / 4;
/// It reports and scans connections as well: it takes 4 times as much as reading counters.
const TIMES_MAX: u32 = 8;

/// The time depends on the core's speed and idle states: hence the comparison with a thread that only reads the counters, as often.
#[test]
fn an_idle_agent_with_a_guarded_rule_in_force_takes_little_more_than_reading_the_counters_takes() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--link", "eth0=1 Gbit/s"]);
    let idle = world.connection(THERE);
    oracle.send(&guarded(Cue { lifetime: Time::from_secs(300), ..cue(1, reno()) }));
    assert!(eventually(|| world.uses(&idle.0, "reno")), "{}", agent.said());
    oracle.wait_for_reports(&agent);
    let both = [agent.id(), guardian(&agent).cast_unsigned()];
    let of_both = || both.map(|process| spent(&format!("/proc/{process}"))).iter().sum::<Duration>();
    let (before, slept) = (of_both(), sleeps(both[0]));
    let least = thread::spawn(read_the_counters).join().unwrap();
    let (took, slept) = (of_both().saturating_sub(before), sleeps(both[0]) - slept);
    println!(
        "idle for {:?} with a guarded rule in force: {took:?} of a CPU, {slept} wake-ups; reading counters {least:?}",
        WAKE_UP * WAKE_UPS
    );
    assert!(slept <= WAKE_UPS_MAX, "{slept} wake-ups, of at most {WAKE_UPS_MAX}");
    assert!(took <= TIMES_MAX * least, "{took:?}, of at most {TIMES_MAX} times {least:?}");
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.in_force.len(), report.counts.expired), (1, 0), "it was in force all the time");
    agent.interrupt();
    world.assert_as_before();
}

/// The CPU time of a thread that wakes as often as the agent, and reads what guards count by.
fn read_the_counters() -> Duration {
    let mut files = ["snmp", "netstat"].map(|name| File::open(format!("/proc/thread-self/net/{name}")).unwrap());
    let mut text = String::new();
    let before = spent("/proc/thread-self");
    for _ in 0..WAKE_UPS {
        thread::sleep(WAKE_UP);
        for file in &mut files {
            file.rewind().unwrap();
            text.clear();
            file.read_to_string(&mut text).unwrap();
        }
    }
    spent("/proc/thread-self").saturating_sub(before)
}

/// CPU time of a process or thread (proc(5), schedstat: nanoseconds first).
fn spent(process: &str) -> Duration {
    let text = fs::read_to_string(format!("{process}/schedstat")).unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// How often a process has waited.
fn sleeps(process: u32) -> u32 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap().trim().parse().unwrap()
}
