//! Many servers that answer one client at once: what the enforcer lets be on its way to it.

use crate::wire::Wire;
use crate::world::World;
use crate::{check, send};
use nix::sys::socket::SockProtocol;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::thread;
use testkit::eventually;

const FLOWS: usize = 16;
const BYTES: usize = 64_000;
const TOTAL: u32 = 40_000;
const SERVER: [u8; 4] = [10, 97, 0, 1];

/// A server's data in an Ethernet frame: the port that it comes from, the first number and the number after the last.
fn data(frame: &[u8]) -> Option<(u16, u32, u32)> {
    let half = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    if half(12)? != 0x0800 || *frame.get(23)? != 6 || frame.get(26..30)? != SERVER {
        return None;
    }
    let tcp = 14 + usize::from(frame[14] & 0xf) * 4;
    let header = usize::from(frame.get(tcp + 12)? >> 4) * 4;
    let payload = u32::from(half(16)?) + 14 - (tcp + header) as u32;
    let first = u32::from_be_bytes(frame.get(tcp + 4..tcp + 8)?.try_into().ok()?);
    (payload > 0).then_some((half(tcp)?, first, first.wrapping_add(payload)))
}

/// The bytes of these frames up to the first that comes again, and whether one does.
fn until_one_comes_again(frames: &[Vec<u8>]) -> (u32, bool) {
    let mut ends = BTreeMap::new();
    let mut came = 0;
    for (port, first, end) in frames.iter().filter_map(|frame| data(frame)) {
        if ends.insert(port, end).is_some_and(|before| before != first) {
            return (came, true);
        }
        came += end.wrapping_sub(first);
    }
    (came, false)
}

#[test]
fn what_is_on_its_way_to_a_client_fits_the_total() {
    let Some(world) = World::new() else { return };
    let _enforcer = world.enforce(&["--rule", &format!("cubic clients=10.97.0.2/32 window_total={TOTAL}B")]);
    let mut ends: Vec<_> = (0..FLOWS).map(|_| world.connection()).collect();
    assert!(eventually(|| world.status()["flows"] == FLOWS), "{}", world.status());
    let mut wire = Wire::of(&world.hosts()[2], SockProtocol::EthAll);
    // The client's acknowledgments go nowhere. So what comes for the first time is on its way to it until a timer takes it for lost, and
    // then something comes again.
    world.run(2, "ip route add blackhole 10.97.0.1/32");
    thread::scope(|scope| {
        let (mut clients, servers): (Vec<_>, Vec<_>) = ends.iter_mut().map(|(client, server)| (client, server)).unzip();
        for server in servers {
            scope.spawn(|| send(server, BYTES, None));
        }
        let mut seen = (0, false);
        let comes_again = eventually(|| {
            wire.read();
            seen = until_one_comes_again(&wire.seen);
            seen.1
        });
        println!("{} bytes on their way", seen.0);
        world.run(2, "ip route delete blackhole 10.97.0.1/32");
        for client in &mut clients {
            check(client, BYTES, &AtomicU64::new(0));
        }
        assert!(comes_again && seen.0 > 0, "nothing was acknowledged");
        assert!(seen.0 <= TOTAL, "{} bytes on their way", seen.0);
    });
    let status = world.status();
    assert_eq!(status["counters"]["flows_opened"], FLOWS, "{status}");
}
