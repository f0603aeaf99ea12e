//! Settings as the enforcer has them.

use super::*;
use policy::Sessions;
use units::{Bytes, Time};

fn rule(name: &str, remote: Option<&str>, port: Option<u16>, set: Settings) -> AgentRule {
    AgentRule {
        policy: "p".to_string(),
        rule: name.to_string(),
        sessions: Sessions { remote: remote.map(|text| text.parse().expect("a prefix")), port, cgroup: None },
        set,
        deadline: Time::from_secs(10),
    }
}

#[test]
fn of_every_setting_the_first_rule_that_is_for_a_flow_counts() {
    let cc = |name: &str| Settings { cc: Some(name.to_string()), ..Settings::default() };
    let initial = |n| Settings { initial_cwnd: Some(n), ..Settings::default() };
    let mut batch = rule("batch", None, None, cc("vegas"));
    batch.sessions.cgroup = Some("/batch".to_string());
    let rules = [
        batch,
        rule("web", None, Some(443), initial(20)),
        rule("far", Some("198.51.100.0/24"), None, cc("bbr")),
        rule("near", Some("198.51.0.0/16"), None, cc("yeah")),
        rule("all", None, None, Settings { cc: Some("cubic".to_string()), ..initial(5) }),
        rule("fits", None, Some(9000), Settings { window_total: Some(Bytes::new(130_000)), ..Settings::default() }),
    ];
    let places = places(&rules);
    for (client, port) in
        [("198.51.100.7", 443), ("198.51.100.7", 80), ("198.51.7.7", 443), ("203.0.113.1", 443), ("203.0.113.1", 80)]
    {
        let client = client.parse().expect("an address");
        let fits = |(clients, its): &&Place| {
            clients.is_none_or(|prefix| prefix.contains(client)) && its.is_none_or(|its| its == port)
        };
        let &(clients, its) = places.iter().find(fits).expect("one is for all");
        // as a host's agent resolves it
        let wanted = AgentRule::settings_of(&rules, client, port, "");
        assert_eq!(settings(&rules, clients, its), wanted, "{client} {port}");
    }
    let effective_at = |at: usize| {
        let AgentRule { sessions, .. } = &rules[at];
        let all = effective(&rules[at], &settings(&rules, sessions.remote, sessions.port), (7, 3));
        all.into_iter().map(|one| (one.setting, one.found.is_some(), one.connections)).collect::<Vec<_>>()
    };
    assert_eq!(effective_at(0), [("cc".to_string(), false, 0)], "packets do not show their cgroup");
    assert_eq!(effective_at(1), [("initial_cwnd".to_string(), true, 7)]);
    assert_eq!(effective_at(2), [("cc".to_string(), true, 7)]);
    assert_eq!(effective_at(5), [("window_total".to_string(), true, 3)], "of the flows that come");
}

fn cc(name: &str) -> Settings {
    Settings { cc: Some(name.to_string()), ..Settings::default() }
}

#[test]
fn a_configuration_has_what_was_set_and_linuxs_defaults() {
    let plain = config(&cc("cubic")).expect("it is built in");
    let linux = Config::linux(built_in("cubic").expect("it is built in"));
    assert_eq!(
        (plain.initial_cwnd, plain.rto_min, plain.cwnd_clamp),
        (linux.initial_cwnd, linux.rto_min, linux.cwnd_clamp)
    );
    assert_eq!((plain.max_pacing_rate, plain.pacing), (linux.max_pacing_rate, linux.pacing));
    let set = Settings {
        initial_cwnd: Some(20),
        rto_min: Some(Time::from_ms(5)),
        cwnd_clamp: Some(50),
        max_pacing_rate: Some(units::Rate::from_mbps(8)),
        pacing: Some(true),
        ..cc("bbr")
    };
    let all = config(&set).expect("it is built in");
    assert_eq!((all.algorithm.name(), all.initial_cwnd, all.rto_min), ("bbr", 20, Time::from_ms(5)));
    // 8 Mbit/s are 1,000,000 B/s
    assert_eq!((all.cwnd_clamp, all.max_pacing_rate, all.pacing), (50, 1_000_000, PacingMode::On));
    let off = config(&Settings { pacing: Some(false), ..cc("cubic") }).expect("it is built in");
    assert_eq!(off.pacing, PacingMode::Auto);
    assert!(config(&Settings::default()).is_err_and(|why| why.contains("needs `cc`")));
}

#[test]
fn servers_without_a_rule_are_bounded_in_what_they_send_to_a_host_with_a_total() {
    let host: Prefix = "10.0.0.0/8".parse().expect("a prefix");
    let far: Prefix = "198.51.100.0/24".parse().expect("a prefix");
    let total = Settings { window_total: Some(Bytes::new(130_000)), ..Settings::default() };
    let rule = bounded(&total, host, (Some(far), Some(443))).expect("there is a total");
    // the far end is the server here, and the host the client
    assert_eq!((rule.servers, rule.clients, rule.port), (Some(far), Some(host), Some(443)));
    assert_eq!(rule.window_total, Some(Bytes::new(130_000)));
    assert!(matches!(rule.treatment, Treatment::Enforce(config) if config.algorithm.name() == "cubic"));
    assert!(bounded(&cc("bbr"), host, (None, None)).is_none());
    assert!(is_total_alone(&total) && !is_total_alone(&Settings { cc: Some("bbr".to_string()), ..total }));
    assert!(!is_total_alone(&Settings::default()));
}

#[test]
fn of_what_a_rule_asks_the_status_says_what_is_done_in_the_network() {
    let ask = Settings {
        delayed_ack_max: Some(Time::from_ms(5)),
        ecn: Some(true),
        rto_min: Some(Time::from_ms(5)),
        ..cc("bbr")
    };
    let rule = rule("r", None, None, ask.clone());
    let rows = |all: &Settings| {
        let row = |one: Effective| (one.setting, one.found.is_some(), one.connections, one.differing);
        effective(&rule, all, (7, 3)).into_iter().map(row).collect::<Vec<_>>()
    };
    let row = |name: &str, is_done: bool| {
        let (connections, differing) = if is_done { (7, 0) } else { (0, 7) };
        (name.to_string(), is_done, connections, differing)
    };
    // an enforcer sends neither a host's ACKs nor its handshake's ECN
    let right = [row("cc", true), row("rto_min", true), row("delayed_ack_max", false), row("ecn", false)];
    assert_eq!(rows(&ask), right);
    // where an earlier rule has another algorithm, this rule's is not what flows have
    let right = [row("cc", false), row("rto_min", true), row("delayed_ack_max", false), row("ecn", false)];
    assert_eq!(rows(&Settings { cc: Some("cubic".to_string()), ..ask.clone() }), right);
    // without an algorithm nothing is enforced
    assert!(rows(&Settings { cc: None, ..ask }).iter().all(|(_, is_done, ..)| !is_done));
}
