//! Random connections of two Linux hosts through an enforcer, over links that lose, reorder, duplicate, corrupt and mark: every byte
//! arrives, and neither end gets what the other did not send. Root only.
//!
//! A hundred connections; `ENFORCER_TRANSFERS` sets more, and larger ones, `ENFORCER_SEED` selects one world of them. A seed
//! gives the same connections and links; the kernels' timing varies.

mod case;
mod transfer;
mod watch;
mod wire;
mod world;

use case::Case;
use enforcer::Counters;
use std::thread;
use testkit::{asked, or_skip, root};
use transfer::{Outcome, Pattern};
use world::{Run, run};

/// Parallel connections of a world, and worlds of the short test.
const SIDE_BY_SIDE: usize = 25;
const TRANSFERS: usize = 100;

/// The result of a run with the enforcer, once its violations are checked.
fn is_transparent(seed: u64, transfers: usize, most: usize, pattern: &Pattern) -> Run {
    let case = Case::new(seed, transfers, most);
    let enforced = run(&case, true, pattern);
    let done = enforced.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Done | Outcome::Reset)).count();
    println!("world {seed}: {done} of {transfers} went through, in {:.1?}", enforced.took);
    assert_eq!(enforced.watch.complaint, None, "world {seed}: {case:#?}");
    let mut direct = None;
    for (number, outcome) in enforced.outcomes.iter().enumerate() {
        if matches!(outcome, Outcome::Done | Outcome::Reset) {
            continue;
        }
        let direct = direct.get_or_insert_with(|| run(&case, false, pattern));
        let otherwise = &direct.outcomes[number];
        let Case { transfers, .. } = &case;
        println!("world {seed}, transfer {number}: {outcome:?}; without the enforcer {otherwise:?}");
        let is_worse = matches!(otherwise, Outcome::Done | Outcome::Reset) || matches!(outcome, Outcome::Wrong(_));
        assert!(!is_worse, "world {seed}, transfer {number}: {outcome:?}\n{:#?}\n{case:#?}", transfers[number]);
    }
    enforced
}

#[test]
fn connections_of_kernels_complete_as_without_an_enforcer() {
    let Some(()) = or_skip(root()) else { return };
    let pattern = &Pattern::new();
    let wanted: Option<usize> = asked("ENFORCER_TRANSFERS");
    let most = if wanted.is_some() { 20_000_000 } else { 500_000 };
    let worlds = wanted.unwrap_or(TRANSFERS).div_ceil(SIDE_BY_SIDE) as u64;
    let seeds = asked("ENFORCER_SEED").map_or(0..worlds, |seed: u64| seed..seed + 1);
    // frames with two tags pass untouched
    let may_be = |seed| Case::new(seed, SIDE_BY_SIDE, most).transfers.iter().filter(|case| case.tags < 2).count();
    let enforceable: usize = seeds.clone().map(may_be).sum();
    let runs: Vec<Run> = thread::scope(|scope| {
        let spawn = |seed| scope.spawn(move || is_transparent(seed, SIDE_BY_SIDE, most, pattern));
        let threads: Vec<_> = seeds.map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().expect("its message is above")).collect()
    });
    report(&runs, enforceable, wanted.is_some());
}

/// Prints the counters, and checks that the cases covered everything that can happen to a flow.
fn report(runs: &[Run], enforceable: usize, is_long: bool) {
    let outcomes: Vec<&Outcome> = runs.iter().flat_map(|run| &run.outcomes).collect();
    let done = outcomes.iter().filter(|outcome| ***outcome == Outcome::Done).count();
    let longest = runs.iter().map(|run| run.took).max().unwrap_or_default();
    let compared: u64 = runs.iter().map(|run| run.watch.compared).sum();
    println!("{done} of {} connections went through, {compared} ACKs compared, in {longest:.1?}", outcomes.len());
    let sum = |count: fn(&Counters) -> u64| runs.iter().map(|run| count(&run.counters)).sum::<u64>();
    let opened = sum(|c| c.flows_opened);
    assert!(opened * 100 >= enforceable as u64 * 90 || runs.len() < 4, "{opened} of {enforceable} were enforced");
    for (what, count) in [
        ("closed", sum(|c| c.flows_closed)),
        ("reset", sum(|c| c.flows_reset)),
        ("retransmitted", sum(|c| c.retransmitted)),
        ("absorbed", sum(|c| c.absorbed)),
        ("hidden", sum(|c| c.hidden)),
        ("gaps filled", sum(|c| c.gaps_filled)),
        ("held", sum(|c| c.data_held)),
        ("malformed", sum(|c| c.passed_malformed)),
        ("echoes hidden", sum(|c| c.ece_hidden)),
    ] {
        println!("{what}: {count}");
        assert!(count > 0 || runs.len() < 4, "{what}");
    }
    let scales: Vec<u32> = (0..16).map(|scale| runs.iter().map(|run| run.watch.scales[scale]).sum()).collect();
    println!("SYNs by window scale, 0 to 14, and without: {scales:?}");
    assert!(!is_long || runs.len() < 40 || scales.iter().all(|count| *count > 0), "{scales:?}");
}
