//! What the Oracle answers to `status`: plain data of a bounded size.

use policy::Policy;
use serde::{Deserialize, Serialize};

/// Longest answer, bytes of JSON: it fits a message of the bus with its envelope.
pub const OVERVIEW_MAX: usize = 48 * 1024;
/// Most hosts of an answer.
pub const HOSTS_MAX: usize = 128;
/// Most links of an answer: the busiest.
pub const LINKS_MAX: usize = 32;
/// Decisions that are remembered.
pub const DECISIONS_MAX: usize = 16;
/// Most rules of an answer.
const RULES_MAX: usize = 64;

/// A fleet, as its Oracle sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overview {
    /// The policy's name.
    pub policy: String,
    /// The first digits of the hash of its text.
    pub hash: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// Its period, as policies write it.
    pub period: String,
    /// Whether an operator has paused it: no CUE is sent.
    pub paused: bool,
    /// Hosts that report what no other does, in the last period.
    pub outliers: usize,
    /// Whether the Oracle that answers decides.
    pub leads: bool,
    /// Its period, in seconds.
    pub period_s: f64,
    /// In how many seconds the next decision is due; `None`: this Oracle does not decide.
    pub next_s: Option<f64>,
    /// The epoch of the last decision.
    pub epoch: u64,
    /// When that was, in seconds since the Unix epoch.
    pub decided_unix_s: f64,
    /// How long ago that was, in seconds; `None`: nothing was decided yet.
    pub age_s: Option<f64>,
    /// Agents on the bus.
    pub agents: usize,
    /// Hosts of the last decision.
    pub hosts: usize,
    /// Of these, treated.
    pub treated: usize,
    /// Whether the rollout treats anybody now.
    pub treating: bool,
    /// Reverts by guards that were reported since the Oracle began.
    pub guard_trips: u64,
    /// CUEs that expired on agents without being renewed.
    pub expired: u64,
    /// CUEs that agents rejected.
    pub rejected: u64,
    /// Lines of the audit log that could not be written; 0 once they are recorded as missing.
    pub audit_lost: u64,
    /// Hosts on which some connections do not have what was set.
    pub differing: usize,
    /// What was refused, by reason.
    pub refused: Vec<(String, u64)>,
    /// In the order of the policy.
    pub rules: Vec<RuleLine>,
    /// Constraints, and whether they hold; `None`: not known.
    pub constraints: Vec<(String, Option<bool>)>,
    /// Treated hosts against the control group.
    pub verdict: VerdictLine,
    /// The busiest links.
    pub links: Vec<LinkLine>,
    /// How many links there are.
    pub links_total: usize,
    /// The hosts that were asked for.
    pub host_lines: Vec<HostLine>,
    /// How many hosts match what was asked for.
    pub hosts_matched: usize,
    /// The last decisions, the newest first.
    pub decisions: Vec<DecisionLine>,
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleLine {
    /// Its name.
    pub name: String,
    /// Hosts that it is for.
    pub matched: usize,
    /// Hosts to which a CUE goes.
    pub on: usize,
    /// Hosts on which it is in force, and on which a guard has reverted it, by their last reports.
    pub in_force: usize,
    /// See `in_force`.
    pub reverted: usize,
    /// Why it is off whatever its condition says.
    pub withheld: Option<String>,
    /// What its condition was made of, or why no host gets it although it holds.
    pub why: String,
    /// What it sets; an Oracle of an earlier version does not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// When an agent reverts it by itself, and for how long; empty: never.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub guard: String,
}

/// The verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictLine {
    /// helping, hurting, unclear.
    pub judgement: String,
    /// Whether the rollout is over.
    pub roll_back: bool,
    /// In words.
    pub reason: String,
    /// What is compared.
    pub quantities: Vec<QuantityLine>,
}

/// A quantity of treated hosts against the control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuantityLine {
    /// What.
    pub name: String,
    /// helping, hurting, unclear.
    pub judgement: String,
    /// Pairs that were compared.
    pub pairs: u64,
    /// How much larger it is with treated hosts, as a share.
    pub change: Option<f64>,
    /// The interval of that.
    pub interval: Option<(f64, f64)>,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkLine {
    /// Its name.
    pub name: String,
    /// The switch or host that sends; an Oracle of an earlier version does not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The one that receives.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// Whether one of its ends is a host; else it is between switches.
    pub at_host: bool,
    /// Whether packets can take it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// Capacity, bits per second.
    pub rate_bps: Option<u64>,
    /// Share of the capacity that was used.
    pub utilization: Option<f64>,
    /// Share of packets that were dropped.
    pub drop_rate: Option<f64>,
    /// Share of packets that were marked.
    pub mark_rate: Option<f64>,
    /// Mean length of the queue, bytes.
    pub queue_bytes: Option<u64>,
}

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostLine {
    /// Its name.
    pub name: String,
    /// Its rack.
    pub rack: String,
    /// Whether it is treated; else it is in the control group.
    pub treated: bool,
    /// The algorithm of its connections without a policy.
    pub cc: String,
    /// Open connections.
    pub flows: Option<f64>,
    /// Share of segments that were retransmitted.
    pub retransmits: Option<f64>,
    /// What it sends, bits per second.
    pub send_bps: Option<u64>,
    /// Rules in force.
    pub rules: usize,
    /// Which: bit i is the policy's rule i, of the first 64.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_force: u64,
    /// Share of the capacity that was used, of the busiest link that it is at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// The switch, or the rack, at the other end of that.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub leaf: String,
    /// The highest epoch that its agent knows of.
    pub epoch: Option<u64>,
    /// Reverts by guards since its agent began.
    pub guard_trips: u64,
    /// What guards hold reverted, by its last report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reverted: Vec<RevertedLine>,
    /// Settings that some connections do not have.
    pub differing: usize,
    /// Notes of its agent.
    pub notes: usize,
    /// How long before the decision its last report came, in seconds.
    pub heard_s: f64,
}

/// A rule that a guard has reverted on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RevertedLine {
    /// The rule's name.
    pub rule: String,
    /// What the guard saw; empty if its agent was restarted since.
    pub why: String,
    /// How long it stays so from the decision on, seconds, and how long in all.
    pub left_s: f64,
    /// See `left_s`.
    pub hold_s: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(bits: &u64) -> bool {
    *bits == 0
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionLine {
    /// When, in seconds since the Unix epoch.
    pub unix_s: f64,
    /// Its epoch.
    pub epoch: u64,
    /// Hosts that it treats.
    pub treated: usize,
    /// Of so many.
    pub hosts: usize,
    /// CUEs that were sent.
    pub cues: usize,
    /// What became of each rule, and why.
    pub words: String,
}

impl Overview {
    /// Whether the policy acts; else it observes.
    pub fn is_enforcing(&self) -> bool {
        self.mode == "enforce"
    }

    /// With what the policy's rules set, and their guards.
    #[must_use]
    pub fn explained(mut self, policy: &Policy) -> Overview {
        for line in &mut self.rules {
            let Some(rule) = policy.rules.iter().find(|rule| clipped(&rule.name, 64) == line.name) else { continue };
            line.set = clipped(&rule.set.to_string(), 160);
            line.guard = rule.guard.as_ref().map_or(String::new(), |guard| {
                clipped(&format!("{}, for {}", guard.revert_if.text(), guard.hold), 160)
            });
        }
        self.fitted()
    }

    /// The same within [`OVERVIEW_MAX`] bytes: hosts are left out first, the last ones, then links and rules.
    #[must_use]
    pub fn fitted(mut self) -> Overview {
        self.rules.truncate(RULES_MAX);
        self.constraints.truncate(RULES_MAX);
        while serde_json::to_vec(&self).map_or(0, |json| json.len()) > OVERVIEW_MAX {
            let lists = [self.host_lines.len(), self.links.len(), self.decisions.len(), self.rules.len()];
            match lists.iter().position(|length| *length > 0) {
                Some(0) => self.host_lines.truncate(lists[0] * 3 / 4),
                Some(1) => self.links.truncate(lists[1] / 2),
                Some(2) => self.decisions.truncate(lists[2] / 2),
                Some(3) => self.rules.truncate(lists[3] / 2),
                _ => self.constraints.truncate(self.constraints.len() / 2),
            }
        }
        self
    }
}

/// How many of so many hosts are treated, for people. Where nothing is sent nobody is, however many would be.
pub fn treated_words((treated, hosts): (usize, usize), is_enforced: bool, is_paused: bool) -> String {
    match (is_enforced, is_paused) {
        (true, false) => format!("{treated} of {hosts} hosts treated"),
        (true, true) => format!("{treated} of {hosts} hosts would be treated (paused; nothing is sent)"),
        (false, _) => format!("{treated} of {hosts} hosts would be treated (observing; nothing is sent)"),
    }
}

/// A verdict for people, or why there is none.
pub fn verdict_words(judgement: &str, reason: &str) -> String {
    if judgement == policy::Judgement::NotJudged.as_str() {
        return format!("no verdict: {reason}");
    }
    format!("verdict: {judgement}: {reason}")
}

/// The beginning of a text, of at most so many bytes, in whole characters.
pub fn clipped(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_string();
    }
    let end = (0..=bytes - 3).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}
