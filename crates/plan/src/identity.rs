//! What names a run in its summary.

use results::Identity;
use scenario::Scenario;

/// The identity of a run of `scenario`.
pub fn identity(scenario: &Scenario) -> Identity {
    Identity {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        version: env!("CARGO_PKG_VERSION").to_string(),
        duration_ns: (scenario.duration - scenario.measure.warmup).as_ns(),
        end_ns: scenario.duration.as_ns(),
    }
}
