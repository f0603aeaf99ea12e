//! Time series as small multiples on common axes, and the distributions of completion times.

use maud::{Markup, html};

use super::{
    facets::{Facets, grouped, mark, mark_of},
    key, legend,
};
use crate::{
    axis::{Axis, Quantity, number},
    charts::{Line, LineChart},
    digest::{CompletedBy, Curve, Digest},
    palette::Palette,
};

/// Panels of small multiples at most; at some kilobytes each they keep the file under a megabyte.
const PANELS: usize = 48;
/// With more runs than this, none is drawn a second time.
const CLOSE_UPS: usize = 12;
/// Lines that can be distinguished in one panel.
const LINES: usize = 10;

/// Samples that begin after this share of the time have a warm-up before them.
const WARMED_UP: f64 = 0.05;

/// Completion times: for each group the distribution and beside it the complementary one, a line per run.
pub(super) fn completion_times(runs: &[Digest], facets: &Facets) -> Markup {
    let finished = || runs.iter().filter(|run| !run.completion.is_empty());
    let times = || finished().flat_map(|run| run.completion.iter().map(|at| at.ns as f64));
    let (Some(low), Some(high)) = (times().reduce(f64::min), times().reduce(f64::max)) else {
        return html! {};
    };
    // A unit for the middle of the decades, so that neither end has many zeros.
    let unit = Quantity::Time.unit(libm::sqrt(low.max(1.0) * high));
    let x = Axis::log(&format!("completion time ({})", unit.unit), low / unit.divisor, high / unit.divisor);
    let rarest = finished().flat_map(|run| run.completion.iter().map(|at| at.at_least)).fold(1.0, f64::min);
    let at_most = Axis::linear("flows that took at most this long (%)", 100.0);
    let at_least = Axis::log("flows that took at least this long (%)", rarest * 100.0, 100.0);
    let panels = grouped(finished(), |run| facets.panel(run));
    let lines = |members: &[&Digest], share: fn(&CompletedBy) -> f64| -> Vec<Line> {
        let line = |run: &&Digest| Line {
            name: facets.label_in_panel(run),
            points: run.completion.iter().map(|at| (at.ns as f64 / unit.divisor, share(at) * 100.0)).collect(),
            colour: facets.colour(run),
            ..Line::default()
        };
        dashes(members.iter().take(LINES).map(line).collect())
    };
    let mut figures: Vec<((String, &Axis), Vec<Line>)> = Vec::new();
    for (panel, members) in panels.iter().take(PANELS / 2) {
        let more = members.len().saturating_sub(LINES);
        let title = match more {
            0 => panel.clone(),
            more => format!("{panel} (first {LINES} runs; {more} more are not drawn)"),
        };
        let title = format!("{}{title}", mark_of(members.iter().copied()));
        let steps = |line: Line| Line { steps: line.points.len() < 40, ..line };
        let body = lines(members, |at| at.at_most).into_iter().map(steps).collect();
        figures.push(((title.clone(), &at_most), body));
        figures.push(((title, &at_least), lines(members, |at| at.at_least)));
    }
    html! {
        h2 { "Flow completion times" }
        p.sub { "Each pair shows the same times twice; the second chart, on a logarithmic axis, shows the tail. " (left_out(runs)) }
        (shared_legend(figures, |(title, y), lines| {
            html! {
                @if !title.is_empty() { figcaption { (title) } }
                (LineChart { title: &format!("Completion times {title}"), x: &x, y, lines, height: 230.0, end_labels: false }.draw())
            }
        }, "panels pairs"))
    }
}

/// Flows that the curves cannot show.
fn left_out(runs: &[Digest]) -> String {
    let unfinished =
        runs.iter().filter_map(|run| run.summary.slowdown.as_ref()).map(|slowdown| slowdown.all.unfinished);
    match unfinished.sum::<u64>() {
        0 => String::new(),
        1 => "One flow that did not finish is left out.".to_owned(),
        count => format!("{} flows that did not finish are left out.", number(count as f64)),
    }
}

/// Distinguishes lines of one colour by their dashes.
pub(super) fn dashes(mut lines: Vec<Line>) -> Vec<Line> {
    for index in 0..lines.len() {
        let (before, rest) = lines.split_at_mut(index);
        rest[0].dash = before.iter().filter(|line| line.colour == rest[0].colour).count() % 3;
    }
    lines
}

/// Figures side by side, with one legend for all if they have the same lines, or else one each.
pub(super) fn shared_legend<T>(
    figures: Vec<(T, Vec<Line>)>,
    draw: impl Fn(T, Vec<Line>) -> Markup,
    class: &str,
) -> Markup {
    let keys: Vec<_> = figures.iter().map(|(_, lines)| key(lines)).collect();
    let shared = keys.windows(2).all(|pair| pair[0] == pair[1]);
    html! {
        @if let Some(first) = keys.first().filter(|first| shared && first.len() > 1) { (legend(first)) }
        div class=(class) {
            @for ((what, lines), key) in figures.into_iter().zip(&keys) {
                figure {
                    (draw(what, lines))
                    @if !shared && key.len() > 1 { (legend(key)) }
                }
            }
        }
    }
}

/// The fullest sampled queue of each run over time.
pub(super) fn queues(runs: &[Digest], facets: &Facets) -> Markup {
    let all =
        runs.iter().filter_map(|run| Some(queue_panel(run, run.queue.as_ref()?, run.summary.duration_ns, facets)));
    let close = runs.iter().filter_map(|run| Some(queue_panel(run, run.queue_close.as_ref()?, 0, facets)));
    let close: Vec<Panel> = close.collect();
    html! {
        (multiples("Queue over time", "queue (packets)", &all.collect::<Vec<_>>()))
        @if close.len() <= CLOSE_UPS {
            (multiples("The queue close up: its last samples", "queue (packets)", &close))
        }
    }
}

fn queue_panel<'a>(run: &'a Digest, curve: &'a Curve, duration_ns: u64, facets: &Facets) -> Panel<'a> {
    Panel {
        run: facets.label(run),
        mark: mark(run),
        detail: curve.label.clone(),
        duration_ns,
        curves: vec![(curve, facets.colour(run))],
    }
}

/// The congestion windows that were sampled, a panel per run.
pub(super) fn windows(runs: &[Digest], facets: &Facets) -> Markup {
    let sampled = runs.iter().filter(|run| !run.cwnd.is_empty());
    let panels: Vec<Panel> = sampled.map(|run| windows_of(run, facets)).collect();
    multiples("Congestion windows", "cwnd (segments)", &panels)
}

fn windows_of<'a>(run: &'a Digest, facets: &Facets) -> Panel<'a> {
    // A single flow has its run's colour. Several have their algorithms' colours if these all differ, else colours of their own.
    let alone = run.cwnd.len() == 1;
    let owners = || run.cwnd.iter().map(|curve| curve.owner.as_str());
    let palette = Palette::of(owners());
    let differ = run.cwnd.iter().enumerate().all(|(i, curve)| owners().skip(i + 1).all(|other| other != curve.owner));
    let own = |index, curve: &Curve| match (alone, differ) {
        (true, _) => facets.colour(run),
        (_, true) => palette.colour(&curve.owner),
        _ => index,
    };
    let curves = run.cwnd.iter().enumerate();
    Panel {
        run: facets.label(run),
        mark: mark(run),
        duration_ns: run.summary.duration_ns,
        detail: match run.cwnd_left_out {
            0 => String::new(),
            more => format!("{more} more flows are not drawn"),
        },
        curves: curves.map(|(index, curve)| (curve, own(index, curve))).collect(),
    }
}

/// One panel of small multiples; each curve with its colour.
struct Panel<'a> {
    /// Its name, with its mark.
    run: String,
    mark: &'static str,
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
    let begin = points().map(|point| point.time_ns).min().unwrap_or(0) as f64;
    let top = points().map(|point| point.high).max().unwrap_or(0);
    let unit = Quantity::Time.unit(end);
    let label = format!("time ({})", unit.unit);
    // what begins with a warm-up leaves no empty part before it
    let x = if begin > end * WARMED_UP {
        Axis::linear_between(label, begin / unit.divisor, end / unit.divisor)
    } else {
        Axis::linear_exact(label, end / unit.divisor)
    };
    let y = Axis::linear(quantity, f64::from(top));
    let left_out = panels.len().saturating_sub(PANELS);
    let lines = |panel: &Panel| -> Vec<Line> {
        panel.curves.iter().map(|(curve, colour)| line(curve, *colour, unit.divisor)).collect()
    };
    let figures = panels.iter().take(PANELS).map(|panel| (panel, lines(panel))).collect();
    html! {
        h2 { (heading) }
        @if panels.len() > 1 { p.sub { "The same axes in every panel." } }
        (shared_legend(figures, |panel: &Panel, lines| {
            let title = format!("{heading}, {}", panel.run);
            html! {
                figcaption {
                    @if panels.len() > 1 { (panel.run) " " } @else { (panel.mark) }
                    small { (panel.detail) }
                }
                (LineChart { title: &title, x: &x, y: &y, lines, height: 180.0, end_labels: false }.draw())
            }
        }, "panels"))
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
