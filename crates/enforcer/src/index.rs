//! The slot of a flow: a hash table of slots, open addressing with linear probing.
//!
//! The hash is keyed; otherwise an attacker who chooses ports could fill one place of the table.

use crate::packet::End;

/// The two ends of a flow, the enforced one first, and their VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub server: End,
    pub client: End,
    pub vlan: u16,
}

impl Key {
    /// 64 bits of the key under `seed`: each half of an address is folded in by a 64×64-bit product, in the manner of
    /// wyhash.
    pub fn hash(&self, seed: u64) -> u64 {
        let fold = |hash: u64, word: u64| {
            let product = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15) * u128::from(word ^ seed.rotate_left(29) | 1);
            (product as u64) ^ ((product >> 64) as u64)
        };
        let (server, client) = (self.server.address.to_bits(), self.client.address.to_bits());
        let [server_port, client_port] = [self.server, self.client].map(|end| u64::from(end.port));
        let rest = u64::from(self.vlan) << 32 | server_port << 16 | client_port;
        let mut hash = seed;
        for word in [(server >> 64) as u64, server as u64, (client >> 64) as u64, client as u64, rest] {
            hash = fold(hash.rotate_left(23) ^ word, word.wrapping_add(seed));
        }
        fold(hash, seed)
    }
}

/// Marks an empty place.
const EMPTY: u32 = u32::MAX;
/// At most so many of so many places are used, so that probing stays short.
const USED: [usize; 2] = [3, 4];
/// Smallest table.
const PLACES_MIN: usize = 64;

/// Slots by the hashes of their keys.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// A power of two of them, or none.
    places: Vec<u32>,
    len: usize,
}

impl Index {
    /// Makes room for so many slots in an empty table.
    pub fn allocate(&mut self, slots: usize) {
        let places = (slots * USED[1] / USED[0] + 1).next_power_of_two().max(PLACES_MIN);
        if self.len == 0 && self.places.len() < places {
            self.places = vec![EMPTY; places];
        }
    }

    /// The slot with this hash that satisfies `is`.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.first(hash)?;
        loop {
            let slot = self.places[place];
            if slot == EMPTY {
                return None;
            }
            if is(slot) {
                return Some(slot);
            }
            place = self.after(place);
        }
    }

    /// Adds a new slot. `hash_of` returns the hashes of others when the table grows.
    pub fn insert(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * USED[1] > self.places.len() * USED[0] {
            let places = (self.places.len() * 2).max(PLACES_MIN);
            let old = std::mem::replace(&mut self.places, vec![EMPTY; places]);
            for slot in old.into_iter().filter(|&slot| slot != EMPTY) {
                self.place(hash_of(slot), slot);
            }
        }
        self.place(hash, slot);
        self.len += 1;
    }

    /// Removes a slot; slots that it had displaced move up.
    pub fn remove(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        let Some(mut hole) = self.first(hash) else { return };
        while self.places[hole] != slot {
            if self.places[hole] == EMPTY {
                return;
            }
            hole = self.after(hole);
        }
        self.len -= 1;
        let mask = self.places.len() - 1;
        let mut place = self.after(hole);
        while self.places[place] != EMPTY {
            let home = hash_of(self.places[place]) as usize & mask;
            let (way, to_hole) = (place.wrapping_sub(home) & mask, place.wrapping_sub(hole) & mask);
            if way >= to_hole {
                self.places[hole] = self.places[place];
                hole = place;
            }
            place = self.after(place);
        }
        self.places[hole] = EMPTY;
    }

    fn place(&mut self, hash: u64, slot: u32) {
        let mut place = self.first(hash).expect("the table has grown");
        while self.places[place] != EMPTY {
            place = self.after(place);
        }
        self.places[place] = slot;
    }

    #[inline]
    fn first(&self, hash: u64) -> Option<usize> {
        (!self.places.is_empty()).then(|| hash as usize & (self.places.len() - 1))
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn key(n: u32) -> Key {
        let server = End::new(Ipv4Addr::from_bits(0x0a00_0001).into(), 80);
        let client = End::new(Ipv4Addr::from_bits(0xc000_0200 + (n >> 16)).into(), n as u16);
        Key { server, client, vlan: 0 }
    }

    #[test]
    fn what_is_entered_is_found_until_it_is_taken_out() {
        const N: u32 = 5000;
        let hash_of = |slot: u32| key(slot).hash(7);
        let mut index = Index::default();
        assert_eq!(index.find(hash_of(1), |slot| slot == 1), None);
        for slot in 0..N {
            index.insert(hash_of(slot), slot, hash_of);
        }
        for slot in (0..N).filter(|slot| slot % 3 == 0) {
            index.remove(hash_of(slot), slot, hash_of);
            index.remove(hash_of(slot), slot, hash_of);
        }
        for slot in 0..N {
            let expected = (slot % 3 != 0).then_some(slot);
            assert_eq!(index.find(hash_of(slot), |found| found == slot), expected, "{slot}");
        }
    }

    #[test]
    fn the_same_ends_in_another_vlan_are_another_flow() {
        let other = Key { vlan: 5, ..key(1) };
        assert!(other != key(1) && other.hash(7) != key(1).hash(7));
    }

    #[test]
    fn ports_spread_over_the_table_whatever_the_seed() {
        for seed in [0, 1, 0xdead_beef_0123_4567] {
            let mut places = [0_u32; 256];
            for n in 0..25_600 {
                places[key(n).hash(seed) as usize & 255] += 1;
            }
            // 100 a place on average; a hash that ignored a part of the key would leave places empty
            assert!(places.iter().all(|&n| (50..=160).contains(&n)), "{seed}: {places:?}");
        }
    }
}
