//! A collector's metrics.

use metrics::{Metric, Page, Unit};

/// Most switches that have series of their own; they come from the configuration's order.
pub const SWITCHES_MAX: usize = 512;

static CONNECTED: Metric =
    Metric::gauge("opentcp_collector_connected", Unit::Count, "1: the collector is connected to the Oracle.");
static SWITCHES: Metric =
    Metric::gauge("opentcp_collector_switches", Unit::Count, "Switches of the configuration, by protocol.")
        .by(&["protocol"]);
static AGE: Metric = Metric::gauge(
    "opentcp_collector_answer_age",
    Unit::Seconds,
    "Time since a switch has answered, or since the start if it never has; of at most 512 switches.",
)
.by(&["switch"]);
static ANSWERS: Metric =
    Metric::counter("opentcp_collector_answers", "Answers of a switch; of the same switches.").by(&["switch"]);
static ERRORS: Metric =
    Metric::counter("opentcp_collector_errors", "Questions that failed, by reason.").by(&["reason"]);
static LINKS: Metric = Metric::gauge(
    "opentcp_collector_links",
    Unit::Count,
    "Links that were measured last, whose utilization is known or unknown.",
)
.by(&["state"]);
static COUNTERS: Metric = Metric::counter(
    "opentcp_collector_counter_events",
    "What was wrong with switches' counters, by kind; docs/collect.md explains them.",
)
.by(&["kind"]);
static RECORDS: Metric = Metric::counter(
    "opentcp_collector_flow_records",
    "Flow records of sFlow and IPFIX, NetFlow: taken, or dropped because they were lost, unreadable or beyond a limit.",
)
.by(&["protocol", "result"]);
static SENT: Metric = Metric::counter("opentcp_collector_measurements", "Measurements sent to the Oracle.");

/// All of them.
pub static METRICS: [&Metric; 9] = [&CONNECTED, &SWITCHES, &AGE, &ANSWERS, &ERRORS, &LINKS, &COUNTERS, &RECORDS, &SENT];

/// What a collector shows of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// It is connected to the Oracle.
    pub connected: bool,
    /// Measurements sent.
    pub measurements: u64,
    /// In the order of the configuration.
    pub switches: Vec<WatchedSwitch>,
    /// Questions that failed, by a reason from a fixed list.
    pub errors: Vec<(&'static str, u64)>,
    /// Links whose utilization is known, and those of which it is not.
    pub links: [usize; 2],
    /// What was wrong with counters, by a kind from a fixed list.
    pub counter_events: Vec<(&'static str, u64)>,
    /// Flow records taken and dropped, by protocol.
    pub flow_records: Vec<(&'static str, [u64; 2])>,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchedSwitch {
    /// Its name.
    pub name: String,
    /// How it is asked.
    pub protocol: &'static str,
    /// Time since it has answered, or since the start if it never has, in seconds.
    pub age_s: f64,
    /// How often it has answered.
    pub answers: u64,
}

impl Watched {
    /// As metrics.
    pub fn page(&self) -> Page {
        let mut page = Page::default();
        page.set(&CONNECTED, &[], f64::from(u8::from(self.connected)));
        page.count(&SENT, self.measurements);
        let mut protocols: Vec<&'static str> = self.switches.iter().map(|switch| switch.protocol).collect();
        protocols.sort_unstable();
        for of_protocol in protocols.chunk_by(|one, next| one == next) {
            page.set(&SWITCHES, &[of_protocol[0]], of_protocol.len() as f64);
        }
        for switch in self.switches.iter().take(SWITCHES_MAX) {
            page.set(&AGE, &[&switch.name], switch.age_s);
            page.set(&ANSWERS, &[&switch.name], switch.answers as f64);
        }
        page.each(&ERRORS, self.errors.iter().copied());
        for (state, links) in ["known", "unknown"].into_iter().zip(self.links) {
            page.set(&LINKS, &[state], links as f64);
        }
        page.each(&COUNTERS, self.counter_events.iter().copied());
        for (protocol, counts) in &self.flow_records {
            for (result, count) in ["taken", "dropped"].into_iter().zip(counts) {
                page.set(&RECORDS, &[protocol, result], *count as f64);
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_collectors_metrics_are_all_in_the_table_and_bounded() {
        let switch = |n: usize| WatchedSwitch {
            name: format!("s{n}"),
            protocol: ["snmp", "gnmi"][n % 2],
            age_s: 1.5,
            answers: 3,
        };
        let watched = Watched {
            switches: (0..1000).map(switch).collect(),
            errors: vec![("timeout", 2)],
            counter_events: vec![("wrap", 1)],
            flow_records: vec![("sflow", [5, 1])],
            ..Watched::default()
        };
        let text = Arc::new(watched.page()).text();
        for metric in METRICS {
            assert!(text.contains(&format!("\n{}", metric.full_name())), "{}: {text}", metric.name);
        }
        assert!(text.contains("opentcp_collector_switches{protocol=\"gnmi\"} 500.0"), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("opentcp_collector_answers_total{")).count(),
            SWITCHES_MAX
        );
    }
}
