//! One integer mixer, for the choice among equal paths and for the random numbers of RED.

/// Mixes all 64 bits: every input bit flips each output bit with a probability of about one half, and no two inputs
/// share an output. The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014; variant 13 of Stafford's constants).
pub fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SplitMix64: a counter with an odd step, mixed. Eight bytes of state, a period of 2^64.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The golden ratio in 64 bits, odd.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The generator number `stream` of a run's `seed`; streams start at unrelated points.
    pub fn new(seed: u64, stream: u64) -> SplitMix64 {
        SplitMix64(mix64(seed.wrapping_add(Self::STEP)) ^ mix64(stream.wrapping_mul(Self::STEP)))
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        mix64(self.0)
    }
}
