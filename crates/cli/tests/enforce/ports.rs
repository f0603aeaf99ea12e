//! Packets at the enforcer's ports: IPv6, VLANs, jumbo frames, the super-segments of TAPs.

use crate::world::World;
use crate::{LONG, SHORT, check, send};
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;
use testkit::eventually;

/// The server sends, the client checks.
fn download((client, server): &mut (TcpStream, TcpStream), bytes: usize) {
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| send(server, bytes, None));
        check(client, bytes, &seen);
    });
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn an_ipv6_flow_is_enforced_and_its_losses_made_good() {
    let Some(world) = World::new() else { return };
    world.add_ipv6_addresses();
    let _enforcer = world.enforce(&["--rule", "bbr servers=fd97::/64"]);
    world.lose_at_client();
    download(&mut world.connection_at(address("fd97::1")), LONG);
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    assert_eq!((counter("flows_opened"), counter("passed_malformed")), (1, 0), "{status}");
    assert!(counter("data_taken") > (LONG / 1440) as u64, "{status}");
    assert!(counter("retransmitted") > (LONG / 1440 / 200) as u64, "{status}");
}

#[test]
fn a_flow_in_a_vlan_is_enforced_and_keeps_its_tag() {
    let Some(world) = World::new() else { return };
    world.put_hosts_in_vlan();
    let enforcer = world.enforce(&["--rule", "bbr"]);
    let mut both = world.connection();
    download(&mut both, SHORT);
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    assert_eq!((counter("flows_opened"), counter("passed_malformed")), (1, 0), "{status}");
    assert!(counter("data_taken") > (SHORT / 1460) as u64, "{status}");
    enforcer.stop();
    download(&mut both, SHORT);
}

#[test]
fn jumbo_frames_are_enforced_and_their_losses_repaired() {
    // the largest MTU that fits three pieces of memory, and a common one
    for mtu in [11_498, 9000] {
        let Some(world) = World::new() else { return };
        world.set_mtu(mtu);
        let _enforcer = world.enforce(&["--rule", "bbr"]);
        world.lose_at_client();
        download(&mut world.connection(), LONG);
        let status = world.status();
        let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
        assert_eq!((counter("flows_opened"), counter("passed_malformed")), (1, 0), "{status}");
        // 52 bytes of an IP packet are headers and timestamps; a window that ends within a segment cuts it, on a busy machine one of four
        let segments = (LONG / (mtu as usize - 52)) as u64;
        assert!((segments..segments * 2).contains(&counter("data_taken")), "{segments} segments: {status}");
        assert!(counter("retransmitted") > segments / 200, "{status}");
    }
    let Some(world) = World::new() else { return };
    world.set_mtu(11_499);
    let arguments = ["enforce", "--socket", "enforce.sock", "--rule", "bbr", "--between", "s", "c"];
    let (code, _, error) = world.opentcp(&arguments);
    assert!(
        code == Some(1) && error.contains("s has an MTU of 11499; the enforcer takes up to 11498"),
        "{code:?} {error}"
    );
}

#[test]
fn between_taps_super_segments_are_enforced_whole() {
    let Some(world) = World::new() else { return };
    let _enforcer = world.enforce_between_taps(&["--rule", "bbr"]);
    let mut both = world.connection_at(address("10.99.0.1"));
    download(&mut both, LONG);
    let counter = |name: &str| world.status()["counters"][name].as_u64().expect("it is counted");
    assert_eq!(counter("flows_opened"), 1, "{}", world.status());
    let taken = counter("data_taken");
    assert!(taken > 0 && taken < (LONG / 1448 / 2) as u64, "{taken} packets: {}", world.status());
    // a server whose ACKs are delayed probes with data that the enforcer has, or that the client has acknowledged meanwhile; nothing was
    // lost on the way to it
    let needless = || counter("absorbed") + counter("others_forwarded");
    assert!(eventually(|| world.retransmits(&both.1) <= needless()), "{}", world.status());
}

#[test]
fn unusable_taps_are_refused_with_a_reason() {
    let Some(world) = World::new() else { return };
    world.add_tap_in_between("free");
    world.add_tap_in_between("other");
    let enforce = |ends: [&str; 2]| {
        let arguments = ["enforce", "--socket", "enforce.sock", "--rule", "bbr", "--between"];
        world.opentcp(&[&arguments[..], &ends].concat())
    };
    let (code, _, error) = enforce(["free", "c"]);
    assert!(code == Some(2) && error.contains("use two such TAPs, or two ports"), "{error}");
    let _holder = world.hold_tap("other");
    let (code, _, error) = enforce(["free", "other"]);
    assert!(code == Some(1) && error.contains("has this TAP open"), "{error}");
    world.run(1, "ip link set other master br0");
    let (code, _, error) = enforce(["other", "c"]);
    assert!(code == Some(2) && error.contains("other is a virtual machine's TAP"), "{error}");
    assert!(
        error.contains("ip link set to-br1 master br0 up") && error.contains("name vms instead of other"),
        "{error}"
    );
    let (code, _, error) = enforce(["s", "c"]);
    assert!(code == Some(2) && error.contains("other is a third port of br0"), "{error}");
}

#[test]
fn an_enforcer_ends_with_its_interfaces_and_when_their_mtu_grows_beyond_its_limit() {
    let Some(world) = World::new() else { return };
    let mut both = world.connection();
    let enforcer = world.enforce(&["--rule", "bbr"]);
    world.set_mtu(3000);
    assert!(
        enforcer.fails().contains("has an MTU of 3000 now; this enforcer takes up to 17"),
        "the message names the limit"
    );
    // the bridge carries it, and a new enforcer fits the MTU
    download(&mut both, SHORT);
    world.add_tap_in_between("third");
    let enforcer = world.enforce(&["--rule", "bbr"]);
    world.run(1, "ip link set third master br0");
    assert!(enforcer.fails().contains("third is a third port of br0"));
    world.run(1, "ip link set third nomaster");
    let enforcer = world.enforce(&["--rule", "bbr"]);
    std::fs::remove_dir_all(World::pins().join("c")).expect("it is there");
    assert!(enforcer.fails().contains("the enforcer's program was removed"));
    let enforcer = world.enforce(&["--rule", "bbr"]);
    world.run(1, "ip link delete c");
    assert!(enforcer.fails().contains("c is gone"));

    let enforcer = world.enforce_between_taps(&["--rule", "bbr"]);
    world.run(2, "ip link delete tc");
    assert!(enforcer.fails().contains("tc is gone"));
}

#[test]
fn a_flow_survives_when_its_path_mtu_shrinks() {
    let Some(world) = World::new() else { return };
    let _enforcer = world.enforce(&["--rule", "bbr"]);
    let (mut client, mut server) = world.connection();
    let seen = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| send(&mut server, LONG, Some(LONG / 2)));
        scope.spawn(|| {
            assert!(eventually(|| seen.load(Ordering::Relaxed) > LONG as u64 / 4));
            // longer frames are dropped there; the route tells the server what a router's ICMP would
            world.run(2, "ip link set eth0 mtu 1000");
            world.run(0, "ip route change 10.97.0.0/24 dev eth0 mtu 1000");
        });
        check(&mut client, LONG, &seen);
    });
    let counters = world.status()["counters"].clone();
    println!("{:?}, {counters}", began.elapsed());
    assert!(counters["replaced"].as_u64() > Some(0), "{counters}");
}
