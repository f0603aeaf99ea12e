//! What operators see, of a small fleet and of the largest.

use super::*;
use crate::overview::OVERVIEW_MAX;
use bus::{Effective, InForce, Peer, Report};
use policy::{AgentCounts, History, Known, Oracle, OracleKey, Policy};
use std::sync::Arc;

const POLICY: &str = r#"
name = "p"
mode = "enforce"
period = "60 s"
allow_mixed_measures = true
[[constraint]]
name = "core"
holds = "network.max_link_utilization < 0.9"
[[rule]]
name = "always"
when = "network.live_flows >= 0"
match = { hosts = "all" }
set = { initial_cwnd = 20 }
"#;

fn policy() -> Policy {
    Policy::parse("p.toml", POLICY, Known::default()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// A watch that has seen one period of these hosts and links.
fn seen(hosts: Vec<Host>, links: Vec<Link>, reports: &[Report]) -> Watch {
    let mut oracle = Oracle::new(policy(), OracleKey::from_secret([7; 32]), History::default());
    let mut gathered = Gathered::new(oracle.policy());
    for report in reports {
        gathered.take(Time::from_secs(59), &Peer::Local, &report.clone().to_bytes());
    }
    let view = NetworkView { at: Time::from_secs(60), hosts, links, ..NetworkView::default() };
    let (decision, messages) = oracle.decide(&view);
    gathered.begin(decision.epoch, std::iter::once("h1"));
    let (verdict, mut watch) = (oracle.verdict(), Watch::default());
    watch.ended(&PeriodEnd {
        policy: "p",
        period: Time::from_secs(60),
        now: Time::from_secs(60),
        unix_s: 1000.5,
        view: &view,
        decision: &decision,
        sent: messages.len(),
        verdict: &verdict,
        status: &Status { agents: 3, hosts: view.hosts.len(), ..Status::default() },
        gathered: &gathered,
    });
    watch
}

fn host(name: &str) -> Host {
    Host { name: name.into(), live_flows: Some(2.0), srtt_us: vec![(100, 2)], ..Host::default() }
}

fn link(name: &str, to: &str, utilization: Option<f64>) -> Link {
    Link {
        name: name.into(),
        from: "s1".into(),
        to: to.into(),
        utilization,
        drop_rate: utilization.map(|_| 0.0),
        ..Link::default()
    }
}

fn report(host: &str, reverted: u64, differing: usize) -> Report {
    let effective = vec![Effective { differing, ..Effective::default() }];
    Report {
        host: Host { name: host.into(), ..Host::default() },
        counts: AgentCounts { reverted, expired: 2, ..AgentCounts::default() },
        in_force: vec![InForce { effective, ..InForce::default() }],
        ..Report::default()
    }
}

fn small() -> Watch {
    let links =
        vec![link("s1 a out", "h1", Some(0.2)), link("s1 b out", "s2", Some(0.5)), link("s1 c out", "s2", None)];
    seen(vec![host("h1"), host("h2")], links, &[report("h1", 1, 0), report("h1", 4, 3), report("h1", 1, 3)])
}

#[test]
fn an_operator_sees_what_was_decided_and_on_whom() {
    let watch = small();
    let overview = watch.overview(Time::from_secs(75), HostsAsked::default());
    assert_eq!((overview.age_s, overview.decided_unix_s, overview.period_s), (Some(15.0), 1000.5, 60.0));
    assert_eq!((overview.hosts, overview.treated, overview.differing, overview.expired), (2, 2, 1, 2));
    // 1 to 4, and 1 of an agent that began anew; what the first report says was before
    assert_eq!(overview.guard_trips, 4);
    assert_eq!((overview.rules[0].name.as_str(), overview.rules[0].on), ("always", 2), "{overview:?}");
    assert_eq!(overview.constraints, [("core".to_string(), Some(true))]);
    assert_eq!(
        overview.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(),
        ["s1 b out", "s1 a out", "s1 c out"]
    );
    assert!(overview.decisions[0].words.contains("always on for 2"), "{:?}", overview.decisions);
    let names = |asked: HostsAsked<'_>| {
        let overview = watch.overview(Time::from_secs(75), asked);
        (overview.host_lines.iter().map(|host| host.name.clone()).collect::<Vec<_>>(), overview.hosts_matched)
    };
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
    assert_eq!(names(HostsAsked::default()), (of(&["h1", "h2"]), 2), "the one that differs first");
    assert_eq!(names(HostsAsked { filter: "2", ..HostsAsked::default() }), (of(&["h2"]), 1));
    assert_eq!(names(HostsAsked { limit: 1, sort: "name", ..HostsAsked::default() }), (of(&["h1"]), 2));
    assert!(overview.host_lines[0].treated && !overview.host_lines[1].treated);
}

#[test]
fn a_rule_is_counted_where_it_is_in_force_and_where_a_guard_has_reverted_it() {
    let in_force = vec![InForce { rule: "always".into(), ..InForce::default() }];
    let tripped = Tripped {
        rule: "always".into(),
        why: "host.drop_rate = 0.042".into(),
        left: Time::from_secs(15),
        hold: Time::from_secs(20),
    };
    let reports = [
        Report { in_force: in_force.clone(), ..report("h1", 0, 0) },
        Report { reverted: vec![tripped.clone()], in_force: Vec::new(), ..report("h2", 1, 0) },
        // a second ago, when it had half a second left
        Report {
            reverted: vec![Tripped { left: Time::from_ms(500), ..tripped }],
            in_force: Vec::new(),
            ..report("h3", 1, 0)
        },
    ];
    let watch = seen(vec![host("h1"), host("h2"), host("h3")], vec![link("s1 a out", "h1", Some(0.2))], &reports);
    let overview = watch.overview(Time::from_secs(75), HostsAsked { sort: "name", ..HostsAsked::default() });
    let rule = &overview.rules[0];
    assert_eq!((rule.on, rule.in_force, rule.reverted), (3, 1, 1));
    let [none, reverted, over] = [0, 1, 2].map(|host: usize| &overview.host_lines[host].reverted[..]);
    assert!(none.is_empty() && over.is_empty());
    // a second of it had passed by the decision
    let right =
        RevertedLine { rule: "always".into(), why: "host.drop_rate = 0.042".into(), left_s: 14.0, hold_s: 20.0 };
    assert_eq!(reverted, [right]);
}

#[test]
fn a_rule_that_is_off_for_want_of_knowledge_says_what_is_missing_and_who_would_say_it() {
    let rule = RuleReport {
        name: "calm".into(),
        rank: 0,
        turn: Some(Turn::Unknown),
        values: vec!["network.max_link_utilization = unknown".into()],
        seen: vec![
            policy::Seen::named("network.live_flows", Some((1.0, 2.0))),
            policy::Seen::named("network.max_link_utilization", None),
        ],
        withheld: None,
        srtt_p99: None,
        hosts: policy::HostCounts { matched: 2, unknown: 2, ..policy::HostCounts::default() },
        lacking: Vec::new(),
    };
    let why = Watch::default().rule_line(0, &rule).why;
    assert!(why.starts_with("network.max_link_utilization is not known: no link is measured"), "{why}");
    assert!(why.contains("--link INTERFACE=RATE") && why.contains("`opentcp collect`"), "{why}");
}

#[test]
fn what_is_not_sent_treats_nobody() {
    let words = |is_enforced, is_paused| crate::overview::treated_words((1, 2), is_enforced, is_paused);
    assert_eq!(words(true, false), "1 of 2 hosts treated");
    assert_eq!(words(false, false), "1 of 2 hosts would be treated (observing; nothing is sent)");
    assert_eq!(words(true, true), "1 of 2 hosts would be treated (paused; nothing is sent)");
    let verdict = crate::overview::verdict_words("none", "the policy has no objective");
    assert_eq!(verdict, "no verdict: the policy has no objective");
}

#[test]
fn an_oracles_metrics_are_all_in_the_table() {
    let text = Arc::new(small().page()).text();
    let without: Vec<&str> = crate::METRICS
        .iter()
        .filter(|metric| !text.contains(&format!("\n{}", metric.full_name())))
        .map(|metric| metric.name)
        .collect();
    // there is no pair of periods yet
    assert_eq!(
        without,
        ["opentcp_oracle_verdict_change", "opentcp_oracle_verdict_change_low", "opentcp_oracle_verdict_change_high"]
    );
    let lines = [
        "opentcp_oracle_verdict{state=\"none\"} 1.0",
        "opentcp_oracle_verdict{state=\"unclear\"} 0.0",
        "opentcp_oracle_verdict{state=\"hurting\"} 0.0",
        "opentcp_oracle_links{class=\"switch\"} 2.0",
        "opentcp_oracle_links_unknown{class=\"switch\"} 1.0",
        "opentcp_oracle_links_utilization_max_ratio{class=\"host\"} 0.2",
        "opentcp_oracle_link_utilization_ratio{link=\"s1 b out\"} 0.5",
        "opentcp_oracle_guard_trips_total 4.0",
        "opentcp_oracle_constraint_holds{constraint=\"core\"} 1.0",
        "opentcp_oracle_last_decision_timestamp_seconds 1000.5",
    ];
    for line in lines {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(!text.contains("{link=\"s1 c out\"}"), "what is not known is not there");
    let early = Arc::new(Watch::default().page()).text();
    assert!(early.contains("opentcp_oracle_decisions_total 0.0") && !early.contains("_hosts"), "{early}");
}

#[test]
fn series_and_answers_are_bounded_whatever_the_fleet_is() {
    let name = |n: usize| format!("{n}{}", "\"".repeat(250));
    let hosts = (0..4000).map(|n| Host { rack: name(n)[..200].into(), ..host(&name(n)) }).collect();
    let links = (0..20_000).map(|n| link(&name(n), if n % 2 == 0 { "s2" } else { "s3" }, Some(0.5))).collect();
    let watch = seen(hosts, links, &[]);
    let text = Arc::new(watch.page()).text();
    let series = |metric: &str| text.lines().filter(|line| line.starts_with(&format!("{metric}{{"))).count();
    assert_eq!(series("opentcp_oracle_link_utilization_ratio"), SERIES_LINKS_MAX);
    assert!(text.lines().filter(|line| !line.starts_with('#')).count() < 1000);
    let asked = HostsAsked { limit: 10_000, ..HostsAsked::default() };
    let overview = watch.overview(Time::from_secs(61), asked);
    let json = serde_json::to_vec(&overview).unwrap();
    assert!(json.len() <= OVERVIEW_MAX, "{} bytes", json.len());
    assert!(!overview.host_lines.is_empty() && overview.hosts_matched == 4000);
    assert_eq!(serde_json::from_slice::<Overview>(&json).unwrap(), overview);
}

#[test]
fn a_dashboard_gets_every_host_and_link_part_by_part() {
    let hosts = (0..4000).map(|n| host(&format!("h{n}{}", "\"".repeat(40)))).collect();
    let links = (0..3000).map(|n| link(&format!("l{n}"), "s2", Some(0.5))).collect();
    let watch = seen(hosts, links, &[]);
    let whole = |list: BoardList| {
        let (mut hosts, mut links, mut parts) = (Vec::new(), Vec::new(), 0);
        loop {
            let part = watch.board(list, hosts.len() + links.len());
            assert!(serde_json::to_vec(&part).unwrap().len() <= OVERVIEW_MAX + 200);
            parts += 1;
            hosts.extend(part.hosts);
            links.extend(part.links);
            if hosts.len() + links.len() == part.total {
                return (hosts, links, parts);
            }
        }
    };
    let (hosts, _, parts) = whole(BoardList::Hosts);
    assert!(hosts.is_sorted_by(|a, b| a.name < b.name) && hosts.len() == 4000 && parts < 60, "{parts}");
    let (_, links, _) = whole(BoardList::Links);
    assert_eq!((links.len(), links[0].from.as_str(), links[0].to.as_str()), (3000, "s1", "s2"));
    assert!(watch.board(BoardList::Hosts, usize::MAX).hosts.is_empty());
}

#[test]
fn a_host_has_its_busiest_link_and_the_names_of_rules_in_force_as_bits() {
    let mut report = report("h1", 0, 0);
    report.in_force[0].rule = "always".into();
    let other = InForce { rule: "of another policy".into(), ..InForce::default() };
    report.in_force.push(other);
    let links = vec![link("s1 a out", "h1", Some(0.2)), link("s1 b out", "host h1", Some(0.7))];
    let watch = seen(vec![host("h1"), host("h2")], links, &[report]);
    let hosts = watch.board(BoardList::Hosts, 0).hosts;
    assert_eq!((hosts[0].in_force, hosts[0].rules), (1, 2));
    assert_eq!((hosts[0].utilization, hosts[0].leaf.as_str()), (Some(0.7), "s1"));
    assert_eq!((hosts[1].in_force, hosts[1].utilization), (0, None));
}

#[test]
fn what_became_of_rules_is_kept_as_spans_and_the_rest_as_events_both_bounded() {
    let mut oracle = Oracle::new(policy(), OracleKey::from_secret([7; 32]), History::default());
    let (gathered, mut watch) = (Gathered::new(oracle.policy()), Watch::default());
    let mut decide = |watch: &mut Watch, at: u64, is_paused: bool| {
        oracle.pause(is_paused);
        let hosts = vec![host("h1")];
        let view = NetworkView { at: Time::from_secs(60 * at), hosts, ..NetworkView::default() };
        let (decision, messages) = oracle.decide(&view);
        let (verdict, status) = (oracle.verdict(), Status::default());
        watch.ended(&PeriodEnd {
            policy: "p",
            period: Time::from_secs(60),
            now: Time::from_secs(60 * at),
            unix_s: 60.0 * at as f64,
            view: &view,
            decision: &decision,
            sent: messages.len(),
            verdict: &verdict,
            status: &status,
            gathered: &gathered,
        });
    };
    for (at, is_paused) in [(1, false), (2, false), (3, true), (4, false)] {
        decide(&mut watch, at, is_paused);
    }
    let spans = watch.board(BoardList::Spans, 0).spans;
    let seen: Vec<_> =
        spans.iter().map(|span| (span.state.as_str(), span.from_unix_s, span.to_unix_s, span.decisions)).collect();
    assert_eq!(seen, [("on", 60.0, Some(180.0), 2), ("paused", 180.0, Some(240.0), 1), ("on", 240.0, None, 1)]);
    let body = serde_json::json!({ "by": "alice (uid 0)", "policy": "p", "until": null });
    watch.noted(200.0, audit::Kind::Pause, &body);
    let events = watch.board(BoardList::Events, 0).events;
    assert_eq!(events[0].words, "1 of 1 hosts treated");
    assert_eq!(
        (events[1].kind.as_str(), events[1].words.as_str()),
        ("operator", "paused by alice (uid 0), until it is resumed")
    );
    for at in 5..2000 {
        decide(&mut watch, at, at % 2 == 0);
        watch.noted(200.0, audit::Kind::Guard, &serde_json::json!({ "host": "h".repeat(300), "reverted": 2 }));
    }
    assert!(watch.board(BoardList::Spans, 0).total <= 512 && watch.board(BoardList::Events, 0).total == 128);
}
