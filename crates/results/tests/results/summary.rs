//! The summary: arithmetic by hand, the file as a reader sees it, and no number that JSON cannot hold.

use crate::common;
use std::fs;

use results::{Comparison, FlowRow, Identity, LinkRow, RunResults, Summary, write_run, write_sweep};

fn identity(duration_ns: u64) -> Identity {
    Identity { scenario: "by hand".to_owned(), seed: 1, version: "0.1.0".to_owned(), duration_ns, end_ns: duration_ns }
}

fn flows() -> Vec<FlowRow> {
    let mut flows = common::run(0, "ecmp", 1).flows;
    flows.truncate(3);
    let set = [
        // (start, end, packets, mean delay, IP bytes, ACKs, ACK bytes)
        (0, Some(100), 1, Some(10), 1_500, 1, 40),
        (50, Some(350), 3, Some(30), 4_500, 2, 80),
        (60, None, 0, None, 0, 0, 0),
    ];
    // (size, ideal completion time)
    let sizes = [(1_500, 80), (4_500, 100), (20_000, 200)];
    for (flow, (bytes, ideal)) in flows.iter_mut().zip(sizes) {
        flow.bytes = Some(bytes);
        flow.ideal_fct_ns = Some(ideal);
    }
    for (flow, (start, end, packets, delay, bytes, acks, ack_bytes)) in flows.iter_mut().zip(set) {
        flow.start_ns = start;
        flow.end_ns = end;
        flow.packets_received = packets;
        flow.mean_packet_delay_ns = delay;
        flow.ip_bytes_received = bytes;
        flow.delivered_bytes = bytes;
        flow.acks_received = acks;
        flow.ack_ip_bytes_received = ack_bytes;
        flow.mean_ack_delay_ns = (acks > 0).then_some(5);
    }
    flows
}

fn links() -> Vec<LinkRow> {
    let mut links = common::run(0, "ecmp", 1).links;
    links.truncate(2);
    for (link, (from_host, packets, dropped, queue)) in links.iter_mut().zip([(true, 10, 1, 99), (false, 7, 4, 5)]) {
        link.from_host = from_host;
        link.packets = packets;
        link.dropped = dropped;
        link.max_queue_packets = queue;
    }
    links
}

#[test]
fn totals_and_means_by_hand() {
    let summary = Summary::of(identity(1_000), &flows(), &links());
    assert_eq!(summary.packet_hops, 17);
    assert_eq!((summary.drops_at_hosts, summary.drops_at_switches), (1, 4));
    assert_eq!(summary.max_switch_queue_packets, 5);
    assert_eq!((summary.flows, summary.flows_completed), (3, 2));
    // 6,000 bytes in 1 µs: 48 Gbit/s, over three flows 16 Gbit/s each.
    assert_eq!(summary.goodput_bps, Some(48e9));
    assert_eq!(summary.mean_data_flow_throughput_bps, Some(16e9));
    // With 120 bytes of ACKs over six flows: 6,120 × 8 / 1 µs / 6 = 8.16 Gbit/s.
    assert_eq!(summary.mean_data_and_ack_flow_throughput_bps, Some(8.16e9));
    // By packets (1 × 10 + 3 × 30) / 4; by flows (10 + 30) / 2; with ACKs (100 + 3 × 5) / 7.
    assert_eq!(summary.mean_packet_delay_ns, Some(25.0));
    assert_eq!(summary.mean_flow_delay_ns, Some(20.0));
    assert_eq!(summary.mean_data_and_ack_packet_delay_ns, Some(115.0 / 7.0));
    // Completion times 100 and 300.
    assert_eq!(summary.mean_fct_ns, Some(200.0));
    assert_eq!((summary.median_fct_ns, summary.p99_fct_ns), (Some(100), Some(300)));
}

#[test]
fn slowdowns_by_hand() {
    let slowdown = Summary::of(identity(1_000), &flows(), &links()).slowdown.unwrap();
    // 100 / 80 and 300 / 100; the third is (1,000 - 60) / 200 old.
    let [small, medium] = &slowdown.classes[..] else { panic!("two classes: {slowdown:?}") };
    assert_eq!((small.class.as_str(), small.flows, small.p50, small.p99), ("< 10 kB", 2, 1.25, 3.0));
    assert!(small.at_least.is_empty());
    assert_eq!((medium.class.as_str(), medium.unfinished, medium.p50), ("10–100 kB", 1, 4.7));
    assert_eq!(medium.at_least, ["p50", "p95", "p99"]);
    // Of all three the median is 3.0 however long the third goes on; the other percentiles are the third's.
    assert_eq!((slowdown.all.p50, slowdown.all.p99), (3.0, 4.7));
    assert_eq!(slowdown.all.at_least, ["p95", "p99"]);
}

#[test]
fn nothing_measured_is_null_and_never_a_number() {
    let summary = Summary::of(identity(0), &[], &[]);
    assert_eq!(summary.goodput_bps, None);
    assert_eq!(summary.mean_data_flow_throughput_bps, None);
    assert_eq!(summary.mean_packet_delay_ns, None);
    assert_eq!(summary.p99_fct_ns, None);
    let json = serde_json::to_string(&summary).unwrap();
    assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
    assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
}

#[test]
fn extra_numbers_are_kept_if_they_are_numbers() {
    let mut summary = Summary::of(identity(1), &[], &[]);
    summary.insert("barrier_ms", 3.5);
    summary.insert("ratio", f64::INFINITY);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["extra"], serde_json::json!({"barrier_ms": 3.5}));
}

#[test]
fn comparison_rows_are_the_contract() {
    let row = |paper, ours| Comparison {
        figure: "Table 4".to_owned(),
        case: "single-path/vegas".to_owned(),
        quantity: "delay".to_owned(),
        unit: "ms".to_owned(),
        paper,
        ours,
        note: String::new(),
    };
    assert_eq!(
        serde_json::to_string(&row(Some(1.5), 1.25)).unwrap(),
        r#"{"figure":"Table 4","case":"single-path/vegas","quantity":"delay","unit":"ms","paper":1.5,"ours":1.25,"note":""}"#
    );
    let unprinted = serde_json::to_value(row(Some(f64::NAN), 1.0)).unwrap();
    assert!(unprinted["paper"].is_null());
    assert!(serde_json::to_string(&row(None, f64::NAN)).is_err());
}

#[test]
fn summary_file_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let run = RunResults {
        name: "by hand".to_owned(),
        parameters: vec![("routing".to_owned(), "ecmp".to_owned()), ("algorithm".to_owned(), "newreno".to_owned())],
        summary: Summary::of(identity(1_000), &flows(), &links()),
        ..RunResults::default()
    };
    write_run(&out, &run, None).unwrap();
    insta::assert_snapshot!(fs::read_to_string(out.join("summary.json")).unwrap());
}

#[test]
fn summary_file_of_a_sweep_names_each_runs_folder() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let runs = common::study(1);
    write_sweep(&out, &runs, &common::story(&runs), None).unwrap();
    let text = fs::read_to_string(out.join("summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 16);
    assert_eq!(json["runs"][0]["folder"], "single-path-newreno-1");
    assert_eq!(json["runs"][0]["parameters"]["algorithm"], "newreno");
    assert_eq!(json["comparisons"].as_array().unwrap().len(), 32);
}
