//! What was found, in words: for the terminal, and as comments above the policy.

use super::{TuneRequest, Tuned};
use crate::table::{Table, wrapped};
use std::fmt::Write as _;

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

impl Tuned {
    /// The answer, the numbers, and how much depends on each.
    pub fn words(&self) -> String {
        let mut table = Table::new(["number", "as it is", "tuned", "searched", "a tenth less", "a tenth more"]);
        for number in &self.numbers {
            let beside = number.beside.each_ref().map(|beside| match beside {
                Some((value, change)) => format!("{} at {value}", percent(*change)),
                None => "–".to_string(),
            });
            let [less, more] = beside;
            let (low, high) = &number.range;
            table.row(vec![
                number.name.clone(),
                number.written.clone(),
                number.tuned.clone(),
                format!("{low} to {high}"),
                less,
                more,
            ]);
        }
        format!(
            "SIMULATED: {}\n\n{}\nA tenth less, a tenth more: how much larger {} is on the training runs with this number moved by a tenth of \
             its range.\n",
            self.answer_words(),
            table.render(),
            self.objective
        )
    }

    /// In a sentence or two.
    fn answer_words(&self) -> String {
        let Tuned { policy, objective, trials, training_runs, .. } = self;
        let Some(held_back) = &self.held_back else {
            return format!(
                "none of {trials} trials on {training_runs} runs had less {objective} than `{policy}` as it is."
            );
        };
        let training = percent(self.training.change.unwrap_or_default());
        let answer = match self.answer {
            "better" => format!("`{policy}` is better with other numbers"),
            "worse" => format!("the numbers found for `{policy}` are worse than those it has"),
            "no difference" => format!("no better numbers were found for `{policy}`: the difference can be chance"),
            _ => format!(
                "whether the numbers found for `{policy}` are better cannot be said: too few flows end in a run"
            ),
        };
        format!(
            "{answer}. On held-back runs: {}. On the {training_runs} runs that chose the best of {trials} trials: {objective} {training}.",
            held_back.reason
        )
    }
}

/// Comments for the top of the file.
pub(super) fn evidence(tuned: &Tuned, request: &TuneRequest) -> String {
    let mut out = String::new();
    let (seeds, last) = (request.seeds, request.seeds + request.held_back_seeds);
    let _ = writeln!(out, "# Tuned by `opentcp policy tune` in the simulator.");
    for (what, source) in [("policy", &request.policy), ("scenario", &request.scenario)] {
        let name = source.name();
        let _ = writeln!(out, "#   {what}: {}", name.rsplit('/').next().unwrap_or(&name));
    }
    for set in &request.sets {
        let _ = writeln!(out, "#   set: {set}");
    }
    for held_back in &request.hold_back {
        let _ = writeln!(out, "#   held back: {held_back}");
    }
    let _ = writeln!(out, "#   trained on seeds 1 to {seeds}, judged on seeds {} to {last}", seeds + 1);
    for line in wrapped(&tuned.answer_words(), 120).lines() {
        let _ = writeln!(out, "# {line}");
    }
    for number in &tuned.numbers {
        let (low, high) = &number.range;
        let _ = write!(out, "#   {}: {} -> {} (searched {low} to {high}", number.name, number.written, number.tuned);
        for (value, change) in number.beside.iter().flatten() {
            let _ = write!(out, "; at {value} {}", percent(*change));
        }
        let _ = writeln!(out, ")");
    }
    out + "\n"
}
