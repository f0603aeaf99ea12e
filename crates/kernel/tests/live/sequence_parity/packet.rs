//! Segments as IPv4 packets, and back: what a scripted peer needs of the two headers.

use std::net::Ipv4Addr;
use tcp::{Ecn, Segment, flags};

/// Both headers without options.
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;

/// Kinds of TCP options.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMP: u8 = 8;

/// Addresses and ports of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub from: (Ipv4Addr, u16),
    pub to: (Ipv4Addr, u16),
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads an Ethernet frame. None: no TCP over IPv4. The window is as it stands in the header.
pub fn parse(frame: &[u8]) -> Option<(Ends, Segment)> {
    let ip = frame.get(14..)?;
    if frame[12..14] != [8, 0] || ip.len() < IP_BYTES + TCP_BYTES || ip[9] != 6 {
        return None;
    }
    let header = (ip[0] & 15) as usize * 4;
    let (total, tcp) = (u16_at(ip, 2) as usize, ip.get(header..)?);
    let data = (tcp[12] >> 4) as usize * 4;
    let address = |at: usize| Ipv4Addr::from(u32_at(ip, at));
    let ends = Ends { from: (address(12), u16_at(tcp, 0)), to: (address(16), u16_at(tcp, 2)) };
    let mut segment = Segment {
        seq: u32_at(tcp, 4),
        ack: u32_at(tcp, 8),
        flags: tcp[13],
        window: u16_at(tcp, 14).into(),
        len: (total - header - data) as u16,
        ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(ip[1] & 3) as usize],
        ..Segment::default()
    };
    read_options(&tcp[TCP_BYTES..data], &mut segment);
    Some((ends, segment))
}

fn read_options(mut options: &[u8], segment: &mut Segment) {
    while let [kind, rest @ ..] = options {
        if *kind == END {
            return;
        }
        if *kind == NOP {
            options = rest;
            continue;
        }
        let body = &options[2..options[1] as usize];
        match *kind {
            MSS => segment.mss = u16_at(body, 0),
            WINDOW_SCALE => segment.window_scale = body[0] + 1,
            SACK_PERMITTED => segment.sack_permitted = true,
            TIMESTAMP => {
                segment.has_timestamp = true;
                (segment.tsval, segment.tsecr) = (u32_at(body, 0), u32_at(body, 4));
            }
            _ => {}
        }
        options = &options[options[1] as usize..];
    }
}

/// Writes an IPv4 packet without payload; the kernel fills in length and checksum of the IP header. `scale`: of the window.
pub fn build(ends: &Ends, segment: &Segment, scale: u8) -> Vec<u8> {
    assert_eq!(segment.len, 0, "a scripted peer sends no data");
    let syn = segment.flags & flags::SYN != 0;
    let window = if syn { segment.window } else { segment.window >> scale };
    let options = options(segment);
    let mut tcp = Vec::new();
    tcp.extend(ends.from.1.to_be_bytes());
    tcp.extend(ends.to.1.to_be_bytes());
    tcp.extend(segment.seq.to_be_bytes());
    tcp.extend(segment.ack.to_be_bytes());
    tcp.extend([((TCP_BYTES + options.len()) as u8 / 4) << 4, segment.flags]);
    tcp.extend((window.min(0xffff) as u16).to_be_bytes());
    tcp.extend([0; 4]); // checksum, urgent pointer
    tcp.extend(options);
    let sum = checksum(ends, &tcp);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());

    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend(ends.from.0.octets());
    packet.extend(ends.to.0.octets());
    packet.extend(tcp);
    packet
}

fn options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if segment.mss != 0 {
        options.extend([MSS, 4]);
        options.extend(segment.mss.to_be_bytes());
    }
    if segment.sack_permitted {
        options.extend([NOP, NOP, SACK_PERMITTED, 2]);
    }
    if segment.has_timestamp {
        options.extend([NOP, NOP, TIMESTAMP, 10]);
        options.extend(segment.tsval.to_be_bytes());
        options.extend(segment.tsecr.to_be_bytes());
    }
    if segment.window_scale != 0 {
        options.extend([NOP, WINDOW_SCALE, 3, segment.window_scale - 1]);
    }
    if segment.sack_count > 0 {
        options.extend([NOP, NOP, SACK, 2 + 8 * segment.sack_count]);
        for block in &segment.sack[..segment.sack_count as usize] {
            options.extend(block.start.to_be_bytes());
            options.extend(block.end.to_be_bytes());
        }
    }
    options
}

/// The Internet checksum over the pseudo header and the segment (RFC 9293 3.1).
fn checksum(ends: &Ends, tcp: &[u8]) -> u16 {
    let mut bytes = Vec::new();
    bytes.extend(ends.from.0.octets());
    bytes.extend(ends.to.0.octets());
    bytes.extend([0, 6]);
    bytes.extend((tcp.len() as u16).to_be_bytes());
    bytes.extend(tcp);
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
