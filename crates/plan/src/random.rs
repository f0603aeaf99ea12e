//! Random numbers of the traffic: from the run's seed, the same on every machine.

use net::SplitMix64;
use units::Time;

/// A stream of its own for each traffic entry, so that adding one does not change what the others draw.
pub struct Random(SplitMix64);

impl Random {
    /// Stream number `stream` of the run's `seed`. The network's own streams are numbered from 0; these from 2^32.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(SplitMix64::new(seed, (1 << 32) + stream))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Uniform in `0..n`, `n` up to 2^32.
    pub fn below(&mut self, n: u32) -> u32 {
        (self.unit() * f64::from(n)) as u32
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: Time) -> Time {
        Time::from_ps((-libm::log(1.0 - self.unit()) * mean.as_ps() as f64) as u64)
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        (self.unit() * 4_294_967_296.0) as u32
    }

    /// A uniformly random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}
