//! From rules to kernel settings, and to sentences about what this host cannot do.

use super::*;
use units::Rate;

fn rule(set: Settings) -> AgentRule {
    let sessions = policy::Sessions::default();
    AgentRule { policy: "p".into(), rule: "r".into(), sessions, set, deadline: Time::from_secs(90) }
}

fn plan(rule: &AgentRule, means: Means) -> Plan {
    let needs_ecn = BTreeSet::from(["dctcp".to_string()]);
    let algorithms = ["kernel:reno", "kernel:cubic", "kernel:dctcp", "bic", "dctcp", "mine"].map(str::to_string);
    let host = Surroundings {
        means,
        algorithms: &algorithms,
        needs_ecn: &needs_ecn,
        tick: Time::from_ms(4),
        clock: Clock::begin(),
        cgroup: "/web".into(),
    };
    Plan::of(std::slice::from_ref(rule), &host, &mut Names::default())
}

fn cc(name: &str) -> Settings {
    Settings { cc: Some(name.into()), ..Settings::default() }
}

#[test]
fn an_algorithm_is_ours_if_it_is_loaded_else_the_kernels_own() {
    let chosen = |name: &str| plan(&rule(cc(name)), Means::Both).rules.pop().map(|rule| rule.tuning);
    let tuning = |name: &str, needs_ecn| Some(Tuning { algorithm: Some(name.into()), needs_ecn, ..Tuning::default() });
    assert_eq!(chosen("bic"), tuning("ot_bic", false));
    assert_eq!(chosen("newreno"), tuning("reno", false));
    assert_eq!(chosen("dctcp"), tuning("ot_dctcp", true));
    assert_eq!(chosen("kernel:dctcp"), tuning("dctcp", true));
    assert_eq!(chosen("mine"), tuning("ot_mine", false));
    assert!(plan(&rule(cc("kernel:mine")), Means::Both).notes[0].contains("modprobe tcp_mine"));
    let nowhere = Settings { initial_cwnd: Some(20), ..cc("vegas") };
    let rest = plan(&rule(nowhere), Means::Both);
    assert_eq!(rest.rules[0].tuning, Tuning { initial_cwnd: Some(20), ..Tuning::default() }, "the rest is set");
    assert!(rest.notes[0].contains("neither ot_vegas") && rest.notes[0].starts_with("p/r: "), "{:?}", rest.notes);
}

#[test]
fn what_the_kernel_would_refuse_is_rounded_up() {
    let short = Settings { rto_min: Some(Time::from_ms(2)), ..Settings::default() };
    let both = plan(&rule(short), Means::Both);
    assert_eq!(both.rules[0].tuning.rto_min_us, Some(4001));
    assert_eq!(both.wishes[0].metrics.rto_min_ms, Some(2), "a route can set less");
}

#[test]
fn a_total_of_windows_is_for_the_program_alone() {
    let total = Settings { window_total: Some(units::Bytes::new(130_000)), ..Settings::default() };
    let by_program = plan(&rule(total.clone()), Means::Both);
    assert_eq!(by_program.rules[0].tuning.window_total, Some(130_000));
    assert!(by_program.notes.is_empty() && by_program.wishes.is_empty(), "{:?}", by_program.notes);
    let without = plan(&rule(total), Means::Routes);
    assert!(without.wishes.is_empty() && without.notes[0].contains("window_total is not set: it needs BPF"));
}

#[test]
fn pacing_is_a_limit_that_no_connection_reaches() {
    let on = Settings { pacing: Some(true), ..Settings::default() };
    assert_eq!(plan(&rule(on.clone()), Means::Bpf).rules[0].tuning.pacing_rate, Some(4_294_967_294));
    let limited = Settings { max_pacing_rate: Some(Rate::from_bps(8_000_000)), ..on };
    assert_eq!(plan(&rule(limited), Means::Bpf).rules[0].tuning.pacing_rate, Some(1_000_000));
}

#[test]
fn without_bpf_routes_say_what_they_can() {
    let all =
        Settings { initial_cwnd: Some(20), cwnd_clamp: Some(50), pacing: Some(true), ecn: Some(true), ..cc("cubic") };
    let alone = plan(&rule(all.clone()), Means::Routes);
    let right = Metrics { initial_cwnd: Some(20), cc: Some("cubic".into()), ..Metrics::default() };
    assert_eq!((alone.rules.len(), &alone.wishes[0].metrics), (0, &right));
    assert_eq!(alone.sysctls[ECN], "1");
    let lacking = ["pacing", "cwnd_clamp"].map(|name| format!("p/r: {name} is not set: it needs BPF"));
    assert_eq!(alone.notes, lacking);
    let mut near = rule(all);
    near.sessions.remote = Some("10.0.0.0/8".parse().unwrap());
    let near_plan = plan(&near, Means::Routes);
    assert!(near_plan.sysctls.is_empty() && near_plan.wishes[0].metrics.ecn, "the route alone");
    near.sessions.port = Some(80);
    let port = plan(&near, Means::Routes);
    assert!(port.wishes.is_empty() && port.notes[0].contains("port 80"), "{:?}", port.notes);
}

#[test]
fn a_rule_for_a_part_of_the_agents_cgroup_is_not_set_for_all_of_it() {
    let mut part = rule(Settings { initial_cwnd: Some(20), ..Settings::default() });
    for (cgroup, is_set) in [("/", true), ("/web", true), ("/web/shop", false), ("/we", false)] {
        part.sessions.cgroup = Some(cgroup.into());
        assert_eq!(!plan(&part, Means::Both).rules.is_empty(), is_set, "{cgroup}");
    }
}

fn plan_of(rules: &[AgentRule], means: Means, clock: Clock) -> Plan {
    let (needs_ecn, algorithms) = (BTreeSet::new(), ["kernel:reno", "kernel:cubic"].map(str::to_string));
    let (tick, cgroup) = (Time::from_ms(4), "/".to_string());
    let host = Surroundings { means, algorithms: &algorithms, needs_ecn: &needs_ecn, tick, clock, cgroup };
    Plan::of(rules, &host, &mut Names::default())
}

fn named(name: &str, set: Settings) -> AgentRule {
    AgentRule { rule: name.into(), ..rule(set) }
}

fn window(segments: u32) -> Settings {
    Settings { initial_cwnd: Some(segments), ..Settings::default() }
}

fn ecn(on: bool) -> Settings {
    Settings { ecn: Some(on), ..Settings::default() }
}

#[test]
fn the_kernel_gets_the_rules_in_their_order_each_with_its_deadline_since_boot() {
    let hand = bus::Hand::default();
    hand.set(Duration::from_secs(1000));
    let clock = hand.begin();
    hand.set(Duration::from_secs(1040));
    let mut near = named("near", window(20));
    near.sessions.remote = Some("10.0.0.0/8".parse().unwrap());
    near.sessions.port = Some(443);
    let later = AgentRule { deadline: Time::from_secs(200), ..named("all", window(30)) };
    let plan = plan_of(&[near, later], Means::Bpf, clock);
    let rules: Vec<_> =
        plan.rules.iter().map(|rule| (rule.number, rule.sessions.remote, rule.sessions.port, rule.deadline)).collect();
    let everywhere = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
    // deadlines count from when the clock was begun, 1000 s after the boot
    let right = [
        (1, ("10.0.0.0".parse().unwrap(), 8), Some(443), Duration::from_secs(1090)),
        (2, everywhere, None, Duration::from_secs(1200)),
    ];
    assert_eq!(rules, right);
    assert!(plan.wishes.is_empty() && plan.sysctls.is_empty(), "{plan:?}");
}

#[test]
fn more_rules_than_the_kernel_holds_are_cut_at_the_end_and_reported() {
    let rules: Vec<AgentRule> = (0..RULES_MAX as u32 + 2).map(|n| named(&n.to_string(), window(n + 1))).collect();
    let plan = plan_of(&rules, Means::Bpf, Clock::begin());
    let windows: Vec<_> = plan.rules.iter().filter_map(|rule| rule.tuning.initial_cwnd).collect();
    assert_eq!(windows, (1..=RULES_MAX as u32).collect::<Vec<_>>());
    assert_eq!(plan.notes, [format!("{} rules, of which the first {RULES_MAX} are set", RULES_MAX + 2)]);
    // a rule that says nothing to the program takes no place there
    assert!(plan_of(&[named("ecn", ecn(true))], Means::Both, Clock::begin()).rules.is_empty());
}

#[test]
fn of_two_rules_that_set_ecn_for_all_the_first_counts() {
    for on in [true, false] {
        let plan = plan_of(&[named("one", ecn(on)), named("two", ecn(!on))], Means::Both, Clock::begin());
        assert_eq!(plan.sysctls[ECN], if on { "1" } else { "0" });
    }
}

#[test]
fn ecn_that_cannot_be_set_as_asked_is_reported_with_its_rule() {
    let note = |remote: Option<&str>, port, on, means| {
        let mut rule = named("r", ecn(on));
        (rule.sessions.remote, rule.sessions.port) = (remote.map(|remote| remote.parse().unwrap()), port);
        let plan = plan_of(&[rule], means, Clock::begin());
        assert!(plan.sysctls.is_empty(), "{plan:?}");
        (plan.wishes.len(), plan.notes.join("|"))
    };
    let near = Some("10.0.0.0/8");
    assert_eq!(note(near, None, true, Means::Both), (1, String::new()), "a route can enable it");
    let (wishes, why) = note(near, None, false, Means::Both);
    assert_eq!((wishes, why.as_str()), (0, "p/r: ecn = false is not set: a route to 10.0.0.0/8 cannot disable it"));
    let (wishes, why) = note(None, Some(443), true, Means::Both);
    assert_eq!((wishes, why.as_str()), (0, "p/r: ecn is not set: it is for port 443, and routes have no ports"));
    let (_, why) = note(None, None, true, Means::Bpf);
    assert_eq!(why, "p/r: ecn is not set: it needs routes or a sysctl, which this agent does not touch");
}

#[test]
fn beside_the_program_routes_get_only_what_it_cannot_set() {
    let all = Settings {
        rto_min: Some(Time::from_us(2500)),
        cwnd_clamp: Some(50),
        window_clamp: Some(units::Bytes::new(9000)),
        ..Settings { initial_cwnd: Some(20), ..cc("cubic") }
    };
    let both = plan_of(&[named("r", all.clone())], Means::Both, Clock::begin());
    // a route's RTO is in whole milliseconds, and is no shorter than asked for
    let few = Metrics { initial_cwnd: Some(20), rto_min_ms: Some(3), ..Metrics::default() };
    assert_eq!(both.wishes, [Wish { remote: None, metrics: few.clone() }]);
    let alone = plan_of(&[named("r", all)], Means::Routes, Clock::begin());
    let every = Metrics { cc: Some("cubic".into()), window: Some(9000), ..few };
    assert_eq!((alone.wishes, alone.rules), (vec![Wish { remote: None, metrics: every }], Vec::new()));
    let paced = Settings {
        max_pacing_rate: Some(Rate::from_mbps(8)),
        delayed_ack_max: Some(Time::from_ms(5)),
        ..Settings::default()
    };
    let paced = plan_of(&[named("r", paced)], Means::Routes, Clock::begin());
    assert_eq!(
        (paced.wishes.len(), paced.notes),
        (
            0,
            ["max_pacing_rate", "delayed_ack_max"].map(|name| format!("p/r: {name} is not set: it needs BPF")).to_vec()
        )
    );
}

#[test]
fn values_larger_than_the_kernels_are_its_largest() {
    let huge = Settings {
        window_clamp: Some(units::Bytes::new(1 << 40)),
        window_total: Some(units::Bytes::new(1 << 40)),
        delayed_ack_max: Some(Time::from_secs(5000)),
        ..Settings::default()
    };
    let tuning = plan_of(&[named("r", huge)], Means::Bpf, Clock::begin()).rules.remove(0).tuning;
    // 5000 s are more than 2^32 us
    let most = Some(u32::MAX);
    assert_eq!((tuning.window_clamp, tuning.window_total, tuning.delack_max_us), (most, most, most));
}

#[test]
fn of_two_wishes_for_a_route_the_first_gives_each_metric_that_it_has() {
    let first = Metrics { initial_cwnd: Some(20), cc: Some("reno".into()), ..Metrics::default() };
    let second =
        Metrics { initial_cwnd: Some(30), rto_min_ms: Some(5), ecn: true, cc: Some("cubic".into()), window: Some(9) };
    let both = Metrics { initial_cwnd: Some(20), cc: Some("reno".into()), ..second.clone() };
    assert_eq!(first.or(&second), both);
}
