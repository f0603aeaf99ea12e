//! BBR v3 beside its first version: one flow, a neighbour, random loss.

use crate::support::run;
use results::RunResults;

/// Flows of these algorithms over 50 Mbit/s and 40 ms, the queue of so many packets; the bottleneck loses `loss`.
fn flows(ccs: &[&str], packets: u32, loss: &str, seconds: [u32; 2]) -> RunResults {
    let loss = match loss {
        "" => String::new(),
        loss => format!("[[network.loss]]\nlink = \"s1->s2\"\nprobability = \"{loss}\"\n"),
    };
    let entry = |(i, cc): (usize, &&str)| {
        format!("[[traffic]]\nname = \"f{i}\"\ncc = \"{cc}\"\nbulk = {{ from = \"left{i}\", to = \"right{i}\" }}\n")
    };
    let traffic: Vec<String> = (1..).zip(ccs).map(entry).collect();
    let text = format!(
        "duration = \"{} s\"\n[network]\ntopology = {{ dumbbell = {{ pairs = {} }} }}\nrate = \"1 Gbit/s\"\n\
         delay = \"1 ms\"\n[network.tier.bottleneck]\nrate = \"50 Mbit/s\"\ndelay = \"18 ms\"\n\
         queue = {{ drop_tail = {{ packets = {packets} }} }}\n{loss}{}[measure]\nwarmup = \"{} s\"\npacket_delay = true\n",
        seconds[1],
        ccs.len(),
        traffic.concat(),
        seconds[0]
    );
    run(&text)
}

/// Mbit/s of each flow, mean ms of a packet in queues of the first, and the share of packets that the queue dropped.
#[derive(Debug)]
struct Shown {
    mbit: Vec<f64>,
    wait_ms: f64,
    dropped: f64,
}

fn shown(run: &RunResults, seconds: [u32; 2]) -> Shown {
    let time = f64::from(seconds[1] - seconds[0]);
    let link = run.links.iter().find(|link| &*link.link == "s1->s2").expect("the bottleneck");
    Shown {
        mbit: run.flows.iter().map(|flow| flow.delivered_bytes as f64 * 8e-6 / time).collect(),
        wait_ms: run.flows[0].mean_packet_delay_ns.expect("asked for") as f64 / 1e6 - 20.0,
        dropped: link.dropped as f64 / (link.dropped + link.packets) as f64,
    }
}

fn see(ccs: &[&str], packets: u32, loss: &str) -> Shown {
    let seconds = [20, 80];
    let shown = shown(&flows(ccs, packets, loss, seconds), seconds);
    println!("{ccs:?}, queue of {packets}, loss {loss:4}: {shown:.3?}");
    shown
}

/// The BDP is 162 packets of 1538 bytes.
#[test]
fn one_flow_fills_the_link_and_not_the_queue() {
    let (deep, shallow) = (see(&["bbr3"], 1000, ""), see(&["bbr3"], 40, ""));
    let cubic = see(&["cubic"], 1000, "");
    assert!(deep.mbit[0] > 43.0 && shallow.mbit[0] > 40.0);
    assert!(deep.wait_ms < 15.0 && deep.wait_ms < cubic.wait_ms / 5.0);
    assert!(shallow.dropped < 0.01);
}

#[test]
fn beside_cubic_it_loses_less_than_the_first_version_in_a_shallow_queue() {
    let [first, third] = ["bbr", "bbr3"].map(|bbr| see(&[bbr, "cubic"], 80, ""));
    let [alone, _] = ["cubic", "bbr3"].map(|cc| see(&[cc, "cubic"], 80, ""));
    assert!(third.dropped < first.dropped / 2.0);
    assert!(third.mbit[1] > first.mbit[1], "the neighbour gets more");
    assert!(third.mbit[1] > alone.mbit[1] / 4.0, "and not little");
}

#[test]
fn random_loss_of_a_percent_costs_it_little() {
    let [first, third, cubic] = ["bbr", "bbr3", "cubic"].map(|cc| see(&[cc], 160, "1 %"));
    assert!(third.mbit[0] > 35.0 && third.mbit[0] > 4.0 * cubic.mbit[0]);
    assert!(third.mbit[0] > 0.75 * first.mbit[0]);
}

#[test]
fn flows_of_one_kind_share() {
    let shown = see(&["bbr3", "bbr3", "bbr3", "bbr3"], 160, "");
    let (sum, squares) = shown.mbit.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let jain = sum * sum / (4.0 * squares);
    println!("Jain {jain:.3}, {sum:.1} Mbit/s");
    assert!(jain > 0.8 && sum > 42.0);
}
