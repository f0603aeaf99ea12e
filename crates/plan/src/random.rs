//! Random numbers of the traffic: from the run's seed, the same on every machine.

#[cfg(test)]
mod tests;

use net::{SplitMix64, mix64};
use units::Time;

/// A stream of random numbers. Each traffic entry, each of its jobs and each flow has one of its own, selected by its name:
/// its numbers depend neither on other entries nor on the order of the file.
pub struct Random(SplitMix64);

impl Random {
    /// The stream of the traffic entry called `entry`, in the run of `seed`.
    pub fn of_entry(seed: u64, entry: &str) -> Random {
        Random(SplitMix64::new(seed, name_hash(entry)))
    }

    /// The stream of job number `job` of an entry.
    pub fn of_job(seed: u64, entry: &str, job: u64) -> Random {
        Random(SplitMix64::new(seed, FlowName::new(entry, job).apart(0x4a)))
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

/// A flow's name, independent of its number in the run: its traffic entry's name and its place among the entry's flows.
/// Its random numbers and its path among equals follow from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowName(u64);

impl FlowName {
    /// Flow number `number`, from 0, of the entry called `entry`.
    pub fn new(entry: &str, number: u64) -> FlowName {
        FlowName(mix64(name_hash(entry).wrapping_add(number)))
    }

    /// The value that ECMP hashes for one direction of the flow, in place of its addresses and ports.
    pub fn path_hash(self, forward: bool) -> u32 {
        (self.apart(u64::from(forward)) >> 32) as u32
    }

    /// The stream of the flow's two ends: their initial sequence numbers, their algorithms' random numbers.
    pub fn random(self, seed: u64) -> Random {
        Random(SplitMix64::new(seed, self.apart(0x7c)))
    }

    /// The stream of the flow's application.
    pub fn application_random(self, seed: u64) -> Random {
        Random(SplitMix64::new(seed, self.apart(0xa9)))
    }

    /// A number for one `purpose`, unrelated to those for others.
    fn apart(self, purpose: u64) -> u64 {
        mix64(self.0 ^ mix64(purpose + 1))
    }
}

/// FNV-1a.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
