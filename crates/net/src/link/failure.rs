//! Links that fail, and work again.

use super::LinkTable;
use crate::LinkId;
use units::Time;

impl LinkTable {
    /// `link` fails at `now`: its packets are lost, further offers are refused. No effect if it is down.
    pub fn fail(&mut self, link: LinkId, now: Time) {
        let (hot, warm) = (&mut self.hot[link.index()], &mut self.warm[link.index()]);
        if warm.down {
            return;
        }
        warm.down = true;
        hot.epoch = hot.epoch.wrapping_add(1);
        self.far[link.index()].epoch = hot.epoch;
        hot.trigger = 0;
        hot.queued = 0;
        hot.busy_until = hot.busy_until.min(now);
        let cold = &mut self.cold[link.index()];
        cold.lost += cold.held.as_mut().map_or(0, |held| held.fail());
    }

    /// `link` works again, with an empty queue. No effect if it is up.
    pub fn restore(&mut self, link: LinkId) {
        let (hot, warm) = (&mut self.hot[link.index()], &mut self.warm[link.index()]);
        if warm.down {
            warm.down = false;
            hot.trigger = warm.trigger();
        }
    }

    /// Whether `link` works.
    pub fn is_up(&self, link: LinkId) -> bool {
        !self.warm[link.index()].down
    }
}
