//! Horizontal bars, each with its value beside it, so that no axis is needed.

use std::fmt::Write as _;

use maud::Markup;

use super::{CHARACTER, WIDTH, svg::Svg};
use crate::axis::{Axis, number, rounded};

/// Characters of the longest label that is shown whole.
const LABEL_CHARACTERS: usize = 23;
/// Room for the value beside the longest bar.
const VALUE: f64 = 52.0;

/// Horizontal bars, one row per case.
pub(crate) struct BarChart<'a> {
    /// Alternative text for screen readers.
    pub title: &'a str,
    /// The scale, which all charts that are compared share.
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

impl BarChart<'_> {
    pub fn draw(&self) -> Markup {
        let longest = self.bars.iter().map(|bar| bar.label.chars().count()).max();
        let longest = longest.unwrap_or(0).min(LABEL_CHARACTERS);
        let left = (longest as f64 * CHARACTER + 8.0).max(40.0);
        // The same in every chart, so that bars compare across panels.
        let right = WIDTH - VALUE;
        let paired = self.bars.iter().any(|bar| bar.paper.is_some());
        let pitch = if paired { 29.0 } else { 22.0 };
        let bottom = 4.0 + pitch * self.bars.len() as f64;
        let all: Vec<String> = self.bars.iter().map(Bar::words).collect();
        let mut svg = Svg::new(bottom + 4.0, self.title, &all.join("; "), "");
        let x = |value: f64| left + (right - left) * self.axis.place(value);
        for (row, bar) in self.bars.iter().enumerate() {
            let top = 4.0 + pitch * row as f64;
            svg.text("name end", (left - 6.0, top + pitch / 2.0 + 2.0), &shortened(&bar.label));
            svg.raw("<g>");
            svg.tooltip(&bar.words());
            bar.draw(&mut svg, (left, top), paired, &x);
            svg.raw("</g>");
        }
        svg.line("base", (left, 2.0), (left, bottom));
        svg.finish()
    }
}

/// A label cut to the room beside the bars.
fn shortened(label: &str) -> String {
    if label.chars().count() <= LABEL_CHARACTERS {
        return label.to_owned();
    }
    let kept: String = label.chars().take(LABEL_CHARACTERS - 1).collect();
    format!("{}…", kept.trim_end())
}

impl Bar {
    fn words(&self) -> String {
        let mut text = format!("{}: {}", self.label, number(self.value));
        if let Some(paper) = self.paper {
            let _ = write!(text, ", paper {}", number(paper));
        }
        if let Some((low, high)) = self.range.filter(|(low, high)| low < high) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_without_room_is_cut_visibly() {
        assert_eq!(shortened("cubic"), "cubic");
        assert_eq!(shortened("twenty-three characters"), "twenty-three characters");
        assert_eq!(shortened("more than twenty-three characters"), "more than twenty-three…");
    }
}
