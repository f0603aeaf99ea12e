//! The first-in, first-out queue that disciplines which hold packets are made of.

use crate::ecn::Ecn;
use std::collections::VecDeque;
use units::Time;

/// A packet handed to a link that holds its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket {
    /// The caller's name for it.
    pub token: u64,
    /// Its flow, hashed.
    pub flow: u64,
    /// Bytes on the wire.
    pub len: u16,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// A packet that departs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub packet: QueuedPacket,
    /// Congestion is to be signalled by it.
    pub mark: bool,
}

/// A packet in a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub packet: QueuedPacket,
    pub since: Time,
}

/// First in, first out, with the times of arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub fn push(&mut self, now: Time, packet: QueuedPacket) {
        self.bytes += u64::from(packet.len);
        self.waiting.push_back(Waiting { packet, since: now });
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.packet.len);
        Some(first)
    }

    pub fn clear(&mut self, gone: &mut Vec<QueuedPacket>) {
        gone.extend(self.waiting.drain(..).map(|waiting| waiting.packet));
        self.bytes = 0;
    }

    /// How long the first packet has waited by `now`; zero if there is none.
    pub fn sojourn(&self, now: Time) -> Time {
        self.waiting.front().map_or(Time::ZERO, |first| now.saturating_sub(first.since))
    }

    pub fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
