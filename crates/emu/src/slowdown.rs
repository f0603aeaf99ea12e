//! [`Slowdown`]: a network that is emulated more slowly than real time.
//!
//! A link of a tenth of the rate with ten times the delay holds as many packets, so TCP with timers ten times as long behaves on it as
//! on the original, and a machine has ten times as long for each packet. The network's clock runs slowly; the model, the applications
//! and all results stay in the original's units. What the kernel counts in real time is converted where it is set and read.

use std::num::NonZeroU32;
use std::time::Duration;
use units::{Rate, Time};

/// How many times slower than real time a network runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slowdown(NonZeroU32);

impl Slowdown {
    /// Real time.
    pub const NONE: Slowdown = Slowdown(NonZeroU32::MIN);
    /// The most: a second of the network takes about a minute.
    pub const MAX: u32 = 64;

    /// `times` as slow as real time; `None` unless that is 1 to [`Slowdown::MAX`].
    pub fn new(times: u32) -> Option<Slowdown> {
        NonZeroU32::new(times).filter(|times| times.get() <= Slowdown::MAX).map(Slowdown)
    }

    /// How many times.
    pub fn times(self) -> u32 {
        self.0.get()
    }

    /// The network is slower than real time.
    pub fn is_slower(self) -> bool {
        self > Slowdown::NONE
    }

    /// How long a span of the network's time takes.
    pub fn real(self, time: Time) -> Time {
        Time::from_ps(time.as_ps().saturating_mul(u64::from(self.times())))
    }

    /// The same for the system's calls.
    pub fn duration(self, time: Time) -> Duration {
        Duration::from_nanos(self.real(time).as_ns())
    }

    /// The span of the network's time that a real one is.
    pub fn of_real(self, time: Time) -> Time {
        time / u64::from(self.times())
    }

    /// A rate of the network in real time.
    pub fn real_rate(self, rate: Rate) -> Rate {
        Rate::from_bps((rate.as_bps() / u64::from(self.times())).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_multiplied_and_rates_divided() {
        let eight = Slowdown::new(8).expect("it is in range");
        assert_eq!(eight.real(Time::from_us(100)), Time::from_us(800));
        assert_eq!(eight.of_real(Time::from_us(800)), Time::from_us(100));
        assert_eq!(eight.duration(Time::from_ms(1)), Duration::from_millis(8));
        assert_eq!(eight.real_rate(Rate::from_gbps(10)), Rate::from_mbps(1250));
        assert_eq!(eight.real(Time::NEVER), Time::NEVER);
        assert!(eight.is_slower() && !Slowdown::NONE.is_slower());
        assert_eq!([Slowdown::new(0), Slowdown::new(65)], [None, None]);
    }
}
