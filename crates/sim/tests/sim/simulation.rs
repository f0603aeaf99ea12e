//! Whole runs: what must hold for every algorithm, and figures that can be worked out by hand.

use crate::support::run;
use results::RunResults;

/// One link's drops, marks and deliveries add up in every run (`link_rows` asserts it); this adds the hops up.
fn hops(results: &RunResults) -> u64 {
    results.links.iter().map(|link| link.packets).sum()
}

#[test]
fn a_lone_flow_fills_the_link_but_for_headers() {
    for cc in ["newreno", "cubic", "bbr", "dctcp"] {
        let results = run(&format!(
            r#"
            duration = "2 s"
            [network]
            topology = {{ dumbbell = {{ pairs = 1 }} }}
            rate = "1 Gbit/s"
            delay = "10 us"
            [network.tier.bottleneck]
            rate = "100 Mbit/s"
            [tcp]
            cc = "{cc}"
            [[traffic]]
            bulk = {{ from = "left1", to = "right1" }}
            [measure]
            warmup = "1 s"
            "#
        ));
        // 1448 of the 1538 bytes that a full segment takes on Ethernet are payload
        let ideal = 100e6 * 1448.0 / 1538.0;
        let goodput = results.summary.goodput_bps.unwrap();
        assert!(goodput > 0.97 * ideal && goodput <= 1.001 * ideal, "{cc}: {goodput} of {ideal}");
    }
}

#[test]
fn the_first_packet_takes_as_long_as_its_links() {
    // h1 -> s1 -> h2: two links of 1 Gbit/s and 5 us. A segment of 1000 payload bytes is 1052 of IP, 1090 on the wire,
    // 8.72 us a link; it is acknowledged, but of data packets only this one and no other crosses.
    let results = run(r#"
        duration = "1 s"
        [network]
        topology = { star = { hosts = 2 } }
        rate = "1 Gbit/s"
        delay = "5 us"
        [[traffic]]
        bulk = { from = "h1", to = "h2", bytes = "1000 B" }
        [measure]
        packet_delay = true
    "#);
    let flow = &results.flows[0];
    assert_eq!(flow.delivered_bytes, 1000);
    // SYN (60 of IP, 98 on the wire: 0.784 us a link), its ACK the same, then the segment
    let handshake = 2 * 2 * (784 + 5000);
    let segment = 2 * (8720 + 5000);
    assert_eq!(flow.fct_ns(), Some(handshake + segment));
}

#[test]
fn a_host_with_back_pressure_never_drops_in_its_own_queue() {
    let text = |limit: &str| {
        format!(
            r#"
            duration = "500 ms"
            [network]
            topology = {{ star = {{ hosts = 9 }} }}
            rate = "100 Mbit/s"
            delay = "2 ms"
            queue = {{ drop_tail = {{ packets = 1000 }} }}
            nic_queue = {{ drop_tail = {{ packets = 10 }} }}
            [tcp]
            cc = "scalable"
            limit_output = {limit}
            [[traffic]]
            bulk = {{ from = "h1", to = "h2", count = 8 }}
            "#
        )
    };
    assert_eq!(run(&text("\"auto\"")).summary.drops_at_hosts, 0);
    assert!(run(&text("false")).summary.drops_at_hosts > 0, "without it, the same hosts do drop");
}

#[test]
fn incast_rounds_end_and_are_timed() {
    let results = run(r#"
        duration = "2 s"
        [network]
        topology = { star = { hosts = 9 } }
        rate = "1 Gbit/s"
        delay = "10 us"
        [[traffic]]
        name = "query"
        incast = { senders = 8, bytes = "20 kB", repeat = 10 }
    "#);
    assert_eq!(results.summary.extra.get("query.rounds_completed"), Some(&10.0));
    assert_eq!(results.summary.flows_completed, 8);
    assert_eq!(results.summary.delivered_bytes, 8 * 10 * 20_000);
    // 160 kB at 1 Gbit/s take 1.28 ms and a little more
    let median = results.summary.extra["query.round_ms_median"];
    assert!(median > 1.28, "{median} ms");
}

#[test]
fn all_to_all_waits_at_its_barriers() {
    for connections in ["reuse", "new"] {
        let results = run(&format!(
            r#"
            duration = "2 s"
            [network]
            topology = {{ leaf_spine = {{ leaves = 2, spines = 2, hosts_per_leaf = 2 }} }}
            rate = "1 Gbit/s"
            delay = "5 us"
            [[traffic]]
            name = "mpi"
            all_to_all = {{ bytes = "100 kB", rounds = 3, connections = "{connections}" }}
            "#
        ));
        assert_eq!(results.summary.extra.get("mpi.rounds_completed"), Some(&3.0), "{connections}");
        assert_eq!(results.summary.delivered_bytes, 3 * 12 * 100_000);
        let flows = if connections == "reuse" { 12 } else { 36 };
        assert_eq!((results.flows.len(), results.summary.flows_completed), (flows, flows as u64));
    }
}

#[test]
fn large_messages_are_exchanged_in_pairs() {
    let results = run(r#"
        duration = "5 s"
        [network]
        topology = { star = { hosts = 5 } }
        rate = "1 Gbit/s"
        delay = "5 us"
        [measure]
        messages = true
        [[traffic]]
        all_to_all = { bytes = ["1 kB", "1 MB"], rounds = 4, pairwise = "1 MB" }
    "#);
    assert_eq!(results.summary.delivered_bytes, 2 * 20 * 1_001_000);
    // a step of 1 MB takes 8.2 ms, and a round has four: no two messages share a port
    let rounds = |bytes: u64| results.messages.iter().filter(move |row| row.bytes == bytes);
    assert!(rounds(1_000_000).all(|row| row.end_ns - row.start_ns < 10_000_000));
    for (row, flow) in results.messages.iter().map(|row| (row, &results.flows[row.flow as usize])) {
        let of_round = || results.messages.iter().filter(|other| other.round == row.round && other.flow != row.flow);
        let of_sender: Vec<_> = of_round().filter(|other| results.flows[other.flow as usize].src == flow.src).collect();
        assert_eq!(of_sender.len(), 3);
        let apart = |other: &&results::MessageRow| other.end_ns <= row.start_ns || row.end_ns <= other.start_ns;
        let together = |other: &&results::MessageRow| other.start_ns == row.start_ns;
        assert!(if row.bytes == 1000 { of_sender.iter().all(together) } else { of_sender.iter().all(apart) });
    }
}

#[test]
fn jobs_have_their_own_barriers_sizes_and_think_times_and_every_message_is_recorded() {
    let results = run(r#"
        duration = "2 s"
        [network]
        topology = { leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 4 } }
        rate = "1 Gbit/s"
        delay = "5 us"
        queue = { drop_tail = { packets = 40 } }
        [measure]
        messages = true
        [[traffic]]
        name = "mpi"
        all_to_all = { bytes = ["1 B", "100 kB"], rounds = 5, jobs = 2, think = { exponential = "10 ms" } }
        [[traffic]]
        name = "ring"
        exchange = { bytes = "10 kB", rounds = 2, hosts = ["h1", "h2", "h3"], think = "50 ms" }
    "#);
    // two jobs of four hosts, three rounds of 1 B and two of 100 kB, or two and three, since the second job begins half-way; three
    // hosts with two neighbours each
    let of = |entry: &str| results.messages.iter().filter(|row| &*row.entry == entry).collect::<Vec<_>>();
    let (mpi, ring) = (of("mpi"), of("ring"));
    assert_eq!((mpi.len(), ring.len()), (2 * 12 * 5, 6 * 2));
    assert_eq!(mpi.iter().map(|row| row.bytes).sum::<u64>(), 12 * (3 + 200_000) + 12 * (2 + 300_000));
    assert_eq!(results.summary.delivered_bytes, 12 * (5 + 500_000) + 12 * 10_000);
    assert_eq!(results.summary.extra.get("mpi.rounds_completed"), Some(&10.0));
    assert_eq!(results.summary.flows_completed, 24 + 6);
    // each retransmission up to the last message's arrival belongs to a message
    for (number, flow) in results.flows.iter().enumerate() {
        let of_flow = results.messages.iter().filter(|row| row.flow == number as u64);
        let again: u64 = of_flow.map(|row| row.retransmits).sum();
        assert!(again <= flow.retransmits && flow.retransmits - again <= 1, "{again} of {}", flow.retransmits);
    }
    assert!(results.messages.iter().any(|row| row.retransmits > 0), "three at a time into one port");
    let begins = |rows: &[&results::MessageRow], job: u32, round: u64| {
        let mut begins: Vec<u64> =
            rows.iter().filter(|row| (row.job, row.round) == (job, round)).map(|row| row.start_ns).collect();
        begins.dedup();
        assert_eq!(begins.len(), 1, "a round begins at one instant");
        begins[0]
    };
    let ended = |job: u32, round: u64| {
        mpi.iter().filter(|row| (row.job, row.round) == (job, round)).map(|row| row.end_ns).max().unwrap()
    };
    let thoughts: Vec<u64> = (0..2)
        .flat_map(|job| (1..5).map(move |round| (job, round)))
        .map(|(job, round)| begins(&mpi, job, round) - ended(job, round - 1))
        .collect();
    // exponential: none is like another, and eight of mean 10 ms are between 2 and 30 on average
    let mean = thoughts.iter().sum::<u64>() as f64 / 8e6;
    assert!((2.0..30.0).contains(&mean) && thoughts.iter().collect::<std::collections::BTreeSet<_>>().len() == 8);
    let end = ring.iter().filter(|row| row.round == 0).map(|row| row.end_ns).max().unwrap();
    assert_eq!(begins(&ring, 0, 1) - end, 50_000_000);
    // hosts are assigned at random: the first job is not the first four
    let hosts: std::collections::BTreeSet<&str> =
        mpi.iter().filter(|row| row.job == 0).map(|row| &*results.flows[row.flow as usize].src).collect();
    assert_eq!(hosts.len(), 4);
    assert_ne!(hosts.into_iter().collect::<Vec<_>>(), ["h1", "h2", "h3", "h4"]);
}

#[test]
fn poisson_arrivals_bring_the_load_that_was_asked_for() {
    let results = run(r#"
        duration = "3 s"
        [network]
        topology = { leaf_spine = { leaves = 4, spines = 4, hosts_per_leaf = 4 } }
        rate = "1 Gbit/s"
        delay = "2 us"
        [[traffic]]
        stop = "2 s"
        poisson = { load = "20 %", sizes = "web-search" }
    "#);
    // 0.2 * 16 Gbit/s / (8 * 1.67 MB) = 240 flows a second, for two seconds; five standard deviations are 110
    let flows = results.flows.len() as f64;
    assert!((flows - 480.0).abs() < 110.0, "{flows} flows");
    assert!(results.summary.flows_completed as f64 > 0.9 * flows);
}

#[test]
fn a_cut_link_loses_what_it_holds_and_ecmp_finds_another() {
    let text = |failure: &str| {
        format!(
            r#"
            duration = "1 s"
            [network]
            topology = {{ leaf_spine = {{ leaves = 2, spines = 2, hosts_per_leaf = 4 }} }}
            rate = "1 Gbit/s"
            delay = "5 us"
            {failure}
            [[traffic]]
            permutation = {{ across = "pods", bulk = {{ bytes = "20 MB" }} }}
            "#
        )
    };
    let whole = run(&text(""));
    let cut = run(&text("[[network.failure]]\nlink = \"l1-s1\"\nat = \"50 ms\""));
    let lost = |r: &RunResults| r.links.iter().map(|l| l.dropped_by_failure).sum::<u64>();
    assert_eq!(lost(&whole), 0);
    assert!(lost(&cut) > 0);
    // no packet is lost elsewhere, and every flow ends on the spine that is left
    for link in cut.links.iter().filter(|link| link.dropped_by_failure > 0) {
        assert!(["l1->s1", "s1->l1"].contains(&&*link.link), "{}", link.link);
    }
    assert_eq!(cut.summary.flows_completed, 8);
    assert_eq!(whole.summary.flows_completed, 8);
    let through = |r: &RunResults, name: &str| r.links.iter().find(|l| &*l.link == name).unwrap().packets;
    assert!(through(&cut, "l1->s2") > through(&whole, "l1->s2"));
}

#[test]
fn a_flow_without_a_path_is_counted_and_not_opened() {
    let results = run(r#"
        duration = "100 ms"
        [network]
        topology = { star = { hosts = 3 } }
        rate = "1 Gbit/s"
        delay = "1 us"
        [[network.failure]]
        link = "h1-s1"
        at = "1 ms"
        [[traffic]]
        start = "10 ms"
        bulk = { from = "h1", to = "h2" }
    "#);
    assert!(results.flows.is_empty());
    assert_eq!(results.summary.extra["flows_without_a_path"] as u64, 1);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let text = |seed: u64| {
        format!(
            r#"
            seed = {seed}
            duration = "300 ms"
            [network]
            topology = {{ fat_tree = {{ k = 4 }} }}
            rate = "100 Mbit/s"
            delay = "1 us"
            queue = {{ red = {{ min = 5, max = 15, ecn = true }} }}
            [tcp]
            cc = "bbr"
            [[traffic]]
            random_pairs = {{ flows = 20, on_off = {{ rate = "50 Mbit/s", on = "20 ms", off = "20 ms" }} }}
            [[traffic]]
            cc = "dctcp"
            poisson = {{ load = "20 %", sizes = "data-mining" }}
            [measure]
            links = "10 ms"
            cwnd = "10 ms"
            packet_delay = true
            "#
        )
    };
    let (first, again, other) = (run(&text(7)), run(&text(7)), run(&text(8)));
    assert_eq!(first, again);
    assert_ne!(first.flows, other.flows);
    assert_eq!(first.summary.packet_hops, hops(&first));
}

#[test]
fn an_application_that_stops_is_served_to_its_last_byte() {
    let results = run(r#"
        duration = "2 s"
        [network]
        topology = { star = { hosts = 2 } }
        rate = "100 Mbit/s"
        delay = "10 us"
        [[traffic]]
        stop = "1 s"
        bulk = { from = "h1", to = "h2" }
    "#);
    let flow = &results.flows[0];
    assert_eq!(Some(flow.delivered_bytes), flow.bytes);
    // a second of the link, and what the send buffer of 4 MiB had taken
    let second = 100e6 / 8.0 * 1448.0 / 1538.0;
    let delivered = flow.delivered_bytes as f64;
    assert!(delivered > second && delivered < 1.02 * second + f64::from(4 << 20), "{delivered}");
}

#[test]
fn warm_up_leaves_out_what_came_before() {
    let text = |warmup: &str| {
        format!(
            r#"
            duration = "1 s"
            [network]
            topology = {{ star = {{ hosts = 2 }} }}
            rate = "100 Mbit/s"
            delay = "10 us"
            [[traffic]]
            bulk = {{ from = "h1", to = "h2" }}
            [measure]
            warmup = "{warmup}"
            "#
        )
    };
    let (whole, half) = (run(&text("0 s")), run(&text("500 ms")));
    let ratio = half.summary.delivered_bytes as f64 / whole.summary.delivered_bytes as f64;
    assert!((ratio - 0.5).abs() < 0.02, "{ratio}");
    let (whole, half) = (whole.summary.goodput_bps.unwrap(), half.summary.goodput_bps.unwrap());
    assert!((whole / half - 1.0).abs() < 0.02, "the rate is the same: {whole} and {half}");
}

#[test]
fn a_trace_is_replayed_to_the_microsecond() {
    let folder = std::env::temp_dir().join(format!("opentcp-trace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("flows.csv");
    std::fs::write(&file, "time_s,src,dst,bytes\n0.010,h1,h2,5000\n0.020,h2,h3,70000\n").unwrap();
    let results = run(&format!(
        r#"
        duration = "1 s"
        [network]
        topology = {{ star = {{ hosts = 3 }} }}
        rate = "1 Gbit/s"
        delay = "1 us"
        [[traffic]]
        trace = {{ file = "{}" }}
        "#,
        file.display()
    ));
    std::fs::remove_dir_all(&folder).unwrap();
    let rows: Vec<_> = results.flows.iter().map(|f| (f.start_ns, &*f.src, &*f.dst, f.delivered_bytes)).collect();
    assert_eq!(rows, [(10_000_000, "h1", "h2", 5_000), (20_000_000, "h2", "h3", 70_000)]);
}
