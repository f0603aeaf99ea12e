//! A host's own queue, and the back-pressure that keeps a flow from filling it (Linux's TCP small queues).
//!
//! A flow may have about a millisecond of its pacing rate waiting in its host's interface. When it has more, it waits
//! until half of that has left, so that the interface never runs dry and one event serves many packets.

use std::collections::VecDeque;
use units::Time;

/// A data packet waiting in an interface.
#[derive(Clone, Copy)]
struct Waiting {
    departs: Time,
    socket: u32,
    len: u32,
}

/// What waits in one host's interface, of flows with back-pressure.
#[derive(Default)]
pub struct Nic {
    queue: VecDeque<Waiting>,
}

impl Nic {
    /// A packet of `socket` was accepted.
    #[inline]
    pub fn push(&mut self, socket: u32, len: u32, departs: Time) {
        self.queue.push_back(Waiting { departs, socket, len });
    }

    /// Calls `left(socket, len)` for each packet that has left by `now`.
    #[inline]
    pub fn release(&mut self, now: Time, mut left: impl FnMut(u32, u32)) {
        while let Some(first) = self.queue.front() {
            if first.departs > now {
                break;
            }
            left(first.socket, first.len);
            self.queue.pop_front();
        }
    }

    /// What waits of `socket` no longer counts; so many bytes it was.
    pub fn forget(&mut self, socket: u32) -> u32 {
        let mut forgotten = 0;
        self.queue.retain(|waiting| {
            let stays = waiting.socket != socket;
            forgotten += if stays { 0 } else { waiting.len };
            stays
        });
        forgotten
    }

    /// When all but `keep` bytes of the `queued` bytes of `socket` will have left.
    ///
    /// # Panics
    /// Fewer wait here.
    pub fn drained_to(&self, socket: u32, queued: u32, keep: u32) -> Time {
        let (older, newer) = self.queue.as_slices();
        let mut rest = queued;
        for part in [older, newer] {
            for waiting in part {
                // no branch on whose it is: flows take turns, and it would be mispredicted as often
                rest -= if waiting.socket == socket { waiting.len } else { 0 };
                if rest <= keep {
                    return waiting.departs;
                }
            }
        }
        unreachable!("{queued} bytes of socket {socket} wait here")
    }
}
