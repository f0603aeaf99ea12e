//! Lines over a common pair of axes.

use maud::Markup;

use super::{
    CHARACTER, TICK_CHARACTER, WIDTH,
    svg::{Svg, escaped},
    width_of,
};
use crate::axis::{Axis, rounded};

/// Minimum gap between the labels of two ticks.
const TICK_GAP: f64 = 5.0;
/// Height of a line's name at its end.
const END_LABEL: f64 = 11.0;

/// Lines over a common pair of axes.
pub(crate) struct LineChart<'a> {
    /// Title for screen readers.
    pub title: &'a str,
    pub x: &'a Axis,
    pub y: &'a Axis,
    pub lines: Vec<Line>,
    pub height: f64,
    /// Write the lines' names at their ends, instead of a legend.
    pub end_labels: bool,
}

/// One line, with the band between its lowest and highest values if it has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// (x, low, high)
    pub band: Vec<(f64, f64, f64)>,
    /// Hold each value until the next point.
    pub steps: bool,
    pub colour: usize,
    /// Dash pattern: 0 is solid.
    pub dash: usize,
    /// Mark each point, and whether it is only a lower bound; empty: no marks.
    pub marks: Vec<bool>,
}

/// Where the chart's axes are.
struct Frame<'a> {
    x: &'a Axis,
    y: &'a Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl LineChart<'_> {
    pub fn draw(&self) -> Markup {
        let labels = self.y.ticks.iter().map(|(_, label)| width_of(label, TICK_CHARACTER));
        let names = self.lines.iter().map(|line| width_of(&line.name, CHARACTER)).fold(0.0, f64::max);
        let frame = Frame {
            x: self.x,
            y: self.y,
            left: labels.fold(0.0, f64::max) + 8.0,
            right: WIDTH - if self.end_labels { names + 12.0 } else { 14.0 },
            top: 22.0,
            bottom: self.height - 34.0,
        };
        let mut svg = Svg::new(self.height, self.title, &self.words(), &frame.data());
        svg.text("axis", (0.0, 10.0), &self.y.label);
        frame.draw(&mut svg);
        for line in &self.lines {
            line.draw(&mut svg, &frame);
        }
        if self.end_labels {
            self.name_ends(&mut svg, &frame);
        }
        svg.finish()
    }

    /// The chart in words.
    fn words(&self) -> String {
        let lines: Vec<String> = self.lines.iter().filter_map(Line::words).collect();
        format!("{} against {}. {}", self.y.label, self.x.label, lines.join("; "))
    }

    /// Writes the lines' names at their ends, from the top down, each below the one before.
    fn name_ends(&self, svg: &mut Svg, frame: &Frame) {
        let end = |line: &Line| line.points.last().map(|(x, y)| (frame.x_of(*x), frame.y_of(*y)));
        let mut ends: Vec<(f64, f64, &str)> =
            self.lines.iter().filter_map(|line| end(line).map(|(x, y)| (y, x, line.name.as_str()))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::MIN;
        for (y, x, name) in ends {
            let y = y.max(free);
            svg.text("name", (x + 7.0, y + 4.0), name);
            free = y + END_LABEL;
        }
    }
}

impl Frame<'_> {
    fn x_of(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.place(value)
    }

    fn y_of(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.place(value)
    }

    /// What the script needs to read values back, as attributes of the picture.
    fn data(&self) -> String {
        let x = format!(r#"data-x="{:.2} {:.2} {}""#, self.left, self.right, self.x.ends());
        let y = format!(r#"data-y="{:.2} {:.2} {}""#, self.bottom, self.top, self.y.ends());
        let labels = format!(r#"data-labels="{}|{}""#, escaped(&self.x.label), escaped(&self.y.label));
        format!(r#"tabindex="0" {x} {y} {labels} "#)
    }

    fn draw(&self, svg: &mut Svg) {
        let mut free = f64::MIN;
        for (tick, label) in &self.x.ticks {
            let x = self.x_of(*tick);
            svg.line("grid", (x, self.top), (x, self.bottom));
            let half = width_of(label, TICK_CHARACTER) / 2.0;
            if x - half >= free && x + half <= WIDTH {
                svg.text("tick mid", (x, self.bottom + 13.0), label);
                free = x + half + TICK_GAP;
            }
        }
        for (tick, label) in &self.y.ticks {
            let y = self.y_of(*tick);
            svg.line("grid", (self.left, y), (self.right, y));
            svg.text("tick end", (self.left - 5.0, y + 3.5), label);
        }
        svg.text("axis end", (self.right, self.bottom + 28.0), &self.x.label);
        svg.line("base", (self.left, self.bottom), (self.right, self.bottom));
    }
}

impl Line {
    /// The line's name and where it begins and ends.
    fn words(&self) -> Option<String> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        let point = |(x, y): &(f64, f64)| format!("{} at {}", rounded(*y), rounded(*x));
        Some(format!("{}: from {} to {}", self.name, point(first), point(last)))
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame) {
        let (x, y) = (|value: f64| frame.x_of(value), |value: f64| frame.y_of(value));
        svg.raw(r#"<g class="line" data-name=""#);
        svg.escape(&self.name);
        if self.marks.contains(&true) {
            let flags: String = self.marks.iter().map(|bound| if *bound { '1' } else { '0' }).collect();
            svg.put(format_args!(r#"" data-bounds="{flags}"#));
        }
        svg.raw(r#"">"#);
        svg.tooltip(&self.name);
        if !self.band.is_empty() {
            let highs = self.band.iter().map(|(at, _, high)| (x(*at), y(*high)));
            let lows = self.band.iter().rev();
            let lows = lows.map(|(at, low, _)| (x(*at), y(*low)));
            let class = format!("band f{}", self.colour);
            svg.path("polygon", &class, (1, 1), highs.chain(lows));
        }
        let class = format!("s{} d{}", self.colour, self.dash);
        // Enough to read three digits back: along a logarithmic axis of six decades, and of small values on a linear one.
        // Linear x is time.
        let digits = (if frame.x.is_log() { 2 } else { 1 }, 2);
        let places = self.points.iter().map(|(at, value)| (x(*at), y(*value)));
        if self.steps {
            let from = [None].into_iter().chain(places.clone().map(Some));
            let corners = from.zip(places).flat_map(|(before, (at, value))| {
                let held = before.map(|(_, before): (f64, f64)| (at, before));
                held.into_iter().chain([(at, value)])
            });
            svg.path("polyline", &class, digits, corners);
        } else {
            svg.path("polyline", &class, digits, places);
        }
        for ((at, value), bound) in self.points.iter().zip(&self.marks) {
            self.mark(svg, (x(*at), y(*value)), *bound);
        }
        svg.raw("</g>");
    }

    /// A dot, or for a lower bound an open triangle that points to where the value is.
    fn mark(&self, svg: &mut Svg, (x, y): (f64, f64), bound: bool) {
        if bound {
            let corners = [(x, y - 4.0), (x + 3.6, y + 2.6), (x - 3.6, y + 2.6)];
            svg.path("polygon", &format!("bound s{}", self.colour), (1, 1), corners.into_iter());
        } else {
            svg.circle(&format!("f{}", self.colour), (x, y), 2.2);
        }
    }
}
