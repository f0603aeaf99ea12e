//! Scenarios from text.

use results::RunResults;
use scenario::{Disk, Input, Known, Scenario};
use std::path::PathBuf;

/// The one scenario of `text`.
pub fn scenario(text: &str) -> Scenario {
    let names: Vec<&str> = congestion::Algorithm::builtins().iter().map(congestion::Algorithm::name).collect();
    let files = Disk { base: PathBuf::new() };
    let input = Input { name: "test.toml", text, sets: &[], known: Known { algorithms: &names }, files: &files };
    match Scenario::parse(&input) {
        Ok(loaded) => loaded.runs.into_iter().next().expect("a scenario is at least one run").scenario,
        Err(diagnostic) => panic!("{}", diagnostic.render(false)),
    }
}

/// What a run of `text` measures.
pub fn run(text: &str) -> RunResults {
    sim::simulate(&scenario(text), &mut ()).expect("nothing stops it")
}
