//! The demonstration's tables, findings and figures.

use super::compare::{Compared, Estimate, Turn};
use crate::slower;
use crate::table::{Table, paragraph};
use results::{Curve, Figure, Panel, Story};
use std::fmt::Write as _;

/// Text with tables.
pub fn text(runs: &[Compared], findings: &[String], simulated: bool) -> String {
    let mut text = String::new();
    if simulated {
        text.push_str("SIMULATED\n\n");
    }
    text.push_str(&groups(runs));
    let _ =
        write!(text, "\nThe same reduction, simulated with other draws of jobs and treated hosts:\n{}", draws(runs));
    if let Some(run) = shown(runs) {
        let _ = write!(text, "\nThe Oracle's decisions, {}/{}:\n{}", run.baseline, run.policy, timeline(&run.turns));
    }
    for finding in findings {
        let _ = write!(text, "\n{}\n", paragraph(finding));
    }
    text
}

/// The run whose timeline is shown: the paper's hosts with guards.
fn shown(runs: &[Compared]) -> Option<&Compared> {
    runs.iter().find(|run| run.baseline == "paper" && run.policy == "opentcp2")
}

fn groups(runs: &[Compared]) -> String {
    let headings = [
        "baseline",
        "group",
        "flows",
        "FCT p50 ms",
        "",
        "FCT p99 ms",
        "",
        "retransmitted %",
        "",
        "p99 shorter by %",
        "",
    ];
    let mut table = Table::new(headings);
    for run in runs {
        for group in [&run.control, &run.treated] {
            let judged = group.name != run.control.name && run.distorted.is_none();
            let reduction = judged.then_some(run.p99_reduction);
            let mut cells = vec![run.baseline.clone(), group.name.clone(), group.flows.to_string()];
            for (estimate, digits) in [(group.p50_ms, 1), (group.p99_ms, 1), (group.retransmitted, 2)] {
                cells.extend([format!("{:.digits$}", estimate.value), interval(estimate, digits)]);
            }
            let none = if group.name == run.control.name { "–" } else { "not valid" };
            cells.push(reduction.map_or(none.to_string(), |reduction| format!("{:.0}", reduction.value)));
            cells.push(reduction.map_or(String::new(), |reduction| interval(reduction, 0)));
            table.row(cells);
        }
    }
    table.render()
}

/// The reductions over the simulated draws, ascending: lowest, median, highest, and how many are above zero.
fn draws(runs: &[Compared]) -> String {
    let mut table =
        Table::new(["baseline", "policy", "draws", "p99 shorter by %: median", "lowest", "highest", "shorter in"]);
    for run in runs.iter().filter(|run| !run.draws.is_empty()) {
        let (all, shorter) = (&run.draws, run.draws.iter().filter(|reduction| **reduction > 0.0).count());
        let mut cells = vec![run.baseline.clone(), run.policy.clone(), all.len().to_string()];
        cells.extend([all[all.len() / 2], all[0], all[all.len() - 1]].map(|reduction| format!("{reduction:.0}")));
        cells.push(format!("{shorter} of {}", all.len()));
        table.row(cells);
    }
    table.render()
}

fn interval(estimate: Estimate, digits: usize) -> String {
    format!("[{:.digits$}, {:.digits$}]", estimate.low, estimate.high)
}

fn timeline(turns: &[Turn]) -> String {
    let mut table = Table::new(["s", "CUEs", "why", "reverted by guards", "released", "expired"]);
    for turn in turns {
        let cues = if turn.hosts > 0 { format!("sent to {} hosts", turn.hosts) } else { "withheld".to_string() };
        let counts = [turn.reverted, turn.recovered, turn.expired].map(|count| count.to_string());
        let mut cells = vec![format!("{:.0}", turn.at_s), cues, turn.reason.clone()];
        cells.extend(counts);
        table.row(cells);
    }
    table.render()
}

/// The findings, computed from the numbers.
pub fn findings(runs: &[Compared], absent: Option<&str>) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(reason) = absent {
        list.push(format!(
            "SIMULATED: these numbers are not from real kernels ({reason}). `sudo opentcp demo` on Linux with BPF measures those."
        ));
    }
    // why there is no verdict stands before the verdicts
    let distorted = |run: &Compared| Some((format!("{}/{}", run.baseline, run.policy), run.distorted.clone()?));
    list.extend(slower::distorted(runs.iter().filter_map(distorted)));
    for run in runs.iter().filter(|run| run.distorted.is_none()) {
        let (Compared { baseline, policy, .. }, reduction) = (run, run.p99_reduction);
        let sure = if reduction.low > 0.0 {
            "below"
        } else if reduction.high < 0.0 {
            "above"
        } else {
            "not distinguishable from"
        };
        list.push(format!(
            "{baseline}: with {policy} the 99th percentile of completion times is {:.1} ms, {sure} the {:.1} ms of the control \
             group at 95 % confidence: {:.0} % shorter ({:.0} to {:.0} %).",
            run.treated.p99_ms.value, run.control.p99_ms.value, reduction.value, reduction.low, reduction.high
        ));
    }
    let drawn = runs.iter().filter(|run| !run.draws.is_empty()).map(|run| {
        let (draws, shorter) = (&run.draws, run.draws.iter().filter(|reduction| **reduction > 0.0).count());
        let (lowest, median, highest) = (draws[0], draws[draws.len() / 2], draws[draws.len() - 1]);
        let (baseline, policy, all) = (&run.baseline, &run.policy, draws.len());
        format!("{baseline}/{policy} {median:.0} % ({lowest:.0} to {highest:.0} %; shorter in {shorter} of {all})")
    });
    list.push(format!(
        "One run is one draw of which hosts share a job and which are treated. Over simulated draws the 99th percentile is shorter by, in \
         the median: {}.",
        drawn.collect::<Vec<_>>().join(", ")
    ));
    for run in runs {
        let count = |of: fn(&Turn) -> usize| run.turns.iter().map(of).sum::<usize>();
        let sent = run.turns.iter().filter(|turn| turn.hosts > 0).count();
        let unsent = run.turns.iter().filter(|turn| turn.hosts == 0).map(|turn| format!("{:.0} s", turn.at_s));
        list.push(format!(
            "{}/{}: CUEs set {}. They were sent in {sent} of {} periods and withheld at {}; guards reverted {} times and were released \
             {} times. Mean link utilization was {:.0} %.",
            run.baseline,
            run.policy,
            run.set,
            run.turns.len(),
            unsent.collect::<Vec<_>>().join(", "),
            count(|turn| turn.reverted),
            count(|turn| turn.recovered),
            run.mean_utilization * 100.0
        ));
    }
    list
}

/// The report's text and figures.
pub fn story(runs: &[Compared], findings: &[String], simulated: bool) -> Story {
    let title = "The policy loop: bursts on a leaf–spine";
    Story {
        title: if simulated { format!("SIMULATED: {title}") } else { title.to_string() },
        lead: "Sixteen hosts in six jobs exchange 64 kB from each to each, with pauses and two congestion episodes. Half of them follow \
               the CUEs of opentcp1 or opentcp2 (initial window 20, minimum RTO 2 ms or the kernel's nearest above, while every link \
               is under 70 %; opentcp2’s hosts revert when they retransmit over 0.1 %), half do not and are the control group \
               (control). Baselines: paper (BIC, initial window 3) and today (CUBIC, 10), both with a minimum RTO of 200 ms. Intervals are of 95 %, by \
               resampling blocks of half a second."
            .to_string(),
        figures: vec![distributions(runs), timelines(runs)],
        paragraphs: findings.to_vec(),
        comparisons: Vec::new(),
    }
}

/// The heading of a run's charts, with a mark if it is not valid.
fn heading(run: &Compared) -> String {
    let mark = if run.distorted.is_some() { "NOT VALID: " } else { "" };
    format!("{mark}{}, {}", run.baseline, run.policy)
}

fn distributions(runs: &[Compared]) -> Figure {
    let panels = |run: &Compared| {
        let groups = [&run.control, &run.treated].map(|group| (group.name.as_str(), group.fct_ms.as_slice()));
        Panel::distributions(&heading(run), "completion time (ms)", "messages", &groups)
    };
    Figure {
        title: "Completion times".to_string(),
        text: "Share of the messages that completed within this time, from treated hosts and from the control group; the second chart of each shows the tail."
            .to_string(),
        panels: runs.iter().flat_map(panels).collect(),
    }
}

fn timelines(runs: &[Compared]) -> Figure {
    let mut panels = Vec::new();
    for run in runs {
        let curve = |name: &str, points: &[(f64, f64)]| Curve {
            name: name.to_string(),
            points: points.to_vec(),
            ..Curve::default()
        };
        let all = [
            ("busiest link (%)", curve("busiest link", &run.busiest)),
            ("hosts that follow the rule", curve("hosts", &run.following)),
        ];
        panels.extend(all.map(|(y, curve)| Panel {
            title: heading(run),
            x: "time (s)".to_string(),
            y: y.to_string(),
            curves: vec![curve],
            ..Panel::default()
        }));
    }
    Figure {
        title: "Timeline".to_string(),
        text: "When the busiest link is over 70 % for a period, no CUEs are sent, and hosts return to their defaults. With opentcp2, \
               hosts that see drops revert by themselves for a period."
            .to_string(),
        panels,
    }
}
