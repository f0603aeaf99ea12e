//! Who sends what to whom.

use super::{Algorithm, DataFile, Job, Percent};
use crate::sizes::SizeDistribution;
use serde::Serialize;
use std::sync::Arc;
use units::{Bytes, Rate, Time};

/// One entry of the traffic list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Unique; the kind's name, numbered if several entries have none.
    pub name: String,
    /// The group in tables and legends; the name unless given.
    pub label: String,
    /// When it begins.
    pub start: Time,
    /// When its applications stop writing; the end of the run, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Congestion control of these flows; [`Tcp::cc`](super::Tcp::cc) if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Algorithm>,
    /// What is sent.
    #[serde(flatten)]
    pub kind: TrafficKind,
}

/// Who sends what to whom. Hosts are named; see [`Topology`](super::Topology).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// Sender and receiver of each flow drawn uniformly with replacement, never the same host.
    RandomPairs {
        /// Number of connections.
        flows: u32,
        /// What each sends.
        #[serde(flatten)]
        workload: Workload,
    },
    /// A random derangement: every host sends one flow and receives one.
    Permutation {
        /// How far apart sender and receiver must be.
        across: Across,
        /// What each sends.
        #[serde(flatten)]
        workload: Workload,
    },
    /// Connections between two hosts that send as fast as TCP lets them.
    Bulk {
        /// Sender.
        from: String,
        /// Receiver, another host.
        to: String,
        /// Connections.
        count: u32,
        /// Bytes on each; unlimited if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<Bytes>,
    },
    /// UDP datagrams from one host to another.
    Udp {
        /// Sender.
        from: String,
        /// Receiver, another host.
        to: String,
        /// How many, how large.
        #[serde(flatten)]
        datagrams: Datagrams,
    },
    /// N hosts answer one at the same instant, repeatedly, over one connection each.
    Incast {
        /// Sending hosts; never the receiver.
        senders: Senders,
        /// Receiver; the topology's first host unless given.
        receiver: String,
        /// Bytes from each sender in one round.
        bytes: Bytes,
        /// Number of rounds.
        repeat: u32,
        /// What begins the next round.
        #[serde(flatten)]
        pace: Pace,
        /// For each answer, from the beginning of its round; later ones are counted as missed. None if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    },
    /// In each round every host sends to every other; a round begins when the last one has finished (MPI's pattern).
    AllToAll(Collective),
    /// As `AllToAll`, but hosts are in a ring and each sends to its two neighbours (`Exchange` of the Intel MPI Benchmarks).
    Exchange(Collective),
    /// Flows that begin at the instants of a Poisson process between random pairs, with sizes from a distribution. Sender and receiver
    /// are drawn uniformly from their lists, and are never the same.
    Poisson {
        /// How many.
        #[serde(flatten)]
        arrivals: Arrivals,
        /// How large.
        sizes: Sizes,
        /// Senders; `None`: all hosts.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Vec<String>>,
        /// Receivers; `None`: all hosts.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Vec<String>>,
        /// No more than so many flows.
        #[serde(skip_serializing_if = "Option::is_none")]
        flows: Option<u64>,
    },
    /// Flows as listed in a file.
    Trace {
        /// CSV with the columns `time_s,src,dst,bytes`.
        file: DataFile,
        /// Its rows, in order of time.
        #[serde(skip)]
        flows: Arc<[TraceFlow]>,
    },
    /// Tasks that compute and send, in the order of a graph.
    Job(Job),
    /// Established connections between random pairs on which nothing is sent: to measure a connection's memory.
    Idle {
        /// Number of connections.
        flows: u32,
    },
}

/// What one connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// On for an exponential time, writing at a constant rate, then off for an exponential time; it begins
    /// with one off time, as ns-3's application does.
    OnOff {
        /// Of the application's payload, while on.
        rate: Rate,
        /// Mean time on.
        on: Time,
        /// Mean time off; zero is always on.
        off: Time,
        /// Bytes of one write; a full segment unless given.
        packet: Bytes,
    },
    /// As fast as TCP lets it.
    Bulk {
        /// Bytes in total; unlimited if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<Bytes>,
    },
    /// UDP at a constant rate.
    Udp(Datagrams),
}

impl TrafficKind {
    /// What its flows send, if that is UDP.
    pub fn datagrams(&self) -> Option<&Datagrams> {
        match self {
            TrafficKind::Udp { datagrams, .. }
            | TrafficKind::RandomPairs { workload: Workload::Udp(datagrams), .. }
            | TrafficKind::Permutation { workload: Workload::Udp(datagrams), .. } => Some(datagrams),
            _ => None,
        }
    }
}

/// A constant rate of datagrams, whatever becomes of them: nothing is retransmitted, and nothing slows the sender down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Of their payload.
    pub rate: Rate,
    /// Payload of one; a full packet unless given.
    pub packet: Bytes,
}

/// How far apart a permutation's sender and receiver must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Across {
    /// Another host. The default.
    Hosts,
    /// A host in another pod (fat tree) or under another leaf (leaf–spine).
    Pods,
}

/// The senders of an incast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Senders {
    /// So many hosts other than the receiver, the first in the topology's order.
    First(u32),
    /// These.
    Named(Vec<String>),
}

/// What begins the next round of an incast. Written `barrier = true`, or `interval = "10 ms"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The last answer of this round. The default.
    Barrier,
    /// The clock, this long after the last round began.
    Interval(Time),
}

impl Serialize for Pace {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = s.serialize_map(Some(1))?;
        match self {
            Pace::Barrier => map.serialize_entry("barrier", &true)?,
            Pace::Interval(interval) => map.serialize_entry("interval", interval)?,
        }
        map.end()
    }
}

/// Messages between hosts in rounds, each with a barrier at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collective {
    /// Bytes of a message in each round; after the last, from the first again. Never empty; a single one is written without brackets.
    #[serde(serialize_with = "one_or_more")]
    pub bytes: Vec<Bytes>,
    /// Number of rounds.
    pub rounds: u32,
    /// The hosts that take part; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The hosts are divided at random into so many jobs, each with rounds and barriers of its own; with one, in their order.
    pub jobs: u32,
    /// Whether a round opens new connections.
    pub connections: Connections,
    /// Between a round's end and the next one's beginning; nothing if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
    /// Messages of at least so many bytes are exchanged in pairs, as MPI libraries do: host i sends to the host d places after it, d = 1,
    /// 2, …, and takes the next step when that message and the one from d places before it have arrived. Smaller messages, or all if
    /// absent, are sent at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairwise: Option<Bytes>,
}

fn one_or_more<S: serde::Serializer>(list: &[Bytes], s: S) -> Result<S::Ok, S::Error> {
    match list {
        [one] => one.serialize(s),
        more => s.collect_seq(more),
    }
}

/// How long a job computes before it communicates again. Written `"50 ms"`, or `{ exponential = "50 ms" }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// With this mean.
    Exponential(Time),
    /// Constant.
    #[serde(untagged)]
    Fixed(Time),
}

/// Connections of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// The same in every round. The default.
    Reuse,
    /// New ones in every round.
    New,
}

/// How many flows arrive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Fraction of the sum of the senders' link rates that the payload fills on average, more than 0, at most 1:
    /// flows per second = load · senders · host rate / (8 · mean size).
    Load(Percent),
    /// Of all senders; more than zero.
    FlowsPerSecond(f64),
}

/// A distribution of flow sizes and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// `web-search`, `data-mining`, `hadoop`, `cache`, `memcached`, or a file.
    pub source: SizesSource,
    /// The distribution.
    pub distribution: Arc<SizeDistribution>,
}

/// Where a distribution of flow sizes came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizesSource {
    /// A published one, by name.
    Published(&'static str),
    /// A file of the user's.
    File(DataFile),
}

impl Serialize for Sizes {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.source {
            SizesSource::Published(name) => s.serialize_str(name),
            SizesSource::File(file) => file.serialize(s),
        }
    }
}

/// One flow of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFlow {
    /// When it is opened, after the entry's `start`.
    pub at: Time,
    /// Sender.
    pub from: String,
    /// Receiver, another host.
    pub to: String,
    /// Bytes; at least 1.
    pub bytes: Bytes,
}
