//! A scenario's network in the types of the model.

use super::*;
use net::Tier as NodeTier;

fn scenario(network: &str) -> Scenario {
    testkit::scenario(&format!("duration = \"9 s\"\n[network]\n{network}\n[[traffic]]\nidle = {{ flows = 1 }}\n"))
}

fn built(network: &str) -> (Scenario, Topology) {
    let scenario = scenario(network);
    let topology = topology(&scenario).expect("a checked scenario has a network");
    (scenario, topology)
}

const STAR: &str = "topology = { star = { hosts = 3 } }\n";
const LEAVES: &str = "topology = { leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 2 } }\n";

#[test]
fn a_tier_has_its_own_rate_and_delay_and_the_rest_the_networks() {
    let tier = "rate = \"1 Gbit/s\"\ndelay = \"5 us\"\n[network.tier.spine]\nrate = \"40 Gbit/s\"\n";
    let (_, topology) = built(&format!("{LEAVES}{tier}"));
    let of = |name: &str| {
        let spec = topology.link(topology.find_link(name).expect("it is there"));
        (spec.rate, spec.delay)
    };
    let (slow, fast, delay) = (units::Rate::from_gbps(1), units::Rate::from_gbps(40), Time::from_us(5));
    assert_eq!([of("h1->l1"), of("l1->h1")], [(slow, delay); 2]);
    assert_eq!([of("l1->s1"), of("s1->l1")], [(fast, delay); 2]);
    assert_eq!(topology.count(NodeTier::Leaf), 2);
}

#[test]
fn a_host_with_back_pressure_drops_nothing_itself() {
    let queues = "queue = { drop_tail = { packets = 7 } }\nnic_queue = { drop_tail = { packets = 9 } }\n";
    let limit = |network: &str, link: &str| {
        let (_, topology) = built(network);
        topology.link(topology.find_link(link).expect("it is there")).queue.limit
    };
    let star = format!("{STAR}{queues}");
    assert_eq!(limit(&star, "h1->s1"), Limit::Unlimited, "a flow waits instead");
    assert_eq!(limit(&star, "s1->h1"), Limit::Packets(7));
    let without = format!("{star}[tcp]\nlimit_output = false\n");
    assert_eq!(limit(&without, "h1->s1"), Limit::Packets(9));
    // a server that forwards for others cannot make these wait
    let bcube = format!("topology = {{ bcube = {{ n = 2, k = 1, forwarding_delay = \"1 us\" }} }}\n{queues}");
    let (_, topology) = built(&bcube);
    let first = topology.link(topology.nic(topology.host(0)));
    assert_eq!(first.queue.limit, Limit::Packets(9));
}

#[test]
fn a_marking_queue_marks_at_its_threshold_and_drops_at_its_limit() {
    let (_, topology) =
        built(&format!("{STAR}queue = {{ threshold_ecn = {{ mark_bytes = \"30 kB\", bytes = \"150 kB\" }} }}"));
    let spec = topology.link(topology.find_link("s1->h1").expect("it is there"));
    assert_eq!(spec.queue.limit, Limit::Bytes(Bytes::new(150_000)));
    assert_eq!(spec.queue.aqm, Aqm::Threshold(Depth::Bytes(Bytes::new(30_000))));
}

#[test]
fn whether_a_queue_marks_follows_from_its_kind() {
    let marks = |queue: &str| {
        let (_, topology) = built(&format!("{STAR}queue = {queue}"));
        marks(topology.link(topology.find_link("s1->h1").expect("it is there")))
    };
    for (queue, right) in [
        ("{ drop_tail = { packets = 7 } }", false),
        ("{ threshold_ecn = { mark_packets = 2, packets = 7 } }", true),
        ("{ red = { min = 1, max = 3, packets = 7 } }", false),
        ("{ red = { min = 1, max = 3, packets = 7, ecn = true } }", true),
        ("{ pie = { packets = 7, ecn = false } }", false),
        ("{ pie = { packets = 7, ecn = true } }", true),
        ("{ codel = { packets = 7, ecn = false } }", false),
        ("{ codel = { packets = 7, ecn = true } }", true),
        ("{ codel = { packets = 7, ecn = false, ce_threshold = \"1 ms\" } }", true),
        ("{ fq_codel = { ecn = false } }", false),
        ("{ fq_codel = { ecn = true } }", true),
        ("{ dualpi2 = {} }", true),
    ] {
        assert_eq!(marks(queue), right, "{queue}");
    }
}

#[test]
fn early_drops_reckon_with_a_full_packet_on_the_wire() {
    let mean = |framing: &str| {
        let queue = "queue = { red = { min = 1, max = 3, packets = 7 } }";
        let (scenario, topology) = built(&format!("{STAR}{queue}\nframing = \"{framing}\"\n[tcp]\nmss = 1448\n"));
        let Aqm::Red(red) = topology.link(topology.find_link("s1->h1").expect("it is there")).queue.aqm else {
            panic!("it is RED")
        };
        (red.mean_packet, framing_bytes(&scenario))
    };
    // 1448 B, 52 of headers with timestamps, and Ethernet's 14 + 24
    assert_eq!((mean("ip"), mean("ethernet")), ((1500, 0), (1538, 38)));
}

#[test]
fn a_link_is_named_in_one_direction_or_in_both() {
    let failing = |link: &str| {
        let failure = format!("[[network.failure]]\nlink = \"{link}\"\nat = \"1 s\"\n");
        let (scenario, topology) = built(&format!("{LEAVES}{failure}"));
        let links = find_links(&topology, &scenario.network.failure[0].link);
        links.into_iter().map(|link| topology.link_name(link)).collect::<Vec<_>>()
    };
    assert_eq!(failing("l1->s1"), ["l1->s1"]);
    assert_eq!(failing("l1-s1"), ["l1->s1", "s1->l1"]);
}

#[test]
fn failures_and_repairs_wait_with_the_next_one_last() {
    let failures = "[[network.failure]]\nlink = \"l1->s1\"\nat = \"2 s\"\nuntil = \"5 s\"\n\
                    [[network.failure]]\nlink = \"l2->s1\"\nat = \"1 s\"\n\
                    [[network.failure]]\nlink = \"h1->l1\"\nat = \"3 s\"\nuntil = \"4 s\"\n";
    let (scenario, topology) = built(&format!("{LEAVES}{failures}"));
    let name = |links: &[LinkId]| topology.link_name(links[0]);
    let all: Vec<_> =
        super::failures(&scenario, &topology).iter().map(|(at, links, fails)| (*at, name(links), *fails)).collect();
    let row = |at, link: &str, fails| (Time::from_secs(at), link.to_string(), fails);
    let right = [
        row(5, "l1->s1", false),
        row(4, "h1->l1", false),
        row(3, "h1->l1", true),
        row(2, "l1->s1", true),
        row(1, "l2->s1", true),
    ];
    assert_eq!(all, right);
}

#[test]
fn every_tier_of_the_model_has_a_name_of_its_own() {
    let tiers = [
        LinkTier::FromHost,
        LinkTier::ToHost,
        LinkTier::EdgeAggregation,
        LinkTier::AggregationCore,
        LinkTier::LeafSpine,
        LinkTier::Bottleneck,
        LinkTier::AggregationIntermediate,
        LinkTier::HostToHost,
        LinkTier::Local,
        LinkTier::Global,
        LinkTier::Switches,
    ];
    let names: std::collections::BTreeSet<&str> = tiers.into_iter().map(tier_name).collect();
    assert_eq!(names.len(), tiers.len());
    // both directions of a host's cable are one part of the scenario, and so named apart only in results
    assert_eq!(tier_of(LinkTier::FromHost), tier_of(LinkTier::ToHost));
    let parts: std::collections::BTreeSet<_> = tiers.into_iter().map(tier_of).collect();
    assert_eq!(parts.len(), tiers.len() - 1);
}
