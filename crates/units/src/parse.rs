//! Reading quantities: a decimal number, an optional space, a unit.

use crate::{Bytes, Rate, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::str::FromStr;

/// Why a text is not a quantity; the message says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// There is no number in front.
    #[error("`{0}` does not start with a number; write for example `{1}`")]
    NoNumber(String, &'static str),
    /// A negative quantity.
    #[error("`{0}` is negative; a {1} is zero or more")]
    Negative(String, &'static str),
    /// The unit is missing or not one of those of this kind of quantity.
    #[error("`{text}` has {found}; a {kind} is written with one of {allowed}")]
    Unit {
        /// What was written.
        text: String,
        /// What was found instead of the unit.
        found: String,
        /// time, rate or size.
        kind: &'static str,
        /// The units that are understood.
        allowed: String,
    },
    /// More than fits 64 bits of the smallest unit.
    #[error("`{0}` is too large for a {1}")]
    TooLarge(String, &'static str),
}

struct Kind {
    name: &'static str,
    example: &'static str,
    /// Unit and its size in the smallest unit.
    units: &'static [(&'static str, u64)],
    /// The same as ns-3, tc, iperf and Mininet write them; they are read and not printed.
    others: &'static [(&'static str, u64)],
}

const TIME: Kind = Kind {
    name: "time",
    example: "10 ms",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("µs", 1_000_000),
    ],
    others: &[
        ("μs", 1_000_000),
        ("nsec", 1_000),
        ("usec", 1_000_000),
        ("usecs", 1_000_000),
        ("msec", 1_000_000_000),
        ("msecs", 1_000_000_000),
        ("sec", 1_000_000_000_000),
        ("secs", 1_000_000_000_000),
        ("h", 3_600_000_000_000_000),
    ],
};

const RATE: Kind = Kind {
    name: "rate",
    example: "100 Mbit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
    // tc's `kbps` and `mbps` are bytes a second, everyone else's are bits: `kbps` is left out, and so is all in small letters
    others: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("Kbit", 1_000),
        ("mbit", 1_000_000),
        ("Mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("Gbit", 1_000_000_000),
        ("Tbit", 1_000_000_000_000),
        ("Kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("kb/s", 1_000),
        ("Kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
        ("k", 1_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ],
};

const BYTES: Kind = Kind {
    name: "size",
    example: "64 kB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    // `K` and `M` are powers of 1024 to some programs and of 1000 to others
    others: &[("byte", 1), ("bytes", 1)],
};

/// `text` in the smallest unit of `kind`, rounded to the nearest.
fn parse(text: &str, kind: &Kind) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(UnitError::Negative(text.into(), kind.name));
    }
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..end].replace('_', ""), trimmed[end..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let digits_only = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits_only(whole) || !digits_only(fraction) {
        return Err(UnitError::NoNumber(text.into(), kind.example));
    }
    let Some(&(_, scale)) = kind.units.iter().chain(kind.others).find(|(name, _)| *name == unit) else {
        let found = if unit.is_empty() { "no unit".to_string() } else { format!("the unit `{unit}`") };
        let allowed = kind.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(UnitError::Unit { text: text.into(), found, kind: kind.name, allowed });
    };
    let too_large = || UnitError::TooLarge(text.into(), kind.name);
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    // 18 digits are finer than any unit's smallest part, and their product with a scale fits u128.
    let fraction = &fraction[..fraction.len().min(18)];
    let numerator: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_large())? };
    let denominator = 10u128.pow(fraction.len() as u32);
    let part = ((numerator * u128::from(scale) + denominator / 2) / denominator) as u64;
    whole.checked_mul(scale).and_then(|v| v.checked_add(part)).ok_or_else(too_large)
}

macro_rules! quantity {
    ($type:ident, $kind:expr, $expecting:literal) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<$type, UnitError> {
                parse(text, &$kind).map($type)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<$type, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(Visitor)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    };
}
quantity!(Time, TIME, "a time with its unit in quotes, such as \"10 ms\"");
quantity!(Rate, RATE, "a rate with its unit in quotes, such as \"100 Mbit/s\"");
quantity!(Bytes, BYTES, "a size with its unit in quotes, such as \"64 kB\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_and_printed_exactly() {
        assert_eq!("100 Mbit/s".parse::<Rate>().unwrap(), Rate::from_mbps(100));
        assert_eq!("0.001ms".parse::<Time>().unwrap(), Time::from_us(1));
        assert_eq!("1.5 us".parse::<Time>().unwrap(), Time::from_ns(1500));
        assert_eq!("131072 B".parse::<Bytes>().unwrap(), "128 KiB".parse().unwrap());
        for text in ["12.5 ms", "1 us", "999 ps", "60 s", "0 s"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!(Rate::from_mbps(2500).to_string(), "2.5 Gbit/s");
    }

    #[test]
    fn units_of_other_programs_are_read_and_written_as_ours() {
        let rates = ["20Mbps", "20mbit", "20Mbit", "20M", "20 Mb/s", "20000Kbps", "0.02G"];
        for text in rates {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), "20 Mbit/s", "{text}");
        }
        assert_eq!(["10G", "10Gbit", "10Gbps"].map(|text| text.parse::<Rate>().unwrap()), [Rate::from_gbps(10); 3]);
        for (text, ours) in [("5ms", "5 ms"), ("1 usec", "1 us"), ("3msec", "3 ms"), ("2sec", "2 s"), ("1h", "60 min")]
        {
            let time = text.parse::<Time>().unwrap();
            assert_eq!(time, ours.parse().unwrap(), "{text}");
        }
        assert_eq!("1500 bytes".parse::<Bytes>().unwrap(), "1500 B".parse().unwrap());
        // what is bytes a second to tc and bits to others
        for text in ["20mbps", "20kbps"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["64K", "1M"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn wrong_quantities_get_a_message() {
        let message = |text: &str| text.parse::<Time>().unwrap_err().to_string();
        assert!(message("10 Mbit/s").contains("`Mbit/s`"));
        assert!(message("10").contains("no unit"));
        assert!(message("-1 ms").contains("negative"));
        assert!(message("soon").contains("10 ms"));
        assert!(message("99999999999999999999 s").contains("too large"));
        assert!(message("1e5 s").contains("the unit `e5 s`"));
    }

    #[test]
    fn serialization_rounds_up() {
        // 1538 bytes at 10 Gbit/s: 1538 * 800 ps.
        assert_eq!(Rate::from_gbps(10).serialization(1538), Time::from_ps(1_230_400));
        // One byte at 3 bit/s: 8/3 s, up to the next picosecond.
        assert_eq!(Rate::from_bps(3).serialization(1), Time::from_ps(2_666_666_666_667));
    }
}
