//! The study's text output: a table for each figure, with theory, simulator and kernel in columns.

use super::cases::Backend;
use super::rows::Line;
use crate::table::{Table, number, optional, paragraph};
use std::fmt::Write as _;

/// All tables, then the findings.
pub fn render(lines: &[Line], findings: &[String]) -> String {
    let mut text = String::new();
    for figure in ["Figure 1", "Figure 12", "Figure 16"] {
        let these: Vec<&Line> = lines.iter().filter(|line| line.figure == figure).collect();
        if !these.is_empty() {
            let _ = write!(text, "\n{figure}\n{}", table(&these));
        }
    }
    if lines.iter().any(|line| line.distorted.is_some()) {
        text.push_str("\n! this run is not valid; the reason is below\n");
    }
    for finding in findings {
        let _ = writeln!(text, "\n{}", paragraph(finding));
    }
    text
}

/// The key of a line, the same for both backends.
fn key(line: &Line) -> (&str, &str, &str) {
    (line.setting, &line.variant, &line.quantity)
}

fn table(lines: &[&Line]) -> String {
    let kernels = lines.iter().any(|line| line.backend == Backend::Kernel);
    let simulated = lines.iter().any(|line| line.backend == Backend::Sim);
    let mut headings = vec!["links", "case", "quantity", "unit", "theory"];
    headings.extend(simulated.then_some("simulator"));
    headings.extend(kernels.then_some("kernel"));
    let mut table = Table::new(headings);
    let mut done: Vec<(&str, &str, &str)> = Vec::new();
    for line in lines {
        if done.contains(&key(line)) {
            continue;
        }
        done.push(key(line));
        let of = |backend: Backend| lines.iter().find(|other| key(other) == key(line) && other.backend == backend);
        let mut row = vec![
            line.setting.to_string(),
            line.variant.clone(),
            line.quantity.clone(),
            line.unit.to_string(),
            optional(line.paper),
        ];
        row.extend(simulated.then(|| cell(of(Backend::Sim).copied())));
        row.extend(kernels.then(|| cell(of(Backend::Kernel).copied())));
        table.row(row);
    }
    table.render()
}

fn cell(line: Option<&Line>) -> String {
    let Some(line) = line else { return optional(None) };
    let mark = if line.distorted.is_some() { " !" } else { "" };
    format!("{}{mark}", number(line.ours()))
}
