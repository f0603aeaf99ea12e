//! What a status says of the effect of settings.

use super::*;
use policy::Sessions;

fn connection(algorithm: &str, remote_port: u16, cwnd: u32) -> Connection {
    Connection {
        remote: "10.0.0.1".parse().unwrap(),
        local_port: 1,
        remote_port,
        algorithm: algorithm.into(),
        rto_us: 204_000,
        ato_us: 40_000,
        srtt_us: 100,
        cwnd,
        rcv_ssthresh: 1,
        max_pacing_rate: u64::MAX,
        ecn: false,
        heard_ms: None,
        cgroup: None,
        inode: 0,
    }
}

fn rule(port: Option<u16>, set: Settings) -> AgentRule {
    let sessions = Sessions { port, ..Sessions::default() };
    AgentRule { policy: "p".into(), rule: "r".into(), sessions, set, deadline: Time::from_secs(1) }
}

#[test]
fn connections_that_do_not_have_what_was_set_are_counted() {
    let cc = |name: &str| Settings { cc: Some(name.into()), ..Settings::default() };
    let rules = [rule(Some(80), cc("dctcp")), rule(None, Settings { cwnd_clamp: Some(20), ..cc("newreno") })];
    let open = [("ot_dctcp", 80, 5), ("cubic", 80, 50), ("reno", 443, 5), ("cubic", 443, 5), ("ot_newreno", 443, 5)];
    let open = open.map(|(algorithm, port, cwnd)| connection(algorithm, port, cwnd));
    let seen = Seen { open: &open, ended: &Ended::default(), routes: &Table::default() };
    let shown = in_force(&rules, Time::ZERO, &seen, &mut Names::default());
    let of = |rule: usize, setting: &str| {
        shown[rule].effective.iter().find(|one| one.setting == setting).map(|one| (one.connections, one.differing))
    };
    assert_eq!(of(0, "cc"), Some((2, 1)), "cubic on port 80");
    // port 80 has its algorithm from the first rule, but not its clamp
    assert_eq!((of(1, "cc"), of(1, "cwnd_clamp")), (Some((5, 1)), Some((5, 1))));
    assert!(is_named("bbr", "kernel:bbr") && is_named("ot_bbr", "bbr") && !is_named("ot_bbr", "kernel:bbr"));
}

fn found_of(set: Settings, open: &[Connection], ended: &Ended) -> Vec<(String, Option<String>, usize)> {
    let seen = Seen { open, ended, routes: &Table::default() };
    let mut names = Names::default();
    let shown = in_force(&[rule(None, set)], Time::ZERO, &seen, &mut names).remove(0);
    shown.effective.into_iter().map(|one| (one.setting, one.found, one.connections)).collect()
}

#[test]
fn a_status_says_what_connections_have_and_not_what_was_asked_for() {
    let one = Connection { rto_us: 204_000, ato_us: 40_000, rcv_ssthresh: 1000, ..connection("reno", 80, 12) };
    let other = Connection {
        rto_us: 24_000,
        ato_us: 50_000,
        rcv_ssthresh: 2500,
        max_pacing_rate: 1_000_000,
        ecn: true,
        ..connection("cubic", 80, 40)
    };
    let open = [one.clone(), other, one];
    let set = Settings {
        cc: Some("vegas".into()),
        rto_min: Some(Time::from_ms(5)),
        cwnd_clamp: Some(7),
        pacing: Some(true),
        delayed_ack_max: Some(Time::from_ms(5)),
        window_clamp: Some(units::Bytes::new(9)),
        window_total: Some(units::Bytes::new(99_000)),
        ..Settings::default()
    };
    let found = found_of(set, &open, &Ended::default());
    let says = |setting: &str| {
        let row = found.iter().find(|(name, ..)| name == setting).expect("it was asked for");
        assert_eq!(row.2, 3, "{row:?}");
        row.1.clone().unwrap_or_default()
    };
    assert_eq!(says("cc"), "cubic on 1, reno on 2");
    assert_eq!(says("rto_min"), "RTOs from 24 ms", "the least");
    assert_eq!(says("cwnd_clamp"), "windows up to 40 segments", "the most");
    // 1,000,000 B/s
    assert_eq!(says("pacing"), "1 pace, from 8 Mbit/s");
    assert_eq!(says("delayed_ack_max"), "ACKs wait for up to 50 ms");
    assert_eq!(says("window_clamp"), "up to 2500 bytes advertised");
    // 1000 + 2500 + 1000
    assert_eq!(says("window_total"), "4500 bytes advertised at most, by all together");
    let ecn = found_of(Settings { ecn: Some(true), ..Settings::default() }, &open, &Ended::default());
    assert!(ecn[0].1.as_ref().is_some_and(|text| text.starts_with("1 agreed on it; net.ipv4.tcp_ecn is")), "{ecn:?}");
}

#[test]
fn without_a_connection_there_is_nothing_to_be_seen() {
    let set = Settings { cc: Some("vegas".into()), initial_cwnd: Some(20), ..Settings::default() };
    let none = found_of(set, &[], &Ended::default());
    let rows: Vec<_> = none.iter().map(|(name, found, count)| (name.as_str(), found.is_none(), *count)).collect();
    assert_eq!(rows, [("initial_cwnd", true, 0), ("cc", true, 0)]);
    let paced = Settings { pacing: Some(true), ..Settings::default() };
    let unpaced = found_of(paced, &[connection("reno", 80, 5)], &Ended::default());
    assert_eq!(unpaced[0].1.as_deref(), Some("no limit, none paces by it"));
}

#[test]
fn a_rule_for_a_port_is_for_both_ends_that_have_it_and_one_for_a_prefix_for_its_hosts() {
    let mut web = rule(Some(80), Settings::default());
    let from_us = connection("reno", 80, 5);
    let to_us = Connection { local_port: 80, ..connection("reno", 50_000, 5) };
    assert!(is_for(&web, &from_us) && is_for(&web, &to_us) && !is_for(&web, &connection("reno", 81, 5)));
    // the connections are to 10.0.0.1
    web.sessions.remote = Some("10.0.0.0/24".parse().unwrap());
    assert!(is_for(&web, &from_us));
    web.sessions.remote = Some("10.0.1.0/24".parse().unwrap());
    assert!(!is_for(&web, &from_us));
}

#[test]
fn a_connection_whose_rto_or_pace_cannot_come_from_its_rule_is_reported() {
    let of = |setting: &str, set: Settings, open: Connection| differing(setting, (&rule(None, set), &[]), &[&open]);
    let rto = |ms| Settings { rto_min: Some(Time::from_ms(ms)), ..Settings::default() };
    // the connection's RTO is 204 ms
    assert_eq!(of("rto_min", rto(300), connection("reno", 80, 5)), 1);
    assert_eq!(of("rto_min", rto(204), connection("reno", 80, 5)), 0, "longer RTOs come from longer round trips");
    let clamp = Settings { cwnd_clamp: Some(5), ..Settings::default() };
    assert_eq!(of("cwnd_clamp", clamp.clone(), connection("reno", 80, 5)), 0);
    assert_eq!(of("cwnd_clamp", clamp, connection("reno", 80, 6)), 1);
    let paced = Settings { max_pacing_rate: Some(units::Rate::from_mbps(8)), ..Settings::default() };
    assert_eq!(of("max_pacing_rate", paced.clone(), connection("reno", 80, 5)), 1, "it has no limit");
    let limited = Connection { max_pacing_rate: 1_000_000, ..connection("reno", 80, 5) };
    assert_eq!(of("max_pacing_rate", paced, limited), 0);
}

#[test]
fn what_is_left_of_a_rule_counts_from_now_and_some_settings_stay_until_a_connection_closes() {
    let set = Settings { initial_cwnd: Some(20), cwnd_clamp: Some(7), ..Settings::default() };
    let seen = Seen { open: &[], ended: &Ended::default(), routes: &Table::default() };
    let shown = in_force(&[rule(None, set)], Time::from_ms(400), &seen, &mut Names::default()).remove(0);
    // the rule's deadline is at 1 s
    assert_eq!((shown.policy.as_str(), shown.rule.as_str(), shown.left), ("p", "r", Time::from_ms(600)));
    let rows: Vec<_> =
        shown.effective.iter().map(|one| (one.setting.as_str(), one.asked.as_str(), one.until_close)).collect();
    assert_eq!(rows, [("initial_cwnd", "20", true), ("cwnd_clamp", "7", false)]);
    let late = in_force(&[rule(None, Settings::default())], Time::from_secs(9), &seen, &mut Names::default());
    assert_eq!(late[0].left, Time::ZERO);
}
