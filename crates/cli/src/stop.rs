//! Ctrl-C and SIGTERM, turned into a flag that runs look at: they end between two events, so that nothing is left
//! half-written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the work shall stop: the user said so, or one run of many failed.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    interrupted: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
}

impl Stop {
    /// Set by the first SIGINT or SIGTERM from now on. Where signals cannot be handled, they end the process as usual.
    pub fn on_signals() -> Stop {
        let stop = Stop::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let _ = signal_hook::flag::register(signal, stop.interrupted.clone());
        }
        stop
    }

    /// The user asked.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Stops the runs that are still going on.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Either of the two.
    pub fn is_set(&self) -> bool {
        self.interrupted() || self.failed.load(Ordering::Relaxed)
    }
}
