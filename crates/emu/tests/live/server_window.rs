//! Whether the window of a real server, Linux's own CUBIC, limits the enforced algorithm on a path of
//! 180 ms that loses packets; and that its reactions to losses that were repaired without it are counted. Root only; one test at a
//! time on a machine.
//!
//! `ENFORCER_SECONDS` sets longer downloads, `ENFORCER_MBITS` another rate.

use crate::run_support::{ATTEMPTS, machine};
use emu::address::address;
use emu::hosts::Host;
use emu::info::Info;
use enforcer::Counters;
use rustix::net::sockopt::set_tcp_congestion;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{LossyDownload, asked, counters, scenario};

const PORT: u16 = 80;
const PATIENCE: Duration = Duration::from_secs(10);
const MSS: u32 = 1448;
/// Interval of samples of the server.
const PERIOD: Duration = Duration::from_millis(2);
/// What a path of 1 Mbit/s carries in 180 ms, segments with their headers, times ten.
const PATH_SEGMENTS_10: u32 = 149;
/// Mbit/s by default.
const RATE: u32 = 10;
/// With the whole queue.
const ROUND_TRIP: Duration = Duration::from_millis(180 + 60);
/// The longest repair of a loss: an RTT, and a quarter of one to distinguish it from reordering (RFC 8985 6.2).
const REPAIR: Duration = Duration::from_millis(285);
/// The server's first slow start: until then its window grows no faster than the client acknowledges, which a repair delays.
const GROWTH: Duration = Duration::from_secs(4);

/// When the client is silent, if at all, and for how long.
const OUTAGE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(2)];

/// 180 ms at this rate, of which 1 % of the data is lost, and BBR enforced on what the first host sends.
fn path(rate: u32, seed: u64) -> Scenario {
    let rate = format!("{rate} Mbit/s");
    let enforced_at = Some("s1");
    let path =
        LossyDownload { seed, rate: &rate, delay: "89.9 ms", loss: "1 %", enforced_at, ..LossyDownload::default() };
    scenario(&LossyDownload { buffers: Some("32 MB"), ..path }.text())
}

/// A download as seen at its server.
struct Download {
    /// When its own window was full and the receive window was not, and for how long at a time.
    limited: Vec<(Duration, Duration)>,
    /// When it had written all.
    info: Info,
    /// When the client had read all.
    last: Info,
    /// Its host's non-zero counters.
    host: BTreeMap<String, u64>,
    enforcer: Counters,
    received: usize,
}

impl Download {
    fn host(&self, name: &str) -> u64 {
        self.host.get(name).copied().unwrap_or(0)
    }

    /// The enforcer sees each retransmission of the server, and answers that there was no need. Data that the client had acknowledged
    /// by then, in an ACK that the server did not get, is forwarded to the client.
    fn agrees_with_the_enforcer(&self) {
        let (info, counters) = (&self.last, &self.enforcer);
        let again = counters.absorbed + counters.others_forwarded;
        assert_eq!(u64::from(info.total_retrans), again, "{counters:?}");
        let oldest = counters.absorbed_oldest + counters.others_forwarded;
        assert!(oldest >= u64::from(info.total_rto), "{counters:?}");
        let reported = self.host("TCPDSACKRecv") + self.host("TCPDSACKOfoRecv");
        assert_eq!(reported, counters.undos, "{:?}", self.host);
    }
}

/// Linux's own CUBIC sends for so long, as fast as it may. During an outage, nothing that the client sends leaves its host.
fn download(scenario: &Scenario, lasts: Duration, outage: bool) -> Download {
    let work = |network: &emu::Network| {
        let hosts = network.hosts();
        let listener = hosts[0].enter(|| TcpListener::bind((address(0), PORT))).and_then(|it| it).expect("a port");
        let target = SocketAddr::from((address(0), PORT));
        let client = hosts[1].enter(move || TcpStream::connect_timeout(&target, PATIENCE)).and_then(|it| it);
        let (server, _) = listener.accept().expect("a connection waits");
        set_tcp_congestion(&server, "cubic").expect("every kernel has it");
        let began = Instant::now();
        let (limited, info, received) = thread::scope(|scope| {
            let sender = &server;
            let bytes = vec![0; 1 << 16];
            scope.spawn(move || while began.elapsed() < lasts && (&*sender).write_all(&bytes).is_ok() {});
            let receiver = scope.spawn(move || receive(client.expect("it listens")));
            if outage {
                scope.spawn(|| fall_silent(&hosts[1]));
            }
            let limited = watch(&server, began, lasts);
            let info = Info::of(&server).expect("it is open");
            server.shutdown(Shutdown::Both).expect("it is open");
            (limited, info, receiver.join().expect("it does not panic"))
        });
        let last = Info::of(&server).expect("it is still here");
        let read = || std::fs::read_to_string("/proc/thread-self/net/netstat").expect("every host has one");
        let mut host = counters(&hosts[0].enter(read).expect("the host is there"));
        host.retain(|_, n| *n > 0);
        (limited, [info, last], host, received)
    };
    let ((limited, [info, last], host, received), counted) =
        emu::open(scenario, None, work).unwrap_or_else(|error| panic!("{error}"));
    let enforcer = *counted.gates[0].counters();
    println!("{received} bytes; limited {limited:?}; {info:?}; {last:?}; {host:?}; {enforcer:?}");
    Download { limited, info, last, host, enforcer, received }
}

fn receive(mut client: TcpStream) -> usize {
    let mut bytes = vec![0; 1 << 16];
    std::iter::from_fn(|| client.read(&mut bytes).ok().filter(|n| *n > 0)).sum()
}

fn fall_silent(client: &Host) {
    let route = |what: &'static str| {
        let server = address(0).to_string();
        let ip = move || Command::new("ip").args(["route", what, "blackhole", &server]).status();
        let done = client.enter(ip).expect("the host is there").expect("there is an `ip`");
        assert!(done.success(), "{what}");
    };
    thread::sleep(OUTAGE[0]);
    route("add");
    thread::sleep(OUTAGE[1]);
    route("del");
}

/// Records when the server's own window is the limit.
fn watch(server: &TcpStream, began: Instant, lasts: Duration) -> Vec<(Duration, Duration)> {
    let (mut limited, mut since) = (Vec::new(), None::<Instant>);
    while began.elapsed() < lasts {
        let info = Info::of(server).expect("it is open");
        let offered = info.snd_wnd >= (info.unacked + 1) * MSS;
        since = match (info.unacked >= info.snd_cwnd && offered, since) {
            (true, since) => since.or(Some(Instant::now())),
            (false, since) => {
                limited.extend(since.map(|since| (since - began, since.elapsed())));
                None
            }
        };
        thread::sleep(PERIOD);
    }
    limited.extend(since.map(|since| (since - began, since.elapsed())));
    limited
}

#[test]
fn a_linux_servers_window_is_the_limit_for_no_longer_than_an_rtt() {
    let Some(_machine) = machine() else { return };
    let (rate, seconds) = (asked("ENFORCER_MBITS").unwrap_or(RATE), asked("ENFORCER_SECONDS").unwrap_or(8));
    for attempt in 1..=ATTEMPTS {
        let done = download(&path(rate, attempt as u64), Duration::from_secs(seconds), false);
        assert!(done.received > 0 && done.enforcer.retransmitted > 0, "nothing was lost");
        done.agrees_with_the_enforcer();
        let enough = rate * PATH_SEGMENTS_10 / 10 * 2;
        let grown = done.info.ssthresh().is_none_or(|ssthresh| ssthresh >= enough);
        let longest = |grows: bool| {
            let at_a_time = done.limited.iter().filter(|(when, _)| (*when < GROWTH) == grows).map(|(_, lasts)| *lasts);
            at_a_time.max().unwrap_or_default()
        };
        let total: Duration = done.limited.iter().map(|(_, lasts)| lasts).sum();
        let (first, then) = (longest(true), longest(false));
        println!(
            "attempt {attempt}: {total:?}, {first:?} and then {then:?} at most; ssthresh {:?}",
            done.info.ssthresh()
        );
        // retransmissions are lost as well now and then
        if grown && first <= 2 * REPAIR && then <= ROUND_TRIP {
            return;
        }
    }
    panic!("the server's own window was the limit, {ATTEMPTS} times");
}

#[test]
fn a_linux_servers_reactions_to_an_outage_are_counted_and_undone() {
    let Some(_machine) = machine() else { return };
    let done = download(&path(RATE, 1), Duration::from_secs(7), true);
    done.agrees_with_the_enforcer();
    let info = &done.info;
    assert!(info.total_rto > 0, "an outage is longer than its RTO: {info:?}");
    let undone = ["TCPSpuriousRTOs", "TCPFullUndo", "TCPLossUndo", "TCPDSACKUndo"].map(|name| done.host(name));
    assert!(undone.iter().sum::<u64>() > 0, "it undoes its reductions: {:?}", done.host);
    assert!(info.snd_cwnd >= RATE * PATH_SEGMENTS_10 / 10, "and restores its window: {info:?}");
}
