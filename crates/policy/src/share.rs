//! A connection's share of the receive windows of its host.

use units::Bytes;

/// What each of several connections gets of a total of receive windows.
///
/// A window of less than a segment makes a sender wait for its timer (RFC 9293 3.8.6.2.1), so shares are whole segments, at least one.
/// Where the total is less than a segment each, only as many connections as it carries have an open window at a time.
///
/// A lone connection has half of the total: it keeps what was announced when it falls idle, and others come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Bytes of an open window.
    pub window: u64,
    /// How many connections have one at a time.
    pub at_a_time: u64,
}

impl Share {
    /// The share of each of `connections`, whose full segments carry `segment` bytes.
    pub fn of(total: Bytes, connections: u64, segment: u64) -> Share {
        let (total, segment, connections) = (total.get(), segment.max(1), connections.max(1));
        let window = (total / connections.max(2) / segment).max(1) * segment;
        Share { window, at_a_time: (total / window).clamp(1, connections) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_segments_and_never_more_than_the_total() {
        let share = |connections| Share::of(Bytes::new(200_000), connections, 1448);
        // 200,000 / 64 = 3125 is two segments of 1448
        assert_eq!(share(64), Share { window: 2 * 1448, at_a_time: 64 });
        assert_eq!((share(1).window, share(2).window), (69 * 1448, 69 * 1448));
        // 200,000 / 1448 = 138.1
        assert_eq!(share(138), Share { window: 1448, at_a_time: 138 });
        assert_eq!(share(256), Share { window: 1448, at_a_time: 138 });
        for connections in 1..2000 {
            let Share { window, at_a_time } = share(connections);
            assert!(window * at_a_time <= 200_000 && at_a_time <= connections && window % 1448 == 0);
        }
        // a total of less than a segment carries one connection
        assert_eq!(Share::of(Bytes::new(1500), 5, 8948), Share { window: 8948, at_a_time: 1 });
    }
}
