//! Nanoseconds that each algorithm takes for an ACK: its hooks alone, called as a host calls them in the Open state.

use crate::Row;
use congestion::{AckSample, Algorithm, MinMaxSample, RateSample, TcpSock};
use std::hint::black_box;
use std::time::Instant;

const PREFIX: &str = "ns per ACK, ";
/// ACKs that are timed.
const ACKS: u32 = 20_000_000;

pub fn cases() -> Vec<String> {
    Algorithm::builtins().iter().map(|algorithm| format!("{PREFIX}{}", algorithm.name())).collect()
}

pub fn run(name: &str) -> Option<Vec<Row>> {
    let algorithm = Algorithm::named(name.strip_prefix(PREFIX)?)?;
    let mut sock = socket(algorithm);
    acks(&mut sock, ACKS / 20);
    let start = Instant::now();
    acks(&mut sock, ACKS);
    let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(ACKS);
    Some(vec![Row::new(name, ns, "ns")])
}

/// A socket in congestion avoidance: 100 segments, 100 µs.
fn socket(algorithm: &Algorithm) -> TcpSock {
    let mut sock = TcpSock {
        icsk_ca_ops: Some(algorithm.ops()),
        snd_cwnd: 100,
        snd_ssthresh: 50,
        snd_cwnd_clamp: u32::MAX,
        mss_cache: 1448,
        packets_out: 100,
        max_packets_out: 100,
        is_cwnd_limited: 1,
        srtt_us: 100 << 3,
        ecn_flags: 1,
        sk_pacing_rate: 1_250_000_000,
        sk_max_pacing_rate: u64::MAX,
        tcp_mstamp: 1_000_000,
        delivered: 1_000,
        ..TcpSock::default()
    };
    sock.rtt_min.s = [MinMaxSample { t: 0, v: 90 }; 3];
    sock.ca_init();
    sock
}

/// `n` ACKs of two segments each; the window is held, so that every one takes the same path.
fn acks(sock: &mut TcpSock, n: u32) {
    let cong_control = sock.icsk_ca_ops.is_some_and(congestion::CongestionOps::has_cong_control);
    for i in 0..n {
        sock.tcp_mstamp += 2;
        sock.snd_una = sock.snd_una.wrapping_add(2 * 1448);
        sock.snd_nxt = sock.snd_una.wrapping_add(100 * 1448);
        sock.delivered = sock.delivered.wrapping_add(2);
        let rtt_us = 100 + (i & 7) as i32;
        sock.ca_pkts_acked(&AckSample { pkts_acked: 2, rtt_us, in_flight: 100 * 1448 });
        sock.ca_in_ack_event(0);
        if cong_control {
            let sample = RateSample {
                prior_mstamp: sock.tcp_mstamp - 100,
                prior_delivered: sock.delivered.wrapping_sub(100),
                delivered: 100,
                interval_us: 100,
                snd_interval_us: 100,
                rcv_interval_us: 100,
                rtt_us: rtt_us.into(),
                acked_sacked: 2,
                prior_in_flight: 102,
                ..RateSample::default()
            };
            sock.ca_cong_control(sock.snd_una, 4, &sample);
        } else {
            sock.ca_cong_avoid(sock.snd_una, 2);
        }
        sock.snd_cwnd = black_box(100);
    }
}
