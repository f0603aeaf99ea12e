//! Compares the hosts: medians, relative errors, a table, and findings.

use super::case::{Case, Host};
use super::record::{Measured, Record};
use crate::table::{Table, number, paragraph};
use results::Comparison;
use serde::Serialize;

/// Allowed difference of goodput, percent.
const GOODPUT_PERCENT: f64 = 3.0;
/// Allowed difference of the mean queue, percent.
const QUEUE_PERCENT: f64 = 15.0;
/// Two queues that differ by less than this are equal: it is the packets just being sent or arriving.
const QUEUE_PACKETS: f64 = 1.0;

/// A compared quantity.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    of: fn(&Measured) -> f64,
    /// The allowed relative error, percent.
    bound: Option<f64>,
}

const QUANTITIES: [Quantity; 8] = [
    Quantity { name: "goodput", unit: "Mbit/s", of: |m| m.goodput_mbps, bound: Some(GOODPUT_PERCENT) },
    Quantity { name: "mean queue", unit: "packets", of: |m| m.queue_mean, bound: Some(QUEUE_PERCENT) },
    Quantity { name: "p99 queue", unit: "packets", of: |m| m.queue_p99, bound: None },
    Quantity { name: "drops", unit: "packets", of: |m| m.drops, bound: None },
    Quantity { name: "marks", unit: "packets", of: |m| m.marks, bound: None },
    Quantity { name: "retransmits", unit: "packets", of: |m| m.retransmits, bound: None },
    Quantity { name: "RTOs", unit: "", of: |m| m.rtos, bound: None },
    Quantity { name: "mean cwnd", unit: "segments", of: |m| m.cwnd_mean, bound: None },
];

/// The records of one case.
pub struct Outcome {
    /// The case.
    pub case: Case,
    /// By host, in the order of [`Host::ALL`]: a record for each repetition.
    pub records: [Vec<Record>; 3],
}

/// A quantity of a case on every host: a row of `comparisons.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    algorithm: &'static str,
    environment: String,
    quantity: &'static str,
    unit: &'static str,
    simulator: f64,
    kernel: f64,
    /// Of the kernel's own implementation.
    kernels_own: Option<f64>,
    /// The simulator against the kernel with the same source; `None` if the kernel's value is 0.
    error_percent: Option<f64>,
    /// Whether that is within the bound; `None` without a bound.
    within: Option<bool>,
    /// Number of repetitions; the numbers are their medians.
    runs: usize,
    /// One of the kernel's runs was not valid.
    distorted: bool,
}

impl Outcome {
    /// Its records on `host`.
    pub fn of(&self, host: Host) -> &[Record] {
        &self.records[host as usize]
    }

    /// Of the repetitions on `host`; none if there are none.
    pub fn median(&self, host: Host, of: impl Fn(&Record) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.of(host).iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        (n > 0).then(|| values[(n - 1) / 2].midpoint(values[n / 2]))
    }

    /// Why the kernel's runs are not valid.
    fn distortions(&self) -> Vec<String> {
        let checks = self.of(Host::Kernel).iter().filter_map(|record| record.check.as_ref());
        checks
            .filter(|check| !check.valid)
            .map(|check| format!("{}: {}", check.run, check.reasons.join("; ")))
            .collect()
    }

    fn row(&self, quantity: &Quantity) -> Option<Row> {
        let of = |record: &Record| (quantity.of)(&record.measured);
        let simulator = self.median(Host::Simulator, of)?;
        let kernel = self.median(Host::Kernel, of)?;
        let error_percent = error_percent(simulator, kernel);
        let near = quantity.unit == "packets" && (simulator - kernel).abs() < QUEUE_PACKETS;
        let within = |bound: f64| near || error_percent.is_none_or(|error| error.abs() <= bound);
        Some(Row {
            algorithm: self.case.algorithm,
            environment: self.case.environment(),
            quantity: quantity.name,
            unit: quantity.unit,
            simulator,
            kernel,
            kernels_own: self.median(Host::Own, of),
            error_percent,
            within: quantity.bound.map(within),
            runs: self.of(Host::Kernel).len(),
            distorted: !self.distortions().is_empty(),
        })
    }
}

/// The error of `ours` against `theirs`, percent; `None` if `theirs` is 0.
pub fn error_percent(ours: f64, theirs: f64) -> Option<f64> {
    (theirs != 0.0).then(|| (ours - theirs) / theirs * 100.0)
}

/// Every quantity of every case.
pub fn rows(outcomes: &[Outcome]) -> Vec<Row> {
    outcomes.iter().flat_map(|outcome| QUANTITIES.iter().filter_map(|quantity| outcome.row(quantity))).collect()
}

/// The rows for `reproduce --json`; the kernel's value takes the place of the paper's.
pub fn comparisons(rows: &[Row]) -> Vec<Comparison> {
    let comparison = |row: &Row| {
        let error = row.error_percent.map_or("no relative error".to_string(), |error| format!("error {error:+.1} %"));
        let own = row.kernels_own.map_or(String::new(), |own| format!("; the kernel’s own algorithm: {}", number(own)));
        let distorted = if row.distorted { "; the kernel’s run was not valid" } else { "" };
        Comparison {
            figure: "simulator against kernel".to_string(),
            case: format!("{}/{}", row.environment, row.algorithm),
            quantity: row.quantity.to_string(),
            unit: row.unit.to_string(),
            paper: Some(row.kernel),
            ours: row.simulator,
            note: format!("“paper” is the kernel with the same source; {error}{own}{distorted}"),
        }
    };
    rows.iter().map(comparison).collect()
}

/// The text output: one table per environment, with a line for each algorithm.
pub fn render(rows: &[Row], findings: &[String]) -> String {
    let mut environments: Vec<&str> = Vec::new();
    for row in rows {
        if !environments.contains(&row.environment.as_str()) {
            environments.push(&row.environment);
        }
    }
    let mut text = String::new();
    for environment in environments {
        let here: Vec<&Row> = rows.iter().filter(|row| row.environment == environment).collect();
        text += environment;
        text += "\n";
        text += &environment_table(&here);
        text += "\n";
    }
    text.push_str(
        "simulator, kernel with the same source, kernel’s own algorithm; errors of the simulator against the\n",
    );
    text.push_str("kernel. !: outside the bound (goodput 3 %, mean queue 15 %). ~: a run was not valid.\n");
    for finding in findings {
        text += "\n";
        text += &paragraph(finding);
        text += "\n";
    }
    text
}

fn environment_table(rows: &[&Row]) -> String {
    let headings = ["algorithm", "quantity", "simulator", "kernel", "own", "error %", ""];
    let mut table = Table::new(headings);
    for row in rows {
        let own = row.kernels_own.map_or("–".to_string(), number);
        let error = row.error_percent.map_or("–".to_string(), |error| format!("{error:.1}"));
        let sign = if row.within == Some(false) { "!" } else { "" };
        let slow = if row.distorted { "~" } else { "" };
        table.row(vec![
            row.algorithm.to_string(),
            row.quantity.to_string(),
            number(row.simulator),
            number(row.kernel),
            own,
            error,
            format!("{sign}{slow}"),
        ]);
    }
    table.render()
}

/// The findings.
pub fn findings(outcomes: &[Outcome], rows: &[Row]) -> Vec<String> {
    let mut findings = Vec::new();
    for quantity in QUANTITIES.iter().filter(|quantity| quantity.bound.is_some()) {
        findings.extend(band(quantity, rows));
    }
    findings.extend(own_band(rows));
    let distortions: Vec<String> = outcomes.iter().flat_map(Outcome::distortions).collect();
    if !distortions.is_empty() {
        findings.push(format!("Kernel runs that are not valid: {}.", distortions.join(". ")));
    }
    findings
}

/// How many cases are within a quantity's bound, and the largest error.
fn band(quantity: &Quantity, rows: &[Row]) -> Option<String> {
    let bound = quantity.bound?;
    let of: Vec<&Row> = rows.iter().filter(|row| row.quantity == quantity.name).collect();
    let size = |row: &Row| row.error_percent.map_or(0.0, f64::abs);
    let worst = *of.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let within = of.iter().filter(|row| row.within == Some(true)).count();
    let mut sizes: Vec<f64> = of.iter().map(|row| size(row)).collect();
    sizes.sort_by(f64::total_cmp);
    let median = sizes[(sizes.len() - 1) / 2].midpoint(sizes[sizes.len() / 2]);
    let outside: Vec<String> = of.iter().filter(|row| row.within == Some(false)).map(|row| place(row)).collect();
    let listed = if outside.is_empty() { String::new() } else { format!(" Outside: {}.", outside.join("; ")) };
    Some(format!(
        "{}: simulator and kernel are within {bound:.0} % in {within} of {} cases (median error {median:.1} %, the largest \
         {:.1} %: {} in {}).{listed}",
        capitalised(quantity.name),
        of.len(),
        size(worst),
        worst.algorithm,
        worst.environment
    ))
}

fn place(row: &Row) -> String {
    let error = row.error_percent.unwrap_or(0.0);
    format!("{} in {} by {error:+.1} %", row.algorithm, row.environment)
}

/// The difference of our source from the kernel's own implementation, both in the kernel.
fn own_band(rows: &[Row]) -> Option<String> {
    let goodputs = rows.iter().filter(|row| row.quantity == "goodput");
    let errors: Vec<(f64, &Row)> =
        goodputs.filter_map(|row| Some((error_percent(row.kernel, row.kernels_own?)?, row))).collect();
    let (error, row) = errors.iter().max_by(|(a, _), (b, _)| a.abs().total_cmp(&b.abs()))?;
    Some(format!(
        "Both in the kernel, our algorithms and its own of the same kind differ in goodput by {:.1} % at most ({} in {}).",
        error.abs(),
        row.algorithm,
        row.environment
    ))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(quantity: &'static str, simulator: f64, kernel: f64, within: bool) -> Row {
        Row {
            algorithm: "cubic",
            environment: "here".to_string(),
            quantity,
            unit: "",
            simulator,
            kernel,
            kernels_own: Some(kernel),
            error_percent: error_percent(simulator, kernel),
            within: Some(within),
            runs: 1,
            distorted: false,
        }
    }

    #[test]
    fn an_error_is_relative_to_the_kernel() {
        assert_eq!(error_percent(97.0, 100.0), Some(-3.0));
        assert_eq!(error_percent(5.0, 0.0), None);
    }

    #[test]
    fn findings_count_cases_within_the_bound_and_name_those_outside() {
        let rows = [row("goodput", 94.0, 94.0, true), row("goodput", 47.0, 94.0, false)];
        let words = band(&QUANTITIES[0], &rows).expect("there are rows");
        assert!(words.contains("within 3 % in 1 of 2 cases"), "{words}");
        assert!(words.contains("cubic in here by -50.0 %"), "{words}");
    }

    #[test]
    fn the_table_marks_what_is_further_apart() {
        let text = render(&[row("goodput", 94.0, 94.0, true), row("goodput", 47.0, 94.0, false)], &[]);
        let marked: Vec<&str> = text.lines().filter(|line| line.trim_end().ends_with('!')).collect();
        assert_eq!(marked.len(), 1, "{text}");
        assert!(marked[0].contains("-50.0"), "{text}");
    }
}
