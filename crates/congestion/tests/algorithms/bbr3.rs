//! BBR v3: what a loss does, by when it comes.

use crate::flow::{Event, Flow, MSS, Path};
use congestion::Algorithm;

/// 100 segments in 40 ms, and a buffer that nothing overflows.
const PATH: Path = Path { pipe: 100, base_rtt_us: 40_000, buffer: 1000, mark_above: 1000 };
/// Bytes/s: 100 segments in 40 ms, less the margin.
const CRUISE: u64 = 100 * MSS as u64 * 25 / 100 * 99;

/// A flow that cruises: it has the whole path, and its queue is drained.
fn cruising() -> Flow {
    let mut flow = Flow::new(Algorithm::named("bbr3").expect("built in"), PATH);
    for _ in 0..30 {
        flow.round(Event::Nothing);
    }
    assert!(is_paced(&flow, 100), "{}", flow.sock.sk_pacing_rate);
    flow
}

/// Does it pace at so many hundredths of the path?
fn is_paced(flow: &Flow, hundredths: u64) -> bool {
    flow.sock.sk_pacing_rate.abs_diff(CRUISE / 100 * hundredths) < CRUISE / 50
}

/// Rounds until it probes for bandwidth: at 1.25.
fn until_up(flow: &mut Flow) -> u32 {
    (1..200)
        .find(|_| {
            flow.round(Event::Nothing);
            is_paced(flow, 125)
        })
        .expect("it probes")
}

#[test]
fn a_loss_between_probes_leaves_seven_tenths_until_the_next_probe() {
    let mut flow = cruising();
    let before = flow.sock.snd_cwnd;
    flow.losses = 1;
    flow.round(Event::Nothing);
    flow.round(Event::Nothing);
    flow.round(Event::Nothing);
    assert_eq!(flow.sock.snd_cwnd, before * 7 / 10, "of {before}; 100 are delivered, which is less");
    assert!(is_paced(&flow, 100), "bw was delivered");
    until_up(&mut flow);
    assert!(flow.sock.snd_cwnd > before, "{} of {before}", flow.sock.snd_cwnd);
}

#[test]
fn probes_come_every_63_rounds_where_those_are_less_than_two_seconds() {
    // 40 ms x 63 are 2.5 s, and the wait is 2 to 3 s: at 20 ms the rounds decide, at 80 ms the time
    let apart = |base_rtt_us| {
        let mut flow = Flow::new(Algorithm::named("bbr3").expect("built in"), Path { base_rtt_us, ..PATH });
        let scale = |rate: u64| rate * 40_000 / u64::from(base_rtt_us);
        let up = |flow: &Flow| flow.sock.sk_pacing_rate > scale(CRUISE) * 115 / 100;
        for _ in 0..30 {
            flow.round(Event::Nothing);
        }
        (1..200)
            .find(|_| {
                flow.round(Event::Nothing);
                up(&flow)
            })
            .expect("it probes");
        let over = (1..50)
            .find(|_| {
                flow.round(Event::Nothing);
                !up(&flow)
            })
            .expect("it ends");
        over + (1..200)
            .find(|_| {
                flow.round(Event::Nothing);
                up(&flow)
            })
            .expect("it probes again")
    };
    let (short, long) = (apart(20_000), apart(80_000));
    println!("{short} and {long} rounds");
    assert!((60..75).contains(&short), "{short}");
    assert!((26..50).contains(&long), "{long}");
}

/// Two percent of some 110 segments are 2.2.
#[test]
fn a_probe_that_loses_more_than_two_percent_ends_and_bounds_what_is_in_flight() {
    let after = |losses| {
        let mut flow = cruising();
        until_up(&mut flow);
        flow.round(Event::Nothing);
        let in_flight = flow.sock.packets_out;
        flow.losses = losses;
        flow.round(Event::Nothing);
        println!(
            "{losses} lost with {in_flight} in flight: paced at {} of {CRUISE}, cwnd {}",
            flow.sock.sk_pacing_rate, flow.sock.snd_cwnd
        );
        (is_paced(&flow, 90) || is_paced(&flow, 100), in_flight, flow.sock.snd_cwnd)
    };
    let (ended, _, cwnd) = after(1);
    assert!(!ended && cwnd > 200, "one segment is below the threshold: {cwnd}");
    let (ended, in_flight, cwnd) = after(8);
    // what was in flight without the eight, and of these as many as are two percent of it all: n = 0.02 (in flight + n)
    assert!(ended);
    assert_eq!(cwnd, in_flight + in_flight / 49);
}
