//! Tables of runs, as text.

use crate::done::Kept;
use crate::table::{Table, number, optional};
use results::{Slowdown, SlowdownOf, Summary};

/// A column: its heading and its value for a run; left out if no run has one.
type Column = (&'static str, fn(&Summary) -> Option<f64>);

const COLUMNS: [Column; 8] = [
    ("goodput Mbit/s", |s| s.goodput_bps.map(|bps| bps / 1e6)),
    ("delay ms", |s| s.mean_packet_delay_ns.map(|ns| ns / 1e6)),
    ("FCT median ms", |s| s.median_fct_ns.map(|ns| ns as f64 / 1e6)),
    ("FCT p99 ms", |s| s.p99_fct_ns.map(|ns| ns as f64 / 1e6)),
    ("drops", |s| Some((s.drops_at_switches + s.drops_at_hosts + s.drops_by_failure) as f64)),
    ("marks", |s| (s.marks > 0).then_some(s.marks as f64)),
    ("retransmits", |s| Some(s.retransmits as f64)),
    ("RTOs", |s| Some(s.rtos as f64)),
];

/// A line for each run: how much arrived, how long it took, what was lost.
fn overview(runs: &[Kept]) -> String {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value)| runs.iter().any(|run| value(&run.summary).is_some())).collect();
    let mut table = Table::new(["run", "flows", "finished"].into_iter().chain(columns.iter().map(|(name, _)| *name)));
    for run in runs {
        let counts = [run.summary.flows, run.summary.flows_completed].map(|count| number(count as f64));
        let values = columns.iter().map(|(_, value)| optional(value(&run.summary)));
        table.row(std::iter::once(run.name.clone()).chain(counts).chain(values).collect());
    }
    table.render()
}

/// Jobs, coflows and rounds that ended, and how long they took; none if no run has any.
fn jobs(runs: &[Kept]) -> Option<String> {
    const TIMES: [&str; 4] = ["mean", "median", "p99", "max"];
    let headings = ["run", "traffic", "what", "ended"].map(str::to_string);
    let mut table = Table::new(headings.into_iter().chain(TIMES.map(|name| format!("{name} ms"))));
    for run in runs {
        let extra = &run.summary.extra;
        for (key, ended) in extra {
            let Some((traffic, what)) = key.strip_suffix("s_completed").and_then(|key| key.rsplit_once('.')) else {
                continue;
            };
            let times = TIMES.map(|name| optional(extra.get(&format!("{traffic}.{what}_ms_{name}")).copied()));
            let names = [run.name.clone(), traffic.to_string(), format!("{what}s"), number(*ended)];
            table.row(names.into_iter().chain(times).collect());
        }
    }
    (!table.is_empty()).then(|| table.render())
}

/// The tables of runs: all, then jobs and slowdown where there are some.
pub fn tables(runs: &[Kept]) -> String {
    let jobs = jobs(runs).map(|table| format!("\nJobs and rounds\n{table}"));
    let slowdowns = slowdowns(runs).map(|table| format!("\nFCT slowdown by flow size\n{table}"));
    [Some(overview(runs)), jobs, slowdowns].into_iter().flatten().collect()
}

/// Sized flows from which on percentiles of their slowdown say something.
const SLOWDOWN_FLOWS: u64 = 100;

/// Median and 99th percentile of the slowdown by size class, with `≥` where unfinished flows make it a lower bound; none if no
/// run has enough flows.
fn slowdowns(runs: &[Kept]) -> Option<String> {
    let measured: Vec<(&str, &Slowdown)> = runs
        .iter()
        .filter_map(|run| Some((run.name.as_str(), run.summary.slowdown.as_ref()?)))
        .filter(|(_, slowdown)| slowdown.all.flows > SLOWDOWN_FLOWS)
        .collect();
    let mut classes: Vec<(u64, &str)> = Vec::new();
    for class in measured.iter().flat_map(|(_, slowdown)| &slowdown.classes) {
        match classes.iter_mut().find(|(_, name)| *name == class.class) {
            Some((least, _)) => *least = class.min_bytes.min(*least),
            None => classes.push((class.min_bytes, &class.class)),
        }
    }
    classes.sort_unstable();
    let names = classes.iter().map(|(_, name)| *name).chain(["all"]);
    let headings = names.flat_map(|name| [format!("{name} p50"), "p99".to_string()]);
    let mut table = Table::new(["run", "unfinished"].map(str::to_string).into_iter().chain(headings));
    for (name, slowdown) in &measured {
        let of = |class: &str| slowdown.classes.iter().find(|of| of.class == class);
        let cells = classes.iter().map(|(_, class)| of(class)).chain([Some(&slowdown.all)]).flat_map(|of| {
            let shown = |value: fn(&SlowdownOf) -> f64, name: &str| {
                let bound = of.is_some_and(|of| of.at_least.iter().any(|bound| bound == name));
                format!("{}{}", if bound { "≥" } else { "" }, optional(of.map(value)))
            };
            [shown(|of| of.p50, "p50"), shown(|of| of.p99, "p99")]
        });
        table.row([name.to_string(), number(slowdown.all.unfinished as f64)].into_iter().chain(cells).collect());
    }
    (!table.is_empty()).then(|| table.render())
}
