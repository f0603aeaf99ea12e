//! Quantities with their units: [`Time`], [`Rate`], [`Bytes`].
//!
//! A scenario says `"100 Mbit/s"`, a link computes in picoseconds, a report prints `12.3 ms`; this crate converts
//! between them. All three are exact integers, so that the same scenario gives the same bytes everywhere.
#![forbid(unsafe_code)]

mod parse;

pub use parse::UnitError;

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A point in time or a span of time, in picoseconds (u64: up to 213 days).
///
/// Picoseconds because one byte at 10 Gbit/s lasts 800 ps and at 400 Gbit/s 20 ps: serialization stays exact.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of a run, and an empty span.
    pub const ZERO: Time = Time(0);
    /// Later than any event: "no deadline".
    pub const NEVER: Time = Time(u64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Time {
        Time(s * 1_000_000_000_000)
    }
    /// `s` seconds, rounded to the nearest picosecond; negative and non-finite values give zero.
    pub fn from_secs_f64(s: f64) -> Time {
        // A float-to-integer cast saturates: NaN and negatives become 0, what is too large becomes u64::MAX.
        Time((s * 1e12 + 0.5) as u64)
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole microseconds, rounded down: the clock that algorithms see.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds, for reports and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// `self - earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
    /// `self + span`, or [`Time::NEVER`].
    #[must_use]
    pub const fn saturating_add(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, span: Time) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, span: Time) {
        self.0 += span.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, earlier: Time) -> Time {
        Time(self.0 - earlier.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}

impl Div<u64> for Time {
    type Output = Time;
    fn div(self, n: u64) -> Time {
        Time(self.0 / n)
    }
}

/// A rate in bits per second.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Rate {
        Rate(bits)
    }
    /// `mbit` million bits per second.
    pub const fn from_mbps(mbit: u64) -> Rate {
        Rate(mbit * 1_000_000)
    }
    /// `gbit` thousand million bits per second.
    pub const fn from_gbps(gbit: u64) -> Rate {
        Rate(gbit * 1_000_000_000)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Serialization time of `bytes`, rounded up to a picosecond; the rate must not be zero.
    pub const fn serialization(self, bytes: u64) -> Time {
        let ps = (bytes as u128 * 8_000_000_000_000).div_ceil(self.0 as u128);
        Time(ps as u64)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// `n` bytes.
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Prints `value` (an exact integer in the smallest unit) in the largest unit that is at most it: `12.5 ms`.
fn fmt_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let &(scale, unit) =
        units.iter().find(|(scale, _)| value >= *scale).unwrap_or(units.last().expect("a unit table is never empty"));
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole} {unit}");
    }
    let digits = format!("{:0width$}", rest, width = scale.ilog10() as usize);
    write!(f, "{whole}.{} {unit}", digits.trim_end_matches('0'))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] =
            [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
        match *self {
            Time::NEVER => f.write_str("never"),
            Time::ZERO => f.write_str("0 s"),
            _ => fmt_scaled(f, self.0, &UNITS),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        fmt_scaled(f, self.0, &UNITS)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")];
        fmt_scaled(f, self.0, &UNITS)
    }
}

macro_rules! debug_as_display {
    ($($type:ty),*) => {$(
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_as_display!(Time, Rate, Bytes);
