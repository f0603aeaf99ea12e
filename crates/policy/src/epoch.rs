//! The number of a decision: agents take nothing of a lower one than the highest they have seen.

use std::fmt;

/// Largest epoch.
pub const EPOCH_MAX: u64 = u64::MAX >> 1;
/// Largest term.
pub const TERM_MAX: u32 = (1 << 23) - 1;
/// Bits of the number within a term.
const SEQUENCE_BITS: u32 = 32;
/// Bits below the term.
const BELOW_TERM: u32 = SEQUENCE_BITS + 8;

/// A decision's number, by its parts, which compare in this order.
///
/// An Oracle that decides alone counts from 1: term and member are 0. Of several Oracles, each that begins to decide takes a new term,
/// which is larger than every earlier one. So whatever it decides is above all that was decided before, and two that take the same term
/// at a time (a store that was parted) have different members: no two decisions have one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch {
    /// Who began to decide, counted; at most [`TERM_MAX`].
    pub term: u32,
    /// The Oracle's number.
    pub member: u8,
    /// Its decisions within the term, counted.
    pub sequence: u32,
}

impl Epoch {
    /// The parts of a number of at most [`EPOCH_MAX`]; of a larger one, those of the largest.
    pub fn of(number: u64) -> Epoch {
        let number = number.min(EPOCH_MAX);
        Epoch { term: (number >> BELOW_TERM) as u32, member: (number >> SEQUENCE_BITS) as u8, sequence: number as u32 }
    }

    /// As one number, which compares as the parts do.
    pub fn number(self) -> u64 {
        let term = u64::from(self.term.min(TERM_MAX));
        term << BELOW_TERM | u64::from(self.member) << SEQUENCE_BITS | u64::from(self.sequence)
    }

    /// Before the first decision of a term.
    pub fn begin(term: u32, member: u8) -> Epoch {
        Epoch { term, member, sequence: 0 }
    }
}

impl fmt::Display for Epoch {
    /// `7`, or `3/1/7`: of term 3 by Oracle 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Epoch { term: 0, member: 0, sequence } => write!(f, "{sequence}"),
            Epoch { term, member, sequence } => write!(f, "{term}/{member}/{sequence}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_parts_and_compares_as_they_do() {
        // 3 * 2^40 + 1 * 2^32 + 7
        let epoch = Epoch { term: 3, member: 1, sequence: 7 };
        assert_eq!(epoch.number(), 3_302_829_850_631);
        assert_eq!((Epoch::of(epoch.number()), epoch.to_string()), (epoch, "3/1/7".to_string()));
        let largest = Epoch { term: TERM_MAX, member: u8::MAX, sequence: u32::MAX };
        assert_eq!((largest.number(), Epoch::of(EPOCH_MAX), Epoch::of(u64::MAX)), (EPOCH_MAX, largest, largest));
        let parts = [0, 1, 2, 254];
        let all = parts.iter().flat_map(|term| parts.iter().map(move |member| (term, member)));
        let all = all.flat_map(|(term, member)| {
            parts.iter().map(|sequence| Epoch { term: *term, member: *member as u8, sequence: *sequence })
        });
        let all: Vec<Epoch> = all.collect();
        for one in &all {
            for other in &all {
                assert_eq!(one.cmp(other), one.number().cmp(&other.number()), "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_counter_without_terms_is_an_epoch_as_it_was() {
        for number in [0, 1, 41, u64::from(u32::MAX)] {
            assert_eq!((Epoch::of(number).number(), Epoch::of(number).to_string()), (number, number.to_string()));
        }
        assert!(Epoch::begin(1, 0).number() > u64::from(u32::MAX), "the first term is above every counter");
    }
}
