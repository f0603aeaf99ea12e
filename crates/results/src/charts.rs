//! The report's charts as inline SVG.
//!
//! Every chart is about 360 units wide and scales with its column, so that its text has the size of the page's text on
//! a phone and on paper alike. Colours are classes (`f3` fills, `s3` strokes with colour 3) that the style sheet
//! resolves for light, dark and print. Written by hand, because the chart libraries tried fix pixel sizes and colours.
//!
//! A chart is complete without a script. `report.js` reads values back from the drawing: a line chart carries its axes
//! (`data-x`, `data-y`) and labels, and a group of class `line` its name.

mod bars;
mod lines;
mod svg;

pub(crate) use bars::{Bar, BarChart};
pub(crate) use lines::{Line, LineChart};

/// Width of every chart, in its own units.
const WIDTH: f64 = 360.0;
/// Room for a character of the labels, at 11 units of font size, in the widest of the fonts that the page may get.
const CHARACTER: f64 = 6.8;
/// The same for ticks, at 10 units.
const TICK_CHARACTER: f64 = 6.2;

fn width_of(text: &str, character: f64) -> f64 {
    text.chars().count() as f64 * character
}
