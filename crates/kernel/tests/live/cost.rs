//! The measurements work: short runs give plausible numbers. The benchmark prints the real ones.

use crate::support;
use kernel::cost::{Plan, Throughput, hook_times, throughput};
use std::time::Duration;

#[test]
fn throughput_is_compared_in_pairs_and_hooks_are_timed() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let cubic = kernel.load("cubic").unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan { pairs: 3, run: Duration::from_millis(300) };
    let namespaces = support::namespaces();
    let measured = throughput(cubic.name(), "cubic", plan).unwrap_or_else(|error| panic!("{error}"));
    println!("{measured:?}: {:.3}", measured.median_ratio());
    assert_eq!(measured.pairs_mbit.len(), 3);
    // Two cores carry gigabits; a connection that waits for timeouts does not.
    assert!(measured.pairs_mbit.iter().all(|&(ours, theirs)| ours > 100.0 && theirs > 100.0), "{measured:?}");
    // Two cores at 100 Mbit/s are 160 ns a byte; no memory is copied faster than at 0.001 ns a byte.
    let plausible = |ns_per_kb: f64| ns_per_kb > 1.0 && ns_per_kb < 160_000.0;
    assert!(
        measured.pairs_cpu_ns_per_kb.iter().all(|&(ours, theirs)| plausible(ours) && plausible(theirs)),
        "{measured:?}"
    );

    let hooks = hook_times(&cubic, plan.run).unwrap_or_else(|error| panic!("{error}"));
    for hook in &hooks {
        println!("{} {} calls, {:.0} ns", hook.program, hook.calls, hook.mean_ns);
        assert!(hook.program.starts_with("cubic_"), "{}", hook.program);
        assert!(hook.mean_ns > 1.0 && hook.mean_ns < 100_000.0, "{hook:?}");
    }
    let avoid = hooks.iter().find(|hook| hook.program == "cubic_cong_avoi").expect("every ACK calls it");
    assert!(avoid.calls > 100, "{avoid:?}");
    assert_eq!(support::namespaces(), namespaces);
}

#[test]
fn an_algorithm_that_is_not_in_the_kernel_cannot_be_measured() {
    let Some(_kernel) = support::quiet_kernel() else { return };
    let plan = Plan { pairs: 1, run: Duration::from_millis(100) };
    let error = throughput("ot_nothing", "cubic", plan).expect_err("there is no such algorithm");
    assert!(error.to_string().starts_with("ot_nothing: "), "{error}");
}

#[test]
fn the_median_is_of_the_ratios() {
    // 0.5, 0.9 and 1.2; with 1.0 the mean of 0.9 and 1.0
    let pairs_cpu_ns_per_kb = vec![(30.0, 40.0)];
    let mut measured = Throughput { pairs_mbit: vec![(90.0, 100.0), (60.0, 50.0), (50.0, 100.0)], pairs_cpu_ns_per_kb };
    assert!((measured.median_cpu_ratio() - 0.75).abs() < 1e-12);
    assert!((measured.median_ratio() - 0.9).abs() < 1e-12);
    measured.pairs_mbit.push((7.0, 7.0));
    assert!((measured.median_ratio() - 0.95).abs() < 1e-12);
}
