//! Scenarios beyond the emulator or beyond Linux are refused by key, before anything is started; no root is needed for that.

use emu::{Slowdown, limits, linux};
use net::Router;
use scenario::Objection;
use testkit::scenario_set;

const STAR: &str = r#"
    duration = "10 s"
    [network]
    topology = { star = { hosts = 4 } }
    rate = "1 Gbit/s"
    [[traffic]]
    bulk = { from = "h1", to = "h2" }
"#;

const FAT_TREE: &str = r#"
    duration = "10 s"
    [network]
    topology = { fat_tree = { k = 4 } }
    rate = "1 Gbit/s"
    [[traffic]]
    permutation = { on_off = { rate = "93 Mbit/s", on = "1 s", off = "0 s" } }
"#;

fn of_machine(text: &str, sets: &[&str]) -> Vec<Objection> {
    of_slower(text, sets, Slowdown::NONE)
}

fn of_slower(text: &str, sets: &[&str], slowdown: Slowdown) -> Vec<Objection> {
    let scenario = scenario_set(text, sets);
    let topology = plan::topology(&scenario).expect("a checked scenario's network can be built");
    limits::objections(&scenario, &topology, &Router::new(&topology, plan::routing(&scenario)), slowdown)
}

fn of_linux(sets: &[&str]) -> Vec<String> {
    match linux::stack(&scenario_set(STAR, sets), Slowdown::NONE) {
        Ok(_) => Vec::new(),
        Err(objections) => objections.into_iter().map(|objection| objection.key).collect(),
    }
}

#[test]
fn links_that_are_too_fast_are_refused_with_the_bound_where_they_are_set() {
    assert_eq!(of_machine(STAR, &["network.rate=10 Gbit/s"]), []);
    let [refused] = &of_machine(STAR, &["network.rate=25 Gbit/s"])[..] else { panic!("one objection") };
    assert_eq!(refused.key, "network.rate");
    assert!(refused.message.contains("25 Gbit/s") && refused.message.contains("10 Gbit/s"), "{}", refused.message);
    let [refused] = &of_machine(STAR, &["network.tier.host.rate=40 Gbit/s"])[..] else { panic!("one objection") };
    assert_eq!(refused.key, "network.tier.host.rate");
}

#[test]
fn a_slower_network_may_be_faster_than_the_machine() {
    let times = |n| Slowdown::new(n).expect("it is in range");
    let fast = ["network.rate=25 Gbit/s"];
    assert!(!of_slower(STAR, &fast, times(2)).is_empty());
    assert_eq!(of_slower(STAR, &fast, times(4)), []);
    let busy = ["network.rate=10 Gbit/s", "traffic.0.permutation.on_off.rate=5 Gbit/s"];
    let [refused] = &of_slower(FAT_TREE, &busy, Slowdown::NONE)[..] else { panic!("one objection") };
    assert!(refused.help.as_ref().is_some_and(|help| help.contains("--slower")), "{refused:?}");
    assert_eq!(of_slower(FAT_TREE, &busy, times(64)), []);
    // what Linux cannot do stays refused
    assert!(linux::stack(&scenario_set(STAR, &["tcp.prr=false"]), times(8)).is_err());
    let stack = linux::stack(&scenario_set(STAR, &["tcp.rto_min=3 ms"]), times(8)).expect("Linux can do that");
    let value = |key: &str| stack.sysctls.iter().find(|(name, _)| name.ends_with(key)).map(|(_, value)| value.as_str());
    assert_eq!([value("tcp_rto_min_us"), value("tcp_rto_max_ms")], [Some("24000"), Some("120000")]);
}

#[test]
fn servers_that_forward_and_packets_that_are_spread_are_refused_where_they_are_set() {
    let bcube = STAR.replace("star = { hosts = 4 }", "bcube = { n = 2, k = 1, forwarding_delay = \"1 us\" }");
    for (text, sets, key) in
        [(bcube.as_str(), &[][..], "network.topology"), (FAT_TREE, &["network.balancing=packet"], "network.balancing")]
    {
        let refused = of_machine(text, sets);
        assert_eq!(refused.iter().map(|objection| objection.key.as_str()).collect::<Vec<_>>(), [key]);
    }
}

#[test]
fn queues_that_decide_at_departures_are_refused_where_they_are_set() {
    for (sets, key) in [
        (&["network.queue={ codel = {} }"][..], "network.queue"),
        (&["network.tier.host.queue={ fq_codel = {} }"], "network.tier.host.queue"),
        (&["network.nic_queue={ dualpi2 = {} }", "tcp.limit_output=false"], "network.nic_queue"),
    ] {
        let [refused] = &of_machine(STAR, sets)[..] else { panic!("one objection to {sets:?}") };
        assert_eq!(refused.key, key);
    }
    // queues that no packet meets
    assert_eq!(of_machine(STAR, &["network.nic_queue={ dualpi2 = {} }"]), []);
    assert_eq!(of_machine(STAR, &["network.queue={ codel = {} }", "network.tier.host.queue={ pie = {} }"]), []);
    assert_eq!(of_machine(STAR, &["network.queue={ pie = {} }"]), []);
    assert_eq!(of_linux(&["tcp.ect1=true"]), ["tcp.ect1"]);
    assert_eq!(of_linux(&["tcp.ecn=accurate"]), ["tcp.ecn"]);
    assert_eq!(of_linux(&["tcp.cc=prague", "tcp.ecn=off"]), ["tcp.ecn"]);
}

#[test]
fn too_many_hosts_and_connections_are_refused_with_the_bound() {
    let [refused] = &of_machine(STAR, &["network.topology.star.hosts=500"])[..] else { panic!("one objection") };
    assert_eq!(refused.key, "network.topology");
    assert!(refused.message.contains("500") && refused.message.contains("128"), "{}", refused.message);
    let [refused] = &of_machine(STAR, &["traffic.0.bulk.count=10000"])[..] else { panic!("one objection") };
    assert!(refused.message.contains("10000") && refused.message.contains("4000"), "{}", refused.message);
}

#[test]
fn a_fat_tree_carries_a_gigabit_and_a_half_but_not_sixteen() {
    assert_eq!(of_machine(FAT_TREE, &[]), [], "16 times 93 Mbit/s");
    let all = r"traffic=[{ permutation = { bulk = {} } }]";
    let [refused] = &of_machine(FAT_TREE, &[all])[..] else { panic!("one objection") };
    assert!(refused.key == "traffic" && refused.message.contains("the bound"), "{}", refused.message);
    // only the bottleneck's throughput counts
    let slow = ["network.tier.core.rate=50 Mbit/s", "network.tier.aggregation.rate=50 Mbit/s", all];
    assert_eq!(of_machine(FAT_TREE, &slow), []);
}

#[test]
fn settings_beyond_linux_are_refused_by_key() {
    assert_eq!(of_linux(&[]), [""; 0]);
    for (set, key) in [
        ("tcp.initial_ssthresh=100 kB", "tcp.initial_ssthresh"),
        ("tcp.syn_rto=3 s", "tcp.syn_rto"),
        ("tcp.rto_initial=3 s", "tcp.rto_initial"),
        ("tcp.rack=false", "tcp.rack"),
        ("tcp.prr=false", "tcp.prr"),
        ("tcp.delayed_ack={ segments = 4 }", "tcp.delayed_ack"),
        ("tcp.delayed_ack={ timeout = \"10 ms\" }", "tcp.delayed_ack"),
        ("tcp.rto_max=300 s", "tcp.rto_max"),
    ] {
        assert_eq!(of_linux(&[set]), [key], "{set}");
    }
    assert_eq!(of_linux(&["tcp.cc=dctcp", "tcp.ecn=off"]), ["tcp.ecn"]);
    assert_eq!(of_linux(&["tcp.cc=kernel:bbr", "tcp.pacing=off"]), ["tcp.pacing"]);
    assert_eq!(of_linux(&["tcp.delayed_ack={ segments = 1 }", "tcp.sack=false", "tcp.pacing=on"]), [""; 0]);
}

#[test]
fn a_scenarios_settings_become_those_of_a_host() {
    let sets = ["tcp.rto_min=10 ms", "tcp.sack=false", "tcp.initial_cwnd=3", "tcp.mtu=9000", "tcp.tso_segments=8"];
    let stack = linux::stack(&scenario_set(STAR, &sets), Slowdown::NONE).expect("Linux can do that");
    assert_eq!((stack.mtu, stack.initial_cwnd, stack.gso_max_segs), (9000, 3, Some(8)));
    let value = |name: &str| stack.sysctls.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!(value("net.ipv4.tcp_rto_min_us"), Some("10000"));
    assert_eq!(value("net.ipv4.tcp_sack"), Some("0"));
    assert_eq!(value("net.ipv4.tcp_early_retrans"), Some("0"), "no probes without SACK");
    assert_eq!(value("net.ipv4.tcp_wmem"), Some("4096 16384 4194304"));
    let tso_rtt_log = |times| {
        let stack =
            linux::stack(&scenario_set(STAR, &[]), Slowdown::new(times).expect("it is in range")).expect("it can");
        let name = "net.ipv4.tcp_tso_rtt_log".to_string();
        stack.sysctls.iter().find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<u32>().ok())
    };
    // 9, and log2 of the slowdown, rounded: 3 is nearer to 4 than to 2 there (1.58), 5 to 4 (2.32), 6 to 8 (2.58), 12 to 16 (3.58)
    let nearest = [1, 2, 3, 5, 6, 12, 32, 64].map(tso_rtt_log);
    assert_eq!(nearest, [9, 10, 11, 11, 12, 13, 14, 15].map(Some));
}
