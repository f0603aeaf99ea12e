//! Storms of many seeds: `storms FROM COUNT`, as `tools/storm` calls it. Prints each seed in which something does not hold, made smaller,
//! and how many storms there were; `storms first COUNT` ends at the first one of seeds 0 to COUNT and of those that have found something before,
//! `storms log SEED` prints one storm.

use std::collections::BTreeMap;
use std::env::args;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use storm::{Invariant, Plan, found, run, shrink};

const USAGE: &str = "usage: storms FROM COUNT | storms first COUNT | storms log SEED";

fn main() -> ExitCode {
    let arguments: Vec<String> = args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|text| text.parse().ok()).collect();
    match (&arguments[..], &numbers[..]) {
        ([log, _], [seed]) if log == "log" => {
            let plan = Plan::of(*seed);
            let outcome = run(&plan);
            println!("{plan:#?}\n{}{:?}", outcome.log, outcome.counts);
            ExitCode::from(u8::from(outcome.violation.is_some()))
        }
        ([first, _], [count]) if first == "first" => {
            let failing = |plan: Plan| Some((plan.seed, run(&plan).violation?));
            let Some((seed, violation)) = (0..*count).map(Plan::of).chain(found()).find_map(failing) else {
                return ExitCode::SUCCESS;
            };
            println!("seed {seed}: {violation}");
            ExitCode::FAILURE
        }
        ([_, _], [from, count]) => many(&(*from..from + count).map(Plan::of).collect::<Vec<Plan>>()),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn many(plans: &[Plan]) -> ExitCode {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<Invariant, Vec<u64>>::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(violation) = run(plan).violation else { continue };
                    let seed = plan.seed;
                    let mut failed = failed.lock().expect("no thread panics");
                    let of = failed.entry(violation.invariant).or_default();
                    of.push(seed);
                    // one of each kind is made smaller
                    if of.len() == 1 {
                        let least = shrink(plan, violation.invariant);
                        println!("seed {seed}: {violation}\n  with less: {least:?}");
                    } else {
                        println!("seed {seed}: {violation}");
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread panics");
    println!(
        "{} storms, in {} of which something does not hold",
        plans.len(),
        failed.values().map(Vec::len).sum::<usize>()
    );
    for (invariant, seeds) in &failed {
        println!("{invariant:?}: {}", seeds.len());
    }
    ExitCode::from(u8::from(!failed.is_empty()))
}
