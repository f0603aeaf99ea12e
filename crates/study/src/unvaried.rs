//! Parameters whose values made no difference: seeds of a scenario in which nothing is random, or a timeout that never came.

use crate::done::Kept;
use results::Summary;
use std::collections::BTreeMap;

/// Values that a sentence names at most.
const NAMED: usize = 5;

/// A sentence for each parameter with several values that gave the same numbers in every run, whatever the others were.
pub(crate) fn unvaried(runs: &[Kept]) -> Vec<String> {
    let Some(first) = runs.first() else { return Vec::new() };
    if runs.iter().any(|run| !run.parameters.iter().map(|(key, _)| key).eq(first.parameters.iter().map(|(key, _)| key)))
    {
        return Vec::new();
    }
    (0..first.parameters.len()).filter_map(|place| unvaried_parameter(runs, place)).collect()
}

fn unvaried_parameter(runs: &[Kept], place: usize) -> Option<String> {
    let mut alike: BTreeMap<Vec<&str>, &Kept> = BTreeMap::new();
    let mut values: Vec<&str> = Vec::new();
    for run in runs {
        let others = run.parameters.iter().enumerate().filter(|(other, _)| *other != place);
        let one = *alike.entry(others.map(|(_, (_, value))| value.as_str()).collect()).or_insert(run);
        if !is_same(&one.summary, &run.summary) {
            return None;
        }
        let value = run.parameters[place].1.as_str();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    // a value that has no other beside it, everything else alike, says nothing
    if values.len() < 2 || alike.len() * values.len() != runs.len() {
        return None;
    }
    let more = if values.len() > NAMED { " …" } else { "" };
    let shown = format!("{}{more}", values[..values.len().min(NAMED)].join(", "));
    Some(match runs[0].parameters[place].0.as_str() {
        "seed" => format!(
            "the seeds {shown} gave the same numbers: nothing that a seed decides matters in this scenario, so one seed is enough"
        ),
        key => format!("the values of {key} ({shown}) gave the same numbers"),
    })
}

/// Whether two runs have the same numbers, whatever their seeds.
fn is_same(one: &Summary, other: &Summary) -> bool {
    *one == Summary { seed: one.seed, ..other.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cc: &str, seed: u64, packet_hops: u64) -> Kept {
        let parameters = vec![("algorithm".to_string(), cc.to_string()), ("seed".to_string(), seed.to_string())];
        Kept { name: String::new(), parameters, summary: Summary { seed, packet_hops, ..Summary::default() } }
    }

    #[test]
    fn a_parameter_is_named_if_none_of_its_values_made_a_difference() {
        let runs = [run("bic", 1, 10), run("bic", 2, 10), run("vegas", 1, 20), run("vegas", 2, 20)];
        let said = unvaried(&runs);
        assert!(said.len() == 1 && said[0].starts_with("the seeds 1, 2 gave the same numbers"), "{said:?}");
        let runs = [run("bic", 1, 10), run("bic", 2, 11), run("vegas", 1, 10), run("vegas", 2, 11)];
        assert_eq!(unvaried(&runs), ["the values of algorithm (bic, vegas) gave the same numbers"]);
        let runs = [run("bic", 1, 10), run("bic", 2, 10), run("vegas", 1, 20), run("vegas", 2, 21)];
        assert!(unvaried(&runs).is_empty(), "with one algorithm seeds matter");
        assert!(unvaried(&runs[..1]).is_empty());
    }
}
