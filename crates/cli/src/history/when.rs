//! Times that a user writes, and the machine's time zone.

use audit::{Timestamp, Zone};
use std::{env, fs};

/// Seconds of each unit.
const UNITS: [(&str, i64); 9] = [
    ("s", 1),
    ("sec", 1),
    ("m", 60),
    ("min", 60),
    ("h", 3600),
    ("hours", 3600),
    ("d", 86_400),
    ("days", 86_400),
    ("w", 604_800),
];

/// A time ago, or a time.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let Some(seconds) = seconds(text) else {
        return Err("no time; write a time ago, such as `10min`, `1h` or `7d`, or a time with its zone, such as \
                    `2026-03-01T08:00:00Z`"
            .to_string());
    };
    let ago = now.as_second().checked_sub(seconds).and_then(|second| Timestamp::from_second(second).ok());
    ago.ok_or_else(|| "that is too long ago".to_string())
}

/// The seconds of `90s`, `10 min`, `1h`, `7d`, `2w`.
pub fn seconds(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, each) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<i64>().ok()?.checked_mul(*each)
}

/// The zone of TZ, or of /etc/localtime; UTC where neither names one.
pub fn local_zone() -> Zone {
    let of_file = || fs::read_link("/etc/localtime").ok().and_then(|path| path.to_str().map(str::to_string));
    let name = env::var("TZ").ok().filter(|name| !name.is_empty()).or_else(of_file).unwrap_or_default();
    let name = name.rsplit_once("zoneinfo/").map_or(name.as_str(), |(_, name)| name).trim_start_matches(':');
    Zone::named(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_ago_and_times_are_read() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let is = |text: &str, at: &str| assert_eq!(parse(text, now), Ok(at.parse().unwrap()), "{text}");
        is("90s", "2026-03-01T11:58:30Z");
        is("10 min", "2026-03-01T11:50:00Z");
        is("1h", "2026-03-01T11:00:00Z");
        is("7d", "2026-02-22T12:00:00Z");
        is("2w", "2026-02-15T12:00:00Z");
        is("2026-02-28T23:00:00+01:00", "2026-02-28T22:00:00Z");
        for wrong in [
            "",
            "h",
            "1",
            "-1h",
            "1.5h",
            "1 y",
            "yesterday",
            "2026-03-01",
            "99999999999999999999h",
            "9223372036854775807d",
        ] {
            assert!(parse(wrong, now).unwrap_err().contains("write a time ago"), "{wrong}");
        }
        assert_eq!(parse("9223372036854775s", now).unwrap_err(), "that is too long ago");
    }
}
