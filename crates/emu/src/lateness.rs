//! How late the machine was.

use hdrhistogram::Histogram;
use units::Time;

/// What is later counts as this late.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// How late packets were handed to their hosts, and how long they may have waited to be read.
pub struct Lateness {
    /// Nanoseconds from a packet's arrival in the model to when its handing over begins; the system call is the host's.
    release: Histogram<u64>,
    /// Nanoseconds between the look at the ports that found a packet and the look before.
    reading: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let new = || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("three digits are allowed");
        Lateness { release: new(), reading: new() }
    }
}

impl Lateness {
    /// A packet was handed over this much later than the model says.
    #[inline]
    pub fn record(&mut self, late: Time) {
        self.release.saturating_record(late.as_ns());
    }

    /// A packet was found this long after the last look.
    pub fn record_reading(&mut self, gap: Time) {
        self.reading.saturating_record(gap.as_ns());
    }

    /// Packets handed over.
    pub fn packets(&self) -> u64 {
        self.release.len()
    }

    /// What `percent` % of the packets were not later than.
    pub fn percentile(&self, percent: f64) -> Time {
        Time::from_ns(self.release.value_at_percentile(percent))
    }

    /// The latest of all.
    pub fn max(&self) -> Time {
        Time::from_ns(self.release.max())
    }

    /// What `percent` % of the reads waited at most.
    pub fn reading_percentile(&self, percent: f64) -> Time {
        Time::from_ns(self.reading.value_at_percentile(percent))
    }
}
