//! Which ACKs a server gets: few late ones, and no duplicate for a probe.

use super::{MSS, S, ack, burst, data, newreno, sacking};
use crate::rig::{Rig, STACK, rig};
use enforcer::Limits;
use tcp::Segment;
use units::Time;

/// The server sends `count` segments at once, and the client acknowledges each after `rtt`; returns the number of ACKs that the server
/// does not get.
fn round(rig: &mut Rig, sent: &mut u32, count: u32, rtt: Time) -> usize {
    assert_eq!(burst(rig, *sent, *sent + count).len(), count as usize, "the window takes them");
    rig.now += rtt;
    let acks = *sent + 1..=*sent + count;
    *sent += count;
    acks.filter(|&segments| rig.client(0, ack(segments)).is_none()).count()
}

/// A server in slow start, after three RTTs of this length.
fn grown_at(rtt: Time) -> (Rig, u32) {
    let (mut rig, mut sent) = (rig("newreno", Limits::default(), STACK), 0);
    rig.open_at(0, rtt);
    for count in [10, 20, 30] {
        assert_eq!(round(&mut rig, &mut sent, count, rtt), 0, "all ACKs in time pass");
    }
    (rig, sent)
}

fn grown() -> (Rig, u32) {
    grown_at(Time::from_ms(10))
}

#[test]
fn a_server_that_grows_gets_few_late_acknowledgments_but_the_last_ones() {
    let (mut rig, mut sent) = grown();
    // the first of a round, and those with fewer than 16 packets in flight
    assert_eq!(round(&mut rig, &mut sent, 30, Time::from_ms(20)), 13);
    assert_eq!(round(&mut rig, &mut sent, 45, Time::from_ms(20)), 28);
    assert_eq!(rig.enforcer.counters().thinned, 13 + 28);
}

#[test]
fn a_server_that_grows_less_with_fewer_acks_gets_all() {
    let (mut rig, mut sent) = grown();
    assert_eq!(round(&mut rig, &mut sent, 30, Time::from_ms(20)), 13);
    for _ in 0..3 {
        assert_eq!(round(&mut rig, &mut sent, 30, Time::from_ms(20)), 0);
    }
}

#[test]
fn late_acks_of_a_round_are_spaced() {
    let (mut rig, mut sent) = grown();
    burst(&mut rig, sent, sent + 60);
    rig.now += Time::from_ms(20);
    // 44 in 44 ms, each a millisecond later than the one before: one in a quarter of a round trip of 20 to 64 ms, six at most
    let got = (1..=44).filter(|n| {
        rig.now += Time::from_ms(1);
        rig.client(0, ack(sent + n)).is_some()
    });
    let got: Vec<u32> = got.collect();
    println!("{got:?}");
    assert!((4..=6).contains(&got.len()) && got[0] == 1, "{got:?}");
    sent += 60;
    assert!(rig.client(0, ack(sent)).is_some(), "the very last one passes");
}

#[test]
fn late_acks_after_one_in_time_are_spaced() {
    let (mut rig, sent) = grown();
    burst(&mut rig, sent, sent + 45);
    rig.now += Time::from_ms(10);
    assert!(rig.client(0, ack(sent + 1)).is_some());
    rig.now += Time::from_ms(10);
    let got: Vec<u32> = (2..=28).filter(|n| rig.client(0, ack(sent + n)).is_some()).collect();
    assert_eq!(got, [2], "a server's rounds need not begin where they seem to");
}

#[test]
fn acks_in_time_have_pauses() {
    let (mut rig, sent) = grown_at(Time::from_ms(96));
    let (began, apart) = (rig.now, Time::from_us(1500));
    for n in 0..45 {
        burst(&mut rig, sent + n, sent + n + 1);
        rig.now += apart;
    }
    rig.now = began + Time::from_ms(96);
    let kept = (1..=45).filter(|n| {
        let kept = rig.client(0, ack(sent + n)).is_none();
        rig.now += apart;
        kept
    });
    // from a third of the round trip on the next that would have followed by less than 3 ms
    assert_eq!(kept.collect::<Vec<u32>>(), [23]);
}

#[test]
fn a_server_without_room_need_not_grow() {
    let (mut rig, mut sent) = grown();
    for _ in 0..3 {
        // all that the client has room for
        assert_eq!(round(&mut rig, &mut sent, 65_536 / MSS, Time::from_ms(20)), 28);
    }
}

#[test]
fn a_duplicate_replaces_a_late_ack_that_was_not_forwarded() {
    let (mut rig, sent) = grown();
    burst(&mut rig, sent, sent + 30);
    rig.now += Time::from_ms(20);
    assert!(rig.client(0, ack(sent + 1)).is_some());
    assert!(rig.client(0, ack(sent + 5)).is_none(), "it is not forwarded");
    // the next segments were lost: nothing more is acknowledged, and the server needs the newest ACK
    rig.now += Time::from_ms(10);
    let got = rig.client(0, sacking(sent + 5, sent + 6, sent + 7)).expect("a duplicate passes in its place");
    assert_eq!((got.ack, got.sack_count), (S + (sent + 5) * MSS, 0));
    assert!(rig.client(0, sacking(sent + 5, sent + 6, sent + 8)).is_none_or(|update| update.window > got.window));
}

#[test]
fn no_duplicate_ack_answers_a_probe_of_the_last_segment() {
    let mut rig = newreno();
    burst(&mut rig, 0, 3);
    let shown = rig.client(0, ack(1)).expect("it acknowledges more");
    assert_eq!(rig.server(0, data(2)), []);
    assert_eq!(rig.enforcer.counters().absorbed_last, 1);
    let duplicate = Segment { window: shown.window, ..ack(1) };
    assert_eq!(rig.client(0, duplicate), None, "Linux would retransmit what it has split the probe from");
    let got = rig.client(0, Segment { sack_count: 1, ..ack(3) });
    assert_eq!(got.map(|s| s.ack), Some(S + 3 * MSS));
    assert_eq!(rig.enforcer.counters().undos, 1, "the D-SACK follows when the client has all of it");
}
