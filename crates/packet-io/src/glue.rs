//! Joining packets that reach a host together, as a network card's receive offload does.

use crate::bytes::{put_word, word};
use crate::owned::OwnedFrame;
use crate::segment::{HEADERS_BYTES_MAX, Layout, Sums, TCP_CHECKSUM_AT, set_lengths};
use crate::transport::TcpFlags;
use crate::view::Ethernet;
use crate::vnet::{GSO_TCPV4, GSO_TCPV6, VnetHeader};
use std::io;

/// Packets in a train; 45 of an Ethernet's MTU are 64 KB.
const PACKETS_MAX: usize = 64;

/// The longest IP packet, in bytes.
const IP_BYTES_MAX: usize = 65_535;

/// Flags that every packet of a train may have. The others belong to one packet, and would be lost or repeated.
const EVERYWHERE: TcpFlags = TcpFlags(TcpFlags::ACK.0 | TcpFlags::ECE.0 | TcpFlags::AE.0);

/// Joins consecutive packets of one flow into super-segments, so that a host takes many with one system call and one pass
/// through its stack. For links above 2.5 Gbit/s only: a host then acknowledges by trains, as hosts do at such rates.
///
/// It joins nothing that [`segment`](crate::segment) would not restore byte by byte: the packets follow each other without a
/// gap, and agree in everything but lengths, sequence and identification numbers, so in ECN bits, flags, window and
/// options; each has a partial checksum, as cut packets do. Everything else passes unchanged. The order never changes.
///
/// Made for one batch: [`push`](Glue::push) what leaves now, in order, then [`flush`](Glue::flush).
pub struct Glue<'p> {
    train: Option<Train<'p>>,
    payloads: [&'p [u8]; PACKETS_MAX],
}

struct Train<'p> {
    header: VnetHeader,
    first: Car<'p>,
    sums: Sums,
    /// Payload of each packet but the last.
    size: usize,
    payload: usize,
    count: usize,
}

/// A packet that may belong to a train.
#[derive(Clone, Copy)]
struct Car<'p> {
    headers: &'p [u8],
    payload: &'p [u8],
    layout: Layout,
}

impl Default for Glue<'_> {
    fn default() -> Self {
        Glue::new()
    }
}

impl<'p> Glue<'p> {
    /// Nothing joined yet.
    pub fn new() -> Glue<'p> {
        Glue { train: None, payloads: [&[]; PACKETS_MAX] }
    }

    /// The next packet. If it does not continue the train, the train is sent first: `send` gets a frame in pieces, as
    /// [`Tap::write`](crate::Tap::write) does.
    ///
    /// # Errors
    /// The error of `send`; what it refused is lost.
    pub fn push(
        &mut self,
        header: VnetHeader,
        bytes: &'p [u8],
        send: &mut impl FnMut(&VnetHeader, &[&[u8]]) -> io::Result<()>,
    ) -> io::Result<()> {
        let cut = self.train.as_ref().and_then(|train| bytes.split_at_checked(train.first.layout.payload));
        if cut.is_some_and(|cut| self.joins(&header, cut)) {
            return self.flush_full(send);
        }
        self.flush(send)?;
        if !Car::parse(&header, bytes).is_some_and(|car| self.begins(header, car)) {
            return send(&header, &[bytes]);
        }
        Ok(())
    }

    /// The same for an owned frame.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_frame(
        &mut self,
        frame: &'p OwnedFrame,
        send: &mut impl FnMut(&VnetHeader, &[&[u8]]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (header, parts) = (frame.vnet_header(), frame.parts());
        if self.joins(header, parts.into()) {
            return self.flush_full(send);
        }
        self.flush(send)?;
        if !Car::of(frame).is_some_and(|car| self.begins(*header, car)) {
            return send(header, &parts);
        }
        Ok(())
    }

    /// Appends the packet to the train if it is the next one.
    fn joins(&mut self, header: &VnetHeader, (headers, payload): (&'p [u8], &'p [u8])) -> bool {
        let Some(train) = self.train.as_mut().filter(|train| train.is_next(header, headers, payload)) else {
            return false;
        };
        self.payloads[train.count] = payload;
        train.count += 1;
        train.payload += payload.len();
        true
    }

    /// Starts a train with the packet if that is possible.
    fn begins(&mut self, header: VnetHeader, car: Car<'p>) -> bool {
        let sums = Sums::of(car.headers, car.layout);
        if !car.is_ordinary(&header) || !car.sums_are(&sums) {
            return false;
        }
        self.payloads[0] = car.payload;
        let size = car.payload.len();
        self.train = Some(Train { header, first: car, sums, size, payload: size, count: 1 });
        true
    }

    /// Sends the train if it cannot grow.
    fn flush_full(&mut self, send: &mut impl FnMut(&VnetHeader, &[&[u8]]) -> io::Result<()>) -> io::Result<()> {
        // A short packet is a train's last, as a super-segment's is.
        let is_full =
            |train: &Train<'_>| train.count == PACKETS_MAX || self.payloads[train.count - 1].len() < train.size;
        if self.train.as_ref().is_some_and(is_full) { self.flush(send) } else { Ok(()) }
    }

    /// Sends the train.
    ///
    /// # Errors
    /// The error of `send`.
    pub fn flush(&mut self, send: &mut impl FnMut(&VnetHeader, &[&[u8]]) -> io::Result<()>) -> io::Result<()> {
        let Some(train) = self.train.take() else { return Ok(()) };
        if train.count == 1 {
            return send(&train.header, &[train.first.headers, train.first.payload]);
        }
        let mut headers = [0; HEADERS_BYTES_MAX];
        let header = train.write_headers(&mut headers);
        let mut parts: [&[u8]; PACKETS_MAX + 1] = [&[]; PACKETS_MAX + 1];
        parts[0] = &headers[..train.first.headers.len()];
        parts[1..=train.count].copy_from_slice(&self.payloads[..train.count]);
        send(&header, &parts[..=train.count])
    }
}

impl<'p> Train<'p> {
    /// Whether a packet continues it.
    ///
    /// The packet need not be parsed: where its headers equal the first one's, the same holds for it.
    fn is_next(&self, header: &VnetHeader, headers: &'p [u8], payload: &'p [u8]) -> bool {
        let layout = self.first.layout;
        let Layout { is_v4, ip, tcp, payload: at } = layout;
        let is_alike = *header == self.header && headers.len() == at && !payload.is_empty();
        if !is_alike || !same_headers(self.first.headers, headers, layout) {
            return false;
        }
        let (length_at, counted) = if is_v4 { (ip + 2, at - ip) } else { (ip + 4, at - tcp) };
        let car = Car { headers, payload, layout };
        let follows = car.seq() == self.first.seq().wrapping_add(self.payload as u32)
            && (!is_v4 || car.id() == self.first.id().wrapping_add(self.count as u16));
        let fits = payload.len() <= self.size && at - ip + self.payload + payload.len() <= IP_BYTES_MAX;
        let is_whole = word(headers, length_at) as usize == counted + payload.len();
        follows && fits && is_whole && car.sums_are(&self.sums)
    }

    /// Writes the super-segment's headers; returns the virtio header.
    fn write_headers(&self, headers: &mut [u8; HEADERS_BYTES_MAX]) -> VnetHeader {
        let Layout { is_v4, ip, tcp, payload: payload_at } = self.first.layout;
        let headers = &mut headers[..payload_at];
        headers.copy_from_slice(self.first.headers);
        set_lengths(headers, is_v4, ip, self.payload);
        if is_v4 {
            put_word(headers, ip + 10, self.sums.ip_checksum(word(headers, ip + 2), self.first.id()));
        }
        put_word(headers, tcp + TCP_CHECKSUM_AT, self.sums.tcp_partial(payload_at - tcp + self.payload));
        VnetHeader {
            gso_type: if is_v4 { GSO_TCPV4 } else { GSO_TCPV6 },
            gso_size: self.size as u16,
            hdr_len: payload_at as u16,
            ..self.header
        }
    }
}

impl<'p> Car<'p> {
    /// `None` if it is not a whole TCP packet.
    fn parse(header: &VnetHeader, bytes: &'p [u8]) -> Option<Car<'p>> {
        // most packets outside of trains fail here
        if header.is_gso() || !header.needs_csum() {
            return None;
        }
        let ethernet = Ethernet::parse(bytes)?;
        let ip = ethernet.ip()?;
        let tcp = ip.tcp()?;
        let layout = Layout::of(&ethernet, &ip, &tcp)?;
        // No padding behind it: that would be lost.
        let whole = layout.ip + ip.bytes().len() == bytes.len();
        whole.then(|| Car { headers: &bytes[..layout.payload], payload: tcp.payload(), layout })
    }

    /// The same for IPv6.
    fn of(frame: &'p OwnedFrame) -> Option<Car<'p>> {
        let [headers, payload] = frame.parts();
        frame.layout().map(|layout| Car { headers, payload, layout })
    }

    /// False for a packet that cannot be part of a train.
    fn is_ordinary(&self, header: &VnetHeader) -> bool {
        let tcp = self.layout.tcp;
        let flags = TcpFlags(word(self.headers, tcp + 12) & TcpFlags::ALL.0);
        *header == VnetHeader::partial(tcp as u16, TCP_CHECKSUM_AT as u16)
            && !self.payload.is_empty()
            && flags.without(EVERYWHERE) == TcpFlags::default()
    }

    fn seq(&self) -> u32 {
        u32::from(word(self.headers, self.layout.tcp + 4)) << 16 | u32::from(word(self.headers, self.layout.tcp + 6))
    }

    /// IPv4's identification.
    fn id(&self) -> u16 {
        word(self.headers, self.layout.ip + 4)
    }

    /// Whether the checksums are those that cutting would write. A wrong one is never corrected.
    fn sums_are(&self, sums: &Sums) -> bool {
        let Layout { is_v4, ip, tcp, .. } = self.layout;
        let ip_is_right = !is_v4
            || word(self.headers, ip + 10) == sums.ip_checksum(word(self.headers, ip + 2), word(self.headers, ip + 4));
        ip_is_right
            && word(self.headers, tcp + TCP_CHECKSUM_AT)
                == sums.tcp_partial(self.headers.len() - tcp + self.payload.len())
    }
}

/// Whether two packets with equal layouts agree in all fields that a super-segment has once.
fn same_headers(a: &[u8], b: &[u8], layout: Layout) -> bool {
    let Layout { is_v4, ip, tcp, payload } = layout;
    let same = |from: usize, to: usize| a[from..to] == b[from..to];
    // Left out: lengths, identification, checksums, sequence numbers.
    let ip_is_same = if is_v4 {
        same(0, ip + 2) && same(ip + 6, ip + 10) && same(ip + 12, tcp)
    } else {
        same(0, ip + 4) && same(ip + 6, tcp)
    };
    ip_is_same && same(tcp, tcp + 4) && same(tcp + 8, tcp + TCP_CHECKSUM_AT) && same(tcp + 18, payload)
}
