//! The algorithms of `cc/` carry bytes between network namespaces, through the running kernel's TCP.

use crate::support::{self, Path, Pinning, algorithm, choose};
use kernel::{Change, Origin, Running};
use nix::errno::Errno;
use std::fs;
use testkit::eventually;

const MEGABYTE: usize = 1_000_000;

#[test]
fn every_algorithm_carries_bytes_through_a_queue_that_overflows() {
    let Some(kernel) = support::pinning() else { return };
    let path = Path::new(400, 150_000);
    let before = support::holdings();
    for name in kernel::builtins() {
        let mbit = load_list_carry_and_unload(&kernel, &path, name, 20 * MEGABYTE);
        assert!(mbit > 50.0, "{name} used {mbit:.0} of 400 Mbit/s");
    }
    assert_eq!(support::left_behind(&before), [""; 0]);
}

/// An algorithm's whole life in the kernel, with a connection along `path` that sends `bytes` bytes; its rate in Mbit/s.
fn load_list_carry_and_unload(kernel: &Pinning, path: &Path, name: &str, bytes: usize) -> f64 {
    let kernel_name = format!("{}{name}", kernel::NAME_PREFIX);
    assert_eq!(kernel.load(name), Change::Loaded);
    let mut connection = path.connect(&kernel_name, &kernel_name);
    let took = connection.carry(bytes);
    assert_eq!(algorithm(&connection.source), kernel_name);
    assert_eq!(algorithm(&connection.sink), kernel_name);

    let listed = path.at_sender(kernel::running).expect("/proc is mounted");
    let expected = Running { name: kernel_name.clone(), origin: Origin::Loaded, sockets: Some(1) };
    assert!(listed.contains(&expected), "{listed:?}");
    let mbit = bytes as f64 * 8e-6 / took.as_secs_f64();
    let sockets = path.sender_sockets();
    println!("{name}: {mbit:.0} Mbit/s {}", sockets.trim());
    assert!(sockets.contains(&kernel_name), "{sockets}");

    kernel.unload(&kernel_name);
    assert_eq!(
        choose(&connection.sink, "reno").and_then(|()| choose(&connection.sink, &kernel_name)),
        Err(Errno::ENOENT)
    );
    let listed = path.at_sender(kernel::running).expect("/proc is mounted");
    assert!(listed.contains(&Running { origin: Origin::Unloaded, ..expected }), "{listed:?}");
    connection.close();
    mbit
}

#[test]
fn a_live_connection_can_change_from_each_algorithm_to_the_next() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let path = Path::new(400, 150_000);
    let all: Vec<_> = kernel::builtins().map(|name| kernel.load(name).unwrap_or_else(|e| panic!("{e}"))).collect();
    // Not to dctcp: moving there does not negotiate ECN. It starts there, and so has negotiated.
    let mut connection = path.connect("ot_dctcp", "ot_dctcp");
    for loaded in all.iter().cycle().take(2 * all.len()) {
        choose(&connection.source, loaded.name()).expect("the algorithm is loaded");
        connection.carry(3 * MEGABYTE);
        assert_eq!(algorithm(&connection.source), loaded.name());
    }
    connection.close();
}

#[test]
fn dctcp_echoes_exactly_the_paths_marks() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let path = Path::new(400, 1_000_000);
    let marker = support::compile_to_file("marker", include_str!("marker.bpf.c"));
    path.tc_at_bottleneck("qdisc add dev veth1 clsact");
    path.tc_at_bottleneck(&format!(
        "filter add dev veth1 egress bpf direct-action object-file {} section tc",
        marker.display()
    ));

    let loaded = kernel.load("dctcp").unwrap_or_else(|error| panic!("{error}"));
    let mut connection = path.connect(loaded.name(), loaded.name());
    connection.carry(10 * MEGABYTE);
    let sockets = path.sender_sockets();
    let delivered = support::number(&sockets, "delivered:").expect("something was delivered");
    let marked = support::number(&sockets, "delivered_ce:").unwrap_or(0);
    println!("marked {marked} of {delivered}: {sockets}");
    assert!(sockets.contains(" ecn "), "ECN was negotiated: {sockets}");
    // One eighth by design, of packets that hold several segments. ECN's own echo would repeat each mark over a window.
    assert!(
        marked * 20 > delivered && marked * 3 < delivered,
        "{marked} of {delivered} segments were echoed as marked"
    );
    connection.close();
}

#[test]
fn unloading_leaves_connections_alone_and_then_nothing_behind() {
    let Some(kernel) = support::quiet_kernel() else { return };
    let path = Path::new(400, 150_000);
    let loaded = kernel.load("bbr").unwrap_or_else(|error| panic!("{error}"));
    let link = loaded.link_id().expect("a loaded algorithm has a link");
    let mut old = path.connect("ot_bbr", "ot_bbr");
    let other = path.connect("bbr", "bbr");
    old.carry(10 * MEGABYTE);
    assert!(support::links().contains(&link));

    drop(loaded);
    assert!(eventually(|| choose(&other.source, "ot_bbr") == Err(Errno::ENOENT)), "no further socket may choose it");
    assert!(!support::links().contains(&link));
    assert_eq!(algorithm(&old.source), "ot_bbr");
    old.carry(10 * MEGABYTE);
    assert!(support::maps().iter().any(|name| name == "ot_bbr"), "an open connection keeps it in memory");

    old.close();
    assert!(eventually(|| !support::maps().iter().any(|name| name == "ot_bbr")), "{:?}", support::maps());
    assert!(
        eventually(|| !support::programs().iter().any(|name| name.starts_with("bbr_"))),
        "{:?}",
        support::programs()
    );
    other.close();
}

#[test]
fn a_path_of_namespaces_changes_nothing_of_the_host_and_goes_away() {
    let Some(_kernel) = support::quiet_kernel() else { return };
    let settings = || {
        ["ip_forward", "tcp_no_metrics_save", "tcp_congestion_control", "tcp_available_congestion_control"]
            .map(|name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).expect("Linux has it"))
    };
    let (before, namespaces) = (settings(), support::namespaces());
    let path = Path::new(100, 50_000);
    assert_eq!(support::namespaces().len(), namespaces.len() + 3);
    assert_eq!(settings(), before);
    drop(path);
    assert_eq!(support::namespaces(), namespaces);
}
