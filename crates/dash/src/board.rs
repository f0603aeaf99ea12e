//! What all browsers see, shared by the thread that asks and the one that serves.

use crate::model::Seen;
use crate::wire;
use bytes::Bytes;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast::{Receiver, Sender, channel};

/// Messages that may wait for a browser: one that is further behind is dropped, and begins anew.
const WAITING_MAX: usize = 32;

/// What all browsers see.
pub struct Board {
    seen: Mutex<Seen>,
    changes: Sender<Bytes>,
    acts: bool,
}

impl Board {
    /// Nothing yet. `acts`: there is a token with which something can be changed.
    pub fn new(acts: bool) -> Board {
        let seen = Seen { trouble: Some("the Oracle has not answered yet".to_string()), ..Seen::default() };
        Board { seen: Mutex::new(seen), changes: channel(WAITING_MAX).0, acts }
    }

    /// Whether there is a token.
    pub fn acts(&self) -> bool {
        self.acts
    }

    /// Shows this from now on: browsers get what has changed, and the time.
    pub fn show(&self, new: Seen) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if self.changes.receiver_count() > 0 {
            // nobody may have listened until now, which is no error
            let _ = self.changes.send(wire::delta(&seen, &new, now()).into());
        }
        *seen = new;
    }

    /// Everything, and then each change.
    pub fn follow(&self) -> (Bytes, Receiver<Bytes>) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.changes.subscribe();
        (wire::full(&seen, self.acts, now()).into(), changes)
    }
}

/// Seconds since the Unix epoch.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
