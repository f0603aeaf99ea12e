//! An agent's metrics.

use crate::status::Status;
use metrics::{Metric, Page, Unit};
use std::collections::BTreeMap;

static CONNECTED: Metric =
    Metric::gauge("opentcp_agent_connected", Unit::Count, "1: the agent is connected to the Oracle.");
static EPOCH_TERM: Metric =
    Metric::gauge("opentcp_agent_epoch_term", Unit::Count, "The term of the highest epoch seen.");
static EPOCH_SEQUENCE: Metric =
    Metric::gauge("opentcp_agent_epoch_sequence", Unit::Count, "The number of the highest epoch seen within its term.");
static RULE: Metric =
    Metric::gauge("opentcp_agent_rule_in_force", Unit::Count, "1 for each rule that is in force.").by(&["rule"]);
static LEFT: Metric =
    Metric::gauge("opentcp_agent_rule_left", Unit::Seconds, "How long a rule lasts unless it is renewed.")
        .by(&["rule"]);
static DIFFERING: Metric = Metric::gauge(
    "opentcp_agent_differing_settings",
    Unit::Count,
    "Settings that some connections certainly do not have although they were set.",
);
static NOTES: Metric = Metric::gauge(
    "opentcp_agent_notes",
    Unit::Count,
    "What could not be set, or not as asked; `opentcp agent status` says what.",
);
static CUES: Metric =
    Metric::counter("opentcp_agent_cues", "What became of CUEs: taken, rejected, or expired without being renewed.")
        .by(&["result"]);
static TRIPS: Metric = Metric::counter("opentcp_agent_guard_trips", "Reverts by guards.");
static SETS: Metric = Metric::counter("opentcp_agent_connections", "How often the program in the kernel set a connection (set), restored one (restored), withheld an algorithm for lack of ECN (ecn_refused), was refused by the kernel (failed), or had no room to report one that ended (unreported).").by(&["event"]);
static FLOWS: Metric = Metric::gauge(
    "opentcp_agent_open_connections",
    Unit::Count,
    "Open connections of the host, the agent's own left out.",
);
static RETRANSMITTED: Metric = Metric::gauge(
    "opentcp_agent_retransmitted",
    Unit::Ratio,
    "The share of data segments that were retransmissions, over the last second or 1000 segments; not there where less was sent.",
);

/// All of them.
pub static METRICS: [&Metric; 12] = [
    &CONNECTED,
    &EPOCH_TERM,
    &EPOCH_SEQUENCE,
    &RULE,
    &LEFT,
    &DIFFERING,
    &NOTES,
    &CUES,
    &TRIPS,
    &SETS,
    &FLOWS,
    &RETRANSMITTED,
];

/// An epoch's number within its term, and above it the Oracle's number and the term.
const SEQUENCE_BITS: u32 = 32;
const TERM_SHIFT: u32 = 40;

impl Status {
    /// As metrics.
    pub fn page(&self) -> Page {
        let mut page = Page::default();
        page.set(&CONNECTED, &[], f64::from(u8::from(self.connected)));
        let events = [
            ("set", self.applied),
            ("restored", self.reverted),
            ("ecn_refused", self.ecn_refused),
            ("failed", self.failed),
            ("unreported", self.records_lost),
        ];
        page.each(&SETS, events);
        let Some(report) = &self.report else { return page };
        if let Some(epoch) = report.epoch {
            page.count(&EPOCH_TERM, epoch >> TERM_SHIFT);
            page.count(&EPOCH_SEQUENCE, epoch & ((1 << SEQUENCE_BITS) - 1));
        }
        let counts = report.counts;
        let results = [("taken", counts.taken), ("rejected", counts.rejected), ("expired", counts.expired)];
        page.each(&CUES, results);
        page.count(&TRIPS, counts.reverted);
        page.count(&NOTES, report.notes.len() as u64);
        let settings = report.in_force.iter().flat_map(|rule| &rule.effective);
        page.count(&DIFFERING, settings.filter(|setting| setting.differing > 0).count() as u64);
        // two policies may have rules of one name
        let rules: BTreeMap<String, f64> = report
            .in_force
            .iter()
            .map(|rule| (format!("{}/{}", rule.policy, rule.rule), rule.left.as_secs_f64()))
            .collect();
        for (rule, left) in &rules {
            page.set(&RULE, &[rule], 1.0);
            page.set(&LEFT, &[rule], *left);
        }
        page.set_if(&FLOWS, report.host.live_flows);
        page.set_if(&RETRANSMITTED, report.host.drop_rate());
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bus::{InForce, Report};
    use policy::Host;
    use std::sync::Arc;

    #[test]
    fn an_agents_metrics_are_all_in_the_table() {
        let host = Host {
            live_flows: Some(2.0),
            sent_segments: Some(2000),
            retransmitted_segments: Some(20),
            ..Host::default()
        };
        let rule = InForce { policy: "p".into(), rule: "r".into(), ..InForce::default() };
        let report = Report { host, epoch: Some(3 << 40 | 7), in_force: vec![rule], ..Report::default() };
        let text = Arc::new(Status { report: Some(report), ..Status::default() }.page()).text();
        for metric in METRICS {
            assert!(text.contains(&format!("\n{}", metric.full_name())), "{}: {text}", metric.name);
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), METRICS.len());
        for line in [
            "opentcp_agent_epoch_term 3.0",
            "opentcp_agent_epoch_sequence 7.0",
            "opentcp_agent_retransmitted_ratio 0.01",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        let early = Arc::new(Status::default().page()).text();
        assert!(early.contains("opentcp_agent_connected 0.0"), "{early}");
    }
}
