//! A result follows from the scenario: not from the number of threads, nor from the steps in which it is reached.

use super::Layout;
use crate::Simulation;
use crate::network::Network;
use proptest::prelude::*;
use results::RunResults;
use scenario::Scenario;
use units::Time;

/// The parts of a network that is too small for parts otherwise.
fn cut(scenario: &Scenario, parts: usize) -> Simulation {
    let simulation = Simulation::in_parts(scenario, parts).unwrap();
    assert!(matches!(simulation.network, Network::Parts(_)), "it can be cut");
    simulation
}

/// All tables of a run on so many threads, in so many steps.
fn run(scenario: &Scenario, threads: usize, steps: u64) -> RunResults {
    let mut simulation = cut(scenario, 4);
    simulation.use_threads(threads);
    for step in 1..steps {
        simulation.run_to(Time::from_ps(scenario.duration.as_ps() / steps * step + step));
    }
    simulation.run_to(scenario.duration);
    simulation.finish()
}

/// Small networks of all shapes that can be cut, and the cable of their first host.
const SHAPES: [(&str, &str); 5] = [
    ("{ fat_tree = { k = 4 } }", "h1-e1"),
    ("{ leaf_spine = { leaves = 5, spines = 2, hosts_per_leaf = 3 } }", "l1-s1"),
    ("{ dragonfly = { hosts_per_switch = 2, switches_per_group = 2, global_ports = 1 } }", "h1-s1"),
    ("{ jellyfish = { switches = 8, ports = 5, hosts_per_switch = 2 } }", "h1-s1"),
    ("{ vl2 = { aggregation_ports = 4, intermediate_ports = 4 } }", "h1-t1"),
];

const QUEUES: [&str; 7] = [
    "{ drop_tail = { packets = 20 } }",
    "{ threshold_ecn = { mark_packets = 10, packets = 60 } }",
    "{ red = {} }",
    "{ pie = { packets = 60 } }",
    "{ codel = { packets = 60 } }",
    "{ fq_codel = { packets = 60 } }",
    "{ dualpi2 = { packets = 60 } }",
];

const TRAFFIC: [&str; 9] = [
    r#"permutation = { across = "pods", bulk = {} }"#,
    r#"random_pairs = { flows = 12, bulk = { bytes = "200 kB" } }"#,
    r#"poisson = { load = "40 %", sizes = "web-search" }"#,
    r#"random_pairs = { flows = 8, on_off = { rate = "400 Mbit/s", on = "100 us", off = "50 us" } }"#,
    r#"random_pairs = { flows = 8, udp = { rate = "50 Mbit/s", packet = "512 B" } }"#,
    r#"incast = { senders = 6, bytes = "40 kB", repeat = 3, deadline = "1 ms" }"#,
    r#"udp = { from = "h1", to = "h8", rate = "200 Mbit/s" }"#,
    r#"exchange = { bytes = "20 kB", rounds = 2 }"#,
    r#"job = { all_to_all = { bytes = "10 kB" } }"#,
];

/// A scenario of small networks, with something of everything that can be simulated in parts.
fn scenarios() -> impl Strategy<Value = String> {
    let traffic = prop::collection::vec((0..TRAFFIC.len(), 0..4usize, any::<bool>()), 1..4);
    let network =
        (0..SHAPES.len(), 0..QUEUES.len(), prop_oneof![Just("1 Gbit/s"), Just("10 Gbit/s"), Just("100 Mbit/s")]);
    let measure = (any::<bool>(), any::<bool>(), any::<bool>());
    (network, traffic, measure, any::<bool>(), any::<bool>(), 1..1000u32).prop_map(
        |((shape, queue, rate), traffic, (delay, links, messages), fails, shared, seed)| {
            let mut text = vec![format!(
                "duration = \"1500 us\"\nseed = {seed}\n[network]\ntopology = {}\nrate = \"{rate}\"\ndelay = \"2 us\"\nqueue = {}\n",
                SHAPES[shape].0, QUEUES[queue]
            )];
            if shared {
                text.push("buffer = { shared = { bytes = \"100 kB\" } }\n".into());
            }
            if fails {
                text.push(format!("failure = [{{ link = \"{}\", at = \"600 us\", until = \"1 ms\" }}]\n", SHAPES[shape].1));
            }
            text.push("[tcp]\nrto_min = \"1 ms\"\n[measure]\nwarmup = \"300 us\"\n".into());
            text.push(format!("packet_delay = {delay}\nmessages = {messages}\ncwnd = \"77 us\"\n"));
            if links {
                text.push("links = \"100 us\"\n".into());
            }
            for (n, (kind, cc, late)) in traffic.into_iter().enumerate() {
                let cc = ["newreno", "cubic", "dctcp", "bbr"][cc];
                let start = if late { "start = \"333 us\"\n" } else { "" };
                let cc = if TRAFFIC[kind].contains("udp") { String::new() } else { format!("cc = \"{cc}\"\n") };
                text.push(format!("[[traffic]]\nname = \"t{n}\"\n{}\n{cc}{start}", TRAFFIC[kind]));
            }
            text.concat()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn results_do_not_depend_on_threads_or_steps(text in scenarios()) {
        let scenario = testkit::scenario(&text);
        let one = run(&scenario, 1, 1);
        // packets are counted from the end of the warmup on, when all may be over; and a slow network may have none in so short a time
        prop_assume!(one.summary.packet_hops > 0);
        for (threads, steps) in [(2, 1), (64, 3)] {
            prop_assert!(run(&scenario, threads, steps) == one, "{threads} threads, {steps} steps");
        }
    }
}

const ONE_FLOW: &str = r#"
    duration = "30 ms"
    [network]
    topology = { fat_tree = { k = 4 } }
    rate = "1 Gbit/s"
    delay = "3 us"
    queue = { drop_tail = { packets = 20 } }
    [network.tier.core]
    rate = "100 Mbit/s"
    [measure]
    packet_delay = true
    links = "1 ms"
    cwnd = "100 us"
    [[traffic]]
    bulk = { from = "h1", to = "h16", bytes = "1 MB" }
"#;

#[test]
fn a_flow_fares_in_parts_as_in_the_whole_network() {
    let scenario = testkit::scenario(ONE_FLOW);
    let whole = crate::simulate(&scenario, &mut ()).unwrap();
    assert!(whole.summary.drops_at_switches > 0 && whole.summary.flows_completed == 0, "{:?}", whole.summary);
    assert!(run(&scenario, 2, 1) == whole);
}

#[test]
fn a_packet_crosses_once_on_its_way_and_its_parts_have_256_hosts() {
    let scenario = testkit::scenario(&ONE_FLOW.replace("k = 4", "k = 22").replace("1 Gbit/s", "10 Gbit/s"));
    let topology = plan::topology(&scenario).unwrap();
    let layout = Layout::of(&scenario, &topology).expect("2662 hosts are enough");
    assert_eq!(layout.parts, 10);
    let router = net::Router::new(&topology, net::Routing::Ecmp);
    let mut path = Vec::new();
    for (host, hash) in (0..2661).zip(0..) {
        router.path(topology.host(host), topology.host(2661 - host), hash, &mut path).unwrap();
        let crossings = path.windows(2).filter(|pair| layout.owners[pair[0].index()] != layout.owners[pair[1].index()]);
        assert!(crossings.count() <= 1);
    }
    // 3 us, and 78 bytes at 100 Mbit/s, 6.24 us, on the way to a core
    assert_eq!(layout.window, Time::from_ns(3062) + Time::from_ps(400), "what applications take to react is less");
}

#[test]
fn small_networks_and_what_looks_at_all_of_one_stay_whole() {
    let of = |text: &str| {
        let scenario = testkit::scenario(text);
        Layout::of(&scenario, &plan::topology(&scenario).unwrap())
    };
    let large = ONE_FLOW.replace("k = 4", "k = 22").replace("1 Gbit/s", "10 Gbit/s");
    assert!(of(&large).is_some());
    assert!(of(ONE_FLOW).is_none(), "16 hosts");
    assert!(of(&large.replace("k = 22", "k = 20")).is_none(), "2000 hosts");
    assert!(of(&large.replace("[measure]", "[tcp]\nictcp = true\n[measure]")).is_none());
    assert!(of(&large.replace("delay = \"3 us\"", "balancing = \"packet\"\ndelay = \"3 us\"")).is_none());
    assert!(
        of(&large.replace("10 Gbit/s", "1 Mbit/s").replace("100 Mbit/s", "1 Mbit/s")).is_none(),
        "too little happens"
    );
}
