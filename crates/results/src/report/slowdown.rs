//! FCT slowdown by flow size: tables of size classes, and the percentiles along the sizes.

use maud::{Markup, html};

use super::{
    curves::{dashes, shared_legend},
    facets::{Facets, grouped, mark, mark_of},
};
use crate::{
    Slowdown, SlowdownOf,
    axis::{Axis, Quantity, number, rounded},
    charts::{Line, LineChart},
    digest::Digest,
    slowdown::PERCENTILES,
};

/// Runs with no more flows of known size than this have too few for percentiles.
const FLOWS: u64 = 100;
/// Panels of a sweep at most.
const PANELS: usize = 12;
/// Lines that can be distinguished in one panel.
const LINES: usize = 10;
/// The percentiles that a sweep draws, by their place in [`PERCENTILES`].
const DRAWN: [(usize, &str); 2] = [(0, "median"), (2, "99th percentile")];

/// The section; empty if no run has enough flows with a size.
pub(super) fn section(runs: &[Digest], facets: &Facets) -> Markup {
    let measured: Vec<(&Digest, &Slowdown)> = runs
        .iter()
        .filter_map(|run| Some((run, run.summary.slowdown.as_ref()?)))
        .filter(|(_, slowdown)| slowdown.all.flows > FLOWS)
        .collect();
    if measured.is_empty() {
        return html! {};
    }
    html! {
        h2 { "FCT slowdown" }
        p.sub {
            "Completion time divided by the ideal one, that of the same flow alone on its path: 1 is as fast as the network allows. "
            (unfinished(&measured))
        }
        @if let ([(run, slowdown)], 1) = (&measured[..], runs.len()) {
            (table(slowdown))
            (chart(run, slowdown, facets))
        } @else {
            (comparison(&measured, facets))
            (charts(&measured, facets))
        }
    }
}

/// The note on flows that did not finish.
fn unfinished(measured: &[(&Digest, &Slowdown)]) -> String {
    let all = || measured.iter().map(|(_, slowdown)| &slowdown.all);
    let most = all().map(|all| all.unfinished as f64 / all.flows as f64).fold(0.0, f64::max);
    let count: u64 = all().map(|all| all.unfinished).sum();
    let flows: u64 = all().map(|all| all.flows).sum();
    if count == 0 {
        return "Every flow finished.".to_owned();
    }
    let most = match measured.len() {
        1 => String::new(),
        _ => format!("; up to {} % in a run", rounded(most * 100.0)),
    };
    format!(
        "{} of {} flows ({} %{most}) had not finished when the run ended. They count with the slowdown that they had at that time. A percentile that they \
         could raise by more than 5 % is a lower bound: ≥ in tables, an open triangle in charts.",
        number(count as f64),
        number(flows as f64),
        rounded(count as f64 / flows as f64 * 100.0)
    )
}

/// A single run: a row for each size class.
fn table(slowdown: &Slowdown) -> Markup {
    let row = |name: &str, of: &SlowdownOf| {
        html! {
            tr {
                th scope="row" { (name) }
                td.n { (number(of.flows as f64)) }
                td.n { (number(of.unfinished as f64)) }
                @for value in of.percentiles() { td.n { (shown(value)) } }
            }
        }
    };
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Flow size" } th.n { "Flows" } th.n { "Unfinished" }
                        @for (name, _) in PERCENTILES { th.n { (name) } }
                    }
                }
                tbody {
                    @for class in &slowdown.classes { (row(&class.class, class)) }
                    (row("all", &slowdown.all))
                }
            }
        }
    }
}

/// Several runs: a row for each, a group of columns for each size class.
fn comparison(measured: &[(&Digest, &Slowdown)], facets: &Facets) -> Markup {
    let names = grouped(measured.iter().flat_map(|(_, slowdown)| &slowdown.classes), |class| class.class.clone());
    let smallest = |members: &[&SlowdownOf]| members.iter().map(|class| class.min_bytes).min();
    let mut names: Vec<_> = names.into_iter().map(|(name, members)| (smallest(&members), name)).collect();
    names.sort();
    html! {
        div.scroll {
            table.runs.slowdown {
                thead {
                    tr {
                        td {}
                        @for (_, name) in &names { th.span colspan="3" scope="colgroup" { (name) } }
                        th.span colspan="3" scope="colgroup" { "all" } td {}
                    }
                    tr {
                        th { "Run" }
                        @for _ in 0..=names.len() { @for (name, _) in PERCENTILES { th.n { (name) } } }
                        th.n { "Unfinished" }
                    }
                }
                tbody {
                    @for (run, slowdown) in measured {
                        tr {
                            th scope="row" { (facets.label(run)) }
                            @for (_, name) in &names {
                                (cells(slowdown.classes.iter().find(|class| class.class == *name)))
                            }
                            (cells(Some(&slowdown.all)))
                            td.n data-v=(slowdown.all.unfinished) { (number(slowdown.all.unfinished as f64)) }
                        }
                    }
                }
            }
        }
    }
}

fn cells(of: Option<&SlowdownOf>) -> Markup {
    html! {
        @match of {
            Some(of) => @for value in of.percentiles() { td.n data-v=(value.0) { (shown(value)) } },
            None => @for _ in PERCENTILES { td.n data-v="" { "–" } },
        }
    }
}

/// A percentile as text, short enough for many columns.
fn shown((value, bound): (f64, bool)) -> String {
    let text = if value < 1e4 { rounded(value) } else { format!("{}k", rounded(value / 1e3)) };
    if bound { format!("≥ {text}") } else { text }
}

/// Axes that hold all of these.
fn axes(all: &[&Slowdown], percentiles: &[usize]) -> (Axis, Axis, f64) {
    let groups = || all.iter().flat_map(|slowdown| &slowdown.by_size);
    let sizes = || groups().map(|group| (group.median_bytes as f64).max(1.0));
    let (low, high) = (sizes().fold(f64::MAX, f64::min), sizes().fold(1.0, f64::max));
    let top =
        groups().flat_map(|group| percentiles.iter().map(|index| group.percentiles()[*index].0)).fold(1.0, f64::max);
    // A unit for the middle of the decades, so that neither end has many zeros.
    let unit = Quantity::Bytes.unit(libm::sqrt(low * high));
    let x = Axis::log(&format!("flow size ({})", unit.unit), low / unit.divisor, high / unit.divisor);
    (x, Axis::log("slowdown", 1.0, top), unit.divisor)
}

/// One percentile along the sizes.
fn line(slowdown: &Slowdown, percentile: usize, divisor: f64) -> Line {
    let points =
        slowdown.by_size.iter().map(|group| (group.median_bytes as f64 / divisor, group.percentiles()[percentile]));
    Line {
        points: points.clone().map(|(size, (value, _))| (size, value)).collect(),
        marks: points.map(|(_, (_, bound))| bound).collect(),
        ..Line::default()
    }
}

/// A single run: its three percentiles.
fn chart(run: &Digest, slowdown: &Slowdown, facets: &Facets) -> Markup {
    if slowdown.by_size.len() < 2 {
        return html! {};
    }
    let (x, y, divisor) = axes(&[slowdown], &[0, 1, 2]);
    let percentile = |(index, (name, _)): (usize, &(&str, usize))| Line {
        name: (*name).to_owned(),
        colour: facets.colour(run),
        ..line(slowdown, index, divisor)
    };
    let lines = PERCENTILES.iter().enumerate().map(percentile).collect();
    html! {
        figure.wide {
            figcaption { (mark(run)) "Slowdown by flow size " small { "in " (slowdown.by_size.len()) " groups of about equal count, each at its median size" } }
            (LineChart { title: "Slowdown by flow size", x: &x, y: &y, lines, height: 230.0, end_labels: true }.draw())
        }
    }
}

/// Several runs: for each panel the median and the 99th percentile, a line for each run.
fn charts(measured: &[(&Digest, &Slowdown)], facets: &Facets) -> Markup {
    let drawn: Vec<(&Digest, &Slowdown)> = measured.iter().filter(|(_, of)| of.by_size.len() > 1).copied().collect();
    if drawn.is_empty() {
        return html! {};
    }
    let all: Vec<&Slowdown> = drawn.iter().map(|(_, slowdown)| *slowdown).collect();
    let (x, y, divisor) = axes(&all, &DRAWN.map(|(index, _)| index));
    let panels = grouped(&drawn, |(run, _)| facets.panel(run));
    let left_out = panels.len().saturating_sub(PANELS);
    let lines = |members: &[&(&Digest, &Slowdown)], percentile: usize| -> Vec<Line> {
        let line = |(run, slowdown): &&(&Digest, &Slowdown)| Line {
            name: facets.label_in_panel(run),
            colour: facets.colour(run),
            ..line(slowdown, percentile, divisor)
        };
        dashes(members.iter().take(LINES).map(line).collect())
    };
    let figures: Vec<(String, Vec<Line>)> = panels
        .iter()
        .take(PANELS)
        .flat_map(|(panel, members)| {
            let mark = mark_of(members.iter().map(|(run, _)| *run));
            let title = |name: &str| match panel.as_str() {
                "" => format!("{mark}{name}"),
                panel => format!("{mark}{panel}: {name}"),
            };
            DRAWN.map(|(index, name)| (title(name), lines(members, index)))
        })
        .collect();
    html! {
        p.sub { "Along the flow sizes, in groups of about equal count, each at its median size. The same axes in every panel." }
        (shared_legend(figures, |title, lines| {
            html! {
                figcaption { (title) }
                (LineChart { title: &format!("Slowdown by flow size, {title}"), x: &x, y: &y, lines, height: 220.0, end_labels: false }.draw())
            }
        }, "panels pairs"))
        @if left_out > 0 { p.sub { (left_out) " more groups of runs are not drawn; the table has them all." } }
    }
}
