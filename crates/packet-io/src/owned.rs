//! A frame that an enforcer buffers and changes.

use crate::bytes::{put_word, word};
use crate::checksum::{fold, sum, updated};
use crate::offload::pseudo_header;
use crate::segment::{HEADERS_BYTES_MAX, Layout, Sums, TCP_CHECKSUM_AT, set_lengths};
use crate::transport::{Tcp, TcpFlags};
use crate::view::{Ecn, Ethernet, Ip, protocol};
use crate::vnet::{GSO_ECN, GSO_NONE, VnetHeader};
use enforcer::{End, Header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::Arc;
use tcp::{SACK_BLOCKS_MAX, SackBlock, Segment, flags};

/// Kinds of TCP options (IANA).
mod option {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const MD5: u8 = 19;
    pub const AO: u8 = 29;
    pub const MPTCP: u8 = 30;
}

/// Largest length of TCP options.
const OPTIONS_BYTES_MAX: usize = 40;

/// Offsets in TCP's header.
const SEQ_AT: usize = 4;
const ACK_AT: usize = 8;
const FLAGS_AT: usize = 12;
const WINDOW_AT: usize = 14;
const URGENT_AT: usize = 18;

/// A frame from its Ethernet header on, and the work left to a network card. As [`enforcer::Packet`] its headers are changed in place, and
/// its checksums with them: complete ones incrementally (RFC 1624), a partial one of TCP only when the length changes.
/// A super-segment is one long packet, and a part of it one as far as it is longer than its packets are to be.
///
/// The headers are its own; the payload is never changed, and is shared by copies and parts.
#[derive(Clone, Debug)]
pub struct OwnedFrame {
    /// Boxed, since frames are moved more often than copied.
    own: Box<Own>,
    rest: Shared,
}

/// The part that frames do not share.
#[derive(Clone, Copy, Debug)]
struct Own {
    header: VnetHeader,
    /// Of a whole and correct TCP packet; other frames are not parsed.
    layout: Option<Layout>,
    /// The first bytes are headers, as `layout` says.
    headers: [u8; HEADERS_BYTES_MAX],
}

impl Own {
    fn boxed(header: VnetHeader, layout: Option<Layout>, frame: &[u8]) -> Box<Own> {
        let mut own = Box::new(Own { header, layout, headers: [0; HEADERS_BYTES_MAX] });
        let bytes = headers_bytes(layout);
        own.headers[..bytes].copy_from_slice(&frame[..bytes]);
        own
    }
}

/// A range of a buffer that may be shared.
#[derive(Clone, Debug, Default)]
struct Shared {
    buffer: Option<Arc<[u8]>>,
    range: Range<u32>,
}

impl Shared {
    /// A copy of them.
    fn copied(bytes: &[u8]) -> Shared {
        let buffer = (!bytes.is_empty()).then(|| bytes.into());
        Shared { buffer, range: 0..bytes.len() as u32 }
    }

    fn bytes(&self) -> &[u8] {
        let Range { start, end } = self.range;
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[start as usize..end as usize])
    }

    /// Those from `start` to `end`.
    fn part(&self, start: usize, end: usize) -> Shared {
        let buffer = self.buffer.clone().filter(|_| start < end);
        Shared { buffer, range: self.range.start + start as u32..self.range.start + end as u32 }
    }

    /// The whole buffer, which must not be shared.
    fn memory(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.len())
    }
}

impl OwnedFrame {
    /// A copy of the frame `bytes`, whose offload work is in `header`.
    pub fn new(header: VnetHeader, bytes: &[u8]) -> OwnedFrame {
        let layout = understood(&header, bytes);
        OwnedFrame { own: Own::boxed(header, layout, bytes), rest: Shared::copied(&bytes[headers_bytes(layout)..]) }
    }

    /// The frame in a `range` of the buffer, which is not copied.
    pub fn within(header: VnetHeader, buffer: Arc<[u8]>, range: Range<usize>) -> OwnedFrame {
        let bytes = &buffer[range.clone()];
        let layout = understood(&header, bytes);
        let own = Own::boxed(header, layout, bytes);
        let range = (range.start + headers_bytes(layout)) as u32..range.end as u32;
        OwnedFrame { own, rest: Shared { buffer: Some(buffer), range } }
    }

    /// A received frame. `local`: no physical link was involved, so its sender may have left the checksum partial without
    /// marking it so (as hosts behind a veth do). Padding of a short packet is removed.
    pub fn received(bytes: &[u8], local: bool) -> OwnedFrame {
        let Some((layout, ip, _)) = parse(bytes) else { return OwnedFrame::new(VnetHeader::default(), bytes) };
        let segment = ip.payload();
        let pseudo = pseudo_header(&ip, protocol::TCP, segment.len());
        let header = if local && pseudo == word(segment, TCP_CHECKSUM_AT) {
            VnetHeader::partial(layout.tcp as u16, TCP_CHECKSUM_AT as u16)
        } else if sum_of(&ip) == u16::MAX {
            VnetHeader::VALID
        } else {
            VnetHeader::default()
        };
        let is_right = header != VnetHeader::default() && is_valid_header(&ip);
        let end = if is_right { layout.ip + ip.bytes().len() } else { bytes.len() };
        let (layout, bytes) = (is_right.then_some(layout), &bytes[..end]);
        OwnedFrame { own: Own::boxed(header, layout, bytes), rest: Shared::copied(&bytes[headers_bytes(layout)..]) }
    }

    /// The work left to do.
    pub fn vnet_header(&self) -> &VnetHeader {
        &self.own.header
    }

    /// The frame: its headers, if it is a packet of TCP, and the rest.
    pub fn parts(&self) -> [&[u8]; 2] {
        [&self.own.headers[..self.headers_bytes()], self.rest.bytes()]
    }

    /// The frame in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// Bytes from the Ethernet header on.
    pub fn frame_bytes(&self) -> usize {
        self.headers_bytes() + self.rest.range.len()
    }

    /// Offsets of its headers; `None` if it is not parsed.
    pub(crate) fn layout(&self) -> Option<Layout> {
        self.own.layout
    }

    fn headers_bytes(&self) -> usize {
        headers_bytes(self.own.layout)
    }

    fn flags(&self, tcp: usize) -> TcpFlags {
        TcpFlags(word(&self.own.headers, tcp + FLAGS_AT) & TcpFlags::ALL.0)
    }

    fn double_word(&self, at: usize) -> u32 {
        u32::from(word(&self.own.headers, at)) << 16 | u32::from(word(&self.own.headers, at + 2))
    }

    /// Writes a word of TCP's header or options at offset `at` of the frame.
    fn put(&mut self, tcp: usize, at: usize, value: u16) {
        let old = word(&self.own.headers, at);
        put_word(&mut self.own.headers, at, value);
        if !self.own.header.needs_csum() {
            // words are counted from the header's start, whose place in a frame with tags is even too
            let checksum = updated(word(&self.own.headers, tcp + TCP_CHECKSUM_AT), old, value);
            put_word(&mut self.own.headers, tcp + TCP_CHECKSUM_AT, checksum);
        }
    }

    /// The same for bytes at any offset.
    fn put_bytes(&mut self, tcp: usize, at: usize, bytes: &[u8]) {
        if (at - tcp).is_multiple_of(2)
            && let (words, []) = bytes.as_chunks()
        {
            for (i, new) in words.iter().enumerate() {
                self.put(tcp, at + 2 * i, u16::from_be_bytes(*new));
            }
            return;
        }
        for (i, byte) in bytes.iter().enumerate() {
            let at = at + i;
            let even = at - (at - tcp) % 2;
            let old = word(&self.own.headers, even).to_be_bytes();
            let new = if even == at { [*byte, old[1]] } else { [old[0], *byte] };
            self.put(tcp, even, u16::from_be_bytes(new));
        }
    }

    /// Writes a word of IPv4's header at offset `at` of the frame.
    fn put_in_ipv4(&mut self, ip: usize, at: usize, value: u16) {
        let checksum = updated(word(&self.own.headers, ip + 10), word(&self.own.headers, at), value);
        put_word(&mut self.own.headers, at, value);
        put_word(&mut self.own.headers, ip + 10, checksum);
    }

    /// Adapts its headers to the length of its payload and to its flags.
    fn fit(&mut self, layout: Layout, flags: u8) {
        let Layout { is_v4, ip, tcp, payload: at } = layout;
        let payload = self.rest.range.len();
        if is_v4 {
            self.put_in_ipv4(ip, ip + 2, (at - ip + payload) as u16);
        } else {
            set_lengths(&mut self.own.headers[..at], is_v4, ip, payload);
        }
        self.own.headers[tcp + FLAGS_AT + 1] = flags;
        if payload <= self.own.header.gso_size as usize {
            self.own.header = VnetHeader { gso_type: GSO_NONE, hdr_len: 0, gso_size: 0, ..self.own.header };
        }
        self.note_cwr(flags);
        self.sum_up(layout);
    }

    /// Of a super-segment's packets only the first is to bear CWR.
    fn note_cwr(&mut self, flags: u8) {
        if self.own.header.is_gso() {
            let cwr = if flags & flags::CWR == 0 { 0 } else { GSO_ECN };
            self.own.header.gso_type = self.own.header.gso_type & !GSO_ECN | cwr;
        }
    }

    /// Computes TCP's checksum anew: complete, or partial if that was left to do.
    fn sum_up(&mut self, layout: Layout) {
        let at = layout.tcp + TCP_CHECKSUM_AT;
        let header = &self.own.headers[layout.tcp..layout.payload];
        let pseudo = Sums::of(&self.own.headers, layout).tcp_partial(header.len() + self.rest.range.len());
        let checksum = if self.own.header.needs_csum() {
            pseudo
        } else {
            let own = u64::from(word(&self.own.headers, at));
            // the old value in its place cancels out with its complement
            !fold(u64::from(pseudo) + sum(header) + sum(self.rest.bytes()) + (0xffff - own))
        };
        put_word(&mut self.own.headers, at, checksum);
    }
}

/// Length of the headers that may be changed.
fn headers_bytes(layout: Option<Layout>) -> usize {
    layout.map_or(0, |layout| layout.payload)
}

/// The header offsets of a whole and correct TCP packet.
fn understood(header: &VnetHeader, bytes: &[u8]) -> Option<Layout> {
    let (layout, ip, _) = parse(bytes)?;
    let is_whole = layout.ip + ip.bytes().len() == bytes.len();
    let is_as_left = !header.is_gso() || header.needs_csum();
    let is_intact = header.needs_csum() || header.is_valid() || sum_of(&ip) == u16::MAX;
    (is_whole && is_as_left && is_intact && is_valid_header(&ip)).then_some(layout)
}

fn parse(bytes: &[u8]) -> Option<(Layout, Ip<'_>, Tcp<'_>)> {
    let ethernet = Ethernet::parse(bytes)?;
    let ip = ethernet.ip()?;
    let tcp = ip.tcp()?;
    Some((Layout::of(&ethernet, &ip, &tcp)?, ip, tcp))
}

/// The sum of a TCP segment; all ones if it is intact.
fn sum_of(ip: &Ip<'_>) -> u16 {
    let segment = ip.payload();
    fold(u64::from(pseudo_header(ip, protocol::TCP, segment.len())) + sum(segment))
}

/// Copied, so that a corrupt header is never used: a packet that its receiver refuses would be retransmitted for ever.
fn is_valid_header(ip: &Ip<'_>) -> bool {
    match ip {
        Ip::V4(v4) => fold(sum(&v4.bytes()[..v4.headers_bytes()])) == u16::MAX,
        Ip::V6(_) => true,
    }
}

impl enforcer::Packet for OwnedFrame {
    fn header(&self) -> Option<Header> {
        let Layout { is_v4, ip, tcp, payload } = self.own.layout?;
        let headers = &self.own.headers[..payload];
        let (source, destination): (IpAddr, IpAddr) = if is_v4 {
            let address = |at: usize| Ipv4Addr::from(array::<4>(headers, ip + at));
            (address(12).into(), address(16).into())
        } else {
            let address = |at: usize| Ipv6Addr::from(array::<16>(headers, ip + at));
            (address(8).into(), address(24).into())
        };
        let traffic_class = if is_v4 { headers[ip + 1] } else { (word(headers, ip) >> 4) as u8 };
        let flags = self.flags(tcp);
        let segment = Segment {
            seq: self.double_word(tcp + SEQ_AT),
            ack: self.double_word(tcp + ACK_AT),
            window: u32::from(word(headers, tcp + WINDOW_AT)),
            len: self.rest.range.len() as u16,
            flags: flags.0 as u8,
            ecn: ecn(Ecn::from_bits(traffic_class)),
            ..Segment::default()
        };
        let mut header = Header {
            source: End::new(source, word(headers, tcp)),
            destination: End::new(destination, word(headers, tcp + 2)),
            vlan: Ethernet::parse(headers)?.vlan()?,
            dscp: traffic_class >> 2,
            untouchable: flags.contains(TcpFlags::SYN | TcpFlags::AE),
            segment,
        };
        read_options(&headers[tcp + 20..], &mut header)?;
        Some(header)
    }

    fn window(&self, scale: u8) -> u32 {
        self.own.layout.map_or(0, |Layout { tcp, .. }| u32::from(word(&self.own.headers, tcp + WINDOW_AT)) << scale)
    }

    fn set_window(&mut self, written: u16, _scale: u8) {
        if let Some(Layout { tcp, .. }) = self.own.layout {
            self.put(tcp, tcp + WINDOW_AT, written);
        }
    }

    fn set_seq(&mut self, seq: u32) {
        if let Some(Layout { tcp, .. }) = self.own.layout {
            self.put_bytes(tcp, tcp + SEQ_AT, &seq.to_be_bytes());
        }
    }

    fn set_ack(&mut self, ack: u32) {
        if let Some(Layout { tcp, .. }) = self.own.layout {
            self.put_bytes(tcp, tcp + ACK_AT, &ack.to_be_bytes());
        }
    }

    fn set_timestamps(&mut self, tsval: u32, tsecr: u32) {
        let Some(Layout { tcp, payload, .. }) = self.own.layout else { return };
        let options = &self.own.headers[tcp + 20..payload];
        let Some(at) = find(options, option::TIMESTAMPS).filter(|at| options.get(at + 1) == Some(&10)) else { return };
        let at = tcp + 20 + at + 2;
        self.put_bytes(tcp, at, &tsval.to_be_bytes());
        self.put_bytes(tcp, at + 4, &tsecr.to_be_bytes());
    }

    fn set_flags(&mut self, flags: u8) {
        if let Some(Layout { tcp, .. }) = self.own.layout {
            let others = word(&self.own.headers, tcp + FLAGS_AT) & 0xff00;
            self.put(tcp, tcp + FLAGS_AT, others | u16::from(flags));
            self.note_cwr(flags);
        }
    }

    fn set_ecn(&mut self, ecn: tcp::Ecn) {
        let Some(Layout { is_v4, ip, .. }) = self.own.layout else { return };
        let bits = ecn as u16;
        let old = word(&self.own.headers, ip);
        if is_v4 {
            self.put_in_ipv4(ip, ip, old & !3 | bits);
        } else {
            // no checksum covers the traffic class
            put_word(&mut self.own.headers, ip, old & !0x30 | bits << 4);
        }
    }

    fn each(&self) -> u32 {
        let payload = self.rest.range.len() as u32;
        if self.own.header.is_gso() { u32::from(self.own.header.gso_size).min(payload) } else { payload }
    }

    fn link(&self) -> [u8; 12] {
        array(&self.own.headers, 0)
    }

    fn set_link(&mut self, link: [u8; 12]) {
        if self.own.layout.is_some() {
            self.own.headers[..link.len()].copy_from_slice(&link);
        }
    }

    fn strip_sack(&mut self) {
        let Some(Layout { tcp, payload, .. }) = self.own.layout else { return };
        let options = &self.own.headers[tcp + 20..payload];
        let Some(at) = find(options, option::SACK) else { return };
        let length = usize::from(options[at + 1]);
        self.put_bytes(tcp, tcp + 20 + at, &[option::NOP; 40][..length]);
    }

    fn set_sack(&mut self, block: SackBlock) -> bool {
        let Some(Layout { tcp, payload, .. }) = self.own.layout else { return false };
        let others = options(&self.own.headers[tcp + 20..payload]).flatten();
        let others = others.map(|(_, bytes)| bytes).filter(|bytes| bytes[0] != option::SACK);
        let mut all: Vec<u8> = others.flatten().copied().collect();
        while all.len() % 4 != 2 {
            all.push(option::NOP);
        }
        all.extend([option::SACK, 10]);
        all.extend(block.start.to_be_bytes());
        all.extend(block.end.to_be_bytes());
        if !self.rest.range.is_empty() || all.len() > OPTIONS_BYTES_MAX {
            return false;
        }
        let flags = self.flags(tcp).0 as u8;
        self.own.headers[tcp + 20..][..all.len()].copy_from_slice(&all);
        let (offset, rest) = ((20 + all.len() as u8) / 4, self.own.headers[tcp + FLAGS_AT] & 0xf);
        self.own.headers[tcp + FLAGS_AT] = offset << 4 | rest;
        self.own.layout = self.own.layout.map(|layout| Layout { payload: tcp + 20 + all.len(), ..layout });
        self.own.layout.into_iter().for_each(|layout| self.fit(layout, flags));
        true
    }

    fn part(&self, from: u32, len: u32) -> OwnedFrame {
        let mut part = self.clone();
        let Some(layout) = self.own.layout else { return part };
        let Layout { is_v4, ip, tcp, .. } = layout;
        let (payload, all_flags) = (self.rest.range.len(), self.flags(tcp));
        let start = (from as usize).min(payload);
        let end = ((from + len) as usize).min(payload);
        let has_end = from + len >= payload as u32 + u32::from(all_flags.contains(TcpFlags::FIN));
        let is_first = from == 0 || !self.own.header.is_gso();
        let mut flags = all_flags.0 as u8
            & if has_end { 0xff } else { !(flags::FIN | flags::PSH) }
            & if is_first { 0xff } else { !flags::CWR };
        part.rest = self.rest.part(start, end);
        let seq = self.double_word(tcp + SEQ_AT).wrapping_add(from);
        part.own.headers[tcp + SEQ_AT..][..4].copy_from_slice(&seq.to_be_bytes());
        if all_flags.contains(TcpFlags::URG) && from > 0 {
            // it is relative to the sequence number, which is larger now
            let urgent = u32::from(word(&self.own.headers, tcp + URGENT_AT)).saturating_sub(from) as u16;
            put_word(&mut part.own.headers, tcp + URGENT_AT, urgent);
            flags &= if urgent > 0 { 0xff } else { !(TcpFlags::URG.0 as u8) };
        }
        part.fit(layout, flags);
        if is_v4 && !is_first {
            // each packet has an identification of its own
            let ahead = (start / self.own.header.gso_size.max(1) as usize) as u16;
            part.put_in_ipv4(ip, ip + 4, word(&self.own.headers, ip + 4).wrapping_add(ahead));
        }
        part
    }

    fn bare(&self) -> OwnedFrame {
        let Some(layout) = self.own.layout else { return self.clone() };
        let mut bare = OwnedFrame { own: self.own.clone(), rest: Shared::default() };
        bare.fit(layout, flags::ACK);
        enforcer::Packet::set_ecn(&mut bare, tcp::Ecn::NotEct);
        bare
    }

    fn bytes(&self) -> usize {
        size_of::<(OwnedFrame, Own)>() + self.rest.memory()
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

fn ecn(bits: Ecn) -> tcp::Ecn {
    match bits {
        Ecn::NotEct => tcp::Ecn::NotEct,
        Ecn::Ect1 => tcp::Ecn::Ect1,
        Ecn::Ect0 => tcp::Ecn::Ect0,
        Ecn::Ce => tcp::Ecn::Ce,
    }
}

/// The options in order: offset and bytes of each; `None` for one that does not fit, which is the last.
fn options(options: &[u8]) -> impl Iterator<Item = Option<(usize, &[u8])>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while options.get(at) == Some(&option::NOP) {
            at += 1;
        }
        let kind = *options.get(at)?;
        if kind == option::END {
            return None;
        }
        let here = at;
        let length = options.get(at + 1).map_or(0, |length| usize::from(*length));
        let bytes = options.get(here..here + length).filter(|_| length >= 2);
        at = if bytes.is_some() { here + length } else { options.len() };
        Some(bytes.map(|bytes| (here, bytes)))
    })
}

/// Offset of the option of this kind.
fn find(all: &[u8], kind: u8) -> Option<usize> {
    options(all).flatten().find(|(_, bytes)| bytes[0] == kind).map(|(at, _)| at)
}

/// Parses the options into `header`; `None` if one is malformed.
fn read_options(all: &[u8], header: &mut Header) -> Option<()> {
    let segment = &mut header.segment;
    let double_word = |bytes: &[u8]| u32::from(word(bytes, 0)) << 16 | u32::from(word(bytes, 2));
    for entry in options(all) {
        let (_, bytes) = entry?;
        let data = &bytes[2..];
        match (bytes[0], data.len()) {
            (option::MSS, 2) => segment.mss = word(data, 0),
            // RFC 7323 2.3: a larger one counts as 14
            (option::WINDOW_SCALE, 1) => segment.window_scale = data[0].min(14) + 1,
            (option::SACK_PERMITTED, 0) => segment.sack_permitted = true,
            (option::TIMESTAMPS, 8) => {
                segment.has_timestamp = true;
                (segment.tsval, segment.tsecr) = (double_word(data), double_word(&data[4..]));
            }
            (option::SACK, length) if length > 0 && length.is_multiple_of(8) => {
                for (block, bytes) in segment.sack.iter_mut().zip(data.chunks(8)) {
                    *block = SackBlock { start: double_word(bytes), end: double_word(&bytes[4..]) };
                }
                segment.sack_count = (length / 8).min(SACK_BLOCKS_MAX) as u8;
            }
            (option::MD5 | option::AO, _) => header.untouchable = true,
            (option::MPTCP, _) => header.untouchable |= segment.flags & flags::SYN != 0,
            (option::MSS | option::WINDOW_SCALE | option::SACK_PERMITTED | option::TIMESTAMPS | option::SACK, _) => {
                return None;
            }
            _ => {}
        }
    }
    Some(())
}
