//! The study's text output.

use super::experiments;
use super::measured::{Case, Cases, Measured};
use super::paper;
use crate::table::{Table, number, paragraph};

/// A table for each environment, then the findings.
pub fn render(cases: &Cases, findings: &[String]) -> String {
    let mut parts = Vec::new();
    for environment in cases.environments() {
        let heading = match experiments::ALL.iter().find(|experiment| experiment.name == environment) {
            Some(experiment) => format!("{environment}, on the single path: {}", experiment.question),
            None => environment.to_string(),
        };
        parts.push(format!("{heading}\n{}", table(&cases.of(environment))));
    }
    let key = "drops: at the 45 switches. throughput: percent of 100 Mbit/s, mean of data and ACK flows as in the paper.\n\
               data flows: the same without the ACK flows. delay: IP send to IP receive, mean over packets (ours), and over\n\
               flows' means. core queue: fullest output port of the most used core switch.\n";
    parts.push(key.to_string());
    parts.extend(findings.iter().map(|finding| format!("{}\n", paragraph(finding))));
    format!("\n{}", parts.join("\n"))
}

fn table(cases: &[&Case]) -> String {
    let mut table = Table::new([
        "variant",
        "drops",
        "throughput %",
        "paper",
        "data flows %",
        "delay ms",
        "paper",
        "flows' mean",
        "core queue",
        "% under 20",
    ]);
    for case in cases {
        let line = paper::line(&case.variant);
        table.row(vec![
            case.variant.clone(),
            cell(case, |run| Some(run.drops)),
            cell(case, |run| run.throughput_percent),
            printed(line.map(|line| line.throughput_percent)),
            cell(case, |run| run.goodput_percent),
            cell(case, |run| run.delay_ms),
            printed(line.map(|line| line.delay_ms)),
            cell(case, |run| run.flow_delay_ms),
            cell(case, |run| run.queue_mean),
            cell(case, |run| run.queue_low_percent),
        ]);
    }
    table.render()
}

/// With the paper's two decimals.
fn printed(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), |value| format!("{value:.2}"))
}

/// The value of one seed, or the median and range of several.
fn cell(case: &Case, quantity: fn(&Measured) -> Option<f64>) -> String {
    match case.spread(quantity) {
        None => "–".to_string(),
        Some(spread) if spread.seeds == 1 => number(spread.median),
        Some(spread) => format!("{} ({}–{})", number(spread.median), number(spread.low), number(spread.high)),
    }
}
