//! What libbpf says while it works: kept for error messages instead of printed.

use libbpf_rs::{PrintLevel, set_print};
use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Lines of a log that an error carries: the verifier says at the end why it refuses.
const TAIL_LINES: usize = 40;

thread_local! {
    static MESSAGES: RefCell<String> = const { RefCell::new(String::new()) };
}

/// libbpf has one place for its callback: who captures holds this.
static CAPTURING: Mutex<()> = Mutex::new(());

/// Runs `work` and returns with its result the end of what libbpf had to warn of on the way.
pub(crate) fn captured<T>(work: impl FnOnce() -> T) -> (T, String) {
    let guard = CAPTURING.lock().unwrap_or_else(PoisonError::into_inner);
    MESSAGES.with_borrow_mut(String::clear);
    let previous = set_print(Some((PrintLevel::Warn, keep)));
    let result = work();
    set_print(previous);
    drop(guard);
    let messages = MESSAGES.take();
    let lines: Vec<&str> = messages.lines().collect();
    (result, lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

#[allow(clippy::needless_pass_by_value, reason = "the type of libbpf's callback")]
fn keep(_: PrintLevel, message: String) {
    MESSAGES.with_borrow_mut(|messages| messages.push_str(&message));
}
