//! Losses, steps of the wall clock, and many connections.

use crate::lossy;
use crate::world::{HERE, Start, THERE, TestOracle, World, comes_within, cue, guarded, reno};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use policy::{Cue, Settings};
use std::env;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{WallClock, eventually};
use units::{Rate, Time};

#[test]
fn a_guard_reverts_within_a_second_of_losses() {
    comes_within(Duration::from_secs(1), after_losses_begin);
}

/// Time from the start of 1 % losses until the guard reverts its rule; its limit is passed a moment after the start.
fn after_losses_begin() -> Option<Duration> {
    let world = World::new()?;
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let (mut source, mut sink) = world.connection(THERE);
    let over = AtomicBool::new(false);
    // a rate of 17,000 segments a second, at which a busy machine loses nothing by itself
    let steady = Settings { max_pacing_rate: Some(Rate::from_bps(200_000_000)), ..reno() };
    oracle.send(&guarded(cue(1, steady)));
    let idle = world.connection(THERE);
    let set = eventually(|| world.uses(&idle.0, "reno") && world.uses(&source, "reno"));
    let took = thread::scope(|scope| {
        scope.spawn(|| {
            let block = vec![0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                source.write_all(&block).unwrap();
            }
            let _ = source.shutdown(std::net::Shutdown::Write);
        });
        scope.spawn(|| {
            let mut block = vec![0; 1 << 16];
            while sink.read(&mut block).is_ok_and(|length| length > 0) {}
        });
        // two seconds without a loss: the guard has data and must not revert
        thread::sleep(Duration::from_secs(2));
        let calm = world.uses(&idle.0, "reno");
        world.tc_there("qdisc add dev eth0 clsact");
        let object = world.path("path.o");
        lossy::compile(&object);
        let object = object.display();
        let began = Instant::now();
        world.tc_there(&format!("filter add dev eth0 ingress bpf direct-action object-file {object} section tc"));
        let reverted = eventually(|| !world.uses(&idle.0, "reno"));
        let took = began.elapsed();
        println!("losses of 1 %, guard at 0.1 %: reverted after {:.0} ms", took.as_secs_f64() * 1e3);
        world.tc_there("qdisc del dev eth0 clsact");
        over.store(true, Ordering::Relaxed);
        assert!(set && calm && reverted, "{set} {calm} {reverted}: {} {}", world.status(), agent.said());
        took
    });
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.counts.reverted, report.in_force.len()), (1, 0), "{}", agent.said());
    assert!(!world.ip("route show").contains("initcwnd"), "the routes, too");
    agent.interrupt();
    world.assert_as_before();
    Some(took)
}

#[test]
fn steps_of_the_wall_clock_change_nothing() {
    const DAY: i64 = 86_400;
    let Some(world) = World::new() else { return };
    let clock = WallClock::new(world.place.path());
    let environment = clock.environment();
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent_as(Start { environment: &environment, ..Start::default() }, &mut oracle, &[]);
    clock.forget_reads();
    let idle = world.connection(THERE);
    let lifetime = Duration::from_secs(6);
    let began = Instant::now();
    oracle.send(&Cue { lifetime: Time::from_secs(6), ..cue(1, reno()) });
    assert!(eventually(|| world.uses(&idle.0, "reno")), "{}", agent.said());
    clock.set(DAY);
    let report = oracle.wait_for_reports(&agent);
    assert!(
        report.in_force.len() == 1 && world.uses(&idle.0, "reno"),
        "a day later it would be over: {}",
        agent.said()
    );
    assert!(!clock.is_read(), "the agent does not read the wall clock");
    clock.set(-DAY);
    assert!(eventually(|| !world.uses(&idle.0, "reno")), "by a clock a day behind it would stay: {}", agent.said());
    assert!(began.elapsed() > lifetime, "{:?}", began.elapsed());
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.counts.expired, report.in_force.len()), (1, 0), "{}", agent.said());
    assert!(!clock.is_read(), "nor on expiry");
    agent.interrupt();
    world.assert_as_before();
}

const MANY: usize = 10_000;
/// Times that each connection carries bytes.
const ROUNDS: usize = 3;
const PORT: u16 = 5000;
const FAR_END: &str = "OPENTCP_TEST_FAR_END";

/// The bytes of one connection.
fn bytes_of(number: usize) -> [u8; 64] {
    std::array::from_fn(|i| (number.wrapping_mul(0x9e37_79b9) >> (i % 24)) as u8 ^ i as u8)
}

/// A process may not have as many files as there are ends, so this test runs as a process of its own that echoes what it receives.
/// Without [`FAR_END`] in its environment it does nothing.
#[test]
fn the_far_end_of_ten_thousand_connections() {
    if env::var_os(FAR_END).is_none() {
        return;
    }
    allow_files();
    let listener = TcpListener::bind((HERE, PORT)).unwrap();
    let mut open: Vec<TcpStream> = (0..MANY).map(|_| listener.accept().unwrap().0).collect();
    for _ in 0..ROUNDS {
        for (number, socket) in open.iter_mut().enumerate() {
            let mut arrived = [0; 64];
            socket.read_exact(&mut arrived).unwrap();
            assert!(arrived == bytes_of(number), "connection {number}");
            socket.write_all(&arrived).unwrap();
        }
    }
    // the near end closes first
    for socket in &mut open {
        let _ = socket.read(&mut [0]);
    }
}

/// Whether this many connections are allowed.
fn allow_files() -> bool {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let wanted = MANY as u64 + 500;
    soft >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_ok()
}

#[test]
fn a_host_with_ten_thousand_connections_switches_all_of_them_and_restores_them() {
    let Some(world) = World::new() else { return };
    if !allow_files() {
        eprintln!("skipped: {MANY} open files are not allowed here");
        return;
    }
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let far_end = ["--exact", "faults::the_far_end_of_ten_thousand_connections"];
    let mut far_end = world.here(|| {
        Command::new(env::current_exe().unwrap()).args(far_end).env(FAR_END, "").stdout(Stdio::null()).spawn().unwrap()
    });
    let mut open = Vec::with_capacity(MANY);
    world.here(|| {
        let begin = || TcpStream::connect((HERE, PORT)).map(|socket| open.push(socket)).is_ok();
        assert!(eventually(begin), "the far end listens");
        open.resize_with(MANY, || TcpStream::connect((HERE, PORT)).unwrap());
    });
    let mut carry_all = || {
        for (number, socket) in open.iter_mut().enumerate() {
            let mut back = [0; 64];
            socket.write_all(&bytes_of(number)).unwrap();
            socket.read_exact(&mut back).unwrap();
            assert!(back == bytes_of(number), "connection {number}");
        }
    };
    carry_all();
    let using = |algorithm: &str| {
        let all = world.here(|| kernel::connections().unwrap());
        all.iter().filter(|connection| connection.algorithm == algorithm).count()
    };
    let before = world.before_algorithm();
    // including that of the test's world
    let all = using(before);
    assert!(all > 2 * MANY, "{all}");
    for (way, from, to) in [("over", before, "reno"), ("back", "reno", before)] {
        let began = Instant::now();
        let set = if way == "over" { reno() } else { Settings { cc: None, ..reno() } };
        oracle.send(&cue(if way == "over" { 1 } else { 2 }, set));
        assert!(eventually(|| using(to) == all), "{way}: {} of {all}", using(to));
        println!("{all} sockets {way} within {:.0} ms of the CUE", began.elapsed().as_secs_f64() * 1e3);
        assert_eq!(using(from), 0, "{way}");
        carry_all();
    }
    drop(open);
    assert!(far_end.wait().unwrap().success(), "the far end received the right bytes");
    agent.interrupt();
    world.assert_as_before();
}
