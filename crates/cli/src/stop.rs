//! Ctrl-C and SIGTERM, as a flag that the work polls, so that nothing is left half-written.

use study::Stop;

/// The flag that the first SIGINT or SIGTERM sets. If signals cannot be handled, they end the process as usual.
pub fn on_signals() -> Stop {
    let stop = Stop::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, stop.flag());
        // a hook of a user's C file that does not return polls nothing
        let _ = signal_hook::flag::register(signal, congestion::interrupted());
    }
    stop
}
