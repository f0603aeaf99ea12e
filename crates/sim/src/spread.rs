//! Flows whose packets are spread over several routes: each packet for itself, or each flowlet.

use net::SplitMix64;
use units::Time;

/// The routes of a socket, and which is next.
pub struct Spread {
    /// Where each starts in the table, with the part of all draws that is below its end, in units of 2^-32.
    routes: Box<[(u32, u64)]>,
    /// Packets with no longer pause between them stay together.
    gap: Time,
    last: Time,
    random: SplitMix64,
}

impl Spread {
    /// Over `routes`: where each starts, and its share of the packets. After a pause longer than `gap`, the route is chosen
    /// anew; with zero, for each packet.
    pub fn new(routes: impl Iterator<Item = (u32, f64)>, gap: Time, random: SplitMix64) -> Spread {
        let mut below = 0.0;
        let mut part = |share: f64| {
            below += share;
            (below * 4_294_967_296.0) as u64
        };
        let routes = routes.map(|(start, share)| (start, part(share))).collect();
        Spread { routes, gap, last: Time::NEVER, random }
    }

    /// The same, over other routes.
    pub fn moved_to(&self, routes: impl Iterator<Item = (u32, f64)>) -> Spread {
        Spread::new(routes, self.gap, self.random.clone())
    }

    /// The route of a packet that leaves at `now`, unless it follows the last one.
    pub fn next(&mut self, now: Time) -> Option<u32> {
        let stays = self.gap > Time::ZERO && self.last != Time::NEVER && now.saturating_sub(self.last) <= self.gap;
        self.last = now;
        if stays {
            return None;
        }
        let drawn = self.random.bits() >> 32;
        let at = self.routes.partition_point(|(_, end)| *end <= drawn);
        // rounding may leave the last end below the largest draw
        self.routes.get(at).or(self.routes.last()).map(|(start, _)| *start)
    }
}
