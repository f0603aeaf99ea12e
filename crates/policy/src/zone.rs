//! The time zone of a policy: from an instant to the time of day there.
//!
//! The IANA database is built in, so what a machine has installed does not matter. Nothing here reads a clock.

use document::nearest;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A time zone, by its IANA name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// A time of day and a day of the week.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalTime {
    /// Hours from midnight, 0 to 24.
    pub hour: f64,
    /// 1 is Monday, 7 is Sunday.
    pub weekday: u8,
}

impl Default for Zone {
    /// UTC.
    fn default() -> Zone {
        Zone(TimeZone::UTC)
    }
}

impl Zone {
    /// The zone of an IANA name, such as `Europe/Zurich`; capitals do not matter.
    ///
    /// # Errors
    /// There is none; the text names the nearest.
    pub fn named(name: &str) -> Result<Zone, String> {
        let zones = TimeZoneDatabase::bundled();
        zones.get(name).map(Zone).map_err(|_| {
            let names: Vec<String> = zones.available().map(|name| name.to_string()).collect();
            let example = "time zones have IANA names, such as \"Europe/Zurich\" or \"UTC\"";
            match meant(name, &names) {
                Some(near) => format!("did you mean `{near}`? {example}"),
                None => example.to_string(),
            }
        })
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The time of day at an instant, in seconds since 1970 (UTC).
    pub fn at(&self, unix_s: i64) -> LocalTime {
        let instant = Timestamp::from_second(unix_s).unwrap_or(Timestamp::UNIX_EPOCH);
        let local = self.0.to_datetime(instant);
        let seconds = f64::from(local.hour()) * 3600.0 + f64::from(local.minute()) * 60.0 + f64::from(local.second());
        LocalTime { hour: seconds / 3600.0, weekday: local.weekday().to_monday_one_offset() as u8 }
    }
}

/// The name that was probably meant: the city alone, or one with a few letters wrong.
fn meant<'a>(written: &str, names: &'a [String]) -> Option<&'a str> {
    let city = |name: &str| name.rsplit('/').next().unwrap_or(name).replace('_', " ").to_lowercase();
    let wanted = city(written);
    let in_city = names.iter().find(|name| city(name) == wanted).map(String::as_str);
    in_city.or_else(|| nearest(written, names.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since 1970 by `date -u -d "2026-03-29 00:59:59" +%s`, and what `TZ=ZONE date -d @SECONDS "+%u %H:%M:%S"` says.
    fn is(zone: &str, unix_s: i64, weekday: u8, (h, m, s): (u32, u32, u32)) {
        let local = Zone::named(zone).unwrap().at(unix_s);
        let hour = f64::from(h * 3600 + m * 60 + s) / 3600.0;
        assert_eq!((local.weekday, local.hour), (weekday, hour), "{zone} at {unix_s}");
    }

    #[test]
    fn the_hour_that_spring_skips_does_not_come() {
        is("Europe/Zurich", 1_774_745_999, 7, (1, 59, 59));
        is("Europe/Zurich", 1_774_746_000, 7, (3, 0, 0));
    }

    #[test]
    fn the_hour_that_autumn_repeats_comes_twice() {
        // 2026-10-25 00:30 and 01:30 UTC
        is("Europe/Zurich", 1_792_888_200, 7, (2, 30, 0));
        is("Europe/Zurich", 1_792_891_800, 7, (2, 30, 0));
    }

    #[test]
    fn south_of_the_equator_summer_is_in_january() {
        // noon UTC of the 15th of January and of July 2026
        is("Australia/Sydney", 1_768_478_400, 4, (23, 0, 0));
        is("Australia/Sydney", 1_784_116_800, 3, (22, 0, 0));
    }

    #[test]
    fn zones_may_be_half_an_hour_or_a_quarter_apart() {
        is("Asia/Kolkata", 1_768_478_400, 4, (17, 30, 0));
        is("Asia/Kathmandu", 1_768_478_400, 4, (17, 45, 0));
        // whose daylight saving is half an hour: 10:30 in winter, 11 in summer
        is("Australia/Lord_Howe", 1_768_478_400, 4, (23, 0, 0));
        is("Australia/Lord_Howe", 1_784_116_800, 3, (22, 30, 0));
    }

    #[test]
    fn the_day_of_the_week_is_the_zones_own() {
        // 2026-01-15 23:30 UTC, a Thursday
        is("UTC", 1_768_519_800, 4, (23, 30, 0));
        is("Pacific/Kiritimati", 1_768_519_800, 5, (13, 30, 0));
        is("Pacific/Pago_Pago", 1_768_519_800, 4, (12, 30, 0));
        assert_eq!(Zone::default().at(1_768_519_800), Zone::named("UTC").unwrap().at(1_768_519_800));
    }

    #[test]
    fn no_instant_is_out_of_range() {
        for unix_s in [i64::MIN, -1, 0, i64::MAX] {
            let local = Zone::named("Asia/Kathmandu").unwrap().at(unix_s);
            assert!((0.0..24.0).contains(&local.hour) && (1..=7).contains(&local.weekday), "{local:?}");
        }
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_one() {
        let help = |name| Zone::named(name).unwrap_err();
        for (written, near) in [
            ("Europe/Zuerich", "`Europe/Zurich`"),
            ("Zurich", "`Europe/Zurich`"),
            ("America/NewYork", "`America/New_York`"),
            ("New York", "`America/New_York`"),
        ] {
            assert!(help(written).contains(near), "{written}: {}", help(written));
        }
        assert_eq!(Zone::named("europe/zurich").unwrap().name(), "Europe/Zurich");
        assert!(help("").contains("IANA"));
    }
}
