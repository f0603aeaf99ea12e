//! Storms of many seeds, and those that found something.

use std::thread;
use storm::{Outcome, Plan, run, shrink};

/// Seeds of every run of the tests; `tools/storm` runs more.
const SEEDS: u64 = 300;

/// Fails with the smallest plan that breaks the same.
fn weathered(seed: u64) -> Outcome {
    let outcome = run(&Plan::of(seed));
    if let Some(violation) = &outcome.violation {
        let least = shrink(&Plan::of(seed), violation.invariant);
        panic!("seed {seed}: {violation}\nthe same with less: {least:#?}\n{}", run(&least).log);
    }
    outcome
}

#[test]
fn everything_holds_in_every_storm() {
    let jobs = thread::available_parallelism().map_or(2, usize::from).min(8) as u64;
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let of = |job| scope.spawn(move || (0..SEEDS).filter(|seed| seed % jobs == job).map(weathered).collect());
        let threads: Vec<thread::ScopedJoinHandle<'_, Vec<Outcome>>> = (0..jobs).map(of).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a storm in which something does not hold")).collect()
    });
    // nothing holds in an empty world, too
    let some = |what: &str, has: fn(&Outcome) -> bool| {
        let count = outcomes.iter().filter(|outcome| has(outcome)).count() as u64;
        assert!(count * 10 > SEEDS, "{what} in {count} of {SEEDS} storms");
    };
    some("CUEs taken", |outcome| outcome.counts.taken > 20);
    some("messages refused", |outcome| outcome.counts.refused > 20);
    some("a guard reverted", |outcome| outcome.counts.reverted > 0);
    some("a rollout was rolled back", |outcome| outcome.counts.over > 0);
    some("processes started again", |outcome| outcome.counts.starts > 6);
}

#[test]
fn a_seed_gives_the_same_storm_again() {
    for seed in [1, 2, 3] {
        let (first, second) = (run(&Plan::of(seed)), run(&Plan::of(seed)));
        let differing = first.log.lines().zip(second.log.lines()).find(|(one, other)| one != other);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!(first, second);
    }
    assert_ne!(run(&Plan::of(1)).log, run(&Plan::of(2)).log);
}
