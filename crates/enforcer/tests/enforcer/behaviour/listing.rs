//! The list of flows, and how many run each algorithm.

use super::MSS;
use crate::rig::{CLIENT_ISS, Rig, SERVER_ISS, STACK, config, ends, rig, segment};
use enforcer::{CaState, FlowState, Limits, Rule};
use std::collections::BTreeSet;
use tcp::SackBlock;
use units::Time;

#[test]
fn flows_are_listed_some_at_a_time_and_each_once() {
    let mut rig = rig("cubic", Limits::default(), STACK);
    for n in 0..1000 {
        rig.open(n);
    }
    // one of them sends, and the client lacks the first segment
    let (s, c) = (SERVER_ISS + 1, CLIENT_ISS + 1);
    (0..12).for_each(|i| drop(rig.server(7, segment(s + i * MSS, c, MSS as u16))));
    rig.now += Time::from_ms(20);
    let mut lacks_first = segment(c, s, 0);
    (lacks_first.sack_count, lacks_first.sack[0]) = (1, SackBlock { start: s + MSS, end: s + 10 * MSS });
    rig.client(7, lacks_first);

    let (mut from, mut flows, mut slices) = (Some(0), Vec::<FlowState>::new(), 0);
    while let Some(place) = from {
        let before = flows.len();
        from = rig.enforcer.list(rig.now, place, 64, &mut flows);
        assert!(flows.len() - before <= 64);
        slices += 1;
    }
    assert_eq!((flows.len(), slices), (1000, 1000_usize.div_ceil(64)));
    let clients: BTreeSet<_> = flows.iter().map(|flow| flow.client).collect();
    assert_eq!(clients, (0..1000).map(|n| ends(n)[1]).collect(), "each once");
    assert!(flows.iter().all(|flow| flow.server == ends(0)[0] && flow.algorithm == "cubic"));

    let busy = flows.iter().find(|flow| flow.client == ends(7)[1]).expect("it is listed");
    assert_eq!((busy.ca_state, busy.retransmitted), (CaState::Recovery, 1));
    // nothing is acknowledged, so all twelve are kept
    assert_eq!((busy.buffered_packets, busy.bytes_acked), (12, 0));
    assert!(busy.buffered_bytes > 0 && busy.in_flight > 0 && busy.sent >= 11, "{busy:?}");
    assert!(busy.ssthresh.is_some() && busy.age >= Time::from_ms(20), "{busy:?}");
    let idle = flows.iter().find(|flow| flow.client == ends(8)[1]).expect("it is listed");
    assert_eq!((idle.ca_state, idle.buffered_packets, idle.ssthresh, idle.cwnd), (CaState::Open, 0, None, 10));
    assert_eq!(rig.enforcer.list(rig.now, 5000, 64, &mut flows), None, "a place that is not there");
}

#[test]
fn algorithms_are_counted_as_flows_open_change_and_end() {
    let mut rig = rig("cubic", Limits::default(), STACK);
    let count = |rig: &Rig| rig.enforcer.algorithms().collect::<Vec<_>>();
    assert_eq!(count(&rig), []);
    for n in 0..3 {
        rig.open(n);
    }
    assert_eq!(count(&rig), [("cubic", 3)]);
    // open flows follow; a port of the client's decides
    let one = Rule { port: Some(ends(0)[1].port), ..Rule::all(&config("bbr")) };
    rig.enforcer.set_rules(rig.now, vec![one, Rule::all(&config("vegas"))]);
    assert_eq!(count(&rig), [("bbr", 1), ("vegas", 2)]);
    let mut flows = Vec::new();
    rig.enforcer.list(rig.now, 0, 64, &mut flows);
    assert_eq!(flows.iter().filter(|flow| flow.algorithm == "vegas").count(), 2);
    rig.enforcer.forget(rig.now);
    assert_eq!(count(&rig), []);
}
