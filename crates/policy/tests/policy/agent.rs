//! What a host does with CUEs, second by second.

use crate::common::Random;
use policy::{
    Addressees, Agent, AgentCounts, Cue, CueError, CueGuard, CueScope, Gate, Host, Identity, OracleKey, Sessions,
    Settings,
};
use std::net::IpAddr;
use units::Time;

fn key() -> OracleKey {
    OracleKey::from_secret([3; 32])
}

fn agent() -> Agent {
    Agent::new(Gate::new(key().public(), Identity { host: "h1".into(), ..Identity::default() }, None))
}

fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// A CUE of 90 s with a guard that holds for 60 s.
fn cue(epoch: u64, rank: u16, set: Settings) -> Cue {
    Cue {
        epoch,
        id: u32::from(rank),
        policy: "p".into(),
        rule: format!("rule {rank}"),
        rank,
        lifetime: s(90),
        scope: CueScope::default(),
        set,
        guard: Some(CueGuard { revert_if: "host.drop_rate > 0.001".into(), hold: s(60) }),
        reason: String::new(),
    }
}

fn window(segments: u32) -> Settings {
    Settings { initial_cwnd: Some(segments), ..Settings::default() }
}

fn host(retransmitted: u64) -> Host {
    Host { sent_segments: Some(10_000), retransmitted_segments: Some(retransmitted), ..Host::default() }
}

fn remote() -> IpAddr {
    "10.0.0.7".parse().unwrap()
}

fn windows(agent: &Agent) -> Vec<(Option<u32>, Time)> {
    agent.rules().into_iter().map(|rule| (rule.set.initial_cwnd, rule.deadline)).collect()
}

#[test]
fn a_cue_lasts_from_its_receipt_and_is_renewed_by_the_next() {
    let mut agent = agent();
    assert_eq!(agent.poll_timeout(), None);
    assert_eq!(agent.on_cue(s(1000), &key().sign(&cue(1, 0, window(20)))), Ok(true));
    assert_eq!((windows(&agent), agent.poll_timeout()), (vec![(Some(20), s(1090))], Some(s(1090))));
    assert_eq!(agent.on_cue(s(1060), &key().sign(&cue(2, 0, window(30)))), Ok(true));
    assert_eq!(windows(&agent), [(Some(30), s(1150))], "one of a rule");
    assert!(!agent.on_timer(s(1149)));
    assert!(agent.on_timer(s(1150)), "the Oracle is gone: back to the defaults");
    assert_eq!((windows(&agent), agent.poll_timeout()), (vec![], None));
    assert_eq!(agent.counts(), AgentCounts { taken: 2, expired: 1, ..AgentCounts::default() });
}

#[test]
fn a_guard_reverts_until_it_has_held_whatever_the_oracle_sends() {
    let mut agent = agent();
    agent.on_cue(s(0), &key().sign(&cue(1, 0, window(20)))).unwrap();
    assert!(!agent.on_measured(s(1), &host(10)), "10 of 10000 are 0.1 %, not more");
    assert!(agent.on_measured(s(2), &host(11)));
    assert_eq!(windows(&agent), []);
    assert_eq!(agent.settings_of(remote(), 80, "/"), Settings::default());
    assert!(!agent.on_measured(s(3), &host(500)), "it is reverted already");
    assert_eq!(agent.on_cue(s(60), &key().sign(&cue(2, 0, window(20)))), Ok(false), "renewed, and still reverted");
    assert_eq!(agent.poll_timeout(), Some(s(62)));
    assert!(agent.on_timer(s(62)));
    assert_eq!(windows(&agent), [(Some(20), s(150))]);
    assert_eq!(agent.counts().reverted, 1);
}

#[test]
fn a_guard_holds_beyond_the_end_of_its_cue() {
    let mut agent = agent();
    let long = |epoch| {
        let mut cue = cue(epoch, 0, window(20));
        cue.guard.as_mut().unwrap().hold = s(200);
        key().sign(&cue)
    };
    agent.on_cue(s(0), &long(1)).unwrap();
    agent.on_measured(s(10), &host(100));
    assert!(!agent.on_timer(s(90)), "nothing was set that could end");
    assert_eq!(agent.on_cue(s(150), &long(2)), Ok(false));
    assert_eq!((windows(&agent), agent.poll_timeout()), (vec![], Some(s(210))));
    assert!(agent.on_timer(s(210)));
    assert_eq!(windows(&agent), [(Some(20), s(240))]);
}

#[test]
fn a_host_that_sends_little_has_no_rate_of_drops() {
    let mut agent = agent();
    agent.on_cue(s(0), &key().sign(&cue(1, 0, window(20)))).unwrap();
    let few = Host { sent_segments: Some(999), retransmitted_segments: Some(900), ..Host::default() };
    assert!(!agent.on_measured(s(1), &few));
    assert!(!agent.on_measured(s(1), &Host::default()));
}

#[test]
fn of_every_setting_the_first_rule_counts_that_is_for_the_session() {
    let mut agent = agent();
    let everywhere = Settings { initial_cwnd: Some(10), cc: Some("cubic".into()), ..Settings::default() };
    let mut near = cue(1, 0, window(30));
    near.scope.sessions.remote = Some("10.0.0.0/8".parse().unwrap());
    // in the wrong order, as a network may deliver them
    agent.on_cue(s(0), &key().sign(&cue(1, 1, everywhere.clone()))).unwrap();
    agent.on_cue(s(0), &key().sign(&near)).unwrap();
    assert_eq!(windows(&agent).iter().map(|(window, _)| *window).collect::<Vec<_>>(), [Some(30), Some(10)]);
    let here = agent.settings_of(remote(), 80, "/");
    assert_eq!(here, Settings { initial_cwnd: Some(30), ..everywhere.clone() });
    assert_eq!(agent.settings_of("192.0.2.1".parse().unwrap(), 80, "/"), everywhere);
}

#[test]
fn what_is_not_taken_changes_nothing_and_is_counted() {
    let mut agent = agent();
    let good = key().sign(&cue(5, 0, window(20)));
    agent.on_cue(s(0), &good).unwrap();
    let forged = OracleKey::from_secret([4; 32]).sign(&cue(6, 0, window(99)));
    assert_eq!(agent.on_cue(s(1), &forged), Err(CueError::Forged));
    assert_eq!(agent.on_cue(s(80), &good), Err(CueError::Replayed { epoch: 5, id: 0 }));
    let mut strange = cue(5, 1, window(1));
    strange.guard = Some(CueGuard { revert_if: "network.drop_rate > 0.1".into(), hold: s(1) });
    assert!(matches!(agent.on_cue(s(1), &key().sign(&strange)), Err(CueError::Guard(_))));
    let endless = cue(5, 3, Settings { rto_min: Some(s(61)), ..Settings::default() });
    assert_eq!(agent.on_cue(s(1), &key().sign(&endless)), Err(CueError::Setting("rto_min")));
    for segments in [0, 1001] {
        let wide = cue(5, 4 + segments as u16, window(segments));
        assert_eq!(agent.on_cue(s(1), &key().sign(&wide)), Err(CueError::Setting("initial_cwnd")));
    }
    let mut others = cue(5, 2, window(1));
    others.scope.hosts = Addressees::Named(vec!["h2".into()]);
    assert_eq!(agent.on_cue(s(1), &key().sign(&others)), Err(CueError::NotOurs));
    assert_eq!(windows(&agent), [(Some(20), s(90))], "a replayed CUE does not last longer");
    assert_eq!(agent.counts(), AgentCounts { taken: 1, rejected: 6, ..AgentCounts::default() });
}

impl Random {
    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }
}

#[test]
fn two_hundred_thousand_byte_strings_change_nothing_and_are_counted() {
    const COUNT: u64 = 200_000;
    let mut random = Random(5);
    let mut agent = agent();
    let good = key().sign(&cue(1, 0, window(20)));
    agent.on_cue(s(0), &good).unwrap();
    let before = agent.rules();
    for i in 0..COUNT {
        let bytes = match i % 20 {
            // the good one with a byte changed, cut, or prolonged
            0 => {
                let mut bytes = good.clone();
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
                bytes
            }
            1 => good[..random.below(good.len() as u64) as usize].to_vec(),
            2 => [&good[..], &[random.next() as u8]].concat(),
            _ => random.bytes(300),
        };
        assert!(agent.on_cue(s(1), &bytes).is_err(), "{bytes:?}");
    }
    assert_eq!(agent.rules(), before);
    assert_eq!(agent.counts(), AgentCounts { taken: 1, rejected: COUNT, ..AgentCounts::default() });
}

/// The bytes of a CUE with a few of them changed, left out, or there twice.
fn mutated(good: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(8) {
            0 => drop(bytes.drain(at..)),
            1 => drop(bytes.drain(at..(at + 4).min(bytes.len()))),
            2 => bytes.insert(at, random.next() as u8),
            3 => bytes.extend_from_within(at..),
            4 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            _ => bytes[at] ^= 1 << random.below(8),
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// What [`OracleKey::sign`] does, of any bytes.
fn signed(body: &[u8]) -> Vec<u8> {
    use ed25519_dalek::{Signer as _, SigningKey};
    let signature = SigningKey::from_bytes(&[3; 32]).sign(&[b"opentcp cue\0", body].concat());
    [body, &signature.to_bytes()].concat()
}

#[test]
fn two_hundred_thousand_changed_cues_behind_a_true_signature_are_refused_or_can_be() {
    const COUNT: u64 = 200_000;
    /// A signature takes as long as reading hundreds of CUEs.
    const SIGNED_EACH: u64 = 20;
    let mut random = Random(7);
    let goods: Vec<Vec<u8>> = (0..16)
        .map(|i| {
            let names = vec!["h*".to_string(); i % 3];
            let labels = (0..i % 4).map(|n| (format!("l{n}"), "x".to_string())).collect();
            let remote = ["10.0.0.0/8", "fd00::/8"][i % 2].parse().ok();
            let sessions =
                Sessions { remote, port: (i % 5 == 0).then_some(80), cgroup: (i % 7 == 0).then(|| "/a".into()) };
            let hosts = [Addressees::All, Addressees::UpTo(u64::MAX), Addressees::Named(vec!["h1".into(); 3])];
            let set = Settings { rto_min: Some(s(1)), cc: Some("cubic".into()), pacing: Some(true), ..window(20) };
            let mut cue = cue(300 << i, i as u16, set);
            cue.scope = CueScope { hosts: hosts[i % 3].clone(), names, labels, sessions };
            cue.to_bytes()
        })
        .collect();
    assert!(goods.iter().all(|good| key().public().open(&signed(good)).is_ok()), "it is signed as the Oracle signs");
    let (mut agent, mut now, mut read, mut taken) = (agent(), 0, 0, 0);
    for i in 0..COUNT {
        let bytes = mutated(&goods[random.below(16) as usize], &mut random);
        let cue = Cue::from_bytes(&bytes);
        if let Ok(cue) = &cue {
            read += 1;
            assert_eq!(Cue::from_bytes(&cue.to_bytes()).as_ref(), Ok(cue), "what is read can be written: {bytes:?}");
        }
        if i % SIGNED_EACH > 0 {
            continue;
        }
        // an epoch that is wrong by a bit makes all later ones old
        if i % 100 == 0 {
            taken += agent.counts().taken;
            agent = self::agent();
        }
        now += 1;
        let took = agent.on_cue(s(now), &signed(&bytes));
        assert!(took.is_err() || cue.is_ok(), "{bytes:?}");
        agent.on_measured(s(now), &host(11));
        agent.on_timer(s(now));
        for rule in agent.rules() {
            let Settings { initial_cwnd, rto_min, .. } = rule.set;
            assert!(initial_cwnd.is_none_or(|segments| (1..=1000).contains(&segments)), "{bytes:?}");
            assert!(rto_min.is_none_or(|time| time >= Time::from_us(1) && time <= s(60)), "{bytes:?}");
            assert!(rule.deadline > s(now), "{bytes:?}");
        }
    }
    // enough came as far as each step to have tried it
    assert!(read > COUNT / 10 && taken > 200, "{read} read, {taken} taken");
}

#[test]
fn whatever_the_oracle_signs_an_agent_goes_on() {
    let mut random = Random(6);
    let (mut agent, mut counts, mut now) = (agent(), AgentCounts::default(), 0);
    for i in 0..5_000 {
        // what lasts for ever fills it up
        if i % 500 == 499 {
            counts.taken += agent.counts().taken;
            counts.expired += agent.counts().expired;
            agent = self::agent();
        }
        let extreme = |random: &mut Random| match random.below(4) {
            0 => 0,
            1 => u64::MAX,
            _ => random.next() >> random.below(64),
        };
        let mut odd = cue(i, (random.below(600)) as u16, window(random.below(1200) as u32));
        odd.lifetime = Time::from_ps(extreme(&mut random));
        odd.policy = String::from_utf8_lossy(&random.bytes(60)).chars().take(60).collect();
        let guard: String = match random.below(3) {
            0 => "host.drop_rate >= 0".into(),
            1 => String::from_utf8_lossy(&random.bytes(60)).chars().take(60).collect(),
            _ => "host.live_flows > -1 || host.drop_rate / 0 > 1".into(),
        };
        odd.guard = Some(CueGuard { revert_if: guard, hold: Time::from_ps(extreme(&mut random)) });
        let _ = agent.on_cue(Time::from_ps(now), &key().sign(&odd));
        now = now.saturating_add(random.below(1 << 50));
        agent.on_measured(Time::from_ps(now), &host(1));
        agent.on_timer(Time::from_ps(now));
        assert!(agent.rules().iter().all(|rule| rule.deadline > Time::from_ps(now)), "what is over is not set");
        assert!(agent.poll_timeout().is_none_or(|at| at > Time::from_ps(now)));
    }
    assert!(counts.taken > 1000 && counts.expired > 100, "{counts:?}");
}

#[test]
fn what_a_guard_has_reverted_stays_so_in_an_agent_that_begins_anew() {
    let mut before = agent();
    before.on_cue(s(0), &key().sign(&cue(1, 0, window(20)))).unwrap();
    before.on_cue(s(0), &key().sign(&cue(1, 1, window(30)))).unwrap();
    assert!(before.on_measured(s(10), &host(100)));
    assert_eq!(before.reverted().len(), 2);
    assert_eq!(before.reverted()[0].why, "host.drop_rate = 0.01");
    let mut anew = agent();
    anew.remember(before.reverted()[..1].iter().cloned());
    assert_eq!(anew.on_cue(s(20), &key().sign(&cue(2, 0, window(20)))), Ok(false), "still reverted");
    assert_eq!(anew.on_cue(s(20), &key().sign(&cue(2, 1, window(30)))), Ok(true), "the other was not remembered");
    assert_eq!(windows(&anew), [(Some(30), s(110))]);
    assert_eq!(anew.poll_timeout(), Some(s(70)));
    assert!(anew.on_timer(s(70)));
    assert_eq!(windows(&anew), [(Some(20), s(110)), (Some(30), s(110))]);
}

#[test]
fn reverted_rules_count_among_those_that_an_agent_keeps() {
    let mut agent = agent();
    let rules = (0..policy::HELD_MAX + 10).map(|i| policy::Reverted {
        policy: "p".into(),
        rule: format!("gone {i:03}"),
        until: s(100),
        hold: s(60),
        why: String::new(),
    });
    agent.remember(rules);
    assert_eq!(agent.reverted().len(), policy::HELD_MAX);
    assert_eq!(agent.on_cue(s(0), &key().sign(&cue(1, 0, window(20)))), Err(CueError::TooMany(1)));
    agent.on_timer(s(100));
    assert_eq!(agent.on_cue(s(100), &key().sign(&cue(2, 0, window(20)))), Ok(true));
}
