//! CUEs: as bytes, signed, and taken or not.

use policy::{
    Addressees, Cue, CueError, CueGuard, CueScope, Gate, Identity, KEYS_MAX, KeyError, NetworkView, OracleKey, Prefix,
    PublicKey, PublicKeys, SIGNED_MAX, Sessions, Settings, WireError,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use units::{Bytes, Rate, Time};

fn key() -> OracleKey {
    OracleKey::from_secret([7; 32])
}

fn cue(epoch: u64, id: u32) -> Cue {
    Cue {
        epoch,
        id,
        policy: "opentcp2".into(),
        rule: "calm network".into(),
        rank: 0,
        lifetime: Time::from_secs(90),
        scope: CueScope {
            hosts: Addressees::UpTo(u64::MAX / 2),
            names: Vec::new(),
            labels: BTreeMap::new(),
            sessions: Sessions { remote: Some("10.0.0.0/8".parse().unwrap()), ..Sessions::default() },
        },
        set: Settings { initial_cwnd: Some(20), rto_min: Some(Time::from_ms(2)), ..Settings::default() },
        guard: Some(CueGuard { revert_if: "host.drop_rate > 0.001".into(), hold: Time::from_secs(60) }),
        reason: "network.max_link_utilization = 0.42".into(),
    }
}

/// A host that the CUE above is for, or is not.
fn gate(stored: Option<u64>) -> Gate {
    let host = (0..100).map(|i| format!("h{i}")).find(|host| cue(1, 0).is_for(host, &BTreeMap::new())).unwrap();
    Gate::new(key().public(), Identity { host, labels: BTreeMap::new() }, stored)
}

#[test]
fn a_typical_cue_has_at_most_two_hundred_bytes() {
    let bytes = key().sign(&cue(1_000_000, 3));
    assert!(bytes.len() <= 200, "{}", bytes.len());
    assert_eq!(key().public().open(&bytes).unwrap(), cue(1_000_000, 3));
}

#[test]
fn a_cue_is_the_same_after_json() {
    let cue = cue(1, 0);
    assert_eq!(serde_json::from_str::<Cue>(&cue.to_json()).unwrap(), cue);
}

#[test]
fn a_cue_is_taken_once() {
    let mut gate = gate(None);
    let first = key().sign(&cue(5, 0));
    assert_eq!(gate.take(&first).unwrap(), cue(5, 0));
    assert_eq!(gate.take(&first), Err(CueError::Replayed { epoch: 5, id: 0 }));
    assert!(gate.take(&key().sign(&cue(5, 1))).is_ok(), "another of the same epoch");
    assert!(gate.take(&key().sign(&cue(6, 0))).is_ok());
    assert_eq!(gate.take(&key().sign(&cue(5, 2))), Err(CueError::Old { epoch: 5, highest: 6 }));
    assert_eq!(gate.highest(), Some(6));
}

#[test]
fn a_restarted_agent_takes_nothing_of_an_epoch_that_it_has_seen() {
    let mut gate = gate(Some(6));
    assert_eq!(gate.highest(), Some(6));
    assert_eq!(gate.take(&key().sign(&cue(6, 9))), Err(CueError::Old { epoch: 6, highest: 6 }));
    assert!(gate.take(&key().sign(&cue(7, 0))).is_ok());
    let mut last = self::gate(Some(u64::MAX));
    assert!(matches!(last.take(&key().sign(&cue(u64::MAX, 0))), Err(CueError::Old { .. })));
}

#[test]
fn a_restarted_agent_takes_the_epoch_that_it_has_seen_again_if_the_oracle_says_that_it_is_not_over() {
    for (answered, taken) in [(4, false), (5, true), (6, false), (7, false)] {
        let mut gate = gate(Some(6));
        gate.ask([1; 32]);
        assert_eq!(gate.answered(&key().answer(answered, &[[1; 32]])), Some(Ok(())));
        assert_eq!(gate.take(&key().sign(&cue(6, 0))).is_ok(), taken, "{answered}");
        assert!(matches!(gate.take(&key().sign(&cue(5, 0))), Err(CueError::Old { .. })), "{answered}");
    }
    // an agent that has run since then knows which ones it has taken
    let mut gate = gate(Some(5));
    assert!(gate.take(&key().sign(&cue(6, 0))).is_ok());
    gate.ask([1; 32]);
    assert_eq!(gate.answered(&key().answer(5, &[[1; 32]])), Some(Ok(())));
    assert_eq!(gate.take(&key().sign(&cue(6, 0))), Err(CueError::Replayed { epoch: 6, id: 0 }));
}

#[test]
fn after_a_question_nothing_is_taken_until_it_is_answered() {
    let mut gate = gate(Some(6));
    assert_eq!(gate.answered(&key().sign(&cue(7, 0))), None, "a CUE is no answer");
    gate.ask([1; 32]);
    assert_eq!(gate.take(&key().sign(&cue(9, 0))), Err(CueError::Unanswered(9)));
    let forged = OracleKey::from_secret([8; 32]).answer(20, &[[1; 32]]);
    assert_eq!(gate.answered(&forged), Some(Err(CueError::Forged)));
    assert_eq!(gate.answered(&key().answer(20, &[[2; 32]])), Some(Err(CueError::NotOurs)), "an old one, or another's");
    let good = key().answer(8, &[[2; 32], [1; 32]]);
    for end in 0..good.len() {
        assert!(!matches!(gate.answered(&good[..end]), Some(Ok(()))), "cut at {end}");
    }
    assert_eq!((gate.answered(&good), gate.question(), gate.highest()), (Some(Ok(())), None, Some(8)));
    assert!(matches!(gate.take(&key().sign(&cue(8, 0))), Err(CueError::Old { .. })));
    assert!(gate.take(&key().sign(&cue(9, 0))).is_ok());
    // asked again, as when the Oracle was gone for a while: it may be in an earlier epoch, and what was seen stays seen
    gate.ask([3; 32]);
    assert_eq!(gate.answered(&key().answer(2, &[[3; 32]])), Some(Ok(())));
    assert!(matches!(gate.take(&key().sign(&cue(8, 1))), Err(CueError::Old { .. })));
}

#[test]
fn a_cue_for_others_is_not_taken_but_makes_earlier_ones_old() {
    let mut gate = gate(None);
    let others = Cue { scope: CueScope { hosts: Addressees::Named(vec!["x".into()]), ..cue(9, 0).scope }, ..cue(9, 0) };
    assert_eq!(gate.take(&key().sign(&others)), Err(CueError::NotOurs));
    assert_eq!(gate.take(&key().sign(&cue(8, 0))), Err(CueError::Old { epoch: 8, highest: 9 }));
}

#[test]
fn every_changed_bit_is_noticed() {
    let bytes = key().sign(&cue(1, 0));
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(key().public().open(&changed), Err(CueError::Forged), "bit {bit}");
    }
    assert_eq!(key().public().open(&bytes[..bytes.len() - 1]), Err(CueError::Forged));
    assert_eq!(key().public().open(&[]), Err(CueError::Forged));
    assert_eq!(key().public().open(&vec![0; SIGNED_MAX + 1]), Err(CueError::Long(SIGNED_MAX + 1)));
}

#[test]
fn another_key_is_not_the_oracles() {
    let forged = OracleKey::from_secret([8; 32]).sign(&cue(1, 0));
    let mut gate = gate(None);
    assert_eq!(gate.take(&forged), Err(CueError::Forged));
    assert_eq!(gate.highest(), None, "what is forged leaves no trace");
}

#[test]
fn two_keys_are_the_oracles_while_one_replaces_the_other() {
    let (old, new, other) = (key(), OracleKey::from_secret([8; 32]), OracleKey::from_secret([9; 32]));
    let lines = format!("# change 1\n{}\n\n  {}\n", old.public().to_hex(), new.public().to_hex());
    let both = PublicKeys::parse(&lines).unwrap();
    assert_eq!(both.keys(), [old.public(), new.public()]);
    let mut gate = gate(None);
    gate.trust(both);
    assert!(gate.take(&old.sign(&cue(1, 0))).is_ok());
    assert!(gate.take(&new.sign(&cue(1, 1))).is_ok(), "in the same epoch");
    assert_eq!(gate.take(&old.sign(&cue(1, 1))), Err(CueError::Replayed { epoch: 1, id: 1 }), "whoever signed it");
    assert_eq!(gate.take(&other.sign(&cue(1, 2))), Err(CueError::Forged));
    for (at, signer) in [&old, &new].into_iter().enumerate() {
        let question = [at as u8; 32];
        gate.ask(question);
        assert_eq!(gate.answered(&other.answer(2, &[question])), Some(Err(CueError::Forged)));
        assert_eq!(gate.answered(&signer.answer(2, &[question])), Some(Ok(())));
    }
    gate.trust(new.public().into());
    assert_eq!(gate.take(&old.sign(&cue(3, 0))), Err(CueError::Forged), "it is not valid any more");
    assert_eq!(gate.highest(), Some(2), "what was taken stays taken");
    assert!(gate.take(&new.sign(&cue(3, 0))).is_ok());
}

#[test]
fn a_file_of_keys_has_one_or_two() {
    let line = key().public().to_hex();
    assert_eq!(PublicKeys::parse(&line).unwrap(), key().public().into());
    assert_eq!(PublicKeys::parse(""), Err(KeyError::None));
    assert_eq!(PublicKeys::parse("# none\n\n"), Err(KeyError::None));
    assert_eq!(PublicKeys::parse(&format!("{line}\nnone")), Err(KeyError::Shape));
    assert_eq!(PublicKeys::parse(&format!("{line} {line}")), Err(KeyError::Shape));
    let many = format!("{line}\n").repeat(KEYS_MAX + 1);
    assert_eq!(PublicKeys::parse(&many), Err(KeyError::Many));
}

#[test]
fn keys_are_read_as_they_are_written() {
    assert_eq!(OracleKey::from_hex(&key().to_hex()).unwrap().public(), key().public());
    assert_eq!(PublicKey::from_hex(&key().public().to_hex()).unwrap(), key().public());
    assert_eq!(PublicKey::from_hex("12"), Err(KeyError::Shape));
    assert_eq!(PublicKey::from_hex(&"x".repeat(64)), Err(KeyError::Shape));
    // the neutral element, under which one signature fits any message
    assert_eq!(PublicKey::from_hex(&format!("01{}", "0".repeat(62))), Err(KeyError::Weak));
}

#[test]
fn a_network_in_json_is_parsed_and_its_mistakes_are_reported() {
    let text = r#"{"at": "60 s", "links": [{"name": "a", "utilization": 0.5}], "hosts": [{"name": "h", "srtt_us": [[200, 3]]}],
        "matrix": [{"from": "r1", "to": "r2", "rate": "1 Gbit/s"}], "fct": {"p99": "2 ms"}}"#;
    let view = NetworkView::from_json(text).unwrap();
    assert_eq!(NetworkView::from_json(&view.to_json()).unwrap(), view);
    let error = |from: &str, to: &str| NetworkView::from_json(&text.replace(from, to)).unwrap_err().to_string();
    assert!(error("0.5", "50").contains("links[0] (a): `utilization` is 50"));
    let unknown = error("\"hosts\"", "\"hosst\"");
    assert!(unknown.starts_with("1:") && unknown.contains("unknown field `hosst`"), "{unknown}");
    assert!(error("\"60 s\"", "\"60\"").contains("no unit"));
    assert!(error("\"name\": \"h\"", "\"rack\": \"h\"").contains("hosts[0] (): it has no name"));
}

fn some_text() -> impl Strategy<Value = String> {
    "[a-zäé0-9 .<>]{0,60}"
}

fn some_time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(Time::from_ps)
}

fn some_scope() -> impl Strategy<Value = CueScope> {
    let hosts = prop_oneof![
        Just(Addressees::All),
        any::<u64>().prop_map(Addressees::UpTo),
        prop::collection::vec(some_text(), 0..64).prop_map(Addressees::Named),
    ];
    let prefix = prop_oneof![
        (any::<u32>(), 0u8..=32).prop_map(|(bits, n)| {
            Prefix::new(
                std::net::Ipv4Addr::from_bits(bits & u32::MAX.checked_shl(32 - u32::from(n)).unwrap_or(0)).into(),
                n,
            )
        }),
        (any::<u128>(), 0u8..=128).prop_map(|(bits, n)| {
            Prefix::new(
                std::net::Ipv6Addr::from_bits(bits & u128::MAX.checked_shl(128 - u32::from(n)).unwrap_or(0)).into(),
                n,
            )
        }),
        Just(None),
    ];
    let names = prop::collection::vec(some_text(), 0..16);
    let labels = prop::collection::btree_map(some_text(), some_text(), 0..16);
    (hosts, names, labels, prefix, any::<Option<u16>>(), prop::option::of(some_text())).prop_map(
        |(hosts, names, labels, remote, port, cgroup)| {
            let sessions = Sessions { remote, port, cgroup };
            CueScope { hosts, names, labels, sessions }
        },
    )
}

fn some_settings() -> impl Strategy<Value = Settings> {
    let numbers =
        any::<(Option<u32>, Option<u32>, Option<u64>, Option<u64>, Option<u64>, Option<bool>, Option<bool>)>();
    (numbers, prop::option::of(some_text()), prop::option::of(some_time()), prop::option::of(some_time())).prop_map(
        |((initial_cwnd, cwnd_clamp, rate, window, total, pacing, ecn), cc, rto_min, delayed_ack_max)| Settings {
            initial_cwnd,
            rto_min,
            cc,
            pacing,
            cwnd_clamp,
            max_pacing_rate: rate.map(Rate::from_bps),
            delayed_ack_max,
            window_clamp: window.map(Bytes::new),
            window_total: total.map(Bytes::new),
            ecn,
        },
    )
}

#[test]
fn a_version_that_does_not_know_a_setting_refuses_the_cue() {
    let with = |set: Settings| Cue { set, ..cue(1, 0) }.to_bytes();
    let nothing = with(Settings::default());
    let total = Bytes::new(200_000);
    let more = with(Settings { window_total: Some(total), ..Settings::default() });
    assert_eq!(Cue::from_bytes(&more).unwrap().set.window_total, Some(total));
    // the mask of what is set: earlier versions know its bits up to 10, and refuse others
    let at = nothing.iter().zip(&more).position(|(one, other)| one != other).unwrap();
    assert_eq!((nothing[at], &more[at..at + 2]), (0, &[0x80, 1 << (11 - 7)][..]));
    let mut later = more.clone();
    later[at + 1] |= 1 << (12 - 7);
    assert_eq!(Cue::from_bytes(&later), Err(WireError::Value("settings")));
    // without it nothing has changed for them
    assert_eq!(nothing.len() + 1 + 3, more.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cue_is_the_same_after_bytes(
        numbers in any::<(u64, u32, u16)>(),
        texts in (some_text(), some_text(), some_text()),
        lifetime in some_time(),
        scope in some_scope(),
        set in some_settings(),
        guard in prop::option::of((some_text(), some_time())),
    ) {
        let ((epoch, id, rank), (policy, rule, reason)) = (numbers, texts);
        let guard = guard.map(|(revert_if, hold)| CueGuard { revert_if, hold });
        let cue = Cue { epoch, id, policy, rule, rank, lifetime, scope, set, guard, reason };
        let bytes = cue.to_bytes();
        prop_assert_eq!(Cue::from_bytes(&bytes).unwrap(), cue);
        for end in 0..bytes.len() {
            prop_assert!(Cue::from_bytes(&bytes[..end]).is_err(), "cut at {}", end);
        }
    }

    #[test]
    fn any_bytes_are_a_cue_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(cue) = Cue::from_bytes(&bytes) {
            // what is read can be written
            prop_assert_eq!(Cue::from_bytes(&cue.to_bytes()).unwrap(), cue);
        }
        prop_assert!(key().public().open(&bytes).is_err());
    }

    #[test]
    fn a_changed_cue_is_a_cue_or_an_error(at in 0usize..100, to in any::<u8>()) {
        let mut bytes = cue(1, 0).to_bytes();
        bytes[at] = to;
        let _ = Cue::from_bytes(&bytes);
    }
}
