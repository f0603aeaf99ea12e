//! The tables as text, and the report.

use super::cases::TRAFFIC;
use super::measured::{GOODPUT_OF, JOB_TIME, MICE_P99, QUANTITIES, Value};
use super::rows::Row;
use crate::table::{Table, number, paragraph};
use results::{Cell, Grid, Multiples, Story, study_report};
use std::fmt::Write as _;

const LEAD: &str = "Five networks of about fifty hosts, all links 1 Gbit/s and 1 us, every queue 100 packets, marking from 20 what negotiated \
                    ECN, minimum RTO 10 ms, no oversubscription. Traffic: on–off flows between random pairs, two a host, 500 Mbit/s while \
                    on; web-search flows, 0.4 Gbit/s a host; a MapReduce of 24 mappers and 24 reducers, 57.6 MB shuffled, one job after the other; incast \
                    of 40 to 1, 64 kB each, one round after the other. Beside all of them mice: 40 flows a second and host of the sizes of memcached.";
const LARGE: &str = " Large networks have 121 to 132 hosts, 60 mappers and reducers, and incast of 100 to 1.";

/// A table for each kind of traffic, and the findings.
pub fn text(rows: &[Row], findings: &[String]) -> String {
    let mut text = String::new();
    for traffic in &TRAFFIC {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.traffic.key == traffic.key).collect();
        // what this traffic has none of is no column
        let shown: Vec<usize> =
            (0..QUANTITIES.len()).filter(|column| rows.iter().any(|row| row.values[*column].is_some())).collect();
        let headings = shown.iter().map(|column| heading(*column));
        let mut table = Table::new(["network", "algorithm"].map(str::to_string).into_iter().chain(headings));
        for row in &rows {
            let cells = shown.iter().map(|column| worded(row.values[*column]));
            table.row([row.place(), row.algorithm.clone()].into_iter().chain(cells).collect());
        }
        write!(text, "\n{}\n{}", traffic.name, table.render()).expect("writing to a string");
    }
    for finding in findings {
        writeln!(text, "\n{}", paragraph(finding)).expect("writing to a string");
    }
    text
}

fn heading(column: usize) -> String {
    let quantity = &QUANTITIES[column];
    match quantity.unit {
        "" | "slowdown" | "packets" => quantity.name.to_string(),
        unit => format!("{} {unit}", quantity.name),
    }
}

fn worded(value: Option<Value>) -> String {
    match value {
        None => "–".to_string(),
        Some((value, false)) => number(value),
        Some((value, true)) => format!("≥{}", number(value)),
    }
}

/// The page.
pub fn report(rows: &[Row], findings: &[String]) -> String {
    let large = if rows.iter().any(|row| row.size > 0) { LARGE } else { "" };
    let story = Story {
        title: "Data-center networks, algorithms and traffic".to_string(),
        lead: format!("{LEAD}{large}"),
        paragraphs: vec![findings.join(" ")],
        ..Story::default()
    };
    study_report(&story, &multiples(rows), &grid(rows), env!("CARGO_PKG_VERSION"))
}

/// For each traffic what it is about, and what it does to mice.
fn multiples(rows: &[Row]) -> Vec<Multiples> {
    let of = |traffic: &str, column: usize| {
        let quantity = &QUANTITIES[column];
        let mut panels: Vec<(String, Vec<(String, f64)>)> = Vec::new();
        for row in rows.iter().filter(|row| row.traffic.key == traffic) {
            let Some(value) = row.number(column) else { continue };
            let bar = (row.algorithm.clone(), value);
            match panels.iter_mut().find(|(place, _)| *place == row.place()) {
                Some((_, bars)) => bars.push(bar),
                None => panels.push((row.place(), vec![bar])),
            }
        }
        let name = TRAFFIC.iter().find(|known| known.key == traffic).map_or(traffic, |known| known.name);
        Multiples {
            title: format!("{name}: {} ({})", quantity.name, quantity.unit),
            text: if quantity.less { "Less is better." } else { "More is better." }.to_string(),
            panels,
        }
    };
    TRAFFIC.iter().flat_map(|traffic| [of(traffic.key, main(rows, traffic.key)), of(traffic.key, MICE_P99)]).collect()
}

/// The quantity that a traffic is about: the time of its jobs, if it has any.
pub fn main(rows: &[Row], traffic: &str) -> usize {
    let has_jobs = rows.iter().any(|row| row.traffic.key == traffic && row.values[JOB_TIME].is_some());
    if has_jobs { JOB_TIME } else { GOODPUT_OF }
}

fn grid(rows: &[Row]) -> Grid {
    let names = ["traffic", "network", "algorithm"].map(|name| (name.to_string(), String::new(), String::new()));
    let quantities = QUANTITIES.iter().map(|q| (q.name.to_string(), q.unit.to_string(), q.meaning.to_string()));
    let cells = |row: &Row| {
        let names = [row.traffic.name.to_string(), row.place(), row.algorithm.clone()].map(Cell::Text);
        let values = row.values.iter().map(|value| match *value {
            None => Cell::Absent,
            Some((value, false)) => Cell::Number(value),
            Some((value, true)) => Cell::AtLeast(value),
        });
        names.into_iter().chain(values).collect()
    };
    let seeds = rows.first().map_or(0, |row| row.seeds);
    Grid {
        title: "All combinations".to_string(),
        text: match seeds {
            1 => "One seed. A heading sorts by its column.".to_string(),
            n => format!("Medians over {n} seeds. A heading sorts by its column."),
        },
        columns: names.into_iter().chain(quantities).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}
