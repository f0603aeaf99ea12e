//! The study's text output.

use super::cases::{Case, Cases, PAPER, Variant};
use super::measured::Run;
use super::paper;
use super::rows::{against_control, reduction, tail_reduction};
use crate::table::{Table, number, paragraph};

/// The tables, then the findings.
pub fn render(cases: &Cases, findings: &[String]) -> String {
    let key = "SIMULATED, except kernel. FCT: completion times of messages of treated hosts (default: of all hosts). reduction: of their 99th percentile,\n\
               against the default, and against the control group. rounds: mean time of a job's round; r: its correlation\n\
               with the 99th percentile of the job's messages. drops: retransmitted segments, by connection and by message. treated: share of the time.\n\
               cwnd <= 5: share of packets.\n";
    let mut parts = vec![completion(cases).render(), drops(cases).render(), key.to_string()];
    parts.extend(findings.iter().map(|finding| format!("{}\n", paragraph(finding))));
    format!("\n{}", parts.join("\n"))
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), number)
}

fn completion(cases: &Cases) -> Table {
    let mut table = Table::new([
        "variant",
        "FCT p50 ms",
        "p90",
        "p99",
        "p99.9",
        "max",
        "reduction %",
        "paper",
        "vs control %",
        "exchange %",
        "rounds ms",
        "r",
    ]);
    for case in &cases.0 {
        let fct = |share: f64| cell(case.median(|run| run.treated.fct_at(share)));
        let treated = Some(case).filter(|case| case.variant != Variant::Default);
        let papers = treated.filter(|case| case.setting == PAPER);
        table.row(vec![
            case.name(),
            fct(0.5),
            fct(0.9),
            fct(0.99),
            fct(0.999),
            fct(1.0),
            cell(treated.and_then(|case| tail_reduction(cases, case))),
            cell(papers.and_then(|case| paper::tail_reduction(case.variant.name()))),
            cell(against_control(case)),
            cell(treated.and_then(|case| reduction(cases, case, |run| run.treated.exchange_at(0.99)))),
            cell(case.median(Run::round_ms)),
            cell(case.median(Run::correlation)),
        ]);
    }
    table
}

fn drops(cases: &Cases) -> Table {
    let mut table = Table::new([
        "variant",
        "no drops %",
        "paper",
        "messages",
        "drops p50",
        "paper",
        "p90",
        "paper",
        "p99",
        "paper",
        "retransmitted %",
        "of these lost %",
        "treated %",
        "cwnd <= 5 %",
        "CUEs sent in",
        "reverts",
    ]);
    for case in &cases.0 {
        let papers = |value: &dyn Fn(&str) -> Option<f64>| {
            cell(Some(case.variant.name()).filter(|_| case.setting == PAPER).and_then(value))
        };
        let percent = |of: fn(&Run) -> Option<f64>| cell(case.median(of).map(|share| share * 100.0));
        let mut row = vec![
            case.name(),
            percent(|run| run.treated.without_drops()),
            papers(&|name| paper::without_drops(name).map(|share| share * 100.0)),
            percent(|run| run.treated.messages_without_drops()),
        ];
        for share in [0.5, 0.9, 0.99] {
            row.push(cell(case.median(|run| run.treated.drops_at(share))));
            row.push(papers(&|name| paper::drops_at(name, share)));
        }
        row.push(percent(|run| run.treated.drop_rate()));
        row.push(percent(|run| run.treated.truly_lost()));
        row.push(percent(|run| run.in_force));
        row.push(percent(|run| run.treated.small_windows()));
        row.push(decisions(case));
        row.push(cell(case.median(|run| Some(run.reverted as f64))));
        table.row(row);
    }
    table
}

/// `9 of 12`, of the first seed.
fn decisions(case: &Case) -> String {
    let [sent, all] = case.runs[0].decisions;
    if all == 0 { "–".to_string() } else { format!("{sent} of {all}") }
}
