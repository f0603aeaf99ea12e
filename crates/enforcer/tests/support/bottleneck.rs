//! The queue at the slowest place of a wire.

use std::collections::VecDeque;
use units::{Rate, Time};

/// When the packets that are in it will have left.
#[derive(Clone, Debug, Default)]
pub struct Bottleneck(VecDeque<Time>);

impl Bottleneck {
    /// When a packet that comes at `now` has left, at this rate; `None`: `most` are there already, the one in service included.
    pub fn pass(&mut self, now: Time, (rate, most): (Rate, usize), bytes: u64) -> Option<Time> {
        while self.0.front().is_some_and(|&at| at <= now) {
            self.0.pop_front();
        }
        if self.0.len() >= most {
            return None;
        }
        let free = self.0.back().copied().unwrap_or(Time::ZERO);
        let left = free.max(now) + rate.serialization(bytes);
        self.0.push_back(left);
        Some(left)
    }
}
