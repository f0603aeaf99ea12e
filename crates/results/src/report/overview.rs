//! The runs side by side: bars, the table with one row per run, parameters, and the busiest links of a single run.

use maud::{Markup, html};

use super::{
    facets::{Facets, grouped, mark_of},
    legend,
};
use crate::{
    Summary,
    axis::{Axis, Quantity, Unit, number},
    charts::{Bar, BarChart},
    digest::Digest,
};

/// With more panels than this, the table is clearer.
const PANELS: usize = 12;

/// A number of a run's summary, and how to show it.
struct Metric {
    name: &'static str,
    quantity: Quantity,
    value: fn(&Summary) -> Option<f64>,
    /// Drawn as bars, too.
    drawn: bool,
    /// Left out where it is zero in every run.
    rare: bool,
}

const METRICS: [Metric; 14] = [
    metric("Throughput per flow", Quantity::Rate, |s| s.mean_data_flow_throughput_bps).drawn(),
    metric("Goodput", Quantity::Rate, |s| s.goodput_bps),
    metric("Delay", Quantity::Time, |s| s.mean_packet_delay_ns).drawn(),
    metric("Delay per flow", Quantity::Time, |s| s.mean_flow_delay_ns),
    metric("Drops", Quantity::Packets, |s| Some(s.drops_at_switches as f64)).drawn(),
    metric("Drops at hosts", Quantity::Packets, |s| Some(s.drops_at_hosts as f64)).rare(),
    metric("Lost to failures", Quantity::Packets, |s| Some(s.drops_by_failure as f64)).rare(),
    metric("ECN marks", Quantity::Packets, |s| Some(s.marks as f64)).rare(),
    metric("Retransmits", Quantity::Packets, |s| Some(s.retransmits as f64)),
    metric("RTOs", Quantity::Count, |s| Some(s.rtos as f64)),
    metric("Longest queue", Quantity::Packets, |s| Some(s.max_switch_queue_packets as f64)),
    metric("FCT, median", Quantity::Time, |s| s.median_fct_ns.map(|ns| ns as f64)),
    metric("FCT, 99th percentile", Quantity::Time, |s| s.p99_fct_ns.map(|ns| ns as f64)).drawn(),
    metric("Packet-hops", Quantity::Count, |s| Some(s.packet_hops as f64)),
];

const fn metric(name: &'static str, quantity: Quantity, value: fn(&Summary) -> Option<f64>) -> Metric {
    Metric { name, quantity, value, drawn: false, rare: false }
}

impl Metric {
    const fn drawn(mut self) -> Self {
        self.drawn = true;
        self
    }

    const fn rare(mut self) -> Self {
        self.rare = true;
        self
    }

    fn max(&self, runs: &[Digest]) -> Option<f64> {
        let values = runs.iter().filter_map(|run| (self.value)(&run.summary));
        values.reduce(f64::max)
    }

    /// The unit for these runs; `None` where there is nothing to show.
    fn unit(&self, runs: &[Digest]) -> Option<Unit> {
        let max = self.max(runs).filter(|max| !self.rare || *max > 0.0)?;
        Some(self.quantity.unit(max))
    }

    fn heading(&self, unit: Unit) -> String {
        match unit.unit {
            "" => self.name.to_owned(),
            unit => format!("{} ({unit})", self.name),
        }
    }
}

pub(super) fn section(runs: &[Digest], facets: &Facets) -> Markup {
    html! {
        @if let [run] = runs {
            h2 { "The run" }
            (numbers(run))
            (busiest_links(run))
        } @else {
            h2 { "The runs compared" }
            (bars(runs, facets))
            (table(runs, facets))
        }
    }
}

fn bars(runs: &[Digest], facets: &Facets) -> Markup {
    let panels = grouped(runs, |run| facets.panel(run));
    let left_out = panels.len().saturating_sub(PANELS);
    let repeated = runs.len() > grouped(runs, |run| facets.bar(run) + "\n" + &facets.panel(run)).len();
    html! {
        @if repeated {
            p.sub { "Bars are medians over the seeds; the thin lines reach from the smallest to the largest." }
        }
        @for metric in METRICS.iter().filter(|metric| metric.drawn) {
            @if let Some(unit) = metric.unit(runs) {
                @let max = metric.max(runs).unwrap_or(0.0);
                @let axis = Axis::linear("", max / unit.divisor);
                h3 { (metric.heading(unit)) }
                div.panels {
                    @for (panel, members) in panels.iter().take(PANELS) {
                        @let bars = bars_of(members, facets, metric, unit);
                        @let title = format!("{} by {}, {panel}", metric.name, facets.bar_heading());
                        @let heading = format!("{}{panel}", mark_of(members.iter().copied()));
                        figure {
                            @if !heading.is_empty() { figcaption { (heading) } }
                            (BarChart { title: &title, axis: &axis, bars: &bars }.draw())
                        }
                    }
                }
            }
        }
        @if left_out > 0 { p.sub { "Bars of " (left_out) " more groups of runs are left out; the table has them all." } }
    }
}

/// One bar per algorithm: the median over the runs that share it, and their range.
fn bars_of(runs: &[&Digest], facets: &Facets, metric: &Metric, unit: Unit) -> Vec<Bar> {
    let groups = grouped(runs.iter().copied(), |run| facets.bar(run));
    let bar = |(label, members): (String, Vec<&Digest>)| {
        let values = members.iter().filter_map(|run| (metric.value)(&run.summary));
        let mut values: Vec<f64> = values.map(|value| value / unit.divisor).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => values[middle - 1].midpoint(values[middle]),
        };
        Some(Bar { label, value: median, range: Some((low, high)), paper: None, colour: facets.colour(members[0]) })
    };
    groups.into_iter().filter_map(bar).collect()
}

fn table(runs: &[Digest], facets: &Facets) -> Markup {
    let units = METRICS.iter().map(|metric| (metric, metric.unit(runs)));
    let columns: Vec<(&Metric, Unit)> = units.filter_map(|(m, unit)| Some((m, unit?))).collect();
    html! {
        h3 { "All runs" }
        div.scroll {
            table.runs {
                thead {
                    tr {
                        th { "Run" }
                        @for (metric, unit) in &columns {
                            th.n { (metric.name) @if !unit.unit.is_empty() { br; "(" (unit.unit) ")" } }
                        }
                        th.n { "Flows finished" }
                    }
                }
                tbody { @for run in runs { (row(run, facets, &columns)) } }
            }
        }
    }
}

fn row(run: &Digest, facets: &Facets, columns: &[(&Metric, Unit)]) -> Markup {
    let summary = &run.summary;
    html! {
        tr {
            th scope="row" {
                @match &run.folder {
                    Some(folder) => a href={ (folder) "/" } { (facets.label(run)) },
                    None => (facets.label(run)),
                }
            }
            @for (metric, unit) in columns {
                @let value = (metric.value)(summary);
                td.n data-v=(value.map_or_else(String::new, |value| value.to_string())) {
                    (value.map_or_else(|| "–".to_owned(), |value| number(value / unit.divisor)))
                }
            }
            td.n data-v=(summary.flows_completed) {
                (number(summary.flows_completed as f64)) " of " (number(summary.flows as f64))
            }
        }
    }
}

/// A single run's numbers, one to a line.
fn numbers(run: &Digest) -> Markup {
    let alone = std::slice::from_ref(run);
    let summary = &run.summary;
    html! {
        div.scroll {
            table {
                tbody {
                    tr {
                        th scope="row" { "Flows finished" }
                        td.n { (number(summary.flows_completed as f64)) " of " (number(summary.flows as f64)) } td {}
                    }
                    @for metric in &METRICS {
                        @if let (Some(unit), Some(value)) = (metric.unit(alone), (metric.value)(summary)) {
                            tr { th scope="row" { (metric.name) } td.n { (number(value / unit.divisor)) } td { (unit.unit) } }
                        }
                    }
                    @for (name, value) in &summary.extra {
                        tr { th scope="row" { (name) } td.n { (number(*value)) } td {} }
                    }
                }
            }
        }
    }
}

fn busiest_links(run: &Digest) -> Markup {
    if run.busiest.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Links with the longest queues" }
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Link" } th { "Tier" } th.n { "Longest queue" } th.n { "Used" } th.n { "Packets" } th.n { "Drops" } th.n { "Marks" }
                    }
                }
                tbody {
                    @for link in &run.busiest {
                        tr {
                            th scope="row" { (link.link) } td { (link.tier) }
                            td.n { (number(link.max_queue_packets as f64)) }
                            td.n { (format!("{:.1} %", link.utilization * 100.0)) }
                            td.n { (number(link.packets as f64)) } td.n { (number(link.dropped as f64)) } td.n { (number(link.marked as f64)) }
                        }
                    }
                }
            }
        }
    }
}

/// Parameters: those that are the same for all runs, and the keys that vary with their values.
pub(super) fn settings(runs: &[Digest], facets: &Facets) -> Markup {
    if facets.common.is_empty() && facets.varying.is_empty() {
        return html! {};
    }
    let values = |key: &str| {
        let all = grouped(runs, |run| run.parameter(key).unwrap_or("–").to_owned());
        let names: Vec<String> = all.into_iter().map(|(value, _)| value).collect();
        names.join(", ")
    };
    html! {
        h2 { "What was run" }
        div.scroll {
            table.settings {
                tbody {
                    @for (key, value) in &facets.common { tr { th scope="row" { (key) } td { (value) } } }
                    @for key in &facets.varying { tr { th scope="row" { (key) } td { (values(key)) } } }
                }
            }
        }
        @if runs.len() > 1 && !facets.varying.is_empty() {
            p.sub { "Colours stand for: " (facets.bar_heading()) "." }
            (legend(&colours(runs, facets)))
        }
    }
}

fn colours(runs: &[Digest], facets: &Facets) -> Vec<(String, usize, Option<usize>)> {
    let bars = grouped(runs, |run| facets.bar(run));
    let entry = |(name, members): (String, Vec<&Digest>)| (name, facets.colour(members[0]), None);
    bars.into_iter().map(entry).collect()
}
