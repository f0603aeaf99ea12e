//! What threads share; tests put a scheduler of their own in its place.

pub use std::hint::spin_loop as spin;
pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::sync::{Condvar, Mutex, RwLock};

/// Looks at a shared value so often before it sleeps: some tens of microseconds.
pub const SPINS: u32 = 2000;
