//! A server whose TCP ignores the receive window that it is offered: the enforcer still limits what is in flight to the client.

use crate::killed::SLOW;
use crate::world::World;
use crate::{check, send};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket, sockopt::RcvBufForce,
};
use rustix::net::sockopt::set_tcp_congestion;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::thread;

const BYTES: usize = 600_000;
/// The algorithm's limit of bytes in flight, by `slow.c`.
const IN_FLIGHT: u32 = 20 * 1448;
/// A server's data is still buffered this far beyond its window, `Limits::beyond_window_bytes`.
const HELD_BEYOND: u32 = 1 << 16;

/// A TCP packet as seen at a host's interface.
struct Packet {
    from_server: bool,
    syn: bool,
    /// From the server: the number after its last byte. From the client: the acknowledgment number.
    number: u32,
    /// The header's value, and the shift in the SYN.
    window: u16,
    scale: Option<u8>,
}

impl Packet {
    /// Of an Ethernet frame, IPv4.
    fn parse(frame: &[u8], server_port: u16) -> Option<Packet> {
        let half = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?));
        if half(12)? != 0x0800 || *frame.get(23)? != 6 {
            return None;
        }
        let tcp = 14 + usize::from(frame[14] & 0xf) * 4;
        let from_server = match (half(tcp)?, half(tcp + 2)?) {
            (port, _) if port == server_port => true,
            (_, port) if port == server_port => false,
            _ => return None,
        };
        let header = usize::from(frame.get(tcp + 12)? >> 4) * 4;
        let payload = 14 + usize::from(half(16)?) - tcp - header;
        let (syn, ack) = (frame[tcp + 13] & 2 != 0, frame[tcp + 13] & 16 != 0);
        let end = word(tcp + 4)?.wrapping_add(payload as u32).wrapping_add(u32::from(syn));
        let number = if from_server { end } else { word(tcp + 8)? };
        let scale = || frame.get(tcp + 20..tcp + header)?.windows(3).find(|o| o[..2] == [3, 3]).map(|o| o[2]);
        let scale = if syn { scale() } else { None };
        (from_server || syn || ack).then_some(Packet { from_server, syn, number, window: half(tcp + 14)?, scale })
    }
}

/// Captures packets at a host's interface, in both directions.
struct Capture(OwnedFd);

impl Capture {
    fn on(world: &World, host: usize) -> Capture {
        world.on(host, || {
            let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::EthAll)
                .expect("root may");
            setsockopt(&fd, RcvBufForce, &(256 << 20)).expect("root may");
            Capture(fd)
        })
    }

    /// All packets since the start, numbers relative to the server's first.
    fn packets(&self, server_port: u16) -> Vec<Packet> {
        let mut buffer = vec![0; 1 << 17];
        let mut all = Vec::new();
        while let Ok(n) = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            all.extend(Packet::parse(&buffer[..n], server_port));
        }
        let first = all.iter().find(|packet| packet.from_server && packet.syn).expect("its SYN was seen").number;
        all.retain(|packet| !packet.syn || packet.scale.is_some());
        for packet in &mut all {
            packet.number = packet.number.wrapping_sub(first);
        }
        all
    }
}

#[test]
fn a_server_that_ignores_its_window_is_held_to_it() {
    let Some(world) = World::new() else { return };
    std::fs::write(world.path("slow.c"), SLOW).expect("there is room");
    let _enforcer = world.enforce(&["--rule", "slow.c"]);
    world.blind_server_to_its_window();
    let (at_server, at_client) = (Capture::on(&world, 0), Capture::on(&world, 2));
    let (mut client, mut server) = world.connection();
    // no other limit: Reno grows until a loss
    set_tcp_congestion(&server, "reno").expect("it is in every kernel");
    let port = server.local_addr().expect("it is bound").port();
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, BYTES, None));
        check(&mut client, BYTES, &seen);
    });

    let (at_server, at_client) = (at_server.packets(port), at_client.packets(port));
    let scale = at_server.iter().find(|packet| packet.syn && !packet.from_server).and_then(|syn| syn.scale);
    let scale = scale.expect("Linux scales windows");
    // the ends of the windows that the server was offered, by acknowledgment number; the farthest that it went beyond one
    let (mut offers, mut edge, mut cheated) = (Vec::new(), 0, 0);
    for packet in at_server.iter().filter(|packet| !packet.syn) {
        if packet.from_server {
            cheated = packet.number.saturating_sub(edge).max(cheated);
        } else {
            edge = edge.max(packet.number + (u32::from(packet.window) << scale));
            offers.push((packet.number, edge));
        }
    }
    let offered_at = |acked: u32| offers.iter().filter(|(ack, _)| *ack <= acked).map(|(_, edge)| *edge).max();
    let (mut acked, mut most_in_flight, mut came) = (0, 0, 0);
    for packet in at_client.iter().filter(|packet| !packet.syn) {
        if !packet.from_server {
            acked = acked.max(packet.number);
            continue;
        }
        came = came.max(packet.number);
        most_in_flight = packet.number.saturating_sub(acked).max(most_in_flight);
        assert!(Some(packet.number) <= offered_at(acked), "{} beyond the window offered at {acked}", packet.number);
    }
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    let (held, dropped) = (counter("beyond_window_held"), counter("beyond_window_dropped"));
    println!(
        "up to {cheated} bytes beyond the window: {held} packets held, {dropped} dropped; {most_in_flight} in flight"
    );
    assert!(cheated > HELD_BEYOND && held > 0 && dropped > 0, "{cheated} bytes beyond: {status}");
    assert_eq!(came as usize, BYTES, "the captures are whole");
    assert!(most_in_flight <= IN_FLIGHT, "{most_in_flight} bytes in flight");
}
