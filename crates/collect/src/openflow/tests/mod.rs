//! The parts, on messages that Open vSwitch 3.1 sent (`recorded.txt`), on what a faulty switch may send, and on random bytes.

pub(crate) mod faulty;
mod matrix;

use super::lldp::{self, LldpKey, Sender};
use super::statistics::{self, Description};
use super::wire::{self, Cursor, HEADER, Message, kind};
use super::{Error, oxm, parsed};
use crate::Counts;
use proptest::prelude::*;
use units::Rate;

/// The messages, by name.
const RECORDED: &str = include_str!("recorded.txt");

/// A recorded message, with its header.
fn recorded(name: &str) -> Vec<u8> {
    let line = RECORDED.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let hex = line.unwrap_or_else(|| panic!("{name} was not recorded"));
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn body(name: &str) -> Vec<u8> {
    recorded(name).split_off(HEADER)
}

/// Every entry of a recorded multipart reply.
fn entries<T>(name: &str, read: impl Fn(&mut Cursor<'_>) -> Result<T, Error>) -> Vec<T> {
    let body = body(name);
    let part = wire::part(&body).expect("it is whole");
    assert!(!part.more);
    let mut cursor = Cursor::new("recorded", part.body);
    let mut all = Vec::new();
    while !cursor.is_empty() {
        all.push(read(&mut cursor).expect("it is whole"));
    }
    all
}

#[test]
fn recorded_ports_and_queues_are_read() {
    let features = wire::features(&body("features")).expect("it is whole");
    assert_eq!((features.datapath, features.auxiliary), (1, 0));
    let ports = entries("descriptions", statistics::description);
    let said: Vec<(u32, &str, bool)> = ports.iter().map(|port| (port.number, port.name.as_str(), port.up)).collect();
    assert_eq!(said, [(0xffff_fffe, "sw1", false), (1, "c1", true), (2, "p1", true)]);
    assert!(ports.iter().all(|port| port.rate == Some(Rate::from_gbps(10))));
    let counted = entries("ports", statistics::port);
    let counts = |packets, bytes, dropped| Counts {
        bytes: Some(bytes),
        packets: Some(packets),
        dropped: Some(dropped),
        errors: Some(0),
        at: None,
    };
    assert_eq!([counted[1].received, counted[1].sent], [counts(5, 426, 0), counts(6, 512, 0)]);
    assert_eq!([counted[0].received, counted[0].sent], [counts(0, 0, 0), counts(0, 0, 5)]);
    assert_eq!(counted[1].age_s, Some(1));
    let queues = entries("queues", statistics::queue);
    let said: Vec<(u32, u32, Option<u64>)> =
        queues.iter().map(|queue| (queue.port, queue.queue, queue.packets)).collect();
    assert_eq!(said, [(2, 3, Some(0)), (2, 0, Some(5))]);
}

#[test]
fn recorded_flow_entries_are_read() {
    let body = body("flows");
    let part = wire::part(&body).expect("it is whole");
    let mut cursor = Cursor::new("recorded", part.body);
    let mut found = Vec::new();
    while !cursor.is_empty() {
        let entry = statistics::flow(&mut cursor).expect("it is whole");
        let read = oxm::read(entry.fields).expect("it is whole");
        let ends = [read.source, read.destination].map(|end| end.map(|prefix| prefix.to_string()).unwrap_or_default());
        found.push((entry.cookie, entry.priority, ends.join(" to "), entry.fields == oxm::LLDP));
    }
    let entry = |cookie, priority, ends: &str, is_lldp| (cookie, priority, ends.to_string(), is_lldp);
    let expected = [
        entry(0, 60_000, " to ", true),
        // its source's mask has a gap, so it is no prefix
        entry(9, 12, " to 10.98.2.1/32", false),
        entry(8, 11, "fd98:1::/64 to fd98:2::1/128", false),
        entry(7, 10, "10.98.1.0/24 to 10.98.2.1/32", false),
        entry(0, 0, " to ", false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_a_switch_said_unasked_is_read() {
    let arrived = body("packet_in");
    let arrived = wire::packet_in(&arrived).expect("it is whole");
    assert_eq!(oxm::read(arrived.fields).expect("it is whole").in_port, Some(1));
    let heard = lldp::read(arrived.packet, &LldpKey::random()).expect("it is whole").expect("it is LLDP");
    assert_eq!((heard.neighbour.system.as_str(), heard.neighbour.port.as_str()), ("h1-xx", "eth0"));
    assert_eq!((heard.ttl.as_secs(), heard.sealed), (120, false));
    let removed = body("removed");
    let removed = statistics::removed(&removed).expect("it is whole");
    assert_eq!((removed.cookie, removed.priority, removed.table, removed.bytes), (9, 12, 0, Some(0)));
    let flows = body("flows");
    let mut cursor = Cursor::new("recorded", wire::part(&flows).expect("it is whole").body);
    let listed = [(); 2].map(|()| statistics::flow(&mut cursor).expect("it is whole"));
    assert_eq!(removed.fields, listed[1].fields, "an entry is found by its match when it is removed");
    assert_eq!(wire::generation(&body("role")), Ok(None));
    let (kind, code) = wire::error(&body("error")).expect("it is whole");
    assert_eq!(wire::error_name(kind, code), "BAD_REQUEST, BAD_LEN");
}

#[test]
fn versions_are_agreed_on() {
    let hello = |version: u8, body: &[u8]| Message { version, kind: kind::HELLO, xid: 0, body: body.to_vec() };
    let bitmap = |versions: u32| [&[0, 1, 0, 8][..], &versions.to_be_bytes()].concat();
    for (spoken, version, body) in [
        (true, 4, vec![]),
        (true, 6, vec![]),
        (false, 1, vec![]),
        (true, 6, bitmap(1 << 4 | 1 << 6)),
        (false, 6, bitmap(1 << 1 | 1 << 6)),
        // an element that is not known, with its padding, before the bitmap
        (false, 6, [&[0, 9, 0, 5, 1, 0, 0, 0][..], &bitmap(1 << 6)].concat()),
    ] {
        assert_eq!(wire::speaks_ours(&hello(version, &body)), Ok(spoken), "{version} {body:?}");
    }
    assert!(wire::speaks_ours(&hello(6, &[0, 1, 0, 3])).is_err());
    let recorded = Message { version: 6, kind: kind::HELLO, xid: 13, body: body("hello") };
    assert_eq!(wire::speaks_ours(&recorded), Ok(true));
}

const SENDER: Sender<'_> =
    Sender { datapath: 0x1f, system: "tor1", port: "eth7", address: [2, 0, 0, 0, 0, 7], ttl_s: 120 };

#[test]
fn a_frame_is_believed_by_its_seal() {
    let key = LldpKey::random();
    let frame = lldp::frame(&SENDER, &key);
    let heard = lldp::read(&frame, &key).expect("it is whole").expect("it is LLDP");
    assert_eq!((heard.neighbour.system.as_str(), heard.neighbour.port.as_str(), heard.sealed), ("tor1", "eth7", true));
    let other = lldp::read(&frame, &LldpKey::random()).expect("it is whole").expect("it is LLDP");
    assert!(!other.sealed, "another key");
    for at in 12..frame.len() {
        let mut changed = frame.clone();
        changed[at] ^= 1;
        if let Ok(Some(read)) = lldp::read(&changed, &key) {
            // what is behind the seal says nothing
            assert!(!read.sealed || read == heard, "byte {at}");
        }
    }
    let nameless = lldp::frame(&Sender { system: "", ..SENDER }, &key);
    let heard = lldp::read(&nameless, &key).expect("it is whole").expect("it is LLDP");
    assert_eq!(heard.neighbour.system, "dpid:000000000000001f");
}

#[test]
fn the_seal_is_hmac_of_rfc_2104() {
    // RFC 4231, test case 1; a shorter key is one with zeros behind it
    let mut key = [0; 32];
    key[..20].fill(0x0b);
    let expected = [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b];
    assert_eq!(LldpKey::of(key).seal(b"Hi There"), expected);
}

#[test]
fn names_from_outside_are_printable_and_short() {
    assert_eq!(statistics::printable(b"eth0"), "eth0");
    assert_eq!(statistics::printable(b"a\x1b[2J\xff\n"), "a?[2J??");
    assert_eq!(statistics::printable(&[b'x'; 400]).len(), 255);
}

/// A recorded message, of which bytes are changed, and the end is cut or extended.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&str> = RECORDED.lines().filter_map(|line| line.split(' ').next()).collect();
    let change = (any::<prop::sample::Index>(), any::<u8>());
    (prop::sample::select(names), prop::collection::vec(change, 0..6), any::<prop::sample::Index>(), any::<bool>())
        .prop_map(|(name, changes, cut, is_cut)| {
            let mut bytes = recorded(name);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        parsed(&bytes);
        let _ = Cursor::new("anything", &bytes).take(usize::MAX);
    }

    #[test]
    fn changed_messages_are_read_or_refused_without_a_panic(bytes in mutated()) {
        parsed(&bytes);
        parsed(bytes.get(HEADER..).unwrap_or_default());
    }

    #[test]
    fn what_is_read_of_a_description_is_printable(bytes in prop::collection::vec(any::<u8>(), 64)) {
        let Description { name, .. } = statistics::description(&mut Cursor::new("random", &bytes)).expect("as long as one");
        prop_assert!(!name.contains(char::is_control) && name.len() <= 48);
    }
}
