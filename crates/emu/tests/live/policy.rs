//! A policy on real hosts, in real time: when rules are in force, their effect on connections, and guards. Root only; one
//! test at a time on a machine.

use crate::run_support::{self, machine};
use emu::{Emulated, Slowdown, Watch, emulate};
use results::{Arm, CueEvent, CueRow};
use scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::scenario_in;
use units::Time;

/// Runs once at an instant of a run.
struct Glance<F> {
    at: Time,
    look: Option<F>,
}

impl<F: FnOnce()> Watch for Glance<F> {
    fn on_progress(&mut self, now: Time) -> bool {
        if now >= self.at
            && let Some(look) = self.look.take()
        {
            look();
        }
        true
    }
}

/// A scenario with the policy of its `[policy]`, the file `p.toml`.
fn scenario(folder: &Path, policy: &str, text: &str) -> Scenario {
    fs::write(folder.join("p.toml"), policy).unwrap();
    scenario_in(folder, text)
}

/// A valid run of a scenario with the policy of its `[policy]`, the file `p.toml`; `look` runs at `at`. Captures are in `folder`,
/// if requested. None, and a printed reason, where no run is possible.
fn run(folder: &Path, policy: &str, text: &str, at: Time, pcap: bool, mut look: impl FnMut()) -> Option<Emulated> {
    let scenario = scenario(folder, policy, text);
    let captures = pcap.then(|| folder.to_path_buf());
    run_support::valid("policy", 1.0, || {
        emulate(&scenario, Slowdown::NONE, captures.clone(), &mut Glance { at, look: Some(&mut look) })
    })
}

/// Output of `ss` for the connections that `host` of the current run has opened.
fn connections(host: &str) -> String {
    let found = emu::hosts::find(host).expect("a run is under way");
    let namespace = format!("--net={}", found.namespace().display());
    let filter = format!("sport >= {}", emu::address::SENDER_PORT);
    let out = Command::new("nsenter").args([&namespace, "ss", "-Htin", &filter]).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The numbers after `key:` in the output of `ss`.
fn numbers(shown: &str, key: &str) -> Vec<f64> {
    let value = |word: &str| word.strip_prefix(key)?.strip_prefix(':')?.split(['/', ',']).next()?.parse().ok();
    shown.split_whitespace().filter_map(value).collect()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Instants of an event, seconds, in order.
fn times(cues: &[CueRow], event: CueEvent) -> Vec<f64> {
    cues.iter().filter(|row| row.event == event).map(|row| row.time_ns as f64 / 1e9).collect()
}

#[test]
fn a_rule_can_set_linuxs_own_algorithm() {
    let Some(_machine) = machine() else { return };
    let policy = r#"
        mode = "enforce"
        period = "2 s"
        [[rule]]
        name = "own"
        when = "network.live_flows >= 1"
        set = { cc = "kernel:reno" }
    "#;
    let text = r#"
        duration = "5 s"
        [network]
        topology = { star = { hosts = 2 } }
        rate = "100 Mbit/s"   # with what waits in the host an RTT is 10 ms, and a decision needs T above 100 RTTs
        delay = "100 us"
        queue = { drop_tail = { packets = 20 } }
        [tcp]
        cc = "kernel:cubic"
        [policy]
        file = "p.toml"
        [[traffic]]
        bulk = { from = "h1", to = "h2" }
    "#;
    let folder = folder();
    let mut shown = String::new();
    let Some(run) = run(folder.path(), policy, text, Time::from_ms(4500), false, || shown = connections("h1")) else {
        return;
    };
    assert_eq!(run.results.rules[0].on, 2, "at 2 and 4 s: {:?}", run.results.cues);
    assert!(shown.split_whitespace().any(|word| word == "reno"), "{shown}");
}

#[test]
fn a_rule_is_in_force_while_its_condition_holds_and_half_of_the_hosts_are_treated() {
    let Some(_machine) = machine() else { return };
    let policy = r#"
        mode = "enforce"
        period = "60 s"
        [[rule]]
        name = "calm"
        when = "network.max_link_utilization < 0.70"
        set = { initial_cwnd = 20 }
        [rollout]
        fraction = 0.5
    "#;
    let text = r#"
        duration = "10 s"
        [network]
        topology = { star = { hosts = 4 } }
        rate = "200 Mbit/s"
        delay = "100 us"
        queue = { drop_tail = { packets = 10 } }
        [tcp]
        cc = "kernel:cubic"
        [policy]
        file = "p.toml"
        period = "1 s"
        [[traffic]]
        name = "epoch"
        bulk = { from = "h1", to = "h2" }
        start = "3200 ms"
        stop = "6 s"
        [[traffic]]
        name = "short"
        all_to_all = { bytes = "2 kB", rounds = 1000, connections = "new", think = "50 ms" }
    "#;
    let folder = folder();
    let Some(run) = run(folder.path(), policy, text, Time::NEVER, false, || ()) else { return };
    let cues = &run.results.cues;
    let (sent, withheld) = (times(cues, CueEvent::Sent), times(cues, CueEvent::Withheld));
    // there are no measurements at first; the queue of the congestion episode drains within a period, which is
    // so long that 100 RTTs of the episode, as connections remember them, are less
    assert!(withheld.iter().any(|at| (4.8..6.2).contains(at)), "{withheld:?}");
    assert!(
        sent.iter().any(|at| (0.8..3.2).contains(at)) && sent.iter().any(|at| (7.8..10.0).contains(at)),
        "{sent:?}, withheld {:?}",
        cues.iter().filter(|row| row.event == CueEvent::Withheld).map(|row| &*row.reason).collect::<Vec<_>>()
    );
    assert!(!sent.iter().any(|at| (4.2..6.1).contains(at)), "{sent:?}");
    let taken: Vec<&str> = cues.iter().filter(|row| row.event == CueEvent::Taken).map(|row| &*row.host).collect();
    assert!(taken.len() == 4 && taken[..2] == taken[2..], "two hosts, before the episode and after it: {taken:?}");
    assert_eq!(times(cues, CueEvent::Expired).len(), 2, "the lifetime ends in the episode");
    let flows = &run.results.flows;
    for flow in flows.iter().filter(|flow| flow.start_ns > 100_000_000) {
        assert_eq!(flow.arm == Some(Arm::Treated), taken.contains(&&*flow.src), "{flow:?}");
    }
}

#[test]
fn a_connection_belongs_to_its_receiver_where_all_that_is_set_acts_on_what_is_received() {
    let Some(_machine) = machine() else { return };
    let policy = r#"
        mode = "enforce"
        period = "60 s"
        [[rule]]
        name = "narrow"
        when = "true"
        match = { hosts = "treated" }
        set = { window_clamp = "64 kB" }
        [rollout]
        fraction = 0.5
    "#;
    let text = r#"
        duration = "2 s"
        [network]
        topology = { star = { hosts = 2 } }
        rate = "200 Mbit/s"
        delay = "100 us"
        [tcp]
        cc = "kernel:cubic"
        [policy]
        file = "p.toml"
        period = "500 ms"
        [[traffic]]
        name = "short"
        all_to_all = { bytes = "20 kB", rounds = 1000, connections = "new", think = "50 ms" }
    "#;
    let folder = folder();
    let Some(run) = run(folder.path(), policy, text, Time::NEVER, false, || ()) else { return };
    let taken = run.results.cues.iter().find(|row| row.event == CueEvent::Taken).expect("one of two is treated");
    let flows = run.results.flows.iter().filter(|flow| flow.start_ns > 100_000_000);
    for flow in flows {
        assert_eq!(flow.arm == Some(Arm::Treated), flow.dst == taken.host, "{flow:?}");
    }
}

/// Payload of a full segment.
const MSS: usize = 1448;

/// A pause after which a new flight starts, seconds.
const PAUSE_S: f64 = 1.0;

/// What a connection sends between two pauses.
#[derive(Debug)]
struct Flight {
    /// Its data segments before the first ACK of any.
    first: usize,
    /// When the last data after it was sent, by the capture's clock, seconds.
    ended: f64,
}

/// The flights of the connection from port `from` in a capture at its sender, and when it sent its first data.
fn flights(pcap: &[u8], from: u16) -> (f64, Vec<Flight>) {
    let mut rest = &pcap[24..];
    let mut flights: Vec<Flight> = Vec::new();
    // time of the first data, and the first byte of the current flight
    let (mut began, mut first) = (f64::NAN, None);
    while rest.len() >= 16 {
        let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let at = f64::from(number(0)) + f64::from(number(4)) / 1e9;
        let (packet, next) = rest[16..].split_at(number(8) as usize);
        rest = next;
        // after Ethernet's header
        let ip = &packet[14..];
        let tcp = &ip[usize::from(ip[0] & 15) * 4..];
        let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let long = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
        let payload = usize::from(u16::from_be_bytes([ip[2], ip[3]]))
            - usize::from(ip[0] & 15) * 4
            - usize::from(tcp[12] >> 4) * 4;
        if word(0) == from && payload > 0 {
            if flights.last().is_none_or(|flight| at > flight.ended + PAUSE_S) {
                flights.push(Flight { first: 0, ended: at });
                first = Some(long(4));
                began = began.min(at);
            }
            let flight = flights.last_mut().expect("one has begun");
            flight.ended = at;
            if first.is_some() {
                // the kernel sends several at once
                flight.first += payload.div_ceil(MSS);
            }
        } else if word(2) == from && first.is_some_and(|first| long(8).wrapping_sub(first) as i32 > 0) {
            first = None;
        }
    }
    (began, flights)
}

/// By a flow's group and host: the flights of its connection, in the run's time.
fn all_flights(folder: &Path, run: &Emulated) -> BTreeMap<String, Vec<Flight>> {
    let of = |flow: &results::FlowRow| {
        let pcap = fs::read(folder.join(format!("{}.pcap", flow.src))).unwrap();
        let (began, mut flights) = flights(&pcap, emu::address::sender_port(flow.flow as u32));
        for flight in &mut flights {
            flight.ended += flow.start_ns as f64 / 1e9 - began;
        }
        (format!("{} {}", flow.group, flow.src), flights)
    };
    run.results.flows.iter().map(of).collect()
}

#[test]
fn first_flights_and_rtos_of_treated_hosts_follow_the_rule() {
    let Some(_machine) = machine() else { return };
    let policy = r#"
        mode = "enforce"
        period = "60 s"
        [[rule]]
        name = "fast"
        when = "network.max_link_utilization < 0.99"
        match = { hosts = ["h1"] }
        set = { initial_cwnd = 20, rto_min = "2 ms" }
    "#;
    let text = r#"
        duration = "3 s"
        [network]
        topology = { star = { hosts = 4 } }
        rate = "100 Mbit/s"
        delay = "2 ms"
        queue = { drop_tail = { packets = 20 } }
        [tcp]
        cc = "kernel:cubic"
        initial_cwnd = 3
        [policy]
        file = "p.toml"
        period = "1200 ms"
        [[traffic]]
        name = "before"
        bulk = { from = "h1", to = "h2", bytes = "100 kB" }
        start = "200 ms"
        [[traffic]]
        name = "treated"
        bulk = { from = "h1", to = "h2" }
        start = "1500 ms"
        [[traffic]]
        name = "control"
        bulk = { from = "h3", to = "h4" }
        start = "1500 ms"
    "#;
    let folder = folder();
    let mut rtos = Vec::new();
    let look = || rtos = ["h1", "h3"].map(|host| rto(&connections(host))).to_vec();
    let Some(run) = run(folder.path(), policy, text, Time::from_ms(2200), true, look) else { return };
    let flights = all_flights(folder.path(), &run);
    let first: Vec<(&str, usize)> = flights.iter().map(|(flow, flights)| (flow.as_str(), flights[0].first)).collect();
    assert_eq!(first, [("before h1", 3), ("control h3", 3), ("treated h1", 20)]);
    let set = run.results.cues.iter().find(|row| row.event == CueEvent::Sent).expect("the rule fires").set.clone();
    let asked = "initial_cwnd = 20, rto_min = 2 ms";
    let effective = least_ms(&set);
    assert!(set.starts_with(asked) && (2.0..=20.0).contains(&effective), "{set}");
    println!("(RTO, RTT, its deviation), ms: {rtos:?}; {set}");
    // the smoothed round trip, and four times its deviation, the largest of the last round, or the least; in ticks
    let [(treated, rtt, deviation), (control, control_rtt, _)] = rtos[..] else { panic!("{rtos:?}") };
    assert!((rtt + effective..=rtt + effective.max(12.0 * deviation) + 10.0).contains(&treated), "{rtos:?}");
    assert!((control_rtt + 200.0..300.0).contains(&control), "{rtos:?}");
}

/// Of the only connection in the output of `ss`: RTO, smoothed RTT, its mean deviation, ms.
fn rto(shown: &str) -> (f64, f64, f64) {
    let deviation = shown.split_whitespace().find_map(|word| word.strip_prefix("rtt:")?.split('/').nth(1));
    let deviation = deviation.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("{shown}"));
    (numbers(shown, "rto")[0], numbers(shown, "rtt")[0], deviation)
}

/// From a rule's settings and their effective values: the effective minimum RTO.
fn least_ms(set: &str) -> f64 {
    let value = set.rsplit("rto_min = ").next().and_then(|rest| rest.split(" ms").next());
    value.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("{set}"))
}

#[test]
fn after_a_pause_a_connection_restarts_with_the_rules_window() {
    let Some(_machine) = machine() else { return };
    let policy = r#"
        mode = "enforce"
        period = "60 s"
        [[rule]]
        name = "fast"
        when = "network.max_link_utilization < 0.5"
        match = { hosts = ["h1"] }
        set = { initial_cwnd = 20 }
    "#;
    // a burst of each host on its one connection about every two seconds; the rule is not sent during the congestion episode
    let text = r#"
        duration = "13500 ms"
        [network]
        topology = { star = { hosts = 4 } }
        rate = "100 Mbit/s"
        delay = "2 ms"
        queue = { drop_tail = { packets = 100 } }
        [tcp]
        cc = "kernel:cubic"
        initial_cwnd = 3
        [policy]
        file = "p.toml"
        period = "1200 ms"
        [[traffic]]
        name = "bursts"
        all_to_all = { hosts = ["h1", "h2"], bytes = "100 kB", rounds = 100, think = "2 s" }
        start = "200 ms"
        [[traffic]]
        name = "epoch"
        bulk = { from = "h3", to = "h4", bytes = "40 MB" }
        start = "4900 ms"
    "#;
    let folder = folder();
    let Some(run) = run(folder.path(), policy, text, Time::NEVER, true, || ()) else { return };
    let flights = all_flights(folder.path(), &run);
    let cues = &run.results.cues;
    let (taken, ended) = (times(cues, CueEvent::Taken), times(cues, CueEvent::Expired));
    println!("{flights:?}, taken {taken:?}, ended {ended:?}");
    let (&[first, second], &[end]) = (&taken[..], &ended[..]) else { panic!("{taken:?}, {ended:?}") };
    // a connection reads its route when it sends, so the first pause after a change of rules still has the earlier window
    let window = |at: f64| if (first..end).contains(&at) || at >= second { 20 } else { 3 };
    // bursts on a slow machine come later; of one that ends as the rules change, either window is right
    let surely = |at: f64| [first, end, second].iter().all(|change| (at - change).abs() > 0.1);
    let after = |flow: &str| flights[flow].windows(2).map(|two| (two[0].ended, two[1].first)).collect::<Vec<_>>();
    let sure: Vec<(f64, usize)> = after("bursts h1").into_iter().filter(|(at, _)| surely(*at)).collect();
    for (at, flight) in &sure {
        assert_eq!(*flight, window(*at), "after {at} s: {flights:?}");
    }
    for (window, least) in [(3, 2), (20, 2)] {
        assert!(sure.iter().filter(|(_, flight)| *flight == window).count() >= least, "{window}: {flights:?}");
    }
    assert!(after("bursts h2").iter().all(|(_, flight)| *flight == 3), "control group: {flights:?}");
}

#[test]
fn a_guard_reverts_and_is_released_at_the_host_with_losses() {
    let Some(_machine) = machine() else { return };
    let policy = r#"
        mode = "enforce"
        period = "60 s"
        lifetime = "180 s"
        [[rule]]
        name = "guarded"
        when = "network.max_link_utilization <= 1.0"
        set = { initial_cwnd = 20 }
        guard = { revert_if = "host.drop_rate > 0.001", hold = "90 s" }
    "#;
    let text = r#"
        duration = "5 s"
        [network]
        topology = { star = { hosts = 4 } }
        rate = "50 Mbit/s"
        delay = "100 us"
        queue = { drop_tail = { packets = 8 } }
        [tcp]
        cc = "kernel:cubic"
        [policy]
        file = "p.toml"
        period = "1 s"
        [[traffic]]
        name = "lossy"
        incast = { senders = ["h1", "h2"], receiver = "h3", bytes = "100 kB", repeat = 30, interval = "50 ms" }
        start = "1200 ms"
    "#;
    let folder = folder();
    let Some(run) = run(folder.path(), policy, text, Time::NEVER, false, || ()) else { return };
    let cues = &run.results.cues;
    let at = |event, host: &str| {
        let rows = cues.iter().filter(|row| row.event == event && &*row.host == host);
        rows.map(|row| row.time_ns as f64 / 1e9).collect::<Vec<_>>()
    };
    let lost: u64 = run.results.flows.iter().map(|flow| flow.retransmits).sum();
    for host in ["h1", "h2"] {
        let (reverted, recovered) = (at(CueEvent::Reverted, host), at(CueEvent::Recovered, host));
        assert!(reverted.len() == 1 && (1.3..3.0).contains(&reverted[0]), "{host}: {reverted:?}, {lost} retransmitted");
        assert!(recovered.len() == 1 && (1.4..1.8).contains(&(recovered[0] - reverted[0])), "{host}: {recovered:?}");
    }
    assert!(at(CueEvent::Reverted, "h3").is_empty(), "it sends nothing");
}

#[test]
fn where_every_hop_marks_new_connections_use_dctcp() {
    let Some(_machine) = machine() else { return };
    let policy = include_str!("../../../../policies/dctcp-when-ecn.toml");
    let text = |queue: &str| {
        format!(
            r#"
            duration = "3 s"
            [network]
            topology = {{ star = {{ hosts = 3 }} }}
            rate = "100 Mbit/s"
            delay = "100 us"
            queue = {queue}
            [tcp]
            cc = "cubic"
            [policy]
            file = "p.toml"
            period = "1 s"
            [[traffic]]
            incast = {{ senders = ["h1", "h2"], receiver = "h3", bytes = "100 kB", repeat = 40 }}
            start = "300 ms"
            "#
        )
    };
    let folder = folder();
    let algorithms = |queue: &str| {
        let run = run(folder.path(), policy, &text(queue), Time::NEVER, false, || ())?;
        let of = |flow: &results::FlowRow| (flow.algorithm.to_string(), flow.ce_marks > 0);
        Some(run.results.flows.iter().map(of).collect::<Vec<_>>())
    };
    let row = |name: &str, marked| vec![(name.to_string(), marked); 2];
    let Some(marking) = algorithms("{ threshold_ecn = { mark_packets = 10, packets = 50 } }") else { return };
    assert_eq!(marking, row("dctcp", true));
    let Some(dropping) = algorithms("{ drop_tail = { packets = 50 } }") else { return };
    assert_eq!(dropping, row("cubic", false));
}

#[test]
fn a_harmful_policy_is_rolled_back() {
    let Some(_machine) = machine() else { return };
    // 45 kB, the median, take 50 ms at this rate (Linux does not pace the first ten segments), and 2 ms of the link without it
    let policy = r#"
        mode = "enforce"
        period = "60 s"
        [objective]
        minimize = "network.fct_p50"
        worse_at_most = "10 %"
        [[rule]]
        name = "harm"
        when = "network.max_link_utilization < 0.9"
        set = { max_pacing_rate = "5 Mbit/s" }
        [rollout]
        fraction = 0.5
    "#;
    let text = r#"
        duration = "8 s"
        [network]
        topology = { star = { hosts = 6 } }
        rate = "200 Mbit/s"
        delay = "100 us"
        queue = { drop_tail = { packets = 50 } }
        [tcp]
        cc = "kernel:cubic"
        [policy]
        file = "p.toml"
        period = "500 ms"
        [[traffic]]
        poisson = { flows_per_second = 500, sizes = "small.csv" }
        start = "100 ms"
    "#;
    let folder = folder();
    fs::write(folder.path().join("small.csv"), "bytes,cdf\n30000,0\n60000,1\n").unwrap();
    let Some(run) = run(folder.path(), policy, text, Time::NEVER, false, || ()) else { return };
    let cues = &run.results.cues;
    assert_eq!(run.results.summary.extra.get("policy.rolled_back"), Some(&1.0), "{:?}", run.results.summary.extra);
    let over = |row: &&CueRow| row.reason.starts_with("rolled back: more than 10 % worse; p50 FCT +");
    let first = cues.iter().find(over).expect("the reason is reported").time_ns;
    assert!(cues.iter().filter(|row| row.host.is_empty() && row.time_ns >= first).all(|row| over(&row)));
    let last = times(cues, CueEvent::Expired).into_iter().fold(0.0, f64::max);
    // five pairs of periods are the fewest that can be distinguished
    let rolled_back = first as f64 / 1e9;
    assert!(
        (3.0..=6.0).contains(&rolled_back) && last < rolled_back + 0.7,
        "{rolled_back} s, the last CUE to {last} s"
    );
    let taken: BTreeSet<&str> = cues.iter().filter(|row| row.event == CueEvent::Taken).map(|row| &*row.host).collect();
    assert_eq!(taken.len(), 3, "{taken:?}");
    let median_ms = |treated, from: f64, to: f64| {
        let begun = |flow: &&results::FlowRow| (from..to).contains(&(flow.start_ns as f64 / 1e9));
        let flows = run.results.flows.iter().filter(|flow| taken.contains(&*flow.src) == treated).filter(begun);
        let mut took: Vec<u64> = flows.filter_map(results::FlowRow::fct_ns).collect();
        took.sort_unstable();
        took[took.len() / 2] as f64 / 1e6
    };
    let both = |from, to| [true, false].map(|treated| median_ms(treated, from, to));
    let ([hurt, control], [healed, control_then]) = (both(1.5, rolled_back), both(last + 0.1, 7.5));
    println!(
        "rolled back at {rolled_back} s: median {hurt:.1} ms, control group {control:.1} ms; then {healed:.1} ms and {control_then:.1} ms"
    );
    assert!(
        hurt > 2.0 * control && healed < 1.5 * control_then,
        "{hurt} and {control} ms, then {healed} and {control_then} ms"
    );
}

#[test]
fn sixty_four_hosts_follow_several_rules() {
    let Some(_machine) = machine() else { return };
    let rule = |name: &str, set: &str| {
        format!("[[rule]]\nname = \"{name}\"\nwhen = \"network.max_link_utilization <= 1.0\"\nset = {{ {set} }}\n")
    };
    let policy = format!(
        "mode = \"enforce\"\nperiod = \"60 s\"\n{}{}{}",
        rule("window", "initial_cwnd = 20"),
        rule("clamp", "cwnd_clamp = 30"),
        rule("algorithm", "cc = \"cubic\", ecn = true")
    );
    let text = r#"
        duration = "3 s"
        [network]
        topology = { star = { hosts = 64 } }
        rate = "20 Mbit/s"
        delay = "100 us"
        [tcp]
        cc = "kernel:cubic"
        [policy]
        file = "p.toml"
        period = "500 ms"
        [[traffic]]
        name = "ring"
        permutation = { across = "hosts", bulk = { bytes = "20 kB" } }
        start = "1500 ms"
    "#;
    let folder = folder();
    // so many hosts that all start at once are late on a small machine, but their rules do not depend on timing
    let Some(run) = run_support::any("policy", &scenario(folder.path(), &policy, text)) else { return };
    assert_eq!(times(&run.results.cues, CueEvent::Taken).len(), 3 * 64);
    assert_eq!(run.results.flows.len(), 64);
    for flow in &run.results.flows {
        assert_eq!(&*flow.algorithm, "cubic", "ours, not the kernel's own: {flow:?}");
        assert!(flow.end_ns.is_some() && (20..=30).contains(&flow.final_cwnd), "{flow:?}");
    }
}
