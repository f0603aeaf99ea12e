//! Whatever comes over the bus, the Oracle's memory is bounded and its sums hold.

use bus::{LINKS_MAX, MESSAGE_MAX, Measurement, Peer, Report, Telemetry};
use oracle::{COLLECTORS_MAX, Gathered, HOST_LINKS_MAX, HOSTS_MAX, Links, PAIRS_MAX, SWITCH_LINKS_MAX};
use policy::{ArmObservation, COUNT_MAX, Host, Known, Link, NetworkView, Policy};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use std::alloc::System;
use units::{Bytes, Rate, Time};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const PERIOD: Time = Time::from_secs(10);
const POLICY: &str = "name = \"p\"\nmode = \"enforce\"\nperiod = \"10 s\"\n[[rule]]\nname = \"r\"\n\
                      when = \"network.drop_rate < 0.1\"\nset = { initial_cwnd = 20 }\n";

fn in_use() -> usize {
    let Stats { bytes_allocated, bytes_deallocated, .. } = ALLOCATOR.stats();
    bytes_allocated - bytes_deallocated
}

fn gathered() -> Gathered {
    Gathered::new(&Policy::parse("p.toml", POLICY, Known::default()).expect("a policy"))
}

fn host(name: String) -> Host {
    Host { name, rack: "r1".into(), ..Host::default() }
}

fn kind(group: String, remote_rack: String, number: u64) -> Telemetry {
    Telemetry {
        group,
        remote_rack,
        size: "all".into(),
        received: false,
        flows: number,
        bytes: number,
        segments: number,
        retransmits: number,
        fct_us: (0..12).map(|step| (1 << step, 1)).collect(),
    }
}

fn take(gathered: &mut Gathered, host: Host, links: Vec<Link>, telemetry: Vec<Telemetry>) -> usize {
    let bytes = serde_json::to_vec(&Report { host, links, telemetry, ..Report::default() }).unwrap();
    assert!(bytes.len() <= MESSAGE_MAX, "{} bytes", bytes.len());
    gathered.take(Time::from_secs(1), &Peer::Local, &bytes);
    bytes.len()
}

/// The tests of this file measure the memory of the whole process, so they are one.
#[test]
fn unknown_names_take_no_memory_and_sums_do_not_overflow() {
    a_hundred_thousand_groups_are_one();
    a_hundred_thousand_pairs_of_racks_are_some_thousand();
    of_more_hosts_than_a_fleet_has_those_that_came_first_are_kept();
    links_are_bounded_for_all_hosts_together();
    a_host_that_says_all_that_it_may_takes_some_kilobytes();
    a_host_that_counts_all_that_it_may_takes_some_kilobytes();
    numbers_that_are_as_large_as_can_be_saturate();
    what_is_no_report_leaves_nothing();
    what_collectors_measure_is_bounded();
}

fn a_hundred_thousand_groups_are_one() {
    let mut gathered = gathered();
    take(&mut gathered, host("h".into()), Vec::new(), vec![kind("p/r".into(), String::new(), 1)]);
    let before = in_use();
    for report in 0..400 {
        let kinds = (0..257).map(|i| kind(format!("{report}/{i}"), String::new(), 1)).collect();
        let bytes = take(&mut gathered, host("h".into()), Vec::new(), kinds);
        assert!(bytes > 45_000, "{bytes}");
    }
    let grown = in_use() - before;
    println!("400 reports of 257 new groups: {grown} bytes more");
    assert!(grown < 400_000, "{grown} bytes for 400 reports");
    assert_eq!(gathered.intake().groups_other, 400 * 257);
    let view = gathered.view(PERIOD, PERIOD, NetworkView::default());
    let groups: Vec<(&str, Option<f64>)> = view.groups.iter().map(|g| (g.name.as_str(), g.flow_starts)).collect();
    assert_eq!(groups, [("other", Some(40.0 * 257.0)), ("p/r", Some(0.1))]);
}

fn a_hundred_thousand_pairs_of_racks_are_some_thousand() {
    let mut gathered = gathered();
    let before = in_use();
    for report in 0..400 {
        let kinds = (0..250).map(|i| kind("default".into(), format!("rack {report} {i}"), 1)).collect();
        // under five hosts nobody is odd, and one host has no more than 256 pairs
        take(&mut gathered, host(format!("h{}", report % 4)), Vec::new(), kinds);
    }
    let grown = in_use() - before;
    println!("100,000 pairs of racks: {grown} bytes more");
    // of pairs of racks, and of their 20,480 combinations with sizes for a scenario of the network
    assert!(grown < 6_000_000, "{grown} bytes");
    let view = gathered.view(PERIOD, PERIOD, NetworkView::default());
    assert_eq!((view.matrix.len(), gathered.intake().racks_other), (4 * 256 + 1, 100_000 - 4 * 256));
    let before = in_use();
    drop(gathered);
    assert!(in_use() <= before);
}

fn of_more_hosts_than_a_fleet_has_those_that_came_first_are_kept() {
    const BEYOND: usize = 1000;
    let mut gathered = gathered();
    let before = in_use();
    for i in 0..HOSTS_MAX + BEYOND {
        take(&mut gathered, host(format!("{i:0>255}")), Vec::new(), Vec::new());
    }
    let grown = in_use() - before;
    println!("{HOSTS_MAX} hosts: {grown} bytes more");
    // each has two names of 255 bytes, what it reported, and what operators are shown of it
    assert!(grown < HOSTS_MAX * 1800, "{grown} bytes");
    let intake = gathered.intake();
    assert_eq!((gathered.hosts(), intake.taken, intake.hosts_beyond), (HOSTS_MAX, HOSTS_MAX as u64, BEYOND as u64));
    // they are gone two periods later, and others have room
    assert!(gathered.view(PERIOD * 4, PERIOD, NetworkView::default()).hosts.is_empty());
}

fn links_are_bounded_for_all_hosts_together() {
    const BEYOND: usize = 100;
    let full = HOST_LINKS_MAX / LINKS_MAX;
    let mut gathered = gathered();
    let links = |host: &str, long: usize| -> Vec<Link> {
        (0..LINKS_MAX)
            .map(|i| Link {
                name: format!("{host} {i:0>long$}"),
                from: host.into(),
                to: "r1".into(),
                ..Link::default()
            })
            .collect()
    };
    let before = in_use();
    for i in 0..full + BEYOND {
        // the longest name is the host's own and a number
        let name = format!("h{i}");
        let all = || links(&name, 254 - name.len());
        take(&mut gathered, host(name.clone()), all(), Vec::new());
        // what a host said before makes room for what it says now
        take(&mut gathered, host(name.clone()), all(), Vec::new());
    }
    let grown = in_use() - before;
    println!("{LINKS_MAX} links of each of {} hosts: {grown} bytes more", full + BEYOND);
    assert!(grown < HOST_LINKS_MAX * 600 + (full + BEYOND) * 1800, "{grown} bytes");
    assert_eq!(gathered.intake().links_beyond, (2 * BEYOND * LINKS_MAX) as u64);
    let view = gathered.view(PERIOD, PERIOD, NetworkView::default());
    assert_eq!(view.links.len(), HOST_LINKS_MAX, "of those hosts that came first");
}

fn a_host_that_says_all_that_it_may_takes_some_kilobytes() {
    let mut gathered = gathered();
    let long = |i: usize| format!("{i:0>255}");
    let full = Host {
        rack: long(0),
        cc: long(0),
        labels: (0..16).map(|i| (long(i), long(i))).collect(),
        algorithms: (0..64).map(|i| format!("kernel:{i:0>15}")).collect(),
        srtt_us: (0..256).map(|us| (us, 1)).collect(),
        ..host(long(0))
    };
    let before = in_use();
    take(&mut gathered, full, Vec::new(), Vec::new());
    let grown = in_use() - before;
    println!("the fullest host: {grown} bytes");
    assert!(gathered.hosts() == 1 && grown < 20_000, "{grown} bytes");
}

fn a_host_that_counts_all_that_it_may_takes_some_kilobytes() {
    let mut gathered = gathered();
    gathered.begin(1, std::iter::empty());
    take(&mut gathered, host("h".into()), Vec::new(), Vec::new());
    let before = in_use();
    // every bin that there is, in every group, for two periods, and more pairs of racks than are kept of one host
    for of_epoch in [None, Some(1)] {
        for report in 0..40_u64 {
            let times =
                |kind: u64| (0..20).map(|step| (((report * 250 + kind * 20 + step) * 429_497) as u32, 9)).collect();
            let names = ["p/r", "default", "nonsense"];
            let kinds = (0..100).map(|i| Telemetry {
                fct_us: times(i),
                ..kind(names[i as usize % 3].into(), format!("rack {report} {i}"), 1)
            });
            let (host, telemetry) = (host("h".into()), kinds.collect());
            let bytes = serde_json::to_vec(&Report { host, of_epoch, telemetry, ..Report::default() }).unwrap();
            gathered.take(Time::from_secs(1), &Peer::Local, &bytes);
        }
    }
    let grown = in_use() - before;
    println!("the fullest connections of a host: {grown} bytes");
    // beside them, its 4000 combinations of racks and size among the 20,480 that are kept for all hosts together
    assert!(gathered.intake().refused == 0 && grown < 64_000 + 4000 * 200, "{grown} bytes");
}

fn numbers_that_are_as_large_as_can_be_saturate() {
    let mut gathered = gathered();
    let counted = |arms: &[ArmObservation; 2]| arms.each_ref().map(|arm| arm.segments);
    for i in 0..4000 {
        let largest = Host {
            live_flows: Some(COUNT_MAX as f64),
            flow_starts: Some(COUNT_MAX as f64),
            sent_segments: Some(COUNT_MAX),
            retransmitted_segments: Some(COUNT_MAX),
            send_rate: Some(Rate::from_bps(COUNT_MAX)),
            srtt_us: vec![(0, u32::MAX), (u32::MAX, u32::MAX)],
            ..host(format!("h{i}"))
        };
        let (name, from, to) = (format!("h{i} l out"), format!("h{i}"), "r1".to_string());
        let link = Link { name, from, to, queue: Some(Bytes::new(COUNT_MAX)), ..Link::default() };
        let mut kind = kind("p/r".into(), "r2".into(), COUNT_MAX);
        kind.fct_us = vec![(0, u32::MAX), (u32::MAX, u32::MAX)];
        take(&mut gathered, largest, vec![link], vec![kind]);
    }
    assert_eq!(gathered.intake().taken, 4000);
    let view = gathered.view(PERIOD, PERIOD, NetworkView::default());
    let policy = Policy::parse("p.toml", POLICY, Known::default()).unwrap();
    let mut oracle = policy::Oracle::new(policy, policy::OracleKey::from_secret([1; 32]), policy::History::default());
    gathered.begin(1, std::iter::empty());
    let [(None, arms)] = &gathered.take_arms()[..] else { panic!("of the period before the first decision") };
    for _ in 0..2 {
        oracle.turn(&view, arms.clone());
    }
    gathered.begin(2, std::iter::empty());
    let [(Some(1), arms)] = &gathered.take_arms()[..] else { panic!("of the first period") };
    assert_eq!(counted(arms), [0, 0], "they were taken");
    assert_eq!(view.matrix[0].rate, Rate::from_bps((4000.0 * 8.0 * COUNT_MAX as f64 / 10.0) as u64), "the sum of all");
    assert_eq!(view.groups[0].retransmit_rate, Some(1.0));
    assert!(view.groups[0].flow_starts.unwrap().is_finite());
}

fn what_is_no_report_leaves_nothing() {
    let mut gathered = gathered();
    let deep = ["[".repeat(60_000), r#"{"host":"#.to_string() + &"{\"labels\":".repeat(5000)];
    let host = |fields: &str| format!(r#"{{"host": {{"name": "h", {fields}}}}}"#);
    let kind = |fields: &str| format!(r#"{{"host": {{"name": "h"}}, "telemetry": [{{{fields}}}]}}"#);
    let many =
        |list: &str, n: usize| format!(r#"{{"host": {{"name": "h"}}, "{list}": [{}]}}"#, vec!["{}"; n].join(","));
    let pairs = |n: usize| vec!["[1,1]"; n].join(",");
    let broken = [
        host(r#""live_flows": NaN"#),
        host(r#""live_flows": 1e400"#),
        host(r#""live_flows": 1e308"#),
        host(r#""live_flows": -1"#),
        host(r#""flow_starts": -1e-300"#),
        host(r#""sent_segments": 18446744073709551615"#),
        host(r#""sent_segments": 18446744073709551616"#),
        host(r#""sent_segments": -1"#),
        host(r#""sent_segments": 1, "retransmitted_segments": 2"#),
        host(r#""send_rate": "18446744073709551615 bit/s""#),
        host(r#""fct": {"p50": "1e308 s"}"#),
        host(r#""srtt_us": [[4294967296, 1]]"#),
        host(r#""srtt_us": [[2, 1], [2, 1]]"#),
        host(&format!(r#""srtt_us": [{}]"#, pairs(10_000))),
        host(&format!(r#""rack": "{}""#, "r".repeat(50_000))),
        host(r#""rack": "two\nlines""#),
        r#"{"host": {"name": ""}}"#.to_string(),
        kind(r#""flows": 18446744073709551615"#),
        kind(r#""segments": 1, "retransmits": 2"#),
        kind(&format!(r#""fct_us": [{}]"#, pairs(10_000))),
        kind(&format!(r#""group": "{}""#, "g".repeat(50_000))),
        many("links", 20_000),
        many("telemetry", 650),
        many("in_force", 20_000),
        String::new(),
        "null".to_string(),
    ];
    let before = in_use();
    for text in broken.iter().chain(&deep) {
        let refused = gathered.intake().refused;
        gathered.take(Time::ZERO, &Peer::Local, text.as_bytes());
        assert_eq!(gathered.intake().refused, refused + 1, "{}", &text[..text.len().min(200)]);
    }
    for bytes in [vec![0xff; 4096], vec![0; MESSAGE_MAX]] {
        gathered.take(Time::ZERO, &Peer::Local, &bytes);
    }
    assert!(in_use() - before < 4096, "{} bytes", in_use() - before);
    assert_eq!((gathered.intake().taken, gathered.hosts()), (0, 0));
}

fn what_collectors_measure_is_bounded() {
    let mut links = Links::default();
    let long = |i: usize| format!("{i:0>255}");
    let link = |i: usize| Link { name: long(i), from: long(1), to: long(2), ..Link::default() };
    let pair = |i: usize| policy::RackPair { from: long(i), to: long(1), rate: Rate::from_mbps(1) };
    let before = in_use();
    // 300 collectors of 1000 links each: 44 collectors, and then 37,856 links, are too many
    for collector in 0..300 {
        let measurement = Measurement {
            source: long(collector),
            links: (0..1000)
                .map(|i| link(1000 * collector + i))
                .chain((0..100).map(|_| link(1000 * collector)))
                .collect(),
            matrix: (0..300).map(pair).collect(),
            problems: vec![long(1); 64],
            ..Measurement::default()
        };
        for message in measurement.to_messages() {
            links.take(Time::from_secs(1), &Peer::Local, &message);
        }
    }
    for round in 0..2 {
        let full = Measurement {
            source: long(0),
            round,
            links: (0..70_000).map(|i| link(900_000 + i)).collect(),
            ..Measurement::default()
        };
        full.to_messages().iter().for_each(|message| links.take(Time::from_secs(1), &Peer::Local, message));
    }
    let grown = in_use() - before;
    println!("262,144 links with the longest names and 65,536 pairs of racks: {grown} bytes more");
    let intake = links.intake();
    assert_eq!((links.collectors(), intake.links_beyond), (COLLECTORS_MAX, 256_000 + 2 * 70_000 - 262_144 - 6144));
    assert_eq!(intake.pairs_beyond, 256 * 300 - 65_536);
    assert!(grown < SWITCH_LINKS_MAX * 1200 + PAIRS_MAX * 800 + COLLECTORS_MAX * 40_000, "{grown} bytes");
    assert!(links.add_to(Time::from_secs(200), PERIOD, NetworkView::default()).links.is_empty());
    let left = in_use().saturating_sub(before);
    assert!(left < 10_000, "{left} bytes after all was forgotten");
}
