//! Whatever an agent or an Oracle is handed, it takes bounded memory and does not panic.

use policy::{
    Agent, Cue, CueError, CueScope, Expression, Gate, HELD_MAX, History, Host, Identity, Known, Link, NetworkView,
    OracleKey, Place, Policy, RackPair, Settings, decide,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use std::alloc::System;
use units::{Rate, Time};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn in_use() -> usize {
    let Stats { bytes_allocated, bytes_deallocated, .. } = ALLOCATOR.stats();
    bytes_allocated - bytes_deallocated
}

/// What `act` has allocated in all, including what it freed.
fn allocated(act: impl FnOnce()) -> usize {
    let before = ALLOCATOR.stats().bytes_allocated;
    act();
    ALLOCATOR.stats().bytes_allocated - before
}

fn cue(epoch: u64, id: u32, rule: String) -> Cue {
    Cue {
        epoch,
        id,
        policy: "p".into(),
        rule,
        rank: 0,
        lifetime: Time::from_ps(u64::MAX),
        scope: CueScope::default(),
        set: Settings { initial_cwnd: Some(20), ..Settings::default() },
        guard: None,
        reason: String::new(),
    }
}

/// The tests of this file measure the memory of the whole process, so they are one.
#[test]
fn what_comes_from_outside_takes_bounded_memory() {
    unknown_rules_are_kept_up_to_a_limit();
    bytes_that_are_no_cue_allocate_little();
    a_view_out_of_range_is_refused();
    a_view_at_the_end_of_every_range_is_decided_on();
    expressions_that_are_nested_end_in_an_error();
}

fn unknown_rules_are_kept_up_to_a_limit() {
    let key = OracleKey::from_secret([7; 32]);
    let mut agent = Agent::new(Gate::new(key.public(), Identity { host: "h".into(), ..Identity::default() }, None));
    let before = in_use();
    let mut beyond = 0;
    for i in 0..10_000 {
        let cue = cue(u64::from(i) / 500, i, format!("{i:0>64}"));
        beyond += u32::from(matches!(agent.on_cue(Time::from_secs(1), &key.sign(&cue)), Err(CueError::TooMany(_))));
    }
    assert_eq!((agent.rules().len(), beyond as usize), (HELD_MAX, 10_000 - HELD_MAX));
    assert!(in_use() - before < HELD_MAX * 2000, "{} bytes", in_use() - before);
    // epochs at their end, and a deadline that lies beyond every time
    let last = agent.on_cue(Time::from_ps(u64::MAX), &key.sign(&cue(u64::MAX, u32::MAX, "0".repeat(64))));
    assert_eq!(last, Ok(true));
    assert!(!agent.on_timer(Time::from_secs(1)));
}

fn bytes_that_are_no_cue_allocate_little() {
    let good = cue(1, 1, "r".into()).to_bytes();
    let mut runner = TestRunner::new(Config::with_cases(2000));
    let strategy = (prop::collection::vec(any::<u8>(), 0..2000), 0..good.len(), prop::bool::ANY);
    let outcome = runner.run(&strategy, |(noise, at, whole)| {
        // noise alone, or from the middle of a CUE on
        let bytes = if whole { [&good[..at], &noise].concat() } else { noise };
        let taken = allocated(|| drop(Cue::from_bytes(&bytes)));
        prop_assert!(taken <= 4 * bytes.len() + 16_384, "{taken} bytes for {}", bytes.len());
        Ok(())
    });
    outcome.unwrap();
}

fn a_view_out_of_range_is_refused() {
    let of = |list: &str, fields: &str| format!(r#"{{"{list}": [{{"name": "x", {fields}}}]}}"#);
    let long = "n".repeat(256);
    let broken = [
        r#"{"hour": 1e308}"#.to_string(),
        r#"{"hour": -1}"#.to_string(),
        r#"{"weekday": 0}"#.to_string(),
        r#"{"hour": NaN}"#.to_string(),
        of("hosts", r#""live_flows": 1e308"#),
        of("hosts", r#""live_flows": -0.5"#),
        of("hosts", r#""flow_starts": 1e400"#),
        of("hosts", r#""sent_segments": 18446744073709551615"#),
        of("hosts", r#""send_rate": "18000000 Tbit/s""#),
        of("hosts", r#""srtt_us": [[3, 1], [2, 1]]"#),
        of("hosts", &format!(r#""labels": {{"role": "{long}"}}"#)),
        of("hosts", r#""algorithms": ["../../etc"]"#),
        of("links", r#""queue": "9300000000 GB""#),
        of("links", r#""utilization": 1e308"#),
        of("links", &format!(r#""from": "{long}""#)),
        of("links", "\"to\": \"a\\u0007\""),
        of("groups", r#""flow_starts": -1"#),
        of("groups", r#""retransmit_rate": 1.5"#),
        r#"{"matrix": [{"from": "a", "to": "b", "rate": "18000000 Tbit/s"}]}"#.to_string(),
        format!(r#"{{"hosts": [{{"name": "{long}"}}]}}"#),
        "[".repeat(100_000),
        "{\"hosts\":".repeat(20_000),
    ];
    for text in &broken {
        assert!(NetworkView::from_json(text).is_err(), "{}", &text[..text.len().min(100)]);
    }
    assert!(NetworkView::from_json(r#"{"hour": 0, "weekday": 7}"#).is_ok());
}

fn a_view_at_the_end_of_every_range_is_decided_on() {
    let text = "mode = \"enforce\"\nperiod = \"60 s\"\nsmoothing = \"60 s\"\n[[rule]]\nname = \"r\"\nset = { initial_cwnd = 20 }\n\
                when = \"network.live_flows * 1e300 * 1e300 - network.drop_rate > network.max_rack_pair_share && \
                network.flow_starts / network.mean_link_utilization > 0\"\n";
    let policy = Policy::parse("p.toml", text, Known::default()).unwrap();
    // also beyond what a view may say: hosts of a process's own are not checked
    let host = |i: usize| Host {
        name: format!("h{i}"),
        live_flows: Some(f64::MAX),
        flow_starts: Some(f64::INFINITY),
        sent_segments: Some(u64::MAX),
        retransmitted_segments: Some(u64::MAX),
        send_rate: Some(Rate::from_bps(u64::MAX)),
        srtt_us: vec![(u32::MAX, u32::MAX); 300],
        ..Host::default()
    };
    let rate = Rate::from_bps(u64::MAX);
    let pair = |i: usize| RackPair { from: format!("r{i}"), to: "r".into(), rate };
    let view = NetworkView {
        at: Time::from_ps(u64::MAX),
        hosts: (0..100).map(host).collect(),
        links: vec![Link { name: "l".into(), utilization: Some(0.0), ..Link::default() }],
        matrix: (0..100).map(pair).collect(),
        ..NetworkView::default()
    };
    let mut history = History::default();
    for _ in 0..3 {
        let decision = decide(&policy, &view, &mut history);
        assert_eq!(decision.rules[0].hosts.addressed, 0, "what overflows is not known, and no rule fires on it");
        assert!(!decision.explain(&policy).is_empty());
    }
}

fn expressions_that_are_nested_end_in_an_error() {
    for (open, close) in [("(", ")"), ("!", ""), ("-", ""), ("links.exists(l, ", ")"), ("true ? ", " : true")] {
        for depth in [20, 100, 400] {
            let text = format!("{}host.drop_rate{}", open.repeat(depth), close.repeat(depth));
            let taken = allocated(|| {
                let _ = Expression::compile(&text, Place::Guard);
            });
            assert!(taken < 32 << 20, "{taken} bytes for {depth} of {open}");
        }
    }
}
