//! Each algorithm's equations, worked out by hand in the comments.

use crate::flow::{MSS, socket};
use congestion::sock::{SK_PACING_NEEDED, TCP_CA_LOSS, TCP_CA_OPEN, TCP_INFINITE_SSTHRESH, ack_flags};
use congestion::{AckSample, Algorithm, CaEvent, TcpSock};

fn builtin(name: &str) -> &'static Algorithm {
    Algorithm::named(name).expect("a file of cc/")
}

/// A flow past slow start.
fn avoiding(name: &str, cwnd: u32) -> TcpSock {
    socket(builtin(name), cwnd, 2)
}

/// The window after `acked` segments in one ACK.
fn after_ack(mut sock: TcpSock, acked: u32) -> u32 {
    sock.ca_cong_avoid(0, acked);
    sock.snd_cwnd
}

/// How many segments, acknowledged one by one, make the window grow by one.
fn segments_per_increase(sock: &TcpSock) -> u32 {
    let mut sock = sock.clone();
    let before = sock.snd_cwnd;
    sock.snd_cwnd_cnt = 0;
    for segments in 1..100_000 {
        sock.ca_cong_avoid(0, 1);
        if sock.snd_cwnd > before {
            return segments;
        }
    }
    panic!("{sock:?} does not grow");
}

fn sample(sock: &mut TcpSock, rtt_us: i32) {
    sock.ca_pkts_acked(&AckSample { pkts_acked: 1, rtt_us, in_flight: 0 });
}

/// A round of three samples of this RTT, and the ACK that ends it.
fn round(sock: &mut TcpSock, rtt_us: i32) {
    for _ in 0..3 {
        sample(sock, rtt_us);
    }
    sock.snd_una = sock.snd_nxt.wrapping_add(MSS);
    sock.snd_nxt = sock.snd_una.wrapping_add(10 * MSS);
    sock.ca_cong_avoid(sock.snd_una, 1);
}

/// The result of `ssthresh` for each window.
fn reductions(name: &str, windows: &[u32]) -> Vec<u32> {
    windows.iter().map(|&cwnd| avoiding(name, cwnd).ca_ssthresh()).collect()
}

#[test]
fn slow_start_grows_by_one_per_segment_up_to_the_threshold() {
    for algorithm in Algorithm::builtins().iter().filter(|a| !a.ops().has_cong_control()) {
        let mut sock = socket(algorithm, 10, 14);
        sock.ca_cong_avoid(0, 3);
        assert_eq!(sock.snd_cwnd, 13, "{}", algorithm.name());
        // of 2 more one fits below the threshold; the other does not count for congestion avoidance yet
        sock.ca_cong_avoid(0, 2);
        assert_eq!(sock.snd_cwnd, 14, "{}", algorithm.name());
    }
}

#[test]
fn a_window_that_the_application_does_not_fill_does_not_grow() {
    for algorithm in Algorithm::builtins().iter().filter(|a| !a.ops().has_cong_control()) {
        for ssthresh in [2, TCP_INFINITE_SSTHRESH] {
            let mut sock = socket(algorithm, 20, ssthresh);
            sock.is_cwnd_limited = 0;
            sock.max_packets_out = 5;
            for _ in 0..10 {
                round(&mut sock, 1000);
            }
            assert_eq!(sock.snd_cwnd, 20, "{}", algorithm.name());
        }
    }
}

#[test]
fn undo_restores_the_window_before_the_loss() {
    for algorithm in Algorithm::builtins().iter().filter(|a| !a.ops().has_cong_control()) {
        let mut sock = socket(algorithm, 100, 2);
        sock.prior_cwnd = 100;
        sock.snd_ssthresh = sock.ca_ssthresh();
        sock.snd_cwnd = sock.snd_ssthresh;
        assert!(sock.snd_cwnd < 100, "{}", algorithm.name());
        assert_eq!(sock.ca_undo_cwnd(), 100, "{}", algorithm.name());
    }
}

#[test]
fn newreno_adds_one_per_window_and_halves() {
    assert_eq!(segments_per_increase(&avoiding("newreno", 10)), 10);
    assert_eq!(after_ack(avoiding("newreno", 10), 20), 12);
    // 11 / 2 = 5; 3 / 2 = 1, but at least 2
    assert_eq!(reductions("newreno", &[10, 11, 3, 1]), [5, 5, 2, 2]);
}

#[test]
fn vegas_keeps_two_to_four_segments_queued() {
    // base 1000 µs, RTT 1250 µs: backlog = cwnd × 250/1250 = cwnd/5
    for (cwnd, next) in [(9, 10), (10, 10), (15, 15), (20, 20), (21, 20)] {
        let mut sock = avoiding("vegas", cwnd);
        round(&mut sock, 1000);
        sock.snd_cwnd = cwnd;
        round(&mut sock, 1250);
        assert_eq!(sock.snd_cwnd, next, "backlog {cwnd}/5");
    }
}

#[test]
fn vegas_resolves_microseconds() {
    // base 20 µs, RTT 25 µs: the same backlog of cwnd/5
    for (cwnd, next) in [(9, 10), (10, 10), (20, 20), (21, 20)] {
        let mut sock = avoiding("vegas", cwnd);
        round(&mut sock, 20);
        sock.snd_cwnd = cwnd;
        round(&mut sock, 25);
        assert_eq!(sock.snd_cwnd, next, "backlog {cwnd}/5");
    }
}

#[test]
fn vegas_leaves_slow_start_when_more_than_one_segment_queues() {
    // base 1000 µs, RTT 1100 µs: backlog = cwnd/11. 11: 1, not above gamma, slow start goes on by the ACK's segment.
    // 22: 2 > gamma; the path holds 22 × 1000/1100 = 20, plus one
    for (cwnd, next, ssthresh) in [(11, 12, TCP_INFINITE_SSTHRESH), (22, 21, 21)] {
        let mut sock = socket(builtin("vegas"), cwnd, TCP_INFINITE_SSTHRESH);
        sample(&mut sock, 1000);
        sock.ca_set_state(TCP_CA_OPEN); // begins a round; the base stays
        round(&mut sock, 1100);
        assert_eq!((sock.snd_cwnd, sock.snd_ssthresh), (next, ssthresh));
    }
}

#[test]
fn vegas_remembers_its_base_over_idle_time() {
    let mut sock = avoiding("vegas", 21);
    sample(&mut sock, 1000);
    sock.ca_cwnd_event(CaEvent::TxStart);
    round(&mut sock, 1250);
    // 21/5 > 4; with a base of 1250 there would be no backlog, and the window would grow
    assert_eq!(sock.snd_cwnd, 20);
}

#[test]
fn vegas_learns_nothing_from_a_round_of_one_sample() {
    let mut sock = avoiding("vegas", 21);
    sample(&mut sock, 1000);
    sock.ca_set_state(TCP_CA_OPEN);
    sample(&mut sock, 9000);
    sock.ca_cong_avoid(sock.snd_nxt.wrapping_add(1), 21);
    assert_eq!(sock.snd_cwnd, 22, "NewReno's growth");
}

#[test]
fn vegas_takes_the_handshake_for_its_first_base() {
    let mut sock = socket(builtin("vegas"), 21, TCP_INFINITE_SSTHRESH);
    sock.rtt_min.s = [congestion::MinMaxSample { t: 0, v: 1000 }; 3];
    sock.ca_init();
    round(&mut sock, 1250);
    // 21/5 > gamma: slow start ends, with what the path holds and one segment more: 21 x 4/5 + 1 = 17
    assert_eq!((sock.snd_cwnd, sock.snd_ssthresh), (17, 17));
}

#[test]
fn highspeed_grows_and_shrinks_by_the_rfcs_table() {
    // a: a window's worth of ACKs adds a(w). Rows of Appendix B: 38: 1, 1058: 8, 10661: 30; 83000 is in the row of
    // 79517: 70 (71 begins at 84035)
    for (w, a) in [(10, 1), (38, 1), (117, 1), (118, 2), (1057, 7), (1058, 8), (10661, 30), (83000, 70), (94717, 73)] {
        assert_eq!(after_ack(avoiding("highspeed", w), w) - w, a, "a({w})");
    }
    // b in 1/65536: 38: 32768 → 19. 1058: 1058 × 21427/65536 = 345.9 → 713. 10661: × 13550/65536 = 2204.2 → 8457.
    // 83000: × 6700/65536 = 8485.4 → 74515, that is b = 0.10
    assert_eq!(reductions("highspeed", &[38, 1058, 10661, 83000]), [19, 713, 8457, 74515]);
    assert_eq!(reductions("highspeed", &[1, 3]), [2, 2]);
}

#[test]
fn scalable_adds_a_hundredth_and_reduces_by_an_eighth() {
    assert_eq!(segments_per_increase(&avoiding("scalable", 5000)), 100);
    assert_eq!(segments_per_increase(&avoiding("scalable", 50)), 50);
    // 200 − 25; 201 − ⌈25.125⌉ = 175; 10 − ⌈1.25⌉ = 8; 2 − 1, but at least 2
    assert_eq!(reductions("scalable", &[200, 201, 10, 2]), [175, 175, 8, 2]);
    // from 7/8 w back to w at 1 % a round trip: ln(8/7)/ln(1.01) = 13.4 round trips, at 8000 as at 800
    for w in [800, 8000] {
        let mut sock = avoiding("scalable", w * 7 / 8);
        let rounds = (1..100).find(|_| {
            sock.ca_cong_avoid(0, sock.snd_cwnd);
            sock.snd_cwnd >= w
        });
        assert_eq!(rounds, Some(14));
    }
}

/// A round trip of Westwood+: `delivered` segments in 1000 µs, measured at their last ACK.
fn westwood_round(sock: &mut TcpSock, delivered: u32) {
    sock.tcp_mstamp += 1000;
    sock.delivered += delivered;
    sock.srtt_us = 1000 << 3;
    sample(sock, 1000);
}

#[test]
fn westwood_falls_to_bandwidth_times_minimum_rtt() {
    let mut sock = avoiding("westwood", 150);
    assert_eq!(sock.ca_ssthresh(), 75, "half, while nothing is measured");
    westwood_round(&mut sock, 0); // the first ACK begins the interval
    westwood_round(&mut sock, 100);
    // B = 100 segments a ms, RTTmin 1 ms
    assert_eq!(sock.ca_ssthresh(), 100);
    westwood_round(&mut sock, 50);
    // B = 7/8 × 100 + 1/8 × 50 = 93.75 a ms
    assert_eq!(sock.ca_ssthresh(), 94);
    sample(&mut sock, 400);
    // RTTmin 0.4 ms: 37.5, rounded; fixed point has B a little under
    assert_eq!(sock.ca_ssthresh(), 37);
}

#[test]
fn westwood_does_not_raise_the_window_and_does_not_measure_silence() {
    let mut sock = avoiding("westwood", 60);
    westwood_round(&mut sock, 0);
    westwood_round(&mut sock, 100);
    assert_eq!(sock.ca_ssthresh(), 60);
    sock.tcp_mstamp += 1_000_000;
    sock.ca_cwnd_event(CaEvent::TxStart);
    westwood_round(&mut sock, 1);
    westwood_round(&mut sock, 100);
    sock.snd_cwnd = 150;
    assert_eq!(sock.ca_ssthresh(), 100, "two samples of 100 a ms, none of the second without a segment");
}

#[test]
fn westwood_samples_once_a_round_trip_also_below_a_millisecond() {
    let mut sock = avoiding("westwood", 200);
    sock.srtt_us = 20 << 3;
    for _ in 0..41 {
        sample(&mut sock, 20);
        sock.tcp_mstamp += 1;
        sock.delivered += 1;
    }
    // 1 segment a µs × 20 µs
    assert_eq!(sock.ca_ssthresh(), 20);
}

/// BIC after a loss at 100 segments, with its window then at `cwnd`.
fn bic_at(cwnd: u32) -> TcpSock {
    let mut sock = avoiding("bic", 100);
    // 100 × 819/1024 = 79.98
    assert_eq!(sock.ca_ssthresh(), 79);
    sock.snd_cwnd = cwnd;
    sock
}

#[test]
fn bic_searches_below_the_last_maximum_and_probes_above_it() {
    for (cwnd, segments) in [
        (80, 16),   // (100 − 80)/4 = 5 a round trip: 80/5
        (92, 46),   // (100 − 92)/4 = 2: 92/2
        (94, 470),  // (100 − 94)/4 = 1: smooth, 94 × 20/4
        (101, 505), // up to 4 above: smooth, 101 × 20/4
        (120, 18),  // 20 above: 120 × 3/20
        (148, 9),   // 48 above: S_max = 16 a round trip, 148/16 = 9.25
        (14, 14),   // the low window: NewReno
        (30, 1),    // (100 − 30)/4 = 17 > S_max: 30/16 = 1.9
    ] {
        assert_eq!(segments_per_increase(&bic_at(cwnd)), segments, "at {cwnd}");
    }
}

#[test]
fn bic_converges_fast_and_halves_small_windows() {
    let mut sock = bic_at(90);
    // a loss at 90 < 100: W_max = 90 × 1843/2048 = 80.99; 90 × 819/1024 = 71.98
    assert_eq!(sock.ca_ssthresh(), 71);
    sock.snd_cwnd = 72;
    // (80 − 72)/4 = 2: 72/2
    assert_eq!(segments_per_increase(&sock), 36);
    assert_eq!(reductions("bic", &[14, 15, 2]), [7, 11, 2]);
}

#[test]
fn bic_forgets_the_maximum_at_a_timeout() {
    let mut sock = bic_at(80);
    sock.ca_set_state(TCP_CA_LOSS);
    // no W_max: 80 above 0, S_max: 80/16
    assert_eq!(segments_per_increase(&sock), 5);
    sock.snd_cwnd = 400;
    // 400/16 = 25, but while W_max is unknown at most 20
    assert_eq!(segments_per_increase(&sock), 20);
}

/// YeAH after a round of base 1000 µs and one of `rtt_us`, both with this window and none of their growth.
fn yeah_after(cwnd: u32, rtt_us: i32) -> TcpSock {
    let mut sock = avoiding("yeah", cwnd);
    sock.is_cwnd_limited = 0;
    round(&mut sock, 1000);
    round(&mut sock, rtt_us);
    sock.is_cwnd_limited = 1;
    sock
}

#[test]
fn yeah_is_fast_while_queue_and_delay_are_short() {
    // Q = 400 × 100/1100 = 36 ≤ 80, L = 1/10 ≤ 1/8: Scalable. L = 1/5: NewReno
    assert_eq!(segments_per_increase(&yeah_after(400, 1100)), 100);
    assert_eq!(segments_per_increase(&yeah_after(400, 1200)), 400);
}

#[test]
fn yeah_gives_up_what_is_queued_on_a_loss() {
    // fast: max(400/8, 36) = 50
    assert_eq!(yeah_after(400, 1100).ca_ssthresh(), 350);
    // slow: Q = 100 × 250/1250 = 20 > 100/8. The study's Equation 16 as printed would give 20
    assert_eq!(yeah_after(100, 1250).ca_ssthresh(), 80);
    // Q = 100 × 2000/3000 = 66, but at most half
    assert_eq!(yeah_after(100, 3000).ca_ssthresh(), 50);
}

#[test]
fn yeah_drains_its_queue_before_it_overflows() {
    // Q = 800 × 250/1250 = 160 > 80: 800 − min(160, 400)
    let sock = yeah_after(800, 1250);
    assert_eq!((sock.snd_cwnd, sock.snd_ssthresh), (640, 640));
    // Q = 800 × 2000/3000 = 533: at most half
    assert_eq!(yeah_after(800, 3000).snd_cwnd, 400);
}

#[test]
fn yeah_does_not_drain_below_what_newreno_would_have() {
    let mut sock = yeah_after(800, 3000);
    // cwnd_reno became 400/2 = 200; Q = 400 × 2/3 = 266, so 400 − 200 (at most half) = 200; cwnd_reno 201
    sock.is_cwnd_limited = 0;
    round(&mut sock, 3000);
    assert_eq!(sock.snd_cwnd, 200);
    round(&mut sock, 3000);
    assert_eq!(sock.snd_cwnd, 200);
}

#[test]
fn yeah_halves_after_sixteen_slow_rounds_in_a_row() {
    let mut sock = yeah_after(100, 1250);
    sock.is_cwnd_limited = 0;
    for _ in 1..15 {
        round(&mut sock, 1250);
    }
    assert_eq!(sock.clone().ca_ssthresh(), 80, "15 rounds");
    round(&mut sock, 1250);
    assert_eq!(sock.ca_ssthresh(), 50, "16 rounds: NewReno flows compete");
}

/// RFC 9438 for W_max 100: K = ∛(100 × 0.3/0.4) = ∛75 = 4.217 s, W(t) = 0.4 (t − K)³ + 100.
#[test]
fn cubic_follows_its_curve() {
    let mut sock = avoiding("cubic", 100);
    sock.snd_ssthresh = sock.ca_ssthresh();
    assert_eq!(sock.snd_ssthresh, 70);
    sock.snd_cwnd = 70;
    sock.srtt_us = 100_000 << 3;
    let start = sock.tcp_mstamp;
    // (t, W(t)): 0.4 (−4.217)³ + 100 = 70; 0.4 (−2.217)³ + 100 = 95.6; K: 100; 0.4 × 1.783³ + 100 = 102.3;
    // 2 K: 130
    for (t_us, segments) in [(0, 70), (2_000_000, 96), (4_217_000, 100), (6_000_000, 102), (8_434_000, 130)] {
        while sock.tcp_mstamp < start + t_us {
            // an ACK a segment, 100 ms a round trip: W_est, 70 + 9/17 a round trip, stays below the cubic
            sock.tcp_mstamp += 100_000 / u64::from(sock.snd_cwnd);
            sock.ca_cong_avoid(0, 1);
        }
        assert!(sock.snd_cwnd.abs_diff(segments) <= 2, "at {t_us} µs: {}, not {segments}", sock.snd_cwnd);
    }
}

/// With W_max unknown: W_est is 5 % per RTT at least.
#[test]
fn cubic_searches_by_a_twentieth_while_no_loss_is_known() {
    let mut sock = avoiding("cubic", 100);
    sock.srtt_us = 1000 << 3;
    // 100 segments acknowledged within a millisecond, in which the cubic does not move: W_est alone grows by 9/17
    (0..100).for_each(|_| sock.ca_cong_avoid(0, 1));
    assert_eq!(sock.snd_cwnd, 105);
}

/// When HyStart ends slow start, us after a round began. The shortest RTT is 40 ms; this round's ACKs come `gap_us` apart and
/// have this RTT.
fn hystart_ends_at(sock: &mut TcpSock, gap_us: u64, rtt_us: i32) -> Option<u64> {
    sample(sock, 40_000);
    sock.snd_una = sock.snd_nxt.wrapping_add(MSS);
    sock.snd_nxt = sock.snd_una.wrapping_add(100 * MSS);
    let begin = sock.tcp_mstamp;
    for _ in 0..100 {
        sample(sock, rtt_us);
        if sock.snd_ssthresh < TCP_INFINITE_SSTHRESH {
            assert_eq!(sock.snd_ssthresh, sock.snd_cwnd);
            return Some(sock.tcp_mstamp - begin);
        }
        sock.tcp_mstamp += gap_us;
    }
    None
}

#[test]
fn hystart_ends_slow_start_by_a_train_of_acks_as_long_as_half_the_rtt() {
    let slow_start = |cwnd| socket(builtin("cubic"), cwnd, TCP_INFINITE_SSTHRESH);
    assert_eq!(hystart_ends_at(&mut slow_start(100), 1000, 40_000), Some(21_000), "more than 20 ms");
    assert_eq!(hystart_ends_at(&mut slow_start(15), 1000, 40_000), None, "a burst of 15 segments says nothing");
    assert_eq!(hystart_ends_at(&mut slow_start(100), 2500, 40_000), None, "ACKs 2.5 ms apart are no train");
    let mut paced = slow_start(100);
    paced.sk_pacing_status = SK_PACING_NEEDED;
    assert_eq!(hystart_ends_at(&mut paced, 1000, 40_000), Some(41_000), "more than 40 ms");
    // four bursts of 64 KiB at 500 MB/s are 524 us, half of which counts; at 50 MB/s they are over 1 ms
    for (rate, end_us) in [(500_000_000, 20_400), (50_000_000, 20_700)] {
        let mut bursts = slow_start(100);
        bursts.sk_pacing_rate = rate;
        assert_eq!(hystart_ends_at(&mut bursts, 300, 40_000), Some(end_us));
    }
}

#[test]
fn hystart_ends_slow_start_when_the_least_of_eight_rtts_has_grown_by_an_eighth() {
    let ends = |rtt_us| hystart_ends_at(&mut socket(builtin("cubic"), 100, TCP_INFINITE_SSTHRESH), 2500, rtt_us);
    assert_eq!(ends(45_001), Some(8 * 2500), "with the ninth sample");
    assert_eq!(ends(45_000), None, "not more than an eighth");
}

#[test]
fn cubic_keeps_seven_tenths_and_converges_fast() {
    let mut sock = avoiding("cubic", 100);
    assert_eq!(sock.ca_ssthresh(), 70);
    assert_eq!(reductions("cubic", &[1000, 3, 1]), [700, 2, 2]);
}

/// DCTCP: alpha is 1 at first; a window without a mark leaves 15/16 of it.
#[test]
fn dctcp_alpha_decays_over_eight_unmarked_windows() {
    let mut sock = avoiding("dctcp", 1000);
    let mut alphas = Vec::new();
    for _ in 0..8 {
        sock.snd_una = sock.snd_nxt;
        sock.snd_nxt = sock.snd_nxt.wrapping_add(1000 * MSS);
        sock.delivered += 1000;
        sock.ca_in_ack_event(0);
        let mut marked = sock.clone();
        marked.snd_una = marked.snd_una.wrapping_sub(1);
        marked.ca_in_ack_event(ack_flags::ECE);
        alphas.push((1000 - marked.ca_ssthresh()) * 2);
    }
    // in thousandths, 1000 × (15/16)^n: 937.5, 878.9, 824.0, 772.5, 724.2, 678.9, 636.5, 596.7; read to 2
    for (n, (alpha, right)) in alphas.iter().zip([937, 879, 824, 772, 724, 679, 636, 597]).enumerate() {
        assert!(alpha.abs_diff(right) <= 2, "after {} windows: {alpha}, not {right}", n + 1);
    }
    // a loss without an echo halves, whatever alpha is
    sock.ca_in_ack_event(0);
    assert_eq!(sock.ca_ssthresh(), 500);
}
