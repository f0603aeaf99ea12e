//! The matrix, on entries that are made here.

use super::super::traffic::{FLOWS_MAX, Matrix, MatrixSettings, Rack, Traffic};
use super::super::{Error, statistics::FlowEntry};
use std::time::Duration;
use units::Rate;

/// `a` is 10.1/16 without 10.1.9/24, which is `b`'s, as is 10.2/16.
fn settings(sources: &[&str]) -> MatrixSettings {
    let rack = |name: &str, prefixes: &[&str]| Rack {
        name: name.to_string(),
        prefixes: prefixes.iter().map(|prefix| prefix.parse().expect("a prefix")).collect(),
    };
    MatrixSettings {
        racks: vec![rack("a", &["10.1.0.0/16", "fd01::/32"]), rack("b", &["10.2.0.0/16", "10.1.9.0/24", "fd02::/32"])],
        sources: sources.iter().map(ToString::to_string).collect(),
        table: 0,
    }
}

/// A match of two IPv4 prefixes.
fn fields(source: [u8; 4], destination: [u8; 4], bits: u8) -> Vec<u8> {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0).to_be_bytes();
    let field = |number: u8, value: [u8; 4]| [&[0x80, 0, number << 1 | 1, 8][..], &value, &mask].concat();
    [field(11, source), field(12, destination)].concat()
}

fn entry(fields: &[u8], bytes: u64) -> FlowEntry<'_> {
    FlowEntry { table: 0, priority: 1, cookie: 0, bytes: Some(bytes), fields }
}

/// A reading of these entries, a second after the one before.
fn reading(matrix: &mut Matrix, entries: &[(&[u8], u64)]) -> Traffic {
    matrix.begin();
    for (fields, bytes) in entries {
        matrix.add(&entry(fields, *bytes)).expect("it is well formed");
    }
    matrix.end(Some(Duration::from_secs(1)))
}

/// Bytes by pair.
fn bytes(traffic: &Traffic) -> Vec<(&str, &str, u64)> {
    traffic.pairs.iter().map(|pair| (pair.from.as_str(), pair.to.as_str(), pair.rate.as_bps() / 8)).collect()
}

#[test]
fn entries_count_for_the_racks_that_have_all_their_addresses() {
    let mut matrix = Matrix::new(settings(&["a", "b"]));
    let ab = fields([10, 1, 2, 0], [10, 2, 0, 0], 24);
    let bb = fields([10, 1, 9, 1], [10, 2, 0, 1], 32);
    let wide = fields([10, 0, 0, 0], [10, 2, 0, 0], 8);
    let elsewhere = fields([10, 1, 0, 1], [192, 0, 2, 1], 32);
    let none = [(ab.as_slice(), 0), (&bb, 0), (&wide, 0), (&elsewhere, 0)];
    assert_eq!(reading(&mut matrix, &none), Traffic { entries: 4, ..Traffic::default() });
    let traffic = reading(&mut matrix, &[(&ab, 100), (&bb, 10), (&wide, 7), (&elsewhere, 5)]);
    assert_eq!(bytes(&traffic), [("a", "b", 100), ("b", "b", 10)]);
    assert_eq!(traffic.unattributed, Rate::from_bps(8 * 12));
    assert_eq!(traffic.interval, Some(Duration::from_secs(1)));
}

#[test]
fn only_racks_that_are_here_count_as_sources() {
    let mut matrix = Matrix::new(settings(&["b"]));
    let [ab, ba] = [fields([10, 1, 0, 1], [10, 2, 0, 1], 32), fields([10, 2, 0, 1], [10, 1, 0, 1], 32)];
    reading(&mut matrix, &[]);
    let traffic = reading(&mut matrix, &[(&ab, 100), (&ba, 50)]);
    assert_eq!(bytes(&traffic), [("b", "a", 50)]);
    assert_eq!(traffic.unattributed, Rate::from_bps(800));
}

#[test]
fn entries_that_come_and_go_count_what_they_counted_since_the_last_reading() {
    let mut matrix = Matrix::new(settings(&["a"]));
    let [one, two] = [fields([10, 1, 0, 1], [10, 2, 0, 1], 32), fields([10, 1, 0, 2], [10, 2, 0, 2], 32)];
    reading(&mut matrix, &[(&one, 1_000_000)]);
    assert_eq!(bytes(&reading(&mut matrix, &[(&one, 1_000_100)])), [("a", "b", 100)]);
    // a new one, all of it; the old one is gone, which takes nothing from the new one
    assert_eq!(bytes(&reading(&mut matrix, &[(&two, 30)])), [("a", "b", 30)]);
    // made anew meanwhile
    assert_eq!(bytes(&reading(&mut matrix, &[(&two, 20)])), [("a", "b", 20)]);
    // the switch says what it had counted when it was removed
    matrix.remove(&entry(&two, 120)).expect("it is well formed");
    assert_eq!(bytes(&reading(&mut matrix, &[])), [("a", "b", 100)]);
    // removed and made anew within one period
    reading(&mut matrix, &[(&one, 500)]);
    matrix.remove(&entry(&one, 600)).expect("it is well formed");
    assert_eq!(bytes(&reading(&mut matrix, &[(&one, 550)])), [("a", "b", 100 + 550)]);
}

#[test]
fn an_entry_that_is_removed_during_a_reading_counts_once() {
    for is_listed in [false, true] {
        let mut matrix = Matrix::new(settings(&["a"]));
        let one = fields([10, 1, 0, 1], [10, 2, 0, 1], 32);
        reading(&mut matrix, &[(&one, 1000)]);
        matrix.begin();
        if is_listed {
            matrix.add(&entry(&one, 1100)).expect("it is well formed");
        }
        matrix.remove(&entry(&one, 1150)).expect("it is well formed");
        let during = matrix.end(Some(Duration::from_secs(1)));
        let after = reading(&mut matrix, &[]);
        let total: u64 = [&during, &after].into_iter().flat_map(|traffic| bytes(traffic)).map(|pair| pair.2).sum();
        assert_eq!(total, 150, "listed: {is_listed}: {during:?} {after:?}");
    }
}

#[test]
fn a_removal_that_is_reported_after_the_next_reading_counts_what_was_new() {
    let mut matrix = Matrix::new(settings(&["a"]));
    let one = fields([10, 1, 0, 1], [10, 2, 0, 1], 32);
    reading(&mut matrix, &[]);
    reading(&mut matrix, &[(&one, 1000)]);
    assert_eq!(bytes(&reading(&mut matrix, &[])), []);
    matrix.remove(&entry(&one, 1150)).expect("it is well formed");
    assert_eq!(bytes(&reading(&mut matrix, &[])), [("a", "b", 150)]);
    assert_eq!(bytes(&reading(&mut matrix, &[])), []);
}

#[test]
fn a_reading_that_fails_leaves_the_next_one_right() {
    let mut matrix = Matrix::new(settings(&["a"]));
    let one = fields([10, 1, 0, 1], [10, 2, 0, 1], 32);
    reading(&mut matrix, &[(&one, 1000)]);
    matrix.begin();
    matrix.add(&entry(&one, 1500)).expect("it is well formed");
    assert!(matrix.add(&entry(&one[..7], 1)).is_err());
    assert_eq!(bytes(&reading(&mut matrix, &[(&one, 2000)])), [("a", "b", 1000)]);
}

#[test]
fn a_million_entries_are_read_and_no_more() {
    let mut matrix = Matrix::new(settings(&["a"]));
    matrix.begin();
    let mut address = fields([10, 1, 0, 0], [10, 2, 0, 1], 32);
    for number in 0..FLOWS_MAX {
        address[6..8].copy_from_slice(&((number % 65_536) as u16).to_be_bytes());
        matrix
            .add(&FlowEntry { priority: (number / 65_536) as u16, ..entry(&address, 1) })
            .expect("it is within the limit");
    }
    assert_eq!(matrix.add(&entry(&address, 1)), Err(Error::TooMany { what: "flow entries", most: FLOWS_MAX }));
}
