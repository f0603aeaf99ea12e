//! The reference of metrics, for the documentation.

use crate::page::{Kind, Metric};
use std::fmt::Write as _;

/// A table in Markdown: name, type, labels, meaning.
pub fn reference(metrics: &[&Metric]) -> String {
    let mut text = "| metric | type | labels | what it is |\n|---|---|---|---|\n".to_string();
    for metric in metrics {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, labels, help) = (metric.full_name(), labels.join(", "), metric.help);
        writeln!(text, "| `{name}` | {kind} | {labels} | {help} |").expect("a string takes all that is written to it");
    }
    text
}
