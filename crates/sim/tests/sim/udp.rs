//! UDP at a constant rate, alone and beside TCP.

use crate::support::run;
use results::{FlowRow, RunResults};

/// A dumbbell of 100 Mbit/s for a second, with these entries and measurements.
fn dumbbell(traffic: &str, measure: &str) -> RunResults {
    run(&format!(
        r#"
        duration = "1 s"
        [network]
        topology = {{ dumbbell = {{ pairs = 2 }} }}
        rate = "1 Gbit/s"
        delay = "10 us"
        framing = "ip"
        tier = {{ bottleneck = {{ rate = "100 Mbit/s", queue = {{ drop_tail = {{ packets = 100 }} }} }} }}
        {traffic}
        [measure]
        packet_delay = true
        {measure}
        "#
    ))
}

const UDP: &str = "[[traffic]]\nname = \"udp\"\nudp = { from = \"left1\", to = \"right1\", ";
const TCP: &str = "[[traffic]]\nname = \"tcp\"\nbulk = { from = \"left2\", to = \"right2\" }";

fn flow<'a>(results: &'a RunResults, group: &str) -> &'a FlowRow {
    results.flows.iter().find(|flow| &*flow.group == group).expect("it was opened")
}

#[test]
fn datagrams_arrive_at_their_rate() {
    let results = dumbbell(&format!("{UDP}rate = \"50 Mbit/s\", packet = \"1000 B\" }}"), "");
    let udp = flow(&results, "udp");
    // 50 Mbit/s are 6250 datagrams of 1000 B a second, the first within the first 160 us
    assert!((6249..=6251).contains(&udp.data_packets_sent), "{}", udp.data_packets_sent);
    assert_eq!(udp.bytes, Some(udp.data_packets_sent * 1000));
    assert!(udp.data_packets_sent - udp.packets_received <= 1, "nothing is lost, and one may be under way");
    assert_eq!(udp.delivered_bytes, udp.packets_received * 1000);
    assert_eq!(udp.ip_bytes_received, udp.packets_received * 1028);
    assert_eq!((&*udp.algorithm, udp.end_ns, udp.acks_received, udp.retransmits), ("udp", None, 0, 0));
    // 1028 B take 8.224 us at 1 Gbit/s, twice, and 82.24 us at 100 Mbit/s; three links of 10 us
    assert_eq!(udp.mean_packet_delay_ns, Some(2 * 8224 + 82_240 + 30_000));
}

#[test]
fn nothing_slows_datagrams_down_and_tcp_gets_the_rest() {
    let results = dumbbell(&format!("{UDP}rate = \"60 Mbit/s\" }}\n{TCP}"), "warmup = \"200 ms\"");
    let goodput = |group: &str| flow(&results, group).delivered_bytes as f64 * 8.0 / 0.8e6;
    println!("beside 60 Mbit/s of UDP, of which {:.1} arrive, TCP has {:.1} Mbit/s", goodput("udp"), goodput("tcp"));
    assert!(goodput("udp") > 57.0, "{}", goodput("udp"));
    assert!((25.0..40.0).contains(&goodput("tcp")), "{}", goodput("tcp"));
    let udp = flow(&results, "udp");
    // 60 Mbit/s of 1472 B are 4076 datagrams in 0.8 s
    assert!((4074..=4078).contains(&udp.data_packets_sent), "of the time after the warm-up: {}", udp.data_packets_sent);
}

#[test]
fn more_than_the_link_carries_is_dropped() {
    let results = dumbbell(&format!("{UDP}rate = \"200 Mbit/s\" }}"), "");
    let udp = flow(&results, "udp");
    assert!(results.summary.drops_at_switches > udp.data_packets_sent / 3, "{}", results.summary.drops_at_switches);
    let under_way: u64 = results.links.iter().map(|link| link.in_flight).sum();
    assert_eq!(udp.data_packets_sent, udp.packets_received + results.summary.drops_at_switches + under_way);
}

#[test]
fn it_stops_and_what_tcp_draws_is_the_same_without_it() {
    let stopped = dumbbell(&format!("{UDP}rate = \"50 Mbit/s\" }}\nstop = \"100 ms\""), "");
    let sent = flow(&stopped, "udp").data_packets_sent;
    // 4245.9 a second
    assert!((424..=425).contains(&sent), "{sent}");
    assert_eq!(flow(&stopped, "udp").bytes, Some(sent * 1472));
    let pairs = "[[traffic]]\nname = \"pairs\"\nrandom_pairs = { flows = 4, bulk = {} }\n";
    let ends = |results: &RunResults| -> Vec<_> {
        let flows = results.flows.iter().filter(|flow| &*flow.group == "pairs");
        flows.map(|flow| (flow.src.clone(), flow.dst.clone())).collect()
    };
    let udp = "[[traffic]]\nrandom_pairs = { flows = 3, udp = { rate = \"1 Mbit/s\" } }";
    assert_eq!(ends(&dumbbell(&format!("{pairs}{udp}"), "")), ends(&dumbbell(pairs, "")));
}

#[test]
fn sprayed_datagrams_use_all_paths_and_leave_one_that_fails() {
    let results = run(r#"
        duration = "100 ms"
        [network]
        topology = { leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 2 } }
        rate = "1 Gbit/s"
        balancing = "packet"
        [[network.failure]]
        link = "l1-s1"
        at = "50 ms"
        [[traffic]]
        udp = { from = "h1", to = "h3", rate = "500 Mbit/s" }
        "#);
    let over = |name: &str| results.links.iter().find(|link| &*link.link == name).expect("it exists").packets;
    let (failed, other) = (over("l1->s1"), over("l1->s2"));
    assert!(
        failed * 3 > other * 9 / 10 && failed * 3 < other * 11 / 10,
        "a quarter and three quarters: {failed}, {other}"
    );
}
