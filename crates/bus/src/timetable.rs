//! When a host reports, and to which epoch belongs what it has counted. No clock: times are arguments.

use crate::report::SEVERAL;
use policy::{Beacon, place_of};
use units::Time;

/// Periods that are shorter are reported on each second.
pub const EACH_SECOND_BELOW: Time = Time::from_secs(10);
/// How often a host reports then, and where the Oracle announces no periods.
const SECOND: Time = Time::from_secs(1);
/// Reports on a period come within this part of the next.
const SPREAD: u64 = 4;
/// How long after it has asked an agent waits for the first beacon. An Oracle of an earlier version sends none.
const PATIENCE: Time = Time::from_secs(3);

/// A host's times of reports: one in each period, in its first quarter, at a time that follows from the host's name, so that a fleet's
/// reports do not come at once. In short periods, and without any, one each second.
///
/// At each beacon the caller ends what it counts of connections, and begins anew: [`Timetable::heard`] returns the epoch of what has ended.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// From 0 to 2^64: the host's place in the quarter of a period.
    place: u64,
    beacon: Option<Beacon>,
    /// In which period the caller counts; `None`: not known yet, or there are none.
    epoch: Option<u64>,
    /// Has asked the Oracle at this time.
    asked_at: Time,
    /// There has been a beacon.
    announced: bool,
    report_at: Time,
}

impl Timetable {
    /// Of a host that has not reached the Oracle yet.
    pub fn new(host: &str) -> Timetable {
        let (beacon, epoch, zero) = (None, None, Time::ZERO);
        Timetable { place: place_of("report", host), beacon, epoch, asked_at: zero, announced: false, report_at: zero }
    }

    /// The host asks: it reports at once.
    pub fn asked(&mut self, now: Time) {
        (self.beacon, self.asked_at, self.report_at) = (None, now, now);
    }

    /// Takes the last beacon that was heard. Returns the epoch of what was counted so far, if another period has begun with it.
    pub fn heard(&mut self, now: Time, beacon: Option<Beacon>) -> Option<u64> {
        let beacon = beacon.filter(|_| self.beacon != beacon)?;
        let is_first = self.beacon.is_none();
        self.beacon = Some(beacon);
        self.announced = true;
        if beacon.period < EACH_SECOND_BELOW {
            self.report_at = self.report_at.min(now + SECOND);
        } else if is_first {
            // what could not be known at the first report, such as rates
            self.report_at = now + SECOND;
        } else {
            self.report_at = now + self.offset(beacon.period);
        }
        let before = self.epoch.replace(beacon.epoch);
        if before == Some(beacon.epoch) {
            return None;
        }
        // one that was missed leaves what ended in two periods together
        Some(before.filter(|before| before + 1 == beacon.epoch).unwrap_or(SEVERAL))
    }

    fn offset(&self, period: Time) -> Time {
        let quarter = period.as_ps() / SPREAD;
        Time::from_ps(((u128::from(quarter) * u128::from(self.place)) >> 64) as u64)
    }

    /// Whether a report is due.
    pub fn is_due(&self, now: Time) -> bool {
        self.report_at <= now
    }

    /// When the next report is due.
    pub fn next(&self) -> Time {
        self.report_at
    }

    /// Has reported.
    pub fn reported(&mut self, now: Time) {
        let each = match self.beacon {
            Some(beacon) if beacon.period >= EACH_SECOND_BELOW => beacon.period,
            _ => SECOND,
        };
        self.report_at = now + each;
    }

    /// Whether a report is to have what was counted in the current period: of a long one not before it has ended.
    pub fn has_current(&self, now: Time) -> bool {
        match self.beacon {
            Some(beacon) => beacon.period < EACH_SECOND_BELOW,
            // a beacon may come at once, and says what the counts belong to
            None => !self.announced || now >= self.asked_at + PATIENCE,
        }
    }

    /// The epoch of what is counted now, for a report.
    pub fn epoch(&self) -> Option<u64> {
        self.epoch.filter(|_| self.beacon.is_some())
    }

    /// The period, if it is known.
    pub fn period(&self) -> Option<Time> {
        self.beacon.map(|beacon| beacon.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[allow(clippy::unnecessary_wraps, reason = "as a timetable takes it")]
    fn beacon(epoch: u64, period: u64) -> Option<Beacon> {
        Some(Beacon { epoch, period: s(period), oracle: 0 })
    }

    /// The times of its reports up to `end`, if beacons come every `period`.
    fn reports(host: &str, period: u64, end: u64) -> Vec<Time> {
        let mut table = Timetable::new(host);
        table.asked(Time::ZERO);
        let mut times = Vec::new();
        for ms in (0..end * 1000).step_by(100) {
            let now = Time::from_ms(ms);
            if ms % (period * 1000) == 300 {
                table.heard(now, beacon(1 + ms / (period * 1000), period));
            }
            if table.is_due(now) {
                times.push(now);
                table.reported(now);
            }
        }
        times
    }

    #[test]
    fn a_host_reports_once_a_period_in_its_first_quarter() {
        let mut all = Vec::new();
        for i in 0..200 {
            let times = reports(&format!("h{i}"), 60, 600);
            // when it comes, a second later, and then in each of nine periods
            assert_eq!((times.len(), times[0]), (11, Time::ZERO), "{times:?}");
            for (period, at) in times[2..].iter().enumerate() {
                let since = at.saturating_sub(s(60) * (period as u64 + 1));
                assert!(since <= s(15) + Time::from_ms(400), "{since}");
            }
            all.push(times[5]);
        }
        // spread: no second has more than a few of two hundred
        let most = (0..15)
            .map(|second| all.iter().filter(|at| at.as_ns() / 1_000_000_000 == 240 + second).count())
            .max()
            .unwrap();
        assert!(most < 30, "{most} in one second");
    }

    #[test]
    fn short_periods_and_oracles_without_any_get_a_report_a_second() {
        assert_eq!(reports("h", 5, 60).len(), 60);
        let mut table = Timetable::new("h");
        table.asked(s(0));
        let due = (0..60).filter(|second| {
            let due = table.is_due(s(*second));
            table.reported(s(*second));
            due && table.has_current(s(*second)) && table.epoch().is_none()
        });
        assert_eq!(due.count(), 60);
    }

    #[test]
    fn what_was_counted_belongs_to_the_period_before() {
        let mut table = Timetable::new("h");
        table.asked(s(0));
        assert!(table.has_current(s(0)), "there was never a beacon");
        assert_eq!(table.heard(s(1), beacon(7, 60)), Some(SEVERAL), "what was before is of nobody's period");
        assert_eq!(table.heard(s(2), beacon(7, 60)), None);
        assert!(!table.has_current(s(30)));
        assert_eq!((table.heard(s(61), beacon(8, 60)), table.epoch()), (Some(7), Some(8)));
        assert_eq!(table.heard(s(181), beacon(10, 60)), Some(SEVERAL), "9 was not heard");
        // the connection is lost and found within the period
        table.asked(s(190));
        assert_eq!((table.heard(s(190), None), table.has_current(s(191)), table.epoch()), (None, false, None));
        assert_eq!((table.heard(s(192), beacon(10, 60)), table.epoch()), (None, Some(10)));
        // and the next Oracle is of an earlier version
        table.asked(s(200));
        assert!(!table.has_current(s(201)) && table.has_current(s(203)));
        assert_eq!(table.epoch(), None);
    }
}
