//! One behaviour at a time.

mod answers;
mod checkpoint;
mod ecn;
mod listing;

use crate::rig::{CLIENT_ISS, Rig, SERVER_ISS, STACK, Stack, config, rig, segment};
use enforcer::{Ending, Enforcer, Limits, Rule};
use std::sync::Arc;
use tcp::{Config, Ecn, PacingMode, SackBlock, Segment, flags};
use units::Time;

/// Payload of a full segment: 1460 less 12 of timestamps.
const MSS: u32 = 1448;
/// The first byte of each end.
const S: u32 = SERVER_ISS + 1;
const C: u32 = CLIENT_ISS + 1;

fn newreno() -> Rig {
    let mut rig = rig("newreno", Limits::default(), STACK);
    rig.open(0);
    rig
}

fn data(n: u32) -> Segment {
    Segment { tsval: 100_000 + n, ..segment(S + n * MSS, C, MSS as u16) }
}

/// The server sends full segments number `from` to `to`, excluded; returns what the client gets.
fn burst(rig: &mut Rig, from: u32, to: u32) -> Vec<Segment> {
    (from..to).flat_map(|n| rig.server(0, data(n))).collect()
}

fn ack(segments: u32) -> Segment {
    segment(C, S + segments * MSS, 0)
}

fn sacking(segments: u32, from: u32, to: u32) -> Segment {
    let mut ack = ack(segments);
    ack.sack[0] = SackBlock { start: S + from * MSS, end: S + to * MSS };
    ack.sack_count = 1;
    ack
}

#[test]
fn the_server_is_offered_the_initial_window() {
    for scale in 0..=14 {
        let mut rig = rig("newreno", Limits::default(), Stack { scale, ..STACK });
        let third = rig.open(0);
        // ten segments, rounded up to what can be written, within the client's 65536
        let unit = 1 << scale;
        assert_eq!(third.window, (10 * MSS).div_ceil(unit) * unit, "scale {scale}");
    }
}

#[test]
fn a_large_window_is_never_rounded_to_a_tiny_segment_more() {
    // Linux with TCP_NODELAY fills a window to its last byte: it would make a segment of each rounding
    let mut rig = newreno();
    let mut sent = 0;
    // slow start doubles ten segments
    for cwnd in [10, 20] {
        burst(&mut rig, sent, sent + cwnd);
        sent += cwnd;
        rig.now += Time::from_ms(10);
        let seen = rig.client(0, ack(sent)).expect("it acknowledges");
        // all of the algorithm's window, and most of one segment more
        assert_eq!(seen.window, (2 * cwnd + 1) * MSS / 128 * 128, "of {cwnd}");
    }
}

#[test]
fn a_window_is_never_rounded_to_less_than_the_algorithms() {
    for scale in 0..=14 {
        let mut rig = rig("newreno", Limits::default(), Stack { scale, ..STACK });
        rig.open(0);
        burst(&mut rig, 0, 10);
        rig.now += Time::from_ms(10);
        // from ten segments to twenty
        for n in 1..=10 {
            let seen = rig.client(0, ack(n)).expect("it acknowledges");
            let edge = seen.ack + seen.window - S;
            assert!(edge >= (10 + 2 * n) * MSS, "scale {scale}, {n} acknowledged: {edge}");
        }
    }
}

#[test]
fn a_gap_does_not_shrink_the_window() {
    let mut rig = rig("newreno", Limits::default(), Stack { scale: 14, ..STACK });
    rig.open_at(0, Time::from_ms(60));
    burst(&mut rig, 0, 10);
    rig.now += Time::from_ms(60);
    rig.client(0, ack(10)).expect("it acknowledges");
    burst(&mut rig, 10, 29);
    rig.now += Time::from_ms(80);
    let before = rig.client(0, ack(11)).expect("it acknowledges");
    assert_eq!(rig.client(0, ack(12)), None, "late, and more follow");
    // segment 29 was lost on the way here
    burst(&mut rig, 30, 31);
    for sack in [14, 15, 16] {
        let seen = rig.client(0, sacking(12, 13, sack)).expect("the server needs it");
        assert!(seen.ack + seen.window >= before.ack + before.window, "{seen:?}, {before:?}");
    }
}

#[test]
fn a_large_window_does_not_grow_by_itself() {
    let mut rig = newreno();
    burst(&mut rig, 0, 10);
    rig.now += Time::from_ms(10);
    // twenty segments
    let edge = |seen: Segment| seen.ack + seen.window;
    let first = rig.client(0, ack(10)).map(edge).expect("it acknowledges");
    // the client's data repeats an acknowledgment number
    let again = Segment { len: 10, ..ack(10) };
    for n in 0..10 {
        assert_eq!(rig.client(0, Segment { seq: C + 10 * n, ..again }).map(edge), Some(first));
    }
}

#[test]
fn a_reordered_older_ack_does_not_shrink_the_window() {
    let mut rig = newreno();
    burst(&mut rig, 0, 2);
    rig.client(0, ack(2)).expect("it acknowledges");
    // from before its buffer had grown
    rig.client(0, Segment { window: 1448, ..ack(2) });
    assert_eq!(burst(&mut rig, 2, 12).len(), 10);
    assert_eq!(rig.enforcer.counters().beyond_window_held, 0);
}

#[test]
fn a_window_smaller_than_the_algorithms_is_left_alone() {
    let mut rig = newreno();
    let small = Segment { window: 4096, ..ack(0) };
    assert_eq!(rig.client(0, Segment { len: 10, ..small }).map(|s| s.window), Some(4096));
}

#[test]
fn the_right_edge_never_moves_back() {
    let mut rig = newreno();
    burst(&mut rig, 0, 10);
    let first = rig.client(0, ack(2)).expect("it acknowledges");
    // slow start: 12 segments from segment 2 on
    assert_eq!(first.window, (12 * MSS).div_ceil(128) * 128);
    // segments 3 to 9 arrive, 2 is lost: the window falls to a half, the edge stays
    rig.now += Time::from_ms(10);
    for to in 4..=10 {
        rig.client(0, sacking(2, 3, to));
    }
    rig.now += Time::from_ms(10);
    let later = rig.client(0, ack(10)).expect("it acknowledges");
    assert!(later.ack + later.window >= first.ack + first.window, "{later:?} {first:?}");
}

#[test]
fn a_loss_is_repaired_here_with_the_servers_timestamp_and_hidden_from_it() {
    let mut rig = newreno();
    assert_eq!(burst(&mut rig, 0, 10).len(), 10);
    rig.now += Time::from_ms(10);
    let mut seen = Vec::new();
    let mut again = Vec::new();
    for to in 2..=6 {
        seen.extend(rig.client(0, sacking(0, 1, to)));
        again.extend(rig.leaves());
    }
    assert_eq!(again.iter().map(|s| (s.seq, s.len, s.tsval)).collect::<Vec<_>>(), [(S, 1448, 100_000)]);
    assert!(seen.iter().all(|s| s.sack_count == 0), "no SACK reaches the server: {seen:?}");
    let edges: Vec<u32> = seen.iter().map(|s| s.ack + s.window).collect();
    assert!(edges.windows(2).all(|pair| pair[0] < pair[1]), "each is a window update, no duplicate: {edges:?}");
    let counters = *rig.enforcer.counters();
    assert_eq!((counters.retransmitted, counters.hidden + seen.len() as u64), (1, 5));
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    let mut rig = rig("newreno", Limits::default(), Stack { ecn: true, ..STACK });
    rig.open(0);
    let able = Segment { ecn: Ecn::Ect0, ..data(0) };
    assert_eq!(rig.server(0, able).iter().map(|s| s.ecn).collect::<Vec<_>>(), [Ecn::Ect0]);
    let again = rig.wait(Time::from_secs(1));
    // RFC 3168 6.1.5
    assert!(!again.is_empty() && again.iter().all(|s| s.ecn == Ecn::NotEct), "{again:?}");
}

#[test]
fn a_servers_smaller_path_mtu_is_adopted() {
    const SMALL: u32 = 1000;
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    // no packet of 1448 bytes gets through; of those of 1000, the last is a remainder
    let (end, mut got) = (4 * MSS, Vec::new());
    for from in (0..end).step_by(SMALL as usize) {
        let len = SMALL.min(end - from);
        got.extend(rig.server(0, Segment { tsval: 100_003, ..segment(S + from, C, len as u16) }));
    }
    assert!(got.iter().all(|s| u32::from(s.len) <= SMALL), "{got:?}");
    let there: u32 = got.iter().map(|s| u32::from(s.len)).sum();
    assert!(there >= end - MSS, "all but an ambiguous remainder leaves at once: {there} of {end}");
    // and retransmissions are small
    let again = rig.wait(Time::from_secs(2));
    assert!(again.iter().any(|s| s.seq == S) && again.iter().all(|s| u32::from(s.len) <= SMALL), "{again:?}");
    assert_eq!(rig.client(0, ack(4)).map(|s| s.ack), Some(S + end));
    goes_on(&mut rig, 4);
}

#[test]
fn packets_that_took_another_path_for_a_while_are_not_awaited() {
    // the client acknowledges first; or the server sends, and a keep-alive asks the client
    for client_first in [true, false] {
        let mut rig = newreno();
        burst(&mut rig, 0, 4);
        rig.client(0, ack(4));
        let far = 1000;
        if client_first {
            let beyond = Segment { window: 1 << 20, ..ack(far) };
            assert_eq!(rig.client(0, beyond), Some(beyond), "for the server to judge");
        } else {
            assert_eq!(burst(&mut rig, far, far + 1), [], "it might cheat");
            rig.wait(Time::from_secs(1) + Time::from_us(1));
            let asked: Vec<_> = burst(&mut rig, far, far + 1).iter().map(|s| (s.seq, s.len)).collect();
            assert_eq!(asked, [(S + 4 * MSS - 1, 0)], "a keep-alive");
            let answer = segment(C, S + far * MSS, 0);
            assert_eq!(rig.client(0, answer), Some(answer));
        }
        assert_eq!(rig.enforcer.flows(), 1, "one end alone is not enough");
        assert_eq!(burst(&mut rig, far, far + 2), [data(far), data(far + 1)]);
        assert_eq!((rig.enforcer.flows(), rig.enforcer.counters().flows_astray), (0, 1));
    }
}

#[test]
fn a_client_that_returns_to_sequence_stays_enforced() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    rig.client(0, ack(1000));
    rig.client(0, ack(2));
    assert_eq!(burst(&mut rig, 1000, 1002), []);
    assert_eq!((rig.enforcer.flows(), rig.enforcer.counters().beyond_window_dropped), (1, 2));
}

#[test]
fn the_servers_retransmission_is_absorbed_and_the_next_ack_passes() {
    let mut rig = newreno();
    burst(&mut rig, 0, 3);
    assert_eq!(rig.server(0, data(0)), []);
    let counters = *rig.enforcer.counters();
    assert_eq!((counters.absorbed, counters.absorbed_oldest, counters.absorbed_last), (1, 1, 0));
    let duplicate = Segment { window: 14_592, ..ack(0) };
    assert!(rig.client(0, duplicate).is_some(), "the server waits for an answer");
    assert_eq!(rig.client(0, duplicate), None, "once");
    // beyond the buffered data, its data is new
    let longer = Segment { len: 2 * MSS as u16, ..data(2) };
    let sent: Vec<_> = rig.server(0, longer).iter().map(|s| (s.seq, s.len)).collect();
    assert_eq!(sent, [(S + 3 * MSS, 1448)]);
}

#[test]
fn a_sender_that_ignores_its_window_is_held_then_dropped() {
    let mut rig = newreno();
    let got = burst(&mut rig, 0, 200);
    assert_eq!(got.len(), 10, "ten leave");
    let counters = *rig.enforcer.counters();
    // 14,592 offered and 65,536 more: 55 segments are accepted, and the window has room for ten
    assert_eq!((counters.data_taken, counters.beyond_window_dropped), (55, 145));
    assert_eq!(rig.client(0, ack(2)).map(|s| s.ack), Some(S + 2 * MSS));
    assert_eq!(rig.leaves().len(), 4, "slow start sends two for one");
}

#[test]
fn unmatched_flows_and_flows_that_began_before_pass_untouched() {
    let mut rig = rig("bbr", Limits::default(), STACK);
    let strange = segment(77, 88, 1448);
    assert_eq!(rig.server(3, strange), [strange]);
    let reply = Segment { sack_count: 1, ..segment(88, 77, 0) };
    assert_eq!(rig.client(3, reply), Some(reply));
    assert_eq!(rig.enforcer.counters().passed_unknown, 2);
    assert_eq!(rig.enforcer.flows(), 0);
}

#[test]
fn a_connection_that_both_ends_open_passes_untouched() {
    let mut rig = rig("bbr", Limits::default(), STACK);
    let (theirs, ours) = (rig.syn(CLIENT_ISS), rig.syn(SERVER_ISS));
    rig.client(0, theirs);
    rig.server(0, ours);
    let answer = rig.answer();
    assert_eq!(rig.server(0, answer), [answer]);
    let third = segment(C, S, 0);
    assert_eq!(rig.client(0, third), Some(third));
    assert_eq!(rig.enforcer.flows(), 0);
}

#[test]
fn a_syn_repeated_after_its_answer_does_not_undo_it() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    let (syn, answer) = (rig.syn(CLIENT_ISS), rig.answer());
    rig.client(0, syn);
    rig.server(0, answer);
    // retransmitted before the answer had arrived
    rig.client(0, syn);
    rig.client(0, segment(C, S, 0));
    assert_eq!(rig.enforcer.flows(), 1);
    assert_eq!(burst(&mut rig, 0, 3).len(), 3);
    rig.server(0, answer);
    assert_eq!(rig.client(0, ack(3)).map(|s| s.ack), Some(S + 3 * MSS));
}

#[test]
fn a_flow_whose_data_has_passed_untouched_stays_untouched() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    let (syn, answer) = (rig.syn(CLIENT_ISS), rig.answer());
    // this packet of the handshake arrives only after the server's data
    rig.client(0, syn);
    burst(&mut rig, 0, 3);
    rig.server(0, answer);
    rig.client(0, segment(C, S, 0));
    assert_eq!((rig.client(0, ack(3)), rig.enforcer.flows()), (Some(ack(3)), 0));
}

#[test]
fn ecn_echoes_are_removed_and_answered() {
    let mut rig = rig("newreno", Limits::default(), Stack { ecn: true, ..STACK });
    rig.open(0);
    burst(&mut rig, 0, 4);
    rig.now += Time::from_ms(10);
    let echo = Segment { flags: flags::ACK | flags::ECE, ..ack(2) };
    let seen = rig.client(0, echo).expect("it acknowledges");
    assert_eq!(seen.flags, flags::ACK);
    rig.client(0, ack(4));
    let next = burst(&mut rig, 4, 6);
    assert_eq!(next[0].flags & flags::CWR, flags::CWR, "CWR confirms the reduction to the client");
    assert_eq!(next[1].flags & flags::CWR, 0, "once");
}

#[test]
fn only_an_exact_reset_ends_a_flow() {
    let mut rig = newreno();
    for seq in [C - 1, C + 1, C + 30_000, C + 70_000] {
        let reset = Segment { flags: flags::RST, ..segment(seq, 0, 0) };
        assert_eq!(rig.client(0, reset), Some(reset), "the host decides");
        assert_eq!(rig.enforcer.flows(), 1);
    }
    rig.client(0, Segment { flags: flags::RST, ..segment(C, 0, 0) });
    assert_eq!(rig.enforcer.flows(), 0);
    assert_eq!(rig.enforcer.poll_record().and_then(|record| record.ending), Some(Ending::Reset));
}

#[test]
fn a_client_that_resets_before_its_request_is_acknowledged_is_soon_forgotten() {
    let reset = |seq: u32| Segment { flags: flags::RST, ..segment(seq, 0, 0) };
    let flows_after = |last: &[Segment]| {
        let mut rig = newreno();
        rig.client(0, segment(C, S, 10));
        for &segment in last {
            rig.client(0, segment);
        }
        // it has crossed the reset
        rig.now += Time::from_ms(1);
        rig.server(0, segment(S, C + 10, 0));
        rig.wait(Time::from_secs(130));
        (0..20).for_each(|_| {
            rig.client(7, segment(1, 1, 0));
        });
        rig.enforcer.flows()
    };
    assert_eq!(flows_after(&[reset(C + 10)]), 0);
    assert_eq!(flows_after(&[reset(C + 10), segment(C + 10, S, 0)]), 1, "a guess: the client continues");
    assert_eq!(flows_after(&[reset(C + 70_000)]), 1, "outside of the window");
}

#[test]
fn a_servers_reset_follows_its_delayed_data() {
    let mut rig = newreno();
    burst(&mut rig, 0, 14);
    let reset = Segment { flags: flags::RST, ..segment(S + 14 * MSS, 0, 0) };
    let got: Vec<u32> = rig.server(0, reset).iter().map(|s| s.seq).collect();
    assert_eq!(got, [10, 11, 12, 13, 14].map(|n| S + n * MSS), "delayed data is sent first");
    assert_eq!((rig.enforcer.flows(), rig.enforcer.buffered_bytes()), (0, 0));
}

#[test]
fn spoofed_packets_change_nothing() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    let state = |rig: &Rig| (rig.enforcer.flows(), rig.enforcer.buffered_bytes());
    let before = state(&rig);
    let blind = [
        // acknowledges data that was never sent
        segment(C, S + 5 * MSS, 0),
        segment(C, S + 0x4000_0000, 0),
        // in a window that the server never offered
        Segment { ack: S + 2 * MSS, ..segment(C + 0x2000_0000, 0, 0) },
        Segment { ack: S + 2 * MSS, ..segment(C - 2000, 0, 100) },
        Segment { flags: flags::SYN, ..segment(C + 7, 0, 0) },
        Segment { flags: flags::FIN | flags::ACK, ..segment(C + 0x1000_0000, S + 4 * MSS, 0) },
    ];
    let far = segment(S + 0x1000_0000, C, 1000);
    assert_eq!(rig.server(0, far), [], "data far from the window changes nothing");
    assert_eq!(state(&rig), before);
    for stranger in blind {
        rig.client(0, stranger);
        assert_eq!(state(&rig), before, "{stranger:?}");
    }
    assert!(rig.client(0, ack(4)).is_some_and(|s| s.ack == S + 4 * MSS), "the flow continues");
    assert_eq!(rig.enforcer.buffered_bytes(), 0);
}

/// The client acknowledges what it has, and the server what that carries: the flow is in sequence.
fn goes_on(rig: &mut Rig, from: u32) {
    let got: Vec<_> = burst(rig, from, from + 2).iter().map(|s| (s.seq, s.tsval)).collect();
    assert_eq!(got, [from, from + 1].map(|n| (S + n * MSS, 100_000 + n)));
    let seen = rig.client(0, ack(from + 2)).expect("it acknowledges");
    assert_eq!((seen.ack, rig.enforcer.buffered_bytes()), (S + (from + 2) * MSS, 0));
}

#[test]
fn packets_spoofed_as_the_servers_change_nothing() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    rig.client(0, ack(2));
    let newest = 0x4000_0000;
    for seq in [S.wrapping_sub(0x4000_0000), S - 4000, S + 0x0010_0000, S + 0x4000_0000] {
        // acknowledges data that the client never sent, and would make its timestamps old
        let ack = Segment { tsval: newest, window: 0, ..segment(seq, C + 0x1000_0000, 0) };
        assert_eq!(rig.server(0, ack), [ack], "for the client to judge");
        rig.server(0, Segment { len: 1448, ..ack });
        let reset = Segment { flags: flags::RST, ..ack };
        assert_eq!(rig.server(0, reset), [reset]);
    }
    // a reset within the data in flight is a guess too
    let reset = Segment { flags: flags::RST, ..segment(S + 3 * MSS + 7, 0, 0) };
    assert_eq!((rig.server(0, reset), rig.enforcer.flows()), (vec![reset], 1));
    rig.client(0, ack(4));
    goes_on(&mut rig, 4);
    // retransmissions have the server's timestamp, acknowledgment number and window, not the spoofed ones
    burst(&mut rig, 6, 7);
    let again = rig.wait(Time::from_secs(1));
    let said: Vec<_> = again.iter().map(|s| (s.tsval, s.ack, s.window)).collect();
    assert!(!said.is_empty() && said.iter().all(|said| *said == (100_006, C, 65_536)), "{said:?}");
}

#[test]
fn a_spoofed_server_ack_of_unsent_data_changes_nothing() {
    let mut rig = newreno();
    burst(&mut rig, 0, 1);
    for ack in [C.wrapping_add(0x1000_0000), C.wrapping_sub(0x1000_0000)] {
        let bare = segment(S + 3000, ack, 0);
        assert_eq!(rig.server(0, bare), [bare], "for the client to judge");
        let data = Segment { ack, ..data(1) };
        assert_eq!(rig.server(0, data), [data], "with its own acknowledgment");
    }
    rig.client(0, ack(1));
    goes_on(&mut rig, 1);
}

#[test]
fn packets_spoofed_as_the_clients_do_not_change_the_window() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    let outside = Segment { window: 0, ..segment(C + 0x1000_0000, S + MSS, 0) };
    let seen = rig.client(0, outside).expect("for the server to judge");
    assert_eq!((seen.window, rig.enforcer.counters().outside_window), (0, 1));
    // the whole window may still be sent, and is accepted
    assert_eq!(burst(&mut rig, 4, 10).len(), 6);
    let counters = *rig.enforcer.counters();
    assert_eq!((counters.beyond_window_held, counters.beyond_window_dropped), (0, 0));
    rig.client(0, ack(10));
    goes_on(&mut rig, 10);
}

#[test]
fn the_server_repairs_a_gap_before_the_enforcer() {
    let mut rig = newreno();
    burst(&mut rig, 0, 2);
    // segment 2 was lost on the way here
    let got: Vec<u32> = burst(&mut rig, 3, 6).iter().map(|s| s.seq).collect();
    assert_eq!(got, [3, 4, 5].map(|n| S + n * MSS), "arrived data is forwarded");
    let seen = rig.client(0, sacking(2, 3, 4)).expect("the server needs it");
    assert_eq!(seen.sack_count, 1);
    let seen = rig.client(0, sacking(2, 3, 5)).expect("and this");
    assert_eq!(seen.ack + seen.window, rig.client(0, sacking(2, 3, 6)).map_or(0, |s| s.ack + s.window), "duplicates");
    let repaired = Segment { tsval: 100_500, ..data(2) };
    assert_eq!(rig.server(0, repaired).iter().map(|s| s.seq).collect::<Vec<_>>(), [S + 2 * MSS]);
    assert_eq!((rig.enforcer.counters().gaps, rig.enforcer.counters().gaps_filled), (1, 1));
    // the client's newest timestamp is 100500 from now on: retransmissions must not be older (RFC 7323 5)
    rig.client(0, ack(4));
    let again = rig.wait(Time::from_secs(2));
    assert!(!again.is_empty() && again.iter().all(|s| s.tsval == 100_500), "{again:?}");
}

#[test]
fn no_more_of_a_gap_is_forwarded_than_is_known_to_be_sent() {
    const LEN: u32 = 1000;
    let mut rig = newreno();
    let small = |n: u32| segment(S + n * LEN, C, LEN as u16);
    (0..7).for_each(|n| assert_eq!(rig.server(0, small(n)).len(), 1));
    // 7 to 11 were lost on the way here, and are five packets; the window of ten leaves room for three, of full size for all that is known
    assert_eq!(rig.server(0, small(12)), []);
    let got: Vec<Segment> = (7..12).flat_map(|n| rig.server(0, small(n))).collect();
    let end = got.iter().map(Segment::end_seq).max().expect("awaited data is forwarded");
    assert!(end > S + 10 * LEN && end < S + 12 * LEN, "some of it waits: {got:?}");
    assert_eq!(
        rig.client(0, segment(C, end, 0)).map(|seen| seen.ack),
        Some(end),
        "it may acknowledge what it was sent"
    );
    let got = rig.leaves();
    assert_eq!(got.first().map(|s| s.seq), Some(end));
    assert_eq!(got.last().map(Segment::end_seq), Some(S + 13 * LEN));
    assert_eq!(rig.client(0, segment(C, S + 13 * LEN, 0)).map(|seen| seen.ack), Some(S + 13 * LEN));
}

#[test]
fn data_after_a_gap_that_was_filled_early_has_no_older_timestamp() {
    let mut rig = newreno();
    burst(&mut rig, 0, 10);
    rig.client(0, ack(2));
    // the client is silent: a timeout leaves less of the window than was offered
    rig.wait(Time::from_secs(1));
    // number 10 is lost on the way here; what follows waits, and then number 10 comes with a newer timestamp
    assert_eq!(burst(&mut rig, 11, 14), []);
    assert_eq!(rig.server(0, Segment { tsval: 100_500, ..data(10) }), []);
    rig.client(0, ack(10));
    let got: Vec<_> = rig.leaves().iter().map(|s| (s.seq, s.tsval)).collect();
    assert_eq!(
        got,
        [10, 11, 12, 13].map(|n| (S + n * MSS, 100_500)),
        "the client would refuse older ones (RFC 7323 5)"
    );
}

#[test]
fn data_that_the_client_would_refuse_as_old_gets_a_newer_timestamp() {
    for (echo, tsval) in [(100_500, 100_500), (200_000, 100_001)] {
        let mut rig = newreno();
        // number 0 was lost on the way here, and came again after number 1 was sent, which is lost behind
        rig.server(0, Segment { tsval: 100_500, ..data(0) });
        rig.server(0, data(1));
        rig.client(0, Segment { tsecr: echo, ..ack(1) });
        let again: Vec<_> = rig.wait(Time::from_secs(1)).iter().map(|s| (s.seq, s.tsval)).collect();
        assert!(!again.is_empty() && again.iter().all(|one| *one == (S + MSS, tsval)), "{again:?}");
    }
}

#[test]
fn enough_is_sent_after_a_gap_for_duplicate_acks() {
    let mut rig = newreno();
    burst(&mut rig, 0, 1);
    // the client does not answer: a timeout leaves a window of one
    rig.wait(Time::from_secs(1));
    // number 1 is lost on the way here
    assert_eq!(burst(&mut rig, 2, 9), []);
    rig.client(0, ack(1));
    let got: Vec<u32> = rig.leaves().iter().map(|s| s.seq).collect();
    assert_eq!(got, [2, 3, 4, 5].map(|n| S + n * MSS), "a window of two would leave only the server's timeout");
}

#[test]
fn pacing_delays_nothing_for_longer_than_ten_seconds() {
    let mut rig = rig("newreno", Limits::default(), STACK);
    let crawling = Config { max_pacing_rate: 1, pacing: PacingMode::On, ..Config::clone(&config("newreno")) };
    rig.enforcer.set_rules(rig.now, vec![Rule::all(&Arc::new(crawling))]);
    rig.open(0);
    assert_eq!(burst(&mut rig, 0, 10).len(), 10, "the first are not paced");
    rig.client(0, ack(10));
    let mut sent = 10 + burst(&mut rig, 10, 20).len() as u32;
    while sent < 20 {
        rig.client(0, ack(sent));
        let next: Vec<u32> = rig.wait(Time::from_secs(10)).iter().map(|s| s.seq).collect();
        assert_eq!(next.first(), Some(&(S + sent * MSS)), "the rate is one byte a second");
        sent += next.len() as u32;
    }
}

#[test]
fn duplicates_are_reported_to_the_server_once_acknowledged() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    // a probe of its tail, then its timeout: neither is a loss
    rig.server(0, data(3));
    rig.server(0, data(0));
    let counters = *rig.enforcer.counters();
    assert_eq!((counters.absorbed, counters.absorbed_oldest, counters.absorbed_last), (2, 1, 1));
    let d_sack = |seen: Option<Segment>| seen.map(|s| s.sack[..usize::from(s.sack_count)].to_vec());
    let block = |n: u32| SackBlock { start: S + n * MSS, end: S + (n + 1) * MSS };
    assert_eq!(d_sack(rig.client(0, ack(0))), Some(vec![]), "not before the client has it (RFC 2883 4)");
    assert_eq!(d_sack(rig.client(0, ack(2))), Some(vec![block(0)]));
    let with_data = Segment { len: 10, ..ack(4) };
    assert_eq!(d_sack(rig.client(0, with_data)), Some(vec![]), "a full packet has no room");
    assert_eq!(rig.enforcer.counters().undos, 1);
    // without SACK nothing changes
    let mut rig = self::rig("newreno", Limits::default(), Stack { sack: false, ..STACK });
    rig.open(0);
    burst(&mut rig, 0, 2);
    rig.server(0, data(1));
    assert_eq!(d_sack(rig.client(0, ack(2))), Some(vec![]));
}

#[test]
fn a_server_that_missed_an_ack_gets_another() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    assert!(rig.client(0, ack(2)).is_some(), "it passes, and is lost");
    assert_eq!(rig.server(0, data(0)).len(), 1, "the server's timeout");
    assert_eq!((rig.enforcer.counters().others_forwarded, rig.enforcer.counters().absorbed), (1, 0));
    let answer = rig.client(0, ack(2)).expect("a duplicate, but what the server waits for");
    assert_eq!((answer.sack_count, answer.sack[0]), (1, SackBlock { start: S, end: S + MSS }), "there was no need");
    assert!(rig.client(0, ack(2)).is_none(), "another one does not pass");
}

#[test]
fn fins_of_both_ends_end_a_flow() {
    let mut rig = newreno();
    let fin = Segment { flags: flags::FIN | flags::ACK, ..data(0) };
    assert_eq!(rig.server(0, fin).iter().map(|s| s.flags & flags::FIN).collect::<Vec<_>>(), [flags::FIN]);
    rig.now += Time::from_ms(10);
    rig.client(0, segment(C, S + MSS + 1, 0));
    assert_eq!(rig.enforcer.flows(), 1, "half closed");
    rig.client(0, Segment { flags: flags::FIN | flags::ACK, ..segment(C, S + MSS + 1, 5) });
    rig.server(0, segment(S + MSS + 1, C + 6, 0));
    assert_eq!(rig.enforcer.flows(), 0);
    let record = rig.enforcer.poll_record().expect("it describes the flow");
    assert_eq!((record.ending, record.bytes_acked, record.algorithm.as_str()), (Some(Ending::Closed), 1449, "newreno"));
    assert_eq!(record.ended.saturating_sub(record.began), Time::from_ms(10));
}

#[test]
fn the_same_ends_may_open_a_new_connection() {
    let mut rig = newreno();
    burst(&mut rig, 0, 13);
    let (syn, answer) = anew(&rig);
    rig.client(0, syn);
    rig.server(0, answer);
    rig.client(0, segment(syn.seq + 1, answer.seq + 1, 0));
    assert_eq!((rig.enforcer.flows(), rig.enforcer.buffered_bytes()), (1, 0));
    assert_eq!((rig.enforcer.counters().flows_replaced, rig.enforcer.counters().flows_opened), (1, 2));
    let first = segment(answer.seq + 1, syn.seq + 1, 1448);
    assert_eq!(rig.server(0, first).iter().map(|s| s.seq).collect::<Vec<_>>(), [first.seq]);
}

/// The client's SYN of another connection, and the server's answer.
fn anew(rig: &Rig) -> (Segment, Segment) {
    let syn = rig.syn(CLIENT_ISS + 0x1000_0000);
    (syn, Segment { seq: SERVER_ISS + 0x2000_0000, ack: syn.seq + 1, ..rig.answer() })
}

/// The rules are for connections with the code point of those that are open, and no longer for what comes.
fn only_for_open_ones(rig: &mut Rig) {
    rig.enforcer.set_rules(rig.now, vec![Rule { dscp: Some(0), ..Rule::all(&config("newreno")) }]);
    rig.dscp = 46;
}

#[test]
fn an_unenforceable_connection_of_the_same_ends_passes_untouched() {
    let mut rig = newreno();
    // the client is gone and comes back, and no rule is for it any more
    burst(&mut rig, 0, 13);
    only_for_open_ones(&mut rig);
    let (syn, answer) = anew(&rig);
    rig.client(0, syn);
    rig.server(0, answer);
    let (request, reply) = (segment(syn.seq + 1, answer.seq + 1, 10), segment(answer.seq + 1, syn.seq + 11, 1448));
    assert_eq!(rig.client(0, request), Some(request));
    assert_eq!(rig.server(0, reply), [reply]);
    let ack = segment(syn.seq + 11, answer.seq + 1449, 0);
    assert_eq!((rig.client(0, ack), rig.enforcer.flows()), (Some(ack), 0));
}

#[test]
fn another_connection_whose_syn_carries_data_ends_the_one_before() {
    // of a hundred bytes none are acknowledged with the SYN, or all; the third answers no SYN that has passed
    for (acked, flows) in [(1, 0), (101, 0), (5000, 1)] {
        let mut rig = newreno();
        burst(&mut rig, 0, 13);
        only_for_open_ones(&mut rig);
        let (syn, answer) = anew(&rig);
        rig.client(0, Segment { len: 100, ..syn });
        rig.server(0, Segment { ack: syn.seq + acked, ..answer });
        assert_eq!(rig.enforcer.flows(), flows, "{acked}");
    }
}

#[test]
fn a_spoofed_syn_neither_ends_nor_slows_a_flow() {
    let mut rig = newreno();
    burst(&mut rig, 0, 10);
    let (syn, answer) = anew(&rig);
    let begun = rig.answer();
    let ours = Segment { ack: SERVER_ISS + 0x2000_0001, flags: flags::SYN | flags::ACK, ..syn };
    // a SYN, which the server answers by no SYN; the true answer again; an answer to no SYN
    rig.client(0, syn);
    rig.server(0, begun);
    rig.client(0, ours);
    assert!(rig.client(0, ack(10)).is_some_and(|s| s.ack == S + 10 * MSS));
    rig.server(0, begun);
    goes_on(&mut rig, 10);
    let mut other = newreno();
    other.server(0, answer);
    other.server(0, Segment { ack: 0, flags: flags::SYN, ..answer });
    goes_on(&mut other, 0);
    for counters in [rig.enforcer.counters(), other.enforcer.counters()] {
        assert_eq!((counters.flows_replaced, counters.passed_unknown), (0, 0));
    }
    // where the server opens, its SYN and the client's answer show it
    other.client(0, ours);
    assert_eq!(other.enforcer.counters().flows_replaced, 1);
}

#[test]
fn keep_alives_and_probes_of_a_closed_window_pass_and_so_do_their_answers() {
    let mut rig = newreno();
    burst(&mut rig, 0, 1);
    let closed = Segment { window: 0, ..ack(1) };
    assert_eq!(rig.client(0, closed), Some(closed));
    let probe = segment(S + MSS - 1, C, 0);
    assert_eq!(rig.server(0, probe), [probe]);
    assert_eq!(rig.client(0, closed), Some(closed));
    // of a stack that probes with a byte
    let byte = segment(S + MSS, C, 1);
    assert_eq!(rig.server(0, byte).iter().map(|s| s.seq).collect::<Vec<_>>(), [S + MSS]);
    assert_eq!(rig.client(0, closed), None, "refused, nothing changed");
    assert_eq!(rig.server(0, byte), [], "it is retransmitted from here");
    assert_eq!(rig.client(0, closed), Some(closed));
    let open = ack(1);
    assert!(rig.client(0, open).is_some_and(|s| s.window > 0));
    assert_eq!(rig.leaves().iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(), [(S + MSS, 1)]);
}

#[test]
fn a_flow_without_packets_is_forgotten() {
    let mut rig = newreno();
    rig.wait(Limits::default().idle + Time::from_secs(8));
    // other packets advance the search
    for _ in 0..40 {
        rig.client(7, segment(1, 1, 0));
    }
    assert_eq!(rig.enforcer.flows(), 0);
    assert_eq!(rig.enforcer.poll_record().and_then(|record| record.ending), Some(Ending::Idle));
}

#[test]
fn new_rules_apply_to_open_flows_too() {
    let mut rig = newreno();
    burst(&mut rig, 0, 12);
    let shown =
        |rig: &Rig| rig.enforcer.open_records(rig.now).map(|flow| (flow.algorithm, flow.cwnd)).collect::<Vec<_>>();
    assert_eq!(shown(&rig), [("newreno".to_string(), 10)]);
    let wide = Arc::new(Config { cwnd_clamp: 11, ..Config::clone(&config("cubic")) });
    rig.enforcer.set_rules(rig.now, vec![Rule::all(&wide)]);
    assert_eq!(shown(&rig), [("cubic".to_string(), 10)]);
    rig.now += Time::from_ms(10);
    rig.client(0, ack(10));
    assert_eq!(shown(&rig), [("cubic".to_string(), 11)], "its other settings hold, too");
}

#[test]
fn a_flow_without_a_matching_rule_any_more_passes_untouched() {
    let mut rig = newreno();
    assert_eq!(burst(&mut rig, 0, 12).len(), 10, "the first ten segments pass");
    rig.enforcer.set_rules(rig.now, Vec::new());
    let left: Vec<u32> = rig.leaves().iter().map(|s| s.seq).collect();
    assert_eq!(left, [S + 10 * MSS, S + 11 * MSS], "what was delayed");
    let more = segment(S + 12 * MSS, C, MSS as u16);
    assert_eq!((rig.server(0, more), rig.client(0, ack(9))), (vec![more], Some(ack(9))));
    rig.open(1);
    let counters = rig.enforcer.counters();
    assert_eq!((rig.enforcer.flows(), counters.flows_astray, counters.passed_by_rule), (0, 1, 1));
    assert!(Enforcer::<enforcer::Simulated>::new(Limits::default(), Vec::new(), 1).poll_timeout() == Time::NEVER);
}

#[test]
fn the_rule_is_chosen_by_the_code_point_of_the_syn() {
    let mut rig = newreno();
    rig.enforcer.set_rules(rig.now, vec![Rule { dscp: Some(46), ..Rule::all(&config("cubic")) }]);
    // set by the client, and only on its SYN
    for (n, [syn, rest]) in [(1, [46, 0]), (2, [0, 46])] {
        let (first, answer) = (rig.syn(CLIENT_ISS), rig.answer());
        rig.dscp = syn;
        rig.client(n, first);
        rig.dscp = rest;
        rig.server(n, answer);
        rig.client(n, segment(C, S, 0));
    }
    let shown: Vec<String> = rig.enforcer.open_records(rig.now).map(|flow| flow.algorithm).collect();
    assert_eq!(shown, ["cubic"]);
}
