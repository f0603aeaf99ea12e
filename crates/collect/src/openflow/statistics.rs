//! Entries of multipart replies: descriptions and counters of ports, counters of queues and of flow entries.

use super::Error;
use super::wire::{Cursor, fields};
use crate::Counts;
use units::Rate;

/// What a switch says of a port (`ofp_port`, 64 bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    /// Its number.
    pub number: u32,
    /// Its hardware address.
    pub address: [u8; 6],
    /// Its name, printable.
    pub name: String,
    /// Whether it is neither switched off nor without carrier.
    pub up: bool,
    /// What it carries at present, if the switch says so.
    pub rate: Option<Rate>,
}

/// Reads a description, which stands next.
///
/// # Errors
/// It is cut short.
pub(super) fn description(cursor: &mut Cursor<'_>) -> Result<Description, Error> {
    const PORT_DOWN: u32 = 1;
    const LINK_DOWN: u32 = 1;
    let number = cursor.u32()?;
    cursor.skip(4)?;
    let address = cursor.take(6)?.try_into().expect("six were taken");
    cursor.skip(2)?;
    let name = cursor.take(16)?;
    let (config, state, current) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    // advertised, supported, the peer's
    cursor.skip(3 * 4)?;
    let (speed_kbps, _most_kbps) = (cursor.u32()?, cursor.u32()?);
    Ok(Description {
        number,
        address,
        name: printable(name.split(|byte| *byte == 0).next().unwrap_or_default()),
        up: config & PORT_DOWN == 0 && state & LINK_DOWN == 0,
        rate: rate(speed_kbps, current),
    })
}

/// The speed that is given, else the fastest of the feature bits (`ofp_port_features`).
fn rate(speed_kbps: u32, features: u32) -> Option<Rate> {
    const MBPS: [u64; 10] = [10, 10, 100, 100, 1_000, 1_000, 10_000, 40_000, 100_000, 1_000_000];
    if speed_kbps > 0 {
        return Some(Rate::from_bps(u64::from(speed_kbps) * 1000));
    }
    let fastest = (0..MBPS.len()).rev().find(|bit| features & (1 << bit) != 0)?;
    Some(Rate::from_bps(MBPS[fastest] * 1_000_000))
}

/// A text from outside in one line: what is no UTF-8 or controls a terminal becomes `?`; at most 255 bytes.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        let c = if c.is_control() || c == char::REPLACEMENT_CHARACTER { '?' } else { c };
        if text.len() + c.len_utf8() > policy::TEXT_MAX {
            break;
        }
        text.push(c);
    }
    text
}

/// Counters of a port (`ofp_port_stats`, 112 bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortStatistics {
    pub number: u32,
    pub received: Counts,
    pub sent: Counts,
    /// For how long the switch has had the port, seconds. All ones where it does not say.
    pub age_s: Option<u32>,
}

/// Reads counters of a port, which stand next.
///
/// # Errors
/// They are cut short.
pub(super) fn port(cursor: &mut Cursor<'_>) -> Result<PortStatistics, Error> {
    let number = cursor.u32()?;
    cursor.skip(4)?;
    let [mut received, mut sent] = [Counts::default(); 2];
    (received.packets, sent.packets) = (cursor.counter()?, cursor.counter()?);
    (received.bytes, sent.bytes) = (cursor.counter()?, cursor.counter()?);
    (received.dropped, sent.dropped) = (cursor.counter()?, cursor.counter()?);
    (received.errors, sent.errors) = (cursor.counter()?, cursor.counter()?);
    // kinds of receive errors, which are part of the errors; collisions
    cursor.skip(4 * 8)?;
    let (age_s, _age_ns) = (cursor.u32()?, cursor.u32()?);
    Ok(PortStatistics { number, received, sent, age_s: Some(age_s).filter(|age| *age != u32::MAX) })
}

/// Counters of a queue (`ofp_queue_stats`, 40 bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueStatistics {
    pub port: u32,
    pub queue: u32,
    pub packets: Option<u64>,
    /// `tx_errors`: dropped because the queue was full.
    pub dropped: Option<u64>,
}

/// Reads counters of a queue, which stand next.
///
/// # Errors
/// They are cut short.
pub(super) fn queue(cursor: &mut Cursor<'_>) -> Result<QueueStatistics, Error> {
    let (port, queue) = (cursor.u32()?, cursor.u32()?);
    let _bytes = cursor.u64()?;
    let (packets, dropped) = (cursor.counter()?, cursor.counter()?);
    cursor.skip(8)?;
    Ok(QueueStatistics { port, queue, packets, dropped })
}

/// A flow entry with its counters (`ofp_flow_stats`), or one that was removed (`ofp_flow_removed`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowEntry<'a> {
    pub table: u8,
    pub priority: u16,
    pub cookie: u64,
    pub bytes: Option<u64>,
    /// OXM fields.
    pub fields: &'a [u8],
}

/// Reads a flow entry of a reply, which stands next.
///
/// # Errors
/// It is cut short.
pub(super) fn flow<'a>(cursor: &mut Cursor<'a>) -> Result<FlowEntry<'a>, Error> {
    let length = usize::from(cursor.u16()?);
    let Some(rest) = length.checked_sub(2) else {
        return Err(cursor.error(format!("an entry with a length of {length}")));
    };
    let mut entry = Cursor::new("flow statistics", cursor.take(rest)?);
    let table = entry.u8()?;
    // padding, age
    entry.skip(1 + 4 + 4)?;
    let priority = entry.u16()?;
    // timeouts, flags, padding
    entry.skip(2 + 2 + 2 + 4)?;
    let cookie = entry.u64()?;
    let (_packets, bytes) = (entry.counter()?, entry.counter()?);
    Ok(FlowEntry { table, priority, cookie, bytes, fields: fields(&mut entry)? })
}

/// Reads the body of a flow-removed message.
///
/// # Errors
/// It is cut short.
pub(super) fn removed(body: &[u8]) -> Result<FlowEntry<'_>, Error> {
    let mut cursor = Cursor::new("flow-removed", body);
    let cookie = cursor.u64()?;
    let priority = cursor.u16()?;
    let _reason = cursor.u8()?;
    let table = cursor.u8()?;
    // age, timeouts
    cursor.skip(4 + 4 + 2 + 2)?;
    let (_packets, bytes) = (cursor.counter()?, cursor.counter()?);
    Ok(FlowEntry { table, priority, cookie, bytes, fields: fields(&mut cursor)? })
}
