//! The Oracle: from what was observed in a period to the signed messages that are sent.

use crate::beacon::Beacon;
use crate::cue::Cue;
use crate::decide::{Decision, decide};
use crate::history::{History, Progress};
use crate::model::Policy;
use crate::sign::{OracleKey, Question};
use crate::verdict::{ArmObservation, Judgement, PeriodObservation, Verdict, VerdictReport};
use crate::view::NetworkView;
use std::collections::VecDeque;
use units::Time;

/// How many decisions are remembered by what they sent: reports on a period come until the end of the next one.
const REMEMBERED: usize = 4;

/// Decides every period, judges what comes of it, and signs what is to be sent.
pub struct Oracle {
    policy: Policy,
    key: OracleKey,
    history: History,
    verdict: Verdict,
    /// It decides and sends no CUEs.
    paused: bool,
    /// What the last decision sent.
    sent: Vec<Cue>,
    /// It has decided since it began: the epoch before its last is over, and the last is not.
    decided: bool,
    /// Of the last decisions, by epoch: whether CUEs were sent.
    acting: VecDeque<(u64, bool)>,
}

impl Oracle {
    /// An Oracle that acts by `policy` and signs with `key`. Its first epoch is the one after that of `history`.
    pub fn new(policy: Policy, key: OracleKey, history: History) -> Oracle {
        let verdict = Verdict::new(&policy);
        let (sent, acting) = (Vec::new(), VecDeque::new());
        Oracle { policy, key, history, verdict, paused: false, sent, decided: false, acting }
    }

    /// What it acts by.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Acts by another policy from the next decision on; its rollout begins at `progress`.
    pub fn adopt(&mut self, policy: Policy, progress: Progress) {
        self.verdict = Verdict::new(&policy);
        // which rules were on belongs to the time when the policy was in force
        let last_place = progress.last_place.or_else(|| self.kept_place(&policy, progress.lasted));
        let progress = Progress { lasted: progress.lasted, ended: progress.ended, last_place, ..Progress::default() };
        self.history = History::after(self.history.epoch()).resume(progress);
        self.policy = policy;
    }

    /// Up to where hosts are treated, for a policy under whose name and rollout the same are, at the stage of a rollout that has lasted so
    /// long: a changed rule moves no host.
    fn kept_place(&self, policy: &Policy, lasted: Time) -> Option<u64> {
        let (boundary, rollout) = (self.history.boundary, &policy.rollout);
        let is_same = self.policy.name == policy.name && self.policy.rollout == *rollout;
        let stage = rollout.stage(lasted).map(|stage| stage.after);
        boundary.kept().filter(|_| is_same && stage == Some(boundary.stage))
    }

    /// Begins to decide for other Oracles, which have come so far with the rollout; the next epoch is the one after `epoch`. Which rules are
    /// on is as this Oracle has decided meanwhile.
    pub fn take_over(&mut self, epoch: u64, progress: Progress) {
        self.history.take_over(epoch, progress);
        self.forget();
    }

    /// Forgets all times, as a new clock needs; the epoch and the rollout's progress stay.
    pub fn begin_anew(&mut self) {
        self.history = History::after(self.epoch()).resume(self.progress());
        self.verdict = Verdict::new(&self.policy);
        self.forget();
    }

    fn forget(&mut self) {
        (self.decided, self.sent) = (false, Vec::new());
        self.acting.clear();
    }

    /// Decides from now on without sending CUEs, or sends them.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether it sends no CUEs.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Ends the rollout; from the next decision on nothing is set.
    pub fn roll_back(&mut self, why: String) {
        self.history.roll_back(why);
    }

    /// The epoch of the last decision, to be stored before what was signed in it is sent.
    pub fn epoch(&self) -> u64 {
        self.history.epoch()
    }

    /// The answer to agents that have asked: the last epoch that is over. What the last decision sent is still to be taken, so that one
    /// that comes within a period need not wait for the next.
    pub fn answer(&self, questions: &[Question]) -> Vec<u8> {
        let over = self.epoch().saturating_sub(u64::from(self.decided));
        self.key.answer(over, questions)
    }

    /// The beacon of the last decision, by the Oracle of this number.
    pub fn beacon(&self, oracle: u8) -> Vec<u8> {
        self.key.beacon(Beacon { epoch: self.epoch(), period: self.policy.period, oracle })
    }

    /// The last decision's CUEs for one who comes later by `since`: they end when the others' do. None if that is so by now.
    pub fn late(&self, since: Time) -> Vec<Vec<u8>> {
        let left = |cue: &Cue| cue.lifetime.saturating_sub(since);
        let lasting = self.sent.iter().filter(|cue| left(cue) > Time::ZERO);
        lasting.map(|cue| self.key.sign(&Cue { lifetime: left(cue), ..cue.clone() })).collect()
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

    /// Judges what treated hosts and the others did in the period that began with the decision `epoch` (`None`: before this Oracle's first,
    /// when nobody was treated). That of a decision which is no longer remembered is ignored.
    pub fn observe(&mut self, epoch: Option<u64>, arms: [ArmObservation; 2]) {
        let acting = match epoch {
            None => Some(false),
            Some(epoch) => self.acting.iter().find(|(of, _)| *of == epoch).map(|(_, acting)| *acting),
        };
        let ([treated, control], Some(acting)) = (arms, acting) else { return };
        self.verdict.observe(&PeriodObservation { treated, control, acting });
    }

    /// Decides by `view`, and returns a signed message for each CUE to be sent. A rollout that has hurt more than the policy allows is
    /// rolled back.
    pub fn decide(&mut self, view: &NetworkView) -> (Decision, Vec<Vec<u8>>) {
        let judged = self.verdict.report();
        if judged.roll_back && self.history.ended.is_none() {
            self.history.roll_back(judged.reason);
        }
        if self.paused {
            self.history.stand_still(view.at);
        }
        let decision = decide(&self.policy, view, &mut self.history);
        self.sent = if self.paused { Vec::new() } else { decision.to_send().to_vec() };
        let messages: Vec<_> = self.sent.iter().map(|cue| self.key.sign(cue)).collect();
        self.decided = true;
        self.acting.push_back((decision.epoch, !messages.is_empty()));
        self.history.boundary.is_kept |= !messages.is_empty();
        if self.acting.len() > REMEMBERED {
            self.acting.pop_front();
        }
        (decision, messages)
    }

    /// [`Oracle::observe`] of the period that ends now, then [`Oracle::decide`].
    pub fn turn(&mut self, view: &NetworkView, arms: [ArmObservation; 2]) -> (Decision, Vec<Vec<u8>>) {
        self.observe(self.decided.then(|| self.epoch()), arms);
        self.decide(view)
    }

    /// What would be decided by another policy and the same view, if its rollout had come as far as this one's; nothing changes.
    pub fn preview(&self, policy: &Policy, view: &NetworkView) -> Decision {
        let progress = self.progress();
        let last_place = self.kept_place(policy, progress.lasted);
        let progress = Progress { ended: None, last_place, ..progress };
        let mut history = History::after(self.epoch()).resume(progress);
        decide(policy, view, &mut history)
    }
}
