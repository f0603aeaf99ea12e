//! The figures of a story.

use maud::{Markup, html};

use super::{key, legend};
use crate::{
    Curve, Figure, Panel, Scale,
    axis::Axis,
    charts::{Line, LineChart},
    palette::Palette,
};

pub(super) fn section(figures: &[Figure]) -> Markup {
    html! {
        @for figure in figures {
            h2 { (figure.title) }
            @if !figure.text.is_empty() { p.sub { (figure.text) } }
            div.panels { @for panel in &figure.panels { (draw(panel)) } }
        }
    }
}

fn draw(panel: &Panel) -> Markup {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let bands = panel.curves.iter().flat_map(|curve| &curve.band);
    let x = axis(&panel.x, panel.x_scale, points().map(|(x, _)| *x), Axis::linear_exact);
    let y = points().map(|(_, y)| *y).chain(bands.map(|(_, _, high)| *high));
    let y = axis(&panel.y, panel.y_scale, y, Axis::linear);
    let palette = Palette::of(panel.curves.iter().map(|curve| curve.name.as_str()));
    let lines: Vec<Line> = panel.curves.iter().map(|curve| line(curve, panel, &palette)).collect();
    let key = key(&lines);
    html! {
        figure {
            figcaption { (panel.title) }
            (LineChart { title: &panel.title, x: &x, y: &y, lines, height: 210.0, end_labels: false }.draw())
            @if key.len() > 1 { (legend(&key)) }
        }
    }
}

/// An axis for these values.
fn axis(label: &str, scale: Scale, values: impl Iterator<Item = f64>, linear: fn(String, f64) -> Axis) -> Axis {
    let values: Vec<f64> = values.filter(|value| scale == Scale::Linear || *value > 0.0).collect();
    let high = values.iter().copied().fold(0.0, f64::max);
    match scale {
        Scale::Log if high > 0.0 => Axis::log(label, values.iter().copied().fold(high, f64::min), high),
        _ => linear(label.to_owned(), high),
    }
}

fn line(curve: &Curve, panel: &Panel, palette: &Palette) -> Line {
    let drawn =
        |x: f64, y: f64| (x > 0.0 || panel.x_scale == Scale::Linear) && (y > 0.0 || panel.y_scale == Scale::Linear);
    Line {
        name: curve.name.clone(),
        points: curve.points.iter().copied().filter(|(x, y)| drawn(*x, *y)).collect(),
        band: curve.band.iter().copied().filter(|(x, low, _)| drawn(*x, *low)).collect(),
        colour: palette.colour(&curve.name),
        dash: usize::from(curve.dashed),
        ..Line::default()
    }
}
