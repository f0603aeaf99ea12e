//! What a checked scenario is: plain values, every default filled in, every name known to exist.
//!
//! The keys of the file are the field names here; `read` makes these types from a file, and their `Serialize` writes
//! the file that makes them again. Nothing below this crate needs to check a value of these types a second time.

use crate::sizes::SizeDistribution;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use units::{Bytes, Rate, Time};

/// One run: a network, the traffic on it, how its hosts speak TCP, and what is measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Short name: the file's stem unless the file says otherwise.
    pub name: String,
    /// A sentence for the top of a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The only source of randomness; default 1. At most `i64::MAX`, the largest integer of TOML.
    pub seed: u64,
    /// How long the network runs; more than zero and at most [`Scenario::DURATION_MAX`].
    pub duration: Time,
    /// Topology, links, queues, routing.
    pub network: Network,
    /// How hosts speak TCP unless a traffic entry overrides it.
    pub tcp: Tcp,
    /// What is recorded besides flow records and link totals, which are always recorded.
    pub measure: Measure,
    /// Who sends what to whom; never empty.
    pub traffic: Vec<Traffic>,
}

impl Scenario {
    /// 100 days: no instant of a run comes near the end of the clock (213 days).
    pub const DURATION_MAX: Time = Time::from_secs(8_640_000);
}

// ---------------------------------------------------------------------------------------------------- network

/// The network: its shape, its links, and how packets find their way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Network {
    /// The shape, which also names the nodes (see [`Topology`]).
    pub topology: Topology,
    /// Rate of every link without a setting of its own.
    pub rate: Rate,
    /// Propagation delay of every link without a setting of its own; at least 1 ns.
    pub delay: Time,
    /// Queue of every switch port without a setting of its own.
    pub queue: Queue,
    /// Queue of a host's network card; default: drop-tail, 1000 packets (Linux's transmit queue length).
    pub nic_queue: Queue,
    /// How a path is chosen.
    pub routing: Routing,
    /// Which bytes of a packet take time on a link.
    pub framing: Framing,
    /// Whether the ports of a switch share memory.
    pub buffer: Buffer,
    /// For each tier that the topology has: its settings, complete. Empty for an explicit topology.
    pub tier: BTreeMap<Tier, LinkSettings>,
    /// Links that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure: Vec<Failure>,
}

/// Rate, delay and queue of a cable: the rate and the delay in each direction, the queue at each *switch* port
/// (a host's port always has [`Network::nic_queue`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkSettings {
    /// Bit rate; more than zero.
    pub rate: Rate,
    /// Propagation delay; at least 1 ns.
    pub delay: Time,
    /// Queue of the switch port in front.
    pub queue: Queue,
}

/// The shape of the network. Numbers in names start at 1; nodes are numbered hosts first, then switches in the order
/// in which they are named here.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// A k-ary fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts.
    ///
    /// With m = k/2, everything counted from 0 in this formula and named from 1: hosts `h`, edge switches `e`,
    /// aggregation switches `a`, core switches `c`. Host `x` hangs off edge `x / m`; edge `i` and aggregation `j`
    /// are in pods `i / m` and `j / m` and linked if these agree; aggregation `j` is linked to the cores
    /// `(j % m) · m .. (j % m) · m + m`.
    FatTree {
        /// Ports of a switch: even, at least 2.
        k: u32,
    },
    /// Hosts `h`, leaves `l`, spines `s`: each leaf linked to each spine; host `x` (from 0) hangs off leaf
    /// `x / hosts_per_leaf`.
    LeafSpine {
        /// Number of leaf switches.
        leaves: u32,
        /// Number of spine switches.
        spines: u32,
        /// Hosts under each leaf.
        hosts_per_leaf: u32,
    },
    /// Hosts `h` around the switch `s1`.
    Star {
        /// Number of hosts.
        hosts: u32,
    },
    /// Hosts `left1`… on the switch `s1`, as many `right1`… on `s2`, one cable between the two switches.
    Dumbbell {
        /// Hosts on each side.
        pairs: u32,
    },
    /// Nodes and cables as listed.
    Explicit {
        /// All nodes; names are unique.
        nodes: Vec<Node>,
        /// All cables; at most one between two nodes, both of which exist. Every host has exactly one.
        links: Vec<Cable>,
    },
}

/// A node of an explicit topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Letters, digits, `_` and `.`.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// Speaks TCP, forwards nothing.
    Host,
    /// Forwards.
    Switch,
}

/// A cable of an explicit topology: a link in each direction, complete.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cable {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Bit rate in each direction.
    pub rate: Rate,
    /// Propagation delay in each direction.
    pub delay: Time,
    /// Queue at each end that is a switch.
    pub queue: Queue,
}

/// A class of cables, named after its upper end; `host` cables join a host and the switch above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Host to first switch, in every topology.
    Host,
    /// Fat tree: edge to aggregation.
    Aggregation,
    /// Fat tree: aggregation to core.
    Core,
    /// Leaf–spine: leaf to spine.
    Spine,
    /// Dumbbell: between the two switches.
    Bottleneck,
}

/// What a port does with a packet that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    DropTail(Limit),
    /// Drop-tail that marks ECN-capable packets arriving at or above a threshold (DCTCP's K).
    ThresholdEcn {
        /// K: a packet that finds at least this much is marked (RFC 8257 section 3.1).
        #[serde(flatten, with = "mark_keys")]
        mark: Limit,
        /// The queue's end, in the same unit as the mark.
        #[serde(flatten)]
        limit: Limit,
    },
    /// Random early detection, Floyd and Jacobson 1993, in packets.
    Red(Red),
}

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Packets, the one being sent included; at least 1.
    Packets(u32),
    /// Bytes as `framing` counts them, the packet being sent included.
    Bytes(Bytes),
}

/// Writes a mark as `mark_packets` or `mark_bytes`.
mod mark_keys {
    use super::Limit;
    use serde::{Serializer, ser::SerializeMap};

    pub fn serialize<S: Serializer>(mark: &Limit, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        match mark {
            Limit::Packets(n) => map.serialize_entry("mark_packets", n)?,
            Limit::Bytes(n) => map.serialize_entry("mark_bytes", n)?,
        }
        map.end()
    }
}

/// Parameters of random early detection; thresholds in packets of average queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Red {
    /// Below: no drop. Default 5.
    pub min: f64,
    /// Above: every packet (unless `gentle`); more than `min`. Default 15.
    pub max: f64,
    /// Probability at `max`, more than 0. Default 10 %.
    pub max_probability: Percent,
    /// Weight of the newest sample in the average, more than 0 and at most 1. Default 0.002.
    pub weight: f64,
    /// Hard limit in packets, at least `max`. Default 100.
    pub packets: u32,
    /// Mark ECN-capable packets instead of dropping them (below the hard limit). Default false.
    pub ecn: bool,
    /// Between `max` and 2·`max` the probability rises to one instead of jumping. Default true.
    pub gentle: bool,
}

/// A percentage, kept as it is written so that it prints as it was read.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(pub(crate) f64);

impl Percent {
    /// As a fraction of one.
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl Serialize for Percent {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// How a path is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// The first path that a breadth-first search finds: one core switch carries all.
    SinglePath,
    /// Among the shortest paths, by a hash of the flow. The default.
    Ecmp,
}

/// Which bytes of a packet take time on a link and room in a queue counted in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Ethernet header (14) and preamble, check sequence and gap (24) added to the IP packet. The default.
    Ethernet,
    /// The IP packet alone.
    Ip,
}

/// Who owns a switch's memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffer {
    /// Each port its own, as large as its queue's limit. The default.
    Private,
    /// One memory for all ports of a switch; a port may hold `alpha` times what is free (Choudhury and Hahne 1998).
    /// The queue's own limit holds as well.
    Shared {
        /// Memory of one switch.
        bytes: Bytes,
        /// Share of the free memory that a port may take, more than 0. Default 1.
        alpha: f64,
    },
}

/// A failure of one link or of both links of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Which direction or directions; written `"a->b"` or `"a-b"`.
    pub link: LinkRef,
    /// When it stops working; at most `duration`.
    pub at: Time,
    /// When it works again; never, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// A link named by its ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkRef {
    /// Sending end.
    pub from: String,
    /// Receiving end.
    pub to: String,
    /// The opposite direction as well.
    pub both: bool,
}

impl std::fmt::Display for LinkRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.from, if self.both { "-" } else { "->" }, self.to)
    }
}

impl Serialize for LinkRef {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

// -------------------------------------------------------------------------------------------------------- TCP

/// How a host speaks TCP: each switch in which papers differ. The defaults are those of [`Preset::Linux`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option of the protocol, as in the RFCs")]
pub struct Tcp {
    /// The stack whose values the keys that were left out have.
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
    /// Least retransmission time-out.
    pub rto_min: Time,
    /// Largest, after backing off.
    pub rto_max: Time,
    /// Before there is a sample of the round trip (data segments).
    pub rto_initial: Time,
    /// Time-out of the first SYN; it doubles.
    pub syn_rto: Time,
    /// How often a SYN is sent again before giving up.
    pub syn_retries: u32,
    /// Selective acknowledgements, RFC 2018.
    pub sack: bool,
    /// RFC 7323.
    pub timestamps: bool,
    /// RFC 7323. Without, no window exceeds 65,535 B.
    pub window_scaling: bool,
    /// When an acknowledgement may wait.
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
    /// Whether segments are spread over the round trip.
    pub pacing: Pacing,
    /// Restart from the initial window after one RTO of idleness (RFC 2861).
    pub slow_start_after_idle: bool,
    /// Bytes that the application may have written and that are not yet acknowledged.
    pub send_buffer: Bytes,
    /// Bound of the advertised window.
    pub receive_buffer: Bytes,
    /// Most segments handed to the network card at once; 1 is no segmentation offload.
    pub tso_segments: u32,
    /// Local back-pressure: how much of a flow may wait in its host's network card.
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
    /// ns-3.25 (2016): no SACK, initial window of one segment, least RTO 1 s, small buffers.
    #[serde(rename = "ns-3.25")]
    Ns3_25,
    /// The Linux of `SciNet`'s study (2006): initial window of three segments, SACK, no RACK.
    #[serde(rename = "linux-2.6.18")]
    Linux2_6_18,
}

/// A congestion-control algorithm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// One of the algorithms that the caller says it has.
    BuiltIn(String),
    /// A C file of the user's.
    File(DataFile),
}

/// A file that the scenario names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileRef {
    /// As written in the scenario.
    pub written: String,
    /// Where it is: the scenario's folder joined with `written`.
    pub path: PathBuf,
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

impl FileRef {
    /// The name without folders.
    pub fn base_name(&self) -> &str {
        self.written.rsplit('/').next().unwrap_or(&self.written)
    }
}

impl Algorithm {
    /// The name for tables and legends: the built-in's name, or the file's name without `.c`.
    pub fn label(&self) -> &str {
        match self {
            Algorithm::BuiltIn(name) => name,
            Algorithm::File(file) => {
                let name = file.file.base_name();
                name.strip_suffix(".c").unwrap_or(name)
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

/// When an acknowledgement may wait (RFC 5681 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DelayedAck {
    /// Acknowledge at the latest every so many full segments; 1 acknowledges each.
    pub segments: u32,
    /// Least time for which an acknowledgement waits (Linux's ATO, which adapts upwards); zero with `segments = 1`.
    pub timeout: Time,
    /// Most that it may wait; equal to `timeout` where the timer is fixed.
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
}

/// Whether segments are spread over the round trip.
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
    /// No limit: a window is handed to the card at once. Written `false`.
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

// ---------------------------------------------------------------------------------------------------- traffic

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
    /// Congestion control of these flows; [`Tcp::cc`] if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Algorithm>,
    /// What is sent.
    #[serde(flatten)]
    pub kind: TrafficKind,
}

/// Who sends what to whom. Hosts are named; see [`Topology`].
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
        /// What the receiver must be apart from.
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
    /// N hosts answer one at the same instant, again and again, over one connection each.
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
    },
    /// In each round every host sends to every other; a round begins when the last one has finished (MPI's pattern).
    AllToAll {
        /// Bytes from each host to each other in one round.
        bytes: Bytes,
        /// Number of rounds.
        rounds: u32,
        /// The hosts that take part; all of them if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        hosts: Option<Vec<String>>,
        /// Whether a round opens new connections.
        connections: Connections,
    },
    /// Flows that begin at the instants of a Poisson process between random pairs, with sizes from a distribution.
    Poisson {
        /// How many.
        #[serde(flatten)]
        arrivals: Arrivals,
        /// How large.
        sizes: Sizes,
        /// Between whom.
        pairs: Pairs,
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
    /// Established connections between random pairs on which nothing is sent: what a connection costs in memory.
    Idle {
        /// Number of connections.
        flows: u32,
    },
}

/// What one connection sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// On for an exponential time, writing at a constant rate, then off for an exponential time; on first
    /// waits for one off time, as ns-3's application does.
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
}

/// What a permutation's receiver must be apart from.
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

/// Connections of an all-to-all exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// The same in every round. The default.
    Reuse,
    /// Opened anew in every round.
    New,
}

/// How many flows arrive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Fraction of the sum of the hosts' link rates that the payload fills on average, more than 0, at most 1:
    /// flows per second = load · hosts · host rate / (8 · mean size).
    Load(Percent),
    /// In the whole network; more than zero.
    FlowsPerSecond(f64),
}

/// Who talks to whom in Poisson traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Sender and receiver drawn uniformly, never the same.
    Random,
}

/// A distribution of flow sizes and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// `web-search`, `data-mining`, or a file.
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

/// A file that was read when the scenario was loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataFile {
    /// Where.
    pub file: FileRef,
    /// What it held, so that a run's folder can keep a copy.
    pub text: Arc<str>,
}

impl Serialize for DataFile {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.file.written)
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

// ---------------------------------------------------------------------------------------------------- measure

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
