//! Losses, a wall clock that is set, and many connections.

use crate::lossy;
use crate::world::{HERE, THERE, TestOracle, World, cue, eventually, guarded, reno};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{Backlog, listen};
use policy::{Cue, Settings};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use units::{Rate, Time};

#[test]
fn a_guard_reverts_within_a_second_of_losses() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let (mut source, mut sink) = world.connection(THERE);
    let over = AtomicBool::new(false);
    // a rate at which a busy machine loses nothing by itself, 17,000 segments a second, before anything is sent
    let steady = Settings { max_pacing_rate: Some(Rate::from_bps(200_000_000)), ..reno() };
    oracle.send(&guarded(cue(1, steady)));
    let idle = world.connection(THERE);
    let set = eventually(|| world.uses(&idle.0, "reno") && world.uses(&source, "reno"));
    thread::scope(|scope| {
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
        // two seconds without a loss: the guard has something to look at, and holds still
        thread::sleep(Duration::from_secs(2));
        let calm = world.uses(&idle.0, "reno");
        world.tc_there("qdisc add dev eth0 clsact");
        let object = world.path("path.o");
        lossy::compile(&object);
        let object = object.display();
        let began = Instant::now();
        world.tc_there(&format!("filter add dev eth0 ingress bpf direct-action object-file {object} section tc"));
        let reverted = eventually(|| !world.uses(&idle.0, "reno"));
        println!("losses of 1 %, guard at 0.1 %: reverted after {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
        world.tc_there("qdisc del dev eth0 clsact");
        over.store(true, Ordering::Relaxed);
        assert!(set && calm && reverted, "{set} {calm} {reverted}: {} {}", world.status(), agent.said());
    });
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.counts.reverted, report.in_force.len()), (1, 0), "{}", agent.said());
    assert!(!world.ip("route show").contains("initcwnd"), "the routes, too");
    agent.stop();
    world.assert_as_before();
}

/// A wall clock that can be set for one process: time namespaces have none, and the machine's is everybody's.
fn wall_clock(world: &World) -> [(&'static str, PathBuf); 2] {
    let library = world.path("clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agent/clock.c");
    let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"];
    let done = Command::new("cc").args(flags).arg(&library).arg(source).status();
    assert!(done.is_ok_and(|status| status.success()), "the build has found a C compiler");
    fs::write(world.path("wall"), "0").unwrap();
    [("LD_PRELOAD", library), ("WALL_CLOCK", world.path("wall"))]
}

fn true_time() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

#[test]
fn steps_of_the_wall_clock_move_nothing() {
    const DAY: i64 = 86_400;
    let Some(world) = World::new() else { return };
    let environment = wall_clock(&world);
    let read = world.path("wall.read");
    let date = || {
        let mut command = Command::new("date");
        command.arg("+%s").envs(environment.iter().map(|(name, value)| (name, value)));
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    let set_wall = |by: i64| {
        fs::write(world.path("wall"), by.to_string()).unwrap();
        let wrong_by = date() - true_time();
        assert!((by - 60..=by + 60).contains(&wrong_by), "other programs see it: {wrong_by} s");
        fs::remove_file(&read).expect("and it is seen that they look");
    };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent_with(&mut oracle, &[], &environment);
    let _ = fs::remove_file(&read);
    let idle = world.connection(THERE);
    let lifetime = Duration::from_secs(6);
    let began = Instant::now();
    oracle.send(&Cue { lifetime: Time::from_secs(6), ..cue(1, reno()) });
    assert!(eventually(|| world.uses(&idle.0, "reno")), "{}", agent.said());
    set_wall(DAY);
    let report = oracle.wait_for_reports(&agent);
    assert!(
        report.in_force.len() == 1 && world.uses(&idle.0, "reno"),
        "a day later it would be over: {}",
        agent.said()
    );
    assert!(!read.exists(), "the agent does not look at the wall clock");
    set_wall(-DAY);
    assert!(eventually(|| !world.uses(&idle.0, "reno")), "a day earlier it would go on: {}", agent.said());
    assert!(began.elapsed() > lifetime, "{:?}", began.elapsed());
    let report = oracle.wait_for_reports(&agent);
    assert_eq!((report.counts.expired, report.in_force.len()), (1, 0), "{}", agent.said());
    assert!(!read.exists(), "nor does it then");
    agent.stop();
    world.assert_as_before();
}

#[test]
fn a_host_with_ten_thousand_connections_changes_over_and_back() {
    const COUNT: usize = 10_000;
    const EACH: usize = 2000;
    let Some(world) = World::new() else { return };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let wanted = COUNT as u64 + 500;
    if soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_err() {
        eprintln!("skipped: {wanted} open files are not allowed here");
        return;
    }
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    // nobody accepts them: they are open all the same, and take one descriptor each instead of two
    let listeners: Vec<TcpListener> =
        world.here(|| (0..COUNT / EACH).map(|_| TcpListener::bind((HERE, 0)).unwrap()).collect());
    let open: Vec<TcpStream> = world.here(|| {
        let of = |listener: &TcpListener| {
            listen(listener, Backlog::new(EACH as i32 + 10).unwrap()).unwrap();
            let address = listener.local_addr().unwrap();
            (0..EACH).map(move |_| TcpStream::connect(address).unwrap())
        };
        listeners.iter().flat_map(of).collect()
    });
    let using = |algorithm: &str| {
        let all = world.here(|| kernel::connections().unwrap());
        all.iter().filter(|connection| connection.algorithm == algorithm).count()
    };
    let before = world.seen(&open[0]).algorithm;
    assert!(using(&before) >= 2 * COUNT);
    for (way, algorithm) in [("over", "reno"), ("back", before.as_str())] {
        let began = Instant::now();
        let set = if way == "over" { reno() } else { Settings { cc: None, ..reno() } };
        oracle.send(&cue(if way == "over" { 1 } else { 2 }, set));
        assert!(eventually(|| using(algorithm) >= 2 * COUNT), "{way}: {} of {}", using(algorithm), 2 * COUNT);
        println!("{} sockets {way} within {:.0} ms of the CUE", 2 * COUNT, began.elapsed().as_secs_f64() * 1e3);
    }
    drop(open);
    agent.stop();
    world.assert_as_before();
}
