//! The figures of a story.

use maud::{Markup, html};

use super::legend;
use crate::{
    Curve, Figure, Panel,
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
    let right = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let top = points().map(|(_, y)| *y).chain(bands.map(|(_, _, high)| *high)).fold(0.0, f64::max);
    let (x, y) = (Axis::linear_exact(panel.x.as_str(), right), Axis::linear(panel.y.as_str(), top));
    let palette = Palette::of(panel.curves.iter().map(|curve| curve.name.as_str()));
    let lines: Vec<Line> = panel.curves.iter().map(|curve| line(curve, &palette)).collect();
    let key: Vec<_> = lines.iter().map(|line| (line.name.clone(), line.colour, Some(line.dash))).collect();
    html! {
        figure {
            figcaption { (panel.title) }
            (LineChart { title: &panel.title, x: &x, y: &y, lines, height: 200.0 }.draw())
            @if key.len() > 1 { (legend(&key)) }
        }
    }
}

fn line(curve: &Curve, palette: &Palette) -> Line {
    Line {
        name: curve.name.clone(),
        points: curve.points.clone(),
        band: curve.band.clone(),
        steps: false,
        colour: palette.colour(&curve.name),
        dash: usize::from(curve.dashed),
    }
}
