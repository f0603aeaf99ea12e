//! The model's random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform over 0 to n − 1; the bias of the remainder does not matter here.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// True once in n times.
    pub(super) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// 1 to `most`, every power of two as likely as any other.
    pub(super) fn magnitude(&mut self, most: u32) -> u32 {
        let bits = 32 - most.leading_zeros();
        let top = self.below(u64::from(bits.max(1))) as u32;
        ((1u64 << top) + self.below(1 << top)).min(u64::from(most.max(1))) as u32
    }
}
