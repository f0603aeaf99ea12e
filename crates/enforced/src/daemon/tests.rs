//! The loop between two TAPs, whose hosts are the test.

use super::*;
use packet_io::{Tap, VnetHeader};
use std::os::unix::net::UnixDatagram;

/// A daemon without rules, and the hosts of its two interfaces: the servers', the clients'.
struct Between {
    _folder: tempfile::TempDir,
    daemon: Daemon,
    hosts: [UnixDatagram; 2],
}

fn between() -> Between {
    let folder = tempfile::tempdir().expect("a folder");
    let tap = |name: &str| {
        let (near, far) = UnixDatagram::pair().expect("a socket");
        near.set_nonblocking(true).expect("it is open");
        far.set_nonblocking(true).expect("it is open");
        (Port::of_tap(name, Tap::resume(near.into())), far)
    };
    let ((servers, one), (clients, other)) = (tap("a"), tap("b"));
    let listener = Listener::bind(&folder.path().join("status")).expect("a socket");
    let shown = Shown { listener, metrics: None, metrics_at: None };
    let limits = Limits { flows: 16, half_open: 16, ..Limits::default() };
    let daemon = Daemon::new([servers, clients], limits, Vec::new(), (None, None), shown);
    Between { _folder: folder, daemon, hosts: [one, other] }
}

/// An Ethernet frame that is no TCP, behind the header of a TAP.
fn frame(of: u8) -> Vec<u8> {
    [&VnetHeader::default().to_bytes()[..], &[of; 12], &[0x08, 0x06], &[of; 46]].concat()
}

fn received(host: &UnixDatagram) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| host.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec())).collect()
}

#[test]
fn what_enters_on_one_side_leaves_unchanged_on_the_other() {
    let Between { mut daemon, hosts: [server, client], .. } = between();
    server.send(&frame(1)).expect("it is open");
    server.send(&frame(2)).expect("it is open");
    client.send(&frame(3)).expect("it is open");
    assert!(!daemon.pass(), "there is no more");
    daemon.ports.iter_mut().for_each(Port::flush);
    assert_eq!((received(&client), received(&server)), (vec![frame(1), frame(2)], vec![frame(3)]));
    let status = daemon.status();
    assert_eq!((status.servers.received, status.servers.sent), (2, 1));
    assert_eq!((status.clients.received, status.clients.sent, status.flows), (1, 2, 0));
    assert_eq!((status.servers.interface.as_str(), status.flows_limit), ("a", 16));
}

#[test]
fn an_enforcer_that_is_stopped_forwards_what_it_has_first() {
    let Between { daemon, hosts: [server, client], .. } = between();
    for of in 0..40 {
        server.send(&frame(of)).expect("there is room");
    }
    let mut said = Vec::new();
    daemon.run(&|| true, &mut |line| said.push(line.to_string())).expect("it was stopped");
    assert_eq!(received(&client).len(), 40, "more than are read in one round");
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn an_enforcer_whose_interface_is_gone_ends_and_says_which() {
    let Between { daemon, .. } = between();
    // a socket is no TAP to the kernel, as a TAP is none that was deleted
    let error = daemon.run(&|| false, &mut |_| {}).expect_err("it cannot go on");
    assert_eq!(error.to_string(), "a is gone");
}

#[test]
fn a_loop_that_was_suspended_lets_go_of_its_flows_before_packets_have_passed_it_by() {
    // packets bypass an enforcer that has not reported for a second
    assert_eq!(STILL, Time::from_ms(800));
    assert!(STILL > LOOK * 2, "a look that is late is no suspension");
    let Between { mut daemon, .. } = between();
    let mut said = Vec::new();
    daemon.resume(&mut |line| said.push(line.to_string())).expect("a TAP needs no heartbeat");
    assert!(said.is_empty(), "without flows nothing is lost: {said:?}");
}

#[test]
fn packets_go_from_servers_to_clients_and_back() {
    assert_eq!([Direction::Out, Direction::In].map(entrance), [0, 1]);
}
