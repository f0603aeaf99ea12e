//! Hosts' TCP.

use super::DataFile;
use serde::Serialize;
use units::{Bytes, Time};

/// A host's TCP: each parameter in which papers differ. The defaults are those of [`Preset::Linux`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of the protocol, as in the RFCs")]
pub struct Tcp {
    /// The stack that keys which were left out take their values from.
    pub preset: Preset,
    /// Congestion control of both ends. Default cubic.
    pub cc: Algorithm,
    /// Payload bytes of a full segment, options already subtracted: `mtu` − 40, − 12 with timestamps.
    pub mss: u32,
    /// First window, in segments.
    pub initial_cwnd: u32,
    /// Slow-start threshold of a new connection; `None`, written `"unlimited"`, is none.
    #[serde(serialize_with = "or_unlimited")]
    pub initial_ssthresh: Option<Bytes>,
    /// Minimum RTO.
    pub rto_min: Time,
    /// Largest, after backing off.
    pub rto_max: Time,
    /// RTO before the first RTT sample (data segments).
    pub rto_initial: Time,
    /// Timeout of the first SYN; it doubles.
    pub syn_rto: Time,
    /// How often a SYN is retransmitted before the connection fails.
    pub syn_retries: u32,
    /// The kernel's clock tick, to which timeouts are rounded up; none: timers are exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_tick: Option<Time>,
    /// Selective acknowledgements, RFC 2018.
    pub sack: bool,
    /// RFC 7323.
    pub timestamps: bool,
    /// RFC 7323. Without, no window exceeds 65,535 B.
    pub window_scaling: bool,
    /// When an ACK may be delayed.
    pub delayed_ack: DelayedAck,
    /// RFC 8985 reordering window instead of counting duplicate ACKs; needs `sack`.
    pub rack: bool,
    /// Tail-loss probe, RFC 8985; needs `sack`.
    pub tlp: bool,
    /// Proportional rate reduction, RFC 6937; without it the window is cut at once (RFC 6582).
    pub prr: bool,
    /// Forward RTO recovery, RFC 5682.
    pub frto: bool,
    /// Whether connections negotiate ECN.
    pub ecn: Ecn,
    /// Flows whose algorithm needs ECN send ECT(1), the identifier of L4S (RFC 9331), instead of ECT(0). Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ect1: bool,
    /// Receivers control their windows by ICTCP (`CoNEXT` 2010). Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ictcp: bool,
    /// Whether segments are paced over the RTT.
    pub pacing: Pacing,
    /// Restart from the initial window after one RTO of idleness (RFC 2861).
    pub slow_start_after_idle: bool,
    /// Send buffer: bytes that the application has written and that are not yet acknowledged.
    pub send_buffer: Bytes,
    /// Receive buffer: bound of the advertised window.
    pub receive_buffer: Bytes,
    /// Largest super-segment passed to the network card, in segments; 1 is no segmentation offload.
    pub tso_segments: u32,
    /// Local back-pressure: how much of a flow may be queued in its host's network card.
    pub limit_output: LimitOutput,
}

/// Writes `None` as a word, because an absent key would mean the preset's value.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn or_unlimited<S: serde::Serializer>(bytes: &Option<Bytes>, s: S) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => bytes.serialize(s),
        None => s.serialize_str("unlimited"),
    }
}

/// A named stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Preset {
    /// A current Linux.
    #[serde(rename = "linux")]
    Linux,
    /// ns-3.25 (2016): no SACK, initial window of one segment, minimum RTO 1 s, small buffers.
    #[serde(rename = "ns-3.25")]
    Ns3_25,
    /// The Linux of `SciNet`'s study (2006): initial window of three segments, SACK, no RACK.
    #[serde(rename = "linux-2.6.18")]
    Linux2_6_18,
}

/// A congestion-control algorithm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// One of the caller's algorithms.
    BuiltIn(String),
    /// A file of the user's: of C, or of Python, which only the Python package runs.
    File(DataFile),
}

impl Tcp {
    /// Bytes of a full IP packet: IPv4 and TCP headers, timestamps if on, and the payload.
    pub fn mtu(&self) -> u32 {
        self.mss + Tcp::header(self.timestamps)
    }

    /// Bytes of the IPv4 and TCP headers of a data segment.
    pub(crate) const fn header(timestamps: bool) -> u32 {
        if timestamps { 52 } else { 40 }
    }
}

impl Algorithm {
    /// The name for tables and legends: the built-in's name, or the file's name without `.c` or `.py`.
    pub fn label(&self) -> &str {
        match self {
            Algorithm::BuiltIn(name) => name,
            Algorithm::File(file) => {
                let name = file.file.base_name();
                name.strip_suffix(".c").or_else(|| name.strip_suffix(".py")).unwrap_or(name)
            }
        }
    }
}

impl Serialize for Algorithm {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Algorithm::BuiltIn(name) => s.serialize_str(name),
            Algorithm::File(file) => file.serialize(s),
        }
    }
}

/// When an ACK may be delayed (RFC 5681 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DelayedAck {
    /// Acknowledge at the latest every so many full segments; 1 acknowledges each.
    pub segments: u32,
    /// Minimum delay of an ACK (Linux's ATO, which adapts upwards); zero with `segments = 1`.
    pub timeout: Time,
    /// Maximum delay of an ACK; equal to `timeout` where the timer is fixed.
    pub timeout_max: Time,
    /// Acknowledge at once at the start of a connection and after losses, as Linux does.
    pub quickack: bool,
}

/// Whether connections negotiate ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// When the algorithm needs it. The default.
    Auto,
    /// Never.
    Off,
    /// Always.
    On,
    /// Always, by AccECN (RFC 9768).
    Accurate,
}

/// Whether segments are paced over the RTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// When the algorithm asks for it. The default.
    Auto,
    /// Never.
    Off,
    /// Always, at the rate that Linux computes from cwnd and srtt unless the algorithm sets one.
    On,
}

/// Linux's "TCP small queues".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOutput {
    /// At most about 1 ms of the flow's rate, and at least two segments.
    Auto,
    /// No limit: a whole window is passed to the card at once. Written `false`.
    Off,
}

impl Serialize for LimitOutput {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            LimitOutput::Auto => s.serialize_str("auto"),
            LimitOutput::Off => s.serialize_bool(false),
        }
    }
}
