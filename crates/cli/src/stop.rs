//! Ctrl-C and SIGTERM, turned into a flag that the work looks at, so that nothing is left half-written.

use study::Stop;

/// Set by the first SIGINT or SIGTERM from now on. Where signals cannot be handled, they end the process as usual.
pub fn on_signals() -> Stop {
    let stop = Stop::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, stop.flag());
    }
    stop
}
