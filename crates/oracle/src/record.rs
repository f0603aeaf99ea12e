//! What the Oracle writes into its audit log.

use crate::config::Event;
use crate::log::{CueLine, DecisionLine};
use audit::{AuditError, Kind, Limits, Log, Timestamp};
use serde_json::json;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// An Oracle's audit log. What cannot be written stops nothing: it is counted.
#[derive(Debug)]
pub struct AuditLog {
    log: Log,
    /// The last decision had ended the rollout.
    rolled_back: bool,
}

/// The wall clock's time.
pub fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}

/// Seconds since the Unix epoch by the same clock, for people.
pub fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl AuditLog {
    /// Opens the log in the Oracle's state folder.
    ///
    /// # Errors
    /// Another process writes it, or it cannot be made.
    pub fn open(state: &Path) -> Result<AuditLog, AuditError> {
        Ok(AuditLog { log: Log::open(&state.join("audit"), Limits::default(), now())?, rolled_back: false })
    }

    /// Lines that could not be written, until there is space again and a line of kind `gap` records them.
    pub fn lost(&self) -> u64 {
        self.log.lost()
    }

    /// Writes what has happened, before it takes effect. Returns what people should hear of the log itself.
    pub fn on(&mut self, event: &Event<'_>) -> Option<String> {
        let at = now();
        match event {
            Event::Decided { policy, hash, paused, decision, verdict, .. } => {
                let line = DecisionLine::of(policy, hash, *paused, decision, verdict);
                self.log.append(at, Kind::Decision, &line);
                if verdict.roll_back && !self.rolled_back {
                    let body = json!({ "policy": policy.name, "hash": hash, "epoch": decision.epoch, "reason": verdict.reason });
                    self.log.append(at, Kind::Rollback, &body);
                }
                self.rolled_back = verdict.roll_back;
                if line.acts() {
                    decision
                        .to_send()
                        .iter()
                        .for_each(|cue| self.log.append(at, Kind::Cue, &CueLine { cue: cue.clone() }));
                }
            }
            Event::Noted { kind, body } => self.log.append(at, *kind, body),
            Event::Leads { term } => {
                self.log.append(
                    at,
                    Kind::Leader,
                    &json!({ "leads": true, "term": term, "words": format!("this Oracle decides, in term {term}") }),
                );
            }
            Event::Follows { why } => {
                self.log.append(
                    at,
                    Kind::Leader,
                    &json!({ "leads": false, "words": format!("this Oracle does not decide: {why}") }),
                );
            }
            // written with its decision
            Event::Sent { .. } => return None,
        }
        self.log.sync();
        self.log.notice()
    }
}
