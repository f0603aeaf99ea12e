//! An enforcer's metrics.

use crate::status::{PortStatus, Status};
use metrics::{Metric, Page, Unit};

static UP: Metric = Metric::gauge("opentcp_enforcer_up", Unit::Seconds, "Time since the enforcer started.");
static FLOWS: Metric =
    Metric::gauge("opentcp_enforcer_flows", Unit::Count, "Flows enforced now, by algorithm.").by(&["algorithm"]);
static FLOWS_LIMIT: Metric = Metric::gauge(
    "opentcp_enforcer_flows_limit",
    Unit::Count,
    "The most flows that it enforces; others pass unenforced.",
);
static ECHOES: Metric = Metric::gauge("opentcp_enforcer_echoes", Unit::Count, "Flows whose marks are echoed now.");
static BUFFERED: Metric =
    Metric::gauge("opentcp_enforcer_buffered", Unit::Bytes, "Memory of the packets buffered now.");
static BUFFERED_MAX: Metric = Metric::gauge(
    "opentcp_enforcer_buffered_max",
    Unit::Bytes,
    "The largest memory of buffered packets since the start.",
);
static BUFFERED_LIMIT: Metric =
    Metric::gauge("opentcp_enforcer_buffered_limit", Unit::Bytes, "The most memory that buffered packets may have.");
static MIRRORED: Metric =
    Metric::gauge("opentcp_enforcer_mirrored_flows", Unit::Count, "Flows of another enforcer, whose standby this is.");
static MIRROR_REFUSED: Metric = Metric::counter(
    "opentcp_enforcer_mirror_refused",
    "Reports of other enforcers that were not taken: forged, repeated, or of a clock that is far from this machine's.",
);
static EVENTS: Metric = Metric::counter(
    "opentcp_enforcer_events",
    "What has happened to packets and flows; docs/enforcer.md explains each counter.",
)
.by(&["event"]);
static RECEIVED: Metric =
    Metric::counter("opentcp_enforcer_received_frames", "Frames received, by the side of the interface.").by(&["side"]);
static SENT: Metric = Metric::counter("opentcp_enforcer_sent_frames", "Frames sent.").by(&["side"]);
static LOST: Metric = Metric::counter("opentcp_enforcer_lost_frames", "Frames lost on sending.").by(&["side"]);
static MISSED: Metric = Metric::counter(
    "opentcp_enforcer_missed_frames",
    "Frames dropped on reception: the enforcer was behind, or they were too long.",
)
.by(&["side"]);
static BRIDGED: Metric =
    Metric::counter("opentcp_enforcer_bridged_frames", "Frames that bypassed the enforcer through the bridge.")
        .by(&["side"]);
static TURN: Metric = Metric::gauge(
    "opentcp_enforcer_turn_max",
    Unit::Seconds,
    "The longest time between two looks at the interfaces since the start, not counting sleep.",
);
static SLICE: Metric = Metric::gauge(
    "opentcp_enforcer_listing_max",
    Unit::Seconds,
    "The longest part of that time that listing flows took.",
);
static ORACLE: Metric = Metric::gauge(
    "opentcp_enforcer_oracle_connected",
    Unit::Count,
    "Whether there is a connection to the Oracle (1) or none (0), where CUEs are taken for servers.",
);
static ORACLE_HEARD: Metric = Metric::gauge(
    "opentcp_enforcer_oracle_heard",
    Unit::Seconds,
    "Time since a message of the Oracle came, once one has come.",
);

/// All of them.
pub static METRICS: [&Metric; 19] = [
    &UP,
    &FLOWS,
    &FLOWS_LIMIT,
    &ECHOES,
    &BUFFERED,
    &BUFFERED_MAX,
    &BUFFERED_LIMIT,
    &MIRRORED,
    &MIRROR_REFUSED,
    &EVENTS,
    &RECEIVED,
    &SENT,
    &LOST,
    &MISSED,
    &BRIDGED,
    &TURN,
    &SLICE,
    &ORACLE,
    &ORACLE_HEARD,
];

impl Status {
    /// As metrics.
    pub fn page(&self) -> Page {
        let mut page = Page::default();
        page.set(&UP, &[], self.up_seconds);
        for (algorithm, flows) in &self.flows_by_algorithm {
            page.set(&FLOWS, &[algorithm], *flows as f64);
        }
        page.count(&FLOWS_LIMIT, self.flows_limit as u64);
        page.count(&ECHOES, self.echoes as u64);
        page.count(&BUFFERED, self.buffered_bytes as u64);
        page.count(&BUFFERED_MAX, self.buffered_bytes_max as u64);
        page.count(&BUFFERED_LIMIT, self.buffered_bytes_limit as u64);
        page.count(&MIRRORED, self.mirrored as u64);
        page.count(&MIRROR_REFUSED, self.mirror_refused);
        for (event, count) in &self.counters {
            page.set(&EVENTS, &[event], *count as f64);
        }
        for (side, port) in [("servers", &self.servers), ("clients", &self.clients)] {
            let PortStatus { interface: _, received, sent, lost, bridged, missed } = port;
            let counts = [(&RECEIVED, received), (&SENT, sent), (&LOST, lost), (&MISSED, missed), (&BRIDGED, bridged)];
            for (metric, count) in counts {
                page.set(metric, &[side], *count as f64);
            }
        }
        page.set(&TURN, &[], self.turn_max_seconds);
        page.set(&SLICE, &[], self.listing_max_seconds);
        if let Some(oracle) = &self.oracle {
            page.count(&ORACLE, u64::from(oracle.connected));
            oracle.heard_seconds_ago.iter().for_each(|ago| page.set(&ORACLE_HEARD, &[], *ago));
        }
        page
    }
}
