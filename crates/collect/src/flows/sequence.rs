//! Streams of an exporter, and their sequence numbers: what was lost on the way.
//!
//! An exporter is an address, and several programs may export from it: for example one for each interface. Each numbers what it sends by itself,
//! from the beginning in each transport session (RFC 7011, section 3.1).

use std::collections::BTreeMap;
use std::net::IpAddr;
use units::Time;

/// Most streams of an exporter.
pub const STREAMS_MAX: usize = 32;
/// A stream may give its place to another after so long without a datagram: a program that was restarted sends from another port.
const QUIET: Time = Time::from_secs(600);
/// A gap beyond this is an exporter that restarted.
const RESTART: u32 = 1 << 16;
/// So far behind, it may be a datagram that others overtook.
const LATE: u32 = 1 << 10;
/// What arrived is scaled to at most so much.
const SCALE_MAX: f64 = 2.0;

/// What numbers its datagrams by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stream {
    /// From which port of the exporter it comes.
    pub port: u16,
    /// Whose samples they are, where the datagram says it (sFlow).
    pub agent: Option<IpAddr>,
    /// Its agent within the exporter (sFlow), or its version and domain.
    pub domain: u64,
}

/// What is kept of each stream.
#[derive(Clone, Debug)]
pub(super) struct Streams<T> {
    by_stream: BTreeMap<Stream, (Time, T)>,
}

impl<T> Default for Streams<T> {
    fn default() -> Streams<T> {
        Streams { by_stream: BTreeMap::new() }
    }
}

impl<T: Default> Streams<T> {
    /// That of a stream from which something came at `now`; `None` if it is one too many.
    pub fn of(&mut self, stream: Stream, now: Time) -> Option<&mut T> {
        if self.by_stream.len() >= STREAMS_MAX && !self.by_stream.contains_key(&stream) {
            let oldest = self.by_stream.iter().min_by_key(|(_, (heard, _))| *heard);
            let quiet = *oldest.filter(|(_, (heard, _))| now.saturating_sub(*heard) >= QUIET)?.0;
            self.by_stream.remove(&quiet);
        }
        let (heard, what) = self.by_stream.entry(stream).or_insert_with(|| (now, T::default()));
        *heard = now;
        Some(what)
    }

    /// What is known of a stream.
    pub fn known(&self, stream: Stream) -> Option<&T> {
        self.by_stream.get(&stream).map(|(_, what)| what)
    }

    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.by_stream.values().map(|(_, what)| what)
    }
}

/// Counts what arrived and what is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    streams: Streams<Numbers>,
    arrived: u64,
    lost: u64,
    /// Those that were late, of a round before too.
    late: u64,
}

/// The numbers of one stream.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    /// The last one, with its units, and `shared` of the stream's program then. `None`: the next datagram says it.
    last: Option<(u32, u32, u32)>,
    /// Whether a number counts the units that come with it too. RFC 7011 has it otherwise, and softflowd so.
    inclusive: bool,
    /// Units that were counted as lost, and may still come late.
    missing: u64,
    /// Units that belong to no stream of its program, and that a program with one counter for all streams counts in each of them.
    shared: u32,
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
    /// A datagram of a stream with this number came at `now`, which holds `units` of what is numbered; false if the stream is one too many.
    pub fn take(&mut self, now: Time, stream: Stream, number: u32, units: u32) -> bool {
        let shared = self.shared(stream);
        let Some(numbers) = self.streams.of(stream, now) else { return false };
        self.arrived += u64::from(units);
        if let Some((last, units_then, shared_then)) = numbers.last {
            let [exclusive, inclusive] = [units_then, units].map(|units| number.wrapping_sub(last).wrapping_sub(units));
            if (exclusive == 0) != (inclusive == 0) {
                numbers.inclusive = inclusive == 0;
            }
            let ahead = if numbers.inclusive { inclusive } else { exclusive };
            let behind = ahead.wrapping_neg();
            if ahead < RESTART {
                let lost = u64::from(ahead.saturating_sub(shared.wrapping_sub(shared_then)));
                self.lost += lost;
                numbers.missing += lost;
            } else if behind <= LATE && u64::from(units) <= numbers.missing {
                // it was counted as lost when it was overtaken
                self.late += u64::from(units);
                numbers.missing -= u64::from(units);
                return true;
            }
            // else its program was restarted, and numbers anew
        }
        numbers.last = Some((number, units, shared));
        true
    }

    /// Units of the program as a whole, which came in this stream. Open vSwitch has one counter for all of its observation domains, so in each
    /// of them its numbers go on after these; with RFC 7011's counters they do not. Both is right until the stream's next datagram.
    pub fn share(&mut self, now: Time, stream: Stream, units: u32) {
        if let Some(numbers) = self.streams.of(whole(stream), now) {
            numbers.shared = numbers.shared.wrapping_add(units);
        }
    }

    fn shared(&self, stream: Stream) -> u32 {
        self.streams.known(whole(stream)).map_or(0, |numbers| numbers.shared)
    }

    /// Records of a stream came, but how many others came with them is unknown: its next number counts afresh.
    pub fn forget(&mut self, now: Time, stream: Stream, units: u32) {
        self.arrived += u64::from(units);
        if let Some(numbers) = self.streams.of(stream, now) {
            numbers.last = None;
        }
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

/// The stream of the program as a whole: domain 0 (RFC 7011, section 3.1).
fn whole(stream: Stream) -> Stream {
    Stream { domain: stream.domain & !u64::from(u32::MAX), ..stream }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(domain: u64) -> Stream {
        Stream { port: 4000, agent: None, domain }
    }

    fn take(sequence: &mut Sequence, number: u32, units: u32) -> bool {
        sequence.take(Time::ZERO, stream(7), number, units)
    }

    fn lost(numbers: &[u32]) -> u64 {
        let mut sequence = Sequence::default();
        assert!(numbers.iter().all(|number| take(&mut sequence, *number, 1)));
        sequence.end_round().lost
    }

    #[test]
    fn gaps_are_losses_and_late_ones_are_not() {
        assert_eq!(lost(&[5, 6, 7]), 0);
        assert_eq!(lost(&[5, 8, 9]), 2);
        assert_eq!(lost(&[5, 8, 6, 9, 7]), 0);
        assert_eq!(lost(&[u32::MAX, 0, 1, 3]), 1);
        assert_eq!(lost(&[900_000, 1, 2, 4]), 1, "it restarted");
        assert_eq!(lost(&[500, 1, 2, 4]), 1, "it restarted soon: none of these had been lost");
    }

    #[test]
    fn numbers_that_count_what_comes_with_them_are_no_losses() {
        // what softflowd 1.1 sent: numbers, and records with it; the first has a record of options, which it does not count
        let mut sequence = Sequence::default();
        for (number, units) in [(24, 25), (54, 30), (62, 8), (68, 6), (76, 8), (80, 4), (110, 30)] {
            assert!(take(&mut sequence, number, units));
        }
        assert_eq!(sequence.end_round().lost, 0);
        take(&mut sequence, 150, 10);
        assert_eq!(sequence.end_round().lost, 30);
        let mut sequence = Sequence::default();
        for (number, units) in [(0, 4), (4, 30), (34, 4), (38, 30), (98, 4)] {
            take(&mut sequence, number, units);
        }
        assert_eq!(sequence.end_round().lost, 30, "as RFC 7011 has it");
    }

    #[test]
    fn programs_at_one_address_number_by_themselves() {
        let mut sequence = Sequence::default();
        for number in 0..100 {
            for (port, ahead) in [(4000, 0), (4001, 40_000), (4002, 900)] {
                // with domain 0 each, as softflowd has it
                let stream = Stream { port, agent: None, domain: 10 << 32 };
                assert!(sequence.take(Time::ZERO, stream, ahead + number, 1));
                sequence.share(Time::ZERO, stream, 1);
            }
        }
        let ended = sequence.end_round();
        assert_eq!((ended.arrived, ended.lost), (300, 0));
    }

    #[test]
    fn a_quiet_stream_gives_its_place_to_another() {
        let mut streams = Streams::<u32>::default();
        assert!((0..STREAMS_MAX as u64).all(|domain| streams.of(stream(domain), Time::from_secs(domain)).is_some()));
        let new = stream(1000);
        assert!(streams.of(new, Time::from_secs(599)).is_none(), "all were heard within ten minutes");
        assert!(streams.of(new, Time::from_secs(600)).is_some());
        assert!(streams.known(stream(0)).is_none() && streams.known(stream(1)).is_some());
    }

    #[test]
    fn units_of_the_whole_exporter_are_no_losses_of_a_stream_whichever_way_it_counts() {
        let lost = |next: [u32; 2]| {
            let mut sequence = Sequence::default();
            take(&mut sequence, 1, 1);
            sequence.share(Time::ZERO, stream(7), 1);
            take(&mut sequence, next[0], 1);
            take(&mut sequence, next[1], 1);
            sequence.end_round().lost
        };
        assert_eq!(lost([3, 4]), 0, "one counter for all");
        assert_eq!(lost([2, 3]), 0, "a counter each");
        assert_eq!((lost([2, 4]), lost([3, 5]), lost([5, 6])), (1, 1, 2), "what is lost is lost");
    }

    #[test]
    fn numbers_of_records_advance_by_as_many() {
        let mut sequence = Sequence::default();
        take(&mut sequence, 100, 10);
        take(&mut sequence, 110, 10);
        take(&mut sequence, 140, 20);
        let ended = sequence.end_round();
        assert_eq!((ended.arrived, ended.lost, ended.scale()), (40, 20, 1.5));
        assert_eq!(sequence.end_round(), Ended::default());
        take(&mut sequence, 60_000, 1);
        assert!((sequence.end_round().scale() - 2.0).abs() < 1e-9, "at most double");
        let mut others = (100..200).filter(|domain| sequence.take(Time::ZERO, stream(*domain), 0, 1));
        assert_eq!(others.by_ref().count(), STREAMS_MAX - 1);
    }
}
