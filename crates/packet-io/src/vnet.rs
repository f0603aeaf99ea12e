//! What stands before each frame of a TAP: the work that was left to a network card.

/// No super-frame.
pub const GSO_NONE: u8 = 0;
/// A super-frame of TCP over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// A super-frame of TCP over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// Beside the type: the super-frame's first packet alone bears CWR.
pub const GSO_ECN: u8 = 0x80;

/// The TCP or UDP checksum is to be filled in from `csum_start` on.
const NEEDS_CSUM: u8 = 1;
/// It was found right.
const DATA_VALID: u8 = 2;

/// `struct virtio_net_hdr` of Linux (`linux/virtio_net.h`), as TAPs use it. The default says that nothing was left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Bit 0: the checksum is partial; bit 1: it was found right.
    pub flags: u8,
    /// [`GSO_NONE`] or the kind of a super-frame.
    pub gso_type: u8,
    /// Bytes of all headers of a super-frame; a hint only, and not relied on.
    pub hdr_len: u16,
    /// Bytes of payload that each packet of a super-frame is to carry; the last may carry less.
    pub gso_size: u16,
    /// Where the sum starts, in bytes from the start of the frame.
    pub csum_start: u16,
    /// Where the sum is to be put, in bytes from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Its bytes before a frame.
    pub const LEN: usize = 10;

    /// The header of a packet whose checksum is partial: what stands in the checksum's place is the sum of the
    /// pseudo-header.
    pub fn partial(csum_start: u16, csum_offset: u16) -> VnetHeader {
        VnetHeader { flags: NEEDS_CSUM, csum_start, csum_offset, ..VnetHeader::default() }
    }

    /// The header of a packet with nothing left to do, whose checksum was looked at.
    pub const VALID: VnetHeader =
        VnetHeader { flags: DATA_VALID, gso_type: GSO_NONE, hdr_len: 0, gso_size: 0, csum_start: 0, csum_offset: 0 };

    /// Whether the checksum was found right.
    pub fn is_valid(&self) -> bool {
        self.flags & DATA_VALID != 0
    }

    /// Whether the checksum is yet to be filled in.
    pub fn needs_csum(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// Whether the frame is a super-frame.
    pub fn is_gso(&self) -> bool {
        self.gso_type != GSO_NONE
    }

    /// Reads the header; its fields are in the machine's own order of bytes.
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

/// A frame that a host has sent.
#[derive(Debug)]
pub struct Frame<'b> {
    /// What was left to do.
    pub header: VnetHeader,
    /// From the Ethernet header on, without the frame check sequence.
    pub bytes: &'b mut [u8],
}
