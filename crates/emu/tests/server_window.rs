//! Whether the window of a real server, Linux's own CUBIC, stands in the way of the algorithm that is enforced over it, on a path of
//! 180 ms that loses packets; and that what it does about losses that were repaired without it is counted. Root only; one test at a
//! time on a machine.
//!
//! `ENFORCER_SECONDS` asks for longer downloads, `ENFORCER_MBITS` for another rate.

mod run_support;

use emu::address::address;
use emu::hosts::Host;
use emu::info::Info;
use enforcer::Counters;
use run_support::{ATTEMPTS, machine};
use rustix::net::sockopt::set_tcp_congestion;
use scenario::Scenario;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::{LossyDownload, asked, scenario};

const PORT: u16 = 80;
const PATIENCE: Duration = Duration::from_secs(10);
const MSS: u32 = 1448;
/// Between two looks at the server.
const PERIOD: Duration = Duration::from_millis(2);
/// What a path of 1 Mbit/s carries in 180 ms, segments with their headers, times ten.
const PATH_SEGMENTS_10: u32 = 149;
/// Mbit/s, if nothing else is asked for.
const RATE: u32 = 10;
/// With the whole queue.
const ROUND_TRIP: Duration = Duration::from_millis(180 + 60);
/// The longest repair of a loss: a round trip, and a quarter of one to tell it from reordering (RFC 8985 6.2).
const REPAIR: Duration = Duration::from_millis(285);
/// The server's first slow start: until then its window grows no faster than the client acknowledges, which a repair puts off.
const GROWTH: Duration = Duration::from_secs(4);

/// When the client falls silent, where it does, and for how long.
const OUTAGE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(2)];

/// 180 ms at this rate, of which 1 % of the data is lost, and BBR enforced on what the first host sends.
fn path(rate: u32, seed: u64) -> Scenario {
    let rate = format!("{rate} Mbit/s");
    let enforced_at = Some("s1");
    let path =
        LossyDownload { seed, rate: &rate, delay: "89.9 ms", loss: "1 %", enforced_at, ..LossyDownload::default() };
    scenario(&LossyDownload { buffers: Some("32 MB"), ..path }.text())
}

/// What a download was like at its server.
struct Download {
    /// When it had room in the window that it was offered, and none in its own, and for how long at a time.
    limited: Vec<(Duration, Duration)>,
    /// As it had written all.
    info: Info,
    /// As the client had read all.
    last: Info,
    /// Its host's counters, those that are not 0.
    host: BTreeMap<String, u64>,
    enforcer: Counters,
    received: usize,
}

impl Download {
    fn host(&self, name: &str) -> u64 {
        self.host.get(name).copied().unwrap_or(0)
    }

    /// The enforcer sees each packet that the server sends again, and tells it that there was no need; what the client had acknowledged
    /// by then, though the server was not told, goes on to the client.
    fn says_the_same_as_the_enforcer(&self) {
        let (info, counters) = (&self.last, &self.enforcer);
        let again = counters.absorbed + counters.others_forwarded;
        assert_eq!(u64::from(info.total_retrans), again, "{counters:?}");
        let oldest = counters.absorbed_oldest + counters.others_forwarded;
        assert!(oldest >= u64::from(info.total_rto), "{counters:?}");
        let told = self.host("TCPDSACKRecv") + self.host("TCPDSACKOfoRecv");
        assert_eq!(told, counters.undos, "{:?}", self.host);
    }
}

/// Linux's own CUBIC sends for so long, as fast as it may. With an outage, nothing that the client sends leaves its host meanwhile.
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
        (limited, [info, last], counts(&hosts[0].enter(read).expect("the host is there")), received)
    };
    let ((limited, [info, last], host, received), counted) =
        emu::open(scenario, None, work).unwrap_or_else(|error| panic!("{error}"));
    let enforcer = *counted.gate.expect("there is an enforcer").counters();
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

/// Notes when the server's own window is in the way.
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

/// Of lines of names, each followed by one of numbers.
fn counts(netstat: &str) -> BTreeMap<String, u64> {
    let lines: Vec<Vec<&str>> = netstat.lines().map(|line| line.split_whitespace().collect()).collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| pair[0].iter().zip(&pair[1]));
    pairs.filter_map(|(name, n)| Some((name.to_string(), n.parse().ok()?))).filter(|(_, n)| *n > 0).collect()
}

#[test]
fn the_window_of_a_linux_server_is_in_the_way_for_no_longer_than_a_round_trip() {
    let Some(_machine) = machine() else { return };
    let (rate, seconds) = (asked("ENFORCER_MBITS").unwrap_or(RATE), asked("ENFORCER_SECONDS").unwrap_or(8));
    for attempt in 1..=ATTEMPTS {
        let done = download(&path(rate, attempt as u64), Duration::from_secs(seconds), false);
        assert!(done.received > 0 && done.enforcer.retransmitted > 0, "nothing was lost");
        done.says_the_same_as_the_enforcer();
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
        // what is sent again is lost as well now and then
        if grown && first <= 2 * REPAIR && then <= ROUND_TRIP {
            return;
        }
    }
    panic!("the server's own window was the limit, {ATTEMPTS} times");
}

#[test]
fn what_a_linux_server_does_about_an_outage_is_counted_and_taken_back() {
    let Some(_machine) = machine() else { return };
    let done = download(&path(RATE, 1), Duration::from_secs(7), true);
    done.says_the_same_as_the_enforcer();
    let info = &done.info;
    assert!(info.total_rto > 0, "an outage is longer than its time-out: {info:?}");
    let undone = ["TCPSpuriousRTOs", "TCPFullUndo", "TCPLossUndo", "TCPDSACKUndo"].map(|name| done.host(name));
    assert!(undone.iter().sum::<u64>() > 0, "it takes back what it did: {:?}", done.host);
    assert!(info.snd_cwnd >= RATE * PATH_SEGMENTS_10 / 10, "and has its window again: {info:?}");
}
