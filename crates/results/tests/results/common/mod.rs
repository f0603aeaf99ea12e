//! A made-up study, shaped like the fat-tree study: eight algorithms on two routings, with queues, windows and flows.
//! The numbers are arithmetic, not measurements.

use std::{collections::BTreeMap, sync::Arc};

use results::{CaState, Comparison, CwndSample, FlowRow, Identity, LinkRow, LinkSample, RunResults, Story, Summary};

pub const ALGORITHMS: [&str; 8] = ["newreno", "vegas", "highspeed", "scalable", "westwood", "bic", "cubic", "yeah"];

/// An algorithm's queue length, as a share of the longest.
const FILL: [f64; 8] = [0.55, 0.12, 0.7, 0.95, 0.5, 0.8, 0.75, 0.35];

const SECOND_NS: u64 = 1_000_000_000;

/// A short sequence of numbers in 0..1 that depends only on the seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn flow(number: u64, algorithm: &str, fill: f64, noise: &mut Noise) -> FlowRow {
    let start_ns = (noise.next() * 5e9) as u64;
    let fct_ns = (2e6 * (1.0 + 40.0 * fill * noise.next().powi(4)) * (1.0 + 300.0 * noise.next().powi(9))) as u64;
    let packets = 4_000 + (4_000.0 * noise.next()) as u64;
    FlowRow {
        arm: None,
        flow: number,
        src: Arc::from(format!("h{}", number % 54)),
        dst: Arc::from(format!("h{}", (number * 17 + 5) % 54)),
        algorithm: Arc::from(algorithm),
        group: Arc::from(""),
        start_ns,
        end_ns: (number % 50 != 49).then_some(start_ns + fct_ns),
        ideal_fct_ns: Some(2_000_000),
        bytes: Some(packets * 1_448),
        delivered_bytes: packets * 1_448,
        data_packets_sent: packets + 30,
        retransmits: (60.0 * fill * noise.next()) as u64,
        rtos: (4.0 * fill * noise.next()) as u64,
        tlp_probes: Some(number % 3),
        ce_marks: 0,
        ece_acks: 0,
        packets_received: packets,
        ip_bytes_received: packets * 1_500,
        mean_packet_delay_ns: Some((4e5 + 5e6 * fill * (0.8 + 0.4 * noise.next())) as u64),
        acks_received: packets / 2,
        ack_ip_bytes_received: packets / 2 * 52,
        mean_ack_delay_ns: Some(250_000),
        min_rtt_us: Some(180),
        srtt_us: (number != 3).then_some(2_400),
        final_cwnd: 17,
    }
}

fn links(fill: f64, noise: &mut Noise) -> Vec<LinkRow> {
    let link = |index: u64, from_host: bool, noise: &mut Noise| {
        let packets = 300_000 + (200_000.0 * noise.next()) as u64;
        let dropped = if from_host { 0 } else { (900.0 * fill * noise.next()) as u64 };
        let (from, to, tier) = if from_host {
            (format!("h{index}"), format!("edge{}", index / 3), "host-edge")
        } else {
            (format!("core{index}"), format!("agg{}", index * 2), "core-aggregation")
        };
        LinkRow {
            link: Arc::from(format!("{from}→{to}")),
            from: Arc::from(from),
            to: Arc::from(to),
            tier: Arc::from(tier),
            from_host,
            rate_bps: 100_000_000,
            packets,
            bytes: packets * 1_500,
            delivered: packets - 3,
            dropped,
            dropped_bytes: dropped * 1_500,
            dropped_by_failure: 0,
            marked: 0,
            in_flight: 3,
            max_queue_packets: if from_host { 20 } else { 40 + (60.0 * fill) as u64 },
            utilization: 0.3 + 0.6 * noise.next(),
        }
    };
    (0..12).map(|index| link(index, index < 6, noise)).collect()
}

/// One run of the study.
pub fn run(algorithm: usize, routing: &str, seed: u64) -> RunResults {
    let (name, fill) = (ALGORITHMS[algorithm], FILL[algorithm]);
    let fill = if routing == "ecmp" { fill * 0.6 } else { fill };
    let mut noise = Noise(seed * 1_000 + algorithm as u64 * 10 + routing.len() as u64);
    let flows: Vec<FlowRow> = (0..300).map(|number| flow(number, name, fill, &mut noise)).collect();
    let links = links(fill, &mut noise);
    let link_series = (0..6_000_u64).flat_map(|step| {
        let saw = (step as f64 / (150.0 + 40.0 * algorithm as f64)).fract();
        let queue = (100.0 * fill * (0.3 + 0.7 * saw) * (0.8 + 0.2 * noise.next())) as u32;
        [(6, queue), (7, queue / 3)].map(|(link, queue_packets)| LinkSample {
            time_ns: step * SECOND_NS / 100,
            link,
            queue_packets,
            queue_bytes: u64::from(queue_packets) * 1_500,
            utilization: 0.9,
            drops: u32::from(queue_packets > 80),
            marks: 0,
        })
    });
    let link_series = link_series.collect();
    let cwnd = (0..600_u64).flat_map(|step| {
        [0, 1, 2].map(|flow| CwndSample {
            time_ns: step * SECOND_NS / 10,
            flow,
            cwnd: 2 + ((step + 37 * flow) % (40 + 10 * flow)) as u32,
            ssthresh: (step > 20).then_some(20),
            srtt_us: Some(2_000),
            in_flight: 2,
            state: if step % 50 == 0 { CaState::Recovery } else { CaState::Open },
            pacing_rate_bps: None,
        })
    });
    let cwnd = cwnd.collect();
    let identity = Identity {
        scenario: "cfi16-fat-tree".to_owned(),
        seed,
        version: "0.1.0".to_owned(),
        duration_ns: 60 * SECOND_NS,
        end_ns: 60 * SECOND_NS,
    };
    let parameters = [
        ("algorithm", name),
        ("routing", routing),
        ("seed", &seed.to_string()),
        ("topology", "fat tree, k = 6: 54 hosts, 45 switches"),
        ("link", "100 Mbit/s, 1 µs"),
        ("queue", "drop-tail, 100 packets"),
        ("stack", "ns-3.25"),
        ("traffic", "random pairs, on–off, exponential"),
        ("duration", "60 s"),
    ];
    RunResults {
        cues: Vec::new(),
        name: format!("{routing}/{name}-{seed}"),
        parameters: parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
        scenario_toml: format!("seed = {seed}\nalgorithm = \"{name}\"\n"),
        files: BTreeMap::new(),
        summary: Summary::of(identity, &flows, &links),
        flows,
        links,
        link_series,
        cwnd,
        ..RunResults::default()
    }
}

/// Every algorithm on both routings.
pub fn study(seeds: u64) -> Vec<RunResults> {
    let mut runs = Vec::new();
    for routing in ["single-path", "ecmp"] {
        for algorithm in 0..ALGORITHMS.len() {
            runs.extend((1..=seeds).map(|seed| run(algorithm, routing, seed)));
        }
    }
    runs
}

/// The story of the study, with a paper's numbers and ours.
pub fn story(runs: &[RunResults]) -> Story {
    let mut comparisons = Vec::new();
    for (figure, quantity, unit) in [("Figure 2", "drops", "packets"), ("Table 4", "delay", "ms")] {
        for (index, run) in runs.iter().enumerate() {
            let routing = run.parameter("routing").unwrap_or_default();
            let algorithm = run.parameter("algorithm").unwrap_or_default();
            let ours = match quantity {
                "drops" => run.summary.drops_at_switches as f64,
                _ => run.summary.mean_packet_delay_ns.unwrap_or_default() / 1e6,
            };
            comparisons.push(Comparison {
                figure: figure.to_owned(),
                case: format!("{routing}/{algorithm}"),
                quantity: quantity.to_owned(),
                unit: unit.to_owned(),
                paper: (index != 2).then_some((ours * (0.8 + 0.05 * index as f64)).round()),
                ours,
                note: if index == 3 {
                    "The order of the two with most drops is the paper's; the level moves with the drawn pairs."
                        .to_owned()
                } else {
                    String::new()
                },
            });
        }
    }
    Story {
        title: "Eight congestion controls on a 6-ary fat tree".to_owned(),
        lead: "Made-up numbers in the shape of a study: 54 hosts, 60 s, single path and ECMP.".to_owned(),
        paragraphs: vec![
            "Vegas keeps the shortest queue and drops least; Scalable fills the buffers & drops most.".to_owned(),
            "With ECMP every variant drops less: the load is spread over the cores, and no core queue stays full."
                .to_owned(),
        ],
        comparisons,
        ..Story::default()
    }
}
