//! An SVG under construction.

use std::fmt::{Arguments, Write as _};

use maud::{Markup, PreEscaped};

use super::WIDTH;

pub(super) struct Svg(String);

impl Svg {
    /// A picture `height` units high. `title` and `description` are for screen readers; `data` are further
    /// attributes, escaped.
    pub fn new(height: f64, title: &str, description: &str, data: &str) -> Self {
        let mut svg = Self(String::new());
        svg.put(format_args!(r#"<svg viewBox="0 0 {WIDTH:.0} {height:.0}" role="img" {data}aria-label=""#));
        svg.escape(title);
        svg.raw(r#"">"#);
        if !description.is_empty() {
            svg.raw("<desc>");
            svg.escape(description);
            svg.raw("</desc>");
        }
        svg
    }

    pub fn put(&mut self, text: Arguments) {
        self.0.write_fmt(text).expect("a String takes all text");
    }

    /// Markup as it is.
    pub fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    pub fn escape(&mut self, text: &str) {
        self.0.push_str(&escaped(text));
    }

    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.put(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.put(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        self.put(format_args!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#));
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.put(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">"#));
        self.escape(text);
        self.raw("</text>");
    }

    /// A `polyline` or `polygon` with so many digits after the point of x and of y. Points that round to the same place are
    /// written once.
    pub fn path(
        &mut self,
        element: &str,
        class: &str,
        digits: (usize, usize),
        points: impl Iterator<Item = (f64, f64)>,
    ) {
        self.put(format_args!(r#"<{element} class="{class}" points=""#));
        let mut before = String::new();
        for (x, y) in points {
            let point = format!("{},{} ", short(x, digits.0), short(y, digits.1));
            if point != before {
                self.raw(&point);
            }
            before = point;
        }
        self.raw(r#""/>"#);
    }

    /// Tooltip where there is no script.
    pub fn tooltip(&mut self, text: &str) {
        self.raw("<title>");
        self.escape(text);
        self.raw("</title>");
    }

    pub fn finish(mut self) -> Markup {
        self.raw("</svg>");
        PreEscaped(self.0)
    }
}

/// `text` escaped for markup.
pub(super) fn escaped(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            c => markup.push(c),
        }
    }
    markup
}

/// With at most so many digits after the point, without trailing zeros.
fn short(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
