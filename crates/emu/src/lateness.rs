//! The machine's lateness.

use hdrhistogram::Histogram;
use units::Time;

/// Longer delays count as this.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// A distribution of delays, exact to three digits of their nanoseconds.
pub struct Delays(Histogram<u64>);

impl Default for Delays {
    fn default() -> Delays {
        Delays(Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("three digits are allowed"))
    }
}

impl Delays {
    /// Adds one.
    #[inline]
    pub fn record(&mut self, delay: Time) {
        self.0.saturating_record(delay.as_ns());
    }

    /// Their number.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The percentile `percent`.
    pub fn percentile(&self, percent: f64) -> Time {
        Time::from_ns(self.0.value_at_percentile(percent))
    }

    /// The longest.
    pub fn max(&self) -> Time {
        Time::from_ns(self.0.max())
    }
}

/// The network's lateness.
#[derive(Default)]
pub struct Lateness {
    /// From each packet's arrival in the model to the start of its delivery to the host; the system call is the host's time.
    pub release: Delays,
    /// Between the poll of the ports that found a packet and the poll before.
    pub reading: Delays,
}
