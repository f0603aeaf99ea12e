//! The clock of deadlines: the time since boot, sleep included (CLOCK_BOOTTIME). Setting the wall clock does not change it.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::Time;

/// [`Time`] counts to 213 days; before that a daemon starts a new clock, and forgets all times of the old one.
const OLD: Duration = Duration::from_secs(200 * 86_400);

/// Counts from when it was begun, since a machine may have been up for longer than [`Time`] counts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Since the machine started.
    begun: Duration,
    /// `None`: the kernel's clocks.
    hand: Option<Hand>,
}

/// A machine's clocks that are moved by hand, where a network is simulated. Copies show the same. Its 16 bytes are never freed, so that
/// clocks are plain numbers.
#[derive(Clone, Copy, Debug)]
pub struct Hand(&'static Shown);

#[derive(Debug, Default)]
struct Shown {
    boot_ns: AtomicU64,
    unix_s: AtomicU64,
}

impl Default for Hand {
    fn default() -> Hand {
        Hand(Box::leak(Box::default()))
    }
}

impl Hand {
    /// Sets the time since the machine started. It may go back only if the machine starts anew.
    pub fn set(self, since_boot: Duration) {
        self.0.boot_ns.store(since_boot.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Sets the time of day, in seconds since 1970.
    pub fn set_wall(self, unix_s: u64) {
        self.0.unix_s.store(unix_s, Ordering::Relaxed);
    }

    /// A clock that begins now.
    pub fn begin(self) -> Clock {
        Clock { begun: self.since_boot(), hand: Some(self) }
    }

    fn since_boot(self) -> Duration {
        Duration::from_nanos(self.0.boot_ns.load(Ordering::Relaxed))
    }
}

impl Clock {
    /// Begins now.
    pub fn begin() -> Clock {
        Clock { begun: since_boot(), hand: None }
    }

    /// Another one of the same machine, which begins now.
    #[must_use]
    pub fn anew(self) -> Clock {
        Clock { begun: self.since_boot(), hand: self.hand }
    }

    /// Since it was begun.
    pub fn now(self) -> Time {
        Time::from_ns(self.since_boot().saturating_sub(self.begun).as_nanos() as u64)
    }

    /// A time of this clock, counted from the start of the machine, as the kernel does.
    pub fn boot_time(self, at: Time) -> Duration {
        self.begun + Duration::from_nanos(at.as_ns())
    }

    /// A time since the start of the machine, as one of this clock; zero for what was before it was begun.
    pub fn of_boot_time(self, since_boot: Duration) -> Time {
        Time::from_ns(since_boot.saturating_sub(self.begun).as_nanos() as u64)
    }

    /// Whether a new one is due.
    pub fn is_old(self) -> bool {
        self.since_boot().saturating_sub(self.begun) > OLD
    }

    /// The time of day of the same machine, for people and for what has an expiry: seconds since 1970.
    pub fn unix_s(self) -> u64 {
        self.hand.map_or_else(unix_s, |hand| hand.0.unix_s.load(Ordering::Relaxed))
    }

    fn since_boot(self) -> Duration {
        self.hand.map_or_else(since_boot, Hand::since_boot)
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
        let clock = Clock { begun: Duration::from_secs(1000 * 86_400), hand: None };
        assert_eq!(clock.now(), Time::ZERO);
        assert_eq!(clock.boot_time(Time::from_secs(5)), Duration::from_secs(1000 * 86_400 + 5));
        assert!(!Clock::begin().is_old() && Clock::begin().now() < Time::from_secs(60));
    }

    #[test]
    fn a_clock_by_hand_goes_as_it_is_set() {
        let hand = Hand::default();
        hand.set(Duration::from_secs(100));
        let clock = hand.begin();
        hand.set(Duration::from_secs(130));
        hand.set_wall(1_790_000_000);
        assert_eq!((clock.now(), clock.unix_s()), (Time::from_secs(30), 1_790_000_000));
        let later = clock.anew();
        assert_eq!((later.now(), later.boot_time(Time::from_secs(5))), (Time::ZERO, Duration::from_secs(135)));
        assert_eq!(clock.of_boot_time(Duration::from_secs(135)), Time::from_secs(35));
        assert_eq!(later.of_boot_time(Duration::from_secs(100)), Time::ZERO);
    }
}
