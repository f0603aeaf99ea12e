//! Random bytes instead of CUEs, sent to a running agent.

use crate::world::{THERE, TestOracle, World, cue, reno};
use policy::OracleKey;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, send, socket_with,
};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Instant;
use testkit::{Random, Running, eventually};

const COUNT: u64 = 20_000;
/// One message in this many exceeds the bus's limit, upon which an agent closes the connection.
const LONG_EACH: u64 = 8_000;

/// An Oracle's socket whose sends block while the reader is slow, so that nothing is dropped.
struct Flood {
    listener: OwnedFd,
    agent: OwnedFd,
}

impl Flood {
    fn listen(path: &Path) -> OwnedFd {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        listen(&socket, 1).unwrap();
        socket
    }

    fn send(&mut self, message: &[u8]) {
        while let Err(error) = send(&self.agent, message, SendFlags::NOSIGNAL) {
            assert!(matches!(error, Errno::PIPE | Errno::CONNRESET), "{error}");
            self.agent = accept(&self.listener).unwrap();
        }
    }
}

/// Bytes that the agent must reject: it has seen `replayed`.
fn junk(random: &mut Random, replayed: &[u8], others: &OracleKey) -> Vec<u8> {
    let mut bytes = replayed.to_vec();
    let at = random.below(bytes.len() as u64) as usize;
    match random.below(8) {
        0 => {}
        1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes.truncate(at.max(1)),
        3 => bytes.extend_from_within(at..),
        4 => bytes = others.sign(&cue(random.below(100), reno())),
        _ => bytes = (0..=random.below(300)).map(|_| random.below(256) as u8).collect(),
    }
    bytes
}

fn resident_kb(agent: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn twenty_thousand_byte_strings_on_the_bus_are_rejected_and_counted_in_bounded_memory() {
    let Some(world) = World::new() else { return };
    let mut oracle = TestOracle::new(&world);
    let agent = world.agent(&mut oracle, &[]);
    let replayed = oracle.send(&cue(1, reno()));
    assert!(eventually(|| world.uses(&world.connection(THERE).0, "reno")), "{}", agent.said());
    drop(oracle);

    let listener = Flood::listen(&world.path("oracle.sock"));
    let mut flood = Flood { agent: accept(&listener).unwrap(), listener };
    let (mut random, others) = (Random(8), OracleKey::from_secret([9; 32]));
    let (mut early, began) = (0, Instant::now());
    for i in 0..COUNT {
        if i % LONG_EACH == LONG_EACH / 2 {
            flood.send(&vec![1; bus::MESSAGE_MAX + 1]);
            // what is in transit when the agent closes the connection is lost, so wait for it
            flood.agent = accept(&flood.listener).unwrap();
        }
        flood.send(&junk(&mut random, &replayed, &others));
        if i == COUNT / 10 {
            early = resident_kb(&agent);
        }
    }
    let rejected = || world.status()["report"]["counts"]["rejected"].as_u64();
    assert!(eventually(|| rejected() == Some(COUNT)), "{:?}: {}", rejected(), agent.said());
    let late = resident_kb(&agent);
    println!(
        "{COUNT} byte strings rejected in {:.1} s; memory {early} kB, then {late} kB",
        began.elapsed().as_secs_f64()
    );
    assert!(late < early + 1024, "{early} kB after a tenth, {late} kB after all");
    assert!(agent.said().lines().count() < 60, "the log grows little: {}", agent.said());
    assert_eq!(world.status()["report"]["counts"]["taken"], 1);
    assert!(world.uses(&world.connection(THERE).0, "reno"), "the rule is still in force");

    drop(flood);
    let _ = fs::remove_file(world.path("oracle.sock"));
    let mut oracle = TestOracle::new(&world);
    oracle.wait_for_reports(&agent);
    let fewer = policy::Settings { initial_cwnd: Some(17), ..reno() };
    oracle.send(&cue(2, fewer));
    let is_taken = || world.seen(&world.connection(THERE).0).cwnd == 17;
    assert!(eventually(is_taken), "the next CUE is accepted: {}", agent.said());
    agent.interrupt();
    world.assert_as_before();
}
