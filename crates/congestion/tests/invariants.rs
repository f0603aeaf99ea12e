//! No algorithm violates an invariant, over random sequences of operations.

use congestion::{Algorithm, Violation, check_invariants, model};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_operations_drives_an_algorithm_out_of_bounds(seed: u64) {
        let faults = faults(|algorithm| model::run(algorithm, seed, 400).map(|_| ()));
        prop_assert!(faults.is_empty(), "{faults}");
    }
}

/// One line per algorithm that `check` finds a fault in.
fn faults(check: impl Fn(&Algorithm) -> Result<(), Violation>) -> String {
    let found = |algorithm: &Algorithm| Some(format!("\n{}: {}", algorithm.name(), check(algorithm).err()?));
    Algorithm::builtins().iter().filter_map(found).collect()
}

#[test]
fn every_builtin_passes_the_check_that_users_files_get() {
    let faults = faults(|algorithm| {
        let report = check_invariants(algorithm)?;
        println!("{}: {report}", algorithm.name());
        assert_eq!(report.window_max, model::WINDOW_MAX, "{}", algorithm.name());
        Ok(())
    });
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn the_model_calls_every_hook_that_an_algorithm_has() {
    for algorithm in Algorithm::builtins() {
        let Ok(report) = check_invariants(algorithm) else { continue };
        let ops = algorithm.ops();
        let present = [
            ops.init.is_some(),
            ops.release.is_some(),
            ops.ssthresh.is_some(),
            ops.cong_avoid.is_some(),
            ops.set_state.is_some(),
            ops.cwnd_event.is_some(),
            ops.in_ack_event.is_some(),
            ops.pkts_acked.is_some(),
            ops.cong_control.is_some(),
            ops.undo_cwnd.is_some(),
            ops.min_tso_segs.is_some(),
            ops.sndbuf_expand.is_some(),
        ];
        for ((hook, calls), present) in congestion::Hook::ALL.iter().zip(report.calls).zip(present) {
            assert_eq!(calls > 0, present, "{}: {}", algorithm.name(), hook.name());
        }
    }
}
