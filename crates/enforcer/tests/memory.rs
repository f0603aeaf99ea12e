//! The memory of a flow that rests after a loss.

#[path = "enforcer/rig.rs"]
mod rig;

use enforcer::Limits;
use rig::{CLIENT_ISS, SERVER_ISS, STACK, rig, segment};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use std::alloc::System;
use tcp::SackBlock;
use units::Time;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn in_use() -> usize {
    let Stats { bytes_allocated, bytes_deallocated, .. } = ALLOCATOR.stats();
    bytes_allocated - bytes_deallocated
}

#[test]
fn a_flow_that_rests_after_a_loss_takes_no_more_than_one_that_had_none() {
    const FLOWS: u32 = 1 << 12;
    const MSS: u32 = 1448;
    let (s, c) = (SERVER_ISS + 1, CLIENT_ISS + 1);
    // a place for each, and handshakes few
    let limits = Limits { flows: FLOWS as usize, half_open: 64, ..Limits::default() };
    let before = in_use();
    let mut rig = rig("cubic", limits, STACK);
    for n in 0..FLOWS {
        rig.open(n);
        for i in 0..10 {
            rig.server(n, segment(s + i * MSS, c, MSS as u16));
        }
        let mut lacks_first = segment(c, s, 0);
        (lacks_first.sack_count, lacks_first.sack[0]) = (1, SackBlock { start: s + MSS, end: s + 10 * MSS });
        rig.client(n, lacks_first);
        assert_eq!(rig.leaves().first().map(|again| again.seq), Some(s));
        rig.client(n, segment(c, s + 10 * MSS, 0));
    }
    rig.wait(Time::from_secs(10));
    // any packet makes it check flows for idleness
    (0..32 * FLOWS).for_each(|_| drop(rig.server(0, segment(s + 10 * MSS, c, 0))));
    assert_eq!((rig.enforcer.flows(), rig.enforcer.buffered_bytes()), (FLOWS as usize, 0));
    let retransmits: u32 = rig.enforcer.open_records(rig.now).map(|record| record.retransmits).sum();
    assert_eq!(retransmits, FLOWS, "the counters remain");
    let each = (in_use() - before) / FLOWS as usize;
    // with its share of the timers
    assert!(each <= 544, "{each} bytes a flow");
}
