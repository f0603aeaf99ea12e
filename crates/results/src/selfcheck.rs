//! Whether a run in real time showed what its network would have shown.

use serde::{Deserialize, Serialize};

/// How true an emulation was: what the machine did to the packets beside the network model, and whether that is little
/// enough for what the scenario measures. Kept in `run.json`: it tells of the machine and the hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own in run.json")]
pub struct SelfCheck {
    /// Name of the run.
    pub run: String,
    /// How often the run was made: a study makes some of those again that the machine distorted.
    pub attempts: u32,
    /// Packets handed to hosts.
    pub packets: u64,
    /// How much later than the model says half of them were handed over, microseconds.
    pub lateness_p50_us: f64,
    /// And 99 % of them.
    pub lateness_p99_us: f64,
    /// And the latest.
    pub lateness_max_us: f64,
    /// How long 99 % of the hosts' frames waited at most until they were read, microseconds.
    pub reading_p99_us: f64,
    /// How late 99 % of what applications do by the clock was done at most, microseconds.
    pub applications_p99_us: f64,
    /// Busy share of all processors, 0 to 1.
    pub cpu_busy: f64,
    /// Share of all processors that the machine's own host kept for itself while they were wanted, 0 to 1.
    pub cpu_stolen: f64,
    /// Processors that other programs had, on average.
    pub cpu_others_ran: f64,
    /// Of the time, for how much the thread of another program that waited most for a processor did so, 0 to 1.
    pub cpu_others_waited: f64,
    /// Shortest round trip of an idle network between two hosts that talk, microseconds.
    pub base_rtt_us: f64,
    /// Time that a full packet takes on the fastest of the links that are measured, microseconds.
    pub packet_time_us: f64,
    /// 99 % of the packets were late by half of the base round trip at most.
    pub throughput_valid: bool,
    /// 99 % of the packets were late by two packet times at most.
    pub queues_valid: bool,
    /// The scenario measures queues.
    pub measures_queues: bool,
    /// Nothing speaks against what the scenario measures.
    pub valid: bool,
    /// What speaks against it.
    pub reasons: Vec<String>,
}
