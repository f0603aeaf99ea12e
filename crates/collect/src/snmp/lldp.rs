//! LLDP-MIB (IEEE 802.1AB-2005): what is at the other end of a port's cable.

use super::interfaces::Port;
use super::walk::{Index, Row};
use crate::Neighbour;
use crate::text::{clean, hex};
use async_snmp::Oid;
use std::collections::BTreeMap;

/// lldpLocPortEntry: lldpLocPortIdSubtype, lldpLocPortId, lldpLocPortDesc; indexed by lldpLocPortNum.
const LOCAL_ENTRY: [u32; 9] = [1, 0, 8802, 1, 1, 2, 1, 3, 7];
const LOCAL_COLUMNS: [u32; 3] = [2, 3, 4];
/// lldpRemEntry: lldpRemChassisIdSubtype, lldpRemChassisId, lldpRemPortIdSubtype, lldpRemPortId, lldpRemPortDesc, lldpRemSysName; indexed
/// by lldpRemTimeMark, lldpRemLocalPortNum, lldpRemIndex.
const REMOTE_ENTRY: [u32; 9] = [1, 0, 8802, 1, 1, 2, 1, 4, 1];
const REMOTE_COLUMNS: [u32; 6] = [4, 5, 6, 7, 8, 9];

/// Subtypes of chassis: what is in lldpRemChassisId.
const CHASSIS_MAC: u64 = 4;
/// Subtypes of ports: what is in lldpRemPortId and lldpLocPortId.
const PORT_MAC: u64 = 3;
const PORT_NAME: u64 = 5;

/// Columns of the switch's own ports.
pub(super) fn local_columns() -> impl Iterator<Item = Oid> {
    LOCAL_COLUMNS.into_iter().map(|column| Oid::from_slice(&LOCAL_ENTRY).child(1).child(column))
}

/// Columns of the neighbours.
pub(super) fn remote_columns() -> impl Iterator<Item = Oid> {
    REMOTE_COLUMNS.into_iter().map(|column| Oid::from_slice(&REMOTE_ENTRY).child(1).child(column))
}

/// Gives each port its neighbour. Where several are heard, the port leads to a segment and not to a neighbour.
pub(super) fn join(ports: &mut [Port], local: &BTreeMap<Index, Row>, remote: &BTreeMap<Index, Row>) {
    let mut heard: BTreeMap<u32, Vec<Neighbour>> = BTreeMap::new();
    for (index, row) in remote {
        let [_, port, _] = index[..] else { continue };
        let neighbours = heard.entry(port).or_default();
        // An entry may be there twice, with an old and a new time.
        match neighbour(row) {
            Some(neighbour) if !neighbours.contains(&neighbour) => neighbours.push(neighbour),
            _ => {}
        }
    }
    for (number, neighbours) in heard {
        if let ([neighbour], Some(port)) = (&neighbours[..], find(ports, number, local.get(&vec![number]))) {
            ports[port].counters.neighbour = Some(neighbour.clone());
        }
    }
}

fn neighbour(row: &Row) -> Option<Neighbour> {
    let chassis = match bytes(row, 1) {
        id if number(row, 0) == Some(CHASSIS_MAC) => hex(id),
        id => clean(id),
    };
    let port = match bytes(row, 3) {
        id if number(row, 2) == Some(PORT_MAC) => hex(id),
        id => clean(id),
    };
    let first = |texts: [String; 2]| texts.into_iter().find(|text| !text.is_empty());
    let system = first([clean(bytes(row, 5)), chassis])?;
    // A port that is named by its address has a better name in its description.
    let description = clean(bytes(row, 4));
    let port = if number(row, 2) == Some(PORT_MAC) { first([description, port]) } else { first([port, description]) };
    Some(Neighbour { system, port: port.unwrap_or_default() })
}

/// Which port LLDP's `number` is: the one that lldpLocPortTable names, else the one with that ifIndex.
fn find(ports: &[Port], number_of_lldp: u32, local: Option<&Row>) -> Option<usize> {
    let Some(row) = local else {
        return ports.iter().position(|port| port.counters.number == number_of_lldp);
    };
    let (id, description) = (bytes(row, 1), clean(bytes(row, 2)));
    if number(row, 0) == Some(PORT_MAC) {
        // One address may be that of several ports.
        let mut same = (0..ports.len()).filter(|port| !id.is_empty() && ports[*port].physical == id);
        if let (Some(port), None) = (same.next(), same.next()) {
            return Some(port);
        }
    }
    let is_named =
        |port: &Port, name: &str| !name.is_empty() && (port.counters.name == name || port.description == name);
    let by_name = |name: &str| ports.iter().position(|port| is_named(port, name));
    let id = clean(id);
    let found = by_name(&id).or_else(|| by_name(&description));
    if found.is_some() || number(row, 0) == Some(PORT_NAME) {
        return found;
    }
    // "local": often ifIndex in digits
    let number = id.parse().unwrap_or(number_of_lldp);
    ports.iter().position(|port| port.counters.number == number)
}

fn number(row: &Row, column: usize) -> Option<u64> {
    row[column].as_ref()?.0.number()
}

fn bytes(row: &Row, column: usize) -> &[u8] {
    row[column].as_ref().and_then(|(cell, _)| cell.bytes()).unwrap_or_default()
}
