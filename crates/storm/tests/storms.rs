//! Storms of many seeds, and those that found something.

use std::thread;
use storm::{Disk, Fault, Kind, Outcome, Plan, found, run, shrink};
use units::Time;

/// Seeds of every run of the tests; `tools/storm` runs more.
const SEEDS: u64 = 300;

/// Fails with the smallest plan that breaks the same.
fn weathered(plan: &Plan) -> Outcome {
    let outcome = run(plan);
    if let Some(violation) = &outcome.violation {
        let least = shrink(plan, violation.invariant);
        panic!("seed {}: {violation}\nthe same with less: {least:#?}\n{}", plan.seed, run(&least).log);
    }
    outcome
}

#[test]
fn everything_holds_in_every_storm() {
    let jobs = thread::available_parallelism().map_or(2, usize::from).min(8) as u64;
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let of = |job| {
            scope.spawn(move || {
                (0..SEEDS).filter(|seed| seed % jobs == job).map(|seed| weathered(&Plan::of(seed))).collect()
            })
        };
        let threads: Vec<thread::ScopedJoinHandle<'_, Vec<Outcome>>> = (0..jobs).map(of).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("a storm in which something does not hold"))
            .collect()
    });
    // nothing holds in an empty world, too
    let some = |what: &str, has: fn(&Outcome) -> bool| {
        let count = outcomes.iter().filter(|outcome| has(outcome)).count() as u64;
        assert!(count * 20 > SEEDS, "{what} in {count} of {SEEDS} storms");
    };
    some("CUEs taken", |outcome| outcome.counts.taken > 20);
    some("messages refused", |outcome| outcome.counts.refused > 20);
    some("a guard reverted", |outcome| outcome.counts.reverted > 0);
    some("a rollout was rolled back", |outcome| outcome.counts.over > 0);
    some("processes started again", |outcome| outcome.counts.starts > 6);
    some("hosts behind an enforcer treated", |outcome| outcome.counts.enforced > 100);
    some("a guard of theirs reverted", |outcome| outcome.counts.enforcer_reverted > 0);
}

#[test]
fn what_storms_have_found_stays_mended() {
    for plan in found() {
        weathered(&plan);
    }
}

#[test]
fn a_seed_gives_the_same_storm_again() {
    for seed in [1, 2, 3, 4] {
        let (first, second) = (run(&Plan::of(seed)), run(&Plan::of(seed)));
        let differing = first.log.lines().zip(second.log.lines()).find(|(one, other)| one != other);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!(first, second);
    }
    assert_ne!(run(&Plan::of(1)).log, run(&Plan::of(2)).log);
}

/// A storm of two hosts in which this goes wrong, from the one to the other second.
fn with(oracles: usize, hurts: u64, faults: &[(u64, u64, Kind)]) -> Outcome {
    holds(&Plan { seed: 1, hosts: 2, behind: 0, oracles, hurts, faults: in_seconds(faults) })
}

/// The same of two hosts behind an enforcer.
fn with_enforcer(faults: &[(u64, u64, Kind)]) -> Outcome {
    holds(&Plan { seed: 1, hosts: 2, behind: 2, oracles: 1, hurts: 0, faults: in_seconds(faults) })
}

fn in_seconds(faults: &[(u64, u64, Kind)]) -> Vec<Fault> {
    let fault = |(from, until, kind): &(u64, u64, Kind)| Fault {
        from: Time::from_secs(*from),
        until: Time::from_secs(*until),
        kind: *kind,
    };
    faults.iter().map(fault).collect()
}

fn holds(plan: &Plan) -> Outcome {
    let outcome = run(plan);
    assert_eq!(outcome.violation, None, "{}", outcome.log);
    outcome
}

/// Another Oracle takes the lease, and the one before decides once more; hosts refuse that.
#[test]
fn two_oracles_lead_for_a_moment_where_the_store_forgot_who_leads() {
    holds(&Plan::of(3691));
}

#[test]
fn what_a_guard_has_reverted_outlives_its_agent_and_its_machine() {
    let both = |kind: fn(usize) -> Kind, from, until| [(from, until, kind(0)), (from, until, kind(1))];
    for down in [|host| Kind::AgentDown(host, Disk::Kept), |host| Kind::BothDown(host, Disk::Kept), Kind::Reboot] {
        let faults = [both(Kind::Losses, 20, 22), both(down, 24, 25)].concat();
        assert!(with(1, 0, &faults).counts.reverted > 0);
    }
}

#[test]
fn what_a_guard_has_reverted_outlives_the_enforcer() {
    for again in [Kind::EnforcerDown(Disk::Kept), Kind::EnforcerReboot, Kind::EnforcerReplaced] {
        let faults = [(20, 30, Kind::PathLosses(0)), (20, 30, Kind::PathLosses(1)), (31, 32, again)];
        let outcome = with_enforcer(&faults);
        assert!(outcome.counts.enforcer_reverted > 0, "{}", outcome.log);
    }
}

#[test]
fn a_rule_ends_whether_the_enforcers_disk_answers_or_not() {
    let outcome = with_enforcer(&[(10, 40, Kind::EnforcerHung), (15, 40, Kind::EnforcerCut)]);
    assert!(outcome.counts.enforced > 100, "{}", outcome.log);
}

#[test]
fn a_rollback_outlives_its_oracle_the_next_leader_and_the_store() {
    let alone = with(1, 200, &[(100, 102, Kind::OracleDown(0, Disk::Kept))]);
    let led = with(2, 200, &[(100, 170, Kind::OracleDown(0, Disk::Kept))]);
    let lost = with(2, 200, &[(120, 121, Kind::StoreLost), (120, 170, Kind::OracleDown(0, Disk::Kept))]);
    assert!([alone, led, lost].iter().all(|outcome| outcome.counts.over > 10));
}

#[test]
fn a_rules_hold_outlives_its_oracle() {
    // on at 3 s, off at 24 s for want of measurements, and nobody knows of it but the disk
    with(1, 0, &[(14, 25, Kind::Blind), (26, 27, Kind::OracleDown(0, Disk::Kept))]);
    with(2, 0, &[(14, 25, Kind::Blind), (26, 60, Kind::OracleDown(0, Disk::Kept))]);
}
