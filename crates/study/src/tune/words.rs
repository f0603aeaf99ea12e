//! What was found, in words: for the terminal, and as comments above the policy.

use super::{Answer, Change, TuneRequest, Tuned, TunedNumber};
use crate::table::{Table, paragraph};

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn between((low, high): (f64, f64)) -> String {
    format!("{} to {}", percent(low), percent(high))
}

/// `p99 FCT -12.0 % (-15.1 % to -8.8 %)`.
pub(super) fn of(change: &Change) -> String {
    format!("{} {} ({})", change.of, percent(change.change), between(change.interval))
}

/// Changes with their intervals.
fn table(what: &str, changes: &[Change]) -> String {
    let mut table = Table::new([what, "change %", "from", "to"]);
    for Change { of, change, interval } in changes {
        let shares = [*change, interval.0, interval.1].map(|share| format!("{:+.1}", share * 100.0));
        table.row(std::iter::once(of.clone()).chain(shares).collect());
    }
    table.render()
}

impl TunedNumber {
    fn is_changed(&self) -> bool {
        self.best != self.written
    }

    /// Whether it was changed to the least or the largest value.
    fn is_at_end(&self) -> bool {
        self.is_changed() && [&self.range.0, &self.range.1].contains(&&self.best)
    }
}

impl Tuned {
    /// The answer, the numbers, and how much depends on each.
    pub fn words(&self) -> String {
        let mut parts = vec![format!("SIMULATED: {}\n", self.answer_words()), self.numbers_table()];
        if !self.quantities.is_empty() {
            let table = table("best against as it is", &self.quantities);
            parts.push(format!("{table}{}", self.chosen_words()));
        }
        if !self.by_value.is_empty() {
            parts.push(format!("{} by the sweep's values:\n{}", self.objective, table("runs", &self.by_value)));
        }
        parts.push(self.beside_table());
        let at_end = self.numbers.iter().filter(|number| number.is_at_end());
        parts.extend(at_end.map(|TunedNumber { name, best, .. }| {
            format!(
                "{name} = {best} is the end of what was searched: --vary \"{name}=LOW..HIGH\" searches elsewhere.\n"
            )
        }));
        parts.extend(self.silent.iter().map(|line| format!("{line}\n")));
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    /// In a sentence or two.
    fn answer_words(&self) -> String {
        let Tuned { policy, objective, trials, training_runs, held_back_seeds, .. } = self;
        let runs = format!("on {held_back_seeds} held-back seeds");
        let gain = self.gain.as_ref().map(of).unwrap_or_default();
        match self.answer {
            Answer::Better => format!("`{policy}` is better with other numbers: {gain} {runs}."),
            Answer::Worse => {
                format!("no gain for `{policy}`: the best numbers of the training are worse, {gain} {runs}.")
            }
            Answer::NoGain if self.gain.is_some() => format!(
                "no gain for `{policy}` that could not be chance: with the best numbers of the training {gain} {runs}."
            ),
            Answer::NoGain if !self.influence => format!(
                "no gain for `{policy}`: its numbers have no influence here. None of {trials} trials changed anything."
            ),
            Answer::NoGain => format!(
                "no gain for `{policy}`: none of {trials} trials had less {objective} on {training_runs} training runs than its own numbers."
            ),
            Answer::BeyondLimit => {
                let exceeded = self.exceeded.join("; ");
                format!("no gain for `{policy}` within the limits: {gain} {runs}, but {exceeded}.")
            }
            Answer::CannotSay => format!(
                "whether the best numbers of the training are better for `{policy}` cannot be said: too few flows end in a held-back run."
            ),
        }
    }

    /// What the training says, and why it is not the answer.
    fn chosen_words(&self) -> String {
        let Tuned { objective, trials, training_runs, training_change, .. } = self;
        format!(
            "From, to: the 95 % confidence interval, paired by seed, on runs that the search has not seen. On the {training_runs} training \
             runs {objective} changed by {}, which flatters the best of {trials} trials.\n",
            percent(*training_change)
        )
    }

    fn numbers_table(&self) -> String {
        let mut table = Table::new(["number", "as it is", "best", "searched"]);
        for TunedNumber { name, written, best, range: (low, high), .. } in &self.numbers {
            let cells = [name, written, best].map(String::clone);
            table.row(cells.into_iter().chain([format!("{low} to {high}")]).collect());
        }
        table.render()
    }

    fn beside_table(&self) -> String {
        let mut table = Table::new(["beside the best", "change %", "from", "to"]);
        for number in &self.numbers {
            for Change { of, change, interval } in number.beside.iter().flatten() {
                let shares = [*change, interval.0, interval.1].map(|share| format!("{:+.1}", share * 100.0));
                table.row(std::iter::once(format!("{} = {of}", number.name)).chain(shares).collect());
            }
        }
        if table.is_empty() {
            return String::new();
        }
        format!(
            "{}{} with one number moved by a tenth of its range, on the held-back runs.\n",
            table.render(),
            self.objective
        )
    }
}

/// Comments for the top of the file.
pub(super) fn evidence(tuned: &Tuned, request: &TuneRequest) -> String {
    let file = |name: String| name.rsplit('/').next().map_or(name.clone(), str::to_string);
    let (seeds, last) = (request.seeds, request.seeds + request.held_back_seeds);
    let mut lines = vec![
        "Searched by `opentcp policy tune`, in the simulator.".to_string(),
        format!("  policy: {}; scenario: {}", file(request.policy.name()), file(request.scenario.name())),
        format!("  {} trials on seeds 1 to {seeds}, judged on seeds {} to {last}", tuned.trials, seeds + 1),
    ];
    let options = [("--set", &request.sets), ("--limit", &request.limits), ("--hold-back", &request.hold_back)];
    for (option, values) in options {
        lines.extend(values.iter().map(|value| format!("  {option} {value}")));
    }
    lines.extend(paragraph(&tuned.answer_words()).lines().map(str::to_string));
    for change in tuned.quantities.iter().chain(&tuned.by_value) {
        lines.push(format!("  {}", of(change)));
    }
    let taken = tuned.answer == Answer::Better;
    lines.push(if tuned.numbers.iter().all(|number| !number.is_changed()) {
        "The numbers are those that the policy had, and how the objective changes beside them on the held-back runs:"
            .to_string()
    } else if taken {
        "The numbers, and how the objective changes beside them on the held-back runs:".to_string()
    } else {
        "The numbers below are those that the policy had. The best of the training, which are not taken:".to_string()
    });
    for number in &tuned.numbers {
        let TunedNumber { name, written, best, range: (low, high), .. } = number;
        let change = if number.is_changed() { format!("{written} -> {best}") } else { format!("stays {written}") };
        lines.push(format!("  {name}: {change} (searched {low} to {high})"));
        let beside = number.beside.iter().flatten();
        lines.extend(beside.map(|change| format!("    at {}", of(change))));
    }
    if taken {
        lines.push("The title and the comments below are from the policy as it was.".to_string());
    }
    // a value given by the user must not end its comment
    let comment = |line: &String| format!("# {}\n", line.replace(char::is_control, " "));
    lines.iter().map(comment).collect::<String>() + "\n"
}
