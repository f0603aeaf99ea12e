//! A matrix of traffic from the counters of flow entries, as Tootoonchian et al. estimate it (OpenTM, PAM 2010).
//!
//! An entry that matches a source in one rack and a destination in one rack counts traffic between these racks. The bytes that an entry counted
//! since the reading before are its count less what it had then, found by its table, priority and match. An entry that is new, or whose count is
//! less than it was, was (re)made meanwhile, and all that it counted is new.

use super::Error;
use super::oxm;
use super::statistics::FlowEntry;
use policy::{Prefix, RackPair};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;
use units::Rate;

/// Most flow entries of one reading.
pub const FLOWS_MAX: usize = 1_000_000;
/// Most flow entries that are removed during a reading and counted.
const LATE_MAX: usize = 65_536;
/// Most racks.
pub const RACKS_MAX: usize = 1024;

/// Hosts that count as one, by their addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rack {
    /// Its name in views.
    pub name: String,
    /// Its hosts' addresses.
    pub prefixes: Vec<Prefix>,
}

/// What of a switch's flow entries makes a matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatrixSettings {
    /// All racks; the first [`RACKS_MAX`] are taken. Of prefixes that contain one another, the longest decides.
    pub racks: Vec<Rack>,
    /// Racks that this switch connects: only traffic from these is counted here, so that each packet is counted once in the network.
    pub sources: Vec<String>,
    /// The table whose entries are read: each packet is counted once in a table.
    pub table: u8,
}

/// Traffic since the reading before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traffic {
    /// From the switch's racks to all racks, in the order of the names; pairs that no entry counts are left out.
    pub pairs: Vec<RackPair>,
    /// Bytes per second, in bits, of entries that do not tell both racks, or tell a source that is not here. Part of it may be what other
    /// switches count.
    pub unattributed: Rate,
    /// Since when. `None` at the first reading, which has nothing to compare with: it has no pairs.
    pub interval: Option<Duration>,
}

/// A pair, or what belongs to none.
type Pair = Option<(u16, u16)>;

/// An entry between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    /// Hash of table, priority and match.
    entry: u64,
    bytes: u64,
}

/// Makes a matrix of successive readings of one switch.
#[derive(Debug)]
pub(super) struct Matrix {
    settings: MatrixSettings,
    /// By length, in descending order, and prefix of that length.
    prefixes: Vec<(u8, BTreeMap<Key, u16>)>,
    hasher: RandomState,
    /// At the last complete reading, in ascending order.
    before: Option<Vec<Counted>>,
    /// What is being read.
    now: Vec<Counted>,
    /// Bytes since the last complete reading.
    sums: BTreeMap<Pair, u64>,
    /// The same, of entries that were removed since.
    removed: BTreeMap<Pair, u64>,
    /// Whether a reading has begun and not ended.
    reading: bool,
    /// What was removed meanwhile: whether the reading has it shows at its end.
    late: Vec<(Pair, Counted)>,
}

/// Whether an address is of IPv4, and its bits, from the highest on.
type Key = (bool, u128);

fn key(address: IpAddr, bits: u8) -> Key {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    match address {
        IpAddr::V4(v4) => (true, u128::from(v4.to_bits()) << 96 & mask),
        IpAddr::V6(v6) => (false, v6.to_bits() & mask),
    }
}

impl Matrix {
    pub fn new(settings: MatrixSettings) -> Matrix {
        let mut prefixes = BTreeMap::<u8, BTreeMap<Key, u16>>::new();
        for (at, rack) in settings.racks.iter().take(RACKS_MAX).enumerate() {
            for prefix in &rack.prefixes {
                let of_length = prefixes.entry(prefix.bits()).or_default();
                of_length.insert(key(prefix.address(), prefix.bits()), at as u16);
            }
        }
        Matrix {
            settings,
            prefixes: prefixes.into_iter().rev().collect(),
            hasher: RandomState::new(),
            before: None,
            now: Vec::new(),
            sums: BTreeMap::new(),
            removed: BTreeMap::new(),
            reading: false,
            late: Vec::new(),
        }
    }

    /// The table to read.
    pub fn table(&self) -> u8 {
        self.settings.table
    }

    /// Begins a reading; one that was not ended is dropped.
    pub fn begin(&mut self) {
        self.now.clear();
        self.sums.clear();
        for (pair, counted) in std::mem::take(&mut self.late) {
            self.subtract(pair, counted);
        }
        self.reading = true;
    }

    /// An entry of this reading.
    ///
    /// # Errors
    /// It is malformed, or there are too many.
    pub fn add(&mut self, entry: &FlowEntry<'_>) -> Result<(), Error> {
        if self.now.len() >= FLOWS_MAX {
            return Err(Error::TooMany { what: "flow entries", most: FLOWS_MAX });
        }
        let (pair, counted, new) = self.new_bytes(entry)?;
        self.now.push(counted);
        let sum = self.sums.entry(pair).or_default();
        *sum = sum.saturating_add(new);
        Ok(())
    }

    /// An entry that the switch says it removed, between two readings. The next reading lacks it.
    ///
    /// # Errors
    /// It is malformed.
    pub fn remove(&mut self, entry: &FlowEntry<'_>) -> Result<(), Error> {
        if entry.table != self.settings.table || self.before.is_none() {
            return Ok(());
        }
        let (pair, counted, _) = self.new_bytes(entry)?;
        if !self.reading {
            self.subtract(pair, counted);
        } else if self.late.len() < LATE_MAX {
            self.late.push((pair, counted));
        }
        Ok(())
    }

    /// Counts what a removed entry counted since the last complete reading.
    fn subtract(&mut self, pair: Pair, removed: Counted) {
        let before = self.before.as_deref_mut().unwrap_or_default();
        let new = match before.binary_search_by_key(&removed.entry, |before| before.entry) {
            // the same entry may be made anew: then all that it counts is new
            Ok(at) => removed.bytes.saturating_sub(std::mem::take(&mut before[at].bytes)),
            Err(_) => removed.bytes,
        };
        let sum = self.removed.entry(pair).or_default();
        *sum = sum.saturating_add(new);
    }

    /// Ends a reading; `interval` is the time since the one before it ended.
    pub fn end(&mut self, interval: Option<Duration>) -> Traffic {
        let mut now = std::mem::take(&mut self.now);
        now.sort_unstable();
        self.reading = false;
        // removed after they were read: they count from there on. Removed before: from the last reading on
        let (read, unread): (Vec<_>, Vec<_>) = std::mem::take(&mut self.late)
            .into_iter()
            .partition(|(_, late)| now.binary_search_by_key(&late.entry, |now| now.entry).is_ok());
        unread.into_iter().for_each(|(pair, counted)| self.subtract(pair, counted));
        let is_first = self.before.replace(now).is_none();
        read.into_iter().for_each(|(pair, counted)| self.subtract(pair, counted));
        let mut sums = std::mem::take(&mut self.sums);
        for (pair, bytes) in std::mem::take(&mut self.removed) {
            let sum = sums.entry(pair).or_default();
            *sum = sum.saturating_add(bytes);
        }
        let Some(interval) = interval.filter(|interval| !is_first && !interval.is_zero()) else {
            return Traffic::default();
        };
        let rate = |bytes: u64| Rate::from_bps((bytes as f64 * 8.0 / interval.as_secs_f64()).round() as u64);
        let unattributed = rate(sums.remove(&None).unwrap_or_default());
        let name = |rack: u16| self.settings.racks[usize::from(rack)].name.clone();
        let mut pairs: Vec<RackPair> = sums
            .into_iter()
            .filter_map(|(pair, bytes)| pair.map(|(from, to)| (name(from), name(to), rate(bytes))))
            .map(|(from, to, rate)| RackPair { from, to, rate })
            .collect();
        pairs.sort_by(|one, other| (&one.from, &one.to).cmp(&(&other.from, &other.to)));
        Traffic { pairs, unattributed, interval: Some(interval) }
    }

    /// An entry's pair, what is to be remembered of it, and the bytes that it counted since the reading before.
    fn new_bytes(&self, entry: &FlowEntry<'_>) -> Result<(Pair, Counted, u64), Error> {
        let found = oxm::read(entry.fields)?;
        let pair = self.rack(found.source).zip(self.rack(found.destination));
        let pair =
            pair.filter(|(from, _)| self.settings.sources.contains(&self.settings.racks[usize::from(*from)].name));
        let bytes = entry.bytes.unwrap_or_default();
        let hash = self.hasher.hash_one((entry.table, entry.priority, entry.fields));
        let before = self.before.as_deref().unwrap_or_default();
        let before = before.binary_search_by_key(&hash, |before| before.entry).map_or(0, |at| before[at].bytes);
        let new = if bytes >= before { bytes - before } else { bytes };
        Ok((pair, Counted { entry: hash, bytes }, new))
    }

    /// The rack that has all these addresses.
    fn rack(&self, addresses: Option<Prefix>) -> Option<u16> {
        let addresses = addresses?;
        let within = self.prefixes.iter().filter(|(bits, _)| *bits <= addresses.bits());
        within.filter_map(|(bits, racks)| racks.get(&key(addresses.address(), *bits))).next().copied()
    }
}
