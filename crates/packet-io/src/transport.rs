//! TCP and UDP headers, read in place.

use crate::bytes::word;

/// A TCP segment (RFC 9293).
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    bytes: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// The segment that is the whole of `bytes`; `None` if its header does not fit.
    pub fn parse(bytes: &'a [u8]) -> Option<Tcp<'a>> {
        let header = (bytes.get(12)? >> 4) as usize * 4;
        (header >= 20 && bytes.len() >= header).then_some(Tcp { bytes })
    }

    /// The sender's port.
    pub fn source_port(&self) -> u16 {
        word(self.bytes, 0)
    }

    /// The receiver's port.
    pub fn destination_port(&self) -> u16 {
        word(self.bytes, 2)
    }

    /// The sequence number: of the first byte of the payload, or of the SYN.
    pub fn seq(&self) -> u32 {
        self.double_word(4)
    }

    /// The acknowledgment number: the next expected byte.
    pub fn ack(&self) -> u32 {
        self.double_word(8)
    }

    /// The flags.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(word(self.bytes, 12) & TcpFlags::ALL.0)
    }

    /// The advertised window as written, unscaled.
    pub fn window(&self) -> u16 {
        word(self.bytes, 14)
    }

    /// Bytes of the header with its options.
    pub fn header_bytes(&self) -> usize {
        (self.bytes[12] >> 4) as usize * 4
    }

    /// The options as written.
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[20..self.header_bytes()]
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_bytes()..]
    }

    fn double_word(&self, at: usize) -> u32 {
        u32::from(word(self.bytes, at)) << 16 | u32::from(word(self.bytes, at + 2))
    }
}

/// A set of TCP's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more to send.
    pub const FIN: TcpFlags = TcpFlags(0x001);
    /// Opens the connection.
    pub const SYN: TcpFlags = TcpFlags(0x002);
    /// Resets the connection.
    pub const RST: TcpFlags = TcpFlags(0x004);
    /// Deliver to the application at once.
    pub const PSH: TcpFlags = TcpFlags(0x008);
    /// The acknowledgment number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x010);
    /// The urgent pointer is valid.
    pub const URG: TcpFlags = TcpFlags(0x020);
    /// ECN echo.
    pub const ECE: TcpFlags = TcpFlags(0x040);
    /// The sender has reduced its window.
    pub const CWR: TcpFlags = TcpFlags(0x080);
    /// The third ECN bit (once the nonce, now accurate ECN).
    pub const AE: TcpFlags = TcpFlags(0x100);
    /// All flags.
    pub const ALL: TcpFlags = TcpFlags(0x1ff);

    /// Whether all of `flags` are set.
    pub fn contains(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These without `flags`.
    #[must_use]
    pub fn without(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !flags.0)
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = TcpFlags;
    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

/// A UDP datagram (RFC 768).
#[derive(Clone, Copy, Debug)]
pub struct Udp<'a> {
    bytes: &'a [u8],
}

impl<'a> Udp<'a> {
    /// The datagram that `bytes` starts with; `None` if it does not fit.
    pub fn parse(bytes: &'a [u8]) -> Option<Udp<'a>> {
        let length = u16::from_be_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
        (length >= 8).then(|| bytes.get(..length).map(|bytes| Udp { bytes }))?
    }

    /// The sender's port.
    pub fn source_port(&self) -> u16 {
        word(self.bytes, 0)
    }

    /// The receiver's port.
    pub fn destination_port(&self) -> u16 {
        word(self.bytes, 2)
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[8..]
    }
}
