//! The number of buffered packets per flow.

/// Larger numbers count as this.
const MOST: usize = 1 << 16;

/// For each buffered packet of a server, the number of packets of its flow that were then buffered, the
/// new one included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// By number of packets, up to the largest seen.
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

    /// The quantile `share`; 0 without packets.
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

    /// The maximum.
    pub fn max(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    /// The mean; 0 without packets.
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
