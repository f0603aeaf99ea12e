//! The Oracle: from what was observed in a period to the signed messages that are sent.

use crate::decide::{Decision, decide};
use crate::history::{History, Progress};
use crate::model::Policy;
use crate::sign::{OracleKey, Question};
use crate::verdict::{ArmObservation, Judgement, PeriodObservation, Verdict, VerdictReport};
use crate::view::NetworkView;

/// Decides every period, judges what comes of it, and signs what is to be sent.
pub struct Oracle {
    policy: Policy,
    key: OracleKey,
    history: History,
    verdict: Verdict,
    /// CUEs of the last decision were sent.
    acting: bool,
}

impl Oracle {
    /// An Oracle that acts by `policy` and signs with `key`. Its first epoch is the one after that of `history`.
    pub fn new(policy: Policy, key: OracleKey, history: History) -> Oracle {
        let verdict = Verdict::new(&policy);
        Oracle { policy, key, history, verdict, acting: false }
    }

    /// What it acts by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The epoch of the last decision, to be stored before what was signed in it is sent.
    pub fn epoch(&self) -> u64 {
        self.history.epoch()
    }

    /// The answer to agents that have asked for the last epoch.
    pub fn answer(&self, questions: &[Question]) -> Vec<u8> {
        self.key.answer(self.epoch(), questions)
    }

    /// Whether the last decision treated this host of its view; the others are the control group.
    pub fn treats(&self, host: usize) -> bool {
        self.history.is_treated(host)
    }

    /// How far the rollout has come, to be stored with the epoch.
    pub fn progress(&self) -> Progress {
        self.history.progress(&self.policy)
    }

    /// The verdict so far. For a rollout that an earlier Oracle rolled back, that Oracle's reason.
    pub fn verdict(&self) -> VerdictReport {
        let report = self.verdict.report();
        match &self.history.ended {
            Some(ended) if !report.roll_back => {
                VerdictReport { judgement: Judgement::Hurting, roll_back: true, reason: ended.clone(), ..report }
            }
            _ => report,
        }
    }

    /// What becomes of a period that ended with `view`, in which treated hosts and the others did what `arms` say: the decision,
    /// and a signed message for each CUE to be sent. A rollout that has hurt more than the policy allows is rolled back.
    pub fn turn(&mut self, view: &NetworkView, arms: [ArmObservation; 2]) -> (Decision, Vec<Vec<u8>>) {
        let [treated, control] = arms;
        self.verdict.observe(&PeriodObservation { treated, control, acting: self.acting });
        let judged = self.verdict.report();
        if judged.roll_back && self.history.ended.is_none() {
            self.history.roll_back(judged.reason);
        }
        let decision = decide(&self.policy, view, &mut self.history);
        let messages: Vec<_> = decision.to_send().iter().map(|cue| self.key.sign(cue)).collect();
        self.acting = !messages.is_empty();
        (decision, messages)
    }
}
