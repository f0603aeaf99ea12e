//! The times of lines in a time zone, for people.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A time zone by its IANA name, from the database that is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Default for Zone {
    /// UTC.
    fn default() -> Zone {
        Zone(TimeZone::UTC)
    }
}

impl Zone {
    /// `None`: there is none of this name.
    pub fn named(name: &str) -> Option<Zone> {
        TimeZoneDatabase::bundled().get(name).ok().map(Zone)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// `2026-03-01 13:00:00`.
    pub fn show(&self, at: Timestamp) -> String {
        self.0.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_clocks_there_show_them() {
        let at: Timestamp = "2026-07-01T12:00:00.250Z".parse().unwrap();
        assert_eq!(Zone::default().show(at), "2026-07-01 12:00:00");
        assert_eq!(Zone::named("Europe/Zurich").unwrap().show(at), "2026-07-01 14:00:00");
        assert_eq!(Zone::named("europe/zurich").unwrap().name(), "Europe/Zurich");
        assert_eq!(Zone::named("Zurich"), None);
    }
}
