//! The parameters of a world, and of each transfer in it, from a seed.

use congestion::Algorithm;
use std::time::Duration;
use testkit::{Faults, Random};
use units::{Rate, Time};

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Each end is done when it has written and received all.
    Each,
    /// Each end is done when it has written all, and continues to receive.
    HalfClosed,
    /// Both ends at the same moment, when all has arrived.
    Together,
    /// One end resets it at any time.
    Reset { by: usize, after: Duration },
}

/// The settings of a host.
#[derive(Clone, Debug)]
pub struct HostCase {
    pub mtu: u32,
    pub sack: bool,
    pub timestamps: bool,
    pub scaling: bool,
    pub ecn: u8,
    /// Window scale that its largest receive buffer implies.
    pub scale: u32,
}

/// A connection; in each pair the first is the server's, whose sending is enforced.
#[derive(Clone, Debug)]
pub struct TransferCase {
    pub is_v6: bool,
    /// VLAN tags.
    pub tags: usize,
    /// The end that opens it.
    pub opener: usize,
    pub bytes: [usize; 2],
    pub mss: [Option<u32>; 2],
    /// The socket's buffer option: half of it is the first window.
    pub receive_buffer: [Option<usize>; 2],
    pub send_buffer: [Option<usize>; 2],
    pub algorithms: [&'static str; 2],
    /// The end whose application reads only now and then.
    pub lazy: Option<usize>,
    pub finish: Finish,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub hosts: [HostCase; 2],
    pub enforced: &'static str,
    /// Server to enforcer, enforcer to client.
    pub out: [Faults; 2],
    /// Client to enforcer, enforcer to server.
    pub back: [Faults; 2],
    pub transfers: Vec<TransferCase>,
}

impl Case {
    /// World number `seed`: `transfers` of at most `most` bytes each way.
    pub fn new(seed: u64, transfers: usize, most: usize) -> Case {
        let r = &mut Random(seed);
        let hosts = [host(r), host(r)];
        let near = Time::from_us(10 + r.below(500));
        let far = Time::from_us(50 + r.below(20_000));
        // most often only the client's side is bad, as in practice
        let bad = *r.any(&[[false, true], [false, true], [true, false], [true, true]]);
        let out = [(bad[0], near), (bad[1], far)].map(|wire| faults(r, wire));
        let back = [(bad[1], far), (bad[0], near)].map(|wire| faults(r, wire));
        let has_v6 = hosts.iter().all(|host| host.mtu >= 1280);
        Case {
            seed,
            enforced: r.any(Algorithm::builtins()).name(),
            out,
            back,
            transfers: (0..transfers).map(|_| transfer(r, most, has_v6)).collect(),
            hosts,
        }
    }
}

fn host(r: &mut Random) -> HostCase {
    HostCase {
        mtu: *r.any(&[576, 1280, 1500, 1500, 1500, 9000]),
        sack: !r.chance(0.25),
        timestamps: !r.chance(0.25),
        scaling: !r.chance(0.2),
        ecn: *r.any(&[0, 1, 2]),
        scale: *r.any(&[7, 8, 9, 10, 11, 12, 13, 14]),
    }
}

fn faults(r: &mut Random, (is_bad, delay): (bool, Time)) -> Faults {
    let clean = Faults::clean(delay);
    if !is_bad {
        return clean;
    }
    Faults {
        rate: r.chance(0.5).then(|| (Rate::from_mbps(20 << r.below(6)), 50 + r.below(500) as usize)),
        loss: 0.05 * r.unit(),
        reorder: 0.05 * r.unit(),
        duplicate: 0.02 * r.unit(),
        corrupt: 0.01 * r.unit(),
        mark: 0.1 * r.unit(),
        ..clean
    }
}

/// A transfer is of no more than so many of its smallest buffer, each of which takes a round trip.
const BUFFERS: usize = 1000;

fn transfer(r: &mut Random, most: usize, has_v6: bool) -> TransferCase {
    let buffer = |r: &mut Random, bits: u64| r.chance(0.5).then(|| 2048 << r.below(bits));
    let receive_buffer = [0, 1].map(|_| buffer(r, 18));
    let send_buffer = [0, 1].map(|_| buffer(r, 10));
    let bytes = |r: &mut Random, most: usize, end: usize| {
        let smallest = [send_buffer[end], receive_buffer[1 - end]].into_iter().flatten().min();
        size(r, most).min(smallest.map_or(most, |bytes| bytes * BUFFERS))
    };
    let small = if r.chance(0.3) { most } else { 2_000 };
    TransferCase {
        is_v6: has_v6 && r.chance(0.4),
        tags: *r.any(&[0, 0, 1, 2]),
        opener: usize::from(r.chance(0.75)),
        bytes: [bytes(r, most, 0), bytes(r, small, 1)],
        mss: [0, 1].map(|_| r.chance(0.4).then(|| 536 + r.below(8424) as u32)),
        receive_buffer,
        send_buffer,
        algorithms: [0, 1].map(|_| *r.any(&["cubic", "reno", "bbr"])),
        lazy: r.chance(0.15).then(|| r.below(2) as usize),
        finish: match r.below(10) {
            0 => Finish::Reset { by: r.below(2) as usize, after: Duration::from_millis(r.below(3_000)) },
            1 | 2 => Finish::HalfClosed,
            3 | 4 => Finish::Together,
            _ => Finish::Each,
        },
    }
}

/// Log-uniform up to `most`; one in eight is zero.
fn size(r: &mut Random, most: usize) -> usize {
    if r.below(8) == 0 { 0 } else { (r.unit() * (most as f64).log2()).exp2() as usize }
}
