//! Completion times in bins: 32 of a microsecond each, then 16 for each doubling.

/// Bins up to 2^32 us.
pub const BINS: usize = 32 + 27 * 16;
/// Bits below the leading one that tell bins apart.
const STEP_BITS: u32 = 4;

/// How many were in each bin; only those with some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bins(Vec<(u16, u32)>);

/// The bin of a time.
pub fn bin(us: u32) -> u16 {
    if us < 32 {
        return us as u16;
    }
    let shift = us.ilog2() - STEP_BITS;
    (32 + (shift - 1) * 16 + (us >> shift & 15)) as u16
}

/// The longest time of a bin, microseconds.
pub fn longest_us(bin: u16) -> u64 {
    let bin = u64::from(bin);
    match bin.checked_sub(32) {
        None => bin,
        Some(above) => (((16 + above % 16 + 1) << (above / 16 + 1)) - 1).max(1),
    }
}

impl Bins {
    /// Adds `count` times of about `us`. Counts saturate.
    pub fn add(&mut self, us: u32, count: u32) {
        let bin = bin(us.max(1));
        match self.0.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) => self.0.insert(at, (bin, count)),
        }
    }

    /// Whether there is one of about this time, so that one more takes no memory.
    pub fn has(&self, us: u32) -> bool {
        self.0.binary_search_by_key(&bin(us.max(1)), |(bin, _)| *bin).is_ok()
    }

    /// Adds another's.
    pub fn add_all(&mut self, other: &Bins) {
        for (bin, count) in &other.0 {
            match self.0.binary_search_by_key(bin, |(bin, _)| *bin) {
                Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(*count),
                Err(at) => self.0.insert(at, (*bin, *count)),
            }
        }
    }

    /// Bins and counts, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u32)> {
        self.0.iter().copied()
    }

    /// The count of the bin in this place among those with some, if it is this bin.
    pub fn at(&self, place: usize, bin: u16) -> Option<u32> {
        self.0.get(place).filter(|(of, _)| *of == bin).map(|(_, count)| *count)
    }

    /// How many bins have some.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many there are in all.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_at_most_a_sixteenth_wide_and_they_follow_each_other() {
        let mut last = 0;
        for us in (0..100_000).chain((17..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let bin = bin(us);
            assert!(
                usize::from(bin) < BINS && (bin == last || bin == last + 1 || us > 65_536),
                "{us} after bin {last}"
            );
            let longest = longest_us(bin);
            assert!(
                longest >= u64::from(us) && longest as f64 <= f64::from(us.max(1)) * (1.0 + 1.0 / 16.0),
                "{us}: {longest}"
            );
            assert_eq!(super::bin(longest as u32), bin, "{us}");
            last = bin;
        }
        assert_eq!((usize::from(bin(u32::MAX)), longest_us(bin(u32::MAX))), (BINS - 1, u64::from(u32::MAX)));
    }

    #[test]
    fn counts_saturate() {
        let mut bins = Bins::default();
        bins.add(100, u32::MAX);
        bins.add(101, 1);
        let mut other = Bins::default();
        other.add(0, 3);
        other.add_all(&bins);
        assert_eq!((other.len(), other.total()), (2, 3 + u64::from(u32::MAX)));
    }
}
