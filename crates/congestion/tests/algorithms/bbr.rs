//! BBR's parts, each worked out by hand in the comments.

use crate::flow::{Event, Flow, MSS, Path, socket};
use congestion::sock::{TCP_CA_LOSS, TCP_CA_OPEN, TCP_CA_RECOVERY, TCP_INFINITE_SSTHRESH};
use congestion::{Algorithm, CaEvent, RateSample, TcpSock};

fn bbr() -> &'static Algorithm {
    Algorithm::named("bbr").expect("a file of cc/")
}

/// A new flow after its first RTT.
fn started(rtt_us: u32) -> TcpSock {
    let mut sock = socket(bbr(), 10, TCP_INFINITE_SSTHRESH);
    sock.srtt_us = rtt_us << 3;
    sock
}

/// One ACK after `us`, of `delivered` segments that took as long and left none in flight but these.
fn sample(sock: &mut TcpSock, us: u64, delivered: u32) -> RateSample {
    let sample = RateSample {
        prior_delivered: sock.delivered,
        delivered: delivered as i32,
        acked_sacked: delivered,
        interval_us: us as i64,
        rtt_us: us as i64,
        ..RateSample::default()
    };
    sock.tcp_mstamp += us;
    sock.delivered_mstamp = sock.tcp_mstamp;
    sock.delivered += delivered;
    sock.tcp_clock_cache = sock.tcp_mstamp * 1000;
    sock.tcp_wstamp_ns = sock.tcp_clock_cache;
    sample
}

/// The same, as a round of the algorithm.
fn round(sock: &mut TcpSock, us: u64, delivered: u32) {
    let sample = sample(sock, us, delivered);
    sock.ca_cong_control(0, 4, &sample);
}

/// A flow that has found 100 segments per 10 ms and cruises with an empty buffer.
fn cruising() -> TcpSock {
    let mut sock = started(10_000);
    // the pipe is full after the first round and three without growth; with nothing in flight Drain is over at once
    (0..6).for_each(|_| round(&mut sock, 10_000, 100));
    sock
}

/// bytes/s of so many segments per second, with the pacing margin: 99 of 100.
fn paced(segments: u64) -> u64 {
    segments * u64::from(MSS) * 99 / 100
}

/// Within a thousandth, which rounding to 2^-24 segments/us and 2^-8 of a gain takes.
fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) * 1000 <= b
}

#[test]
fn the_first_rate_is_the_window_in_a_millisecond_and_then_in_the_first_rtt() {
    // 10 segments in 1 ms are 10,000 a second, x 2.887 (739/256)
    let mut sock = socket(bbr(), 10, TCP_INFINITE_SSTHRESH);
    assert!(near(sock.sk_pacing_rate, paced(28_867)), "{}", sock.sk_pacing_rate);
    // an RTT of 20 ms: 500 a second; what was delivered since, one segment in 20 ms, is less
    sock.srtt_us = 20_000 << 3;
    round(&mut sock, 20_000, 1);
    assert!(near(sock.sk_pacing_rate, paced(1_443)), "{}", sock.sk_pacing_rate);
}

#[test]
fn the_gain_cycles_through_a_probe_a_drain_and_six_cruises_one_percent_below_the_bandwidth() {
    let path = Path { pipe: 100, base_rtt_us: 40_000, buffer: 1000, mark_above: 1000 };
    let mut flow = Flow::new(bbr(), path);
    let bottleneck = 100 * u64::from(MSS) * 1_000_000 / 40_000;
    for _ in 0..200 {
        flow.round(Event::Nothing);
    }
    // (gain in hundredths, how long in tenths of min_rtt), from one probe to the next, once Startup and Drain are over
    let settled: Vec<_> = flow.rates.iter().filter(|(t, _)| *t > 3_000_000).collect();
    let phases: Vec<(u64, u64)> = settled
        .windows(2)
        .map(|w| ((w[0].1 * 100 + bottleneck / 2) / bottleneck, (w[1].0 - w[0].0) / 4_000))
        .skip_while(|phase| phase.0 != 124)
        .collect();
    assert!(phases.len() > 30, "{phases:?}");
    for cycle in phases.chunks_exact(3) {
        // 1.25, 0.75 and 1, x 0.99: 1.2375, 0.7425, 0.99
        let gains: Vec<u64> = cycle.iter().map(|phase| phase.0).collect();
        assert_eq!(gains, [124, 74, 99], "{phases:?}");
        // a probe lasts until it is in flight; draining ends earlier when the queue is gone
        assert!((10..=30).contains(&cycle[0].1), "{phases:?}");
        assert!((1..=12).contains(&cycle[1].1), "{phases:?}");
        assert!((60..=66).contains(&cycle[2].1), "{phases:?}");
    }
}

#[test]
fn the_window_is_twice_the_bdp_and_three_bursts_made_even() {
    let mut sock = cruising();
    // it grows by what was delivered, up to its goal. 100 segments per 10 ms at 0.99 are 14.3 MB/s, in 1 ms (2^-10 s)
    // 13,999 bytes: bursts of 9 segments
    let mut windows = Vec::new();
    for _ in 0..16 {
        round(&mut sock, 10_000, 100);
        windows.push(sock.snd_cwnd);
    }
    // each ACK here brings a whole round at once: extra_acked is that round and a segment for rounding, 101. While
    // cruising 2 x 100 + 101 + 27 = 328. A probe's rate has bursts of 12: 337, even 338, and 2. A drain's has 7: 322
    assert!(windows.contains(&328), "{windows:?}");
    assert!(windows.iter().all(|cwnd| [328, 340, 322].contains(cwnd)), "{windows:?}");
}

#[test]
fn aggregated_acks_widen_the_window_for_five_to_ten_rounds_and_by_100_ms_at_most() {
    let path = Path { pipe: 100, base_rtt_us: 40_000, buffer: 1000, mark_above: 1000 };
    let mut flow = Flow::new(bbr(), path);
    (0..60).for_each(|_| {
        flow.round(Event::Nothing);
    });
    // single ACKs, evenly: 2 x 100 + 3 bursts of 2, + 1 segment, even; 6 less two more while probing
    assert!((206..=216).contains(&flow.sock.snd_cwnd), "{}", flow.sock.snd_cwnd);
    // 50 segments of one round at the same instant: 50 more than the bandwidth explains
    let sock = &mut flow.sock;
    let burst = RateSample {
        prior_delivered: sock.delivered - 100,
        delivered: 100,
        interval_us: 40_000,
        rtt_us: 40_000,
        acked_sacked: 50,
        prior_in_flight: sock.packets_out,
        ..RateSample::default()
    };
    sock.delivered += 50;
    sock.ca_cong_control(0, 4, &burst);
    assert!((255..=266).contains(&flow.sock.snd_cwnd), "{}", flow.sock.snd_cwnd);
    // a silence as long as these 50 and a few more ends the epoch; 10 rounds later both windows have dropped it
    flow.sock.tcp_mstamp += 22_000;
    (0..12).for_each(|_| {
        flow.round(Event::Nothing);
    });
    assert!((206..=216).contains(&flow.sock.snd_cwnd), "{}", flow.sock.snd_cwnd);
}

#[test]
fn two_intervals_with_a_policers_losses_set_the_rate_for_48_rounds() {
    let mut sock = started(10_000);
    // a bucket full of tokens: 160 segments per 10 ms, which the maximum filter keeps for 10 rounds
    round(&mut sock, 10_000, 160);
    // then 80 per 10 ms and 20 lost, a quarter of it (a fifth is enough), with nothing left in flight
    let policed = |sock: &mut TcpSock| {
        sock.lost += 20;
        let sample = RateSample { losses: 20, ..sample(sock, 10_000, 80) };
        sock.ca_cong_control(0, 4, &sample);
        sock.sk_pacing_rate
    };
    // the first interval begins with the first loss and ends in its fourth round, the second takes four more
    let rates: Vec<u64> = (0..8).map(|_| policed(&mut sock)).collect();
    assert!(rates[..7].iter().all(|&rate| rate > paced(11_000)), "{rates:?}");
    assert!(near(rates[7], paced(8_000)), "{rates:?}");
    // a burst that gets through changes nothing, until 48 rounds are over: then the maximum filter counts again
    let later = |i| {
        if i == 40 {
            round(&mut sock, 10_000, 160);
            return sock.sk_pacing_rate;
        }
        policed(&mut sock)
    };
    let rates: Vec<u64> = (0..48).map(later).collect();
    assert!(rates[..47].iter().all(|&rate| near(rate, paced(8_000))), "{rates:?}");
    assert!(rates[47] > paced(11_000), "{rates:?}");
}

#[test]
fn an_application_limited_interval_says_nothing_about_a_policer() {
    let mut sock = started(10_000);
    round(&mut sock, 10_000, 160);
    for i in 0..8 {
        sock.lost += 20;
        let sample = RateSample { losses: 20, is_app_limited: i == 5, ..sample(&mut sock, 10_000, 80) };
        sock.ca_cong_control(0, 4, &sample);
    }
    assert!(sock.sk_pacing_rate > paced(11_000), "{}", sock.sk_pacing_rate);
}

#[test]
fn segments_that_leave_before_the_next_departure_do_not_count_as_in_flight() {
    // 100 segments per 10 ms, 250 in flight at the end of Startup. Its bursts are of 27 segments (2.887 x 14.3 MB/s in
    // 2^-10 s: 40,406 bytes), so the goal is 100 + 3 x 27 = 181, even 182. Drain's are of 3, and its goal is 110
    let drained = |ahead_us: u64| {
        let mut sock = started(10_000);
        sock.packets_out = 250;
        for _ in 0..5 {
            let sample = sample(&mut sock, 10_000, 100);
            sock.tcp_wstamp_ns = sock.tcp_clock_cache + ahead_us * 1000;
            sock.ca_cong_control(0, 4, &sample);
        }
        // after Drain the window's gain is 2
        sock.snd_ssthresh != TCP_INFINITE_SSTHRESH && sock.sk_pacing_rate > paced(7_000)
    };
    // in 1 ms 10 segments are delivered: 250 + 27 - 10, then 240; in 15 ms 150: 127
    assert!(!drained(1_000));
    assert!(drained(15_000));
}

#[test]
fn a_min_rtt_of_ten_seconds_ago_is_probed_with_four_segments_for_200_ms() {
    let mut sock = cruising();
    // longer RTTs than the first: a queue that does not go away. 10 ms a round, 1,000 of them and a few
    let mut rounds = 0;
    while sock.snd_cwnd > 4 {
        let queued = RateSample { rtt_us: 12_000, ..sample(&mut sock, 10_000, 100) };
        sock.ca_cong_control(0, 4, &queued);
        rounds += 1;
        assert!(rounds < 1_010, "cwnd {}", sock.snd_cwnd);
    }
    // the last of six rounds at 10 ms was the newest minimum
    assert!((1_000..=1_002).contains(&rounds), "{rounds}");
    sock.packets_out = 4;
    let mut probing = 0;
    while sock.snd_cwnd == 4 {
        let small = RateSample { is_app_limited: true, ..sample(&mut sock, 10_000, 4) };
        sock.ca_cong_control(0, 4, &small);
        probing += 1;
        assert!(probing < 40);
        assert!(sock.app_limited > 0, "what is delivered now is not the path's bandwidth");
    }
    // 200 ms are 20 rounds, over with the next
    assert!((20..=22).contains(&probing), "{probing}");
    // the earlier window, at most the present goal, without the rounds that came at once: 2 x 100 + 4 + 27
    // = 231, even 232. Of a drain it is 226, of a probe 242
    assert!([226, 232, 242].contains(&sock.snd_cwnd), "{}", sock.snd_cwnd);
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut sock = cruising();
    (0..10).for_each(|_| round(&mut sock, 10_000, 100));
    let before = sock.snd_cwnd;
    sock.packets_out = 150;
    sock.lost_out = 10;
    sock.ca_ssthresh();
    sock.icsk_ca_state = TCP_CA_RECOVERY;
    let two = sample(&mut sock, 200, 2);
    // of a segment that was sent before the recovery: no round ends
    let (delivered, prior_delivered) = (100, sock.delivered - 100);
    let entering = RateSample { losses: 10, rtt_us: 10_000, interval_us: 10_000, delivered, prior_delivered, ..two };
    sock.ca_cong_control(0, 4, &entering);
    // 150 - 10 in flight, and the 2 delivered
    assert_eq!(sock.snd_cwnd, 142);
    sock.icsk_ca_state = TCP_CA_OPEN;
    sock.lost_out = 0;
    round(&mut sock, 10_000, 2);
    assert!(sock.snd_cwnd + 20 >= before, "{} of {before}", sock.snd_cwnd);
}

#[test]
fn a_timeout_counts_as_a_loss_and_looks_for_the_bandwidth_again() {
    let mut sock = started(10_000);
    (0..3).for_each(|_| round(&mut sock, 10_000, 100));
    // a timeout forgets the bandwidth that growth is measured by: three more rounds until the pipe counts as full
    sock.ca_set_state(TCP_CA_LOSS);
    let full = |sock: &TcpSock| sock.snd_ssthresh != TCP_INFINITE_SSTHRESH;
    round(&mut sock, 10_000, 100);
    assert!(!full(&sock));
    (0..3).for_each(|_| round(&mut sock, 10_000, 100));
    assert!(full(&sock));
}

#[test]
fn after_a_pause_it_resumes_at_the_bandwidth_without_probing() {
    let mut sock = cruising();
    (0..40).for_each(|_| round(&mut sock, 10_000, 100));
    sock.app_limited = sock.delivered;
    sock.sk_pacing_rate = 1;
    sock.ca_cwnd_event(CaEvent::TxStart);
    assert!(near(sock.sk_pacing_rate, paced(10_000)), "{}", sock.sk_pacing_rate);
}

#[test]
fn below_one_point_two_megabits_a_burst_is_one_segment() {
    let mut sock = cruising();
    // 1.2 Mbit/s are 150,000 bytes/s
    sock.sk_pacing_rate = 149_999;
    assert_eq!(sock.ca_min_tso_segs(), 1);
    sock.sk_pacing_rate = 150_000;
    assert_eq!((sock.ca_min_tso_segs(), sock.ca_sndbuf_expand()), (2, 3));
}
