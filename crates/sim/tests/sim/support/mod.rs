//! Runs of scenarios from text.

use results::RunResults;
use testkit::scenario_with;

/// What a run of `text` measures.
pub fn run(text: &str) -> RunResults {
    run_with(text, &[])
}

/// The same, with files that it names.
pub fn run_with(text: &str, files: &[(&str, &str)]) -> RunResults {
    sim::simulate(&scenario_with(text, files), &mut ()).expect("nothing stops it")
}
