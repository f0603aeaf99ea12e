//! LLDP frames (IEEE 802.1AB) by which switches find each other: written for each port, and read at the port of the neighbour.
//!
//! A frame of ours ends with a field of our own, a keyed hash (HMAC-SHA-256, RFC 2104) over what is in front of it. So a host that makes up a
//! frame does not become a neighbour. It can still forward a frame that it received, as with every discovery by LLDP.

use super::Error;
use super::statistics::printable;
use super::wire::Cursor;
use crate::Neighbour;
use rustls::crypto::ring;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

/// Where LLDP frames go: to the other end of the cable; no bridge forwards them.
const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];
const ETHERTYPE: [u8; 2] = [0x88, 0xcc];
/// Identifier of an organization; its local bit is set, so that IEEE assigns it to nobody.
const OURS: [u8; 3] = [0x02, 0x4f, 0x54];
/// Bytes of the hash that are sent.
const SEAL: usize = 16;

/// Types of LLDP's fields.
mod field {
    pub const END: u8 = 0;
    pub const CHASSIS: u8 = 1;
    pub const PORT: u8 = 2;
    pub const TTL: u8 = 3;
    pub const SYSTEM: u8 = 5;
    pub const ORGANIZATION: u8 = 127;
}

/// Marks the frames of all switches that are read with it. Clones are the same key.
#[derive(Clone)]
pub struct LldpKey(Arc<[u8; 32]>);

impl LldpKey {
    /// A random key: its frames are believed as long as this process runs.
    pub fn random() -> LldpKey {
        let mut key = [0; 32];
        ring::default_provider().secure_random.fill(&mut key).expect("the kernel has random numbers");
        LldpKey(Arc::new(key))
    }

    /// A key that several collectors have in common.
    pub fn of(key: [u8; 32]) -> LldpKey {
        LldpKey(Arc::new(key))
    }

    /// HMAC-SHA-256, the first bytes.
    fn seal(&self, what: &[u8]) -> [u8; SEAL] {
        let padded = |with: u8| {
            let mut block = [with; 64];
            self.0.iter().zip(&mut block).for_each(|(key, byte)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(padded(0x36)).chain_update(what).finalize();
        let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
        outer[..SEAL].try_into().expect("a hash has 32")
    }
}

impl fmt::Debug for LldpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LldpKey")
    }
}

/// A port that says who it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    pub datapath: u64,
    /// The switch's name in views.
    pub system: &'a str,
    pub port: &'a str,
    /// The port's hardware address.
    pub address: [u8; 6],
    /// After which its neighbour forgets it, seconds.
    pub ttl_s: u16,
}

/// The frame that a port sends.
pub(super) fn frame(sender: &Sender<'_>, key: &LldpKey) -> Vec<u8> {
    const LOCAL: u8 = 7;
    const INTERFACE_NAME: u8 = 5;
    let mut frame = Vec::with_capacity(128);
    frame.extend(NEAREST_BRIDGE);
    frame.extend(sender.address);
    frame.extend(ETHERTYPE);
    put(&mut frame, field::CHASSIS, &[&[LOCAL], chassis(sender.datapath).as_bytes()]);
    put(&mut frame, field::PORT, &[&[INTERFACE_NAME], sender.port.as_bytes()]);
    put(&mut frame, field::TTL, &[&sender.ttl_s.to_be_bytes()]);
    put(&mut frame, field::SYSTEM, &[sender.system.as_bytes()]);
    let seal = key.seal(&frame);
    put(&mut frame, field::ORGANIZATION, &[&OURS, &[1], &seal]);
    put(&mut frame, field::END, &[]);
    frame
}

/// How a datapath is called where it has no name.
pub(super) fn chassis(datapath: u64) -> String {
    format!("dpid:{datapath:016x}")
}

/// Appends a field. Its content is cut to what a field can hold: 511 bytes.
fn put(frame: &mut Vec<u8>, kind: u8, content: &[&[u8]]) {
    let content = content.concat();
    let length = content.len().min(511);
    frame.extend((u16::from(kind) << 9 | length as u16).to_be_bytes());
    frame.extend(&content[..length]);
}

/// What a frame says of the port that sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heard {
    pub neighbour: Neighbour,
    /// How long it holds.
    pub ttl: Duration,
    /// Whether it was sent by a port of a switch that is read with this key.
    pub sealed: bool,
}

/// Reads a frame; `None` if it is not LLDP.
///
/// # Errors
/// It is cut short, or lacks a field that each frame has.
pub(super) fn read(frame: &[u8], key: &LldpKey) -> Result<Option<Heard>, Error> {
    let mut cursor = Cursor::new("LLDP frame", frame);
    cursor.skip(12)?;
    let mut ethertype = cursor.take(2)?;
    // a tag of a VLAN, as some switches leave it on
    if ethertype == [0x81, 0x00] {
        cursor.skip(2)?;
        ethertype = cursor.take(2)?;
    }
    if ethertype != ETHERTYPE {
        return Ok(None);
    }
    let (mut chassis, mut port, mut ttl, mut system, mut sealed) = (None, None, None, None, false);
    loop {
        let front = &frame[..frame.len() - cursor.rest().len()];
        let header = cursor.u16()?;
        let content = cursor.take(usize::from(header & 511))?;
        match (header >> 9) as u8 {
            field::END => break,
            field::CHASSIS => chassis = Some(identifier(content, 4)),
            field::PORT => port = Some(identifier(content, 3)),
            field::TTL => ttl = Some(Cursor::new("LLDP frame", content).u16()?),
            field::SYSTEM => system = Some(printable(content)),
            field::ORGANIZATION => {
                let seal = content.strip_prefix(&OURS).and_then(|rest| rest.strip_prefix(&[1]));
                sealed = seal.is_some_and(|seal| equal(seal, &key.seal(front)));
                // what follows is not under the seal
                if sealed {
                    break;
                }
            }
            _ => {}
        }
    }
    let (Some(chassis), Some(port), Some(ttl)) = (chassis, port, ttl) else {
        return Err(cursor.error("without chassis, port or time to live".to_string()));
    };
    let system = system.filter(|name| !name.is_empty()).unwrap_or(chassis);
    let ttl = Duration::from_secs(u64::from(ttl));
    Ok(Some(Heard { neighbour: Neighbour { system, port }, ttl, sealed }))
}

/// Compares in a time that does not depend on the bytes.
fn equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// A chassis' or port's identifier: its kind, then a text or, where the kind is `hardware`, an address.
fn identifier(content: &[u8], hardware: u8) -> String {
    match content.split_first() {
        Some((kind, address)) if *kind == hardware => {
            let mut text = String::new();
            for byte in address.iter().take(32) {
                let colon = if text.is_empty() { "" } else { ":" };
                let _ = write!(text, "{colon}{byte:02x}");
            }
            text
        }
        Some((_, text)) => printable(text),
        None => String::new(),
    }
}
