//! The sawtooth of N synchronised DCTCP flows at one port (Alizadeh et al., "Data Center TCP", SIGCOMM 2010,
//! equations 8 to 10).
//!
//! Each window grows by one segment per round trip until the queue reaches K. One round trip and N packets later the marks arrive, and
//! each window falls by the fraction α / 2, with α ≈ √(2 / W*) and W* = (C·RTT + K) / N.

/// Linux's minimum window, segments (`tcp_dctcp.c`: `max(…, 2U)`).
pub const WINDOW_MIN: f64 = 2.0;

/// A port and the flows that share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Port {
    /// Rate, full packets per second, C.
    pub packets_per_s: f64,
    /// Round trip of the idle network, seconds.
    pub rtt_s: f64,
    /// Marking threshold, packets, K.
    pub mark: f64,
    /// Long flows, N.
    pub flows: f64,
}

/// The equations' results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sawtooth {
    /// Highest queue, packets: K + N.
    pub q_max: f64,
    /// Amplitude, packets: ½ √(2 N (C·RTT + K)).
    pub amplitude: f64,
    /// Lowest queue, packets: Q_max − A; below zero the link idles.
    pub q_min: f64,
    /// Period, round trips: ½ √(2 (C·RTT + K) / N).
    pub period_rtts: f64,
    /// Period, seconds: one round trip is `RTT + K / C`, because packets wait behind K others.
    pub period_s: f64,
}

impl Port {
    /// The bandwidth-delay product, packets, C·RTT.
    pub fn pipe(&self) -> f64 {
        self.packets_per_s * self.rtt_s
    }

    /// The sawtooth.
    pub fn sawtooth(&self) -> Sawtooth {
        let q_max = self.mark + self.flows;
        let amplitude = (2.0 * self.flows * (self.pipe() + self.mark)).sqrt() / 2.0;
        let period_rtts = (2.0 * (self.pipe() + self.mark) / self.flows).sqrt() / 2.0;
        let rtt_s = self.rtt_s + self.mark / self.packets_per_s;
        Sawtooth { q_max, amplitude, q_min: q_max - amplitude, period_rtts, period_s: period_rtts * rtt_s }
    }

    /// The queue when every window is Linux's minimum, packets.
    pub fn floor(&self) -> f64 {
        (WINDOW_MIN * self.flows - self.pipe()).max(0.0)
    }

    /// Why the equations cannot hold here, if so.
    pub fn limit(&self) -> Option<String> {
        let (floor, saw) = (self.floor(), self.sawtooth());
        let n = self.flows;
        if floor > saw.q_max {
            return Some(format!(
                "{n} windows of at least {WINDOW_MIN} segments keep {floor:.0} packets in the queue, more than Q_max = {:.0}",
                saw.q_max
            ));
        }
        if floor > saw.q_min.max(0.0) {
            return Some(format!(
                "{n} windows of at least {WINDOW_MIN} segments keep {floor:.0} packets in the queue, more than Q_min = {:.1}",
                saw.q_min.max(0.0)
            ));
        }
        (saw.q_min < 0.0).then(|| format!("Q_min = {:.1} is below zero: the queue runs empty", saw.q_min))
    }
}

impl Sawtooth {
    /// The queue over time, packets, starting at a trough: a ramp of one period, repeated.
    pub fn at(&self, seconds: f64) -> f64 {
        let phase = (seconds / self.period_s).rem_euclid(1.0);
        (self.q_min + self.amplitude * phase).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(packets_per_s: f64, rtt_s: f64, mark: f64, flows: f64) -> Port {
        Port { packets_per_s, rtt_s, mark, flows }
    }

    /// C·RTT = 80, K = 40, N = 2 by hand: W* = 60, A = ½ √(4 · 120) = √120, T = ½ √120 round trips of 150 µs.
    #[test]
    fn the_equations_by_hand() {
        let port = port(800_000.0, 1e-4, 40.0, 2.0);
        let saw = port.sawtooth();
        assert!((port.pipe() - 80.0).abs() < 1e-9);
        assert!((saw.q_max - 42.0).abs() < 1e-9);
        assert!((saw.amplitude - 10.954_451_15).abs() < 1e-6);
        assert!((saw.q_min - 31.045_548_85).abs() < 1e-6);
        assert!((saw.period_rtts - 5.477_225_575).abs() < 1e-6);
        assert!((saw.period_s - 5.477_225_575 * 150e-6).abs() < 1e-12);
        assert_eq!(port.limit(), None);
    }

    #[test]
    fn the_published_caps_are_22_30_and_60_packets() {
        for (flows, cap) in [(2.0, 22.0), (10.0, 30.0), (40.0, 60.0)] {
            assert!((port(8127.4, 5e-4, 20.0, flows).sawtooth().q_max - cap).abs() < 1e-9);
        }
    }

    #[test]
    fn forty_windows_of_two_segments_exceed_the_cap_at_100_mbit() {
        let port = port(8127.4, 5e-4, 20.0, 40.0);
        assert!((port.floor() - 75.936_3).abs() < 1e-3);
        assert!(port.limit().unwrap().contains("more than Q_max = 60"), "{:?}", port.limit());
        let fast = Port { packets_per_s: 812_740.0, rtt_s: 1e-4, mark: 40.0, flows: 40.0 };
        assert_eq!(fast.limit(), None, "at 10 Gbit/s they fit");
        let far = Port { rtt_s: 1e-2, flows: 2.0, ..fast };
        assert!(far.limit().unwrap().contains("runs empty"), "{:?}", far.limit());
    }

    #[test]
    fn the_drawn_sawtooth_rises_from_trough_to_peak() {
        let saw = port(800_000.0, 1e-4, 40.0, 2.0).sawtooth();
        assert!((saw.at(0.0) - saw.q_min).abs() < 1e-9);
        assert!((saw.at(saw.period_s * 1.5) - (saw.q_min + saw.amplitude / 2.0)).abs() < 1e-6);
    }
}
