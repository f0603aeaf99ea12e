//! What hosts send to each other, by racks and size: not for decisions, but for a scenario of the fleet's network.

use bus::Telemetry;
use policy::Transfers;
use std::collections::BTreeMap;
use units::{Bytes, Time};

/// Most combinations of sending rack, receiving rack and size; further ones are left out.
const COMBINATIONS_MAX: usize = 20_480;
/// After so many periods what was counted has half its weight.
const HALF_LIFE: f64 = 10.0;
/// Combinations of fewer transfers than this are forgotten.
const FLOWS_MIN: f64 = 0.01;

/// Sums over about the last ten periods.
#[derive(Debug, Default)]
pub struct Sent {
    /// By sending rack, receiving rack, and the name of the size.
    sums: BTreeMap<[String; 3], Sum>,
    /// Time over which was counted.
    seconds: f64,
}

#[derive(Debug, Default)]
struct Sum {
    flows: f64,
    bytes: f64,
}

impl Sent {
    /// Adds connections that have ended: each end reports what it has sent itself, so none is counted twice.
    pub fn add(&mut self, rack: &str, kind: &Telemetry) {
        let key = [rack.to_string(), kind.remote_rack.clone(), kind.size.clone()];
        if kind.bytes == 0 || (self.sums.len() >= COMBINATIONS_MAX && !self.sums.contains_key(&key)) {
            return;
        }
        let sum = self.sums.entry(key).or_default();
        sum.flows += kind.flows as f64;
        sum.bytes += kind.bytes as f64;
    }

    /// At the end of a period: what is known so far.
    pub fn at_end_of(&mut self, period: Time) -> Vec<Transfers> {
        self.seconds += period.as_secs_f64();
        let seconds = self.seconds;
        let known = self.sums.iter().map(|([from, to, _], sum)| Transfers {
            from: from.clone(),
            to: to.clone(),
            starts: sum.flows / seconds,
            size: Bytes::new(((sum.bytes / sum.flows).round() as u64).max(1)),
        });
        let known = known.collect();
        let weight = libm::exp2(-1.0 / HALF_LIFE);
        self.seconds *= weight;
        for sum in self.sums.values_mut() {
            sum.flows *= weight;
            sum.bytes *= weight;
        }
        self.sums.retain(|_, sum| sum.flows >= FLOWS_MIN);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(to: &str, size: &str, flows: u64, bytes: u64) -> Telemetry {
        Telemetry { remote_rack: to.into(), size: size.into(), flows, bytes, ..Telemetry::default() }
    }

    #[test]
    fn rates_follow_what_is_reported_and_forget_what_is_not() {
        let (mut sent, period) = (Sent::default(), Time::from_secs(10));
        for _ in 0..200 {
            sent.add("r1", &kind("r2", "under 10 kB", 30, 30_000));
            sent.add("r1", &kind("r2", "under 10 kB", 20, 70_000));
            sent.add("r2", &kind("r1", "under 10 kB", 7, 0));
            sent.at_end_of(period);
        }
        sent.add("r1", &kind("r2", "under 10 kB", 50, 100_000));
        let known = sent.at_end_of(period);
        assert_eq!(known.len(), 1, "what carried nothing is no transfer");
        assert!((known[0].starts - 5.0).abs() < 1e-9, "{}", known[0].starts);
        assert_eq!(known[0].size, Bytes::new(2000));
        let later: Vec<_> = (0..10).map(|_| sent.at_end_of(period)).collect();
        assert!((2.3..2.7).contains(&later[9][0].starts), "half of it is forgotten: {}", later[9][0].starts);
        (0..300).for_each(|_| drop(sent.at_end_of(period)));
        assert!(sent.sums.is_empty());
    }

    #[test]
    fn names_of_sizes_that_no_agent_uses_take_bounded_memory() {
        let mut sent = Sent::default();
        (0..100_000).for_each(|i| sent.add("r1", &kind("r2", &i.to_string(), 1, 1)));
        assert_eq!(sent.sums.len(), COMBINATIONS_MAX);
    }
}
