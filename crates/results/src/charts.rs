//! The report's charts as inline SVG.
//!
//! Every chart is about 360 units wide and scales with its column, so that its text has the size of the page's text on
//! a phone and on paper alike. Colours are classes (`f3` fills, `s3` strokes with colour 3) that the style sheet
//! resolves for light, dark and print. Written by hand, because the chart libraries tried fix pixel sizes and colours.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped};

use crate::axis::{Axis, number, rounded};

const WIDTH: f64 = 360.0;
/// Room for a character of the labels, at 11 units of font size.
const CHARACTER: f64 = 6.1;

/// Horizontal bars, one row per case.
pub(crate) struct BarChart<'a> {
    /// What a reader who cannot see the picture is told.
    pub title: &'a str,
    pub axis: &'a Axis,
    pub bars: &'a [Bar],
}

/// One row of a bar chart.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub label: String,
    pub value: f64,
    /// Smallest and largest of the values that `value` is the median of.
    pub range: Option<(f64, f64)>,
    /// The paper's value, drawn above ours.
    pub paper: Option<f64>,
    pub colour: usize,
}

/// Lines over a common pair of axes.
pub(crate) struct LineChart<'a> {
    pub title: &'a str,
    pub x: &'a Axis,
    pub y: &'a Axis,
    pub lines: Vec<Line>,
    pub height: f64,
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
}

/// An SVG under construction.
struct Svg(String);

impl Svg {
    fn new(height: f64, title: &str) -> Self {
        let mut svg = Self(String::new());
        svg.put(format_args!(r#"<svg viewBox="0 0 {WIDTH:.0} {height:.0}" role="img" aria-label=""#));
        svg.escape(title);
        svg.0.push_str(r#"">"#);
        svg
    }

    fn put(&mut self, text: std::fmt::Arguments) {
        self.0.write_fmt(text).expect("a String takes all text");
    }

    fn escape(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                c => self.0.push(c),
            }
        }
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.put(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.put(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.put(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">"#));
        self.escape(text);
        self.0.push_str("</text>");
    }

    /// A `polyline` or `polygon`; points that round to the same tenth are written once.
    fn path(&mut self, element: &str, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        self.put(format_args!(r#"<{element} class="{class}" points=""#));
        let mut before = String::new();
        for (x, y) in points {
            let point = format!("{x:.1},{y:.1} ");
            if point != before {
                self.0.push_str(&point);
            }
            before = point;
        }
        self.0.push_str(r#""/>"#);
    }

    fn tooltip(&mut self, text: &str) {
        self.0.push_str("<title>");
        self.escape(text);
        self.0.push_str("</title>");
    }

    fn finish(mut self) -> Markup {
        self.0.push_str("</svg>");
        PreEscaped(self.0)
    }
}

impl BarChart<'_> {
    pub fn draw(&self) -> Markup {
        let longest = self.bars.iter().map(|bar| bar.label.chars().count()).max();
        let left = (longest.unwrap_or(0) as f64 * CHARACTER + 8.0).clamp(40.0, 150.0);
        let right = WIDTH - 52.0;
        let paired = self.bars.iter().any(|bar| bar.paper.is_some());
        let pitch = if paired { 29.0 } else { 22.0 };
        let bottom = 4.0 + pitch * self.bars.len() as f64;
        let mut svg = Svg::new(bottom + 34.0, self.title);
        let x = |value: f64| left + (right - left) * self.axis.place(value);
        for (tick, label) in &self.axis.ticks {
            svg.line("grid", (x(*tick), 2.0), (x(*tick), bottom));
            svg.text("tick mid", (x(*tick), bottom + 13.0), label);
        }
        svg.text("axis mid", (left.midpoint(right), bottom + 28.0), &self.axis.label);
        for (row, bar) in self.bars.iter().enumerate() {
            let top = 4.0 + pitch * row as f64;
            svg.text("name end", (left - 6.0, top + pitch / 2.0 + 2.0), &bar.label);
            svg.0.push_str("<g>");
            svg.tooltip(&bar.tooltip());
            bar.draw(&mut svg, (left, top), paired, &x);
            svg.0.push_str("</g>");
        }
        svg.line("base", (left, 2.0), (left, bottom));
        svg.finish()
    }
}

impl Bar {
    fn tooltip(&self) -> String {
        let mut text = format!("{}: {}", self.label, number(self.value));
        if let Some(paper) = self.paper {
            let _ = write!(text, ", paper {}", number(paper));
        }
        if let Some((low, high)) = self.range {
            let _ = write!(text, " (median; {} to {})", number(low), number(high));
        }
        text
    }

    fn draw(&self, svg: &mut Svg, (left, top): (f64, f64), paired: bool, x: &dyn Fn(f64) -> f64) {
        let (mut y, height) = if paired { (top + 2.0, 11.0) } else { (top + 2.0, 16.0) };
        if paired {
            if let Some(paper) = self.paper {
                svg.rect("paper", (left, y), (x(paper) - left, height));
                svg.text("value dim", (x(paper) + 4.0, y + 9.5), &rounded(paper));
            }
            y += height + 1.0;
        }
        let class = format!("f{}", self.colour);
        svg.rect(&class, (left, y), ((x(self.value) - left).max(0.0), height));
        let mut end = x(self.value);
        if let Some((low, high)) = self.range.filter(|(low, high)| low < high) {
            let middle = y + height / 2.0;
            svg.line("range", (x(low), middle), (x(high), middle));
            for cap in [x(low), x(high)] {
                svg.line("range", (cap, middle - 3.0), (cap, middle + 3.0));
            }
            end = end.max(x(high));
        }
        let baseline = y + height / 2.0 + 4.0;
        svg.text("value", (end + 4.0, baseline), &rounded(self.value));
    }
}

impl LineChart<'_> {
    pub fn draw(&self) -> Markup {
        let labels = self.y.ticks.iter().map(|(_, label)| label.chars().count());
        let left = labels.max().unwrap_or(1) as f64 * CHARACTER + 26.0;
        let (right, top) = (WIDTH - 15.0, 8.0);
        let bottom = self.height - 36.0;
        let mut svg = Svg::new(self.height, self.title);
        let x = |value: f64| left + (right - left) * self.x.place(value);
        let y = |value: f64| bottom - (bottom - top) * self.y.place(value);
        for (tick, label) in &self.x.ticks {
            svg.line("grid", (x(*tick), top), (x(*tick), bottom));
            svg.text("tick mid", (x(*tick), bottom + 13.0), label);
        }
        for (tick, label) in &self.y.ticks {
            svg.line("grid", (left, y(*tick)), (right, y(*tick)));
            svg.text("tick end", (left - 5.0, y(*tick) + 4.0), label);
        }
        svg.text("axis mid", (left.midpoint(right), self.height - 6.0), &self.x.label);
        let middle = top.midpoint(bottom);
        svg.put(format_args!(r#"<g transform="translate(11 {middle:.1}) rotate(-90)">"#));
        svg.text("axis mid", (0.0, 0.0), &self.y.label);
        svg.0.push_str("</g>");
        svg.line("base", (left, bottom), (right, bottom));
        for line in &self.lines {
            line.draw(&mut svg, &x, &y);
        }
        svg.finish()
    }
}

impl Line {
    fn draw(&self, svg: &mut Svg, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
        svg.0.push_str("<g>");
        svg.tooltip(&self.name);
        if !self.band.is_empty() {
            let highs = self.band.iter().map(|(at, _, high)| (x(*at), y(*high)));
            let lows = self.band.iter().rev();
            let lows = lows.map(|(at, low, _)| (x(*at), y(*low)));
            let class = format!("band f{}", self.colour);
            svg.path("polygon", &class, highs.chain(lows));
        }
        let class = format!("line s{} d{}", self.colour, self.dash);
        let places = self.points.iter().map(|(at, value)| (x(*at), y(*value)));
        if self.steps {
            let from = [None].into_iter().chain(places.clone().map(Some));
            let corners = from.zip(places).flat_map(|(before, (at, value))| {
                let held = before.map(|(_, before): (f64, f64)| (at, before));
                held.into_iter().chain([(at, value)])
            });
            svg.path("polyline", &class, corners);
        } else {
            svg.path("polyline", &class, places);
        }
        svg.0.push_str("</g>");
    }
}
