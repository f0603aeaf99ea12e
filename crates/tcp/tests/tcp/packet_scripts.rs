//! One endpoint against a scripted peer: what it sends, and when (`packetdrill.rs` explains the language).
//!
//! Segments carry 1000 bytes, the round trip is 20 ms, and there are no timestamps, so that numbers stay round.

use crate::packetdrill::{Drill, ISS, config};
use crate::recorder;
use congestion::sock::{TCP_CONG_NEEDS_ECN, ack_pending, ecn};
use congestion::{Algorithm, CaEvent, CongestionOps, RateSample, TcpSock};
use std::sync::{Arc, LazyLock};
use tcp::{Config, DelayedAck, EcnMode, PacingMode, flags};
use units::Time;

/// Acknowledges every second segment, or after 40 ms.
fn delaying() -> Config {
    Config {
        delayed_ack: DelayedAck {
            segments: 2,
            timeout: Time::from_ms(40),
            timeout_max: Time::from_ms(200),
            quickack: false,
        },
        ..config()
    }
}

// ---- Opening and closing ----

#[test]
fn a_lost_syn_is_retransmitted_with_back_off() {
    Drill::connecting(config(), ISS).run(
        "1000~10 > syn
         3000~20 > syn
         7000~40 > syn",
    );
}

#[test]
fn a_syn_is_given_up_after_its_retries() {
    let mut drill = Drill::connecting(Config { syn_retries: 2, ..config() }, ISS);
    let sent = drill.sent_until(60_000.0);
    assert_eq!(sent.len(), 2, "two retransmissions");
    assert!(drill.endpoint.is_closed());
}

#[test]
fn a_lost_syn_ack_is_retransmitted() {
    let mut drill = Drill::listening(config());
    drill.run("1000~10 > syn ack 1");
    assert!(!drill.endpoint.is_established());
}

#[test]
fn a_syn_offers_every_option_that_is_switched_on() {
    let drill = Drill::client(Config { timestamps: true, ..config() });
    let [syn, syn_ack, ..] = drill.handshake[..] else { panic!("a handshake") };
    assert!(syn.has_timestamp && syn.sack_permitted && syn.window_scale > 0 && syn.mss == 1000);
    assert!(syn_ack.has_timestamp);
    let plain = Config { sack: false, window_scaling: false, ..config() };
    let syn = Drill::connecting(plain, ISS).handshake[0];
    assert!(!syn.has_timestamp && !syn.sack_permitted && syn.window_scale == 0);
    assert!(syn.window <= 65_535);
}

#[test]
fn what_is_written_and_closed_before_the_handshake_ends_leaves_after_it() {
    Drill::connecting(config(), ISS).run(
        "0       write 1500
         0       close
         10      quiet
         1000~10 > syn
         1020    < syn
         1020    > 1:1501 fin ack 1
         1040    < ack 1502",
    );
}

#[test]
fn a_writer_that_waits_for_the_handshake_fills_the_first_window() {
    let mut drill = Drill::connecting(config(), ISS);
    drill.endpoint.write_all(Time::from_secs(1), 12_500);
    drill.run(
        "0  close
         20 < syn
         20 > 1:10001
         40 < ack 10001
         40 > 10001:12501 fin",
    );
}

#[test]
fn a_connection_that_is_closed_before_it_opens_opens_and_closes() {
    let mut drill = Drill::connecting(config(), ISS);
    drill.run(
        "0  close
         0  close
         20 < syn
         20 > fin ack 1
         40 < ack 2
         50 < 1:1 fin
         50 > ack 2",
    );
    assert!(drill.endpoint.is_closed());
}

#[test]
fn a_lost_fin_is_retransmitted() {
    let mut drill = Drill::client(config());
    drill.run(
        "0      write 1000
         0      > 1:1001
         0      close
         0      > fin
         20     < ack 1001
         240~25 > fin
         270    < ack 1002
         280    < 1:1 fin
         280    > ack 2",
    );
    assert_eq!(drill.endpoint.acked(), 1000);
}

#[test]
fn a_fin_waits_for_the_data_before_it() {
    Drill::client(config()).run(
        "0  write 12000
         0  > 1:10001
         0  close
         10 quiet
         20 < ack 2001
         20 > 10001:12001 fin",
    );
}

#[test]
fn both_ends_are_closed_when_both_fins_are_acknowledged() {
    let mut drill = Drill::client(config());
    drill.run(
        "0  < 1:1001
         0  > ack 1001
         1  < 1001:1001 fin
         2  close
         2  > fin ack 1002
         22 < ack 2",
    );
    drill.sent_until(200_000.0);
    assert!(drill.endpoint.is_closed());
    assert_eq!(drill.endpoint.received(), 1000);
}

#[test]
fn a_reset_ends_the_connection_at_once() {
    let mut drill = Drill::client(config());
    drill.run(
        "0  write 5000
         0  > 1:5001
         10 < rst",
    );
    assert!(drill.endpoint.is_closed());
    assert!(drill.sent_until(10_000.0).is_empty());
}

#[test]
fn a_reset_outside_the_window_is_ignored() {
    let mut drill = Drill::client(Config { receive_buffer: 100_000, ..config() });
    drill.run("10 < 2000000:2000000 rst");
    assert!(drill.endpoint.is_established() && !drill.endpoint.is_closed());
}

// ---- Acknowledging ----

#[test]
fn every_second_segment_is_acknowledged() {
    Drill::client(delaying()).run(
        "0  < 1:1001
         10 quiet
         10 < 1001:2001
         10 > ack 2001
         20 < 2001:3001
         20 < 3001:4001
         20 > ack 4001",
    );
}

#[test]
fn a_single_segment_is_acknowledged_on_timeout() {
    Drill::client(delaying()).run(
        "0    < 1:1001
         40~1 > ack 1001
         90   quiet",
    );
}

#[test]
fn a_delay_of_one_segment_acknowledges_each() {
    let each = DelayedAck { segments: 1, timeout: Time::from_ms(40), timeout_max: Time::from_ms(200), quickack: false };
    Drill::client(Config { delayed_ack: each, ..config() }).run(
        "0 < 1:1001
         0 > ack 1001
         1 < 1001:2001
         1 > ack 2001",
    );
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut drill = Drill::client(config());
    for segment in 0..8 {
        let (start, end) = (segment * 1000 + 1, segment * 1000 + 1001);
        drill.run(&format!("{segment} < {start}:{end}\n{segment} > ack {end}"));
    }
}

/// A receiver that has used its quick ACKs up: 16 segments have arrived.
fn past_its_quick_acks() -> Drill {
    let mut drill = Drill::client(config());
    for segment in 0..16 {
        let (start, end) = (segment * 1000 + 1, segment * 1000 + 1001);
        drill.run(&format!("{segment} < {start}:{end}\n{segment} > ack {end}"));
    }
    drill
}

#[test]
fn a_segment_with_psh_is_acknowledged_when_it_is_read() {
    past_its_quick_acks().run(
        "20 < 16001:17001
         30 quiet
         30 < 17001:18001
         30 > ack 18001
         40 < 18001:19001 psh
         40 > ack 19001",
    );
}

#[test]
fn a_segment_with_psh_that_is_not_read_waits() {
    past_its_quick_acks().run(
        "20   read off
         20   < 16001:17001 psh
         30   quiet
         60~1 > ack 17001",
    );
}

#[test]
fn data_carries_the_acknowledgment_that_is_owed() {
    Drill::client(delaying()).run(
        "0   < 1:1001
         10  write 1000
         10  > 1:1001 ack 1001
         30  < ack 1001
         200 quiet",
    );
}

#[test]
fn segments_out_of_order_are_reported_and_put_in_order() {
    Drill::client(delaying()).run(
        "0 < 1:1001
         0 < 2001:3001
         0 > ack 1001 sack 2001:3001
         2 < 4001:5001
         2 > ack 1001 sack 4001:5001 sack 2001:3001
         2 received 1000
         3 < 1001:2001
         3 > ack 3001 sack 4001:5001
         3 received 3000
         4 < 3001:4001
         4 > ack 5001 nosack
         4 received 5000",
    );
}

#[test]
fn the_block_that_just_grew_is_reported_first() {
    Drill::client(config()).run(
        "0 < 1001:2001
         0 > ack 1 sack 1001:2001
         1 < 3001:4001
         1 > ack 1 sack 3001:4001 sack 1001:2001
         2 < 5001:6001
         2 > ack 1 sack 5001:6001 sack 3001:4001 sack 1001:2001
         3 < 2001:3001
         3 > ack 1 sack 1001:4001 sack 5001:6001",
    );
}

#[test]
fn a_duplicate_is_reported_by_d_sack() {
    Drill::client(delaying()).run(
        "0 < 1:1001
         0 < 1001:2001
         0 > ack 2001
         5 < 1:1001
         5 > ack 2001 sack 1:1001
         6 < 3001:4001
         6 > ack 2001 sack 3001:4001
         7 < 3001:4001
         7 > ack 2001 sack 3001:4001 sack 3001:4001
         7 received 2000",
    );
}

#[test]
fn without_sack_a_gap_is_answered_by_duplicate_acks() {
    Drill::client(Config { sack: false, ..delaying() }).run(
        "0 < 1:1001
         0 < 2001:3001
         0 > ack 1001 nosack
         1 < 3001:4001
         1 > ack 1001 nosack
         2 < 1001:2001
         2 > ack 4001 nosack",
    );
}

// ---- The window ----

#[test]
fn the_initial_window_is_ten_segments() {
    Drill::client(config()).run(
        "0  write 40000
         0  > 1:10001
         19 quiet
         20 < ack 1001
         20 > 10001:12001
         20 cwnd 11
         21 < ack 3001
         21 > 12001:16001
         21 cwnd 13",
    );
}

#[test]
fn an_initial_window_of_one_is_kept() {
    Drill::client(Config { initial_cwnd: 1, ..config() }).run(
        "0  write 40000
         0  > 1:1001
         20 < ack 1001
         20 > 1001:3001
         40 < ack 3001
         40 > 3001:7001",
    );
}

#[test]
fn no_burst_has_bytes_of_two_buffers() {
    // a buffer of five segments, and bursts of two: as Linux cuts them, the fifth leaves alone
    let mut drill = Drill::client(Config { tso_segments: 5, ..config() });
    drill.run("0 write 40000");
    let sent = drill.sent_until(1.0);
    let first = sent[0].1.seq;
    let ends = sent.iter().filter(|(_, segment)| segment.flags & flags::PSH != 0);
    let ends: Vec<u32> = ends.map(|(_, segment)| (segment.seq - first) / 1000 + 1).collect();
    assert_eq!(ends, [2, 4, 7, 9]);
}

#[test]
fn the_peers_window_limits_what_is_sent() {
    Drill::client_with(config(), ISS, |syn_ack| syn_ack.window = 3000).run(
        "0  write 40000
         0  > 1:3001
         20 < ack 3001 win 2000
         20 > 3001:5001
         40 < ack 5001 win 100000
         40 > 5001:15001
         40 cwnd 10",
    );
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut drill = Drill::client(config());
    drill.run(
        "0  write 5000
         0  > 1:5001
         20 < ack 5001 win 0
         21 write 3000
         30 quiet",
    );
    let probes = drill.sent_until(1_000.0);
    let first = probes.first().expect("a probe");
    assert!((215.0..270.0).contains(&first.0), "the first probe after one timeout, not at {:.1} ms", first.0);
    let gap = probes.get(1).expect("a second probe").0 - first.0;
    assert!((400.0..500.0).contains(&gap), "the second one after twice the time, not {gap:.1} ms");
    assert!(probes.iter().all(|(_, probe)| probe.len <= 1), "a probe carries no more than a byte");
    drill.run(
        "1000 < ack 5001 win 10000
         1000 > 5001:8001
         1020 < ack 8001",
    );
}

#[test]
fn a_reader_that_stops_closes_the_window_and_reopens_it() {
    let mut drill = Drill::client(Config { receive_buffer: 8000, window_scaling: false, ..config() });
    drill.run("0 read off");
    let mut start = 1;
    let mut window = u32::MAX;
    for ms in 1..=30 {
        if window >= 1000 {
            drill.run(&format!("{ms} < {start}:{}", start + 1000));
            start += 1000;
        }
        if let Some((_, ack)) = drill.sent_until(ms as f64).last() {
            window = ack.window;
        }
    }
    assert!(window < 1000, "the window closes, {window} bytes are left");
    assert!(start <= 8001, "no more than the buffer is taken");
    drill.run("200 read on");
    let update = drill.sent_until(200.0);
    assert_eq!(update.len(), 1, "a window update leaves at once");
    assert!(update[0].1.window >= 4000 && update[0].1.len == 0);
}

#[test]
fn a_window_that_is_withdrawn_takes_what_was_sent_before() {
    let of_a_segment = Config { receive_buffer: 8000, window_scaling: false, window_clamp: 1000, ..config() };
    let (open, withdrawn) = (Arc::new(of_a_segment.clone()), Arc::new(Config { window_clamp: 0, ..of_a_segment }));
    let mut drill = Drill::client((*open).clone());
    drill.run("0 quiet");
    let retune = |drill: &mut Drill, ms: f64, config: &Arc<Config>| {
        drill.sent_until(ms);
        drill.endpoint.retune(Time::from_secs(1) + Time::from_ms(20) + Time::from_secs_f64(ms / 1e3), config);
        let acks = drill.sent_until(ms);
        assert_eq!(acks.len(), 1, "an ACK leaves at once");
        acks[0].1.window
    };
    assert_eq!(retune(&mut drill, 10.0, &withdrawn), 0);
    drill.run(
        "20 < 1:1001
         20 > ack 1001 win 0
         20 received 1000",
    );
    assert_eq!(retune(&mut drill, 70.0, &open), 1000);
}

#[test]
fn a_window_that_is_closed_without_progress_stops_the_sender() {
    Drill::client(config()).run(
        "0  write 1000
         0  > 1:1001
         20 < ack 1001 win 5000
         30 < ack 1001 win 0
         40 write 3000
         50 quiet
         60 < ack 1001 win 1000
         60 > 1001:2001
         80 < ack 2001 win 0
         90 quiet",
    );
}

#[test]
fn the_send_buffer_limits_what_is_accepted() {
    let mut drill = Drill::client(Config { send_buffer: 5000, ..config() });
    let now = Time::from_secs(1) + Time::from_ms(20);
    assert_eq!(drill.endpoint.write(now, 20_000), 5000);
    assert_eq!(drill.endpoint.write(now, 1), 0);
    drill.run(
        "0  > 1:5001
         20 < ack 2001",
    );
    assert_eq!(drill.endpoint.send_room(), 2000);
    assert_eq!(drill.endpoint.write(now + Time::from_ms(20), 20_000), 2000);
}

#[test]
fn idle_longer_than_the_timeout_returns_to_the_restart_window() {
    let script = "0    write 20000
                  0    > 1:10001
                  20   < ack 10001
                  20   > 10001:20001
                  20   cwnd 20
                  40   < ack 20001
                  1000 write 60000";
    let mut drill = Drill::client(config());
    drill.run(script).run(
        "1000 > 20001:30001
         1000 cwnd 10",
    );
    let mut drill = Drill::client(Config { slow_start_after_idle: false, ..config() });
    drill.run(script);
    assert!(drill.sent_until(1000.0).len() >= 20, "without the switch the window stays");
}

#[test]
fn an_unused_window_is_validated() {
    // eight of ten segments in flight are enough to grow by seven; more than a timeout later, eight at most were used:
    // (17 + max(8, initial window)) / 2
    Drill::client(config()).run(
        "0     write 8000
         0     > 1:8001
         20    < ack 7001
         20    cwnd 17
         240~5 > 7001:8001
         250   cwnd 17
         250   write 1000
         250   > 8001:9001
         250   cwnd 13
         270   < ack 9001",
    );
}

#[test]
fn pacing_spaces_segments_by_the_rate() {
    extern "C" fn pace(sk: &mut TcpSock) {
        sk.sk_pacing_status = congestion::sock::SK_PACING_NEEDED;
        sk.sk_pacing_rate = 1_000_000;
    }
    extern "C" fn keep(sk: &mut TcpSock, _ack: u32, _flag: i32, _rs: &RateSample) {
        sk.sk_pacing_rate = 1_000_000;
    }
    extern "C" fn window(sk: &mut TcpSock) -> u32 {
        sk.snd_cwnd
    }
    static OPS: CongestionOps = CongestionOps {
        init: Some(pace),
        cong_control: Some(keep),
        ssthresh: Some(window),
        undo_cwnd: Some(window),
        ..EMPTY
    };
    static PACED: LazyLock<Algorithm> = LazyLock::new(|| Algorithm::from_ops(&OPS).expect("complete"));
    let mut drill = Drill::client(Config {
        initial_cwnd: 100,
        pacing: PacingMode::Auto,
        ..Config { algorithm: &PACED, ..config() }
    });
    drill.run("0 write 60000");
    let sent = drill.sent_until(200.0);
    let times: Vec<f64> = sent.iter().filter(|(_, s)| s.len > 0).map(|&(at, _)| at).collect();
    assert!(times.len() >= 60, "all is sent");
    // a burst may come first; from then on 1000 bytes take a millisecond
    let (from, to) = (15, 55);
    let per_segment = (times[to] - times[from]) / (to - from) as f64;
    assert!((0.9..1.2).contains(&per_segment), "{per_segment:.3} ms per segment");
    let burst = times.iter().filter(|&&at| (at - times[30]).abs() < 1e-6).count();
    assert!(burst <= 3, "{burst} segments at once");
}

pub const EMPTY: CongestionOps = CongestionOps {
    init: None,
    release: None,
    ssthresh: None,
    cong_avoid: None,
    set_state: None,
    cwnd_event: None,
    in_ack_event: None,
    pkts_acked: None,
    cong_control: None,
    undo_cwnd: None,
    min_tso_segs: None,
    sndbuf_expand: None,
    name: [0; 16],
    flags: 0,
    cc_pad: 0,
};

// ---- ECN ----

fn marking() -> Config {
    Config { ecn: EcnMode::On, ..config() }
}

#[test]
fn ecn_is_negotiated_and_data_is_ect() {
    let mut drill = Drill::client(marking());
    assert_eq!(drill.handshake[0].flags, flags::SYN | flags::ECE | flags::CWR);
    drill.run(
        "0  write 1000
         0  > 1:1001 ect
         20 < ack 1001",
    );
    let mut refused = Drill::client_with(marking(), ISS, |syn_ack| syn_ack.flags &= !flags::ECE);
    refused.run(
        "0 write 1000
         0 > 1:1001 noect",
    );
    let server = Drill::listening(marking());
    assert_eq!(server.handshake[1].flags, flags::SYN | flags::ACK | flags::ECE);
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_reduced() {
    Drill::client(marking()).run(
        "0 < 1:1001 ect
         0 > ack 1001 noece
         1 < 1001:2001 ce
         1 > ack 2001 ece
         2 < 2001:3001 ect
         2 > ack 3001 ece
         3 < 3001:4001 ect cwr
         3 > ack 4001 noece",
    );
}

#[test]
fn an_echo_reduces_once_and_is_answered_by_cwr() {
    let mut drill = Drill::client(marking());
    drill.run(
        "0    write 40000
         0    > 1:10001 nocwr
         20   < ack 1001 ece",
    );
    let mut sent = drill.sent_until(20.0);
    drill.run(
        "20 state 2
         20 ssthresh 5",
    );
    for ack in 2..=10 {
        let ms = 20.0 + ack as f64 / 10.0;
        drill.run(&format!("{ms} < ack {ack}001 ece"));
        sent.extend(drill.sent_until(ms));
    }
    drill.run("21 ssthresh 5");
    let cwr: Vec<bool> = sent.iter().filter(|(_, s)| s.len > 0).map(|(_, s)| s.flags & flags::CWR != 0).collect();
    assert!(!cwr.is_empty() && cwr[0], "the first new segment says CWR");
    assert!(!cwr[1..].contains(&true), "only the first does");
}

/// DCTCP's receiver (RFC 8257 3.2): a change of CE is reported at once; earlier data is acknowledged in the old state.
mod ce_echo {
    use super::{CaEvent, TcpSock, ack_pending, ecn};

    pub extern "C" fn init(sk: &mut TcpSock) {
        sk.icsk_ca_priv[0] = 0;
        sk.icsk_ca_priv[1] = sk.rcv_nxt as u64;
    }

    pub extern "C" fn cwnd_event(sk: &mut TcpSock, event: u32) {
        let ce = event == CaEvent::EcnIsCe as u32;
        if !ce && event != CaEvent::EcnNoCe as u32 {
            return;
        }
        if (sk.icsk_ca_priv[0] == 1) != ce {
            if sk.icsk_ack_pending & ack_pending::TIMER != 0 {
                sk.cc_ack_seq = sk.icsk_ca_priv[1] as u32;
                sk.cc_ack_ecn_flags = sk.ecn_flags;
                sk.cc_ack_wanted = 1;
            }
            sk.icsk_ack_pending |= ack_pending::NOW;
        }
        sk.icsk_ca_priv[0] = ce as u64;
        sk.icsk_ca_priv[1] = sk.rcv_nxt as u64;
        if ce {
            sk.ecn_flags |= ecn::DEMAND_CWR;
        } else {
            sk.ecn_flags &= !ecn::DEMAND_CWR;
        }
    }

    pub extern "C" fn window(sk: &mut TcpSock) -> u32 {
        sk.snd_cwnd
    }

    pub extern "C" fn cong_avoid(_sk: &mut TcpSock, _ack: u32, _acked: u32) {}
}

#[test]
fn a_change_of_ce_is_reported_at_once_and_in_the_right_state() {
    static OPS: CongestionOps = CongestionOps {
        init: Some(ce_echo::init),
        cwnd_event: Some(ce_echo::cwnd_event),
        ssthresh: Some(ce_echo::window),
        undo_cwnd: Some(ce_echo::window),
        cong_avoid: Some(ce_echo::cong_avoid),
        flags: TCP_CONG_NEEDS_ECN,
        ..EMPTY
    };
    static ECHO: LazyLock<Algorithm> = LazyLock::new(|| Algorithm::from_ops(&OPS).expect("complete"));
    Drill::client(Config { algorithm: &ECHO, ..delaying() }).run(
        "0  < 1:1001 ect
         1  < 1001:2001 ce
         1  > ack 1001 noece
         1  > ack 2001 ece
         2  < 2001:3001 ce
         3  < 3001:4001 ce
         3  > ack 4001 ece
         4  < 4001:5001 ce
         5  < 5001:6001 ect
         5  > ack 5001 ece
         5  > ack 6001 noece
         6  < 6001:7001 ect
         46~1 > ack 7001 noece",
    );
}

// ---- Elsewhere ----

#[test]
fn sequence_numbers_wrap() {
    let script = "0  write 18000
                  0  > 1:10001
                  20 < ack 4001
                  20 > 10001:18001
                  21 < ack 4001 sack 5001:6001
                  22 < ack 4001 sack 5001:7001
                  22.1 < ack 4001 sack 5001:8001
                  22.1 > 4001:5001
                  22.1 state 3
                  42 < ack 18001
                  42 state 0";
    for before_wrap in [0, 1, 500, 4500, 9999, 17_000] {
        let mut drill = Drill::client_with(config(), u32::MAX - before_wrap, |_| ());
        drill.run(script);
        assert_eq!(drill.endpoint.acked(), 18_000, "{before_wrap} before the wrap");
    }
}

#[test]
fn another_algorithm_takes_over_a_live_socket_as_it_stands() {
    recorder::take();
    let mut drill = Drill::client(Config { algorithm: &recorder::RENOISH_CC, ..config() });
    drill.run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20.1 < ack 1001 sack 2001:5001
         20.1 > 1001:2001
         20.1 state 3",
    );
    recorder::take();
    let now = Time::from_secs(1) + Time::from_us(40_200);
    drill.endpoint.set_algorithm(now, &recorder::RENOISH_ECN_CC);
    let rows = recorder::take();
    let hooks: Vec<&str> = rows.iter().map(|row| row.hook.as_str()).collect();
    assert_eq!(hooks, ["release", "init"]);
    assert_eq!((rows[1].cwnd, rows[1].ssthresh), (rows[0].cwnd, 5), "window and threshold stay");
    drill.run(
        "40 < ack 10001
         40 state 0",
    );
    drill.endpoint.set_algorithm(now + Time::from_ms(20), Algorithm::named("newreno").expect("built in"));
    assert_eq!(recorder::take().last().expect("a hook").hook, "release");
    drill.run(
        "50 write 5000
         50 > 10001:15001
         70 < ack 15001",
    );
    assert!(recorder::take().is_empty(), "the old algorithm is gone");
}

#[test]
fn nagle_is_off() {
    Drill::client(config()).run(
        "0 write 100
         0 > 1:101
         1 write 200
         1 > 101:301",
    );
}
