//! A flag that runs look at: they end between two steps, so that nothing is left half-written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the work shall stop. All clones are one; whoever holds one may ask.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    interrupted: Arc<AtomicBool>,
    /// One run of many failed.
    failed: Arc<AtomicBool>,
}

impl Stop {
    /// Asks the work to end, which it then does with [`Failure::Interrupted`](crate::Failure::Interrupted).
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// What [`interrupt`](Stop::interrupt) sets, for who can only set a flag, such as a handler of signals.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }

    /// Somebody asked.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Somebody asked, or one of the runs beside this one failed.
    pub fn is_set(&self) -> bool {
        self.interrupted() || self.failed.load(Ordering::Relaxed)
    }

    /// The same for runs that end when one of them fails.
    pub(crate) fn of_batch(&self) -> Stop {
        Stop { interrupted: self.interrupted.clone(), failed: Arc::default() }
    }

    /// Stops the runs of this batch.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
}
