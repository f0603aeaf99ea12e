//! Packets on their way from one part to another, in few bytes: of a large network they are hundreds of kilobytes a window, which the caches
//! would rather have for other things.

use crate::calendar::Event;
use tcp::{Ecn, SackBlock, Segment};
use units::Time;

/// Packets that leave for one other part, in the order of leaving.
#[derive(Default)]
pub struct Outbox {
    packets: Vec<Crossing>,
    /// The blocks of those that have any.
    sacks: Vec<[SackBlock; tcp::SACK_BLOCKS_MAX]>,
    /// When each was sent; empty unless delays are measured.
    sent: Vec<Time>,
}

/// A packet: its segment without SACK blocks, and what its event says.
#[derive(Clone, Copy)]
struct Crossing {
    /// When it reaches the far end of the link that it is on.
    arrives: Time,
    /// [`Event::second`], at its place in the table of the part that it comes to.
    second: u64,
    seq: u32,
    ack: u32,
    window: u32,
    tsval: u32,
    tsecr: u32,
    len: u16,
    mss: u16,
    flags: u8,
    ecn: Ecn,
    has_timestamp: bool,
    sack_permitted: bool,
    window_scale: u8,
    sack_count: u8,
    ace: u8,
}

const _: () = assert!(size_of::<Crossing>() == 48);

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The packet of `event`, which arrives at `arrives`; `sent` is when it was sent, if delays are measured.
    #[inline]
    pub fn push(&mut self, arrives: Time, event: Event, segment: &Segment, sent: Option<Time>) {
        let Segment { seq, ack, window, tsval, tsecr, len, mss, flags, ecn, .. } = *segment;
        let Segment { has_timestamp, sack_permitted, window_scale, sack_count, ace, .. } = *segment;
        if sack_count > 0 {
            self.sacks.push(segment.sack);
        }
        self.sent.extend(sent);
        self.packets.push(Crossing {
            arrives,
            second: event.second,
            seq,
            ack,
            window,
            tsval,
            tsecr,
            len,
            mss,
            flags,
            ecn,
            has_timestamp,
            sack_permitted,
            window_scale,
            sack_count,
            ace,
        });
    }

    /// Calls `f` for each packet, with its arrival and event, its segment, and when it was sent.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(Time, Event, Segment, Time)) {
        let (mut sacks, mut sent) = (self.sacks.iter(), self.sent.iter());
        for packet in &self.packets {
            let Crossing { arrives, second, seq, ack, window, tsval, tsecr, len, mss, flags, ecn, .. } = *packet;
            let Crossing { has_timestamp, sack_permitted, window_scale, sack_count, ace, .. } = *packet;
            let blocks = if sack_count > 0 { sacks.next().copied() } else { None };
            let segment = Segment {
                seq,
                ack,
                window,
                tsval,
                tsecr,
                len,
                mss,
                flags,
                ecn,
                has_timestamp,
                sack_permitted,
                window_scale,
                sack_count,
                ace,
                sack: blocks.unwrap_or_default(),
            };
            f(arrives, Event { first: 0, second }, segment, sent.next().copied().unwrap_or_default());
        }
    }

    /// Empties it, to be filled again.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.sacks.clear();
        self.sent.clear();
    }
}
