//! What is decided, period by period.

use crate::common::{GOOD, KNOWN, parse};
use policy::Turn::{FlapLimited, Off, On};
use policy::{
    Addressees, Decision, History, Host, Link, NetworkView, Oracle, OracleKey, Policy, Progress, Turn, decide,
};
use std::collections::BTreeMap;
use units::{Bytes, Time};

/// A network of `n` hosts on one switch, with this utilization, at this second.
fn view(n: usize, utilization: f64, at_s: u64) -> NetworkView {
    let host = |i: usize| Host {
        name: format!("h{i}"),
        rack: format!("r{}", i % 2),
        cc: "cubic".into(),
        live_flows: Some(10.0),
        sent_segments: Some(100_000),
        retransmitted_segments: Some(50),
        // 2 ms
        srtt_us: vec![(2000, 10)],
        ..Host::default()
    };
    let link = |i: usize| Link {
        name: format!("s-h{i}"),
        from: "s".into(),
        to: format!("h{i}"),
        utilization: Some(if i == 0 { utilization } else { utilization / 2.0 }),
        drop_rate: Some(0.0),
        marks: Some(true),
        ..Link::default()
    };
    NetworkView {
        at: Time::from_secs(at_s),
        hour: Some(12.0),
        hosts: (0..n).map(host).collect(),
        links: (0..n).map(link).collect(),
        ..NetworkView::default()
    }
}

fn policy(text: &str) -> Policy {
    parse(text).unwrap_or_else(|diagnostic| panic!("{diagnostic}"))
}

fn shipped(name: &str) -> Policy {
    let path = format!("{}/../../policies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Policy::parse(name, &std::fs::read_to_string(path).unwrap(), KNOWN).unwrap()
}

fn simple(rule: &str, rest: &str) -> Policy {
    policy(&format!("mode = \"enforce\"\nperiod = \"10 s\"\n{rest}\n[[rule]]\nname = \"a\"\n{rule}\n"))
}

const IW: &str = "set = { initial_cwnd = 20 }";

/// The turns of the first rule over views of these utilizations, one a period of ten seconds.
fn turns(policy: &Policy, utilizations: &[f64]) -> Vec<Turn> {
    let mut history = History::default();
    let period = |(i, utilization): (usize, &f64)| {
        decide(policy, &view(8, *utilization, 10 * i as u64), &mut history).rules[0].turn.unwrap()
    };
    utilizations.iter().enumerate().map(period).collect()
}

fn once(policy: &Policy, view: &NetworkView) -> Decision {
    decide(policy, view, &mut History::default())
}

#[test]
fn opentcp1_sends_while_the_network_is_calm_and_is_silent_while_it_is_not() {
    let policy = shipped("opentcp1");
    let mut history = History::default();
    let calm = decide(&policy, &view(16, 0.69, 0), &mut history);
    assert_eq!((calm.treated, calm.cues.len(), calm.epoch), (8, 1, 1));
    assert_eq!(calm.cues[0].set.initial_cwnd, Some(20));
    assert_eq!(calm.cues[0].set.rto_min, Some(Time::from_ms(2)));
    assert_eq!(calm.cues[0].reason, "network.max_link_utilization = 0.69");
    let named = (0..16).filter(|i| calm.cues[0].is_for(&format!("h{i}"), &BTreeMap::new())).count();
    assert_eq!(named, 8, "agents find themselves in the scope by their names alone");
    let busy = decide(&policy, &view(16, 0.70, 60), &mut history);
    assert_eq!((busy.cues.len(), busy.epoch, busy.rules[0].turn), (0, 2, Some(Turn::Off)));
}

#[test]
fn opentcp2_sends_its_guard_along() {
    let decision = once(&shipped("opentcp2"), &view(16, 0.3, 0));
    let guard = decision.cues[0].guard.as_ref().unwrap();
    assert_eq!((guard.revert_if.as_str(), guard.hold), ("host.drop_rate > 0.001", Time::from_secs(60)));
}

#[test]
fn paced_has_hysteresis_and_is_treated_in_every_other_block() {
    let policy = shipped("paced");
    let mut history = History::default();
    // 30 s a period, ten periods a block; the hold time is 2 min, and smoothing a minute
    let mut on = |flows: f64, at_s: u64| {
        let mut view = view(10, 0.1, at_s);
        view.hosts.iter_mut().for_each(|host| host.live_flows = Some(flows / 10.0));
        let decision = decide(&policy, &view, &mut history);
        (decision.rules[0].turn.unwrap(), decision.cues.len())
    };
    assert_eq!(on(1900.0, 0), (Turn::On, 1));
    assert_eq!(on(2200.0, 240), (Turn::On, 1), "between the two thresholds it stays as it is");
    assert_eq!(on(1500.0, 300), (Turn::On, 0), "the second block is the control");
    assert_eq!(on(9000.0, 600), (Turn::Off, 0), "five minutes at 9000 flows, smoothed over one");
    assert_eq!(on(2200.0, 900), (Turn::Off, 0), "and between them it stays off");
    assert_eq!(on(1000.0, 1200), (Turn::On, 1));
}

#[test]
fn diurnal_follows_the_clock_and_the_first_rule_counts() {
    let policy = shipped("diurnal");
    let mut history = History::default();
    let mut at = |hour: f64, utilization: f64, at_s: u64| {
        let mut view = view(10, utilization, at_s);
        view.hour = Some(hour);
        let decision = decide(&policy, &view, &mut history);
        let windows: Vec<u32> = decision.cues.iter().filter_map(|cue| cue.set.initial_cwnd).collect();
        (windows, decision.treated, decision.conflicts)
    };
    let (windows, treated, conflicts) = at(23.0, 0.2, 0);
    assert_eq!((windows, treated), (vec![30, 20], 1), "a tenth of ten hosts in the first hour");
    assert_eq!((conflicts[0].first.as_str(), conflicts[0].second.as_str()), ("night", "calm hours of the day"));
    assert_eq!((conflicts[0].settings.as_slice(), conflicts[0].hosts), (["initial_cwnd"].as_slice(), 1));
    let (windows, treated, conflicts) = at(7.0, 0.2, 8 * 3600);
    assert_eq!((windows, treated, conflicts.len()), (vec![20], 5, 0), "by day, and with half of the hosts");
    assert_eq!(at(12.0, 0.8, 13 * 3600).0, Vec::<u32>::new());
}

#[test]
fn dctcp_goes_only_where_every_hop_marks_whatever_the_condition_says() {
    let policy = shipped("dctcp-when-ecn");
    let algorithms = |decision: &Decision| {
        decision.cues.iter().map(|cue| (cue.set.cc.clone().unwrap(), cue.scope.hosts.clone())).collect::<Vec<_>>()
    };
    let mut network = view(4, 0.1, 0);
    let marking = once(&policy, &network);
    assert_eq!(marking.cues.len(), 1);
    assert_eq!(algorithms(&marking)[0].0, "dctcp");
    assert_eq!(algorithms(&marking)[0].1, Addressees::All);
    // h3 on a switch of its own that does not mark
    network.links[3] = Link { from: "t".into(), marks: Some(false), ..network.links[3].clone() };
    let split = once(&policy, &network);
    let named = |names: &[&str]| Addressees::Named(names.iter().map(ToString::to_string).collect());
    assert_eq!(
        algorithms(&split),
        [("dctcp".to_string(), named(&["h0", "h1", "h2"])), ("cubic".to_string(), named(&["h3"]))]
    );
    let stubborn = simple("when = \"true\"\nset = { cc = \"dctcp\" }", "allow_mixed_measures = true");
    let decision = once(&stubborn, &network);
    assert_eq!(
        (decision.rules[0].hosts.no_ecn, algorithms(&decision)),
        (1, vec![("dctcp".into(), named(&["h0", "h1", "h2"]))])
    );
}

/// A view in which `senders` hosts send to h1, and its port has this queue and drops this share.
fn burst(senders: Option<f64>, port: (Option<u64>, Option<f64>), at_s: u64) -> NetworkView {
    let mut view = view(4, 0.1, at_s);
    view.hosts.iter_mut().for_each(|host| host.fan_in = Some(1.0));
    view.hosts[1].fan_in = senders;
    view.links[1].queue = port.0.map(Bytes::new);
    view.links[1].drop_rate = port.1;
    view
}

/// The hosts that the first rule's CUEs name.
fn aimed(decision: &Decision) -> Vec<String> {
    let names = |cue: &policy::Cue| match &cue.scope.hosts {
        Addressees::Named(names) => names.clone(),
        others => panic!("{others:?}"),
    };
    decision.cues.iter().flat_map(names).collect()
}

#[test]
fn a_rule_aims_at_hosts_that_many_send_to() {
    let policy = shipped("incast-aimed");
    let mut history = History::default();
    let mut at = |senders, at_s| {
        let decision = decide(&policy, &burst(senders, (None, None), at_s), &mut history);
        (aimed(&decision), decision.rules[0].hosts)
    };
    assert_eq!(at(Some(9.0), 0).0, [""; 0]);
    let (names, hosts) = at(Some(10.0), 20);
    assert_eq!((names, hosts.on, hosts.off), (vec!["h1".to_string()], 1, 3));
    assert_eq!(at(Some(5.0), 40).0, ["h1"], "it stays while some send");
    assert_eq!(at(Some(4.0), 60).0, [""; 0]);
    let (names, hosts) = at(None, 80);
    assert_eq!((names, hosts.unknown, hosts.off), (Vec::new(), 1, 3), "its agent has not said");
}

#[test]
fn a_rule_aims_at_hosts_behind_a_full_port() {
    let policy = simple(
        "when = \"host.port_queue > size('75 kB') || host.port_drop_rate > 0.01\"\nmatch = { hosts = \"all\" }\nset = { \
         window_total = \"130 kB\" }",
        "",
    );
    let at = |port| {
        let decision = once(&policy, &burst(None, port, 0));
        (aimed(&decision), decision.rules[0].hosts.unknown)
    };
    // nobody knows the queues of the other three, and their ports drop nothing
    assert_eq!(at((Some(80_000), Some(0.0))), (vec!["h1".to_string()], 3));
    assert_eq!(at((Some(70_000), Some(0.02))), (vec!["h1".to_string()], 3));
    assert_eq!(at((Some(70_000), Some(0.0))), (Vec::new(), 3));
    let mut two_ports = burst(None, (Some(10), Some(0.0)), 0);
    let second =
        Link { name: "t-h1".into(), from: "t".into(), queue: Some(Bytes::new(80_000)), ..two_ports.links[1].clone() };
    two_ports.links.push(second);
    assert_eq!(aimed(&once(&policy, &two_ports)), ["h1"], "the fuller of two");
    let mut unplugged = burst(None, (Some(80_000), Some(0.5)), 0);
    unplugged.links.remove(1);
    let decision = once(&policy, &unplugged);
    assert_eq!((aimed(&decision), decision.rules[0].hosts.unknown), (Vec::new(), 4));
}

#[test]
fn a_threshold_at_the_operating_point_gives_one_change_in_a_hold_time() {
    let policy = simple(&format!("when = \"network.max_link_utilization < 0.5\"\nhold = \"60 s\"\n{IW}"), "");
    // it would change every ten seconds
    let utilizations: Vec<f64> = (0..60).map(|i| if i % 2 == 0 { 0.49 } else { 0.51 }).collect();
    let on: Vec<bool> = turns(&policy, &utilizations).into_iter().map(Turn::is_on).collect();
    let changes: Vec<usize> = (1..on.len()).filter(|i| on[*i] != on[i - 1]).collect();
    assert!(!changes.is_empty());
    assert!(changes.windows(2).all(|pair| pair[1] - pair[0] >= 6), "{changes:?}");
}

#[test]
fn a_rule_that_flaps_is_kept_off() {
    let rest = "flap_limit = { changes = 2, within = \"100 s\" }";
    let policy = simple(&format!("when = \"network.max_link_utilization < 0.5\"\n{IW}"), rest);
    let turns = turns(&policy, &[0.4, 0.6, 0.4, 0.6, 0.4, 0.6, 0.4, 0.6, 0.4, 0.6, 0.4]);
    assert_eq!(turns, [On, Off, On, Off, FlapLimited, Off, FlapLimited, Off, FlapLimited, Off, On]);
}

#[test]
fn smoothing_takes_its_time() {
    let rule = format!("when = \"network.max_link_utilization < 0.5\"\n{IW}");
    // From 0.9 towards 0.1 with a time constant of 30 s: 0.1 + 0.8 exp(-t/30) is under 0.5 after 20.8 s.
    let smoothed = turns(&simple(&rule, "smoothing = \"30 s\""), &[0.9, 0.1, 0.1, 0.1]);
    assert_eq!(smoothed, [Turn::Off, Turn::Off, Turn::Off, Turn::On]);
    assert_eq!(turns(&simple(&rule, ""), &[0.9, 0.1]), [Turn::Off, Turn::On]);
}

#[test]
fn smoothing_is_done_for_each_host_too() {
    let policy = simple(&format!("when = \"host.live_flows > 50\"\n{IW}"), "smoothing = \"10 s\"");
    let mut history = History::default();
    let mut on = |flows: [f64; 2], at_s: u64| {
        let mut view = view(2, 0.1, at_s);
        view.hosts.iter_mut().zip(flows).for_each(|(host, flows)| host.live_flows = Some(flows));
        decide(&policy, &view, &mut history).rules[0].hosts.on
    };
    assert_eq!(on([0.0, 100.0], 0), 1);
    // after one time constant 63 % of the way is gone: 0 to 70 is at 44, 0 to 100 at 63
    assert_eq!(on([70.0, 100.0], 10), 1);
    assert_eq!(on([100.0, 100.0], 20), 2);
}

#[test]
fn a_period_of_a_hundred_rtts_or_less_sets_nothing() {
    let policy = simple(&format!("when = \"true\"\n{IW}"), "[rollout]\nfraction = 1.0");
    let mut network = view(8, 0.1, 0);
    assert_eq!(once(&policy, &network).cues.len(), 1, "100 × 2 ms is 0.2 s");
    network.hosts[3].srtt_us = vec![(2000, 9), (120_000, 1)];
    let unstable = once(&policy, &network);
    assert_eq!(unstable.cues.len(), 0, "of 80 sessions the 80th is the 99th percentile: 120 ms, and T is 10 s");
    assert!(unstable.rules[0].withheld.as_ref().unwrap().contains("not more than 100 RTTs"));
    network.hosts.iter_mut().for_each(|host| host.srtt_us.clear());
    assert!(once(&policy, &network).rules[0].withheld.as_ref().unwrap().contains("not known"));
    network.hosts.iter_mut().for_each(|host| host.live_flows = Some(0.0));
    assert_eq!(once(&policy, &network).cues.len(), 1, "where there are no sessions, none is disturbed");
}

#[test]
fn only_the_matched_sessions_count_for_stability() {
    let policy = simple(&format!("when = \"true\"\nmatch = {{ hosts = [\"h1\"] }}\n{IW}"), "");
    let mut network = view(8, 0.1, 0);
    network.hosts[3].srtt_us = vec![(500_000, 1000)];
    assert_eq!(once(&policy, &network).cues.len(), 1);
}

#[test]
fn other_signals_beside_other_hosts_are_refused_unless_allowed() {
    let rule = "when = \"true\"\nset = { cc = \"vegas\" }";
    let refused = once(&simple(rule, "[rollout]\nfraction = 0.5"), &view(8, 0.1, 0));
    assert_eq!(refused.cues.len(), 0);
    let why = refused.rules[0].withheld.as_ref().unwrap();
    assert!(why.contains("`vegas` reacts to loss and delay, `cubic` of host h0 to loss"), "{why}");
    assert_eq!(once(&simple(rule, "allow_mixed_measures = true"), &view(8, 0.1, 0)).cues.len(), 1);
    assert_eq!(once(&simple(&rule.replace("vegas", "newreno"), ""), &view(8, 0.1, 0)).cues.len(), 1);
}

#[test]
fn a_rule_goes_only_to_hosts_that_have_its_algorithm() {
    let policy = simple("when = \"true\"\nset = { cc = \"bic\", initial_cwnd = 20 }", "");
    let mut network = view(4, 0.1, 0);
    assert_eq!(once(&policy, &network).rules[0].hosts.addressed, 4, "what no host reports is not checked");
    for (host, algorithms) in network.hosts.iter_mut().zip([&["kernel:bic"][..], &["bic"], &["kernel:reno", "bbr"]]) {
        host.algorithms = algorithms.iter().map(ToString::to_string).collect();
    }
    let decision = once(&policy, &network);
    let report = &decision.rules[0];
    assert_eq!((report.hosts.addressed, report.hosts.no_algorithm, report.lacking.join(" ")), (3, 1, "h2".into()));
    let named = Addressees::Named(["h0", "h1", "h3"].map(String::from).to_vec());
    assert_eq!(decision.cues[0].scope.hosts, named);
    let text = decision.explain(&policy);
    assert!(text.contains("1 left out: without `bic` (opentcp cc load bic): h2"), "{text}");
    network.hosts.iter_mut().for_each(|host| host.algorithms = vec!["kernel:reno".into()]);
    assert!(once(&policy, &network).cues.is_empty());
}

#[test]
fn the_values_that_hosts_had_are_reported_from_the_least_to_the_most() {
    let policy = simple(&format!("when = \"host.live_flows > 50 || host.rack == 'r9'\"\n{IW}"), "");
    let mut network = view(3, 0.1, 0);
    network.hosts[1].live_flows = Some(42.0);
    network.hosts[2].live_flows = None;
    let decision = once(&policy, &network);
    let seen: Vec<String> = decision.rules[0].seen.iter().map(ToString::to_string).collect();
    assert_eq!(seen, ["host.live_flows was 10 to 42", "host.rack == \"r9\" was false"]);
    assert!(decision.explain(&policy).contains("host.live_flows was 10 to 42"));
}

#[test]
fn a_broken_constraint_keeps_everything_back_at_once() {
    let policy = policy(&GOOD.replace("network.drop_rate < 0.01", "network.drop_rate < 0.0004"));
    // 50 of 100000 segments of each host: 0.0005
    let decision = once(&policy, &view(8, 0.1, 0));
    assert_eq!((decision.constraints[0].holds, decision.cues.len()), (Some(false), 0));
    assert_eq!(once(&self::policy(GOOD), &view(8, 0.1, 0)).cues.len(), 1);
}

#[test]
fn a_broken_constraint_is_reported_even_if_no_host_is_treated() {
    let broken = GOOD.replace("network.drop_rate < 0.01", "network.drop_rate < 0.0004");
    let decision = once(&policy(&broken.replace("fraction = 0.5", "fraction = 0.05")), &view(8, 0.1, 0));
    assert_eq!((decision.treated, decision.rules[0].hosts.matched), (0, 0));
    assert!(decision.rules[0].withheld.as_ref().unwrap().contains("does not hold"));
}

#[test]
fn what_is_not_known_sets_nothing() {
    let mut network = view(8, 0.1, 0);
    network.links.iter_mut().for_each(|link| link.utilization = None);
    let decision = once(&policy(GOOD), &network);
    assert_eq!((decision.rules[0].turn, decision.cues.len()), (Some(Turn::Unknown), 0));
    // a few segments are no rate
    let rule = simple(&format!("when = \"host.drop_rate < 0.5\"\n{IW}"), "");
    let mut network = view(3, 0.1, 0);
    network.hosts[1].sent_segments = Some(999);
    let decision = once(&rule, &network);
    assert_eq!((decision.rules[0].hosts.on, decision.rules[0].hosts.unknown), (2, 1));
}

#[test]
fn what_one_side_decides_needs_no_other() {
    let decided =
        |when: &str| once(&simple(&format!("when = \"{when}\"\n{IW}"), ""), &view(4, 0.1, 0)).rules[0].turn.unwrap();
    // nothing is known of completion times here
    assert_eq!(decided("network.live_flows > 3 || network.fct_p99 > duration('1 s')"), Turn::On);
    assert_eq!(decided("network.live_flows < 3 && network.fct_p99 > duration('1 s')"), Turn::Off);
    assert_eq!(decided("network.live_flows > 3 && network.fct_p99 > duration('1 s')"), Turn::Unknown);
    assert_eq!(
        decided("network.live_flows / (network.live_flows - 40) > 3"),
        Turn::Unknown,
        "40 flows: division by zero"
    );
}

#[test]
fn arithmetic_and_lists_mean_what_they_say() {
    let holds = |when: &str| {
        let mut network = view(4, 0.8, 0);
        network.links[2].queue = Some("100 kB".parse().unwrap());
        once(&simple(&format!("when = \"{when}\"\n{IW}"), ""), &network).rules[0].turn.unwrap()
    };
    for (when, expected) in [
        // 40 flows on 4 hosts; utilization 0.8 of the first link, 0.4 of the others: 0.5 in the mean
        ("network.live_flows * 2 - 30 == 50", Turn::On),
        ("network.mean_link_utilization == 0.5", Turn::On),
        ("-network.live_flows < -39", Turn::On),
        ("network.drop_rate * 2 > 0.001", Turn::Off),
        ("links.exists(l, l.utilization > 0.7)", Turn::On),
        ("links.exists(l, l.utilization > 0.9)", Turn::Off),
        ("links.all(l, l.utilization > 0.3)", Turn::On),
        ("links.all(l, l.utilization > 0.5)", Turn::Off),
        ("links.exists(l, l.queue > size('99 kB'))", Turn::On),
        ("links.exists(l, l.queue > size('101 kB'))", Turn::Unknown),
        ("links.exists(l, l.receiver == 'h2' && l.utilization < 0.5)", Turn::On),
        ("hosts.exists(h, h.name == 'h9')", Turn::Off),
        ("hosts.all(h, h.srtt_p99 == duration('2 ms'))", Turn::On),
        ("groups.exists(g, g.live_flows > 0)", Turn::Off),
        ("true ? network.live_flows > 3 : false", Turn::On),
        ("!(clock.hour >= 12) || clock.hour != 12", Turn::Off),
    ] {
        assert_eq!(holds(when), expected, "{when}");
    }
}

#[test]
fn a_rule_for_hosts_is_decided_host_by_host() {
    let policy = simple(&format!("when = \"host.rack == 'r1'\"\n{IW}"), "");
    let decision = once(&policy, &view(6, 0.1, 0));
    assert_eq!(decision.rules[0].turn, None);
    assert_eq!((decision.rules[0].hosts.on, decision.rules[0].hosts.off), (3, 3));
    assert_eq!(decision.cues[0].scope.hosts, Addressees::Named(["h1", "h3", "h5"].map(String::from).to_vec()));
}

#[test]
fn many_named_hosts_take_more_than_one_cue() {
    let policy = simple(&format!("when = \"host.rack == 'r1'\"\n{IW}"), "");
    let decision = once(&policy, &view(400, 0.1, 0));
    let named = |cue: &policy::Cue| match &cue.scope.hosts {
        Addressees::Named(names) => names.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(decision.cues.iter().map(named).collect::<Vec<_>>(), [64, 64, 64, 8]);
    assert_eq!(decision.cues.iter().map(|cue| cue.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn hosts_that_stay_keep_what_they_have_when_others_come() {
    let policy = simple(&format!("when = \"host.live_flows > 5\"\nhold = \"60 s\"\n{IW}"), "");
    let mut history = History::default();
    decide(&policy, &view(4, 0.1, 0), &mut history);
    let mut later = view(6, 0.1, 10);
    later.hosts.remove(0);
    later.hosts.iter_mut().for_each(|host| host.live_flows = Some(1.0));
    let hosts = decide(&policy, &later, &mut history).rules[0].hosts;
    assert_eq!((hosts.held_on, hosts.off), (3, 2), "h1 to h3 are held, h4 and h5 are new");
}

#[test]
fn nobody_changes_sides_in_an_outage_after_a_restart_or_when_more_hosts_come() {
    let half = || {
        policy(&format!(
            "mode = \"enforce\"\nperiod = \"10 s\"\n[rollout]\nfraction = 0.5\n[[rule]]\nname = \"a\"\nwhen = \"true\"\n{IW}\n"
        ))
    };
    let key = || OracleKey::from_secret([1; 32]);
    let mut oracle = Oracle::new(half(), key(), History::default());
    let of = |oracle: &mut Oracle, present: &[usize], at_s: u64| -> Vec<usize> {
        let all = view(40, 0.1, at_s);
        let hosts = present.iter().map(|host| all.hosts[*host].clone()).collect();
        oracle.decide(&NetworkView { hosts, ..all });
        (0..present.len()).filter(|place| oracle.treats(*place)).map(|place| present[place]).collect()
    };
    let first = of(&mut oracle, &[0, 1, 2, 3, 4, 5, 6, 7], 10);
    assert_eq!(first.len(), 4);
    let sides = |treated: Vec<usize>, present: &[usize]| {
        for host in present.iter().filter(|host| **host < 8) {
            assert_eq!(treated.contains(host), first.contains(host), "h{host} of {present:?}");
        }
    };
    let others: Vec<usize> = (0..8).filter(|host| !first.contains(host)).collect();
    let all: Vec<usize> = (0..40).collect();
    for (i, present) in [&first[..], &others, &first[..1], &[0, 7, 3], &all, &all[20..], &all[..8]].iter().enumerate() {
        sides(of(&mut oracle, present, 20 + 10 * i as u64), present);
    }
    // a restart, and a rule that is changed, while those that are treated are away
    let history = History::after(oracle.epoch()).resume(oracle.progress());
    let mut anew = Oracle::new(half(), key(), history);
    sides(of(&mut anew, &others, 10), &others);
    anew.adopt(simple(&format!("when = \"true\"\n{IW}"), "[rollout]\nfraction = 0.5"), Progress::default());
    sides(of(&mut anew, &others, 20), &others);
    sides(of(&mut anew, &all, 30), &all);
}

#[test]
fn labels_and_patterns_choose_among_the_treated() {
    let text = "[rollout]\nfraction = 1.0\nlabels = { role = \"compute\" }";
    let policy = simple(&format!("when = \"true\"\nmatch = {{ hosts = [\"h1*\"] }}\n{IW}"), text);
    let mut network = view(20, 0.1, 0);
    network.hosts.iter_mut().take(15).for_each(|host| {
        host.labels.insert("role".into(), "compute".into());
    });
    let decision = once(&policy, &network);
    // of h0 to h14, those that begin with h1: h1 and h10 to h14
    assert_eq!((decision.treated, decision.rules[0].hosts.matched), (15, 6));
    let reached = network.hosts.iter().filter(|host| decision.cues[0].is_for(&host.name, &host.labels)).count();
    assert_eq!(reached, 6);
}

#[test]
fn a_policy_that_observes_sends_nothing() {
    let decision = once(&policy(&GOOD.replace("enforce", "observe")), &view(8, 0.1, 0));
    assert_eq!((decision.cues.len(), decision.to_send().len()), (1, 0));
}

#[test]
fn a_restarted_oracle_continues_counting() {
    let mut history = History::after(41);
    assert_eq!(decide(&policy(GOOD), &view(8, 0.1, 0), &mut history).epoch, 42);
}

#[test]
fn the_same_views_give_the_same_decisions() {
    let run = || {
        let policy = shipped("diurnal");
        let mut history = History::default();
        let utilization = |i: u64| 0.1 + 0.08 * (i % 7) as f64;
        (0..40).map(|i| decide(&policy, &view(30, utilization(i), i * 300), &mut history)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn what_must_be_collected_follows_from_what_is_asked() {
    let policy = policy(GOOD);
    let names = |list: &[&'static policy::Variable]| list.iter().map(|variable| variable.name).collect::<Vec<_>>();
    assert_eq!(names(&policy.collect.links), ["link.utilization"]);
    assert_eq!(
        names(&policy.collect.hosts),
        ["host.drop_rate", "host.sent_segments", "host.retransmitted_segments", "host.fct_p99", "host.srtt_p99"]
    );
}

#[test]
fn what_was_measured_more_than_two_periods_ago_is_unknown() {
    let rule = format!("when = \"network.max_link_utilization < 0.5\"\n{IW}");
    let constraint = "[[constraint]]\nname = \"heard\"\nholds = 'links.exists(l, l.age <= duration(\"20 s\"))'";
    let policy = simple(&rule, constraint);
    let aged = |ages: [Time; 2]| {
        let mut network = view(8, 0.1, 0);
        network.links.truncate(2);
        network.links.iter_mut().zip(ages).for_each(|(link, age)| link.age = Some(age));
        network
    };
    let turned = |network: &NetworkView| {
        let decision = once(&policy, network);
        (decision.rules[0].turn, decision.constraints[0].holds, decision.cues.len())
    };
    let (fresh, old) = (Time::from_secs(20), Time::from_ms(20_001));
    assert_eq!(turned(&aged([fresh, fresh])), (Some(Turn::On), Some(true), 1));
    // the second link alone is known; its age says that something was heard
    assert_eq!(turned(&aged([old, fresh])), (Some(Turn::On), Some(true), 1));
    assert_eq!(turned(&aged([old, old])), (Some(Turn::Unknown), Some(false), 0));
    let mut busy = aged([old, fresh]);
    busy.links[0].utilization = Some(0.9);
    assert_eq!(turned(&busy).0, Some(Turn::On), "the busy link has not been heard of");
    busy.links[0].age = Some(Time::ZERO);
    assert_eq!(turned(&busy).0, Some(Turn::Off));
    // its name, ends and rate are no measurements
    let kept = aged([old, old]).without_stale(policy.period * policy::STALE_PERIODS).into_owned();
    assert_eq!((kept.links[0].to.as_str(), kept.links[0].marks, kept.links[0].age), ("h0", Some(true), Some(old)));
    assert_eq!((kept.links[0].drop_rate, kept.links[0].up), (None, None));
}
