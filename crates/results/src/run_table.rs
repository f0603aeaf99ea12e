//! The table of a dataset's runs: their parameters and their numbers.

use std::collections::BTreeSet;

use parquet::errors::Result;
use serde_json::Value;

use crate::{RunSummary, Summary, columns::Definition, tables::file};

/// A run's cells, in the order of the columns.
struct Row<'a> {
    name: &'a str,
    parameters: Vec<&'a str>,
    numbers: Vec<Option<&'a Value>>,
}

/// The runs as a Parquet file. Columns are the run's name, its parameters (integers where all are), and the summary's numbers, with
/// those that the scenario defines and percentiles of the slowdown. A number that some run lacks is null there.
///
/// # Errors
/// The library refuses.
pub(crate) fn run_table(runs: &[RunSummary<'_>]) -> Result<Vec<u8>> {
    let numbers: Vec<Vec<(String, Value)>> = runs.iter().map(|run| numbers(run.summary)).collect();
    let parameters = distinct(runs.iter().flat_map(|run| run.parameters).map(|(key, _)| key.as_str()), &[]);
    let names = distinct(numbers.iter().flatten().map(|(name, _)| name.as_str()), &parameters);
    let rows: Vec<Row<'_>> =
        runs.iter().zip(&numbers).map(|(run, numbers)| row(run, numbers, &parameters, &names)).collect();
    let mut columns = vec![Definition::text("run", |row: &Row<'_>| row.name)];
    for (place, name) in parameters.iter().enumerate() {
        let integers = rows.iter().all(|row| row.parameters[place].parse::<u64>().is_ok());
        columns.push(if integers {
            Definition::int_or_null(name, move |row: &Row<'_>| row.parameters[place].parse().ok())
        } else {
            Definition::text(name, move |row: &Row<'_>| row.parameters[place])
        });
    }
    for (place, name) in names.iter().enumerate() {
        let integers = rows.iter().filter_map(|row| row.numbers[place]).all(Value::is_u64);
        columns.push(if integers {
            Definition::int_or_null(name, move |row: &Row<'_>| row.numbers[place]?.as_u64())
        } else {
            Definition::float_or_null(name, move |row: &Row<'_>| row.numbers[place]?.as_f64())
        });
    }
    let origin = |of: fn(&Summary) -> &str| runs.first().map_or("", |run| of(run.summary)).to_owned();
    file(&rows, &columns, [("scenario", origin(|of| &of.scenario)), ("version", origin(|of| &of.version))])
}

fn row<'a>(run: &RunSummary<'a>, numbers: &'a [(String, Value)], parameters: &[&str], names: &[&str]) -> Row<'a> {
    let parameter = |key: &&str| run.parameters.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str());
    Row {
        name: run.name,
        parameters: parameters.iter().map(|key| parameter(key).unwrap_or_default()).collect(),
        numbers: names.iter().map(|key| value(numbers, key)).collect(),
    }
}

/// Each name once, in the order of its first place, without those that are `taken`.
fn distinct<'a>(names: impl Iterator<Item = &'a str>, taken: &[&str]) -> Vec<&'a str> {
    let mut known: BTreeSet<&str> = taken.iter().copied().collect();
    let mut all = Vec::new();
    for name in names {
        if !known.contains(name) {
            known.insert(name);
            all.push(name);
        }
    }
    all
}

fn value<'a>(numbers: &'a [(String, Value)], key: &str) -> Option<&'a Value> {
    numbers.iter().find(|(name, value)| name == key && !value.is_null()).map(|(_, value)| value)
}

/// The single numbers of a summary, sorted by name; those that the scenario defines come last.
fn numbers(summary: &Summary) -> Vec<(String, Value)> {
    let Ok(Value::Object(entries)) = serde_json::to_value(summary) else { return Vec::new() };
    let plain = entries.into_iter().filter(|(_, value)| value.is_number() || value.is_null());
    let percentiles = summary.slowdown.iter().flat_map(|slowdown| {
        let of = &slowdown.all;
        [("slowdown_p50", of.p50), ("slowdown_p95", of.p95), ("slowdown_p99", of.p99)]
    });
    let percentiles = percentiles.map(|(name, value)| (name.to_owned(), Value::from(value)));
    let own = summary.extra.iter().map(|(name, value)| (name.clone(), Value::from(*value)));
    plain.chain(percentiles).chain(own).collect()
}
