//! Packet scripts of loss, reordering and timeouts (`packetdrill.rs` explains the language).

use crate::packet_scripts::EMPTY;
use crate::packetdrill::{Drill, ISS, config};
use congestion::{Algorithm, CongestionOps, RateSample, TcpSock};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};
use tcp::{Config, Endpoint, SackBlock, Segment, flags};
use units::Time;

fn without_probes() -> Config {
    Config { tlp: false, ..config() }
}

#[test]
fn three_duplicate_acks_with_sack_retransmit() {
    let mut drill = Drill::client(config());
    drill.run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20   cwnd 11
         20.1 < ack 1001 sack 2001:3001
         20.1 state 1
         20.2 < ack 1001 sack 2001:4001
         20.2 quiet
         20.3 < ack 1001 sack 2001:5001
         20.3 > 1001:2001
         20.3 state 3
         20.3 ssthresh 5
         40   < ack 10001
         40   state 0
         40   ssthresh 5",
    );
    assert_eq!(drill.endpoint.stats().retransmits, 1);
}

#[test]
fn a_duplicate_reported_after_everything_is_acknowledged_undoes_the_reduction() {
    // the one retransmission arrived twice, so nothing had been lost: cwnd was 11 before, ssthresh without a limit
    let mut drill = Drill::client(config());
    drill.run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20.1 < ack 1001 sack 2001:3001
         20.2 < ack 1001 sack 2001:4001
         20.3 < ack 1001 sack 2001:5001
         20.3 > 1001:2001
         40   < ack 10001
         40   state 0
         40   ssthresh 5
         60   < ack 10001 sack 1001:2001
         60   cwnd 11",
    );
    assert_eq!(drill.endpoint.stats().undos, 1);
    assert_eq!(drill.endpoint.sock().snd_ssthresh, congestion::sock::TCP_INFINITE_SSTHRESH);
}

#[test]
fn three_duplicate_acks_without_rack_retransmit() {
    Drill::client(Config { rack: false, tlp: false, ..config() }).run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20.1 < ack 1001 sack 2001:3001
         20.2 < ack 1001 sack 2001:4001
         20.2 quiet
         20.3 < ack 1001 sack 2001:5001
         20.3 > 1001:2001
         20.3 state 3
         40   < ack 10001
         40   state 0",
    );
}

#[test]
fn three_duplicate_acks_without_sack_retransmit() {
    Drill::client(Config { sack: false, ..config() }).run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20.1 < ack 1001
         20.2 < ack 1001
         20.2 quiet
         20.3 < ack 1001
         20.3 > 1001:2001
         20.3 state 3
         40   < ack 10001",
    );
}

#[test]
fn every_hole_below_three_sacked_segments_is_retransmitted_once() {
    let mut drill = Drill::client(config());
    drill.run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20.1 < ack 1001 sack 2001:3001
         20.2 < ack 1001 sack 4001:5001 sack 2001:3001
         20.3 < ack 1001 sack 6001:10001 sack 4001:5001 sack 2001:3001",
    );
    let sent = drill.sent_until(39.0);
    let mut starts: Vec<u32> = sent.iter().map(|(_, segment)| segment.seq.wrapping_sub(ISS)).collect();
    starts.sort_unstable();
    assert_eq!(starts, [1001, 3001, 5001]);
    drill.run(
        "40 < ack 10001
         40 state 0
         40 ssthresh 5",
    );
}

#[test]
fn a_hole_that_a_retransmission_fills_is_no_reordering() {
    // two holes, filled one after the other by their retransmissions
    let mut drill = Drill::client(config());
    drill.run(
        "0    write 12000
         0    > 1:10001
         20   < ack 1001
         20   > 10001:12001
         20.1 < ack 1001 sack 2001:3001
         20.2 < ack 1001 sack 4001:10001 sack 2001:3001",
    );
    drill.sent_until(39.0);
    drill.run(
        "40   < ack 3001 sack 4001:12001
         40.1 < ack 12001
         40.1 state 0
         60   write 6000",
    );
    drill.sent_until(79.0);
    // had the first been taken for reordering, 5 ms would pass, a quarter of the round trip
    drill.run(
        "80   < ack 12001 sack 13001:14001
         80   > 17001:18001
         80.1 < ack 12001 sack 13001:15001
         80.2 < ack 12001 sack 13001:16001
         80.2 > 12001:13001",
    );
}

#[test]
fn reordering_within_a_quarter_of_the_round_trip_is_no_loss() {
    let mut drill = Drill::client(config());
    drill.run(
        "0  write 10000
         0  > 1:10001
         20 < ack 1001 sack 2001:3001
         21 < ack 1001 sack 2001:4001
         22 < ack 10001
         22 state 0
         60 quiet",
    );
    assert_eq!(drill.endpoint.stats().retransmits, 0);
}

#[test]
fn rack_retransmits_when_the_reordering_window_is_over() {
    Drill::client(config()).run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         20.1 < ack 1001 sack 2001:3001
         26~2 > 1001:2001
         30   state 3",
    );
}

#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    let mut drill = Drill::client(config());
    drill.run(
        "0    write 5000
         0    > 1:5001
         20   < ack 3001
         64~6 > 4001:5001
         85   < ack 3001 sack 4001:5001
         85~6 > 3001:4001
         105  < ack 5001
         105  state 0",
    );
    assert_eq!((drill.endpoint.stats().rtos, drill.endpoint.stats().tlp_probes), (0, 1));
}

#[test]
fn a_probe_prefers_new_data() {
    Drill::client(Config { initial_cwnd: 4, ..config() }).run(
        "0    write 10000
         0    > 1:4001
         45~6 > 4001:5001",
    );
}

#[test]
fn a_single_lost_segment_waits_for_the_delayed_ack() {
    let mut drill = Drill::client(config());
    drill.run(
        "0     write 5000
         0     > 1:5001
         20    < ack 4001
         240~5 > 4001:5001
         260   < ack 5001",
    );
    assert_eq!((drill.endpoint.stats().rtos, drill.endpoint.stats().tlp_probes), (0, 1));
}

#[test]
fn the_timeout_backs_off_from_200_ms() {
    let mut drill = Drill::client(without_probes());
    drill.run(
        "0      write 1000
         0      > 1:1001
         220~5  > 1:1001
         220    state 4
         220    cwnd 1
         660~10 > 1:1001
         1540~15 > 1:1001
         1560   < ack 1001
         1560   state 0",
    );
    assert_eq!(drill.endpoint.stats().rtos, 3);
}

#[test]
fn a_least_timeout_of_2_ms_lets_the_variance_rule() {
    // first sample: srtt 20 ms, variance term 2 x 20 ms
    Drill::client(Config { rto_min: Time::from_ms(2), ..without_probes() }).run(
        "0     write 1000
         0     > 1:1001
         60~2  > 1:1001
         180~4 > 1:1001
         420~8 > 1:1001",
    );
}

#[test]
fn the_timeout_stops_growing_at_its_maximum() {
    let mut drill = Drill::client(Config { rto_max: Time::from_secs(1), ..without_probes() });
    drill.run("0 write 1000");
    let times: Vec<f64> = drill.sent_until(8_000.0).iter().map(|&(at, _)| at).collect();
    let gap = times[times.len() - 1] - times[times.len() - 2];
    assert!((990.0..1010.0).contains(&gap), "{gap:.1} ms");
}

#[test]
fn after_a_timeout_everything_lost_is_sent_in_slow_start() {
    Drill::client(Config { frto: false, ..without_probes() }).run(
        "0      write 6000
         0      > 1:6001
         220~5  > 1:1001
         220    ssthresh 5
         240    < ack 1001
         240    > 1001:3001
         260    < ack 3001
         260    > 3001:6001
         280    < ack 6001
         280    state 0",
    );
}

#[test]
fn a_spurious_timeout_is_undone_by_f_rto() {
    Drill::client(without_probes()).run(
        "0     write 10000
         0     > 1:10001
         220~5 > 1:1001
         220   state 4
         230   < ack 2001
         230   state 0
         230   cwnd 12",
    );
}

#[test]
fn newreno_repairs_one_hole_per_partial_ack() {
    // RFC 6582 3.2: a partial ACK retransmits the next hole at once. Like Linux, recovery is left only when something
    // above its end is acknowledged, lest late duplicates start another one.
    Drill::client(Config { sack: false, prr: false, tlp: false, ..config() }).run(
        "0    write 12000
         0    > 1:10001
         20   < ack 1001
         20   > 10001:12001
         20.1 < ack 1001
         20.2 < ack 1001
         20.3 < ack 1001
         20.3 > 1001:2001
         20.3 state 3
         20.3 ssthresh 5
         40   < ack 4001
         40   > 4001:5001
         40   state 3
         60   < ack 7001
         60   > 7001:8001
         80   < ack 12001
         81   write 1000
         81   > 12001:13001
         101  < ack 13001
         101  state 0
         101  ssthresh 5",
    );
}

#[test]
fn newreno_inflates_the_window_by_each_duplicate_ack() {
    // RFC 5681 3.2: ssthresh + 3, and one more per further duplicate: 10 in flight, ssthresh 5, new data once the
    // window exceeds 10
    let mut drill = Drill::client(Config { sack: false, prr: false, tlp: false, ..config() });
    drill.run(
        "0  write 10000
         0  > 1:10001
         10 < ack 1         // opens the window, no duplicate
         20 < ack 1
         20 < ack 1
         20 < ack 1
         20 > 1:1001
         20 ssthresh 5
         21 write 10000",
    );
    let before: usize = drill.sent_until(21.0).len();
    drill.run("22 < ack 1\n22 < ack 1\n22 < ack 1\n22 < ack 1\n22 < ack 1\n22 < ack 1");
    let after = drill.sent_until(22.0).len();
    assert!(before == 0 && (3..=4).contains(&after), "{before} new segments before, {after} after nine duplicates");
}

#[test]
fn two_duplicate_acks_let_new_segments_go() {
    // RFC 3042
    Drill::client(Config { rack: false, tlp: false, initial_cwnd: 4, ..config() }).run(
        "0    write 10000
         0    > 1:4001
         20   < ack 1 sack 1001:2001
         20   > 4001:5001
         22   < ack 1 sack 1001:3001
         22   > 5001:6001",
    );
}

#[test]
fn of_a_paced_end_that_is_reset_amid_losses_nothing_is_in_flight() {
    let config = Arc::new(Config::linux(Algorithm::named("bbr").expect("built in")));
    let mut end = Endpoint::listen(&config, 100, 5);
    let mut now = Time::from_secs(1);
    let mut out = Segment::default();
    let peer = |seq, ack, bits| Segment {
        seq,
        ack,
        flags: bits,
        window: 65_535,
        mss: 1460,
        sack_permitted: true,
        ..Segment::default()
    };
    end.on_segment(now, &peer(7, 0, flags::SYN));
    while end.poll_transmit(now, &mut out) {}
    now += Time::from_ms(20);
    end.on_segment(now, &peer(8, 101, flags::ACK));
    end.write_all(now, 100_000);
    let mut sent = Vec::new();
    while end.poll_transmit(now, &mut out) {
        sent.push(out);
    }
    now += Time::from_ms(20);
    let mut sack = peer(8, 101, flags::ACK);
    sack.sack_count = 1;
    sack.sack[0] = SackBlock { start: sent[3].seq, end: sent[9].end_seq() };
    end.on_segment(now, &sack);
    while end.poll_transmit(now, &mut out) {}
    end.on_segment(now, &peer(8, 101, flags::RST | flags::ACK));
    assert!(end.is_closed());
    assert_eq!(end.sock().packets_in_flight(), 0);
    assert!(end.poll_timeout() > now);
}

/// Two blocks that one ACK newly reports are no reordering, in whichever order the option has them: RACK waits for nothing. Linux 6.18
/// retransmits at once as well.
#[test]
fn new_sack_blocks_of_one_ack_count_in_the_order_of_the_data() {
    let mut drill = Drill::client(without_probes());
    drill.run(
        "0  write 10000
         0  > 1:10001
         20 < ack 1001 sack 5001:6001 sack 3001:4001
         20 quiet
         21 < ack 1001 sack 7001:8001 sack 5001:6001 sack 3001:4001
         21 > 1001:2001",
    );
}

/// `cong_control`'s flag has Linux's bits (`FLAG_*` of net/ipv4/tcp_input.c).
#[test]
fn what_an_ack_brought_is_said_as_linux_says_it() {
    const IN_ORDER: i32 = 0x1406;
    thread_local!(static SEEN: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) });
    extern "C" fn note(_sk: &mut TcpSock, _ack: u32, flag: i32, _rs: &RateSample) {
        SEEN.with_borrow_mut(|seen| seen.push(flag));
    }
    extern "C" fn window(sk: &mut TcpSock) -> u32 {
        sk.snd_cwnd
    }
    static OPS: CongestionOps =
        CongestionOps { cong_control: Some(note), ssthresh: Some(window), undo_cwnd: Some(window), ..EMPTY };
    static NOTING: LazyLock<Algorithm> = LazyLock::new(|| Algorithm::from_ops(&OPS).expect("complete"));
    let mut drill = Drill::client(Config { algorithm: &NOTING, ..config() });
    drill.run(
        "0    write 10000
         0    > 1:10001
         20   < ack 1001
         21   < ack 2001 sack 3001:4001
         22   < ack 2001 sack 3001:5001
         23   < ack 5001",
    );
    // 0x100: no header prediction, so that it may bring a timestamp (0x4000); 0x10: the SYN's; 0x20: new SACK blocks; then RACK's timer is
    // set instead of the RTO's (not 0x1000), and what arrives was sent before the disorder began (0x200)
    let expected = [0x1512, IN_ORDER, 0x4526, 0x4320, 0x5706];
    SEEN.with_borrow(|seen| assert_eq!(seen[..], expected, "{seen:x?}"));
}
