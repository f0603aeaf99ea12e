//! What an agent does on an idle host.

use crate::world::{THERE, TestOracle, World, cue, guarded, guardian, reno};
use policy::Cue;
use std::time::{Duration, Instant};
use std::{fs, thread};
use testkit::eventually;
use units::Time;

const WATCHED: Duration = Duration::from_secs(8);
/// It wakes twice a second; writing files makes it wait now and then.
const WAKE_UPS_MAX: u64 = 22;
/// For counters, links and the status: 100, measured.
const READS_MAX: u64 = 125;

/// CPU time is printed, and not judged: on a virtual machine the same work may take ten times as long in one hour as in another. How often the
/// agent wakes, and how much it then reads, follow from the code.
#[test]
fn an_idle_agent_with_a_guarded_rule_in_force_wakes_twice_a_second_and_reads_little() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &["--link", "eth0=1 Gbit/s"]);
    let idle = world.connection(THERE);
    oracle.send(&guarded(Cue { lifetime: Time::from_secs(300), ..cue(1, reno()) }));
    assert!(eventually(|| world.uses(&idle.0, "reno")), "{}", agent.said());
    oracle.wait_for_reports(&agent);
    let both = [agent.id(), guardian(&agent).cast_unsigned()];
    let of_both = |file: &str, name: &str| both.map(|process| value(process, file, name)).iter().sum::<u64>();
    let spent = || of_both("schedstat", "");
    let wake_ups = || of_both("status", "voluntary_ctxt_switches:");
    let reads = || of_both("io", "syscr:");
    let (before, began) = ([spent(), wake_ups(), reads()], Instant::now());
    thread::sleep(WATCHED);
    let after = [spent(), wake_ups(), reads()];
    // a busy machine wakes this test late
    let longer = began.elapsed().as_secs_f64() / WATCHED.as_secs_f64();
    let [wake_ups_max, reads_max] = [WAKE_UPS_MAX, READS_MAX].map(|most| (most as f64 * longer) as u64);
    let [spent, wake_ups, reads] = std::array::from_fn(|i| after[i] - before[i]);
    let spent = Duration::from_nanos(spent);
    println!(
        "idle for {WATCHED:?} with a guarded rule in force: {wake_ups} wake-ups, {reads} reads, {spent:?} of a CPU"
    );
    assert!(wake_ups <= wake_ups_max && reads <= reads_max, "at most {wake_ups_max} wake-ups and {reads_max} reads");
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.in_force.len(), report.counts.expired), (1, 0), "it was in force all the time");
    agent.interrupt();
    world.assert_as_before();
}

/// A number of a process in a file of its folder (proc(5)): behind a name, or the first.
fn value(process: u32, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
