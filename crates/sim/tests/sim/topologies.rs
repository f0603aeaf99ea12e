//! Runs on data-center networks: goodput beside the papers' claims, forwarding by servers, spraying and reordering.
#![allow(clippy::print_stdout, reason = "the figures stand side by side in the test's output")]

use crate::support::run;
use results::RunResults;

fn network(topology: &str, more: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "60 ms"
        [network]
        topology = {{ {topology} }}
        rate = "1 Gbit/s"
        delay = "1 us"
        queue = {{ threshold_ecn = {{ mark_packets = 20, packets = 200 }} }}
        nic_queue = {{ threshold_ecn = {{ mark_packets = 20, packets = 200 }} }}
        {more}
        [tcp]
        cc = "dctcp"
        rto_min = "5 ms"
        [measure]
        warmup = "20 ms"
        [[traffic]]
        {traffic}
        "#
    )
}

const PERMUTATION: &str = "permutation = { across = \"pods\", bulk = {} }";
/// Bits of a link's rate that are payload: 1448 of 1538 bytes.
const PAYLOAD: f64 = 1448.0 / 1538.0;

/// Goodput of all hosts, Gbit/s. What the links hold was checked by the run's end: it asserts conservation.
fn goodput(results: &RunResults) -> f64 {
    results.summary.goodput_bps.unwrap() / 1e9
}

/// Prints a permutation's goodput beside a bound; both in Gbit/s.
fn compare(name: &str, topology: &str, more: &str, (bound, words): (f64, &str), share: f64) {
    let results = run(&network(topology, more, PERMUTATION));
    let reached = goodput(&results);
    println!("{name}: {reached:.2} Gbit/s, {:.0} % of {bound:.2} ({words})", 100.0 * reached / bound);
    assert!(reached <= bound * 1.001, "{name}: {reached} is more than {bound}");
    assert!(reached >= share * bound, "{name}: {reached} of {bound}");
}

#[test]
fn a_permutation_on_vl2_is_near_its_optimum() {
    let hosts = 80.0;
    // the paper's rates, 1 to 10, in tenths
    let rates = "[network.tier.aggregation]\nrate = \"10 Gbit/s\"\n[network.tier.intermediate]\nrate = \"10 Gbit/s\"";
    let topology = "vl2 = { aggregation_ports = 4, intermediate_ports = 4 }";
    // some of a ToR's 20 flows meet at one of its two uplinks, which have room for ten
    compare("VL2 80 hosts", topology, rates, (hosts * PAYLOAD, "every host sends at its rate"), 0.7);
    let text = network(topology, rates, "all_to_all = { bytes = \"100 kB\", rounds = 1 }");
    let results = run(&text.replace("60 ms", "1 s").replace("warmup = \"20 ms\"", ""));
    let last = results.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap() as f64;
    assert_eq!(results.summary.flows_completed, 80 * 79);
    let reached = 80.0 * 79.0 * 100e3 * 8.0 / last / (hosts * PAYLOAD);
    println!(
        "VL2 80 hosts, all to all: {:.0} % of the optimum; the paper's shuffle of 500 MB a pair: 94 %",
        100.0 * reached
    );
    assert!(reached > 0.5 && reached <= 1.0, "{reached}");
}

#[test]
fn a_permutation_on_bcube_stays_below_its_interfaces() {
    let bound = (16.0 * 2.0 * PAYLOAD, "two interfaces a host");
    compare("BCube n 4 k 1", "bcube = { n = 4, k = 1, forwarding_delay = \"1 us\" }", "", bound, 0.25);
}

#[test]
fn a_permutation_on_dcell_stays_below_its_interfaces() {
    let bound = (20.0 * 2.0 * PAYLOAD, "two interfaces a host");
    compare("DCell n 4 l 1", "dcell = { n = 4, l = 1, forwarding_delay = \"1 us\" }", "", bound, 0.1);
}

#[test]
fn permutations_on_a_jellyfish_and_a_dragonfly_stay_below_their_hosts_rate() {
    let jellyfish = "jellyfish = { switches = 16, ports = 8, hosts_per_switch = 3 }";
    compare("Jellyfish 48 hosts", jellyfish, "", (48.0 * PAYLOAD, "every host sends at its rate"), 0.5);
    let dragonfly = "dragonfly = { hosts_per_switch = 2, switches_per_group = 4, global_ports = 2 }";
    for routing in ["ecmp", "valiant"] {
        let more = format!("routing = \"{routing}\"");
        compare(
            &format!("Dragonfly 72 hosts {routing}"),
            dragonfly,
            &more,
            (72.0 * PAYLOAD, "every host sends at its rate"),
            0.25,
        );
    }
}

/// All hosts to all others: the papers' aggregate bottleneck throughput, and what no routing exceeds.
#[test]
fn all_to_all_on_bcube_and_dcell_is_beside_their_aggregate_bottleneck_throughput() {
    let all = "all_to_all = { bytes = \"2 MB\", rounds = 1 }";
    for (name, topology, n, claim, most) in [
        // n/(n-1) (N-1) links' rates, which is what its links allow
        ("BCube n 4 k 1", "bcube = { n = 4, k = 1, forwarding_delay = \"1 us\" }", 16.0, None, 4.0 / 3.0 * 15.0),
        // fewer than t 2^l flows on any link: at least (N-1)/2^l; and t(0)^2 flows over the cable between two cells
        (
            "DCell n 4 l 1",
            "dcell = { n = 4, l = 1, forwarding_delay = \"1 us\" }",
            20.0,
            Some(19.0 / 2.0),
            20.0 * 19.0 / 16.0,
        ),
    ] {
        let results = run(&network(topology, "", all).replace("60 ms", "2 s").replace("warmup = \"20 ms\"", ""));
        let flows: f64 = n * (n - 1.0);
        assert_eq!(results.flows.iter().filter(|flow| flow.end_ns.is_some()).count(), results.flows.len());
        let last = results.flows.iter().filter_map(|flow| flow.end_ns).max().unwrap() as f64;
        let (reached, most) = (flows * 2e6 * 8.0 / last, most * PAYLOAD);
        let claim = claim.map_or(most, |claim| claim * PAYLOAD);
        println!(
            "{name} all to all: {reached:.2} Gbit/s; the paper's claim {claim:.2}, the bound of its links {most:.2}"
        );
        assert!(reached <= most * 1.001 && reached > 0.6 * claim, "{name}: {reached} of {claim}");
    }
}

#[test]
fn a_server_that_forwards_takes_its_delay_and_a_slowdown_is_1() {
    let fct = |delay: &str| {
        let topology = format!("bcube = {{ n = 4, k = 1, forwarding_delay = \"{delay}\" }}");
        // h1 is 00 and h6 is 11: by one server
        let text = network(&topology, "", "bulk = { from = \"h1\", to = \"h6\", bytes = \"1000 B\" }")
            .replace("warmup = \"20 ms\"", "");
        let results = run(&text);
        let slowdown = results.summary.slowdown.unwrap().all.p50;
        assert!((1.0..1.001).contains(&slowdown), "{slowdown}");
        results.flows[0].fct_ns().unwrap() as i64
    };
    // SYN, SYN-ACK and data pass it
    let more = fct("100 us") - fct("0 s");
    assert!((300_000..300_010).contains(&more), "{more} ns");
}

#[test]
fn what_servers_forward_shares_their_interfaces_with_what_they_send() {
    // h1 (00) sends to h14 (31) by h13 (30), which sends to h14 as well
    let topology = "bcube = { n = 4, k = 1, forwarding_delay = \"1 us\" }";
    let both = network(
        topology,
        "routing = \"single-path\"",
        "bulk = { from = \"h1\", to = \"h14\" }\n[[traffic]]\nbulk = { from = \"h13\", to = \"h14\" }",
    );
    let results = run(&both);
    // h1's way corrects the highest digit first: s5 to h13, and on over h13's own interface
    let through = |name: &str| results.links.iter().find(|link| &*link.link == name).unwrap().packets;
    assert!(through("h1->s5") > 1000 && through("s5->h13") > 1000, "h13 forwards");
    assert!((goodput(&results) - PAYLOAD).abs() < 0.02 * PAYLOAD, "{}", goodput(&results));
}

/// A permutation on a fat tree; ways are as said.
fn fat_tree(more: &str, tcp: &str) -> RunResults {
    run(&network("fat_tree = { k = 4 }", more, PERMUTATION).replace("[tcp]", &format!("[tcp]\n{tcp}")))
}

fn retransmits(results: &RunResults) -> u64 {
    results.flows.iter().map(|flow| flow.retransmits).sum()
}

#[test]
fn spraying_gains_more_than_loss_detection_loses_by_its_reordering() {
    // from the start: what loss detection has learned by the end of a warm-up would hide what it took
    let whole = |ways: &str, tcp: &str| {
        let text = network("fat_tree = { k = 4 }", ways, PERMUTATION).replace("[tcp]", &format!("[tcp]\n{tcp}"));
        run(&text.replace("warmup = \"20 ms\"", ""))
    };
    let spray = "balancing = \"packet\"";
    let ecmp = whole("", "");
    let flowlets = whole("balancing = { flowlet = { gap = \"200 us\" } }", "");
    let rack = whole(spray, "");
    let adaptive = whole(spray, "rack = false\ntlp = false");
    let dupacks = whole(spray, "sack = false");
    let sent = |results: &RunResults| results.flows.iter().map(|flow| flow.data_packets_sent).sum::<u64>();
    let spurious = |results: &RunResults| retransmits(results).saturating_sub(results.summary.drops_at_switches);
    for (name, results) in [
        ("ECMP", &ecmp),
        ("flowlets", &flowlets),
        ("spraying, RACK", &rack),
        ("spraying, SACK with Linux's adaptive threshold", &adaptive),
        ("spraying, duplicate ACKs alone", &dupacks),
    ] {
        let share = 100.0 * spurious(results) as f64 / sent(results) as f64;
        println!(
            "{name}: {:.2} Gbit/s, {} retransmissions for nothing of {} packets, {share:.1} %",
            goodput(results),
            spurious(results),
            sent(results)
        );
    }
    assert_eq!(spurious(&ecmp), 0, "one path keeps the order");
    assert!(spurious(&rack) > 0, "packets are reordered");
    assert!(spurious(&rack) * 20 < sent(&rack), "less than 5 % for nothing");
    assert!(goodput(&rack) > goodput(&ecmp), "spraying leaves no core idle");
}

#[test]
fn spraying_uses_all_paths_alike_and_gives_the_same_again() {
    let one = fat_tree("balancing = \"packet\"", "");
    let again = fat_tree("balancing = \"packet\"", "");
    assert_eq!(one.links, again.links);
    let up: Vec<u64> = one
        .links
        .iter()
        .filter(|link| link.link.starts_with('a') && link.link.contains("->c"))
        .map(|link| link.packets)
        .collect();
    let mean = up.iter().sum::<u64>() as f64 / up.len() as f64;
    assert_eq!(up.len(), 16);
    assert!(up.iter().all(|packets| (*packets as f64 - mean).abs() < 0.1 * mean), "{up:?}");
}

#[test]
fn flows_that_are_sprayed_leave_a_link_that_fails_and_return_after_its_repair() {
    let failure = "balancing = \"packet\"\n[[network.failure]]\nlink = \"a1-c1\"\nat = \"20 ms\"\nuntil = \"40 ms\"";
    let results = fat_tree(failure, "");
    let lost: u64 = results.links.iter().map(|link| link.dropped_by_failure).sum();
    assert!(lost > 0 && lost < 1000, "{lost} lost");
    let after = results.links.iter().find(|link| &*link.link == "a1->c1").unwrap().packets;
    let whole = results.links.iter().find(|link| &*link.link == "a1->c2").unwrap().packets;
    println!("after the failure: {after} packets by a1->c1, {whole} by a1->c2");
    assert!(after > whole / 4 && after < whole * 3 / 4, "it was down for half of the time");
    assert_eq!(results.flows.len(), 16);
    assert!(goodput(&results) > 8.0, "{}", goodput(&results));
}

#[test]
fn a_flow_whose_interface_fails_goes_on_by_the_other_one() {
    // one of the two is the flow's, and the other is after the first failure
    let failures = "[[network.failure]]\nlink = \"h1-s1\"\nat = \"10 ms\"\nuntil = \"20 ms\"\n\
                    [[network.failure]]\nlink = \"h1-s5\"\nat = \"30 ms\"\nuntil = \"40 ms\"";
    let topology = "bcube = { n = 4, k = 1, forwarding_delay = \"1 us\" }";
    let results = run(&network(topology, failures, "bulk = { from = \"h1\", to = \"h6\" }"));
    let by = |name: &str| results.links.iter().find(|link| &*link.link == name).unwrap().packets;
    println!("{} packets by h1->s1, {} by h1->s5; {:.2} Gbit/s", by("h1->s1"), by("h1->s5"), goodput(&results));
    assert!(by("h1->s1") > 100 && by("h1->s5") > 100, "both interfaces");
    assert!(goodput(&results) > 0.5, "{}", goodput(&results));
}
