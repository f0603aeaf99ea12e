//! What a line is about.

use std::fmt;
use std::str::FromStr;

/// What a line is about. Readers accept others too: a later version may write more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An Oracle began.
    Started,
    /// What was decided in a period, and why.
    Decision,
    /// A CUE that was sent.
    Cue,
    /// A policy was applied, or the one before it.
    Policy,
    /// No CUE is sent until it is resumed.
    Pause,
    /// CUEs are sent after a pause.
    Resume,
    /// A rollout that did harm was ended.
    Rollback,
    /// A host reported that guards have reverted rules.
    Guard,
    /// An operator's request that was refused.
    Refused,
    /// A member was enrolled.
    Enrolled,
    /// A member was revoked.
    Revoked,
    /// An Oracle became or ceased to be the leader.
    Leader,
    /// The log's end was damaged, and was repaired.
    Repaired,
    /// Lines could not be written.
    Gap,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 14] = [
        Kind::Started,
        Kind::Decision,
        Kind::Cue,
        Kind::Policy,
        Kind::Pause,
        Kind::Resume,
        Kind::Rollback,
        Kind::Guard,
        Kind::Refused,
        Kind::Enrolled,
        Kind::Revoked,
        Kind::Leader,
        Kind::Repaired,
        Kind::Gap,
    ];

    /// As in a line.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Started => "started",
            Kind::Decision => "decision",
            Kind::Cue => "cue",
            Kind::Policy => "policy",
            Kind::Pause => "pause",
            Kind::Resume => "resume",
            Kind::Rollback => "rollback",
            Kind::Guard => "guard",
            Kind::Refused => "refused",
            Kind::Enrolled => "enrolled",
            Kind::Revoked => "revoked",
            Kind::Leader => "leader",
            Kind::Repaired => "repaired",
            Kind::Gap => "gap",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("there is no such kind; kinds are {}", names.join(", "))
        })
    }
}
