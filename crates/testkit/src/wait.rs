//! Waiting for what others do.

use std::thread;
use std::time::{Duration, Instant};

/// No wait of a test lasts longer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until `done`; false when it did not come within [`PATIENCE`].
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

/// The same, where the test fails if it does not come. `what` is said then.
#[track_caller]
pub fn until(what: &str, done: impl FnMut() -> bool) {
    assert!(eventually(done), "waited in vain: {what}");
}
