//! A row for each traffic, network, size and algorithm: medians over the seeds.

use super::cases::{Case, Network, SIZES, Traffic};
use super::measured::{QUANTITIES, Value};
use crate::done::Kept;
use crate::statistics::median;
use results::Comparison;

/// A line of the table.
#[derive(Debug)]
pub struct Row {
    pub traffic: &'static Traffic,
    pub network: &'static Network,
    /// Index into [`SIZES`].
    pub size: usize,
    pub algorithm: String,
    /// In the order of [`QUANTITIES`].
    pub values: Vec<Option<Value>>,
    /// Runs.
    pub seeds: usize,
}

impl Row {
    /// The network, with its size if it is not the first.
    pub fn place(&self) -> String {
        if self.size == 0 {
            self.network.name.to_string()
        } else {
            format!("{}, {}", self.network.name, SIZES[self.size].0)
        }
    }

    /// A quantity's number.
    pub fn number(&self, quantity: usize) -> Option<f64> {
        self.values[quantity].map(|(value, _)| value)
    }
}

/// The rows, of traffic after traffic.
pub fn of(cases: &[Case], runs: &[Kept]) -> Vec<Row> {
    let mut groups: Vec<(&Case, Vec<&Kept>)> = Vec::new();
    for (case, run) in cases.iter().zip(runs) {
        let same = |(known, _): &&mut (&Case, Vec<&Kept>)| {
            (known.traffic.key, known.network.name, known.size, &known.algorithm)
                == (case.traffic.key, case.network.name, case.size, &case.algorithm)
        };
        match groups.iter_mut().find(same) {
            Some((_, members)) => members.push(run),
            None => groups.push((case, vec![run])),
        }
    }
    let mut rows: Vec<Row> = groups.into_iter().map(|(case, members)| row(case, &members)).collect();
    // with --full, sizes come one after the other
    let place = |row: &Row| super::cases::TRAFFIC.iter().position(|traffic| traffic.key == row.traffic.key);
    rows.sort_by_key(|row| (place(row), row.size));
    rows
}

fn row(case: &Case, runs: &[&Kept]) -> Row {
    let value = |quantity: &super::measured::Quantity| {
        let values: Vec<Value> = runs.iter().filter_map(|run| (quantity.of)(&run.summary)).collect();
        let numbers: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
        Some((median(&numbers)?, values.iter().any(|(_, bound)| *bound)))
    };
    Row {
        traffic: case.traffic,
        network: case.network,
        size: case.size,
        algorithm: case.algorithm.clone(),
        values: QUANTITIES.iter().map(value).collect(),
        seeds: runs.len(),
    }
}

/// The rows of `--json`. Nothing was published that they could be compared with.
pub fn comparisons(rows: &[Row]) -> Vec<Comparison> {
    let of = |row: &Row| -> Vec<Comparison> {
        let values = QUANTITIES.iter().zip(&row.values);
        let comparison = |(quantity, value): (&super::measured::Quantity, &Option<Value>)| {
            let (ours, bound) = (*value)?;
            Some(Comparison {
                figure: row.traffic.name.to_string(),
                case: format!("{}/{}", row.place(), row.algorithm),
                quantity: quantity.name.to_string(),
                unit: quantity.unit.to_string(),
                paper: None,
                ours,
                note: if bound { "a lower bound" } else { "" }.to_string(),
            })
        };
        values.filter_map(comparison).collect()
    };
    rows.iter().flat_map(of).collect()
}
