//! Cost of a decision, and of signing and taking a CUE.

use crate::Row;
use policy::{
    Addressees, AlgorithmFacts, Cue, CueGuard, CueScope, Gate, History, Host, Identity, Known, Link, NetworkView,
    OracleKey, Policy, Settings, decide,
};
use std::collections::BTreeMap;
use std::time::Instant;
use units::Time;

const DECIDE: &str = "policy: decide";
const CUES: &str = "policy: CUEs";
/// Decisions of which the median is taken.
const ROUNDS: usize = 31;

pub fn cases() -> Vec<String> {
    vec![DECIDE.into(), CUES.into()]
}

pub fn run(name: &str) -> Option<Vec<Row>> {
    match name {
        DECIDE => Some([(4_000, 100), (100_000, 2_500)].into_iter().flat_map(decisions).collect()),
        CUES => Some(cues()),
        _ => None,
    }
}

const NETWORK: &str = "when = \"network.max_link_utilization < 0.70\"";
const HOST: &str = "when = \"host.drop_rate < 0.001 && host.live_flows < 500 && host.srtt_p99 < duration('5 ms')\"";

/// Median time of a decision with a network-scope rule, and of one with a host-scope rule that selects all but a few hosts.
fn decisions((hosts, switches): (usize, usize)) -> Vec<Row> {
    let mut view = network(hosts, switches);
    let measure = |when: &str, extra: &str, view: &mut NetworkView| {
        let text = format!(
            "mode = \"enforce\"\nperiod = \"60 s\"\n{extra}\n[[rule]]\nname = \"calm\"\n{when}\nset = {{ initial_cwnd = 20 }}\n"
        );
        let policy = Policy::parse("bench", &text, Known { algorithms: &[] as &[AlgorithmFacts<'_>] });
        let policy = policy.expect("the policy is right");
        let mut history = History::default();
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|round| {
                view.at = Time::from_secs(60 * round as u64);
                let began = Instant::now();
                let decision = decide(&policy, view, &mut history);
                let took = began.elapsed().as_secs_f64() * 1e6;
                assert!(!decision.cues.is_empty(), "the rule fires");
                took
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    let row = |what: &str, us: f64| Row::new(format!("{DECIDE}, {what}, {hosts} hosts"), us, "us");
    vec![
        row("network rule", measure(NETWORK, "[rollout]\nfraction = 0.5", &mut view)),
        row("host rule", measure(HOST, "", &mut view)),
        row("host rule, smoothed", measure(HOST, "smoothing = \"120 s\"", &mut view)),
    ]
}

/// Racks of as many hosts as it takes, each switch with an uplink; every seventh host sees too many drops.
fn network(hosts: usize, switches: usize) -> NetworkView {
    let per_switch = hosts / switches;
    let link = |from: String, to: String, load: usize| Link {
        name: format!("{from}-{to}"),
        from,
        to,
        utilization: Some((load % 60) as f64 / 100.0),
        drop_rate: Some(0.0),
        mark_rate: Some(0.0),
        marks: Some(true),
        ..Link::default()
    };
    let host = |i: usize| Host {
        name: format!("host{i:06}"),
        rack: format!("rack{}", i / per_switch),
        cc: "cubic".into(),
        live_flows: Some((i % 400) as f64),
        flow_starts: Some(10.0),
        sent_segments: Some(50_000),
        retransmitted_segments: Some(if i.is_multiple_of(7) { 100 } else { 3 }),
        srtt_us: vec![(250, 90), (800, 9), (2000, 1)],
        ..Host::default()
    };
    let edges = (0..hosts).flat_map(|i| {
        let (host, switch) = (format!("host{i:06}"), format!("leaf{}", i / per_switch));
        [link(host.clone(), switch.clone(), i), link(switch, host, i + 7)]
    });
    let uplinks = (0..switches).flat_map(|i| {
        let (leaf, core) = (format!("leaf{i}"), "core".to_string());
        [link(leaf.clone(), core.clone(), i), link(core, leaf, i + 3)]
    });
    NetworkView {
        links: edges.chain(uplinks).collect(),
        hosts: (0..hosts).map(host).collect(),
        ..NetworkView::default()
    }
}

/// Encoding and signing at the Oracle; checking, decoding and taking at an agent.
fn cues() -> Vec<Row> {
    const COUNT: u64 = 20_000;
    let key = OracleKey::from_secret([7; 32]);
    let cue = |epoch: u64| Cue {
        epoch,
        id: 0,
        policy: "opentcp2".into(),
        rule: "calm network".into(),
        rank: 0,
        lifetime: Time::from_secs(90),
        scope: CueScope { hosts: Addressees::UpTo(u64::MAX), ..CueScope::default() },
        set: Settings { initial_cwnd: Some(20), rto_min: Some(Time::from_ms(2)), ..Settings::default() },
        guard: Some(CueGuard { revert_if: "host.drop_rate > 0.001".into(), hold: Time::from_secs(60) }),
        reason: "network.max_link_utilization = 0.42".into(),
    };
    let all: Vec<Cue> = (0..COUNT).map(cue).collect();
    let began = Instant::now();
    let signed: Vec<Vec<u8>> = all.iter().map(|cue| key.sign(cue)).collect();
    let signing = COUNT as f64 / began.elapsed().as_secs_f64();
    let mut gate = Gate::new(key.public(), Identity { host: "h1".into(), labels: BTreeMap::new() }, None);
    let began = Instant::now();
    let taken = signed.iter().filter(|bytes| gate.take(bytes).is_ok()).count();
    let taking = COUNT as f64 / began.elapsed().as_secs_f64();
    assert_eq!(taken as u64, COUNT, "each is taken");
    vec![
        Row::new("policy: CUE encode and sign", signing, "CUEs/s"),
        Row::new("policy: CUE verify, decode and take", taking, "CUEs/s"),
        Row::new("policy: CUE size", signed[0].len() as f64, "bytes"),
    ]
}
