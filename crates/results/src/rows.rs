//! The rows of the result tables, one struct per table.
//!
//! Every time is an integer with its unit last in the name, so that the same run gives the same bytes on every
//! machine. Names are shared (`Arc<str>`): a table of 100,000 flows holds each host's name once.

use std::sync::Arc;

/// One flow: what was requested and delivered, and its retransmissions, marks and delays. Table `flows`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Number of the flow within the run, from 0 in order of creation.
    pub flow: u64,
    /// Sending host.
    pub src: Arc<str>,
    /// Receiving host.
    pub dst: Arc<str>,
    /// Congestion-control algorithm of the sender.
    pub algorithm: Arc<str>,
    /// Label of the traffic that made the flow; empty if there is none.
    pub group: Arc<str>,
    /// Of a run with a policy: whether the sending host was treated when the flow was opened; the receiving one, if all that the policy sets
    /// acts on what a host receives.
    pub arm: Option<Arm>,
    /// When the application opened the flow.
    pub start_ns: u64,
    /// When the last application byte arrived; `None` if that did not happen within the run.
    pub end_ns: Option<u64>,
    /// Completion time of the same flow alone on its path (`plan::Ideal` defines it); `None` for a flow that has no size when it
    /// opens, carries several messages, or was stopped by its application.
    pub ideal_fct_ns: Option<u64>,
    /// Application bytes to send; `None` for a flow without an end.
    pub bytes: Option<u64>,
    /// Application bytes that the receiver delivered in order.
    pub delivered_bytes: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets_sent: u64,
    /// Packets retransmitted, tail-loss probes and a FIN included; not a SYN.
    pub retransmits: u64,
    /// Retransmission timeouts (RTOs); not those of a SYN.
    pub rtos: u64,
    /// Tail-loss probes sent, with new data or old; `None` if the backend does not know.
    pub tlp_probes: Option<u64>,
    /// Congestion-experienced marks that the receiver saw on data packets.
    pub ce_marks: u64,
    /// ACKs that carried ECN-Echo to the sender.
    pub ece_acks: u64,
    /// Data packets that reached the receiving host, duplicates included.
    pub packets_received: u64,
    /// IP bytes of those packets.
    pub ip_bytes_received: u64,
    /// Mean over those packets of the time from IP send (the host's own queue included) to IP receive; `None` without
    /// packets, or unless the scenario measures it (`measure.packet_delay`).
    pub mean_packet_delay_ns: Option<u64>,
    /// ACK packets that reached the sender.
    pub acks_received: u64,
    /// IP bytes of those ACKs.
    pub ack_ip_bytes_received: u64,
    /// Mean delay of those ACKs, measured as for data; `None` without ACKs.
    pub mean_ack_delay_ns: Option<u64>,
    /// Minimum RTT that the sender measured; `None` before the first sample.
    pub min_rtt_us: Option<u64>,
    /// Smoothed RTT at the end; `None` before the first sample.
    pub srtt_us: Option<u64>,
    /// Congestion window at the end, in segments.
    pub final_cwnd: u32,
}

impl FlowRow {
    /// Flow completion time; `None` if the flow did not finish.
    pub fn fct_ns(&self) -> Option<u64> {
        self.end_ns.map(|end| end.saturating_sub(self.start_ns))
    }

    /// Completion time over the ideal one, at least 1; `None` if the flow did not finish or has no ideal time.
    pub fn slowdown(&self) -> Option<f64> {
        let ideal = self.ideal_fct_ns.filter(|ideal| *ideal > 0)?;
        self.fct_ns().map(|fct| fct as f64 / ideal as f64)
    }
}

/// One link over the whole run. Table `links`.
///
/// `packets = delivered + dropped_by_failure + in_flight`, and what was offered is `packets + dropped`.
/// The sum of `packets` over the table is the number of packet-hops of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// Unique name of the link.
    pub link: Arc<str>,
    /// Node at the sending end.
    pub from: Arc<str>,
    /// Node at the receiving end.
    pub to: Arc<str>,
    /// Tier of the topology, such as `host-edge`; empty if the topology has none.
    pub tier: Arc<str>,
    /// Whether the sending end is a host, so that its drops count as host drops, not switch drops.
    pub from_host: bool,
    /// Rate, bit/s.
    pub rate_bps: u64,
    /// Packets that the queue accepted, all of which the link sends.
    pub packets: u64,
    /// Bytes of those packets, with the scenario's framing.
    pub bytes: u64,
    /// Packets that reached the far end.
    pub delivered: u64,
    /// Packets that the queue dropped, at its limit or early.
    pub dropped: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Accepted packets lost because the link failed.
    pub dropped_by_failure: u64,
    /// Packets marked congestion-experienced here.
    pub marked: u64,
    /// Packets queued or on the wire when the run ended.
    pub in_flight: u64,
    /// Longest queue seen, in packets, the one being sent included.
    pub max_queue_packets: u64,
    /// Busy time / run time, 0 to 1.
    pub utilization: f64,
}

/// One link at one instant, and what happened there since the sample before. Table `link_series`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSample {
    /// Simulated time.
    pub time_ns: u64,
    /// Index into the run's `links` table; the file holds the link's name.
    pub link: u32,
    /// Packets in the queue at this instant, the one being sent included.
    pub queue_packets: u32,
    /// Bytes in the queue at this instant.
    pub queue_bytes: u64,
    /// Busy time / time since the sample before, 0 to 1.
    pub utilization: f64,
    /// Packets dropped since the sample before.
    pub drops: u32,
    /// Packets marked since the sample before.
    pub marks: u32,
}

/// Which side of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// The policy may change settings here.
    Treated = 0,
    /// It may not: the control group, which treated hosts are compared with.
    Control = 1,
}

impl Arm {
    /// The name in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Treated => "treated",
            Self::Control => "control",
        }
    }
}

/// A message on a connection that is kept for more than one. Table `messages`.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRow {
    /// The connection, as in `flows`.
    pub flow: u64,
    /// The traffic entry's name.
    pub entry: Arc<str>,
    /// Its job of the entry, from 0.
    pub job: u32,
    /// Its round of the job, from 0.
    pub round: u64,
    /// When the application wrote it.
    pub start_ns: u64,
    /// When its last byte arrived.
    pub end_ns: u64,
    /// Payload.
    pub bytes: u64,
    /// Segments that the connection has retransmitted since the message before arrived.
    pub retransmits: u64,
}

/// A run of a job: tasks that compute and send in the order of a graph. Table `jobs`.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// The traffic entry's name.
    pub entry: Arc<str>,
    /// Number of the run, from 0.
    pub job: u32,
    /// When it began.
    pub start_ns: u64,
    /// When its last task ended; `None` if that did not happen within the run.
    pub end_ns: Option<u64>,
    /// Its tasks.
    pub tasks: u64,
    /// Of these, messages.
    pub messages: u64,
    /// Payload of the messages.
    pub bytes: u64,
}

impl JobRow {
    /// Job completion time: `end_ns` less `start_ns`.
    pub fn jct_ns(&self) -> Option<u64> {
        self.end_ns.map(|end| end - self.start_ns)
    }
}

/// A coflow: the messages of one stage of a job, which is done when all of them are. Table `coflows`.
#[derive(Clone, Debug, PartialEq)]
pub struct CoflowRow {
    /// The traffic entry's name.
    pub entry: Arc<str>,
    /// Number of the job's run, from 0.
    pub job: u32,
    /// The coflow's name.
    pub coflow: Arc<str>,
    /// When its first message was sent; `None`: none was.
    pub start_ns: Option<u64>,
    /// When its last message had arrived; `None` if that did not happen within the run.
    pub end_ns: Option<u64>,
    /// Its messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
}

impl CoflowRow {
    /// Coflow completion time: `end_ns` less `start_ns`.
    pub fn cct_ns(&self) -> Option<u64> {
        self.end_ns.zip(self.start_ns).map(|(end, start)| end - start)
    }
}

/// A flow that an enforcer handled. Table `enforcer`.
#[derive(Clone, Debug, PartialEq)]
pub struct EnforcerRow {
    /// Node of the enforcer.
    pub node: Arc<str>,
    /// The flow, as in `flows`; `None` if it is not the scenario's.
    pub flow: Option<u64>,
    /// Host that sends the data.
    pub server: Arc<str>,
    /// Its port.
    pub server_port: u16,
    /// Host that receives it.
    pub client: Arc<str>,
    /// Its port.
    pub client_port: u16,
    /// Congestion-control algorithm of the enforcer's sender.
    pub algorithm: Arc<str>,
    /// When its handshake ended.
    pub start_ns: u64,
    /// When it ended, or the run did.
    pub end_ns: u64,
    /// How it ended: `closed`, `reset`, `idle`, `given-up` (the receiver did not answer), `replaced` (by another connection of the
    /// same ends); `open` if it had not.
    pub ending: &'static str,
    /// Bytes of the sender that the receiver acknowledged; a FIN counts as one.
    pub bytes_acked: u64,
    /// Data segments that the enforcer sent.
    pub data_packets_sent: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// The enforcer's retransmission timeouts.
    pub rtos: u64,
    /// Retransmissions of the server that it absorbed, because it had the data.
    pub absorbed: u64,
    /// Duplicate ACKs that it kept from the server.
    pub hidden: u64,
    /// Segments acknowledged with ECN-Echo.
    pub delivered_ce: u64,
    /// Minimum RTT between enforcer and receiver; `None` without a sample.
    pub min_rtt_us: Option<u64>,
    /// The last smoothed RTT.
    pub srtt_us: Option<u64>,
    /// The last congestion window, segments.
    pub final_cwnd: u64,
}

/// What happened to a policy's rule, at the Oracle or at a host. Table `cues`.
#[derive(Clone, Debug, PartialEq)]
pub struct CueRow {
    /// When.
    pub time_ns: u64,
    /// What.
    pub event: CueEvent,
    /// The Oracle's last decision.
    pub epoch: u64,
    /// The rule's name.
    pub rule: Arc<str>,
    /// At which host; empty: at the Oracle.
    pub host: Arc<str>,
    /// Hosts to which a CUE went; 1 at a host.
    pub hosts: u64,
    /// What the rule sets.
    pub set: Arc<str>,
    /// Why, if there is more to say.
    pub reason: Arc<str>,
}

/// A policy's rule over a run: counts of decisions by outcome, and the values of its condition. In no table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleRow {
    /// The rule's name.
    pub rule: Arc<str>,
    /// Decisions.
    pub decisions: u64,
    /// Decisions in which it was on for some host.
    pub on: u64,
    /// Its condition was false, or it was kept off.
    pub off: u64,
    /// Too little was known.
    pub unknown: u64,
    /// It was for no host.
    pub no_host: u64,
    /// No host had the algorithm, or the marks that it needs.
    pub left_out: u64,
    /// It was withheld for a reason other than its condition.
    pub withheld: u64,
    /// Why, the last time.
    pub withheld_why: Arc<str>,
    /// The variables of its condition with their minimum and maximum; `None`: never known.
    pub seen: Vec<(String, Option<(f64, f64)>)>,
}

impl RuleRow {
    /// Adds the counts of the same rule in another run.
    pub fn add(&mut self, other: &RuleRow) {
        self.decisions += other.decisions;
        self.on += other.on;
        self.off += other.off;
        self.unknown += other.unknown;
        self.no_host += other.no_host;
        self.left_out += other.left_out;
        self.withheld += other.withheld;
        if other.withheld > 0 {
            self.withheld_why = other.withheld_why.clone();
        }
        other.seen.iter().for_each(|(what, range)| self.see(what, *range));
    }

    /// Extends a variable's range; `None`: not known.
    pub fn see(&mut self, what: &str, range: Option<(f64, f64)>) {
        match self.seen.iter_mut().find(|(known, _)| known == what) {
            Some((_, known)) => {
                *known = known.iter().copied().chain(range).reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
            }
            None => self.seen.push((what.to_string(), range)),
        }
    }
}

/// What can happen to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CueEvent {
    /// The Oracle sent it, for the first time or as a renewal.
    Sent,
    /// The Oracle did not send it.
    Withheld,
    /// A host has begun to follow it.
    Taken,
    /// A host's guard has reverted it.
    Reverted,
    /// A host follows it again after a guard.
    Recovered,
    /// It ended at a host.
    Expired,
}

impl CueEvent {
    /// The name in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Withheld => "withheld",
            Self::Taken => "taken",
            Self::Reverted => "reverted",
            Self::Recovered => "recovered",
            Self::Expired => "expired",
        }
    }
}

/// Linux's congestion-avoidance states (`icsk_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaState {
    /// Nothing suspicious.
    Open,
    /// Duplicate ACKs or SACKs, not yet a loss.
    Disorder,
    /// Window reduced after ECN.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl CaState {
    /// The name in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Cwr => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

/// One sender at one instant. Table `cwnd`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CwndSample {
    /// Simulated time.
    pub time_ns: u64,
    /// The flow's number, as in `flows`.
    pub flow: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; `None` while it is infinite.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt_us: Option<u32>,
    /// Segments in flight.
    pub in_flight: u32,
    /// Congestion-avoidance state.
    pub state: CaState,
    /// Pacing rate, bit/s; `None` without pacing.
    pub pacing_rate_bps: Option<u64>,
}
