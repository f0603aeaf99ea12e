//! A run's summary, computed from its tables so that the two cannot disagree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};

use crate::{
    Slowdown,
    rows::{FlowRow, LinkRow},
};

/// What identifies a run: same identity, same bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// Span over which the run measured.
    pub duration_ns: u64,
    /// When it ended: the age of an unfinished flow counts up to then.
    pub end_ns: u64,
}

/// Totals and means of one run, as `summary.json` holds them: no wall-clock time, host name or path.
///
/// A mean or percentile over nothing is `None` (JSON `null`); no field is ever non-finite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Version of the program that ran it.
    pub version: String,
    /// Span over which the run measured.
    pub duration_ns: u64,
    /// Flows opened.
    pub flows: u64,
    /// Flows whose last byte arrived within the run.
    pub flows_completed: u64,
    /// Packets accepted, summed over the links.
    pub packet_hops: u64,
    /// Packets dropped by queues of switches.
    pub drops_at_switches: u64,
    /// Packets dropped by queues of hosts; where servers forward (BCube, DCell), also others' packets.
    pub drops_at_hosts: u64,
    /// Accepted packets lost to failed links.
    pub drops_by_failure: u64,
    /// Packets marked congestion-experienced, summed over the links.
    pub marks: u64,
    /// Data packets retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts (RTOs).
    pub rtos: u64,
    /// Application bytes delivered in order.
    pub delivered_bytes: u64,
    /// `delivered_bytes` over the measured span, bit/s, all flows together.
    pub goodput_bps: Option<f64>,
    /// Received IP bytes of data over the measured span, bit/s, mean over flows.
    pub mean_data_flow_throughput_bps: Option<f64>,
    /// The same with each flow's ACKs counted as a flow of their own, as ns-3's Flow Monitor does.
    pub mean_data_and_ack_flow_throughput_bps: Option<f64>,
    /// Mean delay over all data packets that arrived; absent unless the scenario measures packets' delays (`measure.packet_delay`), as are the
    /// next two.
    pub mean_packet_delay_ns: Option<f64>,
    /// Mean over flows of each flow's mean data delay.
    pub mean_flow_delay_ns: Option<f64>,
    /// Mean over all data and ACK packets that arrived.
    pub mean_data_and_ack_packet_delay_ns: Option<f64>,
    /// Mean flow completion time.
    pub mean_fct_ns: Option<f64>,
    /// Median flow completion time (nearest rank).
    pub median_fct_ns: Option<u64>,
    /// 99th percentile of the flow completion time (nearest rank).
    pub p99_fct_ns: Option<u64>,
    /// Longest queue of any switch's link, packets.
    pub max_switch_queue_packets: u64,
    /// Slowdown by flow size; `None` if no flow has an ideal completion time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Slowdown>,
    /// Further numbers that a scenario defines, by name; non-finite ones are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
}

impl Summary {
    /// Computes every number from the tables.
    pub fn of(identity: Identity, flows: &[FlowRow], links: &[LinkRow]) -> Self {
        let mut summary = Self {
            scenario: identity.scenario,
            seed: identity.seed,
            version: identity.version,
            duration_ns: identity.duration_ns,
            ..Self::default()
        };
        summary.add_links(links);
        summary.add_flows(flows);
        summary.slowdown = Slowdown::of(flows, identity.end_ns);
        summary
    }

    /// Adds a number under a name of the scenario's own; one that is not finite is left out.
    pub fn insert(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.extra.insert(name.into(), value);
        }
    }

    fn add_links(&mut self, links: &[LinkRow]) {
        for link in links {
            self.packet_hops += link.packets;
            self.drops_by_failure += link.dropped_by_failure;
            self.marks += link.marked;
            if link.from_host {
                self.drops_at_hosts += link.dropped;
            } else {
                self.drops_at_switches += link.dropped;
                self.max_switch_queue_packets = self.max_switch_queue_packets.max(link.max_queue_packets);
            }
        }
    }

    fn add_flows(&mut self, flows: &[FlowRow]) {
        self.flows = flows.len() as u64;
        let (mut data, mut acks, mut per_flow) = (Mean::default(), Mean::default(), Mean::default());
        let (mut data_bytes, mut ack_bytes) = (0, 0);
        for flow in flows {
            self.retransmits += flow.retransmits;
            self.rtos += flow.rtos;
            self.delivered_bytes += flow.delivered_bytes;
            data_bytes += flow.ip_bytes_received;
            ack_bytes += flow.ack_ip_bytes_received;
            if let Some(delay) = flow.mean_packet_delay_ns {
                data.add(delay, flow.packets_received);
                per_flow.add(delay, 1);
            }
            if let Some(delay) = flow.mean_ack_delay_ns {
                acks.add(delay, flow.acks_received);
            }
        }
        self.goodput_bps = bit_rate(self.delivered_bytes, self.duration_ns);
        let count = self.flows as f64;
        let per = |bytes, flows: f64| bit_rate(bytes, self.duration_ns).map(|rate| rate / flows);
        self.mean_data_flow_throughput_bps = per(data_bytes, count).filter(|x| x.is_finite());
        self.mean_data_and_ack_flow_throughput_bps = per(data_bytes + ack_bytes, 2.0 * count).filter(|x| x.is_finite());
        self.mean_packet_delay_ns = data.value();
        self.mean_flow_delay_ns = per_flow.value();
        self.mean_data_and_ack_packet_delay_ns = data.and(&acks).value();
        self.add_completion_times(flows);
    }

    fn add_completion_times(&mut self, flows: &[FlowRow]) {
        let mut times: Vec<u64> = flows.iter().filter_map(FlowRow::fct_ns).collect();
        times.sort_unstable();
        self.flows_completed = times.len() as u64;
        let mut mean = Mean::default();
        for time in &times {
            mean.add(*time, 1);
        }
        self.mean_fct_ns = mean.value();
        self.median_fct_ns = nearest_rank(&times, 50);
        self.p99_fct_ns = nearest_rank(&times, 99);
    }
}

/// A weighted mean; integer sums keep it independent of the order of its terms.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: u128,
    weight: u128,
}

impl Mean {
    fn add(&mut self, value: u64, weight: u64) {
        self.sum += u128::from(value) * u128::from(weight);
        self.weight += u128::from(weight);
    }

    fn and(self, other: &Self) -> Self {
        Self { sum: self.sum + other.sum, weight: self.weight + other.weight }
    }

    fn value(&self) -> Option<f64> {
        (self.weight > 0).then(|| self.sum as f64 / self.weight as f64)
    }
}

fn bit_rate(bytes: u64, span_ns: u64) -> Option<f64> {
    (span_ns > 0).then(|| bytes as f64 * 8.0 / (span_ns as f64 / 1e9))
}

/// The smallest value that at least `percent` % of the sorted values do not exceed; `None` of nothing.
fn nearest_rank(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// How fast a run went, on this machine: kept in `run.json`, separate from what must be the same everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Wall-clock time.
    pub wall_s: f64,
    /// Packet-hops / wall-clock time.
    pub packet_hops_per_s: f64,
    /// Peak resident set of the process, bytes; `None` where the system does not say.
    pub peak_rss_bytes: Option<u64>,
    /// Runs at the same time.
    pub jobs: usize,
    /// Self-checks that passed, such as `packet conservation`, in order.
    pub checks: Vec<String>,
    /// The self-check of each emulation, in order; empty for simulations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulations: Vec<crate::SelfCheck>,
}

/// One of our numbers and the paper's: a row of `opentcp reproduce --json` and of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// As the paper names it: `Figure 2`, `Table 4`.
    pub figure: String,
    /// A variant, or `environment/variant`: `single-path/vegas`.
    pub case: String,
    /// What is compared: `drops`, `throughput`, `delay`. A reduction is positive.
    pub quantity: String,
    /// Unit of both numbers: `packets`, `%`, `ms`.
    pub unit: String,
    /// The paper's number; `None` where it prints none.
    #[serde(serialize_with = "finite_or_null")]
    pub paper: Option<f64>,
    /// Our number. Serialising one that is not finite is an error: the contract says a number.
    #[serde(serialize_with = "finite")]
    pub ours: f64,
    /// One sentence for the reader; may be empty.
    pub note: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands a reference to the field
fn finite<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else {
        Err(S::Error::custom(format!("`ours` of a comparison must be a finite number, not {value}")))
    }
}

#[allow(clippy::ref_option)] // serde hands a reference to the field
fn finite_or_null<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.filter(|x| x.is_finite()).serialize(serializer)
}
