//! What crosses the network: one TCP segment, header and options decoded, payload counted but not carried.

/// Flag bits of the TCP header (RFC 9293 3.1, RFC 3168 for ECE and CWR).
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// The ECN field of the IP header (RFC 3168), with its codepoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1).
    Ect1 = 1,
    /// ECN-capable, ECT(0): what TCP sends.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// A block of sequence numbers that the receiver holds: `[start, end)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: u32,
    /// The number after its last.
    pub end: u32,
}

/// Most SACK blocks beside a timestamp option (RFC 2018).
pub const SACK_BLOCKS_MAX: usize = 3;

/// One segment: a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Segment {
    /// Sequence number of the first payload byte (or of the SYN, or FIN).
    pub seq: u32,
    /// Acknowledgment number, valid with [`flags::ACK`].
    pub ack: u32,
    /// Receive window in bytes, the window scale already applied.
    pub window: u32,
    /// Timestamp value, milliseconds; valid with [`Segment::has_timestamp`].
    pub tsval: u32,
    /// Timestamp echo reply.
    pub tsecr: u32,
    /// Payload bytes.
    pub len: u16,
    /// Maximum segment size option of a SYN; 0: absent.
    pub mss: u16,
    /// [`flags`].
    pub flags: u8,
    /// ECN field of the IP header; a queue may turn ECT into CE.
    pub ecn: Ecn,
    /// The timestamp option is present.
    pub has_timestamp: bool,
    /// SACK-permitted option of a SYN.
    pub sack_permitted: bool,
    /// Window scale option of a SYN plus 1; 0: absent.
    pub window_scale: u8,
    /// How many of `sack` are filled; the first may be a D-SACK (RFC 2883).
    pub sack_count: u8,
    /// AE, CWR and ECE of a connection with AccECN (RFC 9768), and 8; 0: ECE and CWR of `flags` are those of RFC 3168.
    pub ace: u8,
    /// SACK blocks, most recent first.
    pub sack: [SackBlock; SACK_BLOCKS_MAX],
}

const _: () = assert!(size_of::<Segment>() == 64);

impl Segment {
    /// Bytes of the IP packet: 20 of IPv4, 20 of TCP, options padded to 4, payload.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        let rare = if (self.flags & flags::SYN) | self.sack_count == 0 { 0 } else { self.rare_option_bytes() };
        40 + u32::from(self.has_timestamp) * 12 + rare + self.len as u32
    }

    /// Bytes of the options that most segments do not have.
    #[cold]
    fn rare_option_bytes(&self) -> u32 {
        let mut options = 0;
        if self.sack_count > 0 {
            options += 4 + 8 * self.sack_count as u32;
        }
        if self.flags & flags::SYN != 0 {
            options += if self.mss != 0 { 4 } else { 0 };
            options += if self.window_scale != 0 { 4 } else { 0 };
            // beside a timestamp, SACK-permitted takes the place of its padding
            options += if self.sack_permitted && !self.has_timestamp { 4 } else { 0 };
        }
        options
    }

    /// Sequence numbers that the segment occupies: payload, SYN and FIN.
    pub fn seq_len(&self) -> u32 {
        self.len as u32 + (self.flags & flags::SYN != 0) as u32 + (self.flags & flags::FIN != 0) as u32
    }

    /// The sequence number after the segment.
    pub fn end_seq(&self) -> u32 {
        self.seq.wrapping_add(self.seq_len())
    }
}
