//! What happened over time, as small multiples on common axes, and how completion times are distributed.

use maud::{Markup, html};

use super::{
    facets::{Facets, grouped},
    legend,
};
use crate::{
    axis::{Axis, Quantity},
    charts::{Line, LineChart},
    digest::{Curve, Digest},
};

/// Panels of small multiples at most; at some kilobytes each they keep the file under a megabyte.
const PANELS: usize = 48;
/// Lines that can be told apart in one panel.
const LINES: usize = 10;

/// The distribution of completion times: a panel per group, a line per run.
pub(super) fn completion_times(runs: &[Digest], facets: &Facets) -> Markup {
    let finished = || runs.iter().filter(|run| !run.completion.is_empty());
    let times = || finished().flat_map(|run| run.completion.iter().map(|(ns, _)| *ns as f64));
    let (Some(low), Some(high)) = (times().reduce(f64::min), times().reduce(f64::max)) else {
        return html! {};
    };
    // A unit for the middle of the decades, so that neither end has many zeros.
    let unit = Quantity::Time.unit(libm::sqrt(low.max(1.0) * high));
    let label = format!("flow completion time ({})", unit.unit);
    let x = Axis::log(label, low / unit.divisor, high / unit.divisor);
    let y = Axis::linear("share of flows", 1.0);
    let panels = grouped(finished(), |run| facets.panel(run));
    let lines = |members: &[&Digest]| -> Vec<Line> {
        let line = |(index, run): (usize, &&Digest)| Line {
            name: facets.label_in_panel(run),
            points: run.completion.iter().map(|(ns, share)| (*ns as f64 / unit.divisor, *share)).collect(),
            steps: run.completion.len() < 40,
            colour: facets.colour(run),
            dash: index % 3,
            ..Line::default()
        };
        members.iter().take(LINES).enumerate().map(line).collect()
    };
    html! {
        h2 { "Flow completion times" }
        p.sub { "Share of the finished flows that took at most so long." }
        div.panels {
            @for (panel, members) in panels.iter().take(PANELS) {
                @let lines = lines(members);
                @let key: Vec<_> = lines.iter().map(|line| (line.name.clone(), line.colour, Some(line.dash))).collect();
                @let more = members.len().saturating_sub(LINES);
                figure {
                    @if !panel.is_empty() { figcaption { (panel) } }
                    (LineChart { title: "Distribution of flow completion times", x: &x, y: &y, lines, height: 230.0 }.draw())
                    @if key.len() > 1 { (legend(&key)) }
                    @if more > 0 { p.sub { (more) " more runs are not drawn." } }
                }
            }
        }
    }
}

/// The fullest sampled queue of each run over time.
pub(super) fn queues(runs: &[Digest], facets: &Facets) -> Markup {
    let with_queue = runs.iter().filter_map(|run| Some((run, run.queue.as_ref()?)));
    let panels: Vec<Panel> = with_queue
        .map(|(run, curve)| {
            let colour = facets.colour(run);
            Panel {
                run: facets.label(run),
                detail: curve.label.clone(),
                duration_ns: run.summary.duration_ns,
                curves: vec![(curve, colour)],
            }
        })
        .collect();
    multiples("Queue over time", "queue (packets)", &panels)
}

/// The congestion windows that were sampled, a panel per run.
pub(super) fn windows(runs: &[Digest], facets: &Facets) -> Markup {
    let sampled = runs.iter().filter(|run| !run.cwnd.is_empty());
    let panels: Vec<Panel> = sampled.map(|run| windows_of(run, facets)).collect();
    multiples("Congestion windows", "cwnd (segments)", &panels)
}

fn windows_of<'a>(run: &'a Digest, facets: &Facets) -> Panel<'a> {
    // A single flow has its run's colour; several are told apart by colours of their own.
    let alone = run.cwnd.len() == 1;
    let own = |index| if alone { facets.colour(run) } else { index };
    let curves = run.cwnd.iter().enumerate();
    Panel {
        run: facets.label(run),
        duration_ns: run.summary.duration_ns,
        detail: match run.cwnd_left_out {
            0 => String::new(),
            more => format!("{more} more flows are not drawn"),
        },
        curves: curves.map(|(index, curve)| (curve, own(index))).collect(),
    }
}

/// One panel of small multiples; each curve with its colour.
struct Panel<'a> {
    run: String,
    detail: String,
    duration_ns: u64,
    curves: Vec<(&'a Curve, usize)>,
}

/// Panels on the same axes, so that heights and times compare across them.
fn multiples(heading: &str, quantity: &str, panels: &[Panel]) -> Markup {
    if panels.is_empty() {
        return html! {};
    }
    let points = || panels.iter().flat_map(|panel| &panel.curves).flat_map(|(curve, _)| &curve.points);
    let ends = points().map(|point| point.time_ns).chain(panels.iter().map(|panel| panel.duration_ns));
    let end = ends.max().unwrap_or(0) as f64;
    let top = points().map(|point| point.high).max().unwrap_or(0);
    let unit = Quantity::Time.unit(end);
    let x = Axis::linear_exact(format!("time ({})", unit.unit), end / unit.divisor);
    let y = Axis::linear(quantity, f64::from(top));
    let left_out = panels.len().saturating_sub(PANELS);
    html! {
        h2 { (heading) }
        @if panels.len() > 1 { p.sub { "The same axes in every panel." } }
        div.panels {
            @for panel in panels.iter().take(PANELS) {
                @let lines: Vec<Line> = panel.curves.iter().map(|(curve, colour)| line(curve, *colour, unit.divisor)).collect();
                @let key: Vec<_> = lines.iter().map(|line| (line.name.clone(), line.colour, Some(0))).collect();
                @let title = format!("{heading}, {}", panel.run);
                figure {
                    figcaption {
                        @if panels.len() > 1 { (panel.run) " " }
                        small { (panel.detail) }
                    }
                    (LineChart { title: &title, x: &x, y: &y, lines, height: 170.0 }.draw())
                    @if key.len() > 1 { (legend(&key)) }
                }
            }
        }
        @if left_out > 0 { p.sub { (left_out) " more runs are not drawn; their tables are in their folders." } }
    }
}

fn line(curve: &Curve, colour: usize, divisor: f64) -> Line {
    let at = |time_ns: u64| time_ns as f64 / divisor;
    let banded = curve.points.iter().any(|point| point.low < point.high);
    let band = curve.points.iter().filter(|_| banded);
    Line {
        name: curve.label.clone(),
        points: curve.points.iter().map(|point| (at(point.time_ns), point.mean)).collect(),
        band: band.map(|point| (at(point.time_ns), f64::from(point.low), f64::from(point.high))).collect(),
        colour,
        ..Line::default()
    }
}
