//! The engine's rules: what a run's result may and may not depend on.

use crate::support::run;
use results::{FlowRow, RunResults};

const NETWORK: &str = r#"
    duration = "50 ms"
    [network]
    topology = { leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 4 } }
    rate = "1 Gbit/s"
    delay = "5 us"
"#;

const WEB: &str = r#"
    [[traffic]]
    name = "web"
    poisson = { load = "80 %", sizes = "web-search" }
"#;

const PAIRS: &str = r#"
    [[traffic]]
    name = "pairs"
    random_pairs = { flows = 6, on_off = { rate = "50 Mbit/s", on = "2 ms", off = "1 ms" } }
"#;

const LATE: &str = r#"
    [[traffic]]
    name = "late"
    start = "40 ms"
    bulk = { from = "h1", to = "h2", bytes = "100 kB" }
"#;

fn of<'a>(results: &'a RunResults, group: &str) -> Vec<&'a FlowRow> {
    results.flows.iter().filter(|flow| &*flow.group == group).collect()
}

#[test]
fn what_a_generator_draws_does_not_depend_on_the_others() {
    let drawn = |results: &RunResults| -> Vec<_> {
        of(results, "web")
            .into_iter()
            .map(|flow| (flow.start_ns, flow.src.clone(), flow.dst.clone(), flow.bytes))
            .collect()
    };
    let alone = drawn(&run(&format!("{NETWORK}{WEB}")));
    assert!(alone.len() > 10, "{}", alone.len());
    for others in [format!("{PAIRS}{WEB}"), format!("{WEB}{PAIRS}"), format!("{PAIRS}{LATE}{WEB}")] {
        assert_eq!(drawn(&run(&format!("{NETWORK}{others}"))), alone);
    }
}

#[test]
fn a_flow_keeps_its_path_and_its_packets_when_another_is_added_later() {
    let (alone, beside) = (run(&format!("{NETWORK}{PAIRS}")), run(&format!("{NETWORK}{PAIRS}{LATE}")));
    // six flows of 50 Mbit/s leave room on every link: each has as many packets and the same round trips
    let seen = |results: &RunResults| -> Vec<_> {
        of(results, "pairs")
            .into_iter()
            .map(|flow| (flow.src.clone(), flow.dst.clone(), flow.bytes, flow.min_rtt_us))
            .collect()
    };
    assert_eq!(seen(&alone), seen(&beside));
    let through = |results: &RunResults, spine: &str| -> u64 {
        let links = results.links.iter().filter(|link| link.link.starts_with(spine));
        links.map(|link| link.packets).sum()
    };
    // h1 and h2 share a leaf: on the spines there are only the pairs, each on its earlier path
    for spine in ["s1", "s2"] {
        assert_eq!(through(&alone, spine), through(&beside, spine));
    }
}

#[test]
fn the_order_of_entries_in_a_file_does_not_matter() {
    let orders = [[WEB, PAIRS, LATE], [LATE, PAIRS, WEB], [PAIRS, WEB, LATE]];
    let results = orders.map(|entries| run(&format!("{NETWORK}{}", entries.concat())));
    let (first, others) = results.split_first().expect("there are three");
    for other in others {
        assert_eq!((&first.flows, &first.links), (&other.flows, &other.links));
    }
}

#[test]
fn applications_react_within_the_lookahead_of_the_network() {
    let results = run(r#"
        duration = "50 ms"
        [network]
        topology = { star = { hosts = 4 } }
        rate = "1 Gbit/s"
        delay = "2 us"
        framing = "ip"
        [measure]
        messages = true
        [[traffic]]
        all_to_all = { bytes = "10 kB", rounds = 3 }
    "#);
    let of_round = |round: u64| results.messages.iter().filter(move |message| message.round == round);
    for round in 1..3 {
        let ended = of_round(round - 1).map(|message| message.end_ns).max().expect("rounds have messages");
        // a bare acknowledgment of 40 bytes takes 320 ns and 2 us over a link; ends are whole nanoseconds, rounded down
        let reaction = of_round(round).map(|message| message.start_ns - ended).collect::<Vec<_>>();
        assert!(reaction.iter().all(|ns| (2320..=2321).contains(ns)), "{reaction:?}");
    }
}
