//! A virtual machine behind a bridge of its own, which a veth pair joins to the enforcer's bridge, as in docs/enforcer.md.
//!
//! The machine is the server's namespace, whose card is a TAP too. A thread passes frames between that TAP and the one in the bridge with
//! their offload headers, as QEMU does between a guest and its TAP, so the bridge gets the super-segments and partial checksums of
//! the guest's stack.

use crate::world::{World, connect};
use crate::{LONG, SHORT, exchange};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use packet_io::{READ_BYTES_MAX, Tap, VnetHeader};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use testkit::{inside, ip};

/// Milliseconds after which the thread looks whether it is to end.
const LOOK_MS: u16 = 20;

/// The thread between the guest's card and its TAP.
struct Guest {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// Frames that the guest sent as super-segments, and those with a partial checksum.
    long: AtomicU64,
    partial: AtomicU64,
}

impl Guest {
    /// In place of the server's cable.
    fn boot(world: &World) -> Guest {
        let [guest, host, _] = world.hosts();
        ip(&format!("-n {host} link delete s"));
        let card = inside(guest, || Tap::open("eth0").expect("there is none yet"));
        let tap = inside(host, || Tap::open("vnet0").expect("there is none yet"));
        ip(&format!("-n {host} link add vms type bridge"));
        ip(&format!("-n {host} link set vms up"));
        ip(&format!("-n {host} link add to-s type veth peer name s"));
        for (port, bridge) in [("vnet0", "vms"), ("to-s", "vms"), ("s", "br0")] {
            ip(&format!("-n {host} link set {port} master {bridge} up"));
        }
        ip(&format!("-n {guest} address add 10.97.0.1/24 dev eth0"));
        ip(&format!("-n {guest} link set eth0 up"));
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        Guest { shared, thread: Some(thread::spawn(move || own.carry(card, tap))) }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn carry(&self, mut card: Tap, mut tap: Tap) {
        let mut buffer = vec![0; READ_BYTES_MAX];
        while !self.is_over.load(Ordering::Relaxed) {
            pass(&mut card, &mut tap, &mut buffer, |header| {
                self.long.fetch_add(header.is_gso().into(), Ordering::Relaxed);
                self.partial.fetch_add(header.needs_csum().into(), Ordering::Relaxed);
            });
            pass(&mut tap, &mut card, &mut buffer, |_| ());
            let mut both = [&card, &tap].map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
            poll(&mut both, PollTimeout::from(LOOK_MS)).expect("both are open");
        }
    }
}

/// Passes all frames that wait.
fn pass(from: &mut Tap, to: &mut Tap, buffer: &mut [u8], mut note: impl FnMut(&VnetHeader)) {
    while let Ok(Some(frame)) = from.read(buffer) {
        note(&frame.header);
        // refused while the interface is down
        let _ = to.write(&frame.header, &[frame.bytes]);
    }
}

#[test]
fn a_virtual_machines_flows_are_enforced_behind_a_bridge_of_its_own() {
    let Some(world) = World::new() else { return };
    let guest = Guest::boot(&world);
    ip(&format!("-n {} address add 10.97.0.9/24 dev br0", world.hosts()[1]));
    let enforcer = world.enforce(&["--rule", "bbr"]);
    world.lose_at_client();
    let (mut client, mut server) = world.connection();
    exchange(&mut client, &mut server, LONG);
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    let sent = [&guest.shared.long, &guest.shared.partial].map(|count| count.load(Ordering::Relaxed));
    println!("{sent:?} frames of the guest with segmentation and checksum left to do: {status}");
    assert!(sent.iter().all(|count| *count > 100), "{sent:?}");
    assert_eq!((counter("flows_opened"), counter("passed_malformed")), (1, 0), "{status}");
    assert!(counter("data_taken") > (LONG / 1460) as u64, "single packets: {status}");
    assert!(counter("retransmitted") > (LONG / 1460 / 200) as u64, "{status}");
    assert_eq!(status["servers"]["missed"], 0, "{status}");
    // the host itself is on the enforcer's bridge
    let [own, host, other] = world.hosts();
    let address: SocketAddr = "10.97.0.9:7001".parse().expect("it is one");
    for peer in [own, other] {
        let (mut peer, mut host) = connect([host, peer], address);
        exchange(&mut peer, &mut host, SHORT);
    }
    assert_eq!(world.status()["counters"]["flows_opened"], 1, "{}", world.status());
    enforcer.kill();
    exchange(&mut client, &mut server, SHORT);
}
