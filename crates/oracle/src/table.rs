//! An Oracle's metrics.

use crate::status::Status;
use crate::watch::{SERIES_LINKS_MAX, Watch};
use metrics::{Metric, Page, Unit};

static AGENTS: Metric = Metric::gauge(
    "opentcp_oracle_agents",
    Unit::Count,
    "Agents on the bus, and other processes that are connected to it.",
);
static HOSTS: Metric = Metric::gauge(
    "opentcp_oracle_hosts",
    Unit::Count,
    "Hosts of the last decision: those that reported within two periods.",
);
static TREATED: Metric = Metric::gauge(
    "opentcp_oracle_treated_hosts",
    Unit::Count,
    "Of these, hosts that are treated; the others are the control group.",
);
static ENFORCING: Metric =
    Metric::gauge("opentcp_oracle_enforcing", Unit::Count, "1: the policy acts; 0: it observes.");
static LEADER: Metric =
    Metric::gauge("opentcp_oracle_leader", Unit::Count, "1: this Oracle decides; 0: another one does.");
static TERM: Metric = Metric::gauge(
    "opentcp_oracle_epoch_term",
    Unit::Count,
    "The term of the last epoch: how often a leader has begun.",
);
static SEQUENCE: Metric =
    Metric::gauge("opentcp_oracle_epoch_sequence", Unit::Count, "The number of the last epoch within its term.");
static PERIOD: Metric = Metric::gauge("opentcp_oracle_period", Unit::Seconds, "The policy's period T.");
static DECIDED: Metric = Metric::gauge(
    "opentcp_oracle_last_decision_timestamp",
    Unit::Seconds,
    "When it decided last, since the Unix epoch.",
);
static DECISIONS: Metric = Metric::counter("opentcp_oracle_decisions", "Decisions since the start.");
static CUES: Metric = Metric::counter("opentcp_oracle_cues_sent", "CUEs sent since the start.");
static RULE_HOSTS: Metric =
    Metric::gauge("opentcp_oracle_rule_hosts", Unit::Count, "Hosts for which a rule is on.").by(&["rule"]);
static RULE_MATCHED: Metric =
    Metric::gauge("opentcp_oracle_rule_matched_hosts", Unit::Count, "Hosts that a rule is for.").by(&["rule"]);
static RULE_WITHHELD: Metric =
    Metric::gauge("opentcp_oracle_rule_withheld", Unit::Count, "1: a rule is off whatever its condition says.")
        .by(&["rule"]);
static HOLDS: Metric = Metric::gauge(
    "opentcp_oracle_constraint_holds",
    Unit::Count,
    "1: a constraint holds, 0: it does not; not there: not known.",
)
.by(&["constraint"]);
static VERDICT: Metric = Metric::gauge(
    "opentcp_oracle_verdict",
    Unit::Count,
    "The verdict: 1 for the state that it is in (helping, hurting, unclear, none without an objective), 0 for the others.",
)
.by(&["state"]);
static ROLLED_BACK: Metric =
    Metric::gauge("opentcp_oracle_rolled_back", Unit::Count, "1: the rollout was rolled back.");
static CHANGE: Metric = Metric::gauge(
    "opentcp_oracle_verdict_change",
    Unit::Ratio,
    "How much larger a quantity is on treated hosts than in the control group: -0.5 is half.",
)
.by(&["quantity"]);
static CHANGE_LOW: Metric =
    Metric::gauge("opentcp_oracle_verdict_change_low", Unit::Ratio, "The lower end of its 95 % confidence sequence.")
        .by(&["quantity"]);
static CHANGE_HIGH: Metric =
    Metric::gauge("opentcp_oracle_verdict_change_high", Unit::Ratio, "The upper end of its 95 % confidence sequence.")
        .by(&["quantity"]);
static PAIRS: Metric =
    Metric::gauge("opentcp_oracle_verdict_pairs", Unit::Count, "Pairs of periods that were compared.")
        .by(&["quantity"]);
static LINKS: Metric = Metric::gauge(
    "opentcp_oracle_links",
    Unit::Count,
    "Links of the last decision, by class: `switch` between switches, `host` at a host.",
)
.by(&["class"]);
static LINKS_UNKNOWN: Metric = Metric::gauge(
    "opentcp_oracle_links_unknown",
    Unit::Count,
    "Of these, links of which the utilization is not known.",
)
.by(&["class"]);
static BUSIEST: Metric =
    Metric::gauge("opentcp_oracle_links_utilization_max", Unit::Ratio, "The largest utilization of a class of links.")
        .by(&["class"]);
static UTILIZATION: Metric = Metric::gauge(
    "opentcp_oracle_link_utilization",
    Unit::Ratio,
    "A link's utilization; of at most 256 links, those between switches first, by name.",
)
.by(&["link"]);
static LINK_DROPS: Metric = Metric::gauge(
    "opentcp_oracle_link_drop",
    Unit::Ratio,
    "The share of packets that a link dropped; of the same links.",
)
.by(&["link"]);
static GUARD_TRIPS: Metric =
    Metric::counter("opentcp_oracle_guard_trips", "Reverts by guards that agents reported since the start.");
static DIFFERING: Metric = Metric::gauge(
    "opentcp_oracle_differing_hosts",
    Unit::Count,
    "Hosts on which some connections do not have what was set.",
);
static OUTLIERS: Metric = Metric::gauge(
    "opentcp_oracle_outlier_hosts",
    Unit::Count,
    "Hosts that report what no other does, in the last period; their numbers are cut.",
);
static AUDIT_LOST: Metric = Metric::gauge(
    "opentcp_oracle_audit_lost_lines",
    Unit::Count,
    "Lines of the audit log that could not be written; 0 once there is space again and they are recorded as missing.",
);
static REPORTS: Metric = Metric::counter("opentcp_oracle_reports", "Reports that were taken.");
static REFUSED: Metric =
    Metric::counter("opentcp_oracle_refused", "Messages, agents and parts of reports that were refused, by reason.")
        .by(&["reason"]);

/// All of them.
pub static METRICS: [&Metric; 32] = [
    &AGENTS,
    &HOSTS,
    &TREATED,
    &ENFORCING,
    &LEADER,
    &TERM,
    &SEQUENCE,
    &PERIOD,
    &DECIDED,
    &DECISIONS,
    &CUES,
    &RULE_HOSTS,
    &RULE_MATCHED,
    &RULE_WITHHELD,
    &HOLDS,
    &VERDICT,
    &ROLLED_BACK,
    &CHANGE,
    &CHANGE_LOW,
    &CHANGE_HIGH,
    &PAIRS,
    &LINKS,
    &LINKS_UNKNOWN,
    &BUSIEST,
    &UTILIZATION,
    &LINK_DROPS,
    &GUARD_TRIPS,
    &DIFFERING,
    &REPORTS,
    &OUTLIERS,
    &AUDIT_LOST,
    &REFUSED,
];

/// An epoch's number within its term, and above it the Oracle's number and the term.
const SEQUENCE_BITS: u32 = 32;
const TERM_SHIFT: u32 = 40;

impl Status {
    /// What was refused since the start, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (bus, reports) = (self.bus, self.reports);
        [
            ("agent too slow", bus.slow),
            ("message too long", bus.long),
            ("process turned away", bus.turned_away),
            ("message of the fleet", bus.rejected.sum()),
            ("report malformed", reports.refused),
            ("report of another host", reports.impostors),
            ("host beyond limit", reports.hosts_beyond),
            ("link beyond limit", reports.links_beyond),
            ("link of another", reports.links_foreign),
            ("group not in policy", reports.groups_other),
            ("racks beyond limit", reports.racks_other),
        ]
        .into_iter()
    }
}

impl Watch {
    /// As metrics; nothing before the first decision but what is always known.
    pub fn page(&self) -> Page {
        let (mut page, last) = (Page::default(), self.last());
        let flag = |holds: bool| f64::from(u8::from(holds));
        page.count(&DECISIONS, self.decisions_total);
        page.count(&CUES, self.cues_total);
        page.count(&AGENTS, self.status.agents as u64);
        page.count(&REPORTS, self.status.reports.taken);
        page.count(&AUDIT_LOST, self.status.audit_lost);
        page.each(&REFUSED, self.status.refusals());
        page.set(&LEADER, &[], flag(last.leads));
        page.set(&PERIOD, &[], last.period_s);
        if self.decisions_total == 0 {
            return page;
        }
        page.count(&HOSTS, last.hosts as u64);
        page.count(&TREATED, last.treated as u64);
        page.set(&ENFORCING, &[], flag(last.is_enforcing()));
        page.count(&TERM, last.epoch >> TERM_SHIFT);
        page.count(&SEQUENCE, last.epoch & ((1 << SEQUENCE_BITS) - 1));
        page.set(&DECIDED, &[], last.decided_unix_s);
        page.count(&GUARD_TRIPS, last.guard_trips);
        page.count(&DIFFERING, last.differing as u64);
        page.count(&OUTLIERS, last.outliers as u64);
        for rule in &last.rules {
            page.set(&RULE_HOSTS, &[&rule.name], rule.on as f64);
            page.set(&RULE_MATCHED, &[&rule.name], rule.matched as f64);
            page.set(&RULE_WITHHELD, &[&rule.name], flag(rule.withheld.is_some()));
        }
        for (name, holds) in &last.constraints {
            page.set(&HOLDS, &[name], holds.map_or(f64::NAN, flag));
        }
        for state in ["helping", "hurting", "unclear", "none"] {
            page.set(&VERDICT, &[state], flag(last.verdict.judgement == state));
        }
        page.set(&ROLLED_BACK, &[], flag(last.verdict.roll_back));
        for quantity in &last.verdict.quantities {
            let (low, high) = quantity.interval.unwrap_or((f64::NAN, f64::NAN));
            let name: &[&str] = &[&quantity.name];
            page.set(&CHANGE, name, quantity.change.unwrap_or(f64::NAN));
            page.set(&CHANGE_LOW, name, low);
            page.set(&CHANGE_HIGH, name, high);
            page.set(&PAIRS, name, quantity.pairs as f64);
        }
        self.links_page(&mut page);
        page
    }

    fn links_page(&self, page: &mut Page) {
        for (class, at_host) in [("switch", false), ("host", true)] {
            let of_class = || self.links().iter().filter(move |link| link.at_host == at_host);
            let known = || of_class().filter_map(|link| link.utilization);
            page.set(&LINKS, &[class], of_class().count() as f64);
            page.set(&LINKS_UNKNOWN, &[class], (of_class().count() - known().count()) as f64);
            page.set(&BUSIEST, &[class], known().reduce(f64::max).unwrap_or(f64::NAN));
        }
        for link in self.links().iter().take(SERIES_LINKS_MAX) {
            page.set(&UTILIZATION, &[&link.name], link.utilization.unwrap_or(f64::NAN));
            page.set(&LINK_DROPS, &[&link.name], link.drop_rate.unwrap_or(f64::NAN));
        }
    }
}
