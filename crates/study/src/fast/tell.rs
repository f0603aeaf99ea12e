//! A model's results as text.

use crate::done::Kept;
use crate::table::{Table, number};
use results::{ModelError, SlowdownOf};
use std::fmt::Write as _;

/// Slowdown by size class of each run, with intervals and measured errors.
pub fn tables(runs: &[Kept]) -> String {
    let mut text = String::from(
        "SCALE MODEL: the same network with fewer hosts; what a run counts on all links and flows is left out\n",
    );
    for run in runs {
        let _ = write!(text, "\n{}: FCT slowdown by flow size\n{}", run.name, of_run(run));
    }
    text.push_str(
        "\nflows: of the model, all its seeds. from, to: the 95 % interval over the seeds. error: of models against whole simulations; \
         beyond 10 % a figure is not to be believed\n",
    );
    text
}

fn of_run(run: &Kept) -> String {
    let mut table =
        Table::new(["size", "flows", "unfinished", "p50", "from", "to", "error %", "p99", "from", "to", "error %", ""]);
    let slowdown = run.summary.slowdown.iter();
    for of in slowdown.flat_map(|slowdown| slowdown.classes.iter().chain([&slowdown.all])) {
        let Some(model) = &of.model else { continue };
        let name = if of.class.is_empty() { "all" } else { &of.class };
        let shown = |value: f64, (from, to): (f64, f64), which: &str, error: Option<f64>| {
            let bound = if of.at_least.iter().any(|bound| bound == which) { "≥" } else { "" };
            let error = error.map_or("–".to_string(), |error| format!("{:+.1}", error * 100.0));
            [format!("{bound}{}", number(value)), number(from), number(to), error]
        };
        let p50 = shown(of.p50, model.p50, "p50", model.error.map(|error| error.p50));
        let p99 = shown(of.p99, model.p99, "p99", model.error.map(|error| error.p99));
        let counts = [name.to_string(), number(of.flows as f64), number(of.unfinished as f64)];
        table.row(counts.into_iter().chain(p50).chain(p99).chain([word(of).to_string()]).collect());
    }
    table.render()
}

/// Whether a class's figures are to be believed.
pub fn word(of: &SlowdownOf) -> &'static str {
    let error = of.model.as_ref().and_then(|model| model.error);
    match error.map(|ModelError { p50, p99 }| [p50, p99].map(|error| error.abs() <= ModelError::MOST)) {
        None => "error not measured",
        Some([true, true]) => "",
        Some([false, true]) => "p50 NOT TO BE BELIEVED",
        Some([true, false]) => "p99 NOT TO BE BELIEVED",
        Some([false, false]) => "NOT TO BE BELIEVED",
    }
}
