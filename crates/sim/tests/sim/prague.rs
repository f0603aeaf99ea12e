//! Prague over the queue that it was made for.

use crate::support::run;
use results::RunResults;

/// Two flows over a bottleneck of 50 Mbit/s under `queue`, with RTTs of `rtts` ms; measured from the first second to the last.
/// ECT(1) is asked for DCTCP alone: Prague sends it by itself.
fn two(ccs: [&str; 2], rtts: [f64; 2], queue: &str, seconds: [u32; 2]) -> RunResults {
    let node = |name: &str, kind: &str| format!("{{ name = \"{name}\", kind = \"{kind}\" }},");
    let fast = |a: &str, b: &str, us: f64| {
        format!("{{ a = \"{a}\", b = \"{b}\", rate = \"1 Gbit/s\", delay = \"{us} us\" }},\n")
    };
    // 1 ms of the way is the bottleneck and the last link
    let source = |name: &str, rtt_ms: f64| fast(name, "near", rtt_ms * 500.0 - 1000.0);
    let entry = |name: &str, cc: &str| {
        format!("[[traffic]]\nname = \"{name}\"\ncc = \"{cc}\"\nbulk = {{ from = \"{name}\", to = \"{name}to\" }}\n")
    };
    let text = format!(
        "duration = \"{} s\"\n[network.topology.explicit]\nnodes = [{}{}{}{}{}{}]\nlinks = [\n{}{}{}{}\
         {{ a = \"near\", b = \"far\", rate = \"50 Mbit/s\", delay = \"900 us\", queue = {queue} }},\n]\n\
         [tcp]\nect1 = true\n{}{}[measure]\nwarmup = \"{} s\"\npacket_delay = true\n",
        seconds[1],
        node("a", "host"),
        node("b", "host"),
        node("ato", "host"),
        node("bto", "host"),
        node("near", "switch"),
        node("far", "switch"),
        source("a", rtts[0]),
        source("b", rtts[1]),
        fast("ato", "far", 100.0),
        fast("bto", "far", 100.0),
        entry("a", ccs[0]),
        entry("b", ccs[1]),
        seconds[0]
    );
    run(&text)
}

/// Delivered bytes, and mean time in queues, ms.
fn of(run: &RunResults, group: &str, rtt_ms: f64) -> (f64, f64) {
    let flow = run.flows.iter().find(|flow| &*flow.group == group).expect("it ran");
    (flow.delivered_bytes as f64, flow.mean_packet_delay_ns.expect("asked for") as f64 / 1e6 - rtt_ms / 2.0)
}

#[test]
fn prague_shares_a_link_with_cubic_and_waits_less() {
    let run = two(["prague", "cubic"], [10.0, 10.0], "{ dualpi2 = {} }", [20, 60]);
    let ((prague, low_ms), (cubic, classic_ms)) = (of(&run, "a", 10.0), of(&run, "b", 10.0));
    let used = (prague + cubic) * 8.0 / 40.0 / 50e6;
    let ratio = prague / cubic;
    println!("L waits {low_ms:.2} ms, C {classic_ms:.1} ms; throughput {ratio:.2} to 1, {used:.3} of the link");
    assert!(low_ms < 1.5, "{low_ms}");
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert!(used > 0.9, "{used}");
}

#[test]
fn a_fifth_of_the_rtt_is_not_five_times_the_rate() {
    let ratio = |cc: &str| {
        let run = two([cc, cc], [5.0, 25.0], "{ dualpi2 = {} }", [40, 100]);
        let (short, long) = (of(&run, "a", 5.0), of(&run, "b", 25.0));
        println!(
            "{cc}: 5 ms {:.1}, 25 ms {:.1} Mbit/s; wait {:.2}, {:.2} ms",
            short.0 * 8e-6 / 60.0,
            long.0 * 8e-6 / 60.0,
            short.1,
            long.1
        );
        short.0 / long.0
    };
    let (prague, dctcp) = (ratio("prague"), ratio("dctcp"));
    println!("5 ms to 25 ms: prague {prague:.2} to 1, dctcp {dctcp:.2} to 1");
    assert!((0.6..1.6).contains(&prague), "{prague}");
    assert!(dctcp > 2.0, "{dctcp}");
}

/// A loss-only queue: Prague falls back to Reno's halving, and leaves another its share.
#[test]
fn without_marks_prague_is_reno() {
    let run = two(["prague", "newreno"], [25.0, 25.0], "{ drop_tail = { packets = 60 } }", [20, 100]);
    let (prague, reno) = (of(&run, "a", 25.0).0, of(&run, "b", 25.0).0);
    println!("drop-tail: prague {:.2} to 1 of newreno", prague / reno);
    assert!((0.5..2.0).contains(&(prague / reno)), "{}", prague / reno);
}

/// AccECN instead of DCTCP's echo: the sender learns the same, and the receiver delays its ACKs as it likes.
#[test]
fn dctcp_with_accurate_ecn_keeps_the_queue_as_short() {
    let flow = |ecn: &str| {
        let text = format!(
            "duration = \"3 s\"\n[network]\ntopology = {{ star = {{ hosts = 3 }} }}\nrate = \"1 Gbit/s\"\ndelay = \"25 us\"\n\
             queue = {{ threshold_ecn = {{ mark_packets = 20, packets = 200 }} }}\n[tcp]\ncc = \"dctcp\"\necn = \"{ecn}\"\n\
             [[traffic]]\nbulk = {{ from = \"h2\", to = \"h1\" }}\n[[traffic]]\nbulk = {{ from = \"h3\", to = \"h1\" }}\n[measure]\nwarmup = \"1 s\"\npacket_delay = true\n"
        );
        let run = run(&text);
        let bytes: u64 = run.flows.iter().map(|flow| flow.delivered_bytes).sum();
        let delay =
            run.flows.iter().map(|flow| flow.mean_packet_delay_ns.expect("asked for") as f64 / 1e6).sum::<f64>();
        let drops: u64 = run.links.iter().map(|link| link.dropped).sum();
        (bytes as f64 * 8e-6 / 2.0, delay / 2.0, drops)
    };
    let (echo, accurate) = (flow("auto"), flow("accurate"));
    println!("Mbit/s, ms, drops: echo {echo:.3?}, accurate {accurate:.3?}");
    assert!(accurate.0 > 0.99 * echo.0 && accurate.1 < 1.2 * echo.1 && accurate.2 == 0);
}
