//! TCP under the queue disciplines that hold a delay, beside what their RFCs say of them.

use crate::support::{run, run_with};
use results::RunResults;

/// Flows of NewReno through 10 Mbit/s with a round trip of 100 ms: `lasting` from the start, `more` from 20 s to 40 s.
fn step(queue: &str, lasting: u32, more: u32) -> RunResults {
    let step = match more {
        0 => String::new(),
        _ => format!(
            "[[traffic]]\nstart = \"20 s\"\nstop = \"40 s\"\nbulk = {{ from = \"left2\", to = \"right2\", count = {more} }}"
        ),
    };
    run(&format!(
        r#"
        duration = "60 s"
        [network]
        topology = {{ dumbbell = {{ pairs = 2 }} }}
        rate = "1 Gbit/s"
        delay = "1 ms"
        queue = {{ drop_tail = {{ packets = 1000 }} }}
        [network.tier.bottleneck]
        rate = "10 Mbit/s"
        delay = "46 ms"
        queue = {queue}
        [tcp]
        cc = "newreno"
        [[traffic]]
        bulk = {{ from = "left1", to = "right1", count = {lasting} }}
        {step}
        [measure]
        queues = ["s1->s2"]
        queue_sample = "5 ms"
        "#
    ))
}

/// Mean delay of the bottleneck's queue in milliseconds, and its utilization, from `from` to `until` seconds.
fn delay_and_use(results: &RunResults, from: u64, until: u64) -> (f64, f64) {
    let within = |at: u64| (from * 1_000_000_000..until * 1_000_000_000).contains(&at);
    let samples: Vec<_> = results.link_series.iter().filter(|sample| within(sample.time_ns)).collect();
    let n = samples.len() as f64;
    // 10 Mbit/s are 1250 bytes a millisecond
    let delay = samples.iter().map(|sample| sample.queue_bytes as f64 / 1250.0).sum::<f64>() / n;
    (delay, samples.iter().map(|sample| sample.utilization).sum::<f64>() / n)
}

#[test]
fn pie_returns_to_its_target_after_a_step_of_load() {
    let results = step("{ pie = {} }", 10, 40);
    for (from, until, bounds) in [(10, 20, 5.0..25.0), (25, 40, 10.0..25.0), (50, 60, 5.0..25.0)] {
        let (delay, busy) = delay_and_use(&results, from, until);
        println!(
            "PIE, 10 then 50 then 10 flows, {from} s to {until} s: {delay:.1} ms of 15 ms, {:.1} % busy",
            busy * 100.0
        );
        assert!(bounds.contains(&delay) && busy > 0.9, "{delay} ms, {busy}");
    }
}

#[test]
fn codel_holds_a_few_flows_at_its_target_and_cannot_hold_many() {
    let mut last = 0.0;
    for (flows, bounds) in [(1, 0.5..8.0), (4, 2.0..12.0), (30, 8.0..60.0)] {
        let (delay, busy) = delay_and_use(&step("{ codel = {} }", flows, 0), 20, 60);
        println!("CoDel, {flows} flows: {delay:.1} ms of 5 ms, {:.1} % busy", busy * 100.0);
        assert!(bounds.contains(&delay) && busy > 0.7, "{flows} flows: {delay} ms, {busy}");
        assert!(delay > last);
        last = delay;
    }
}

#[test]
fn drop_tail_holds_nothing() {
    let (delay, _) = delay_and_use(&step("{ drop_tail = { packets = 200 } }", 10, 0), 20, 60);
    println!("drop-tail, 10 flows: {delay:.1} ms");
    assert!(delay > 100.0, "{delay} ms: the disciplines above do make the difference");
}

#[test]
fn fq_codel_isolates_a_thin_flow() {
    let text = |queue: &str| {
        format!(
            r#"
            duration = "20 s"
            [network]
            topology = {{ dumbbell = {{ pairs = 2 }} }}
            rate = "1 Gbit/s"
            delay = "1 ms"
            [network.tier.bottleneck]
            rate = "10 Mbit/s"
            queue = {queue}
            [[traffic]]
            bulk = {{ from = "left1", to = "right1", count = 8 }}
            [[traffic]]
            poisson = {{ flows_per_second = 20, sizes = "thin.csv", from = ["left2"], to = ["right2"] }}
            [measure]
            warmup = "5 s"
            packet_delay = true
            "#
        )
    };
    let thin = |queue: &str| {
        let results = run_with(&text(queue), &[("thin.csv", "bytes,cdf\n1000,1\n")]);
        let from = |host: &'static str| results.flows.iter().filter(move |flow| &*flow.src == host);
        let thin: Vec<f64> =
            from("left2").filter_map(|flow| flow.mean_packet_delay_ns).map(|ns| ns as f64 / 1e6).collect();
        let bulk: Vec<f64> = from("left1").map(|flow| flow.delivered_bytes as f64).collect();
        let (sum, squares) = (bulk.iter().sum::<f64>(), bulk.iter().map(|x| x * x).sum::<f64>());
        (thin.iter().sum::<f64>() / thin.len() as f64, sum * sum / (bulk.len() as f64 * squares))
    };
    let ((tail, tail_jain), (fq, jain)) = (thin("{ drop_tail = { packets = 200 } }"), thin("{ fq_codel = {} }"));
    println!(
        "a thin flow's packets: drop-tail {tail:.2} ms (Jain {tail_jain:.3}), FQ-CoDel {fq:.2} ms (Jain {jain:.3})"
    );
    // three links of 1 ms, and at most a few packets of 1.2 ms
    assert!(fq < 7.0 && tail > 50.0 && jain > 0.99, "{fq} and {tail} ms, {jain}");
}

#[test]
fn dualpi2_gives_a_scalable_and_a_classic_flow_about_the_same() {
    let results = run(r#"
        duration = "60 s"
        [network]
        topology = { dumbbell = { pairs = 2 } }
        rate = "1 Gbit/s"
        delay = "500 us"
        [network.tier.bottleneck]
        rate = "40 Mbit/s"
        delay = "4 ms"
        queue = { dualpi2 = {} }
        [tcp]
        ect1 = true
        [[traffic]]
        cc = "dctcp"
        bulk = { from = "left1", to = "right1" }
        [[traffic]]
        cc = "cubic"
        bulk = { from = "left2", to = "right2" }
        [measure]
        warmup = "20 s"
        packet_delay = true
        "#);
    let of = |algorithm: &str| {
        let flow = results.flows.iter().find(|flow| &*flow.algorithm == algorithm).unwrap();
        // propagation is 5 ms, and the two fast links take 25 us for a packet
        (flow.delivered_bytes as f64, flow.mean_packet_delay_ns.unwrap() as f64 / 1e6 - 5.0)
    };
    let ((scalable, low_ms), (classic, classic_ms)) = (of("dctcp"), of("cubic"));
    let ratio = scalable / classic;
    println!(
        "DualPI2: queue of L {low_ms:.2} ms of 1 ms, of C {classic_ms:.1} ms of 15 ms; throughput {ratio:.2} to 1"
    );
    assert!(low_ms < 2.0, "{low_ms}");
    assert!((8.0..22.0).contains(&classic_ms), "{classic_ms}");
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}
