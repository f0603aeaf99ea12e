//! Cutting a super-segment into packets, as a network card does.

use crate::bytes::{put_word, word};
use crate::checksum;
use crate::transport::{Tcp, TcpFlags};
use crate::view::{Ethernet, Ip, protocol};
use crate::vnet::{GSO_ECN, GSO_TCPV4, GSO_TCPV6, VnetHeader};

/// The longest headers of a packet cut from a super-segment: Ethernet with two tags, IPv4 and TCP with all their options.
pub const HEADERS_BYTES_MAX: usize = 14 + 8 + 60 + 60;

/// Offset of TCP's checksum in its header.
pub(crate) const TCP_CHECKSUM_AT: usize = 16;

/// A packet for a link. Its bytes are the two slices in order; only the first was copied.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The work left for the receiving host. Never a super-segment.
    pub header: VnetHeader,
    /// The headers; the whole frame, if it was no super-segment.
    pub headers: &'a [u8],
    /// The rest: a part of the super-segment.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// Bytes from the Ethernet header on.
    pub fn frame_bytes(&self) -> usize {
        self.headers.len() + self.payload.len()
    }

    /// Appends the packet to `packet`.
    pub fn append_to(&self, packet: &mut Vec<u8>) {
        packet.extend_from_slice(self.headers);
        packet.extend_from_slice(self.payload);
    }
}

/// Why a frame does not fit a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its headers contradict themselves or the [`VnetHeader`], or it is an unexpected super-segment.
    Malformed,
    /// It is longer than the MTU and may not be cut.
    TooLong,
}

/// Cuts `frame` into packets of at most `mtu` bytes from the IP header on, and passes them to `out` in order. A frame that is no
/// super-segment is passed as it is.
///
/// As a card does: sequence numbers and IP identifications continue, every packet but the last carries the same number of
/// bytes, PSH and FIN are on the last only and CWR on the first. Checksums of TCP stay partial, that of IPv4 is whole.
/// Returns the number of packets.
///
/// # Errors
/// [`Refused`]; `out` was not called then.
pub fn segment(
    header: &VnetHeader,
    frame: &[u8],
    mtu: usize,
    out: &mut impl FnMut(Segment<'_>),
) -> Result<usize, Refused> {
    if header.is_gso() {
        let template = Template::new(header, frame, mtu)?;
        return Ok(template.cut(out));
    }
    check_plain(header, frame, mtu)?;
    let header = VnetHeader { hdr_len: 0, gso_size: 0, ..*header };
    out(Segment { header, headers: frame, payload: &[] });
    Ok(1)
}

fn check_plain(header: &VnetHeader, frame: &[u8], mtu: usize) -> Result<(), Refused> {
    let ethernet = Ethernet::parse(frame).ok_or(Refused::Malformed)?;
    let checksum_end = header.csum_start as usize + header.csum_offset as usize + 2;
    if header.needs_csum() && checksum_end > frame.len() {
        return Err(Refused::Malformed);
    }
    let length = match ethernet.ip() {
        Some(ip) => ip.bytes().len(),
        None if ethernet.is_ip() => return Err(Refused::Malformed),
        None => ethernet.payload().len(),
    };
    if length > mtu { Err(Refused::TooLong) } else { Ok(()) }
}

/// What the packets of a super-segment share.
struct Template<'a> {
    headers: [u8; HEADERS_BYTES_MAX],
    payload: &'a [u8],
    /// Bytes of payload in each packet but the last.
    size: usize,
    layout: Layout,
    /// Of the super-segment, and so of its first packet.
    seq: u32,
    id: u16,
    flags: TcpFlags,
    sums: Sums,
}

/// Where the headers of a TCP packet are, in bytes from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub is_v4: bool,
    pub ip: usize,
    pub tcp: usize,
    pub payload: usize,
}

impl Layout {
    /// `None` for what cannot be a packet of a super-segment, such as one with IPv6 extension headers.
    pub(crate) fn of(ethernet: &Ethernet<'_>, ip: &Ip<'_>, tcp: &Tcp<'_>) -> Option<Layout> {
        let at = ethernet.headers_bytes();
        let tcp_at = at + ip.headers_bytes();
        let is_v4 = matches!(ip, Ip::V4(_));
        let layout = Layout { is_v4, ip: at, tcp: tcp_at, payload: tcp_at + tcp.header_bytes() };
        (is_v4 || ip.headers_bytes() == 40).then_some(layout)
    }
}

/// The sums of what the packets of a flow have in common; a packet adds its own length and identification.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    ip: u64,
    pseudo_header: u64,
}

impl Sums {
    /// Of a packet's headers.
    pub(crate) fn of(headers: &[u8], Layout { is_v4, ip, tcp, .. }: Layout) -> Sums {
        let header = &headers[ip..tcp];
        // The checksum covers all but itself; length and identification are left out as well.
        let (ip, addresses) = if is_v4 {
            (
                checksum::sum(&header[..2]) + checksum::sum(&header[6..10]) + checksum::sum(&header[12..]),
                &header[12..20],
            )
        } else {
            (0, &header[8..40])
        };
        Sums { ip, pseudo_header: checksum::sum(addresses) + u64::from(protocol::TCP) }
    }

    /// The checksum of IPv4's header.
    pub(crate) fn ip_checksum(&self, length: u16, id: u16) -> u16 {
        !checksum::fold(self.ip + u64::from(length) + u64::from(id))
    }

    /// The partial checksum of TCP, for `length` bytes from TCP's header on.
    pub(crate) fn tcp_partial(&self, length: usize) -> u16 {
        checksum::fold(self.pseudo_header + length as u64)
    }
}

impl<'a> Template<'a> {
    fn new(header: &VnetHeader, frame: &'a [u8], mtu: usize) -> Result<Template<'a>, Refused> {
        let (ethernet, ip, tcp) = Self::parse(header, frame).ok_or(Refused::Malformed)?;
        let layout = Layout::of(&ethernet, &ip, &tcp).ok_or(Refused::Malformed)?;
        let room = (layout.ip + mtu).checked_sub(layout.payload).filter(|room| *room > 0).ok_or(Refused::TooLong)?;
        let mut headers = [0; HEADERS_BYTES_MAX];
        headers[..layout.payload].copy_from_slice(&frame[..layout.payload]);
        Ok(Template {
            headers,
            payload: tcp.payload(),
            size: room.min(header.gso_size as usize),
            layout,
            seq: tcp.seq(),
            id: match ip {
                Ip::V4(ip) => ip.id(),
                Ip::V6(_) => 0,
            },
            flags: tcp.flags(),
            sums: Sums::of(frame, layout),
        })
    }

    /// `None` for anything but TCP with payload, of the version that `header` names, its checksum partial.
    fn parse(header: &VnetHeader, frame: &'a [u8]) -> Option<(Ethernet<'a>, Ip<'a>, Tcp<'a>)> {
        let ethernet = Ethernet::parse(frame)?;
        let ip = ethernet.ip()?;
        let tcp = ip.tcp()?;
        let expected = match ip {
            Ip::V4(_) => GSO_TCPV4,
            Ip::V6(_) => GSO_TCPV6,
        };
        let checksum_at = (header.csum_start as usize, header.csum_offset as usize);
        let fits = header.gso_type & !GSO_ECN == expected
            && header.gso_size > 0
            && header.needs_csum()
            && checksum_at == (ethernet.headers_bytes() + ip.headers_bytes(), TCP_CHECKSUM_AT)
            && !tcp.payload().is_empty();
        fits.then_some((ethernet, ip, tcp))
    }

    fn cut(mut self, out: &mut impl FnMut(Segment<'_>)) -> usize {
        let count = self.payload.len().div_ceil(self.size);
        let header = VnetHeader::partial(self.layout.tcp as u16, TCP_CHECKSUM_AT as u16);
        let payload = self.payload;
        for (index, payload) in payload.chunks(self.size).enumerate() {
            self.number(index, count, payload.len());
            out(Segment { header, headers: &self.headers[..self.layout.payload], payload });
        }
        count
    }

    /// Makes the headers those of packet `index` of `count`, with `payload` bytes.
    fn number(&mut self, index: usize, count: usize, payload: usize) {
        let Layout { is_v4, ip, tcp, payload: payload_at } = self.layout;
        let id = self.id.wrapping_add(index as u16);
        let seq = self.seq.wrapping_add((index * self.size) as u32);
        let headers = &mut self.headers[..payload_at];
        set_lengths(headers, is_v4, ip, payload);
        if is_v4 {
            put_word(headers, ip + 4, id);
            put_word(headers, ip + 10, self.sums.ip_checksum(word(headers, ip + 2), id));
        }
        headers[tcp + 4..tcp + 8].copy_from_slice(&seq.to_be_bytes());
        put_word(headers, tcp + TCP_CHECKSUM_AT, self.sums.tcp_partial(payload_at - tcp + payload));

        let mut flags = self.flags;
        if index > 0 {
            flags = flags.without(TcpFlags::CWR);
        }
        if index + 1 < count {
            flags = flags.without(TcpFlags::PSH | TcpFlags::FIN);
        }
        let others = word(headers, tcp + 12) & !TcpFlags::ALL.0;
        put_word(headers, tcp + 12, others | flags.0);
    }
}

/// Writes IP's length for `payload` bytes behind `headers`, whose IP header starts at `ip`.
pub(crate) fn set_lengths(headers: &mut [u8], is_v4: bool, ip: usize, payload: usize) {
    let whole = headers.len() - ip + payload;
    if is_v4 {
        put_word(headers, ip + 2, whole as u16);
    } else {
        put_word(headers, ip + 4, (whole - 40) as u16);
    }
}
