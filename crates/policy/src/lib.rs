//! The heart of OpenTCP: the operator's policy, the decisions that follow from what was observed, the messages (CUEs,
//! congestion update epistles) that carry them to the hosts, and what an agent there makes of them.
//!
//! ```text
//! file ──▶ Policy ─┐
//! NetworkView ─────┼──▶ decide ──▶ Decision ──▶ Cue ──▶ OracleKey::sign ──▶ bytes ──▶ Agent ──▶ what to set
//! History ─────────┘
//! ```
//!
//! Nothing here reads a clock, does I/O or starts a thread: times and keys are arguments.
#![forbid(unsafe_code)]

mod agent;
mod algorithm;
mod beacon;
mod compare;
mod cue;
mod decide;
mod epoch;
mod explain;
mod expression;
mod guard;
mod history;
mod model;
mod oracle;
mod population;
mod ports;
mod program;
mod read;
mod seen;
mod select;
mod settings;
mod share;
mod sign;
mod spread;
mod student;
mod switch;
mod unit;
mod variable;
mod verdict;
mod view;
mod wire;
mod zone;

pub use agent::{Agent, AgentCounts, AgentRule, HELD_MAX, Reverted};
pub use algorithm::{AlgorithmFacts, KERNEL_PREFIX, Known, Measures, provided};
pub use beacon::Beacon;
pub use compare::{Comparison, Decided, HostList, RuleChange, RulePlace, SettingChange};
pub use cue::{Addressees, Cue, CueGuard, CueScope, NAMED_MAX, TEXT_MAX, place_of};
pub use decide::{
    Conflict, ConstraintReport, Decision, HostCounts, RuleReport, STABILITY_FACTOR, STALE_PERIODS, decide,
};
pub use document::{Diagnostic, Located};
pub use epoch::{EPOCH_MAX, Epoch, TERM_MAX};
pub use expression::{Expression, ExpressionError, Place};
pub use guard::GuardWindow;
pub use history::{History, Progress, RuleSwitches};
pub use model::*;
pub use oracle::Oracle;
pub use seen::Seen;
pub use select::{Hosts, Prefix, PrefixError, Sessions, fits};
pub use settings::{Setting, Settings, WINDOW_TOTAL};
pub use share::Share;
pub use sign::{
    CueError, Gate, Identity, KEYS_MAX, KeyError, OracleKey, PublicKey, PublicKeys, QUESTION_BYTES, QUESTIONS_MAX,
    Question, SIGNED_MAX,
};
pub use spread::{GROUPS, Rest};
pub use student::student;
pub use switch::Turn;
pub use unit::Unit;
pub use variable::{LINKS_ADVICE, Scope, Variable};
pub use verdict::{ArmObservation, FLOWS_MIN, Judgement, PeriodObservation, QuantityReport, Verdict, VerdictReport};
pub use view::*;
pub use wire::WireError;
pub use zone::{LocalTime, Zone};
