//! The body of a line of kind `decision`.

use policy::{Cue, Decision, Mode, Policy, Seen, Turn, VerdictReport};
use serde::{Deserialize, Serialize};

/// A decision, in as many words as a log can afford each period: CUEs have lines of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionLine {
    /// The policy's name.
    pub policy: String,
    /// The first digits of its text's hash.
    pub hash: String,
    /// T, seconds.
    pub period_s: f64,
    /// The policy's time zone.
    pub time_zone: String,
    /// The decision's number.
    pub epoch: u64,
    /// `enforce`, or `observe`: nothing was sent.
    pub mode: String,
    /// CUEs were withheld, because an operator had paused.
    pub paused: bool,
    /// Hosts that reported.
    pub hosts: usize,
    /// Of these, treated.
    pub treated: usize,
    /// What must hold.
    pub constraints: Vec<ConstraintLine>,
    /// In the order of the policy.
    pub rules: Vec<RuleLine>,
    /// Rules that set the same, differently: of two each, the one that counts first.
    pub conflicts: Vec<(String, String)>,
    /// How treated hosts compare with the control group.
    pub verdict: VerdictLine,
    /// CUEs, sent or not.
    pub cues: usize,
}

/// Whether a constraint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConstraintLine {
    /// Its name.
    pub name: String,
    /// `None`: not known.
    pub holds: Option<bool>,
    /// What it asked for, with values.
    pub values: Vec<String>,
}

/// What became of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleLine {
    /// Its name.
    pub name: String,
    /// What it sets.
    pub set: String,
    /// `on`, `off`, `held_on`, …; of a rule that is decided host by host there is none.
    pub turn: Option<String>,
    /// Why it is off whatever its condition says.
    pub withheld: Option<String>,
    /// What it asked of the network, with values.
    pub values: Vec<String>,
    /// What it asked for, from which to which value over its hosts.
    pub seen: Vec<(String, Option<f64>, Option<f64>)>,
    /// Its hosts.
    pub hosts: HostsLine,
    /// The first hosts that lack its algorithm.
    pub lacking: Vec<String>,
}

/// Hosts of a rule, by what became of them. Numbers that are zero are not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostsLine {
    /// That it is for.
    pub matched: usize,
    /// To which a CUE went, or would have.
    pub on: usize,
    /// Of these, kept on by the hold time.
    #[serde(skip_serializing_if = "is_zero")]
    pub held_on: usize,
    /// Kept off by the hold time.
    #[serde(skip_serializing_if = "is_zero")]
    pub held_off: usize,
    /// Kept off because they changed too often.
    #[serde(skip_serializing_if = "is_zero")]
    pub flap_limited: usize,
    /// Of which too little is known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown: usize,
    /// Left out because some hop does not mark.
    #[serde(skip_serializing_if = "is_zero")]
    pub no_ecn: usize,
    /// Left out because they lack the algorithm.
    #[serde(skip_serializing_if = "is_zero")]
    pub no_algorithm: usize,
}

/// The verdict so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictLine {
    /// `helping`, `hurting`, `unclear`.
    pub judgement: String,
    /// Whether the rollout is over.
    pub roll_back: bool,
    /// In words.
    pub reason: String,
}

/// The body of a line of kind `cue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CueLine {
    /// What was sent.
    #[serde(flatten)]
    pub cue: Cue,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl DecisionLine {
    /// Of a decision by `policy`.
    pub fn of(policy: &Policy, hash: &str, paused: bool, decision: &Decision, verdict: &VerdictReport) -> DecisionLine {
        let rules = decision.rules.iter().enumerate().map(|(i, report)| {
            let hosts = report.hosts;
            RuleLine {
                name: report.name.clone(),
                set: policy.rules.get(i).map(|rule| rule.set.to_string()).unwrap_or_default(),
                turn: report.turn.map(turn),
                withheld: report.withheld.clone(),
                values: report.values.clone(),
                seen: report.seen.iter().map(|seen| (seen.what.clone(), seen.least, seen.most)).collect(),
                hosts: HostsLine {
                    matched: hosts.matched,
                    on: hosts.addressed,
                    held_on: hosts.held_on,
                    held_off: hosts.held_off,
                    flap_limited: hosts.flap_limited,
                    unknown: hosts.unknown,
                    no_ecn: hosts.no_ecn,
                    no_algorithm: hosts.no_algorithm,
                },
                lacking: report.lacking.clone(),
            }
        });
        let constraints = decision.constraints.iter().map(|constraint| ConstraintLine {
            name: constraint.name.clone(),
            holds: constraint.holds,
            values: constraint.values.clone(),
        });
        DecisionLine {
            policy: policy.name.clone(),
            hash: hash.to_string(),
            period_s: policy.period.as_secs_f64(),
            time_zone: policy.time_zone.name().to_string(),
            epoch: decision.epoch,
            mode: if decision.mode == Mode::Enforce { "enforce" } else { "observe" }.to_string(),
            paused,
            hosts: decision.hosts,
            treated: decision.treated,
            constraints: constraints.collect(),
            rules: rules.collect(),
            conflicts: decision.conflicts.iter().map(|one| (one.first.clone(), one.second.clone())).collect(),
            verdict: VerdictLine {
                judgement: verdict.judgement.as_str().to_string(),
                roll_back: verdict.roll_back,
                reason: verdict.reason.clone(),
            },
            cues: decision.cues.len(),
        }
    }

    /// Whether CUEs went out.
    pub fn acts(&self) -> bool {
        self.mode == "enforce" && !self.paused
    }
}

impl RuleLine {
    /// What it asked for, for people: values of the network, or ranges over hosts.
    pub fn why(&self) -> String {
        if !self.values.is_empty() {
            return self.values.join("; ");
        }
        let seen = self.seen.iter().map(|(what, least, most)| Seen::named(what, least.zip(*most)).to_string());
        seen.collect::<Vec<_>>().join("; ")
    }
}

fn turn(turn: Turn) -> String {
    let text = match turn {
        Turn::On => "on",
        Turn::Off => "off",
        Turn::HeldOn => "held_on",
        Turn::HeldOff => "held_off",
        Turn::FlapLimited => "flap_limited",
        Turn::Unknown => "unknown",
    };
    text.to_string()
}
