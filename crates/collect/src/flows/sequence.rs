//! Sequence numbers of an exporter: what was lost on the way.

use std::collections::BTreeMap;

/// Most streams of an exporter: agents within it, or observation domains.
pub const STREAMS_MAX: usize = 16;
/// A gap beyond this is an exporter that restarted.
const RESTART: u32 = 1 << 16;
/// So far behind, it is a datagram that others overtook.
const LATE: u32 = 1 << 10;
/// What arrived is scaled to at most so much.
const SCALE_MAX: f64 = 2.0;

/// Counts what arrived and what is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// The next number of each stream, and `shared` when that was set.
    next: BTreeMap<u64, (u32, u32)>,
    /// Units that belong to no stream, and that an exporter with one counter for all streams counts in each of them.
    shared: u32,
    arrived: u64,
    lost: u64,
    /// Those that were late, of a round before too.
    late: u64,
}

/// What a round lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    pub arrived: u64,
    pub lost: u64,
}

impl Ended {
    /// Of all that was exported.
    pub fn lost_share(self) -> f64 {
        self.lost as f64 / (self.arrived + self.lost).max(1) as f64
    }

    /// By what arrived must be multiplied.
    pub fn scale(self) -> f64 {
        ((self.arrived + self.lost) as f64 / self.arrived.max(1) as f64).clamp(1.0, SCALE_MAX)
    }
}

impl Sequence {
    /// A datagram of a stream with this number came, which holds `units` of what is numbered; false if the stream is one too many.
    pub fn take(&mut self, stream: u64, number: u32, units: u32) -> bool {
        if self.next.len() >= STREAMS_MAX && !self.next.contains_key(&stream) {
            return false;
        }
        self.arrived += u64::from(units);
        let after = number.wrapping_add(units);
        let known = self.next.get(&stream);
        match known.map(|(next, shared)| (number.wrapping_sub(*next), next.wrapping_sub(number), *shared)) {
            Some((ahead, _, shared)) if ahead < RESTART => {
                self.lost += u64::from(ahead.saturating_sub(self.shared.wrapping_sub(shared)));
            }
            // it was counted as lost when it was overtaken
            Some((_, behind, _)) if behind <= LATE => {
                self.late += u64::from(units);
                return true;
            }
            _ => (),
        }
        self.next.insert(stream, (after, self.shared));
        true
    }

    /// Units of the exporter as a whole. Open vSwitch has one counter for all of its observation domains, so in each of them its numbers go
    /// on after these; with RFC 7011's counters they do not. Both is right until the stream's next datagram.
    pub fn share(&mut self, units: u32) {
        self.shared = self.shared.wrapping_add(units);
    }

    /// Records of a stream came, but how many others came with them is unknown: its next number counts afresh.
    pub fn forget(&mut self, stream: u64, units: u32) {
        self.arrived += u64::from(units);
        self.next.remove(&stream);
    }

    /// What was lost since the last call.
    pub fn end_round(&mut self) -> Ended {
        let lost = self.lost.saturating_sub(self.late);
        self.late -= self.late.min(self.lost);
        let ended = Ended { arrived: std::mem::take(&mut self.arrived), lost };
        self.lost = 0;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(numbers: &[u32]) -> u64 {
        let mut sequence = Sequence::default();
        assert!(numbers.iter().all(|number| sequence.take(7, *number, 1)));
        sequence.end_round().lost
    }

    #[test]
    fn gaps_are_losses_and_late_ones_are_not() {
        assert_eq!(lost(&[5, 6, 7]), 0);
        assert_eq!(lost(&[5, 8, 9]), 2);
        assert_eq!(lost(&[5, 8, 6, 9, 7]), 0);
        assert_eq!(lost(&[u32::MAX, 0, 1, 3]), 1);
        assert_eq!(lost(&[900_000, 1, 2, 4]), 1, "it restarted");
    }

    #[test]
    fn units_of_the_whole_exporter_are_no_losses_of_a_stream_whichever_way_it_counts() {
        let lost = |next: [u32; 2]| {
            let mut sequence = Sequence::default();
            sequence.take(1, 1, 1);
            sequence.share(1);
            sequence.take(1, next[0], 1);
            sequence.take(1, next[1], 1);
            sequence.end_round().lost
        };
        assert_eq!(lost([3, 4]), 0, "one counter for all");
        assert_eq!(lost([2, 3]), 0, "a counter each");
        assert_eq!((lost([2, 4]), lost([3, 5]), lost([5, 6])), (1, 1, 2), "what is lost is lost");
    }

    #[test]
    fn numbers_of_records_advance_by_as_many() {
        let mut sequence = Sequence::default();
        sequence.take(1, 100, 10);
        sequence.take(1, 110, 10);
        sequence.take(1, 140, 20);
        let ended = sequence.end_round();
        assert_eq!((ended.arrived, ended.lost, ended.scale()), (40, 20, 1.5));
        assert_eq!(sequence.end_round(), Ended::default());
        sequence.take(1, 60_000, 1);
        assert!((sequence.end_round().scale() - 2.0).abs() < 1e-9, "at most double");
        assert!((0..30).filter(|stream| sequence.take(*stream, 0, 1)).count() == STREAMS_MAX);
    }
}
