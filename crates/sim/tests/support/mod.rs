//! Scenarios from text.
#![allow(dead_code, reason = "not every test needs every helper")]

use policy::{AlgorithmFacts, Measures};
use results::RunResults;
use scenario::{FileRef, Files, Input, Known, Scenario};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Files that a scenario names, by name; others are on the disk.
struct Given<'a>(BTreeMap<&'a str, &'a str>);

impl Files for Given<'_> {
    fn resolve(&self, written: &str) -> FileRef {
        FileRef { written: written.to_string(), path: PathBuf::from(written) }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let given = path.to_str().and_then(|name| self.0.get(name));
        given.map_or_else(|| std::fs::read_to_string(path), |text| Ok((*text).to_string()))
    }
}

/// The one scenario of `text`.
pub fn scenario(text: &str) -> Scenario {
    scenario_with(text, &[])
}

fn scenario_with(text: &str, files: &[(&str, &str)]) -> Scenario {
    let builtins = congestion::Algorithm::builtins();
    let names: Vec<&str> = builtins.iter().map(congestion::Algorithm::name).collect();
    let facts = |algorithm: &'static congestion::Algorithm| AlgorithmFacts {
        name: algorithm.name(),
        measures: Measures { loss: algorithm.measures_loss(), ecn: algorithm.measures_ecn(), ..Measures::default() },
        needs_ecn: algorithm.needs_ecn(),
    };
    let facts: Vec<AlgorithmFacts<'_>> = builtins.iter().map(facts).collect();
    let known = Known { algorithms: &names, policy: policy::Known { algorithms: &facts } };
    let files = Given(files.iter().copied().collect());
    let input = Input { name: "test.toml", text, sets: &[], known, files: &files };
    match Scenario::parse(&input) {
        Ok(loaded) => loaded.runs.into_iter().next().expect("a scenario is at least one run").scenario,
        Err(diagnostic) => panic!("{}", diagnostic.render(false)),
    }
}

/// What a run of `text` measures.
pub fn run(text: &str) -> RunResults {
    run_with(text, &[])
}

/// The same, with files that it names.
pub fn run_with(text: &str, files: &[(&str, &str)]) -> RunResults {
    sim::simulate(&scenario_with(text, files), &mut ()).expect("nothing stops it")
}
