//! The rows of `--json` and of the report, the text output, and the sentences.

use super::cases::{ALGORITHMS, Case, PATHOLOGIES, Quantity};
use crate::statistics::median;
use crate::table::{Table, number, optional, paragraph};
use results::Comparison;
use std::collections::BTreeMap;

/// Values of all variants by pathology, algorithm and seed.
#[derive(Default)]
pub struct Measurements(BTreeMap<(&'static str, &'static str), BTreeMap<u64, Vec<f64>>>);

impl Measurements {
    pub fn add(&mut self, case: &Case, values: Vec<f64>) {
        let seeds = self.0.entry((case.pathology.name, case.algorithm)).or_default();
        seeds.entry(case.seed).or_default().extend(values);
    }

    /// The median over the seeds that have the quantity.
    fn median(&self, pathology: &'static str, algorithm: &'static str, quantity: &Quantity) -> Option<f64> {
        let seeds = self.0.get(&(pathology, algorithm))?;
        let values: Vec<f64> = seeds.values().map(|values| (quantity.of)(values)).filter(|x| x.is_finite()).collect();
        median(&values)
    }
}

/// A row for each quantity that exists and each algorithm.
pub fn comparisons(measurements: &Measurements) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for pathology in &PATHOLOGIES {
        for quantity in pathology.quantities {
            for algorithm in ALGORITHMS {
                let Some(ours) = measurements.median(pathology.name, algorithm, quantity) else { continue };
                rows.push(Comparison {
                    figure: quantity.figure.to_string(),
                    case: format!("{}/{algorithm}", pathology.name),
                    quantity: quantity.name.to_string(),
                    unit: quantity.unit.to_string(),
                    paper: (quantity.paper)(algorithm),
                    ours,
                    note: quantity.note.to_string(),
                });
            }
        }
    }
    rows
}

fn ours(rows: &[Comparison], pathology: &str, algorithm: &str, quantity: &str) -> Option<f64> {
    let case = format!("{pathology}/{algorithm}");
    rows.iter().find(|row| row.case == case && row.quantity == quantity).map(|row| row.ours)
}

/// Which published statements hold.
pub fn findings(rows: &[Comparison]) -> Vec<String> {
    let mut findings = Vec::new();
    let [collapse, slow, cured] = [0, 1, 2].map(|n| {
        let name = PATHOLOGIES[0].quantities[n].name;
        ours(rows, "incast", "newreno", name)
    });
    let servers = collapse.map_or("no number of servers".to_string(), |n| format!("{n} servers"));
    // published: 4 to 8, within a quarter
    let holds = if collapse.is_some_and(|n| (3.0..=10.0).contains(&n)) { "as published" } else { "NOT as published" };
    findings.push(format!(
        "Incast: NewReno collapses at {servers} (published: 4 to 8), {holds}, in a setting chosen among sixteen (docs/pathologies.md). At \
         47 servers a minimum RTO of 1 ms gives {} Mbit/s where 200 ms gives {}.",
        optional(cured),
        optional(slow)
    ));
    for row in rows {
        if let Some(paper) = row.paper.filter(|paper| (row.ours / paper - 1.0).abs() > 0.25) {
            findings.push(format!(
                "{}, {}: {} {} where {} were published.{}",
                row.case,
                row.quantity,
                number(row.ours),
                row.unit,
                number(paper),
                if row.note.is_empty() { String::new() } else { format!(" Note: {}.", row.note) }
            ));
        }
    }
    findings
}

/// The table of algorithms and pathologies, the table of what was published, and the findings.
pub fn render(rows: &[Comparison], findings: &[String]) -> String {
    let shown: Vec<(&str, &Quantity, &str)> = PATHOLOGIES
        .iter()
        .flat_map(|pathology| pathology.quantities.iter().map(move |quantity| (pathology.name, quantity)))
        .filter_map(|(pathology, quantity)| Some((pathology, quantity, quantity.short?)))
        .collect();
    let mut table = Table::new(["algorithm"].into_iter().chain(shown.iter().map(|(_, _, short)| *short)));
    for algorithm in ALGORITHMS {
        let cells =
            shown.iter().map(|(pathology, quantity, _)| optional(ours(rows, pathology, algorithm, quantity.name)));
        table.row([algorithm.to_string()].into_iter().chain(cells).collect());
        let paper: Vec<Option<f64>> = shown.iter().map(|(_, quantity, _)| (quantity.paper)(algorithm)).collect();
        if paper.iter().any(Option::is_some) {
            let cells = paper.into_iter().map(optional);
            table.row(["  published".to_string()].into_iter().chain(cells).collect());
        }
    }
    let mut text = format!("\n{}\n", table.render());
    for (_, quantity, short) in &shown {
        let line = format!("{short}: {} ({}); {}.", quantity.name, quantity.figure, quantity.note);
        text.push_str(&paragraph(&line));
        text.push('\n');
    }
    for finding in findings {
        text.push('\n');
        text.push_str(&paragraph(finding));
        text.push('\n');
    }
    text
}
