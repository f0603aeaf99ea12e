//! Tells restarts of an agent by sysUpTime.

use units::Time;

/// How far an agent's clock may be from where it ought to be: answers are late, and clocks differ.
const TOLERANCE_TICKS: u64 = 500;
/// And this part of the time between two answers.
const DRIFT: u64 = 64;
/// A tick of sysUpTime: 10 ms.
const TICK_NS: u64 = 10_000_000;

/// What is known of an agent's uptime.
#[derive(Debug, Default)]
pub(super) struct Uptime {
    last: Option<(u32, Time)>,
    restarts: u32,
}

impl Uptime {
    /// The agent says that it is up for `ticks` at `now`.
    pub(super) fn heard(&mut self, ticks: u32, now: Time) {
        if let Some((before, then)) = self.last {
            let elapsed = now.saturating_sub(then).as_ns() / TICK_NS;
            // It counts modulo 2^32 (497 days), so the difference is signed and modulo 2^32 too.
            let expected = before.wrapping_add(elapsed as u32);
            let off = (ticks.wrapping_sub(expected) as i32).unsigned_abs();
            if u64::from(off) > TOLERANCE_TICKS + elapsed / DRIFT {
                self.restarts = self.restarts.wrapping_add(1);
            }
        }
        self.last = Some((ticks, now));
    }

    /// A number that changes when the agent restarts or says that a port's counters do (ifCounterDiscontinuityTime).
    pub(super) fn discontinuity(&self, port: u32) -> u64 {
        u64::from(self.restarts) << 32 | u64::from(port)
    }

    /// Times are of a new clock from now on.
    pub(super) fn forget_times(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Restarts after having heard these (ticks, seconds).
    fn restarts(heard: &[(u32, u64)]) -> u32 {
        let mut uptime = Uptime::default();
        for &(ticks, seconds) in heard {
            uptime.heard(ticks, Time::from_secs(seconds));
        }
        uptime.restarts
    }

    #[test]
    fn a_restart_is_seen_also_if_the_uptime_rose() {
        assert_eq!(restarts(&[(1_000_000, 0), (1_001_000, 10)]), 0);
        assert_eq!(restarts(&[(1_000_000, 0), (700, 10)]), 1);
        // 100 s, then a restart, and at 200 s up for 150 s: it rose by 50 s in 200 s
        assert_eq!(restarts(&[(10_000, 0), (15_000, 200)]), 1);
    }

    #[test]
    fn late_answers_and_the_wrap_of_497_days_are_no_restart() {
        assert_eq!(restarts(&[(10_000, 0), (10_000 + 1_000 - 400, 10)]), 0);
        assert_eq!(restarts(&[(u32::MAX - 499, 0), (500, 10)]), 0);
        // a clock that is 1 % slow
        assert_eq!(restarts(&[(0, 0), (99 * 3_600, 3_600)]), 0);
    }

    #[test]
    fn a_restart_and_a_discontinuity_are_different_numbers() {
        let mut uptime = Uptime::default();
        let before = uptime.discontinuity(7);
        assert_ne!(before, uptime.discontinuity(8));
        uptime.heard(1_000_000, Time::from_secs(1));
        uptime.heard(1, Time::from_secs(2));
        assert_ne!(before, uptime.discontinuity(7));
    }
}
