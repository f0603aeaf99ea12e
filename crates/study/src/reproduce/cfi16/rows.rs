//! The rows of `--json` and of the report: the paper's quantities first, in its order of variants, then ours.

use super::measured::{Case, Cases, LOW_QUEUE_PACKETS, Measured, Spread};
use super::paper::{self, Line};
use crate::table::number;
use results::Comparison;

/// A compared quantity.
struct Quantity {
    figure: &'static str,
    name: &'static str,
    unit: &'static str,
    paper: fn(Line) -> Option<f64>,
    ours: fn(&Measured) -> Option<f64>,
    note: &'static str,
}

const PRINTED: [Quantity; 3] = [
    Quantity {
        figure: "Figure 2",
        name: "drops",
        unit: "packets",
        paper: |_| None,
        ours: |run| Some(run.drops),
        note: "at the 45 switches; the paper's bars have no numbers",
    },
    Quantity {
        figure: "Table 4",
        name: "throughput",
        unit: "%",
        paper: |line| Some(line.throughput_percent),
        ours: |run| run.throughput_percent,
        note: "mean of data and ACK flows, as Flow Monitor counts",
    },
    Quantity {
        figure: "Table 4",
        name: "delay",
        unit: "ms",
        paper: |line| Some(line.delay_ms),
        ours: |run| run.delay_ms,
        note: "from IP send to IP receive, mean over the packets of data flows",
    },
];

const FURTHER: [Quantity; 4] = [
    Quantity {
        figure: "Table 4",
        name: "goodput, data flows",
        unit: "%",
        paper: |_| None,
        ours: |run| run.goodput_percent,
        note: "received IP bytes of the data flows only",
    },
    Quantity {
        figure: "Table 4",
        name: "delay, mean of flows",
        unit: "ms",
        paper: |_| None,
        ours: |run| run.flow_delay_ms,
        note: "mean over flows of each flow's mean delay",
    },
    Quantity {
        figure: "Figure 3",
        name: "core queue, mean",
        unit: "packets",
        paper: |_| None,
        ours: |run| run.queue_mean,
        note: "fullest output port of the most used core switch",
    },
    Quantity {
        figure: "Figure 3",
        name: "core queue, samples under 20 packets",
        unit: "%",
        paper: |_| None,
        ours: |run| run.queue_low_percent,
        note: "fullest output port of the most used core switch",
    },
];

/// All rows: the printed quantities on the single path, then with ECMP; then the further ones and the experiments'.
pub fn comparisons(cases: &Cases) -> Vec<Comparison> {
    const { assert!(LOW_QUEUE_PACKETS == 20, "a quantity's name contains this number") };
    let (study, experiments): (Vec<&str>, Vec<&str>) =
        cases.environments().into_iter().partition(|name| ["single-path", "ecmp"].contains(name));
    let mut rows = Vec::new();
    for quantities in [&PRINTED[..], &FURTHER[..]] {
        for environment in &study {
            rows.extend(
                quantities.iter().flat_map(|quantity| section(quantity, quantity.figure, &cases.of(environment))),
            );
        }
    }
    for environment in experiments {
        rows.extend(PRINTED.iter().flat_map(|quantity| section(quantity, "Experiments", &cases.of(environment))));
    }
    rows
}

fn section(quantity: &Quantity, figure: &str, cases: &[&Case]) -> Vec<Comparison> {
    let row = |case: &&Case| {
        let spread = case.spread(quantity.ours)?;
        Some(Comparison {
            figure: figure.to_string(),
            case: format!("{}/{}", case.environment, case.variant),
            quantity: quantity.name.to_string(),
            unit: quantity.unit.to_string(),
            paper: paper::line(&case.variant).and_then(quantity.paper),
            ours: spread.median,
            note: note(quantity, spread),
        })
    };
    cases.iter().filter_map(row).collect()
}

fn note(quantity: &Quantity, spread: Spread) -> String {
    if spread.seeds == 1 {
        return quantity.note.to_string();
    }
    let (low, high) = (number(spread.low), number(spread.high));
    format!("{}; median of {} seeds, from {low} to {high}", quantity.note, spread.seeds)
}
