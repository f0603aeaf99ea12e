//! A flag that runs poll: they end between two steps, so that nothing is left half-written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop. All clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    interrupted: Arc<AtomicBool>,
    /// A run of the batch failed.
    failed: Arc<AtomicBool>,
}

impl Stop {
    /// Requests the work to end, with [`Failure::Interrupted`](crate::Failure::Interrupted).
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// The flag that [`interrupt`](Stop::interrupt) sets, for code that can only set a flag, such as a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }

    /// Whether the user has requested it.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether the user has requested it, or a run of the batch failed.
    pub fn is_set(&self) -> bool {
        self.interrupted() || self.failed.load(Ordering::Relaxed)
    }

    /// The same for a batch of runs that end when one of them fails.
    pub(crate) fn of_batch(&self) -> Stop {
        Stop { interrupted: self.interrupted.clone(), failed: Arc::default() }
    }

    /// Stops the runs of this batch.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
}
