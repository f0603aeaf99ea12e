//! The fleet's members, as the Oracle knows them: who may send what, how often, and what of it is new.
//!
//! A message passes four checks, the cheapest first: its subject names a member, the member's budget admits it ([`Members::admit`]), its
//! signature is the member's, and it is new and of a kind that the member's role sends ([`Members::open`]). So a member that floods costs a look at
//! its budget for each message, and takes nothing from the budgets of others.
//!
//! A message is new if it names one of the last three epochs, and a counter above those of its session. Of a member's sessions the last
//! [`SESSIONS`] are remembered. A member that has not yet heard of an epoch can only ask: of its message nothing but the question passes.

use crate::kind::{Kind, ask, hello};
use crate::sealed::{Key, Opened, SealError, open};
use crate::{Report, Role};
use fleet::{MEMBERS_MAX, Member};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use units::Time;

/// Sessions of a member that are remembered: those of its last restarts.
const SESSIONS: usize = 4;
/// Epochs whose messages are new.
const EPOCHS: usize = 3;
/// Questions of a host that does not yet know an epoch.
const ASKED_AT_ONCE: u64 = 8;

/// How many messages a member may send: `burst` at once, and one more each `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    interval: Time,
    burst: u64,
}

impl Budget {
    /// How often a member may ask before it knows an epoch.
    fn of_questions(member: &Member) -> Budget {
        let hosts = member.hosts.len().clamp(1, 256) as u64;
        Budget { interval: Time::from_ms(500 / hosts), burst: ASKED_AT_ONCE * hosts }
    }

    /// A member's. A report goes out once per period, and once a second while no period is known.
    fn of(member: &Member) -> Budget {
        let of = |ms: u64, burst: u64| Budget { interval: Time::from_ms(ms), burst };
        match member.role {
            Role::Agent => of(500, 16),
            // a report for each host
            Role::Enforcer => {
                let hosts = member.hosts.len().clamp(1, 256) as u64;
                of(500 / hosts, 16 * hosts)
            }
            Role::Collector => of(250, 64),
            Role::Operator | Role::Oracle => of(100, 64),
        }
    }
}

/// How much of a budget is used up: the time at which it will be whole.
#[derive(Clone, Copy, Debug, Default)]
struct Used(Time);

impl Used {
    /// Whether one more fits at `now`; it is counted then.
    fn take(&mut self, now: Time, budget: Budget) -> bool {
        let whole = self.0.max(now);
        let fits = whole.saturating_sub(now) <= budget.interval * (budget.burst - 1);
        if fits {
            self.0 = whole + budget.interval;
        }
        fits
    }
}

/// Messages that were refused, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Of nobody in the fleet: not enrolled, revoked, or expired.
    pub unknown: u64,
    /// More than the member's budget.
    pub frequent: u64,
    /// Not a sealed message, or of no known kind.
    pub malformed: u64,
    /// Of a version that is not read here.
    pub version: u64,
    /// In another member's name.
    pub foreign: u64,
    /// The signature is wrong.
    pub forged: u64,
    /// Seen before.
    pub replayed: u64,
    /// Of an epoch that is over.
    pub stale: u64,
    /// Of a kind that the member's role does not send.
    pub role: u64,
    /// There was no room.
    pub full: u64,
}

impl Rejected {
    /// All of them.
    pub fn sum(&self) -> u64 {
        let Rejected { unknown, frequent, malformed, version, foreign, forged, replayed, stale, role, full } = self;
        [unknown, frequent, malformed, version, foreign, forged, replayed, stale, role, full].into_iter().sum()
    }
}

/// A member's state.
#[derive(Debug)]
struct State {
    member: Arc<Member>,
    /// When its identity ends, seconds since 1970.
    until_s: u64,
    sent: Used,
    asked: Used,
    /// Session and highest counter, the latest first.
    sessions: [(u64, u64); SESSIONS],
}

impl State {
    /// Whether the counter is above those of its session; it is remembered then.
    fn is_new(&mut self, session: u64, counter: u64) -> bool {
        match self.sessions.iter().position(|(known, _)| *known == session) {
            Some(at) if self.sessions[at].1 >= counter => return false,
            Some(at) => self.sessions[..=at].rotate_right(1),
            None => self.sessions.rotate_right(1),
        }
        self.sessions[0] = (session, counter);
        true
    }

    /// Whether the counter was seen in its session; nothing is remembered.
    fn has_seen(&self, session: u64, counter: u64) -> bool {
        self.sessions.iter().any(|(known, highest)| *known == session && *highest >= counter)
    }
}

/// All members.
#[derive(Debug, Default)]
pub struct Members {
    states: HashMap<Key, State>,
    /// The last epochs, the latest last.
    epochs: Vec<u64>,
    rejected: Rejected,
}

impl Members {
    /// Adds a member, or replaces what was known of it: its counters stay. False if there is no room.
    pub fn insert(&mut self, key: Key, member: Arc<Member>, until_s: u64) -> bool {
        let room = self.states.len() < MEMBERS_MAX;
        match self.states.get_mut(&key) {
            Some(state) => (state.member, state.until_s) = (member, until_s),
            None if room => {
                let (sent, asked, sessions) = (Used::default(), Used::default(), [(0, 0); SESSIONS]);
                self.states.insert(key, State { member, until_s, sent, asked, sessions });
            }
            None => return false,
        }
        true
    }

    /// Removes a member: nothing of it is taken any more.
    pub fn remove(&mut self, key: &Key) {
        self.states.remove(key);
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks whether there is none")]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Hosts for which a member may report.
    pub fn reporters(&self) -> usize {
        let hosts = |member: &Member| match member.role {
            Role::Agent => 1,
            Role::Enforcer => member.hosts.len(),
            Role::Collector | Role::Operator | Role::Oracle => 0,
        };
        self.states.values().map(|state| hosts(&state.member)).sum()
    }

    /// An epoch of this fleet: messages that name it, or one of the two before it, are new.
    pub fn epoch(&mut self, epoch: u64) {
        if let Err(at) = self.epochs.binary_search(&epoch) {
            self.epochs.insert(at, epoch);
            let over = self.epochs.len().saturating_sub(EPOCHS);
            self.epochs.drain(..over);
        }
    }

    /// Begins with all budgets whole: `now` of the next call is of another clock.
    pub fn forget_times(&mut self) {
        for state in self.states.values_mut() {
            (state.sent, state.asked) = (Used::default(), Used::default());
        }
    }

    /// What was refused.
    pub fn rejected(&self) -> Rejected {
        self.rejected
    }

    /// For what is counted elsewhere.
    pub fn rejected_mut(&mut self) -> &mut Rejected {
        &mut self.rejected
    }

    /// Whether a message of the member `key` that came at `now` is worth a look. `unix_s` is the time of day.
    pub fn admit(&mut self, now: Time, unix_s: u64, key: &Key) -> bool {
        let Some(state) = self.states.get_mut(key).filter(|state| state.until_s > unix_s) else {
            self.rejected.unknown += 1;
            return false;
        };
        let fits = state.sent.take(now, Budget::of(&state.member));
        self.rejected.frequent += u64::from(!fits);
        fits
    }

    /// Opens a message that was admitted: who sent it, and what. `None`, and counted, if it is refused.
    pub fn open(&mut self, now: Time, key: &Key, bytes: &[u8]) -> Option<(Arc<Member>, Vec<u8>)> {
        let Some(state) = self.states.get_mut(key) else {
            self.rejected.unknown += 1;
            return None;
        };
        let opened = match open(bytes, key) {
            Ok(opened) => opened,
            Err(error) => {
                let count = match error {
                    SealError::Malformed => &mut self.rejected.malformed,
                    SealError::Version(_) => &mut self.rejected.version,
                    SealError::Foreign => &mut self.rejected.foreign,
                    SealError::Forged => &mut self.rejected.forged,
                };
                *count += 1;
                return None;
            }
        };
        let Some(kind) = Kind::of(opened.body) else {
            self.rejected.malformed += 1;
            return None;
        };
        if !may_send(state.member.role, kind) {
            self.rejected.role += 1;
            return None;
        }
        // an epoch above all that are known here is one of a leader that was elected since
        let fresh = self.epochs.first().is_some_and(|oldest| opened.epoch.is_some_and(|epoch| epoch >= *oldest));
        let Opened { session, counter, .. } = opened;
        let new = if fresh { state.is_new(session, counter) } else { !state.has_seen(session, counter) };
        if !new {
            self.rejected.replayed += 1;
            return None;
        }
        if fresh {
            return Some((state.member.clone(), opened.body.to_vec()));
        }
        let Some(asking) = only_question(kind, opened.body) else {
            self.rejected.stale += 1;
            return None;
        };
        if !state.asked.take(now, Budget::of_questions(&state.member)) {
            self.rejected.frequent += 1;
            return None;
        }
        Some((state.member.clone(), asking))
    }
}

/// Whether members of this role send messages of this kind.
fn may_send(role: Role, kind: Kind) -> bool {
    match kind {
        Kind::Report => matches!(role, Role::Agent | Role::Enforcer),
        Kind::Measurement => role == Role::Collector,
        Kind::Request | Kind::Fleet => role == Role::Operator,
        Kind::Hello | Kind::Renew => true,
    }
}

/// Of a message that may be old, what does no harm if it is: its question, if it has one, as a hello.
fn only_question(kind: Kind, body: &[u8]) -> Option<Vec<u8>> {
    match kind {
        Kind::Hello => hello(body).map(|_| body.to_vec()),
        Kind::Report => Report::from_bytes(body).ok()?.question.map(|question| ask(&question)),
        // the answer goes to the member itself, whoever repeats the wish
        Kind::Renew => Some(body.to_vec()),
        Kind::Measurement | Kind::Request | Kind::Fleet => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{MEASUREMENT, REQUEST};
    use crate::sealed::Sealer;
    use policy::Host;
    use std::collections::BTreeSet;

    const DAY: u64 = 86_400;

    fn member(name: &str, role: Role) -> Arc<Member> {
        Arc::new(Member { name: name.into(), role, hosts: Vec::new() })
    }

    fn report(name: &str, question: Option<[u8; 32]>) -> Vec<u8> {
        let host = Host { name: name.into(), rack: "r1".into(), ..Host::default() };
        Report { host, question, ..Report::default() }.to_bytes()
    }

    /// Two hosts and one of each other role, on a fleet whose last epochs are 7, 8 and 9.
    fn fleet() -> (Members, Vec<(Key, Sealer)>) {
        let mut members = Members::default();
        let roles = [Role::Agent, Role::Agent, Role::Collector, Role::Operator, Role::Enforcer];
        let sealers = roles.into_iter().enumerate().map(|(i, role)| {
            let sealer = Sealer::new([i as u8 + 1; 32], [i as u8; 8]);
            assert!(members.insert(sealer.key(), member(&format!("m{i}"), role), DAY));
            (sealer.key(), sealer)
        });
        let sealers = sealers.collect();
        (5..10).for_each(|epoch| members.epoch(epoch));
        (members, sealers)
    }

    fn s(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn a_message_is_taken_once_and_only_while_it_is_new() {
        let (mut members, mut sealers) = fleet();
        let (key, sealer) = &mut sealers[0];
        let old = sealer.seal(Some(7), &report("m0", None));
        let new = sealer.seal(Some(9), &report("m0", None));
        let (from, body) = members.open(s(1), key, &new).unwrap();
        assert_eq!((from.name.as_str(), body), ("m0", report("m0", None)));
        for again in [&new, &old, &new] {
            assert!(members.open(s(1), key, again).is_none(), "seen, or overtaken");
        }
        assert_eq!(members.rejected().replayed, 3);
        for (epoch, taken) in [(Some(6), false), (None, false), (Some(7), true), (Some(9), true), (Some(90), true)] {
            let sealed = sealer.seal(epoch, &report("m0", None));
            assert_eq!(members.open(s(1), key, &sealed).is_some(), taken, "{epoch:?}");
        }
        assert_eq!(members.rejected(), Rejected { replayed: 3, stale: 2, ..Rejected::default() });
    }

    #[test]
    fn a_restarted_member_begins_a_session_and_its_old_ones_are_not_forgotten() {
        let (mut members, sealers) = fleet();
        let key = sealers[0].0;
        let mut recorded = Vec::new();
        for session in 0..SESSIONS as u8 {
            let mut sealer = Sealer::new([1; 32], [100 + session; 8]);
            let sealed = sealer.seal(Some(9), &report("m0", None));
            assert!(members.open(s(1), &key, &sealed).is_some());
            recorded.push(sealed);
        }
        assert!(recorded.iter().all(|sealed| members.open(s(1), &key, sealed).is_none()));
        assert_eq!(members.rejected().replayed, SESSIONS as u64);
    }

    #[test]
    fn of_a_member_that_knows_no_epoch_only_the_question_passes() {
        let (mut members, mut sealers) = fleet();
        let (key, sealer) = &mut sealers[0];
        let asking = report("m0", Some([3; 32]));
        let sealed = sealer.seal(None, &asking);
        let (_, body) = members.open(s(1), key, &sealed).unwrap();
        assert_eq!(body, ask(&[3; 32]), "nothing else of it");
        // recorded questions do no harm, but cost signatures
        let taken = (0..100).filter(|_| members.open(s(1), key, &sealed).is_some()).count();
        assert_eq!(taken as u64, ASKED_AT_ONCE - 1);
        assert!(members.open(s(60), key, &sealed).is_some());
        let (key, sealer) = &mut sealers[2];
        assert!(members.open(s(1), key, &sealer.seal(None, &ask(&[4; 32]))).is_some());
        assert!(members.open(s(1), key, &sealer.seal(None, b"opentcp hello\0short")).is_none());
        let measured = [MEASUREMENT, b"{}"].concat();
        assert!(members.open(s(1), key, &sealer.seal(None, &measured)).is_none());
        assert_eq!(members.rejected().stale, 2);
    }

    #[test]
    fn each_role_sends_its_own_kinds_and_no_other() {
        let (mut members, mut sealers) = fleet();
        let kinds = [report("m0", None), [MEASUREMENT, b"{}"].concat(), [REQUEST, b"{}"].concat(), ask(&[1; 32])];
        let taken = sealers.iter_mut().map(|(key, sealer)| {
            let taken = |body: &Vec<u8>| members.open(s(1), key, &sealer.seal(Some(9), body)).is_some();
            kinds.iter().map(taken).collect::<Vec<bool>>()
        });
        let taken: Vec<Vec<bool>> = taken.collect();
        let (agent, collector, operator) =
            (vec![true, false, false, true], vec![false, true, false, true], vec![false, false, true, true]);
        assert_eq!(taken, [agent.clone(), agent.clone(), collector, operator, agent]);
        assert_eq!(members.rejected().role, 10);
    }

    #[test]
    fn anothers_name_a_forged_and_an_unknown_message_are_distinguished() {
        let (mut members, mut sealers) = fleet();
        let (other, one) = (sealers[1].0, sealers[0].1.seal(Some(9), &report("m1", None)));
        assert!(members.open(s(1), &other, &one).is_none());
        let mut forged = sealers[0].1.seal(Some(9), &report("m0", None));
        *forged.last_mut().unwrap() ^= 1;
        assert!(members.open(s(1), &sealers[0].0, &forged).is_none());
        let mut stranger = Sealer::new([99; 32], [0; 8]);
        assert!(!members.admit(s(1), 0, &stranger.key()));
        assert!(members.open(s(1), &stranger.key(), &stranger.seal(Some(9), b"{}")).is_none());
        assert!(members.open(s(1), &other, b"{}").is_none());
        let nonsense = sealers[1].1.seal(Some(9), b"nonsense");
        assert!(members.open(s(1), &other, &nonsense).is_none());
        let expected = Rejected { foreign: 1, forged: 1, unknown: 2, malformed: 2, ..Rejected::default() };
        assert_eq!((members.rejected(), members.rejected().sum()), (expected, 6));
    }

    #[test]
    fn who_floods_uses_up_its_own_budget_and_nobody_elses() {
        let (mut members, sealers) = fleet();
        let (flooding, quiet) = (sealers[0].0, sealers[1].0);
        let (mut flood, mut others) = (0, 0);
        for ms in 0..60_000_u64 {
            let now = Time::from_ms(ms);
            flood += (0..10).filter(|_| members.admit(now, 0, &flooding)).count();
            others += usize::from(ms % 1000 == 0 && members.admit(now, 0, &quiet));
        }
        assert_eq!(others, 60);
        // 16 at once, and 2 a second
        assert!((16 + 119..=16 + 121).contains(&flood), "{flood}");
        assert_eq!(members.rejected().frequent, 600_000 - flood as u64);
    }

    #[test]
    fn an_enforcer_may_report_for_each_of_its_hosts() {
        let of = |hosts: usize| {
            let hosts = (0..hosts).map(|i| i.to_string()).collect();
            Budget::of(&Member { name: "e".into(), role: Role::Enforcer, hosts })
        };
        assert_eq!(of(0), of(1));
        assert_eq!((of(100).burst, of(100).interval), (1600, Time::from_ms(5)));
    }

    #[test]
    fn who_left_or_expired_is_unknown() {
        let (mut members, sealers) = fleet();
        let key = sealers[0].0;
        assert!(members.admit(s(1), DAY - 1, &key) && !members.admit(s(1), DAY, &key));
        assert!(members.insert(key, member("m0", Role::Agent), 2 * DAY) && members.admit(s(1), DAY, &key));
        members.remove(&key);
        assert!(!members.admit(s(1), 0, &key));
        assert_eq!((members.len(), members.rejected().unknown), (4, 2));
    }

    #[test]
    fn there_are_no_more_members_than_there_is_room_for() {
        let mut members = Members::default();
        let key = |i: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&i.to_le_bytes());
            key
        };
        assert!((0..MEMBERS_MAX).all(|i| members.insert(key(i), member("m", Role::Agent), DAY)));
        assert!(!members.insert(key(MEMBERS_MAX), member("m", Role::Agent), DAY));
        assert!(members.insert(key(0), member("m", Role::Agent), DAY), "known ones may change");
        assert_eq!(members.len(), MEMBERS_MAX);
        // a hundred bytes each, and their names
        assert!(size_of::<State>() <= 128, "{}", size_of::<State>());
    }

    #[test]
    fn the_last_epochs_are_kept_in_whatever_order_they_come() {
        let mut members = Members::default();
        for epoch in [5, 9, 9, 7, 8, 2] {
            members.epoch(epoch);
        }
        assert_eq!(members.epochs.iter().copied().collect::<BTreeSet<u64>>(), BTreeSet::from([7, 8, 9]));
    }
}
