//! Whether a target's clock runs, or was set.

use super::store::Stamp;
use units::Time;

/// A timestamp may be so far ahead of where the clock was: timestamps are of different processes of a switch.
const AHEAD_NS: i128 = 2_000_000_000;
/// And so far behind: of a notification that waited in a slow connection.
const BEHIND_NS: i128 = 60_000_000_000;

/// [`Time`] counts to 213 days; a longer session begins a new generation.
const LONG_NS: i128 = 200 * 86_400 * 1_000_000_000;

/// A target's clock against this machine's.
#[derive(Debug, Default)]
pub(super) struct TargetClock {
    /// The target's time less this machine's, of the notification that came with the least delay.
    offset: Option<i128>,
    /// How many times it was set.
    generation: u32,
    /// Times are counted from here: before every timestamp of this generation that is used.
    origin: i128,
}

impl TargetClock {
    /// A counter with the timestamp `ns` came at `now`. Returns the clock's generation.
    pub(super) fn heard(&mut self, ns: i64, now: Time) -> u32 {
        let ns = i128::from(ns);
        let offset = ns - i128::from(now.as_ns());
        match self.offset {
            Some(before) if offset > before + AHEAD_NS || offset < before - BEHIND_NS || ns - self.origin > LONG_NS => {
                self.generation = self.generation.wrapping_add(1);
                self.offset = Some(offset);
                self.origin = ns - BEHIND_NS;
            }
            None => {
                self.offset = Some(offset);
                self.origin = ns - BEHIND_NS;
            }
            before => self.offset = before.max(Some(offset)),
        }
        self.generation
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// A timestamp as a time; `None` if it is of before the clock was set.
    pub(super) fn time(&self, stamp: Stamp) -> Option<Time> {
        let ns = u64::try_from(i128::from(stamp.ns) - self.origin).ok()?;
        (stamp.generation == self.generation && i128::from(ns) <= LONG_NS).then(|| Time::from_ns(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_notification_is_no_step_and_a_set_clock_is() {
        let mut clock = TargetClock::default();
        let second = 1_000_000_000;
        let epoch = 1_790_000_000 * second;
        let mut at = |target: i64, here: u64| clock.heard(epoch + target * second, Time::from_secs(here));
        assert_eq!(at(10, 0), 0);
        assert_eq!(at(20, 10), 0);
        assert_eq!(at(30, 50), 0, "30 s late");
        assert_eq!(at(60, 51), 0, "and what waited behind it");
        assert_eq!(at(86_470, 60), 1, "a day ahead");
        assert_eq!(at(86_480, 70), 1);
        assert_eq!(at(90, 80), 2, "set right");
        assert_eq!(at(100, 90), 2);
        assert_eq!(clock.heard(i64::MIN, Time::ZERO), 3);
        assert_eq!(clock.heard(i64::MAX, Time::ZERO), 4);
    }
}
