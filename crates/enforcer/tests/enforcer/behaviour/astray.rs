//! Packets that take another path.

use super::{C, MSS, S, ack, burst, data, goes_on, newreno};
use crate::rig::{Rig, segment};
use tcp::Segment;
use units::Time;

#[test]
fn packets_that_took_another_path_for_a_while_are_not_awaited() {
    // the client acknowledges first; or the server sends
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
            rig.wait(Time::from_ms(400));
            assert_eq!(burst(&mut rig, far, far + 1), [data(far)], "one shows what the client has");
            let answer = segment(C, S + (far + 1) * MSS, 0);
            assert_eq!(rig.client(0, answer), Some(answer));
        }
        assert_eq!(rig.enforcer.flows(), 1, "one end alone is not enough");
        assert_eq!(burst(&mut rig, far, far + 2), [data(far), data(far + 1)]);
        assert_eq!((rig.enforcer.flows(), rig.enforcer.counters().flows_astray), (0, 1));
    }
}

/// Two of the algorithm's ten segments in flight are acknowledged here; then the ACKs take another path for 200 ms.
fn unheard() -> Rig {
    let mut rig = newreno();
    burst(&mut rig, 0, 10);
    rig.client(0, ack(2));
    burst(&mut rig, 10, 13);
    rig.wait(Time::from_ms(200));
    rig
}

fn is_astray(rig: &Rig) -> bool {
    (rig.enforcer.flows(), rig.enforcer.counters().flows_astray) == (0, 1)
}

#[test]
fn a_timeout_of_a_server_that_knows_more_ends_enforcement() {
    let mut rig = unheard();
    // the client has acknowledged eight segments elsewhere
    let got = rig.server(0, data(8));
    assert!(got.contains(&data(8)), "it passes: {got:?}");
    assert!(is_astray(&rig));
    assert_eq!(rig.server(0, data(9)), [data(9)]);
}

#[test]
fn a_server_that_sends_beyond_its_window_while_no_ack_passes_ends_enforcement() {
    let mut rig = unheard();
    let held = rig.enforcer.buffered_bytes();
    assert!(held > 0);
    burst(&mut rig, 13, 40);
    assert!(!is_astray(&rig), "it may ignore its window, and the client be busy");
    rig.wait(Time::from_ms(200));
    let got = burst(&mut rig, 13, 40);
    assert!(is_astray(&rig));
    let got: Vec<u32> = got.iter().map(|s| (s.seq - S) / MSS).collect();
    assert!(got.ends_with(&(13..40).collect::<Vec<_>>()), "all, in sequence: {got:?}");
}

#[test]
fn a_last_segment_that_comes_a_third_time_ends_enforcement() {
    let mut rig = unheard();
    rig.server(0, data(12));
    assert_eq!(rig.enforcer.flows(), 1, "a probe proves nothing");
    rig.wait(Time::from_ms(200));
    let got = rig.server(0, data(12));
    assert!(got.contains(&data(12)) && is_astray(&rig), "{got:?}");
}

#[test]
fn a_silent_client_alone_does_not_end_enforcement() {
    let mut rig = unheard();
    // what a server does whose client is out of reach: a probe, and timeouts
    rig.server(0, data(12));
    for _ in 0..4 {
        rig.wait(Time::from_ms(400));
        rig.server(0, data(2));
        // and what was acknowledged, if that ACK was lost
        rig.server(0, data(1));
    }
    assert_eq!(rig.enforcer.flows(), 1);
    rig.client(0, ack(13));
    goes_on(&mut rig, 13);
}

#[test]
fn a_retransmission_above_the_oldest_soon_after_an_ack_is_absorbed() {
    let mut rig = unheard();
    rig.client(0, ack(3));
    assert!(!rig.server(0, data(8)).contains(&data(8)));
    assert_eq!(rig.enforcer.flows(), 1);
}

#[test]
fn data_that_the_client_got_by_another_path_is_not_awaited() {
    let mut rig = newreno();
    burst(&mut rig, 0, 30);
    // ten have left; the server retransmits twelve, elsewhere
    assert_eq!(rig.client(0, ack(12)), None, "it might cheat");
    rig.wait(Time::from_ms(500));
    // nothing that was sent from here is acknowledged
    let seen = rig.client(0, ack(12)).map(|s| s.ack);
    assert_eq!(seen, Some(S + 12 * MSS));
    let got: Vec<u32> = rig.leaves().iter().map(|s| (s.seq - S) / MSS).collect();
    assert_eq!(got.first(), Some(&12), "{got:?}");
    assert_eq!(rig.enforcer.counters().caught_up, 1);
}

#[test]
fn a_reordered_segment_while_the_client_is_silent_is_no_retransmission() {
    let mut rig = newreno();
    burst(&mut rig, 0, 8);
    rig.client(0, ack(2));
    rig.wait(Time::from_ms(200));
    burst(&mut rig, 9, 10);
    burst(&mut rig, 8, 9);
    assert_eq!(rig.enforcer.flows(), 1);
    // long after, it is one: the server was informed that the next arrived
    burst(&mut rig, 11, 12);
    rig.wait(Time::from_ms(200));
    burst(&mut rig, 10, 11);
    assert!(is_astray(&rig));
}

#[test]
fn a_server_that_has_advanced_elsewhere_is_released_though_its_client_stays_unheard() {
    let mut rig = newreno();
    burst(&mut rig, 0, 4);
    rig.client(0, ack(4));
    rig.wait(Time::from_ms(400));
    assert_eq!(burst(&mut rig, 1000, 1001), [data(1000)]);
    assert_eq!(rig.enforcer.flows(), 1);
    rig.wait(Time::from_ms(10));
    assert_eq!(burst(&mut rig, 1001, 1003), [data(1001), data(1002)]);
    assert!(is_astray(&rig));
}
