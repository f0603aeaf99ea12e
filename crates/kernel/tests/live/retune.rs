//! Real connections that are retuned in the running kernel. Root only.

use crate::support;
use kernel::retune::{Counts, Record, Retuner, Rule, Sessions, Tuning, boot_time, kept, netns_cookie};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::sockopt::{RcvBuf, TcpCongestion};
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{Cgroup, cgroups, eventually, or_skip, talk};

const LONG: Duration = Duration::from_secs(60);

/// The kernel, and the program, attached for all sockets; rules are for one namespace. Or a printed reason why the test is
/// skipped.
fn retuner() -> Option<(support::Exclusive, Retuner)> {
    retuner_with(support::quiet_kernel()?)
}

fn retuner_with(kernel: support::Exclusive) -> Option<(support::Exclusive, Retuner)> {
    Some((kernel, Retuner::attach(or_skip(cgroups())?).unwrap_or_else(|error| panic!("{error}"))))
}

/// Runs `work` in a network namespace of its own, with only a loopback interface.
fn in_a_namespace<T: Send>(work: impl FnOnce(u64) -> T + Send) -> T {
    let body = || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        assert!(Command::new("ip").args(["link", "set", "lo", "mtu", "1500", "up"]).status().unwrap().success());
        work(netns_cookie().unwrap())
    };
    thread::scope(|scope| scope.spawn(body).join().unwrap())
}

fn rule(netns: u64, remote: &str, tuning: Tuning, lifetime: Duration) -> Rule {
    let sessions = Sessions { netns: Some(netns), remote: (remote.parse().unwrap(), 8), port: None };
    Rule { number: 7, sessions, tuning, deadline: boot_time() + lifetime }
}

/// Both ends of a connection over loopback: the one that opened it, the one that accepted.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let active = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    active.set_nodelay(true).unwrap();
    (active, listener.accept().unwrap().0)
}

fn algorithm(socket: &TcpStream) -> String {
    getsockopt(socket, TcpCongestion).unwrap().to_string_lossy().trim_end_matches('\0').to_string()
}

/// Output of `ss` for the connection of `socket`.
fn shown_in_all(socket: &TcpStream) -> String {
    let port = socket.local_addr().unwrap().port();
    let out = Command::new("ss").args(["-Htin", "sport", &port.to_string()]).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A number of it.
fn shown(socket: &TcpStream, key: &str) -> f64 {
    let text = shown_in_all(socket);
    let number = text.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix(':')?.split('/').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {key} in {text}"))
}

#[test]
fn new_connections_get_what_the_rules_say_and_others_do_not() {
    let Some((_kernel, mut retuner)) = retuner() else { return };
    in_a_namespace(|netns| {
        let tuning = Tuning {
            initial_cwnd: Some(20),
            rto_min_us: Some(50_000),
            algorithm: Some("reno".to_string()),
            pacing_rate: Some(1_000_000),
            ..Tuning::default()
        };
        retuner.set(&[rule(netns + 1, "127.0.0.0", tuning.clone(), LONG)]).unwrap();
        let elsewhere = connection();
        assert_ne!((shown(&elsewhere.0, "cwnd"), algorithm(&elsewhere.0).as_str()), (20.0, "reno"));
        retuner.set(&[rule(netns, "10.0.0.0", tuning.clone(), LONG)]).unwrap();
        assert_ne!(algorithm(&connection().0), "reno", "another prefix");
        retuner.set(&[rule(netns, "127.0.0.0", tuning.clone(), Duration::ZERO)]).unwrap();
        assert_ne!(algorithm(&connection().0), "reno", "its deadline has passed");

        retuner.set(&[rule(netns, "127.0.0.0", tuning, LONG)]).unwrap();
        let limited = connection();
        // what it paces at, and its limit
        let text = shown_in_all(&limited.0);
        assert!(text.contains("/8000000bps") && retuner.counts().unwrap().failed == 0, "{text}");

        let first = Tuning { initial_cwnd: Some(20), ..Tuning::default() };
        let second = Tuning { initial_cwnd: Some(30), algorithm: Some("reno".to_string()), ..Tuning::default() };
        retuner.set(&[rule(netns, "127.0.0.0", first, LONG), rule(netns, "127.0.0.0", second, LONG)]).unwrap();
        let both = connection();
        for end in [&both.0, &both.1] {
            assert_eq!((shown(end, "cwnd"), algorithm(end).as_str()), (20.0, "reno"), "the first that has it");
        }
    });
}

#[test]
fn open_connections_follow_and_are_restored_after_the_deadline() {
    let Some((_kernel, mut retuner)) = retuner() else { return };
    in_a_namespace(|netns| {
        retuner.set(&[]).unwrap();
        let open = connection();
        setsockopt(&open.0, TcpCongestion, &OsString::from("cubic")).unwrap();
        talk(&open);
        let rto = shown(&open.0, "rto");
        let tuning = Tuning { rto_min_us: Some(50_000), algorithm: Some("reno".to_string()), ..Tuning::default() };
        // longer than a busy machine needs to look at the connection
        retuner.set(&[rule(netns, "127.0.0.0", tuning, Duration::from_millis(1500))]).unwrap();
        talk(&open);
        assert_eq!(algorithm(&open.0), "reno");
        let tuned = shown(&open.0, "rto");
        assert!(tuned < 100.0 && rto >= 200.0, "{rto} ms, then {tuned} ms");
        let is_restored = || {
            talk(&open);
            algorithm(&open.0) == "cubic"
        };
        assert!(eventually(is_restored), "{}", algorithm(&open.0));
        let Counts { applied, reverted, failed, .. } = retuner.counts().unwrap();
        assert!(
            applied >= 2 && reverted >= 2 && failed == 0,
            "{applied} applied, {reverted} reverted, {failed} failed"
        );
    });
}

sockopt_impl!(
    /// The socket's largest sending rate, bytes a second.
    MaxPacingRate, Both, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64
);
sockopt_impl!(
    /// Its largest receive window, bytes.
    WindowClamp, Both, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32
);

/// TCP_RTO_MIN_US of linux/tcp.h, since 6.15; the libc crate does not have it yet.
const TCP_RTO_MIN_US: libc::c_int = 45;
sockopt_impl!(
    /// The socket's minimum RTO, microseconds.
    LeastTimeOut, GetOnly, libc::IPPROTO_TCP, TCP_RTO_MIN_US, u32
);

#[test]
fn the_kernel_keeps_a_minimum_rto_as_predicted() {
    let Some((_kernel, mut retuner)) = retuner() else { return };
    in_a_namespace(|netns| {
        retuner.set(&[]).unwrap();
        let open = connection();
        let Ok(own) = getsockopt(&open.0, LeastTimeOut) else {
            println!("skipped: this kernel does not report a socket's minimum RTO");
            return;
        };
        assert_eq!(own, 200_000);
        for asked in [1, 2_000, 10_000, 50_001].map(Duration::from_micros) {
            let kept = kept(asked).as_micros() as u32;
            let tuning = Tuning { rto_min_us: Some(kept), ..Tuning::default() };
            retuner.set(&[rule(netns, "127.0.0.0", tuning, LONG)]).unwrap();
            let made = connection();
            assert_eq!([&made.0, &made.1].map(|end| getsockopt(end, LeastTimeOut).unwrap()), [kept; 2], "{asked:?}");
            talk(&made);
            let (rto, rtt) = (shown(&made.0, "rto"), shown(&made.0, "rtt"));
            println!("{asked:?} set, {kept} us kept, RTO {rto} ms at an RTT of {rtt} ms");
            assert!(rto >= f64::from(kept) / 1e3 + rtt, "{rto} ms of {rtt} ms");
        }
        assert_eq!(retuner.counts().unwrap().failed, 0);
    });
}

#[test]
fn an_applications_own_settings_are_restored() {
    const RATE: u64 = 5_000_000;
    const NO_RATE: u64 = u64::MAX;
    const CLAMP: u32 = 30_000;
    let Some((_kernel, mut retuner)) = retuner() else { return };
    in_a_namespace(|netns| {
        retuner.set(&[]).unwrap();
        // a route can set the congestion window's clamp, a program cannot
        let route = "route replace local 127.0.0.1 dev lo table local cwnd lock 40";
        assert!(Command::new("ip").args(route.split(' ')).status().unwrap().success());
        // Linux takes it for connections to an address of which it has metrics
        talk(&connection());
        let limits =
            |socket: &TcpStream| (getsockopt(socket, MaxPacingRate).unwrap(), getsockopt(socket, WindowClamp).unwrap());
        let open = connection();
        // when a buffer grows Linux raises the clamp, also an application's own
        for end in [&open.0, &open.1] {
            setsockopt(end, RcvBuf, &100_000).unwrap();
        }
        talk(&open);
        setsockopt(&open.0, TcpCongestion, &OsString::from("reno")).unwrap();
        setsockopt(&open.0, MaxPacingRate, &RATE).unwrap();
        setsockopt(&open.0, WindowClamp, &CLAMP).unwrap();
        talk(&open);
        let (own, others) = (limits(&open.0), limits(&open.1));
        assert!(own == (RATE, CLAMP) && others.0 == NO_RATE && others.1 > CLAMP, "{own:?}, {others:?}");

        let tuning = Tuning {
            pacing_rate: Some(2_000_000),
            window_clamp: Some(20_000),
            cwnd_clamp: Some(15),
            ..Tuning::default()
        };
        retuner.set(&[rule(netns, "127.0.0.0", tuning.clone(), LONG)]).unwrap();
        talk(&open);
        assert_eq!([&open.0, &open.1].map(limits), [(2_000_000, 20_000); 2]);
        // another rule with the same setting does not change the saved value
        retuner
            .set(&[rule(netns, "127.0.0.0", Tuning { pacing_rate: Some(3_000_000), ..tuning.clone() }, LONG)])
            .unwrap();
        talk(&open);
        let made = connection();
        assert_eq!([&open.0, &made.0, &made.1].map(limits), [(3_000_000, 20_000); 3]);
        let clamped = shown(&open.0, "ssthresh");

        retuner.set(&[]).unwrap();
        talk(&open);
        talk(&made);
        assert_eq!((limits(&open.0), limits(&open.1)), (own, others), "restored");
        let (first, second) = (limits(&made.0), limits(&made.1));
        assert!(
            first.0 == NO_RATE && second.0 == NO_RATE && first.1 > CLAMP && second.1 > CLAMP,
            "{first:?}, {second:?}"
        );
        // Linux sets the threshold of slow start with the clamp of the window, and shows that one
        assert_eq!((clamped, shown(&open.0, "ssthresh")), (15.0, 40.0), "the route's clamp");
        assert_eq!(retuner.counts().unwrap().failed, 0);

        // a limit set while a rule was in force is not removed with the rule
        retuner.set(&[rule(netns, "127.0.0.0", tuning.clone(), LONG)]).unwrap();
        talk(&open);
        setsockopt(&open.0, MaxPacingRate, &(2 * RATE)).unwrap();
        retuner.set(&[rule(netns, "127.0.0.0", tuning, LONG)]).unwrap();
        talk(&open);
        assert_eq!(limits(&open.0).0, 2 * RATE);
    });
}

#[test]
fn an_ended_connection_has_a_record() {
    let Some((_kernel, mut retuner)) = retuner() else { return };
    in_a_namespace(|netns| {
        retuner.set(&[rule(netns, "127.0.0.0", Tuning { initial_cwnd: Some(12), ..Tuning::default() }, LONG)]).unwrap();
        let open = connection();
        let ports = (open.0.local_addr().unwrap().port(), open.0.peer_addr().unwrap().port());
        talk(&open);
        drop(open);
        let mut records: Vec<Record> = Vec::new();
        assert!(eventually(|| {
            retuner.ended(|record| records.push(record)).unwrap();
            records.iter().filter(|record| record.netns == netns).count() == 2
        }));
        let client = records.iter().find(|record| (record.local_port, record.remote_port) == ports).unwrap();
        assert_eq!((client.bytes_acked, client.bytes_received, client.rule), (20_002, 20_001, 7), "{client:?}");
        assert_eq!(client.initial_cwnd, Some(12), "as the kernel has it");
        assert!(client.active && client.ended > client.began && client.data_segs_out == 20 && client.min_rtt_us > 0);
        assert_eq!(client.remote, "127.0.0.1".parse::<std::net::IpAddr>().unwrap());
    });
}

#[test]
fn an_algorithm_that_needs_ecn_is_withheld_without_ecn() {
    let Some((_kernel, mut retuner)) = retuner() else { return };
    in_a_namespace(|netns| {
        retuner.set(&[]).unwrap();
        let open = connection();
        talk(&open);
        let before = algorithm(&open.0);
        let tuning = Tuning { algorithm: Some("reno".to_string()), needs_ecn: true, ..Tuning::default() };
        retuner.set(&[rule(netns, "127.0.0.0", tuning, LONG)]).unwrap();
        talk(&open);
        assert_eq!(algorithm(&open.0), before);
        assert!(retuner.counts().unwrap().ecn_refused >= 1);
    });
}

#[test]
fn earlier_connections_are_adopted() {
    let Some(kernel) = support::quiet_kernel() else { return };
    in_a_namespace(|netns| {
        let open = connection();
        talk(&open);
        let before = algorithm(&open.0);
        let Some((_kernel, mut retuner)) = retuner_with(kernel) else { return };
        let tuning = Tuning { algorithm: Some("reno".to_string()), ..Tuning::default() };
        retuner.set(&[rule(netns, "127.0.0.0", tuning, LONG)]).unwrap();
        talk(&open);
        assert_eq!(algorithm(&open.0), before, "the iterator has not run");
        retuner.adopt().unwrap();
        assert_eq!((algorithm(&open.0).as_str(), algorithm(&open.1).as_str()), ("reno", "reno"), "idle as they are");
        retuner.set(&[]).unwrap();
        assert_eq!(algorithm(&open.0), "reno");
        talk(&open);
        assert_eq!(algorithm(&open.0), before, "used again");
    });
}

#[test]
fn adopting_reaches_the_cgroups_own_sockets_by_their_servers_port() {
    let Some(_kernel) = support::quiet_kernel() else { return };
    let Some(root) = or_skip(cgroups()) else { return };
    let own = Cgroup::new("test").expect("they are mounted");
    let mut retuner = Retuner::attach(own.path()).unwrap_or_else(|error| panic!("{error}"));
    in_a_namespace(|netns| {
        let open = connection();
        let before = algorithm(&open.0);
        let tuning = Tuning { algorithm: Some("reno".to_string()), ..Tuning::default() };
        retuner.set(&[rule(netns, "127.0.0.0", tuning.clone(), LONG)]).unwrap();
        retuner.adopt().unwrap();
        assert_eq!(algorithm(&open.0), before, "its cgroup is another one");
        drop(retuner);

        let mut everywhere = Retuner::attach(root).unwrap_or_else(|error| panic!("{error}"));
        let port = open.0.peer_addr().unwrap().port();
        let with = |port| {
            let all = rule(netns, "127.0.0.0", tuning.clone(), LONG);
            Rule { sessions: Sessions { port: Some(port), ..all.sessions }, ..all }
        };
        everywhere.set(&[with(port ^ 1)]).unwrap();
        everywhere.adopt().unwrap();
        assert_eq!(algorithm(&open.0), before, "another port");
        everywhere.set(&[with(port)]).unwrap();
        everywhere.adopt().unwrap();
        assert_eq!((algorithm(&open.0).as_str(), algorithm(&open.1).as_str()), ("reno", "reno"));
    });
}

/// A folder of bpffs for pinned files; removed after the test, with the folder above if it is empty.
struct Pinned(&'static Path);

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = Retuner::remove(self.0);
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

#[test]
fn a_pinned_program_is_taken_over_with_its_connections_settings() {
    let Some(_kernel) = support::quiet_kernel() else { return };
    let Some(cgroup) = or_skip(cgroups()) else { return };
    let _pins = kernel::Pins::open().unwrap();
    let folder = Path::new("/sys/fs/bpf/opentcp/agent-test");
    let _files = Pinned(folder);
    Retuner::remove(folder).unwrap();
    in_a_namespace(|netns| {
        let mut first = Retuner::attach_for_good(cgroup, folder).unwrap();
        let tuning = Tuning { algorithm: Some("reno".to_string()), ..Tuning::default() };
        first.set(&[rule(netns, "127.0.0.0", tuning.clone(), LONG)]).unwrap();
        let open = connection();
        assert_eq!(algorithm(&open.0), "reno");
        drop(first);
        assert_eq!(algorithm(&connection().0), "reno", "it stays");
        let mut second = Retuner::attach_for_good(cgroup, folder).unwrap();
        assert_eq!(algorithm(&connection().0), "reno", "with its rules");
        second.set(&[]).unwrap();
        talk(&open);
        assert_ne!(algorithm(&open.0), "reno", "the second restores what the first has set");
        second.set(&[rule(netns, "127.0.0.0", tuning, LONG)]).unwrap();
        drop(second);
        Retuner::end_rules(folder).unwrap();
        assert_ne!(algorithm(&connection().0), "reno", "rules can be ended without loading anything");
        assert!(Retuner::remove(folder).unwrap() && !Retuner::remove(folder).unwrap());
        assert!(eventually(|| algorithm(&connection().0) != "reno"));
    });
}

#[test]
fn a_thousand_active_connections_change_over_and_lose_no_byte() {
    const CONNECTIONS: usize = 1000;
    const WORKERS: usize = 4;
    const BLOCK: usize = 1000;
    const AT_ONCE: Duration = Duration::from_millis(100);
    const ATTEMPTS: usize = 10;
    let Some((_kernel, mut retuner)) = retuner() else { return };
    support::allow_open_files(2 * CONNECTIONS as u64 + 500);
    in_a_namespace(|netns| {
        retuner.set(&[]).unwrap();
        let mut open: Vec<(TcpStream, TcpStream)> = (0..CONNECTIONS).map(|_| connection()).collect();
        let over = AtomicBool::new(false);
        let blocks = AtomicUsize::new(0);
        // each worker writes to all of its connections before it reads any, so that data is always in flight
        let work = |chunk: &mut [(TcpStream, TcpStream)]| {
            let mut round = 0;
            let mut bytes = [0; BLOCK];
            while !over.load(Ordering::Relaxed) {
                for (i, (source, _)) in chunk.iter_mut().enumerate() {
                    (0..BLOCK).for_each(|at| bytes[at] = pattern(i, round, at));
                    source.write_all(&bytes).unwrap();
                }
                for (i, (_, sink)) in chunk.iter_mut().enumerate() {
                    sink.read_exact(&mut bytes).unwrap();
                    let right = (0..BLOCK).all(|at| bytes[at] == pattern(i, round, at));
                    assert!(right, "connection {i}, block {round}");
                    blocks.fetch_add(1, Ordering::Relaxed);
                }
                round += 1;
            }
        };
        let took = thread::scope(|scope| {
            for chunk in open.chunks_mut(CONNECTIONS / WORKERS) {
                scope.spawn(|| work(chunk));
            }
            let flowing = |than| eventually(|| blocks.load(Ordering::Relaxed) > than);
            assert!(flowing(CONNECTIONS));
            let stop = Stop(&over);
            // repeated until it was quick enough once: other programs use the machine, too
            let mut took = [Duration::MAX; 2];
            for _ in 0..ATTEMPTS {
                let mut change = |rules: &[Rule], is_over: &dyn Fn(usize) -> bool| {
                    let began = Instant::now();
                    retuner.set(rules).unwrap();
                    retuner.adopt().unwrap();
                    let took = began.elapsed();
                    let reno = kernel::sockets_by_algorithm().unwrap().get("reno").copied().unwrap_or(0);
                    assert!(is_over(reno), "{reno} of {} have reno", 2 * CONNECTIONS);
                    took
                };
                let tuning = Tuning { algorithm: Some("reno".to_string()), ..Tuning::default() };
                let there = change(&[rule(netns, "127.0.0.0", tuning, LONG)], &|reno| reno == 2 * CONNECTIONS);
                assert!(flowing(blocks.load(Ordering::Relaxed) + CONNECTIONS), "data still flows");
                let back = change(&[], &|reno| reno == 0);
                assert!(flowing(blocks.load(Ordering::Relaxed) + CONNECTIONS), "data still flows");
                println!("{CONNECTIONS} active connections changed over in {there:.1?} and back in {back:.1?}");
                took = [took[0].min(there), took[1].min(back)];
                if took.iter().all(|took| *took < AT_ONCE) {
                    break;
                }
            }
            drop(stop);
            took
        });
        assert!(took.iter().all(|took| *took < AT_ONCE), "there and back in {took:?}");
        assert_eq!(retuner.counts().unwrap().failed, 0);
        println!("{} blocks of {BLOCK} bytes were right", blocks.load(Ordering::Relaxed));
    });
}

/// Ends the workers when dropped, also by a failing test.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Pseudo-random: a block that is lost, repeated or of another connection does not match.
fn pattern(connection: usize, round: usize, at: usize) -> u8 {
    let number = (connection << 40 | round << 12 | at) as u64;
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}
