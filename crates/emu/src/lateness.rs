//! How late the machine was.

use hdrhistogram::Histogram;
use units::Time;

/// What is later counts as this late.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// A distribution of delays, exact to three digits of their nanoseconds.
pub struct Delays(Histogram<u64>);

impl Default for Delays {
    fn default() -> Delays {
        Delays(Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("three digits are allowed"))
    }
}

impl Delays {
    /// One more.
    #[inline]
    pub fn record(&mut self, delay: Time) {
        self.0.saturating_record(delay.as_ns());
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What `percent` % of them were not longer than.
    pub fn percentile(&self, percent: f64) -> Time {
        Time::from_ns(self.0.value_at_percentile(percent))
    }

    /// The longest.
    pub fn max(&self) -> Time {
        Time::from_ns(self.0.max())
    }
}

/// How late the network was.
#[derive(Default)]
pub struct Lateness {
    /// From each packet's arrival in the model to when its handing over to the host begins; the system call is the host's.
    pub release: Delays,
    /// Between the look at the ports that found a packet and the look before.
    pub reading: Delays,
}
