//! IF-MIB (RFC 2863): ports and their counters.

use super::uptime::Uptime;
use super::walk::{Cell, Index, Row};
use crate::counters::is_virtual_type;
use crate::text::clean;
use crate::{Counts, PortCounters};
use async_snmp::Oid;
use std::collections::{BTreeMap, BTreeSet};
use units::{Rate, Time};

/// ifEntry and ifXEntry.
const IF_ENTRY: [u32; 9] = [1, 3, 6, 1, 2, 1, 2, 2, 1];
const IF_X_ENTRY: [u32; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
/// An ifSpeed that means "more".
const SPEED_MAX: u64 = u32::MAX as u64;
/// Mbit/s beyond which an ifHighSpeed is no speed: 100 Tbit/s.
const HIGH_SPEED_MAX: u64 = 100_000_000;

/// The columns that are read; the order is that of [`COLUMNS`].
#[derive(Clone, Copy)]
enum Column {
    Name,
    Description,
    Speed,
    HighSpeed,
    Physical,
    Status,
    InBytes,
    InUnicast,
    InMulticast,
    InBroadcast,
    InDiscards,
    InErrors,
    OutBytes,
    OutUnicast,
    OutMulticast,
    OutBroadcast,
    OutDiscards,
    OutErrors,
    Discontinuity,
    Type,
    Connector,
}

/// Table and number of each [`Column`].
const COLUMNS: [(&[u32], u32); 21] = [
    (&IF_X_ENTRY, 1),
    (&IF_ENTRY, 2),
    (&IF_ENTRY, 5),
    (&IF_X_ENTRY, 15),
    (&IF_ENTRY, 6),
    (&IF_ENTRY, 8),
    (&IF_X_ENTRY, 6),
    (&IF_X_ENTRY, 7),
    (&IF_X_ENTRY, 8),
    (&IF_X_ENTRY, 9),
    (&IF_ENTRY, 13),
    (&IF_ENTRY, 14),
    (&IF_X_ENTRY, 10),
    (&IF_X_ENTRY, 11),
    (&IF_X_ENTRY, 12),
    (&IF_X_ENTRY, 13),
    (&IF_ENTRY, 19),
    (&IF_ENTRY, 20),
    (&IF_X_ENTRY, 19),
    (&IF_ENTRY, 3),
    (&IF_X_ENTRY, 17),
];

/// The 32-bit byte counters, in and out, for ports without 64-bit ones.
const NARROW: [(&[u32], u32); 2] = [(&IF_ENTRY, 10), (&IF_ENTRY, 16)];

/// Names of the columns.
pub(super) fn columns() -> impl Iterator<Item = Oid> {
    COLUMNS.into_iter().map(oid)
}

/// Names of the columns for ports without 64-bit counters.
pub(super) fn narrow_columns() -> impl Iterator<Item = Oid> {
    NARROW.into_iter().map(oid)
}

/// The byte counters of a port, 64-bit or 32-bit.
pub(super) fn octets(port: u32, narrow: bool) -> [Oid; 2] {
    let wide = [Column::InBytes, Column::OutBytes].map(|column| COLUMNS[column as usize]);
    (if narrow { NARROW } else { wide }).map(|column| oid(column).child(port))
}

fn oid((entry, column): (&[u32], u32)) -> Oid {
    Oid::from_slice(entry).child(column)
}

/// A port, and what LLDP may name it by.
pub(super) struct Port {
    pub(super) counters: PortCounters,
    pub(super) description: String,
    pub(super) physical: Vec<u8>,
}

/// Whether a port lacks 64-bit counters of bytes.
pub(super) fn some_are_narrow(rows: &BTreeMap<Index, Row>) -> bool {
    rows.values().any(|row| [Column::InBytes, Column::OutBytes].iter().any(|column| cell(row, *column).is_none()))
}

/// The ports of the table, in the order of their numbers.
pub(super) fn ports(rows: &BTreeMap<Index, Row>, narrow: &BTreeMap<Index, Row>, uptime: &Uptime) -> Vec<Port> {
    let mut names = BTreeSet::new();
    let mut ports = Vec::with_capacity(rows.len());
    for (index, row) in rows {
        // ifIndex is one number from 1
        let [number @ 1..=u32::MAX] = index[..] else { continue };
        let mut port = port(number, row, narrow.get(index), uptime);
        let name = &mut port.counters.name;
        if !names.insert(name.clone()) {
            // names tell ports apart, in views and from one answer to the next
            *name = format!("{name}#{number}");
            names.insert(name.clone());
        }
        ports.push(port);
    }
    ports
}

fn port(number: u32, row: &Row, narrow: Option<&Row>, uptime: &Uptime) -> Port {
    let wide = [Column::InBytes, Column::OutBytes].map(|column| cell(row, column).and_then(dated));
    let (octets, width) = match (wide, narrow) {
        ([None, None], Some(narrow)) => ([0, 1].map(|i| narrow[i].as_ref().and_then(dated)), 32),
        _ => (wide, 64),
    };
    let count = |column| number_of(row, column);
    let [unicast, multicast, broadcast] = [Column::InUnicast, Column::InMulticast, Column::InBroadcast].map(count);
    let received = Counts {
        bytes: octets[0].map(|(bytes, _)| bytes),
        packets: sum([unicast, multicast, broadcast]),
        dropped: count(Column::InDiscards),
        errors: count(Column::InErrors),
        at: octets[0].map(|(_, at)| at),
    };
    let [unicast, multicast, broadcast] = [Column::OutUnicast, Column::OutMulticast, Column::OutBroadcast].map(count);
    let sent = Counts {
        bytes: octets[1].map(|(bytes, _)| bytes),
        packets: sum([unicast, multicast, broadcast]),
        dropped: count(Column::OutDiscards),
        errors: count(Column::OutErrors),
        at: octets[1].map(|(_, at)| at),
    };
    let description = text(row, Column::Description);
    let name = [text(row, Column::Name), description.clone()].into_iter().find(|name| !name.is_empty());
    let counters = PortCounters {
        number,
        name: name.unwrap_or_else(|| number.to_string()),
        is_virtual: is_virtual(row),
        rate: rate(row),
        up: status(row),
        neighbour: None,
        received,
        sent,
        queues: Vec::new(),
        width,
        discontinuity: Some(uptime.discontinuity(count(Column::Discontinuity).unwrap_or(0) as u32)),
    };
    Port { counters, description, physical: bytes(row, Column::Physical).to_vec() }
}

/// Packets of all kinds; a switch may leave out a kind, but not unicast.
fn sum([unicast, others @ ..]: [Option<u64>; 3]) -> Option<u64> {
    let total = |sum: u64, other: &Option<u64>| sum.wrapping_add(other.unwrap_or(0));
    unicast.map(|unicast| others.iter().fold(unicast, total))
}

fn rate(row: &Row) -> Option<Rate> {
    let high = number_of(row, Column::HighSpeed).filter(|mbps| (1..=HIGH_SPEED_MAX).contains(mbps));
    let low = number_of(row, Column::Speed).filter(|bps| (1..SPEED_MAX).contains(bps));
    match (high, low) {
        // ifHighSpeed is rounded to Mbit/s
        (Some(1..=4) | None, Some(bps)) => Some(Rate::from_bps(bps)),
        (Some(mbps), _) => Some(Rate::from_mbps(mbps)),
        (None, None) => None,
    }
}

/// Neither says it alone: some agents call every interface Ethernet with a connector, others have no ifXTable.
fn is_virtual(row: &Row) -> bool {
    const NO_CONNECTOR: u64 = 2;
    number_of(row, Column::Connector) == Some(NO_CONNECTOR) || number_of(row, Column::Type).is_some_and(is_virtual_type)
}

/// ifOperStatus: 1 up, 4 unknown; testing, dormant, notPresent and lowerLayerDown carry nothing.
fn status(row: &Row) -> Option<bool> {
    match number_of(row, Column::Status)? {
        1 => Some(true),
        2 | 3 | 5..=7 => Some(false),
        _ => None,
    }
}

fn cell(row: &Row, column: Column) -> Option<&(Cell, Time)> {
    row[column as usize].as_ref()
}

fn number_of(row: &Row, column: Column) -> Option<u64> {
    cell(row, column)?.0.number()
}

fn bytes(row: &Row, column: Column) -> &[u8] {
    cell(row, column).and_then(|(cell, _)| cell.bytes()).unwrap_or_default()
}

fn text(row: &Row, column: Column) -> String {
    clean(bytes(row, column))
}

fn dated((cell, at): &(Cell, Time)) -> Option<(u64, Time)> {
    Some((cell.number()?, *at))
}
