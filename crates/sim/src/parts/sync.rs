//! What threads share; tests put a scheduler of their own in its place.

pub use std::sync::Mutex;
pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Looks at a shared value so often before it lets another thread have the core.
const SPINS: u32 = 1000;

/// A pause between two looks, of which there were `spins`.
pub fn relax(spins: &mut u32) {
    *spins += 1;
    if *spins < SPINS {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
