//! A frame that somebody keeps, and may change on its way: what an enforcer works on.

use crate::checksum::{complete, fold, pseudo_header, sum, updated};
use crate::segment::{Layout, TCP_CHECKSUM_AT, set_lengths};
use crate::transport::{Tcp, TcpFlags};
use crate::view::{Ecn, Ethernet, Ip, protocol, put_word, word};
use crate::vnet::{GSO_ECN, GSO_NONE, VnetHeader};
use enforcer::{End, Header};
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
}

/// What the length of TCP's header leaves for options.
const OPTIONS_BYTES_MAX: usize = 40;

/// Where fields of TCP's header are.
const ACK_AT: usize = 8;
const FLAGS_AT: usize = 12;
const WINDOW_AT: usize = 14;

/// A frame from its Ethernet header on, and what was left to a network card. As [`enforcer::Packet`] it is changed in place, and its
/// checksums with it: those that are whole by the words that change (RFC 1624), a partial one of TCP only where the length does.
/// A super-frame is one long packet, and a part of it one as far as it is longer than its packets are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedFrame {
    header: VnetHeader,
    bytes: Vec<u8>,
    /// If it is a packet of TCP.
    layout: Option<Layout>,
}

impl OwnedFrame {
    /// The frame `bytes`, of which was left to do what `header` says.
    pub fn new(header: VnetHeader, bytes: Vec<u8>) -> OwnedFrame {
        let layout = parse(&bytes).map(|(layout, ..)| layout);
        OwnedFrame { header, bytes, layout }
    }

    /// A frame that has come in. `local`: no wire was involved, so its sender may have left the checksum to be filled in without
    /// saying so (as hosts behind a veth do).
    pub fn received(bytes: Vec<u8>, local: bool) -> OwnedFrame {
        let mut header = VnetHeader::default();
        let parsed = parse(&bytes).map(|(layout, ip, _)| {
            let segment = ip.payload();
            let pseudo = pseudo_header(&ip, protocol::TCP, segment.len());
            if fold(u64::from(pseudo) + sum(segment)) == u16::MAX {
                header = VnetHeader::VALID;
            } else if local && pseudo == word(segment, TCP_CHECKSUM_AT) {
                header = VnetHeader::partial(layout.tcp as u16, TCP_CHECKSUM_AT as u16);
            }
            layout
        });
        OwnedFrame { header, layout: parsed, bytes }
    }

    /// What was left to do.
    pub fn vnet_header(&self) -> &VnetHeader {
        &self.header
    }

    /// The frame.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What was left to do, and the frame.
    pub fn into_parts(self) -> (VnetHeader, Vec<u8>) {
        (self.header, self.bytes)
    }

    /// The frame as it goes to a wire, its checksums whole.
    pub fn completed(mut self) -> Vec<u8> {
        complete(&self.header, &mut self.bytes);
        self.bytes
    }

    /// Whether TCP's checksum is right, or is yet to be filled in.
    fn is_intact(&self, ip: &Ip<'_>) -> bool {
        if self.header.needs_csum() || self.header.is_valid() {
            return true;
        }
        let segment = ip.payload();
        fold(u64::from(pseudo_header(ip, protocol::TCP, segment.len())) + sum(segment)) == u16::MAX
    }

    /// TCP's options, and where they begin.
    fn options(&self) -> Option<(usize, &[u8])> {
        let Layout { tcp, payload, .. } = self.layout?;
        Some((tcp + 20, &self.bytes[tcp + 20..payload]))
    }

    /// Writes a word of TCP's header or options, which is at `at` from the start of the frame.
    fn put(&mut self, tcp: usize, at: usize, value: u16) {
        let old = word(&self.bytes, at);
        put_word(&mut self.bytes, at, value);
        if !self.header.needs_csum() {
            // words are counted from the header's start, whose place in a frame with tags is even too
            let checksum = updated(word(&self.bytes, tcp + TCP_CHECKSUM_AT), old, value);
            put_word(&mut self.bytes, tcp + TCP_CHECKSUM_AT, checksum);
        }
    }

    /// The same for bytes that may begin anywhere.
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
            let old = word(&self.bytes, even).to_be_bytes();
            let new = if even == at { [*byte, old[1]] } else { [old[0], *byte] };
            self.put(tcp, even, u16::from_be_bytes(new));
        }
    }

    /// Makes it carry `payload` bytes, which follow its headers, and its flags those.
    fn cut_to(&mut self, layout: Layout, payload: usize, flags: u8) {
        let Layout { is_v4, ip, tcp, payload: at } = layout;
        self.bytes.truncate(at + payload);
        let prior = word(&self.bytes, ip + 2);
        set_lengths(&mut self.bytes[..at], is_v4, ip, payload);
        if is_v4 {
            let checksum = updated(word(&self.bytes, ip + 10), prior, word(&self.bytes, ip + 2));
            put_word(&mut self.bytes, ip + 10, checksum);
        }
        self.bytes[tcp + FLAGS_AT + 1] = flags;
        if payload <= self.header.gso_size as usize {
            self.header = VnetHeader { gso_type: GSO_NONE, hdr_len: 0, gso_size: 0, ..self.header };
        }
        self.note_cwr(flags);
        self.sum_up(layout);
    }

    /// Of a super-frame's packets only the first is to bear CWR.
    fn note_cwr(&mut self, flags: u8) {
        if self.header.is_gso() {
            let cwr = if flags & flags::CWR == 0 { 0 } else { GSO_ECN };
            self.header.gso_type = self.header.gso_type & !GSO_ECN | cwr;
        }
    }

    /// Writes TCP's checksum anew: whole, or partial where that is what was left to do.
    fn sum_up(&mut self, Layout { tcp, .. }: Layout) {
        let at = tcp + TCP_CHECKSUM_AT;
        let Some((_, ip, _)) = parse(&self.bytes) else { return };
        let segment = ip.payload();
        let pseudo = pseudo_header(&ip, protocol::TCP, segment.len());
        let checksum = if self.header.needs_csum() {
            pseudo
        } else {
            let own = u64::from(word(&self.bytes, at));
            // what stands in its own place does not count: its complement cancels it
            !fold(u64::from(pseudo) + sum(segment) + (0xffff - own))
        };
        put_word(&mut self.bytes, at, checksum);
    }
}

fn parse(bytes: &[u8]) -> Option<(Layout, Ip<'_>, Tcp<'_>)> {
    let ethernet = Ethernet::parse(bytes)?;
    let ip = ethernet.ip()?;
    let tcp = ip.tcp()?;
    Some((Layout::of(&ethernet, &ip, &tcp)?, ip, tcp))
}

impl enforcer::Packet for OwnedFrame {
    fn header(&self) -> Option<Header> {
        let (layout, ip, tcp) = parse(&self.bytes)?;
        let whole = layout.ip + ip.bytes().len() == self.bytes.len();
        let is_super = self.header.is_gso();
        // a copy whose header its receiver refuses would be sent again in vain for ever
        let refused = layout.is_v4 && fold(sum(&self.bytes[layout.ip..layout.tcp])) != u16::MAX;
        if !whole || refused || (is_super && !self.header.needs_csum()) || !self.is_intact(&ip) {
            return None;
        }
        let mut segment = Segment {
            seq: tcp.seq(),
            ack: tcp.ack(),
            window: u32::from(tcp.window()),
            len: tcp.payload().len() as u16,
            flags: tcp.flags().0 as u8,
            ecn: ecn(ip.ecn()),
            ..Segment::default()
        };
        read_options(tcp.options(), &mut segment)?;
        let traffic_class = match ip {
            Ip::V4(ip) => ip.bytes()[1],
            Ip::V6(ip) => (word(ip.bytes(), 0) >> 4) as u8,
        };
        Some(Header {
            source: End::new(ip.source(), tcp.source_port()),
            destination: End::new(ip.destination(), tcp.destination_port()),
            vlan: Ethernet::parse(&self.bytes)?.vlan()?,
            dscp: traffic_class >> 2,
            segment,
        })
    }

    fn window(&self, scale: u8) -> u32 {
        self.layout.map_or(0, |Layout { tcp, .. }| u32::from(word(&self.bytes, tcp + WINDOW_AT)) << scale)
    }

    fn set_window(&mut self, written: u16, _scale: u8) {
        if let Some(Layout { tcp, .. }) = self.layout {
            self.put(tcp, tcp + WINDOW_AT, written);
        }
    }

    fn set_ack(&mut self, ack: u32) {
        if let Some(Layout { tcp, .. }) = self.layout {
            self.put_bytes(tcp, tcp + ACK_AT, &ack.to_be_bytes());
        }
    }

    fn set_timestamps(&mut self, tsval: u32, tsecr: u32) {
        let (Some(Layout { tcp, .. }), Some((start, options))) = (self.layout, self.options()) else { return };
        let Some(at) = find(options, option::TIMESTAMPS).filter(|at| options.get(at + 1) == Some(&10)) else { return };
        let at = start + at + 2;
        self.put_bytes(tcp, at, &tsval.to_be_bytes());
        self.put_bytes(tcp, at + 4, &tsecr.to_be_bytes());
    }

    fn set_flags(&mut self, flags: u8) {
        if let Some(Layout { tcp, .. }) = self.layout {
            let others = word(&self.bytes, tcp + FLAGS_AT) & 0xff00;
            self.put(tcp, tcp + FLAGS_AT, others | u16::from(flags));
            self.note_cwr(flags);
        }
    }

    fn set_ecn(&mut self, ecn: tcp::Ecn) {
        let Some(Layout { is_v4, ip, .. }) = self.layout else { return };
        let bits = ecn as u16;
        let old = word(&self.bytes, ip);
        if is_v4 {
            put_word(&mut self.bytes, ip, old & !3 | bits);
            let checksum = updated(word(&self.bytes, ip + 10), old, old & !3 | bits);
            put_word(&mut self.bytes, ip + 10, checksum);
        } else {
            // no checksum covers the traffic class
            put_word(&mut self.bytes, ip, old & !0x30 | bits << 4);
        }
    }

    fn strip_sack(&mut self) {
        let (Some(Layout { tcp, .. }), Some((start, options))) = (self.layout, self.options()) else { return };
        let Some(at) = find(options, option::SACK) else { return };
        let length = usize::from(options[at + 1]);
        self.put_bytes(tcp, start + at, &[option::NOP; 40][..length]);
    }

    fn set_sack(&mut self, block: SackBlock) -> bool {
        let Some((layout, _, header)) = parse(&self.bytes) else { return false };
        let others =
            options(header.options()).flatten().map(|(_, bytes)| bytes).filter(|bytes| bytes[0] != option::SACK);
        let mut all: Vec<u8> = others.flatten().copied().collect();
        while all.len() % 4 != 2 {
            all.push(option::NOP);
        }
        all.extend([option::SACK, 10]);
        all.extend(block.start.to_be_bytes());
        all.extend(block.end.to_be_bytes());
        if !header.payload().is_empty() || all.len() > OPTIONS_BYTES_MAX {
            return false;
        }
        let flags = header.flags().0 as u8;
        let Layout { tcp, .. } = layout;
        self.bytes.truncate(tcp + 20);
        self.bytes.extend(&all);
        let (offset, rest) = ((20 + all.len() as u8) / 4, self.bytes[tcp + FLAGS_AT] & 0xf);
        self.bytes[tcp + FLAGS_AT] = offset << 4 | rest;
        let layout = Layout { payload: self.bytes.len(), ..layout };
        self.layout = Some(layout);
        self.cut_to(layout, 0, flags);
        true
    }

    fn part(&self, from: u32, len: u32) -> OwnedFrame {
        let Some((layout, _, tcp)) = parse(&self.bytes) else { return self.clone() };
        let (payload, seq) = (tcp.payload(), tcp.seq());
        let start = (from as usize).min(payload.len());
        let end = ((from + len) as usize).min(payload.len());
        let has_end = from + len >= payload.len() as u32 + u32::from(tcp.flags().contains(TcpFlags::FIN));
        let is_first = from == 0 || !self.header.is_gso();
        let flags = tcp.flags().0 as u8
            & if has_end { 0xff } else { !(flags::FIN | flags::PSH) }
            & if is_first { 0xff } else { !flags::CWR };
        let mut bytes = Vec::with_capacity(layout.payload + end - start);
        bytes.extend_from_slice(&self.bytes[..layout.payload]);
        bytes.extend_from_slice(&payload[start..end]);
        bytes[layout.tcp + 4..layout.tcp + 8].copy_from_slice(&seq.wrapping_add(from).to_be_bytes());
        let mut part = OwnedFrame { header: self.header, bytes, layout: Some(layout) };
        part.cut_to(layout, end - start, flags);
        if layout.is_v4 && !is_first {
            // each packet has an identification of its own
            let (at, ip) = (layout.ip + 4, layout.ip + 10);
            let old = word(&part.bytes, at);
            let new = old.wrapping_add((start / self.header.gso_size.max(1) as usize) as u16);
            put_word(&mut part.bytes, at, new);
            let checksum = updated(word(&part.bytes, ip), old, new);
            put_word(&mut part.bytes, ip, checksum);
        }
        part
    }

    fn bare(&self) -> OwnedFrame {
        let Some(layout) = self.layout else { return self.clone() };
        let bytes = self.bytes[..layout.payload].to_vec();
        let mut bare = OwnedFrame { header: self.header, bytes, layout: self.layout };
        bare.cut_to(layout, 0, flags::ACK);
        enforcer::Packet::set_ecn(&mut bare, tcp::Ecn::NotEct);
        bare
    }

    fn bytes(&self) -> usize {
        size_of::<OwnedFrame>() + self.bytes.capacity()
    }
}

fn ecn(bits: Ecn) -> tcp::Ecn {
    match bits {
        Ecn::NotEct => tcp::Ecn::NotEct,
        Ecn::Ect1 => tcp::Ecn::Ect1,
        Ecn::Ect0 => tcp::Ecn::Ect0,
        Ecn::Ce => tcp::Ecn::Ce,
    }
}

/// The options one after the other: where each begins, and its bytes; `None` for one that does not fit, which is the last.
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

/// Where the option of this kind begins.
fn find(all: &[u8], kind: u8) -> Option<usize> {
    options(all).flatten().find(|(_, bytes)| bytes[0] == kind).map(|(at, _)| at)
}

/// Puts what options say into `segment`; `None` if one is malformed.
fn read_options(all: &[u8], segment: &mut Segment) -> Option<()> {
    let double_word = |bytes: &[u8]| u32::from(word(bytes, 0)) << 16 | u32::from(word(bytes, 2));
    for entry in options(all) {
        let (_, bytes) = entry?;
        let data = &bytes[2..];
        match (bytes[0], data.len()) {
            (option::MSS, 2) => segment.mss = word(data, 0),
            // RFC 7323 2.3: more counts as 14
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
            (option::MSS | option::WINDOW_SCALE | option::SACK_PERMITTED | option::TIMESTAMPS | option::SACK, _) => {
                return None;
            }
            _ => {}
        }
    }
    Some(())
}
