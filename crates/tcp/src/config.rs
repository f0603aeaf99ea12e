//! The switches of a stack: everything in which TCPs, and papers about them, differ.

use crate::segment::Ecn;
use congestion::Algorithm;
use units::Time;

/// When ECN is negotiated (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// When the algorithm needs it, as Linux does for TCP_CONG_NEEDS_ECN.
    Auto,
    /// Never.
    Off,
    /// Always.
    On,
    /// Always, by AccECN (RFC 9768) if the peer has it.
    Accurate,
}

/// Does the sender space its segments out?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingMode {
    /// When the algorithm asks for it.
    Auto,
    /// Never.
    Off,
    /// Always, at the default rate (2 × cwnd/srtt in slow start, 1.2 × after) where the algorithm sets none.
    On,
}

/// Acknowledging less than every segment (RFC 1122 4.2.3.2, RFC 5681 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Full segments that make an ACK leave at once; 1: no delay.
    pub segments: u32,
    /// Longest delay of an ACK. Linux adapts it upwards; with `quickack` off it is fixed.
    pub timeout: Time,
    /// What Linux's adaptation ends at, up to its 200 ms; without `quickack` the delay is `timeout`.
    pub timeout_max: Time,
    /// Linux's quick ACKs: the first segments of a connection, those after a gap or a long pause, and those with PSH that the
    /// application has read are acknowledged at once.
    pub quickack: bool,
}

/// A stack's settings, shared by all endpoints that use them.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent switch of the stack")]
pub struct Config {
    /// The congestion-control algorithm.
    pub algorithm: &'static Algorithm,
    /// Largest IP packet, bytes: the MSS option is `mtu - 40`, payload is less by the options.
    pub mtu: u32,
    /// Initial window, segments.
    pub initial_cwnd: u32,
    /// Slow-start threshold at the start, segments.
    pub initial_ssthresh: u32,
    /// Most segments in the congestion window.
    pub cwnd_clamp: u32,
    /// Most that a connection sends, bytes/s; `u64::MAX` is no limit, less turns pacing on.
    pub max_pacing_rate: u64,
    /// Minimum RTO.
    pub rto_min: Time,
    /// Largest retransmission timeout.
    pub rto_max: Time,
    /// Timeout of the first SYN.
    pub syn_rto: Time,
    /// Timeout of data before the first RTT sample. Only a retransmitted handshake leaves none, so it is at least
    /// 3 s (RFC 6298 5.7).
    pub rto_initial: Time,
    /// Retransmissions of a SYN before giving up.
    pub syn_retries: u32,
    /// The kernel's clock tick, to which timeouts are rounded up; zero: timers are exact.
    pub timer_tick: Time,
    /// Selective acknowledgments (RFC 2018), with D-SACK.
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Delayed ACKs.
    pub delayed_ack: DelayedAck,
    /// RACK loss detection (RFC 8985); without it, three duplicate ACKs (RFC 5681, RFC 6675).
    pub rack: bool,
    /// Tail-loss probes (RFC 8985).
    pub tlp: bool,
    /// Proportional rate reduction (RFC 9937); without it the window halves at once and inflates (RFC 6582).
    pub prr: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// When ECN is negotiated.
    pub ecn: EcnMode,
    /// An algorithm that needs ECN sends ECT(1), the identifier of L4S (RFC 9331), instead of ECT(0).
    pub ect1: bool,
    /// Return to the restart window after an idle time of more than one RTO (RFC 5681 4.1), and validate the window
    /// of an application-limited flow.
    pub slow_start_after_idle: bool,
    /// Bytes written and not yet acknowledged that the sender holds.
    pub send_buffer: u32,
    /// Bytes that the receiver offers at most.
    pub receive_buffer: u32,
    /// Largest window that is announced, bytes; 0 withdraws what was announced. It does not change the window scale.
    pub window_clamp: u32,
    /// Pacing.
    pub pacing: PacingMode,
    /// Most segments of one burst (TSO); a paced flow sends bursts of 1 ms of its rate, at most this many.
    pub tso_segments: u32,
    /// Back-pressure from the host's own queue (TCP small queues): about 1 ms of the pacing rate; without it, a host
    /// may drop in its own queue.
    pub limit_output: bool,
}

impl Config {
    /// The code point of a connection that negotiated ECN.
    pub(crate) fn ect(&self) -> Ecn {
        if self.ect1 && self.algorithm.needs_ecn() { Ecn::Ect1 } else { Ecn::Ect0 }
    }

    /// Whether every connection is paced, whatever its algorithm does.
    pub(crate) fn paces(&self) -> bool {
        self.pacing == PacingMode::On || self.max_pacing_rate < u64::MAX
    }

    /// Linux 6.18's defaults.
    pub fn linux(algorithm: &'static Algorithm) -> Config {
        Config {
            algorithm,
            mtu: 1500,
            initial_cwnd: 10,
            initial_ssthresh: congestion::sock::TCP_INFINITE_SSTHRESH,
            cwnd_clamp: u32::MAX,
            max_pacing_rate: u64::MAX,
            rto_min: Time::from_ms(200),
            rto_max: Time::from_secs(120),
            syn_rto: Time::from_secs(1),
            rto_initial: Time::from_secs(1),
            syn_retries: 6,
            timer_tick: Time::ZERO,
            sack: true,
            timestamps: true,
            window_scaling: true,
            delayed_ack: DelayedAck {
                segments: 2,
                timeout: Time::from_ms(40),
                timeout_max: Time::from_ms(200),
                quickack: true,
            },
            rack: true,
            tlp: true,
            prr: true,
            frto: true,
            ecn: EcnMode::Auto,
            ect1: false,
            slow_start_after_idle: true,
            send_buffer: 4 << 20,
            receive_buffer: 6 << 20,
            window_clamp: u32::MAX,
            pacing: PacingMode::Auto,
            tso_segments: 44,
            limit_output: true,
        }
    }
}
