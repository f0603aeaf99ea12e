//! A slower network behaves as the original. Root only; one test at a time on a machine.

use crate::run_support::{machine, valid_slower};
use emu::Slowdown;
use results::RunResults;
use scenario::Scenario;
use testkit::scenario;

/// Two DCTCP senders to one receiver.
const TEXT: &str = r#"
duration = "2 s"
[network]
topology = { star = { hosts = 3 } }
rate = "100 Mbit/s"
delay = "100 us"
queue = { threshold_ecn = { mark_packets = 20, packets = 400 } }
[tcp]
cc = "dctcp"
rto_min = "10 ms"
[[traffic]]
bulk = { from = "h1", to = "h3" }
[[traffic]]
bulk = { from = "h2", to = "h3" }
[measure]
warmup = "500 ms"
links = "1 ms"
queues = ["s1->h3"]
"#;

/// The same at 10 Gbit/s, for which no machine of two cores has the time; segment by segment, as the equations of Figure 12 of the DCTCP
/// paper have it.
const FAST: &str = r#"
duration = "180 ms"
[network]
topology = { star = { hosts = 3 } }
rate = "10 Gbit/s"
delay = "25 us"
queue = { threshold_ecn = { mark_packets = 40, packets = 500 } }
[tcp]
cc = "dctcp"
rto_min = "10 ms"
tso_segments = 1
delayed_ack = { segments = 1 }
[[traffic]]
bulk = { from = "h1", to = "h3" }
[[traffic]]
bulk = { from = "h2", to = "h3" }
[measure]
warmup = "50 ms"
links = "100 us"
queues = ["s1->h3"]
"#;

/// The median and the 99th percentile of the queue's samples after the warm-up in packets, and the goodput in Mbit/s.
fn seen(scenario: &Scenario, results: &RunResults) -> (u32, u32, f64) {
    let port = results.links.iter().position(|link| &*link.link == "s1->h3").expect("it is measured") as u32;
    let warmup = scenario.measure.warmup.as_ns();
    let samples = results.link_series.iter().filter(|sample| sample.link == port && sample.time_ns > warmup);
    let mut queues: Vec<u32> = samples.map(|sample| sample.queue_packets).collect();
    queues.sort_unstable();
    (queues[queues.len() / 2], queues[queues.len() * 99 / 100], results.summary.goodput_bps.unwrap_or(0.0) / 1e6)
}

/// Four times slower each wait and each pause of the machine is a quarter, so this is valid where real time is not.
#[test]
fn a_slower_network_has_the_queue_of_real_time_and_of_the_simulator() {
    let Some(_machine) = machine() else { return };
    let scenario = scenario(TEXT);
    let simulated = seen(&scenario, &sim::simulate(&scenario, &mut ()).expect("nothing stops it"));
    let see = |times: u32| {
        let run = valid_slower(&format!("slowed {times} times"), Slowdown::new(times).unwrap(), &scenario)?;
        assert_eq!(run.check.slowdown, times);
        let seen = seen(&scenario, &run.results);
        // in the network's own time: a packet takes 123 us, and a round trip 0.4 ms and the queue
        let expected = 400.0 + 123.0 * f64::from(seen.0);
        let srtt: Vec<f64> = run.results.flows.iter().filter_map(|flow| flow.srtt_us).map(|us| us as f64).collect();
        assert!(srtt.len() == 2 && srtt.iter().all(|us| (0.7 * expected..1.4 * expected).contains(us)), "{srtt:?} us");
        Some(seen)
    };
    let (real, slower) = (see(1), see(4));
    println!(
        "median and p99 of the queue in packets, goodput in Mbit/s: simulated {simulated:?}, in real time {real:?}, four times slower {slower:?}"
    );
    let Some(slower) = slower else { return };
    real.into_iter().chain([simulated]).for_each(|other| agree(slower, other));
}

fn agree(slower: (u32, u32, f64), other: (u32, u32, f64)) {
    assert!(slower.0.abs_diff(other.0) <= 2, "median queue");
    assert!(slower.1.abs_diff(other.1) <= 3, "99th percentile of the queue");
    assert!((0.98..=1.02).contains(&(slower.2 / other.2)), "goodput");
}

#[test]
fn ten_gigabits_have_the_queue_of_the_simulator() {
    let Some(_machine) = machine() else { return };
    let scenario = scenario(FAST);
    let simulated = seen(&scenario, &sim::simulate(&scenario, &mut ()).expect("nothing stops it"));
    let slowdown = Slowdown::new(32).expect("it is in range");
    let Some(run) = valid_slower("10 Gbit/s, slowed 32 times", slowdown, &scenario) else { return };
    let slower = seen(&scenario, &run.results);
    println!("median and p99 of the queue in packets, goodput in Mbit/s: simulated {simulated:?}, slowed {slower:?}");
    agree(slower, simulated);
}
