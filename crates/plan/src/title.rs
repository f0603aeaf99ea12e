//! What distinguishes a run among others in its results.

use results::RunResults;
use scenario::{Bundle, Run, Scenario};

/// The parameters by which reports distinguish the runs of a scenario.
pub fn parameters(run: &Run) -> Vec<(String, String)> {
    let short = |key: &str| match key {
        "tcp.cc" => "algorithm".to_string(),
        "policy.file" => "policy".to_string(),
        _ => key.rsplit('.').next().filter(|last| is_only(last, key, &run.parameters)).unwrap_or(key).to_string(),
    };
    let swept = run.parameters.iter().filter(|(key, _)| key != "tcp.cc" && key != "seed");
    let mut parameters = vec![("algorithm".to_string(), algorithms(&run.scenario))];
    parameters.extend(swept.map(|(key, value)| (short(key), value.clone())));
    parameters.push(("seed".to_string(), run.scenario.seed.to_string()));
    parameters
}

/// The measurements of `scenario` with the name of their run, its parameters, and the scenario itself.
pub fn titled(measured: RunResults, name: &str, parameters: &[(String, String)], scenario: &Scenario) -> RunResults {
    let Bundle { toml, files } = scenario.bundle();
    let title = scenario.title.clone().unwrap_or_default();
    let (name, parameters) = (name.to_string(), parameters.to_vec());
    RunResults { name, title, parameters, scenario_toml: toml, files, ..measured }
}

/// Whether no other swept key has this last part.
fn is_only(last: &str, key: &str, swept: &[(String, String)]) -> bool {
    !["algorithm", "seed"].contains(&last)
        && swept.iter().all(|(other, _)| other == key || other.rsplit('.').next() != Some(last))
}

/// The algorithms of a scenario's flows: `cubic`, or `cubic + newreno`.
fn algorithms(scenario: &Scenario) -> String {
    let mut names: Vec<&str> = Vec::new();
    for entry in &scenario.traffic {
        let name = entry.cc.as_ref().unwrap_or(&scenario.tcp.cc).label();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swept_key_is_named_by_its_end_unless_two_end_alike() {
        let keys = |keys: &[&str]| keys.iter().map(|key| (key.to_string(), String::new())).collect::<Vec<_>>();
        assert!(is_only("rto_min", "tcp.rto_min", &keys(&["tcp.rto_min", "network.rate"])));
        assert!(!is_only("rate", "network.rate", &keys(&["network.rate", "network.tier.core.rate"])));
        assert!(!is_only("seed", "other.seed", &keys(&["other.seed"])), "`seed` already is the scenario's seed");
    }

    #[test]
    fn a_runs_parameters_are_its_algorithms_what_was_swept_and_its_seed() {
        let text = "duration = \"1 s\"\n[network]\ntopology = { star = { hosts = 2 } }\n[[traffic]]\nbulk = { from = \"h1\", to = \"h2\" }\n\
                    cc = \"vegas\"\n[[traffic]]\nname = \"other\"\nbulk = { from = \"h2\", to = \"h1\" }\n[sweep]\n\"tcp.cc\" = [\"cubic\"]\n\
                    \"tcp.rto_min\" = [\"2 ms\", \"3 ms\"]\n";
        let runs = crate::runs("a.toml", text, &[], &scenario::Disk { base: ".".into() }).expect("a scenario");
        let of =
            |run: &Run| parameters(run).into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
        assert_eq!(
            of(&runs[0]),
            ["algorithm=vegas + cubic", "rto_min=2 ms", "seed=1"],
            "an entry's own algorithm counts"
        );
        assert_eq!(of(&runs[1])[1], "rto_min=3 ms");
    }
}
