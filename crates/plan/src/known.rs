//! The built-in algorithms, as scenarios and policies need to know them.

use congestion::Algorithm;
use policy::{AlgorithmFacts, Measures};
use scenario::{Diagnostic, Files, Input, Known, Run, Scenario};

/// The names of the built-in algorithms.
pub fn algorithm_names() -> Vec<&'static str> {
    Algorithm::builtins().iter().map(Algorithm::name).collect()
}

/// Our algorithms as policies need to know them.
pub fn algorithm_facts() -> Vec<AlgorithmFacts<'static>> {
    Algorithm::builtins().iter().map(facts).collect()
}

/// One of them.
pub fn facts(algorithm: &'static Algorithm) -> AlgorithmFacts<'static> {
    let measures = Measures {
        loss: algorithm.measures_loss(),
        delay: algorithm.measures_delay(),
        ecn: algorithm.measures_ecn(),
        model: algorithm.measures_model(),
    };
    AlgorithmFacts { name: algorithm.name(), measures, needs_ecn: algorithm.needs_ecn() }
}

/// The runs of a scenario's text, checked for the simulator.
///
/// # Errors
/// Everything that is wrong with it, each with its place.
pub fn runs(name: &str, text: &str, sets: &[String], files: &dyn Files) -> Result<Vec<Run>, Diagnostic> {
    let (names, facts) = (algorithm_names(), algorithm_facts());
    let known = Known { algorithms: &names, policy: policy::Known { algorithms: &facts } };
    Ok(Scenario::parse(&Input { name, text, sets, known, files })?.runs)
}
