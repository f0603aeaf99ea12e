//! The header before each frame of a TAP: work that was left to a network card.

/// No super-segment.
pub const GSO_NONE: u8 = 0;
/// A super-segment of TCP over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// A super-segment of TCP over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// Added to the type: only the super-segment's first packet has CWR.
pub const GSO_ECN: u8 = 0x80;

/// The TCP or UDP checksum is to be filled in from `csum_start` on.
const NEEDS_CSUM: u8 = 1;
/// The checksum was verified.
const DATA_VALID: u8 = 2;

/// `struct virtio_net_hdr` of Linux (`linux/virtio_net.h`), as TAPs use it. The default means that nothing is left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Bit 0: the checksum is partial; bit 1: it was verified.
    pub flags: u8,
    /// [`GSO_NONE`] or the kind of a super-segment.
    pub gso_type: u8,
    /// Bytes of all headers of a super-segment; a hint only, and not relied on.
    pub hdr_len: u16,
    /// Bytes of payload that each packet of a super-segment is to carry; the last may carry less.
    pub gso_size: u16,
    /// Start of the sum, in bytes from the start of the frame.
    pub csum_start: u16,
    /// Place of the sum, in bytes from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Its bytes before a frame.
    pub const LEN: usize = 10;

    /// The header of a packet whose checksum is partial: it holds the sum of the
    /// pseudo-header.
    pub fn partial(csum_start: u16, csum_offset: u16) -> VnetHeader {
        VnetHeader { flags: NEEDS_CSUM, csum_start, csum_offset, ..VnetHeader::default() }
    }

    /// The header of a packet with nothing left to do, whose checksum was verified.
    pub const VALID: VnetHeader =
        VnetHeader { flags: DATA_VALID, gso_type: GSO_NONE, hdr_len: 0, gso_size: 0, csum_start: 0, csum_offset: 0 };

    /// Whether the checksum was verified.
    pub fn is_valid(&self) -> bool {
        self.flags & DATA_VALID != 0
    }

    /// Whether the checksum is yet to be filled in.
    pub fn needs_csum(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// Whether the frame is a super-segment.
    pub fn is_gso(&self) -> bool {
        self.gso_type != GSO_NONE
    }

    /// Reads the header; its fields are in the machine's byte order.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> VnetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    /// The bytes that [`VnetHeader::from_bytes`] reads.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, field) in [(2, self.hdr_len), (4, self.gso_size), (6, self.csum_start), (8, self.csum_offset)] {
            bytes[at..at + 2].copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }
}

/// A frame from a host.
#[derive(Debug)]
pub struct Frame<'b> {
    /// The work left to do.
    pub header: VnetHeader,
    /// From the Ethernet header on, without the frame check sequence.
    pub bytes: &'b mut [u8],
}
