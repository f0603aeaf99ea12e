//! Bytes that are changed at random.

use testkit::Random;

/// Longest input, bytes: twice what the bus carries.
pub const LENGTH_MAX: usize = 128 * 1024;

/// Numbers at which lengths, counts and offsets go wrong.
const NUMBERS: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, i64::MIN as u64, u64::MAX];
/// What texts trip over.
const PIECES: [&str; 16] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    "=",
    "\n",
    "-",
    "99999999999999999999",
    "1e308",
    "nan",
    "\"-5 s\"",
    "é",
    "\u{0}",
    "inf",
    "\\u0000",
];

/// Inputs made of seeds, the same for the same number.
#[derive(Debug)]
pub struct Changes<'a> {
    seeds: &'a [(String, Vec<u8>)],
    random: Random,
}

impl<'a> Changes<'a> {
    /// Of these seeds, of which there is at least one.
    pub fn of(seeds: &'a [(String, Vec<u8>)], number: u64) -> Changes<'a> {
        assert!(!seeds.is_empty(), "a parser has seeds");
        Changes { seeds, random: Random(number) }
    }

    /// The next input: a seed with one to eight changes.
    #[expect(clippy::should_implement_trait, reason = "it is endless, so it is no iterator")]
    pub fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.random.any(self.seeds).1.clone();
        for _ in 0..=self.random.below(8) {
            self.change(&mut bytes);
        }
        bytes.truncate(LENGTH_MAX);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let end = (at + random.below(32) as usize).min(bytes.len());
        match random.below(9) {
            // a bit, a byte
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            // a number of one to eight bytes, in either order
            2 | 3 => {
                let (number, width) = (*random.any(&NUMBERS), 1 << random.below(4));
                let is_little = random.chance(0.5);
                for (i, byte) in bytes[at..].iter_mut().take(width).enumerate() {
                    *byte = (number >> (8 * if is_little { i } else { width - 1 - i })) as u8;
                }
            }
            4 => drop(bytes.drain(at..end)),
            5 => {
                let piece = random.any(&PIECES).bytes();
                bytes.splice(at..end, piece);
            }
            6 => bytes.truncate(at),
            // a part twice, and a part of another seed
            7 => {
                let part = bytes[at..end].repeat(1 + random.below(64) as usize);
                bytes.splice(at..at, part);
            }
            _ => {
                let other = &random.any(self.seeds).1;
                let from = random.below(other.len() as u64 + 1) as usize;
                let part = other[from..].iter().take(64).copied();
                bytes.splice(at..end, part);
            }
        }
    }
}
