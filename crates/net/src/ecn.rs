//! The ECN field of a packet.

/// The two ECN bits of an IP header (RFC 3168 section 5), with their code points as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion can only be signalled by a drop.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, code point 01.
    Ect1 = 0b01,
    /// ECN-capable, code point 10.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// May be marked instead of dropped; a packet that is marked already counts as capable.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}
