//! How many packets are kept of a flow.

/// Numbers above this count as this.
const MOST: usize = 1 << 16;

/// The distribution, over all of the servers' packets that came and were kept, of how many of their flow were then kept, the
/// new one included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// By number of packets, as far as numbers have come.
    counts: Vec<u64>,
}

impl Kept {
    pub(crate) fn record(&mut self, packets: u32) {
        let packets = (packets as usize).min(MOST);
        if packets >= self.counts.len() {
            self.counts.resize(packets + 1, 0);
        }
        self.counts[packets] += 1;
    }

    /// The number that `share` of the packets found at most; 0 if none came.
    pub fn quantile(&self, share: f64) -> u32 {
        let all: u64 = self.counts.iter().sum();
        let mut left = (all as f64 * share).ceil() as u64;
        for (packets, count) in self.counts.iter().enumerate() {
            if left <= *count {
                return packets as u32;
            }
            left -= count;
        }
        self.max()
    }

    /// The most.
    pub fn max(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    /// The mean; 0 if none came.
    pub fn mean(&self) -> f64 {
        let all: u64 = self.counts.iter().sum();
        let sum: f64 = self.counts.iter().enumerate().map(|(packets, count)| packets as f64 * *count as f64).sum();
        if all == 0 { 0.0 } else { sum / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_mean_are_those_of_what_was_recorded() {
        let mut kept = Kept::default();
        assert_eq!((kept.quantile(0.5), kept.max(), kept.mean()), (0, 0, 0.0));
        (1..=100).for_each(|packets| kept.record(packets));
        assert_eq!((kept.quantile(0.5), kept.quantile(0.99), kept.quantile(1.0)), (50, 99, 100));
        assert_eq!((kept.max(), kept.mean()), (100, 50.5));
        kept.record(u32::MAX);
        assert_eq!(kept.max(), MOST as u32);
    }
}
