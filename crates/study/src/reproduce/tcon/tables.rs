//! The study's text output.

use super::load::Load;
use super::measured::{Measured, Setting, settings};
use super::paper;
use crate::table::{Table, number, paragraph};

/// The tables, then the findings.
pub fn render(simulated: &[Measured], kernels: &[Measured], loads: &[Load], findings: &[String]) -> String {
    let key = "Completion times in seconds; n: downloads of each variant. gain kept: (CUBIC - TCon) / (CUBIC - BBR), of means.\n\
               Other algorithms and servers: native, the server runs the algorithm itself; tcon, it is enforced on a CUBIC server.\n\
               buffered: packets of the flow in the enforcer's buffer upon each arrival; paper: for large files, mostly.\n";
    let mut parts = Vec::new();
    for (measured, what) in [(kernels, "nginx and curl on real kernels\n"), (simulated, "SIMULATED\n")] {
        let (papers, beyond): (Vec<_>, Vec<_>) = settings(measured).partition(|setting| setting.case().is_papers());
        if !measured.is_empty() {
            parts.extend([what.to_string(), times(&papers).render()]);
            parts.extend(papers.iter().any(|setting| setting.tcon.kept.is_some()).then(|| buffers(&papers).render()));
            parts.extend((!beyond.is_empty()).then(|| others(&beyond).render()));
        }
    }
    parts.push(key.to_string());
    if !loads.is_empty() {
        parts.extend([
            "The live enforcer between two TAPs, BBR over nginx, CPUs kept from sleep states\n".to_string(),
            overhead(loads).render(),
        ]);
    }
    parts.extend(findings.iter().map(|finding| format!("{}\n", paragraph(finding))));
    format!("\n{}", parts.join("\n"))
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_string(), number)
}

fn times(settings: &[Setting]) -> Table {
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
        "tcon/bbr",
        "pairs tcon/cubic",
    ]);
    for setting in settings {
        let case = setting.case();
        let paper = if case.is_printed() { paper::times(case.path.name(), &case.file.name()) } else { None };
        let mut row = vec![case.setting(), setting.cubic.seconds.len().to_string()];
        let all = [setting.cubic, setting.native, setting.tcon];
        for (at, one) in all.into_iter().enumerate() {
            row.extend([cell(one.mean()), cell(paper.map(|times| times[at]))]);
        }
        row.extend(all.map(|one| cell(one.at(0.9))));
        row.extend(all.map(|one| cell(one.at(0.999).filter(|_| one.seconds.len() >= 1000))));
        let theirs = paper.map(|[cubic, bbr, tcon]| (cubic - tcon) / (cubic - bbr));
        row.extend([cell(setting.kept_of_gain()), cell(theirs)]);
        row.extend([cell(setting.over_native()), cell(setting.over_direct())]);
        table.row(row);
    }
    table
}

/// Other algorithms, and servers with other stacks.
fn others(settings: &[Setting]) -> Table {
    let mut table = Table::new(["setting", "n", "cubic", "native", "tcon", "gain kept", "tcon/native"]);
    for setting in settings {
        let means = [setting.cubic, setting.native, setting.tcon].map(|one| cell(one.mean()));
        let mut row = vec![setting.case().setting(), setting.cubic.seconds.len().to_string()];
        row.extend(means);
        row.extend([cell(setting.kept_of_gain()), cell(setting.over_native())]);
        table.row(row);
    }
    table
}

/// CPU use of the live enforcer.
fn overhead(loads: &[Load]) -> Table {
    let mut table = Table::new(["connections", "requests/s", "answered/s", "p99 ms", "CPU %", "paper at most"]);
    for load in loads {
        let Load { connections, asked, answered, p99_ms, cpu } = *load;
        let paper = cell(paper::cpu(connections));
        let row =
            [number(connections as f64), number(f64::from(asked)), number(answered), cell(p99_ms), number(cpu), paper];
        table.row(row.to_vec());
    }
    table
}

fn buffers(settings: &[Setting]) -> Table {
    let mut table = Table::new(["setting", "buffered p50", "paper", "p99", "max", "absorbed"]);
    for Setting { tcon, .. } in settings {
        let [median, p99, max] = tcon.kept.map_or([None; 3], |kept| kept.map(Some));
        let paper = if tcon.case.file.is_large() { paper::buffered(tcon.case.path.name()) } else { None };
        table.row(vec![tcon.case.setting(), cell(median), cell(paper), cell(p99), cell(max), number(tcon.absorbed)]);
    }
    table
}
