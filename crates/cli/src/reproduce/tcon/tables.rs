//! The study on a terminal.

use super::measured::{Measured, Setting, settings};
use super::paper;
use crate::table::{Table, number, wrapped};

/// Columns of a terminal that sentences may fill.
const WIDTH: usize = 100;

/// The tables, then the findings.
pub fn render(simulated: &[Measured], kernels: &[Measured], findings: &[String]) -> String {
    let key = "Completion times in seconds; n: downloads of each variant. gain kept: (CUBIC - TCon) / (CUBIC - BBR), of means.\n\
               kept: packets of the flow in the enforcer's buffer when one more had come; paper: what it calls most.\n";
    let mut parts = Vec::new();
    if !kernels.is_empty() {
        parts.extend(["nginx and curl on real kernels\n".to_string(), times(kernels).render()]);
    }
    if !simulated.is_empty() {
        parts.extend(["SIMULATED\n".to_string(), times(simulated).render(), buffers(simulated).render()]);
    }
    parts.push(key.to_string());
    parts.extend(findings.iter().map(|finding| format!("{}\n", wrapped(finding, WIDTH))));
    format!("\n{}", parts.join("\n"))
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), number)
}

fn times(measured: &[Measured]) -> Table {
    let mut table = Table::new([
        "setting",
        "n",
        "cubic",
        "paper",
        "bbr",
        "paper",
        "tcon",
        "paper",
        "p90 cubic",
        "bbr",
        "tcon",
        "p99.9 cubic",
        "bbr",
        "tcon",
        "gain kept",
        "paper",
    ]);
    for setting in settings(measured) {
        let case = setting.case();
        let is_swept = case.loss != case.path.loss();
        let paper = if is_swept { None } else { paper::times(case.path.name(), &case.file.name()) };
        let mut row = vec![case.setting(), setting.cubic.seconds.len().to_string()];
        let all = [setting.cubic, setting.bbr, setting.tcon];
        for (at, one) in all.into_iter().enumerate() {
            row.extend([cell(one.mean()), cell(paper.map(|times| times[at]))]);
        }
        row.extend(all.map(|one| cell(one.at(0.9))));
        row.extend(all.map(|one| cell(one.at(0.999).filter(|_| one.seconds.len() >= 1000))));
        let theirs = paper.map(|[cubic, bbr, tcon]| (cubic - tcon) / (cubic - bbr));
        row.extend([cell(setting.kept_of_gain()), cell(theirs)]);
        table.row(row);
    }
    table
}

fn buffers(measured: &[Measured]) -> Table {
    let mut table = Table::new(["setting", "kept p50", "paper", "p99", "max", "absorbed"]);
    for Setting { tcon, .. } in settings(measured) {
        let [median, p99, max] = tcon.kept.map_or([None; 3], |kept| kept.map(Some));
        let paper = paper::buffered(tcon.case.path.name());
        table.row(vec![tcon.case.setting(), cell(median), cell(paper), cell(p99), cell(max), number(tcon.absorbed)]);
    }
    table
}
