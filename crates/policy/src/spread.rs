//! How much the hosts of a side differ, so that a comparison of two sides is not one of hosts.
//!
//! The hosts of each side are in a few groups, and a side's level is computed without each of them in turn (the jackknife). What these levels
//! differ by, beyond what chance does within periods, is how much the side's level depends on which hosts are in it; that does not vanish
//! with time, as the chance of periods does.

use crate::student::student;
use std::collections::BTreeMap;

/// Groups of hosts of a side, at most.
pub const GROUPS: usize = 8;

/// What a side did without one of its groups.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rest {
    /// Completion times, nanoseconds: by the longest of a bin, the longest of the one before and how many there are.
    pub times: BTreeMap<u64, (u64, f64)>,
    /// Data segments sent.
    pub segments: f64,
    /// Of these, retransmissions.
    pub retransmits: f64,
}

impl Rest {
    pub(crate) fn add(&mut self, other: &Rest) {
        for (longest, (shortest, count)) in &other.times {
            self.times.entry(*longest).or_insert((*shortest, 0.0)).1 += count;
        }
        self.segments += other.segments;
        self.retransmits += other.retransmits;
    }

    /// A percentile of completion times, nanoseconds, as if those of a bin were spread over it; `None` of nothing.
    pub(crate) fn percentile(&self, percentile: f64) -> Option<f64> {
        let total: f64 = self.times.values().map(|(_, count)| count).sum();
        let wanted = total * percentile / 100.0;
        let mut below = 0.0;
        for (longest, (shortest, count)) in &self.times {
            if *count > 0.0 && below + count >= wanted {
                let share = ((wanted - below) / count).clamp(0.0, 1.0);
                return Some(*shortest as f64 + (longest.saturating_sub(*shortest)) as f64 * share);
            }
            below += count;
        }
        None
    }
}

/// How a side's level differs without each of its groups, over the pairs so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread {
    /// Hosts of the side, at most.
    hosts: u32,
    /// Bit `i`: there are hosts in group `i`.
    groups: u8,
    n: f64,
    /// By group: sum and sum of squares of how far the level without it is from the mean of these.
    sums: [(f64, f64); GROUPS],
}

/// The variance of a side's level.
struct Variance {
    /// That comes of hosts.
    of_hosts: f64,
    groups: f64,
    hosts: f64,
}

impl Spread {
    /// One more pair: the levels without each group, of which those in `groups` have hosts.
    pub(crate) fn add(&mut self, levels: &[f64; GROUPS], groups: u8, hosts: u32) {
        self.groups |= groups;
        self.hosts = self.hosts.max(hosts);
        self.n += 1.0;
        let is_there = |i: &usize| self.groups >> i & 1 == 1;
        let there: Vec<usize> = (0..GROUPS).filter(is_there).collect();
        let mean = there.iter().map(|i| levels[*i]).sum::<f64>() / there.len().max(1) as f64;
        for i in there {
            let off = levels[i] - mean;
            self.sums[i].0 += off;
            self.sums[i].1 += off * off;
        }
    }

    /// Whether it is a side of one host alone.
    pub(crate) fn is_of_one(&self) -> bool {
        self.groups.is_power_of_two()
    }

    fn variance(&self) -> Option<Variance> {
        let groups = f64::from(self.groups.count_ones());
        if groups < 2.0 || self.n < 2.0 {
            return None;
        }
        let (mut all, mut chance) = (0.0, 0.0);
        for (sum, squares) in self.sums {
            let mean = sum / self.n;
            all += mean * mean;
            chance += (squares - self.n * mean * mean).max(0.0) / (self.n - 1.0) / self.n;
        }
        let jackknife = (groups - 1.0) / groups;
        let (all, chance) = (all * jackknife, chance * jackknife);
        Some(Variance { of_hosts: (all - chance).max(0.0), groups, hosts: f64::from(self.hosts).max(groups) })
    }
}

/// How far the difference of two sides can be from that of the same hosts on both, with this probability (Student's t). Hosts are on a side
/// by chance, so those of one differ as those of the other do, and what is known of both is put together. Of a side of one host
/// it is what hosts of the other side differ by. `None`: both are of one host, or it is not known.
pub(crate) fn apart(sides: [&Spread; 2], probability: f64) -> Option<f64> {
    let (variance, freedom) = match sides.map(Spread::variance) {
        [Some(one), Some(other)] => {
            let freedom = one.groups + other.groups - 2.0;
            let of_group = |side: &Variance| side.of_hosts * side.groups * (side.groups - 1.0);
            let of_group = (of_group(&one) + of_group(&other)) / freedom;
            (of_group * (1.0 / one.groups + 1.0 / other.groups), freedom)
        }
        [Some(side), None] | [None, Some(side)] => (side.of_hosts * (1.0 + side.hosts), side.groups - 1.0),
        [None, None] => return None,
    };
    Some(student(freedom as usize, probability) * libm::sqrt(variance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(levels: &[f64], pairs: usize) -> Spread {
        let (mut spread, mut all) = (Spread::default(), [0.0; GROUPS]);
        all[..levels.len()].copy_from_slice(levels);
        let groups = ((1u32 << levels.len()) - 1) as u8;
        (0..pairs).for_each(|_| spread.add(&all, groups, levels.len() as u32));
        spread
    }

    #[test]
    fn sides_of_equal_hosts_are_not_apart_and_others_as_students_t_says() {
        let (equal, other) = (spread(&[0.3; 4], 9), spread(&[0.1, 0.2, 0.3, 0.4], 9));
        assert_eq!(apart([&equal, &equal], 0.975), Some(0.0));
        // 3/4 of 0.15² + 0.05² + 0.05² + 0.15² = 0.0375, and nothing of the other side, with six degrees of freedom
        let half = apart([&equal, &other], 0.975).unwrap();
        assert!((half - 2.969 * 0.0375_f64.sqrt()).abs() < 1e-3, "{half}");
        // as much for a single host: its variance is that of four times as many
        let half = apart([&spread(&[0.0], 9), &other], 0.975).unwrap();
        assert!((half - 4.177 * (5.0 * 0.0375_f64).sqrt()).abs() < 1e-3, "{half}");
        assert_eq!(apart([&spread(&[0.0], 9), &spread(&[7.0], 9)], 0.975), None);
    }

    #[test]
    fn what_only_chance_makes_of_periods_is_no_difference_of_hosts() {
        let mut spread = Spread::default();
        for pair in 0..100 {
            let mut levels = [0.0; GROUPS];
            levels[pair % 4] = 1.0;
            spread.add(&levels, 0b1111, 4);
        }
        assert_eq!(apart([&spread, &spread], 0.975), Some(0.0));
    }

    #[test]
    fn a_percentile_lies_within_its_bin() {
        let rest = Rest { times: BTreeMap::from([(1000, (900, 50.0)), (2000, (1900, 50.0))]), ..Rest::default() };
        assert_eq!([25.0, 50.0, 75.0, 100.0].map(|p| rest.percentile(p)), [950.0, 1000.0, 1950.0, 2000.0].map(Some));
        assert_eq!(Rest::default().percentile(50.0), None);
    }
}
