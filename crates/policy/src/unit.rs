//! What a value in an expression is: the types of the policy language.

use std::fmt;
use units::{Bytes, Rate, Time};

/// The type of an expression. Values are kept as f64 in the unit's base: seconds, bits per second, bytes; a flag is
/// 1 or 0; NaN is "not known".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// True or false.
    Flag,
    /// How many, or a plain ratio.
    Number,
    /// A share from 0 to 1.
    Fraction,
    /// Events a second.
    PerSecond,
    /// Seconds.
    Duration,
    /// Bits a second.
    Rate,
    /// Bytes.
    Size,
    /// A name; compared only.
    Text,
}

impl Unit {
    /// With an article, for messages.
    pub fn described(self) -> &'static str {
        match self {
            Unit::Flag => "true or false",
            Unit::Number => "a number",
            Unit::Fraction => "a fraction (0 to 1)",
            Unit::PerSecond => "a number per second",
            Unit::Duration => "a duration",
            Unit::Rate => "a rate (bit/s)",
            Unit::Size => "a size (bytes)",
            Unit::Text => "a text",
        }
    }

    /// How a constant of this type is written in an expression.
    pub fn example(self) -> &'static str {
        match self {
            Unit::Flag => "true",
            Unit::Number => "40",
            Unit::Fraction => "0.70",
            Unit::PerSecond => "500",
            Unit::Duration => "duration(\"2 ms\")",
            Unit::Rate => "rate(\"100 Mbit/s\")",
            Unit::Size => "size(\"64 kB\")",
            Unit::Text => "\"rack-1\"",
        }
    }

    /// Whether a bare number in the file can be one of these.
    pub(crate) fn takes_literals(self) -> bool {
        matches!(self, Unit::Number | Unit::Fraction | Unit::PerSecond)
    }

    /// A value for people: `0.712`, `2 ms`, `unknown`.
    pub fn show(self, value: f64) -> String {
        if value.is_nan() {
            return "unknown".to_string();
        }
        match self {
            Unit::Flag => (value != 0.0).to_string(),
            Unit::Duration => Time::from_secs_f64(value).to_string(),
            Unit::Rate => Rate::from_bps(value as u64).to_string(),
            Unit::Size => Bytes::new(value as u64).to_string(),
            Unit::PerSecond => format!("{}/s", plain(value)),
            Unit::Number | Unit::Fraction | Unit::Text => plain(value),
        }
    }
}

/// Five significant digits, without trailing zeros, in plain notation.
fn plain(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let text = format!("{value:.*}", (4 - magnitude).clamp(0, 9) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Flag => "true/false",
            Unit::Number => "number",
            Unit::Fraction => "fraction",
            Unit::PerSecond => "per second",
            Unit::Duration => "duration",
            Unit::Rate => "rate",
            Unit::Size => "size",
            Unit::Text => "text",
        })
    }
}
