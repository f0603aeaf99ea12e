//! Storms of many seeds: `storms FROM COUNT`, as `tools/storm` calls it. Prints each seed in which something does not hold, made smaller,
//! and how many storms there were; `storms found` runs those that have found something before, `storms log SEED` prints one storm.

use std::collections::BTreeMap;
use std::env::args;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use storm::{FOUND, Invariant, Plan, run, shrink};

const USAGE: &str = "usage: storms FROM COUNT | storms found | storms log SEED";

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
        ([found], []) if found == "found" => many(&FOUND),
        ([_, _], [from, count]) => many(&(*from..from + count).collect::<Vec<u64>>()),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn many(seeds: &[u64]) -> ExitCode {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<Invariant, Vec<u64>>::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(violation) = run(&Plan::of(seed)).violation else { continue };
                    let mut failed = failed.lock().expect("no thread panics");
                    let of = failed.entry(violation.invariant).or_default();
                    of.push(seed);
                    // one of each kind is made smaller
                    if of.len() == 1 {
                        let least = shrink(&Plan::of(seed), violation.invariant);
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
        seeds.len(),
        failed.values().map(Vec::len).sum::<usize>()
    );
    for (invariant, seeds) in &failed {
        println!("{invariant:?}: {}", seeds.len());
    }
    ExitCode::from(u8::from(!failed.is_empty()))
}
