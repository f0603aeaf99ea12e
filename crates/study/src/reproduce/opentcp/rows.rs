//! The rows of `--json` and of the report.

use super::cases::{Case, Cases, PAPER, Variant};
use super::measured::Run;
use super::paper;
use crate::statistics::median;
use results::Comparison;

/// The tail: the 99th percentile. The paper does not say where its tail begins.
pub const TAIL: f64 = 0.99;

/// Reduction of `of` in a case against the same network without a policy, percent; the median over seeds.
pub fn reduction(cases: &Cases, case: &Case, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let default = cases.default_of(case)?;
    let reductions = case.runs.iter().zip(&default.runs);
    let reductions: Vec<f64> =
        reductions.map(|(ours, default)| Some((1.0 - of(ours)? / of(default)?) * 100.0)).collect::<Option<_>>()?;
    median(&reductions)
}

/// Reduction of the tail of a case's treated hosts against the default's, percent.
pub fn tail_reduction(cases: &Cases, case: &Case) -> Option<f64> {
    reduction(cases, case, |run| run.treated.fct_at(TAIL))
}

/// The same against the control group of the same run.
pub fn against_control(case: &Case) -> Option<f64> {
    case.median(|run| Some((1.0 - run.treated.fct_at(TAIL)? / run.control.fct_at(TAIL)?) * 100.0))
}

/// The paper's value of a case, if it is one of its own.
fn papers(case: &Case, value: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    if case.setting == PAPER { value(case.variant.name()) } else { None }
}

/// All rows, in the order of the paper.
pub fn comparisons(cases: &Cases) -> Vec<Comparison> {
    let mut rows = Rows::default();
    completion(cases, &mut rows);
    for case in &cases.0 {
        drops(case, &mut rows);
    }
    windows_and_jobs(cases, &mut rows);
    rows.0
}

fn completion(cases: &Cases, rows: &mut Rows) {
    let treated = || cases.0.iter().filter(|case| case.variant != Variant::Default);
    for case in treated() {
        let note = "99th percentile of message completion times, treated hosts against a network without a policy";
        let paper = papers(case, paper::tail_reduction);
        rows.add(("Figure 4", case, "FCT tail reduction", "%"), paper, tail_reduction(cases, case), note);
    }
    for case in treated() {
        let beside = "against the control group of the same run";
        rows.add(
            ("Figure 4", case, "FCT tail reduction, against control group", "%"),
            None,
            against_control(case),
            beside,
        );
        let further = reduction(cases, case, |run| run.treated.fct_at(0.999));
        rows.add(("Figure 4", case, "FCT tail reduction, 99.9th percentile", "%"), None, further, "as the first rows");
        let exchange = reduction(cases, case, |run| run.treated.exchange_at(TAIL));
        let note = "the benchmark exchange; the paper: consistent with all-to-all";
        rows.add(("Figure 4", case, "FCT tail reduction, exchange", "%"), None, exchange, note);
    }
    for (share, words) in [(0.5, "p50"), (TAIL, "p99")] {
        for case in &cases.0 {
            let ours = case.median(|run| run.treated.files_at(share));
            rows.add(
                ("Figure 4", case, &format!("FCT of the file system, {words}"), "ms"),
                None,
                ours,
                "20 B to 62 GB",
            );
        }
    }
    let two = cases.of(PAPER, Variant::OpenTcp2);
    if let (Some(one), Some(two)) = (cases.of(PAPER, Variant::OpenTcp1), two) {
        let tail = |case: &Case| case.median(|run| run.treated.fct_at(TAIL));
        let longer = tail(two).zip(tail(one)).map(|(two, one)| (two / one - 1.0) * 100.0);
        rows.add(("Figure 4", two, "tail over opentcp1's", "%"), Some(8.0), longer, "longer");
    }
}

fn drops(case: &Case, rows: &mut Rows) {
    let note = "retransmitted segments, by connection of the benchmark; the paper does not state its unit";
    let percent = |of: fn(&Run) -> Option<f64>| case.median(of).map(|share| share * 100.0);
    let none = papers(case, paper::without_drops).map(|share| share * 100.0);
    rows.add(("Figure 5", case, "flows without drops", "%"), none, percent(|run| run.treated.without_drops()), note);
    for (share, words) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
        let ours = case.median(|run| run.treated.drops_at(share));
        let paper = papers(case, |name| paper::drops_at(name, share));
        rows.add(("Figure 5", case, &format!("drops per flow, {words}"), "packets"), paper, ours, note);
    }
    let messages = percent(|run| run.treated.messages_without_drops());
    let note = "retransmitted segments since the previous message on the connection arrived";
    rows.add(("Figure 5", case, "messages without drops", "%"), None, messages, note);
    let lost = percent(|run| run.treated.truly_lost());
    rows.add(("Figure 5", case, "retransmissions of lost segments", "%"), None, lost, "the others were spurious");
    let note = "share of the time in which treated hosts followed the rule";
    rows.add(("Figure 5", case, "time treated", "%"), None, percent(|run| run.in_force), note);
}

/// The text's statements on windows and jobs, and Figure 1.
fn windows_and_jobs(cases: &Cases, rows: &mut Rows) {
    for case in &cases.0 {
        let small = case.median(|run| run.treated.small_windows());
        let note = "by packets in flight over the round trip, in samples of every sender";
        let (quantity, paper, ours) = match case.variant {
            Variant::Default => ("packets sent at cwnd 3-5", 70.0, small.map(|share| share * 100.0)),
            _ => ("packets sent at cwnd above 5", 50.0, small.map(|share| (1.0 - share) * 100.0)),
        };
        rows.add(("windows", case, quantity, "%"), papers(case, |_| Some(paper)), ours, note);
    }
    for case in &cases.0 {
        let note = "mean over jobs of each job's mean";
        rows.add(("jobs", case, "round of a job, mean", "ms"), None, case.median(Run::round_ms), note);
        let note =
            "Pearson's r over jobs, between the mean round and the 99th percentile of the messages; the paper: strong";
        rows.add(("jobs", case, "correlation of job and FCT tail", ""), None, case.median(Run::correlation), note);
        let low = case.median(|run| Some(run.low_utilization * 100.0));
        let paper = papers(case, |_| Some(80.0));
        rows.add(
            ("Figure 1", case, "share of time under 50 % utilization", "%"),
            paper,
            low,
            "of all links, by period T",
        );
    }
}

/// Rows under construction.
#[derive(Default)]
struct Rows(Vec<Comparison>);

impl Rows {
    /// Adds a row, by figure, case, quantity and unit, if we have a number.
    fn add(
        &mut self,
        (figure, case, quantity, unit): (&str, &Case, &str, &str),
        paper: Option<f64>,
        ours: Option<f64>,
        note: &str,
    ) {
        self.0.extend(ours.map(|ours| Comparison {
            figure: figure.to_string(),
            case: case.name(),
            quantity: quantity.to_string(),
            unit: unit.to_string(),
            paper,
            ours,
            note: note.to_string(),
        }));
    }
}
