//! Slowdown of flows whose ideal completion time can be worked out by hand.

use crate::support::run;
use results::RunResults;

/// A flow of `bytes` from h1 over two links of 1 Gbit/s and 5 us to h2.
fn alone(bytes: &str, more: &str) -> RunResults {
    run(&format!(
        r#"
        duration = "1 s"
        [network]
        topology = {{ star = {{ hosts = 2 }} }}
        rate = "1 Gbit/s"
        delay = "5 us"
        queue = {{ drop_tail = {{ packets = 10000 }} }}
        [[traffic]]
        bulk = {{ from = "h1", to = "h2", bytes = "{bytes}" }}
        {more}
    "#
    ))
}

/// SYN and SYN-ACK of `alone`, 60 B of IP and 98 B on the wire, 784 ns a link each, and four propagations.
const HANDSHAKE_NS: u64 = 2 * 2 * (784 + 5_000);
/// A full packet: 1500 B of IP, 1538 B on the wire.
const FULL_NS: u64 = 12_304;

#[test]
fn a_flow_within_the_initial_window_has_a_slowdown_of_exactly_1() {
    // Ten full packets leave back to back. The first takes two serializations, each of the others one more.
    let results = alone("14480 B", "");
    let ideal = HANDSHAKE_NS + 11 * FULL_NS + 10_000;
    assert_eq!(ideal, 168_480);
    assert_eq!(results.flows[0].ideal_fct_ns, Some(ideal));
    assert_eq!(results.flows[0].fct_ns(), Some(ideal));
    let slowdown = results.summary.slowdown.unwrap();
    assert_eq!((slowdown.all.flows, slowdown.all.unfinished), (1, 0));
    assert_eq!((slowdown.all.p50, slowdown.all.p99), (1.0, 1.0));
    assert_eq!(slowdown.classes[0].class, "10–100 kB");
}

#[test]
fn a_short_last_packet_is_worth_its_own_bytes() {
    // One full packet, then one of 52 B payload: 104 B of IP, 142 B on the wire, 1136 ns. It is on the second link when the
    // full one has left that, so it arrives one serialization of its own behind it.
    let results = alone("1500 B", "");
    let ideal = HANDSHAKE_NS + 2 * FULL_NS + 1_136 + 10_000;
    assert_eq!(results.flows[0].ideal_fct_ns, Some(ideal));
    assert_eq!(results.flows[0].fct_ns(), Some(ideal));
}

#[test]
fn a_large_flow_at_full_rate_has_a_slowdown_close_to_1() {
    // 50 MB are 34,530 full packets, 49,999,440 B, and one of 560 B payload: 612 B of IP, 650 B on the wire, 5200 ns.
    // The full ones take 34,531 serializations over two links.
    let results = alone("50 MB", "");
    let ideal = HANDSHAKE_NS + 34_531 * FULL_NS + 5_200 + 10_000;
    let flow = &results.flows[0];
    assert_eq!(flow.ideal_fct_ns, Some(ideal));
    // A round trip takes 46 us with a full packet, in which four packets are sent: the initial window is never waited for.
    let slowdown = flow.slowdown().unwrap();
    assert!((1.0..1.0005).contains(&slowdown), "{slowdown}");
}

#[test]
fn the_slowest_link_decides_wherever_it_is() {
    // left1 -> s1 -> s2 -> right1 at 1 Gbit/s, 100 Mbit/s, 1 Gbit/s, 10 us each. SYN and SYN-ACK of 98 B: 784 ns, 7.84 us,
    // 784 ns. Ten full packets: 12.304 us, then ten times 123.04 us, and the last 12.304 us more.
    let results = run(r#"
        duration = "1 s"
        [network]
        topology = { dumbbell = { pairs = 1 } }
        rate = "1 Gbit/s"
        delay = "10 us"
        [network.tier.bottleneck]
        rate = "100 Mbit/s"
        [[traffic]]
        bulk = { from = "left1", to = "right1", bytes = "14480 B" }
    "#);
    let handshake = 2 * (784 + 7_840 + 784 + 30_000);
    let ideal = handshake + 12_304 + 10 * 123_040 + 12_304 + 30_000;
    assert_eq!(results.flows[0].ideal_fct_ns, Some(ideal));
    assert_eq!(results.flows[0].slowdown(), Some(1.0));
}

#[test]
fn a_flow_that_did_not_finish_is_counted_with_its_bound() {
    // 200 MB take 1.7 s at 1 Gbit/s; the run ends after 1 s.
    let results = alone("200 MB", "");
    let flow = &results.flows[0];
    let ideal = flow.ideal_fct_ns.unwrap();
    assert_eq!(flow.slowdown(), None);
    let slowdown = results.summary.slowdown.unwrap().all;
    assert_eq!((slowdown.flows, slowdown.unfinished), (1, 1));
    // younger than its ideal time: all that is known is that its slowdown is at least 1
    assert!(ideal > 1_000_000_000);
    assert_eq!((slowdown.p50, slowdown.p99), (1.0, 1.0));
    assert_eq!(slowdown.at_least, ["p50", "p95", "p99"]);
}

#[test]
fn a_flow_that_its_application_stopped_has_no_ideal_time() {
    let results = alone("200 MB", "stop = \"10 ms\"");
    assert_eq!(results.flows[0].ideal_fct_ns, None);
    assert!(results.summary.slowdown.is_none());
}

#[test]
fn connections_with_several_messages_have_no_ideal_time() {
    let text = |connections: &str| {
        format!(
            r#"
            duration = "1 s"
            [network]
            topology = {{ star = {{ hosts = 3 }} }}
            [[traffic]]
            all_to_all = {{ bytes = "10 kB", rounds = 2, connections = "{connections}" }}
        "#
        )
    };
    assert!(run(&text("reuse")).flows.iter().all(|flow| flow.ideal_fct_ns.is_none()));
    let new = run(&text("new")).flows;
    assert_eq!(new.iter().filter_map(results::FlowRow::slowdown).count(), 12);
}

#[test]
fn no_flow_is_faster_than_its_ideal() {
    let failing = "[[network.failure]]\nlink = \"l1-s1\"\nat = \"5 ms\"";
    for (cc, failure) in [("cubic", ""), ("dctcp", ""), ("bbr", ""), ("newreno", failing)] {
        let results = run(&format!(
            r#"
            duration = "30 ms"
            [network]
            topology = {{ leaf_spine = {{ leaves = 2, spines = 2, hosts_per_leaf = 4 }} }}
            delay = "1 us"
            queue = {{ threshold_ecn = {{ mark_packets = 65, packets = 300 }} }}
            {failure}
            [tcp]
            cc = "{cc}"
            rto_min = "5 ms"
            [[traffic]]
            poisson = {{ load = "60 %", sizes = "web-search" }}
            "#
        ));
        let slowdowns: Vec<f64> = results.flows.iter().filter_map(results::FlowRow::slowdown).collect();
        assert!(slowdowns.len() > 50, "{cc}: {} flows finished", slowdowns.len());
        assert!(slowdowns.iter().all(|slowdown| *slowdown >= 1.0), "{cc}: {slowdowns:?}");
        let summary = results.summary.slowdown.unwrap().all;
        assert_eq!(summary.flows, results.flows.len() as u64, "{cc}: every flow is counted");
        assert_eq!(summary.flows - summary.unfinished, slowdowns.len() as u64, "{cc}");
    }
}
