//! An agent's decisions on a clock that is moved by hand: which CUEs count, in which order, for how long, and what outlives the agent.

use super::*;
use bus::Hand;
use policy::{Beacon, Cue, CueGuard, CueScope, OracleKey, Settings};
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

/// A host, its disk, and its Oracle's key.
struct Host1 {
    folder: TempDir,
    hand: Hand,
    key: OracleKey,
}

impl Host1 {
    fn new() -> Host1 {
        Host1 { folder: tempfile::tempdir().unwrap(), hand: Hand::default(), key: OracleKey::from_secret([1; 32]) }
    }

    fn places(&self) -> Places {
        Places { state: self.folder.path().to_path_buf(), pins: self.folder.path().join("pins") }
    }

    fn begin(&self, boot: &str) -> Life {
        let identity = Identity { host: "h1".into(), ..Identity::default() };
        Life::begin(&self.places(), identity, self.key.public().into(), self.hand.begin(), boot).unwrap()
    }

    /// An agent whose question the Oracle has answered: epochs up to this one are over.
    fn asked(&self, over: u64) -> Life {
        let mut life = self.begin("boot");
        life.ask([7; 32]);
        assert_eq!(life.take(&self.key.answer(over, &[[7; 32]])), Ok(false));
        life
    }

    fn stored(&self) -> Option<u64> {
        stored_epoch(&self.places().epoch()).unwrap()
    }

    fn at(&self, seconds: u64) {
        self.hand.set(Duration::from_secs(seconds));
    }
}

fn cue(epoch: u64, rule: &str, rank: u16) -> Cue {
    Cue {
        epoch,
        id: u32::from(rank),
        policy: "p".into(),
        rule: rule.into(),
        rank,
        lifetime: Time::from_secs(60),
        scope: CueScope::default(),
        set: Settings { initial_cwnd: Some(20), ..Settings::default() },
        guard: None,
        reason: "a test".into(),
    }
}

fn guarded(epoch: u64) -> Cue {
    let guard = CueGuard { revert_if: "host.drop_rate > 0.01".into(), hold: Time::from_secs(30) };
    Cue { guard: Some(guard), ..cue(epoch, "r", 0) }
}

fn losing(sent: u64, again: u64) -> Host {
    Host { sent_segments: Some(sent), retransmitted_segments: Some(again), ..Host::default() }
}

fn names(life: &Life) -> Vec<String> {
    life.rules().into_iter().map(|rule| rule.rule).collect()
}

#[test]
fn rules_count_in_the_order_of_the_policy_in_whichever_order_they_come() {
    let host = Host1::new();
    let mut life = host.asked(0);
    for (rule, rank) in [("last", 7), ("first", 0), ("middle", 3), ("also-first", 0)] {
        let id = u32::from(rank) + u32::from(rule == "also-first") * 100;
        assert_eq!(life.take(&host.key.sign(&Cue { id, ..cue(1, rule, rank) })), Ok(true));
    }
    // of one rank, by name
    assert_eq!(names(&life), ["also-first", "first", "middle", "last"]);
}

#[test]
fn nothing_is_taken_before_the_oracle_has_said_which_epochs_are_over() {
    let host = Host1::new();
    let mut life = host.begin("boot");
    let recorded = host.key.sign(&cue(40, "r", 0));
    life.ask([7; 32]);
    assert_eq!(life.take(&recorded), Err(CueError::Unanswered(40)));
    // the answer to somebody else's question answers nothing
    let _ = life.take(&host.key.answer(0, &[[8; 32]]));
    assert_eq!((life.take(&recorded), life.question()), (Err(CueError::Unanswered(40)), Some([7; 32])));
    assert_eq!(life.take(&host.key.answer(40, &[[7; 32]])), Ok(false));
    assert_eq!(life.question(), None);
    assert!(life.take(&recorded).is_err(), "it is of an epoch that is over");
    assert_eq!(life.take(&host.key.sign(&cue(41, "r", 0))), Ok(true));
    assert_eq!((life.counts().taken, life.counts().rejected), (1, 3));
}

#[test]
fn forged_replayed_and_broken_messages_are_counted_and_those_for_others_are_not() {
    let host = Host1::new();
    let mut life = host.asked(0);
    let good = host.key.sign(&cue(2, "r", 0));
    assert_eq!(life.take(&good), Ok(true));
    let mut broken = good.clone();
    broken[20] ^= 1;
    let forged = OracleKey::from_secret([9; 32]).sign(&cue(3, "r", 0));
    assert_eq!(life.take(&forged), Err(CueError::Forged));
    assert_eq!(life.take(&broken), Err(CueError::Forged));
    assert!(life.take(b"no CUE at all").is_err());
    assert_eq!(life.take(&good), Err(CueError::Replayed { epoch: 2, id: 0 }));
    let mut elsewhere = Cue { id: 1, ..cue(2, "r", 0) };
    elsewhere.scope.names = vec!["h2".into()];
    assert_eq!(life.take(&host.key.sign(&elsewhere)), Err(CueError::NotOurs));
    assert_eq!((life.counts().taken, life.counts().rejected), (1, 4));
    assert_eq!(names(&life), ["r"], "what is in force stays");
}

#[test]
fn an_epoch_is_on_disk_before_its_rules_may_be_set() {
    let host = Host1::new();
    let mut life = host.asked(0);
    let old = host.key.sign(&cue(7, "r", 0));
    assert_eq!(life.take(&old), Ok(true));
    assert_eq!(host.stored(), None);
    assert!(life.settle(true).unwrap());
    assert_eq!((host.stored(), life.highest()), (Some(7), Some(7)));
    // an agent that is started after it takes no epoch again that this one has seen
    let mut next = host.asked(0);
    assert_eq!((next.highest(), next.rules()), (Some(7), Vec::new()), "nobody has watched its guards meanwhile");
    assert!(next.take(&old).is_err());
    assert_eq!(next.take(&host.key.sign(&cue(8, "r", 0))), Ok(true));
}

#[test]
fn where_the_disk_refuses_an_epoch_nothing_may_be_set() {
    let host = Host1::new();
    let mut life = host.asked(0);
    assert_eq!(life.take(&host.key.sign(&cue(7, "r", 0))), Ok(true));
    fs::create_dir_all(host.places().epoch().join("in-the-way")).unwrap();
    assert!(life.settle(true).unwrap_err().to_string().contains("epoch"));
}

#[test]
fn a_rule_ends_with_its_cues_lifetime_unless_it_is_renewed() {
    let host = Host1::new();
    host.at(1000);
    let mut life = host.asked(0);
    assert_eq!(life.take(&host.key.sign(&cue(1, "r", 0))), Ok(true));
    assert!(life.settle(true).unwrap());
    // times count from when its clock was begun
    assert_eq!(life.rules()[0].deadline, Time::from_secs(60));
    host.at(1050);
    assert_eq!(life.take(&host.key.sign(&cue(2, "r", 0))), Ok(true), "a new deadline is to be set");
    assert_eq!((life.rules().len(), life.rules()[0].deadline), (1, Time::from_secs(110)));
    host.at(1109);
    assert!(!life.settle(false).unwrap(), "nothing has ended yet");
    host.hand.set_wall(4_000_000_000);
    assert!(!life.settle(false).unwrap(), "the time of day does not count");
    host.at(1110);
    assert!(life.settle(false).unwrap());
    assert_eq!((life.rules(), life.counts().expired), (Vec::new(), 1));
    assert!(!life.settle(false).unwrap(), "once");
}

#[test]
fn the_next_thing_to_do_is_a_report_or_the_end_of_a_rule() {
    let host = Host1::new();
    let mut life = host.asked(0);
    assert_eq!(life.take(&host.key.sign(&Cue { lifetime: Time::from_secs(5), ..cue(1, "r", 0) })), Ok(true));
    let now = life.clock().now();
    assert!(life.timetable().is_due(now), "who has just asked reports at once");
    life.timetable().reported(now);
    assert_eq!(life.next(), Time::from_secs(1), "the next report");
    life.timetable().reported(Time::from_secs(7));
    assert_eq!(life.next(), Time::from_secs(5), "the rule's end comes before the report");
}

#[test]
fn a_guard_reverts_its_rule_and_a_renewal_brings_it_back_only_after_the_hold() {
    let host = Host1::new();
    let mut life = host.asked(0);
    assert_eq!(life.take(&host.key.sign(&guarded(1))), Ok(true));
    assert!(life.is_guarded());
    assert!(!life.on_measured(&losing(900, 90)), "too little is sent to judge by");
    assert!(!life.on_measured(&losing(1000, 10)), "one percent is not more than one percent");
    assert!(life.on_measured(&losing(1000, 11)));
    assert!(life.settle(true).unwrap());
    assert_eq!((names(&life), life.is_guarded(), life.counts().reverted), (Vec::new(), false, 1));
    host.at(20);
    assert_eq!(life.take(&host.key.sign(&guarded(2))), Ok(false), "taken, and nothing to set");
    host.at(29);
    assert!(!life.settle(false).unwrap());
    host.at(30);
    assert!(life.settle(false).unwrap(), "the hold is over");
    assert_eq!(names(&life), ["r"]);
}

#[test]
fn an_agent_that_is_started_again_knows_what_its_guard_has_reverted() {
    let host = Host1::new();
    host.at(100);
    let mut life = host.asked(0);
    assert_eq!(life.take(&host.key.sign(&guarded(1))), Ok(true));
    assert!(life.on_measured(&losing(1000, 500)) && life.settle(true).unwrap());
    host.at(110);
    let mut next = host.asked(1);
    assert_eq!(next.take(&host.key.sign(&guarded(2))), Ok(false), "20 s of the hold are left");
    host.at(129);
    assert!(!next.settle(false).unwrap());
    host.at(130);
    assert!(next.settle(false).unwrap());
    assert_eq!(names(&next), ["r"]);
}

#[test]
fn a_revert_does_not_wait_for_a_disk_but_its_trouble_is_reported() {
    let host = Host1::new();
    let mut life = host.asked(0);
    assert_eq!(life.take(&host.key.sign(&guarded(1))), Ok(true));
    assert!(life.settle(true).unwrap());
    fs::create_dir_all(host.places().reverted().join("in-the-way")).unwrap();
    assert!(life.on_measured(&losing(1000, 500)));
    assert!(life.settle(true).unwrap(), "it is to be taken back all the same");
    assert_eq!(names(&life), Vec::<String>::new());
    assert!(life.trouble().is_some_and(|why| why.contains("reverted.json")), "{:?}", life.trouble());
    fs::remove_dir_all(host.places().reverted()).unwrap();
    life.settle(false).unwrap();
    assert_eq!(life.trouble(), None);
}

#[test]
fn a_new_key_takes_the_place_of_the_old_one_at_once() {
    let host = Host1::new();
    let mut life = host.asked(0);
    let new = OracleKey::from_secret([2; 32]);
    assert_eq!(life.take(&new.sign(&cue(1, "r", 0))), Err(CueError::Forged));
    life.trust(new.public().into());
    assert_eq!(life.take(&new.sign(&cue(1, "r", 0))), Ok(true));
    assert_eq!(
        life.take(&host.key.sign(&Cue { id: 9, ..cue(1, "r", 0) })),
        Err(CueError::Forged),
        "in place of the old one"
    );
}

#[test]
fn an_oracle_that_says_nothing_for_some_of_its_periods_is_left() {
    let host = Host1::new();
    let mut life = host.asked(0);
    host.at(1000);
    assert!(!life.is_left_alone(3), "it has announced no periods");
    let beacon = |epoch| host.key.beacon(Beacon { epoch, period: Time::from_secs(20), oracle: 1 });
    assert_eq!(life.take(&beacon(1)), Ok(false));
    life.begin_period();
    host.at(1059);
    assert!(!life.is_left_alone(3));
    host.at(1060);
    assert!(life.is_left_alone(3));
    // whatever comes from it shows that it is there, even if it is not taken
    assert!(life.take(b"noise").is_err());
    assert!(!life.is_left_alone(3));
}

#[test]
fn what_is_counted_belongs_to_the_period_in_which_it_was_counted() {
    let host = Host1::new();
    let mut life = host.asked(0);
    let beacon = |epoch| host.key.beacon(Beacon { epoch, period: Time::from_secs(20), oracle: 1 });
    assert_eq!(life.begin_period(), None);
    assert_eq!(life.take(&beacon(5)), Ok(false));
    assert_eq!(life.begin_period(), Some(bus::SEVERAL), "when it began is not known");
    assert_eq!(life.begin_period(), None, "no other has begun");
    host.at(20);
    assert_eq!(life.take(&beacon(6)), Ok(false));
    assert_eq!(life.begin_period(), Some(5));
    host.at(60);
    assert_eq!(life.take(&beacon(8)), Ok(false));
    assert_eq!(life.begin_period(), Some(bus::SEVERAL), "a beacon was missed");
}
