//! A total of receive windows, shared among real connections by the running kernel. Root only.

use crate::support;
use kernel::retune::{Retuner, Rule, Sessions, Tuning, boot_time, netns_cookie};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::sockopt::RcvBuf;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, libc, sockopt_impl};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{cgroups, or_skip};

const LONG: Duration = Duration::from_secs(60);
/// Payload of a segment with timestamps.
const SEGMENT: u32 = 1448;
const TOTAL: u32 = 100 * SEGMENT;
/// Linux announces multiples of a unit, which grows with the largest buffer: here 1 KiB at most.
const SCALE: u32 = 1024;

sockopt_impl!(
    /// The socket's largest receive window, bytes.
    WindowClamp, GetOnly, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32
);

/// Runs `work` with the program attached, in a namespace with a loopback interface.
fn with_retuner(work: impl FnOnce(Retuner, u64) + Send) {
    let Some(_kernel) = support::quiet_kernel() else { return };
    let Some(cgroup) = or_skip(cgroups()) else { return };
    let retuner = Retuner::attach(cgroup).unwrap_or_else(|error| panic!("{error}"));
    let body = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        assert!(Command::new("ip").args(["link", "set", "lo", "mtu", "1500", "up"]).status().unwrap().success());
        work(retuner, netns_cookie().unwrap());
    };
    thread::scope(|scope| scope.spawn(body).join().unwrap());
}

/// A total for the connections with 127.0.1.0/24.
fn rule(netns: u64, lifetime: Duration) -> Rule {
    let sessions = Sessions { netns: Some(netns), remote: ("127.0.1.0".parse().unwrap(), 24), port: None };
    let tuning = Tuning { window_total: Some(TOTAL), ..Tuning::default() };
    Rule { number: 7, sessions, tuning, deadline: boot_time() + lifetime }
}

/// A connection from 127.0.0.1 to 127.0.1.1: the sending end, which accepted it, and the receiving one, which has a share.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.1.1:0").unwrap();
    let receives = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let sends = listener.accept().unwrap().0;
    sends.set_nodelay(true).unwrap();
    (sends, receives)
}

/// Sends data one way, and reads it.
fn send((sends, receives): &(TcpStream, TcpStream), bytes: usize) {
    let mut block = vec![7; bytes];
    let (mut from, mut to) = (sends, receives);
    thread::scope(|scope| {
        scope.spawn(move || from.write_all(&vec![7; bytes]).unwrap());
        to.read_exact(&mut block).unwrap();
    });
}

/// The window that the sending end knows of, whole segments.
fn share(connection: &(TcpStream, TcpStream)) -> u32 {
    window(connection) / SEGMENT
}

/// The window that the sending end knows of, bytes.
fn window((sends, _): &(TcpStream, TcpStream)) -> u32 {
    let port = |address: SocketAddr| address.port().to_string();
    let (own, other) = (port(sends.local_addr().unwrap()), port(sends.peer_addr().unwrap()));
    let out = Command::new("ss").args(["-Htin", "sport", "=", &own, "and", "dport", "=", &other]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let number = text.split_whitespace().find_map(|word| word.strip_prefix("snd_wnd:")?.parse().ok());
    number.unwrap_or_else(|| panic!("no snd_wnd in {text}"))
}

#[test]
fn connections_share_the_total_and_follow_their_number() {
    with_retuner(|mut retuner, netns| {
        retuner.set(&[rule(netns, LONG)]).unwrap();
        let first = connection();
        send(&first, 200_000);
        assert_eq!(share(&first), 50, "half of it");

        let others: Vec<_> = (0..9).map(|_| connection()).collect();
        let (clamp, opened) = (|| getsockopt(&first.1, WindowClamp).unwrap(), Instant::now());
        let mut exchanges = 0;
        while clamp() > 10 * SEGMENT {
            assert!(exchanges < 2, "it follows when it is next used");
            send(&first, 1);
            exchanges += 1;
        }
        println!("the share has followed {:?} after nine more connections", opened.elapsed());
        // the share follows with the next ACK: one block takes more than one
        send(&first, 100_000);
        assert_eq!(share(&first), 10);
        for other in &others {
            send(other, 100_000);
        }
        let shares: Vec<u32> = others.iter().map(share).collect();
        assert_eq!(shares, [10; 9]);
        let announced: u32 = others.iter().chain([&first]).map(window).sum();
        println!("10 connections, {announced} bytes announced of {TOTAL}");
        // Linux rounds a window up to its scale
        assert!(announced <= TOTAL + 10 * SCALE && announced > TOTAL / 2, "{announced} bytes announced");

        drop(others);
        send(&first, 200_000);
        assert_eq!(share(&first), 50, "the others have closed");
        assert_eq!(retuner.counts().unwrap().failed, 0);
    });
}

#[test]
fn a_share_is_at_least_a_segment_from_the_handshake_on() {
    with_retuner(|mut retuner, netns| {
        retuner.set(&[rule(netns, LONG)]).unwrap();
        let many: Vec<_> = (0..120).map(|_| connection()).collect();
        let last = many.last().unwrap();
        println!("the last of 120: {} segments, {} bytes announced before any data", share(last), window(last));
        assert!(window(last) <= 2 * SEGMENT, "{} bytes announced", window(last));
        for one in &many {
            send(one, 200_000);
        }
        assert!(many.iter().all(|one| share(one) == 1), "{:?}", many.iter().map(share).collect::<Vec<_>>());
    });
}

#[test]
fn connections_have_their_own_windows_when_the_rule_has_ended() {
    with_retuner(|mut retuner, netns| {
        retuner.set(&[]).unwrap();
        let usual = getsockopt(&connection().1, WindowClamp).unwrap();
        let open = connection();
        // Linux raises the clamp with a buffer that grows
        setsockopt(&open.1, RcvBuf, &1_000_000).unwrap();
        send(&open, 2_000_000);
        let own = getsockopt(&open.1, WindowClamp).unwrap();
        retuner.set(&[rule(netns, LONG)]).unwrap();
        retuner.adopt().unwrap();
        let others: Vec<_> = (0..4).map(|_| connection()).collect();
        // what was announced before is used first
        send(&open, 2_000_000);
        assert_eq!(share(&open), 20, "one that was open is counted");
        retuner.set(&[]).unwrap();
        send(&open, 1000);
        assert_eq!(getsockopt(&open.1, WindowClamp).unwrap(), own);
        retuner.adopt().unwrap();
        for other in &others {
            // at their handshake Linux had not limited it by the buffer yet
            assert!(getsockopt(&other.1, WindowClamp).unwrap() >= usual, "idle ones too");
        }

        // the kernel ends the rule by itself
        retuner.set(&[rule(netns, Duration::from_secs(3))]).unwrap();
        retuner.adopt().unwrap();
        send(&open, 2_000_000);
        // idle ones may keep more than their share, which leaves half of it at least
        assert!((10..=20).contains(&share(&open)), "{}", share(&open));
        thread::sleep(Duration::from_millis(3100));
        send(&open, 1000);
        assert_eq!(getsockopt(&open.1, WindowClamp).unwrap(), own);
        drop(others);
        retuner.set(&[rule(netns, LONG)]).unwrap();
        retuner.adopt().unwrap();
        send(&open, 2_000_000);
        assert_eq!(share(&open), 50, "nothing is left of those that have closed");
    });
}

#[test]
fn a_connection_that_sends_has_no_share() {
    with_retuner(|mut retuner, netns| {
        retuner.set(&[rule(netns, LONG)]).unwrap();
        let (uploads, receives) = (connection(), connection());
        send(&receives, 200_000);
        assert_eq!(share(&receives), 50);
        let three = connection();
        send(&receives, 200_000);
        assert_eq!(share(&receives), 33);
        let (one, other) = &uploads;
        send(&(other.try_clone().unwrap(), one.try_clone().unwrap()), 200_000);
        send(&receives, 200_000);
        assert_eq!(share(&receives), 50);
        drop(three);
    });
}
