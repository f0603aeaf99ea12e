//! The clock of deadlines: the time since boot, sleep included (CLOCK_BOOTTIME). Setting the wall clock does not change it.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::Time;

/// [`Time`] counts to 213 days; before that a daemon starts a new clock, and forgets all times of the old one.
const OLD: Duration = Duration::from_secs(200 * 86_400);

/// Counts from when it was begun, since a machine may have been up for longer than [`Time`] counts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Since the machine started.
    begun: Duration,
}

impl Clock {
    /// Begins now.
    pub fn begin() -> Clock {
        Clock { begun: since_boot() }
    }

    /// Since it was begun.
    pub fn now(self) -> Time {
        Time::from_ns(since_boot().saturating_sub(self.begun).as_nanos() as u64)
    }

    /// A time of this clock, counted from the start of the machine, as the kernel does.
    pub fn boot_time(self, at: Time) -> Duration {
        self.begun + Duration::from_nanos(at.as_ns())
    }

    /// Whether a new one is due.
    pub fn is_old(self) -> bool {
        since_boot().saturating_sub(self.begun) > OLD
    }
}

/// The time of day, for what has an expiry: seconds since 1970.
pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_may_be_up_for_longer_than_time_counts() {
        let clock = Clock { begun: Duration::from_secs(1000 * 86_400) };
        assert_eq!(clock.now(), Time::ZERO);
        assert_eq!(clock.boot_time(Time::from_secs(5)), Duration::from_secs(1000 * 86_400 + 5));
        assert!(!Clock::begin().is_old() && Clock::begin().now() < Time::from_secs(60));
    }
}
