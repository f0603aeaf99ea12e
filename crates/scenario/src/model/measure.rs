//! What is recorded.

use super::LinkRef;
use serde::Serialize;
use units::Time;

/// What is recorded besides flow records and link totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Statistics count from here on; less than `duration`. Default 0 s.
    pub warmup: Time,
    /// Interval of the time series of every link (utilization, queue, drops, marks); off if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Time>,
    /// Interval of the samples of every flow's window; off if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<Time>,
    /// Links whose queue length is sampled every `queue_sample`.
    pub queues: Queues,
    /// Interval for `queues`; 10 ms unless given.
    pub queue_sample: Time,
    /// The delay of every data packet, from the IP send at the host to the IP receive.
    pub packet_delay: bool,
    /// A row for each message on a connection that is kept for more than one.
    pub messages: bool,
}

/// Which queues are sampled. Written `"all"` or as a list of links; an empty list is none, the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queues {
    /// Every link's.
    All,
    /// These.
    Links(Vec<LinkRef>),
}

impl Serialize for Queues {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Queues::All => s.serialize_str("all"),
            Queues::Links(links) => s.collect_seq(links),
        }
    }
}
