//! Active queue management by delay.

use super::Percent;
use serde::Serialize;
use units::{Bytes, Time};

/// Parameters of PIE.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pie {
    /// Limit in packets. Default 1000.
    pub packets: u32,
    /// The delay to hold, more than zero. Default 15 ms.
    pub target: Time,
    /// How often the drop probability changes, more than zero. Default 15 ms.
    pub update: Time,
    /// How long nothing is dropped after an idle time. Default 150 ms.
    pub burst: Time,
    /// Weight of the deviation from the target, per second, more than 0. Default 0.125.
    pub alpha: f64,
    /// Weight of the delay's change, per second, more than 0. Default 1.25.
    pub beta: f64,
    /// Mark ECN-capable packets instead of dropping them. Default false.
    pub ecn: bool,
    /// Above this probability they are dropped nevertheless. Default 10 %.
    pub mark_max: Percent,
}

/// Parameters of CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Codel {
    /// Limit in packets. Default 1000.
    pub packets: u32,
    /// What controls the queue.
    #[serde(flatten)]
    pub control: CodelControl,
}

/// How CoDel controls a queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CodelControl {
    /// A standing queue's delay. Default 5 ms.
    pub target: Time,
    /// How long it must have stood. Default 100 ms.
    pub interval: Time,
    /// Mark ECN-capable packets instead of dropping them. Default false; of `fq_codel` true.
    pub ecn: bool,
    /// Mark ECN-capable packets that have waited for longer; none, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Time>,
}

/// Parameters of FQ-CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FqCodel {
    /// Limit of all queues in packets. Default 10240.
    pub packets: u32,
    /// Limit of all queues in bytes. Default 32 MB.
    pub memory: Bytes,
    /// Queues. Default 1024.
    pub flows: u32,
    /// Bytes, as `framing` counts them, that a queue sends in a round. Default: a full packet.
    pub quantum: Bytes,
    /// What controls each queue.
    #[serde(flatten)]
    pub control: CodelControl,
}

/// Parameters of DualPI2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DualPi2 {
    /// Limit of both queues in packets. Default 10000.
    pub packets: u32,
    /// The classic queue's delay to hold. Default 15 ms.
    pub target: Time,
    /// The longest round-trip time for which the controller is stable with a margin. Default 100 ms.
    pub rtt_max: Time,
    /// The low-latency queue marks what has waited for longer. Default 1 ms.
    pub step: Time,
    /// How much stronger the signal there is, at least 1. Default 2.
    pub coupling: f64,
    /// The classic queue's share of a link that the other would fill, less than 100 %. Default 10 %.
    pub classic_share: Percent,
}
