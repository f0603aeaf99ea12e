//! Waiting for an effect.

use std::thread;
use std::time::{Duration, Instant};

/// The longest wait of a test.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Interval of checks.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until `done`; false if that takes longer than [`PATIENCE`].
pub fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}

/// The same, and fails the test if it takes longer. `what` is for the message.
#[track_caller]
pub fn until(what: &str, done: impl FnMut() -> bool) {
    assert!(eventually(done), "waited in vain: {what}");
}
