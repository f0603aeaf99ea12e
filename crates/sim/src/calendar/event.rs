//! One pending event.

use units::Time;

/// What an event is, in the upper bits of [`Event::tag`]; the lower two are a packet's ECN field.
pub mod kind {
    // 0: a packet reaches a switch
    /// A packet reaches its host.
    pub const DELIVERY: u8 = 1 << 2;
    /// An endpoint's timer.
    pub const TIMER: u8 = 2 << 2;
    /// An endpoint that back-pressure stopped may continue to send.
    pub const WAKE: u8 = 3 << 2;
    /// An application acts.
    pub const APP: u8 = 4 << 2;
    /// The enforcer's timer.
    pub const GATE: u8 = 5 << 2;
    /// What an application has asked of an endpoint takes effect.
    pub const REQUEST: u8 = 6 << 2;
    /// A link that holds its packets may send the next.
    pub const LINK: u8 = 7 << 2;
    /// The bits of the kind.
    pub const MASK: u8 = 0b1111_1100;
}

/// One pending event: 16 bytes, by value, in two words so that it is made and copied in registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Event {
    /// Bits 0–31 [`Event::offset`], 32–63 [`Event::what`].
    pub first: u64,
    /// Bits 0–31 [`Event::place`], 32–47 [`Event::len`], 48–55 [`Event::tag`], 56–63 [`Event::epoch`].
    pub second: u64,
}

impl Event {
    /// A packet of `len` bytes on the wire in slot `what`, at `place` on its route.
    #[inline]
    pub fn packet(what: u32, place: u32, len: u16, ecn: u8) -> Event {
        Event { first: u64::from(what) << 32, second: u64::from(place) | u64::from(len) << 32 | u64::from(ecn) << 48 }
    }

    /// Something of `kind` at a host.
    #[inline]
    pub fn host(kind: u8, what: u32, place: u32) -> Event {
        Event { first: u64::from(what) << 32, second: u64::from(place) | u64::from(kind) << 48 }
    }

    /// The packet one place further on its route, without an epoch.
    #[inline]
    pub fn onward(self) -> Event {
        Event { second: (self.second & (u64::MAX >> 8)) + 1, ..self }
    }

    /// The packet, which has no epoch yet, as a link has accepted it: under its epoch, marked if the link did so, on the
    /// way to a host if `last`.
    #[inline]
    pub fn accepted(self, epoch: u8, marked: bool, last: bool) -> Event {
        // CE is both bits of the ECN field
        let tag = (u64::from(marked) * 3) | (u64::from(last) * u64::from(kind::DELIVERY));
        Event { second: self.second | tag << 48 | u64::from(epoch) << 56, ..self }
    }

    /// The packet at another place.
    #[inline]
    pub fn moved_to(self, place: u32) -> Event {
        Event { second: self.second >> 32 << 32 | u64::from(place), ..self }
    }

    /// When it happens, in a bucket that starts at `start`.
    #[inline]
    pub fn time(self, start: Time) -> Time {
        start + Time::from_ps(u64::from(self.offset()))
    }

    /// A packet under way, to a switch or to its host?
    pub fn is_packet(self) -> bool {
        self.tag() & kind::MASK <= kind::DELIVERY
    }

    /// A packet that reaches a switch?
    #[inline]
    pub fn is_at_switch(self) -> bool {
        self.second & u64::from(kind::MASK) << 48 == 0
    }

    /// 0 for a packet that reaches a switch, 1 for all others.
    #[inline]
    pub fn lane(self) -> usize {
        usize::from(!self.is_at_switch())
    }

    /// Picoseconds after the start of its bucket.
    #[inline]
    pub fn offset(self) -> u32 {
        self.first as u32
    }

    #[inline]
    pub fn at_offset(self, offset: u32) -> Event {
        Event { first: self.first >> 32 << 32 | u64::from(offset), ..self }
    }

    /// The packet's slot; or what the event concerns.
    #[inline]
    pub fn what(self) -> u32 {
        (self.first >> 32) as u32
    }

    /// A packet's place in the table of routes; or the endpoint.
    #[inline]
    pub fn place(self) -> u32 {
        self.second as u32
    }

    /// A packet's bytes on the wire.
    #[inline]
    pub fn len(self) -> u16 {
        (self.second >> 32) as u16
    }

    /// [`kind`] and ECN field.
    #[inline]
    pub fn tag(self) -> u8 {
        (self.second >> 48) as u8
    }

    /// The epoch of the link that the packet is on.
    #[inline]
    pub fn epoch(self) -> u8 {
        (self.second >> 56) as u8
    }
}
