//! Frames that a test crafts: with a VLAN tag in the frame, the same ends in two VLANs at once, IPv6 with extension headers.

use crate::wire::Wire;
use crate::world::World;
use nix::sys::socket::SockProtocol;

const SERVER: [u8; 4] = [10, 96, 0, 1];
const CLIENT: [u8; 4] = [10, 96, 0, 2];
const PORTS: [u16; 2] = [80, 40_000];
/// The VLAN that the client's filter passes, and another.
const VLANS: [u16; 2] = [5, 6];
/// The server's data in each.
const TEXTS: [&str; 2] = ["of one VLAN", "another one's"];
const SYN: u8 = 2;
const ACK: u8 = 16;
const PROTOCOL_TCP: u8 = 6;

/// A segment of one of the two connections, which differ only in VLAN and sequence numbers.
#[derive(Clone, Copy)]
struct Segment<'a> {
    vlan: u16,
    by_server: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    payload: &'a [u8],
}

/// The checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn tcp(segment: &Segment, pseudo: &[u8]) -> Vec<u8> {
    let [from, to] = if segment.by_server { PORTS } else { [PORTS[1], PORTS[0]] };
    let mut tcp =
        [&from.to_be_bytes()[..], &to.to_be_bytes(), &segment.seq.to_be_bytes(), &segment.ack.to_be_bytes()].concat();
    tcp.extend([5 << 4, segment.flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(segment.payload);
    let sum = checksum(&[pseudo, &[0, PROTOCOL_TCP], &(tcp.len() as u16).to_be_bytes(), &tcp].concat());
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    tcp
}

fn ethernet(by_server: bool) -> Vec<u8> {
    let [to, from] = if by_server { [2, 1] } else { [1, 2] };
    vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]
}

/// Its frame, with the tag in it.
fn frame(segment: &Segment) -> Vec<u8> {
    let [from, to] = if segment.by_server { [SERVER, CLIENT] } else { [CLIENT, SERVER] };
    let tcp = tcp(segment, &[from, to].concat());
    let mut ip =
        [&[0x45, 0][..], &(20 + tcp.len() as u16).to_be_bytes(), &[0, 0, 0x40, 0, 64, PROTOCOL_TCP, 0, 0]].concat();
    ip.extend([from, to].concat());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let tag = [&[0x81, 0][..], &segment.vlan.to_be_bytes(), &[0x08, 0]].concat();
    [ethernet(segment.by_server), tag, ip, tcp].concat()
}

/// Whether a frame, as a host reads it (the tag beside it), is this segment.
fn is(segment: &Segment) -> impl Fn(&[u8]) -> bool {
    let Segment { seq, ack, flags, .. } = *segment;
    let payload = segment.payload.to_vec();
    move |frame| {
        let numbers = [seq.to_be_bytes(), ack.to_be_bytes()].concat();
        frame.get(38..46) == Some(&numbers[..])
            && frame.get(47) == Some(&flags)
            && frame.get(54..) == Some(&payload[..])
    }
}

/// Runs `step` for each VLAN: its number, the initial sequence numbers of server and client, and the data.
fn each(mut step: impl FnMut(u16, u32, u32, &[u8])) {
    for (vlan, text) in VLANS.into_iter().zip(TEXTS) {
        step(vlan, 1_000_000 * u32::from(vlan), 7_000_000 * u32::from(vlan), text.as_bytes());
    }
}

#[test]
fn the_same_ends_in_two_vlans_are_two_flows_and_tags_in_frames_stay() {
    let Some(world) = World::new() else { return };
    world.let_vlan_in_at_client();
    let _enforcer = world.enforce(&["--rule", "bbr"]);
    let mut server = Wire::of(&world.hosts()[0], SockProtocol::EthAll);
    let mut client = Wire::of(&world.hosts()[2], SockProtocol::EthAll);
    let mut filtered = Wire::of(&world.hosts()[2], SockProtocol::EthIp);
    let from = |by_server, vlan, seq, ack, flags| Segment { vlan, by_server, seq, ack, flags, payload: &[] };
    each(|vlan, _, c, _| {
        let syn = from(false, vlan, c, 0, SYN);
        client.send(&frame(&syn));
        assert!(server.has(is(&syn)));
    });
    each(|vlan, s, c, _| {
        let answer = from(true, vlan, s, c + 1, SYN | ACK);
        server.send(&frame(&answer));
        assert!(client.has(is(&answer)));
    });
    each(|vlan, s, c, _| {
        let third = from(false, vlan, c + 1, s + 1, ACK);
        client.send(&frame(&third));
        assert!(server.has(is(&third)));
    });
    each(|vlan, s, c, text| {
        let data = Segment { payload: text, ..from(true, vlan, s + 1, c + 1, ACK) };
        server.send(&frame(&data));
        assert!(client.has(is(&data)), "VLAN {vlan}: the bytes and the numbers of its own flow");
    });
    each(|vlan, s, c, text| {
        let ack = from(false, vlan, c + 1, s + 1 + text.len() as u32, ACK);
        client.send(&frame(&ack));
        assert!(server.has(is(&ack)));
    });
    filtered.read();
    let carries = |text: &str| filtered.seen.iter().filter(|frame| frame.ends_with(text.as_bytes())).count();
    assert_eq!([carries(TEXTS[0]), carries(TEXTS[1])], [1, 0], "only the data in VLAN 5 passes");
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    assert_eq!((counter("flows_opened"), counter("data_taken"), counter("sent")), (2, 2, 2), "{status}");
    assert_eq!((counter("passed_malformed"), counter("retransmitted"), counter("gaps")), (0, 0, 0), "{status}");
}

#[test]
fn ipv6_with_extension_headers_takes_the_way_by_the_bridge() {
    let Some(world) = World::new() else { return };
    let _enforcer = world.enforce(&["--rule", "bbr"]);
    let server = Wire::of(&world.hosts()[0], SockProtocol::EthAll);
    let mut client = Wire::of(&world.hosts()[2], SockProtocol::EthAll);
    let before = world.status()["servers"].clone();
    let addresses = [[0xfd; 16], [0xfe; 16]].concat();
    // hop-by-hop and destination options (RFC 8200 4.3, 4.6), each with six bytes of padding
    for header in [0, 60] {
        let tcp = tcp(&Segment { vlan: 0, by_server: true, seq: 1, ack: 0, flags: SYN, payload: &[] }, &addresses);
        let length = (8 + tcp.len() as u16).to_be_bytes();
        let ip = [&[0x86, 0xdd, 0x60, 0, 0, 0][..], &length, &[header, 64], &addresses].concat();
        let frame = [ethernet(true), ip, vec![PROTOCOL_TCP, 0, 1, 4, 0, 0, 0, 0], tcp].concat();
        server.send(&frame);
        assert!(client.has(|seen| seen == frame), "header {header}: as it was");
    }
    let after = world.status()["servers"].clone();
    assert_eq!(after["received"], before["received"], "these frames bypassed the enforcer");
    let bridged = |status: &serde_json::Value| status["bridged"].as_u64().expect("it is counted");
    assert!(bridged(&after) >= bridged(&before) + 2, "{after}");
}
