//! D2TCP's urgency and its powers of alpha.

use crate::flow::{Event, Flow, MSS, Path, socket};
use congestion::Algorithm;
use congestion::sock::ack_flags;

fn builtin(name: &str) -> &'static Algorithm {
    Algorithm::named(name).expect("a file of cc/")
}

/// In hundred-thousandths, how much of twice a window a mark cuts after 23 unmarked windows (alpha is 1 at first), with `left` segments
/// of a message to be sent within `due_us` at an RTT of 1 ms: alpha = (15/16)^23 = 0.2266.
fn d2tcp_cut(left: u32, due_us: Option<u32>) -> u32 {
    let mut sock = socket(builtin("d2tcp"), 100_000, 2);
    for _ in 0..23 {
        sock.snd_una = sock.snd_nxt;
        sock.snd_nxt = sock.snd_nxt.wrapping_add(1000 * MSS);
        sock.delivered += 1000;
        sock.ca_in_ack_event(0);
    }
    sock.srtt_us = 1000 << 3;
    if let Some(due_us) = due_us {
        let now = sock.tcp_mstamp as u32;
        sock.set_deadline(now + due_us, sock.snd_una + left * MSS - 1);
    }
    sock.ca_in_ack_event(ack_flags::ECE);
    (100_000 - sock.ca_ssthresh()) * 2
}

#[test]
fn d2tcp_bends_the_cut_by_the_deadline() {
    // hundred-thousandths: alpha, its square, its root
    let (alpha, square, root) = (22_662, 5136, 47_605);
    // the rest needs B / (3/4 cwnd) RTTs: 750,000 segments at 75,000 an RTT are 10 ms
    let near = |cut: u32, right: u32| assert!(cut.abs_diff(right) <= 25, "{cut}, not {right}");
    near(d2tcp_cut(750_000, None), alpha);
    near(d2tcp_cut(750_000, Some(10_000)), alpha);
    near(d2tcp_cut(750_000, Some(5_000)), square);
    near(d2tcp_cut(750_000, Some(20_000)), root);
    // within 1/2 and 2, whatever is asked; what is late is as urgent as can be
    near(d2tcp_cut(750_000, Some(1)), square);
    near(d2tcp_cut(750_000, Some(0)), square);
    near(d2tcp_cut(750_000, Some(u32::MAX - 1_000_000)), square);
    near(d2tcp_cut(1000, Some(1_000_000)), root);
    // d = 1.25: 0.22662^1.25 = 0.15636
    near(d2tcp_cut(750_000, Some(8_000)), 15_636);
}

/// alpha^d for all d: no branch of the tables is far off.
#[test]
fn d2tcp_powers_are_right_for_every_urgency() {
    for due_us in (5_000..20_000).step_by(97) {
        let d = 10_000.0 / f64::from(due_us);
        let right = (0.22662_f64).powf(d) * 1e5;
        let cut = f64::from(d2tcp_cut(750_000, Some(due_us)));
        assert!((cut - right).abs() <= 0.002 * right + 4.0, "d = {d}: {cut}, not {right}");
    }
}

#[test]
fn d2tcp_without_a_deadline_is_dctcp() {
    let flows = ["d2tcp", "dctcp"].map(|name| {
        let path = Path { pipe: 100, base_rtt_us: 1000, buffer: 100, mark_above: 10 };
        let mut flow = Flow::new(builtin(name), path);
        (0..300).map(|_| (flow.round(Event::Nothing).sent, flow.sock.snd_cwnd)).collect::<Vec<_>>()
    });
    assert_eq!(flows[0], flows[1]);
}
