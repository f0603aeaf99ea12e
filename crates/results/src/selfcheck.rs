//! The self-check of an emulation.

use serde::{Deserialize, Serialize};

/// How far this machine distorted an emulation, and whether that is little enough for what the scenario measures. It is in
/// `run.json`, because it depends on the machine and the time of day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own in run.json")]
pub struct SelfCheck {
    /// Name of the run.
    pub run: String,
    /// How often the run was made: a study repeats some runs that the machine distorted.
    pub attempts: u32,
    /// How many times slower than real time the network ran; its times below are those of the network.
    #[serde(default = "real_time")]
    pub slowdown: u32,
    /// Packets delivered to hosts.
    pub packets: u64,
    /// Median lateness, microseconds: how much later than the model says a packet was delivered to its host.
    pub lateness_p50_us: f64,
    /// 99th percentile of the lateness.
    pub lateness_p99_us: f64,
    /// Maximum lateness.
    pub lateness_max_us: f64,
    /// How long a host's frame waited until it was read, 99th percentile, microseconds.
    pub reading_p99_us: f64,
    /// Lateness of applications' timed actions, 99th percentile, microseconds.
    pub applications_p99_us: f64,
    /// Busy share of all CPUs, 0 to 1.
    pub cpu_busy: f64,
    /// Share of all CPUs' time that the hypervisor took (steal), 0 to 1.
    pub cpu_stolen: f64,
    /// CPUs that other programs used, on average.
    pub cpu_others_ran: f64,
    /// Share of the time that a thread of another program waited for a CPU, the one that waited most, 0 to 1.
    pub cpu_others_waited: f64,
    /// Shortest RTT of the idle network between two hosts with a flow, microseconds.
    pub base_rtt_us: f64,
    /// Serialization of a full packet on the fastest measured link, microseconds.
    pub packet_time_us: f64,
    /// The 99th percentile of the lateness is at most half of the base RTT.
    pub throughput_valid: bool,
    /// The 99th percentile of the lateness is at most two packet times.
    pub queues_valid: bool,
    /// The scenario measures queues.
    pub measures_queues: bool,
    /// The run is valid for what the scenario measures.
    pub valid: bool,
    /// If not, why.
    pub reasons: Vec<String>,
}

/// Of records that do not say it.
fn real_time() -> u32 {
    1
}
