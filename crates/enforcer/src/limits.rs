//! An enforcer's limits: flows, memory, time.

use units::Time;

/// Limits of the enforcer.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Flows that are enforced at a time; others pass untouched.
    pub flows: usize,
    /// Handshakes at a time, 24 bytes each.
    pub half_open: usize,
    /// Memory of all buffered packets, bytes.
    pub buffer_bytes: usize,
    /// How far beyond its advertised window a server's data is still buffered, bytes; data beyond that is dropped.
    pub beyond_window_bytes: u32,
    /// A flow without packets for this long is forgotten.
    pub idle: Time,
}

impl Default for Limits {
    /// A million flows of 512 bytes and 1 GiB of packets at most; idle time as RFC 5382's minimum for NATs.
    fn default() -> Limits {
        Limits {
            flows: 1 << 20,
            half_open: 1 << 20,
            buffer_bytes: 1 << 30,
            beyond_window_bytes: 1 << 16,
            idle: Time::from_secs(2 * 3600 + 240),
        }
    }
}
