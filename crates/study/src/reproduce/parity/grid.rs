//! Twenty bottlenecks, three algorithms: the simulator beside the kernel's own reno, cubic and bbr.
//!
//! 5 to 100 Mbit/s, 5 to 60 ms, queues of 0.5 to 4 bandwidth-delay products, one flow and four. The first two seconds do not
//! count: slow start overflows any queue once.

use super::case::{Case, Host};
use super::compare::{Outcome, error_percent};
use super::record::Record;
use super::{Folder, emulate, outcomes, runs, simulate};
use crate::failure::Failure;
use crate::monitor::Monitor;
use crate::reproduce::{Reproduced, Request};
use crate::table::{Table, number, paragraph};
use results::Comparison;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Instant;

/// One bottleneck: Mbit/s, ms, queue in tenths of the bandwidth-delay product, flows.
type Bottleneck = (u64, u64, u64, u64);

/// Where newreno's sawtooth takes seconds, not minutes: no large queue where the round trip holds much.
const BOTTLENECKS: [Bottleneck; 20] = [
    (5, 20, 40, 1),
    (5, 60, 10, 1),
    (5, 60, 20, 4),
    (10, 20, 20, 1),
    (10, 40, 10, 4),
    (10, 60, 5, 1),
    (20, 10, 40, 1),
    (20, 20, 10, 1),
    (20, 20, 30, 4),
    (20, 40, 15, 1),
    (20, 60, 5, 4),
    (50, 10, 10, 4),
    (50, 20, 5, 1),
    (50, 20, 20, 4),
    (100, 5, 10, 1),
    (100, 5, 40, 4),
    (100, 10, 12, 1),
    (100, 10, 20, 4),
    (100, 20, 5, 1),
    (100, 60, 5, 4),
];
const ALGORITHMS: [&str; 3] = ["newreno", "cubic", "bbr"];
/// Seeds of the simulator's runs, at least. They take seconds, and drops of several flows differ by a factor of three between them.
const SIMULATED_SEEDS: u32 = 9;
/// bbr looks for the propagation time once in ten seconds.
const SECONDS: u64 = 12;
/// Of the bottlenecks, how many must agree.
const GOAL: usize = 18;
/// A number that is compared.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    of: fn(&Record) -> f64,
    /// How far it may be apart, percent,
    percent: f64,
    /// or by itself.
    absolute: f64,
}

/// Queues that differ by less than a packet differ in what is just being sent.
const QUANTITIES: [Quantity; 4] = [
    Quantity { name: "goodput", unit: "Mbit/s", of: |r| r.measured.goodput_mbps, percent: 1.0, absolute: 0.0 },
    Quantity { name: "mean queue", unit: "packets", of: |r| r.settled.queue_mean, percent: 10.0, absolute: 1.0 },
    Quantity { name: "drops", unit: "packets", of: |r| r.settled.drops, percent: 25.0, absolute: 3.0 },
    Quantity { name: "mean cwnd", unit: "segments", of: |r| r.settled.cwnd_mean, percent: 10.0, absolute: 0.0 },
];

/// A bottleneck under an algorithm: a row of `comparisons.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    algorithm: &'static str,
    environment: String,
    /// In the order of [`QUANTITIES`].
    compared: Vec<Pair>,
    /// Repetitions that the numbers are medians of.
    runs: usize,
    /// The machine was too slow in one of the kernel's runs.
    distorted: bool,
}

/// A quantity on both hosts.
#[derive(Clone, Debug, Serialize)]
struct Pair {
    quantity: &'static str,
    simulator: f64,
    kernel: f64,
    error_percent: Option<f64>,
    within: bool,
}

/// Runs the grid.
///
/// # Errors
/// The kernel lacks an algorithm, a run fails, or the user stops it; what has been run is kept.
pub fn reproduce(request: &Request, monitor: Monitor<'_>) -> Result<Reproduced, Failure> {
    let cases = cases();
    let mut all = runs(request, &cases, &[Host::Own], request.seeds)?;
    if all.len() < cases.len() * request.seeds as usize {
        return Err(Failure::Input(
            "the grid compares with the kernel’s own reno, cubic and bbr; load what is missing: modprobe tcp_bbr"
                .into(),
        ));
    }
    // so that a part of it is the whole grid once
    all.sort_by_key(|run| run.job.scenario.seed);
    all.extend(runs(request, &cases, &[Host::Simulator], request.seeds.max(SIMULATED_SEEDS))?);
    let folder = Folder::open(&request.out)?;
    let began = Instant::now();
    let mut records = folder.find_all(&all, monitor);
    emulate(&all, &request.sets, &folder, monitor, &mut records)?;
    simulate(&all, request.workers, &folder, monitor, &mut records)?;
    let outcomes = outcomes(&cases, &all, records);
    let rows: Vec<Row> = outcomes.iter().filter_map(row).collect();
    let findings: Vec<String> = ALGORITHMS.iter().map(|algorithm| finding(algorithm, &rows)).collect();
    folder.publish(&outcomes, &rows, &findings)?;
    let wall_s = began.elapsed().as_secs_f64();
    Ok(Reproduced { tables: render(&rows, &findings), findings, comparisons: comparisons(&rows), wall_s })
}

/// Bottleneck by bottleneck, in each the algorithms.
fn cases() -> Vec<Case> {
    let of = |&(rate_mbps, rtt_ms, tenths, flows): &Bottleneck| {
        ALGORITHMS.map(|algorithm| {
            let rtt_us = rtt_ms * 1000;
            let case = Case { algorithm, rate_mbps, rtt_us, flows, ecn: false, queue: None, seconds: SECONDS };
            Case { queue: Some(case.bdp_packets() * tenths / 10), ..case }
        })
    };
    BOTTLENECKS.iter().flat_map(of).collect()
}

fn row(outcome: &Outcome) -> Option<Row> {
    let pair = |quantity: &Quantity| {
        let simulator = outcome.median(Host::Simulator, quantity.of)?;
        let kernel = outcome.median(Host::Own, quantity.of)?;
        let error_percent = error_percent(simulator, kernel);
        let near = (simulator - kernel).abs() <= quantity.absolute;
        let within = near || error_percent.is_some_and(|error| error.abs() <= quantity.percent);
        Some(Pair { quantity: quantity.name, simulator, kernel, error_percent, within })
    };
    let of_kernel = outcome.of(Host::Own);
    Some(Row {
        algorithm: outcome.case.algorithm,
        environment: outcome.case.environment(),
        compared: QUANTITIES.iter().map(pair).collect::<Option<_>>()?,
        runs: of_kernel.len(),
        distorted: of_kernel.iter().any(|record| record.check.as_ref().is_some_and(|check| !check.valid)),
    })
}

/// In how many bottlenecks an algorithm's numbers agree.
fn finding(algorithm: &str, rows: &[Row]) -> String {
    let of: Vec<&Row> = rows.iter().filter(|row| row.algorithm == algorithm).collect();
    let each = QUANTITIES.iter().enumerate().map(|(i, quantity)| {
        let within = of.iter().filter(|row| row.compared[i].within).count();
        format!("{} in {within}", quantity.name)
    });
    let all = of.iter().filter(|row| row.compared.iter().all(|pair| pair.within)).count();
    format!(
        "{algorithm}: of {} bottlenecks simulator and kernel agree on {}; on all four in {all} (goal: {GOAL}).",
        of.len(),
        each.collect::<Vec<_>>().join(", ")
    )
}

/// For people: a table for each algorithm, simulator / kernel.
fn render(rows: &[Row], findings: &[String]) -> String {
    let mut text = String::new();
    for algorithm in ALGORITHMS {
        let headings = ["bottleneck", "goodput", "%", "mean queue", "%", "drops", "%", "mean cwnd", "%", ""];
        let mut table = Table::new(headings);
        for row in rows.iter().filter(|row| row.algorithm == algorithm) {
            let mut cells = vec![row.environment.clone()];
            for pair in &row.compared {
                cells.push(format!("{} / {}", number(pair.simulator), number(pair.kernel)));
                let sign = if pair.within { "" } else { "!" };
                cells.push(pair.error_percent.map_or("–".to_string(), |error| format!("{error:.1}{sign}")));
            }
            cells.push(if row.distorted { "~" } else { "" }.to_string());
            table.row(cells);
        }
        let _ = writeln!(text, "{algorithm}, simulator / kernel’s own\n{}", table.render());
    }
    text.push_str(
        "Drops, queue and window without the first two seconds. !: further apart than goodput 1 %, queue 10 % or a packet,\n",
    );
    text.push_str("drops 25 % or 3, window 10 %. ~: the machine was too slow.\n");
    for finding in findings {
        let _ = writeln!(text, "\n{}", paragraph(finding));
    }
    text
}

/// The rows as `reproduce --json` has them: what stands for the paper's number is the kernel's.
fn comparisons(rows: &[Row]) -> Vec<Comparison> {
    let of = |row: &Row| {
        let case = format!("{}/{}", row.environment, row.algorithm);
        let pairs = row.compared.iter().zip(&QUANTITIES).map(move |(pair, quantity)| Comparison {
            figure: "simulator against kernel, grid".to_string(),
            case: case.clone(),
            quantity: pair.quantity.to_string(),
            unit: quantity.unit.to_string(),
            paper: Some(pair.kernel),
            ours: pair.simulator,
            note: "“paper” is the kernel’s own algorithm".to_string(),
        });
        pairs.collect::<Vec<_>>()
    };
    rows.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_spans_what_it_promises_and_each_run_has_a_name_of_its_own() {
        let cases = cases();
        assert_eq!(cases.len(), 60);
        let mut names: Vec<String> = cases.iter().map(|case| case.run_name(Host::Own, 1)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 60);
        let span = |of: fn(&Bottleneck) -> u64| {
            let values = || BOTTLENECKS.iter().map(of);
            (values().min(), values().max())
        };
        assert_eq!((span(|b| b.0), span(|b| b.1)), ((Some(5), Some(100)), (Some(5), Some(60))));
        assert_eq!((span(|b| b.2), span(|b| b.3)), ((Some(5), Some(40)), (Some(1), Some(4))));
        // 20 Mbit/s for 20 ms are 400,000 bits, 32.5 packets of 12,304 bits, of which the 33rd is begun; three times that
        assert_eq!(cases[8 * ALGORITHMS.len()].queue, Some(99));
    }

    #[test]
    fn numbers_agree_by_their_share_or_if_they_are_small() {
        let record = |queue_mean, drops| {
            let mut record = Record::example("run", "bbr");
            (record.settled.queue_mean, record.settled.drops) = (queue_mean, drops);
            record
        };
        let compared = |ours: Record, theirs: Record| {
            let records = [vec![ours], Vec::new(), vec![theirs]];
            row(&Outcome { case: cases().remove(0), records }).expect("both have a record").compared
        };
        let within = |pairs: Vec<Pair>| pairs.iter().map(|pair| pair.within).collect::<Vec<_>>();
        assert_eq!(within(compared(record(50.0, 20.0), record(50.0, 20.0))), [true; 4]);
        // 11 % of the queue, 30 % of the drops
        assert_eq!(within(compared(record(55.5, 26.0), record(50.0, 20.0))), [true, false, false, true]);
        // a packet, three packets, and none against two
        assert_eq!(within(compared(record(2.0, 9.0), record(1.0, 6.0))), [true; 4]);
        assert_eq!(within(compared(record(2.0, 2.0), record(1.5, 0.0))), [true; 4]);
    }

    #[test]
    fn the_table_marks_what_is_further_apart_and_the_findings_count_it() {
        let pair =
            |within| Pair { quantity: "drops", simulator: 30.0, kernel: 20.0, error_percent: Some(50.0), within };
        let compared = [true, true, false, true].map(pair).to_vec();
        let row = Row { algorithm: "bbr", environment: "here".to_string(), compared, runs: 3, distorted: false };
        let finding = finding("bbr", std::slice::from_ref(&row));
        assert!(finding.contains("drops in 0, mean cwnd in 1; on all four in 0 (goal: 18)"), "{finding}");
        let text = render(&[row], &[finding]);
        assert_eq!(text.matches("50.0!").count(), 1, "{text}");
    }
}
