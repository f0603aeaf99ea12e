//! An enforcer with a thousand flows is killed, restarted, and killed again.
//!
//! Its memory is lost with it: packets in the rings between it and the kernel, and those that it had buffered. So two things are measured
//! after each kill. The network's silence is the longest time in which no byte arrived anywhere: the time until the bridge carries
//! the traffic. A flow's silence is the longest time between two arrivals of that flow; it includes the recovery of its losses by the
//! sender's own TCP.

use crate::byte;
use crate::world::World;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{PATIENCE, eventually};

/// Twenty packets in flight at 200,000 bytes a second: the enforcer buffers nearly all that the server may send.
pub const SLOW: &str = r#"#include "tcp.h"
CC_HOOK(void, slow_init, struct sock *sk)
{
	sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = 200000;
	tcp_sk(sk)->snd_cwnd = 20;
}
CC_HOOK(void, slow_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	(void)ack, (void)flag, (void)rs;
	slow_init(sk);
}
CC_HOOK(u32, slow_ssthresh, struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}
CC_HOOK(u32, slow_undo_cwnd, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}
CC_INFO(slow, .title = "Slow", .environment = "a test", .reference = "none", .category = CC_LOSS_BASED, .measures = CC_MEASURES_LOSS);
CC_OPS(slow, .init = slow_init, .ssthresh = slow_ssthresh, .cong_control = slow_cong_control, .undo_cwnd = slow_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED);
"#;
const SLOW_PORT: u16 = 7001;
/// The enforcer's rules for these flows.
pub const SLOW_RULES: [&str; 4] = ["--rule", "slow.c port=7001", "--rule", "bbr"];
/// How many there are.
pub const FLOWS: usize = 1000;
/// Interval of packets of a steady flow.
const PERIOD: Duration = Duration::from_millis(20);
const PIECE: usize = 1000;
/// Limit of a network's silence.
const GAP: Duration = Duration::from_millis(100);
/// Arrivals are observed for this long after a kill.
const WATCHED: Duration = Duration::from_secs(2);

/// A flow's traffic while the enforcer is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The server sends a packet each [`PERIOD`].
    Steady,
    /// The client does.
    Upwards,
    /// The server sends as much as it may, and the enforcer forwards it slowly.
    Slow,
    /// Nothing, before the end.
    Idle,
}

impl Kind {
    /// The kind of the flow with this number: of twenty 11, 4, 1 and 4.
    fn of(flow: usize) -> Kind {
        match flow % 20 {
            0..11 => Kind::Steady,
            11..15 => Kind::Upwards,
            15 => Kind::Slow,
            _ => Kind::Idle,
        }
    }
}

/// A flow's arrivals.
struct Arrived {
    bytes: usize,
    at: Instant,
    /// The longest time between two arrivals since the observation began.
    silence: Duration,
}

/// All flows' arrivals.
struct Watch {
    flows: Vec<Arrived>,
    at: Instant,
    silence: Duration,
    /// The longest times for which this process itself neither sent nor received.
    pause: Duration,
}

impl Watch {
    fn new(flows: usize) -> Watch {
        let at = Instant::now();
        let arrived = || Arrived { bytes: 0, at, silence: Duration::ZERO };
        Watch { flows: (0..flows).map(|_| arrived()).collect(), at, silence: Duration::ZERO, pause: Duration::ZERO }
    }

    fn begin(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.silence = Duration::ZERO);
        (self.silence, self.pause) = (Duration::ZERO, Duration::ZERO);
    }

    fn arrived(&mut self, flow: usize, bytes: usize) {
        let now = Instant::now();
        self.silence = self.silence.max(now - self.at);
        self.at = now;
        let flow = &mut self.flows[flow];
        flow.silence = flow.silence.max(now - flow.at);
        flow.at = now;
        flow.bytes += bytes;
    }

    /// The silences of flows of a kind, ascending; one that has not ended counts with its length so far.
    fn silences(&self, kind: Kind) -> Vec<Duration> {
        let of = self.flows.iter().enumerate().filter(|(i, _)| Kind::of(*i) == kind);
        let mut all: Vec<Duration> = of.map(|(_, flow)| flow.silence.max(flow.at.elapsed())).collect();
        all.sort_unstable();
        all
    }
}

/// The flows, and the threads' common state.
pub struct Flows {
    sent: Vec<AtomicU64>,
    watch: Mutex<Watch>,
    /// Sending stops, except one message for idle flows.
    ending: AtomicBool,
    ended: AtomicBool,
}

impl Flows {
    /// Sends each flow's traffic, until the end.
    fn send(&self, senders: &mut [TcpStream]) {
        let mut next = Instant::now();
        loop {
            let ending = self.ending.load(Ordering::Relaxed);
            for (i, stream) in senders.iter_mut().enumerate() {
                let pieces = match Kind::of(i) {
                    Kind::Idle => usize::from(ending),
                    _ if ending => 0,
                    Kind::Slow => 20,
                    Kind::Steady | Kind::Upwards => 1,
                };
                let sent = self.sent[i].load(Ordering::Relaxed) as usize;
                let bytes: Vec<u8> = (sent..sent + pieces * PIECE).map(|at| byte(i + at)).collect();
                match stream.write(&bytes) {
                    Ok(n) => _ = self.sent[i].fetch_add(n as u64, Ordering::Relaxed),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("flow {i}, {:?}: {error}", Kind::of(i)),
                }
            }
            if ending {
                return;
            }
            next += PERIOD;
            thread::sleep(next.saturating_duration_since(Instant::now()));
            let late = next.elapsed();
            let mut watch = self.watch.lock().expect("no thread has panicked");
            watch.pause = watch.pause.max(late);
            next += late;
        }
    }

    /// Reads and verifies what arrives, until the end.
    fn receive(&self, receivers: &mut [TcpStream]) {
        let mut buffer = vec![0; 65_536];
        while !self.ended.load(Ordering::Relaxed) {
            let mut fds: Vec<PollFd<'_>> =
                receivers.iter().map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN)).collect();
            poll(&mut fds, PollTimeout::from(10_u8)).expect("sockets can be polled");
            let readable: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
            let began = Instant::now();
            for (i, stream) in receivers.iter_mut().enumerate().filter(|(i, _)| readable[*i]) {
                let n = stream.read(&mut buffer).unwrap_or_else(|error| panic!("flow {i}, {:?}: {error}", Kind::of(i)));
                assert!(n > 0, "flow {i}, {:?}, ends", Kind::of(i));
                let mut watch = self.watch.lock().expect("no thread has panicked");
                let at = i + watch.flows[i].bytes;
                assert!(buffer[..n].iter().enumerate().all(|(k, b)| *b == byte(at + k)), "flow {i}: wrong bytes");
                watch.arrived(i, n);
            }
            let mut watch = self.watch.lock().expect("no thread has panicked");
            watch.pause = watch.pause.max(began.elapsed());
        }
    }

    /// Whether each flow of a kind has received something since `then`.
    fn have_gone_on(&self, kind: Kind, then: Instant) -> bool {
        let watch = self.watch.lock().expect("no thread has panicked");
        watch.flows.iter().enumerate().all(|(i, flow)| Kind::of(i) != kind || flow.at > then)
    }

    /// Runs `act`, and prints how long arrivals paused after it: less than [`GAP`] where this process had the CPU.
    pub fn silences_after(&self, what: &str, act: impl FnOnce()) {
        let (silence, pause) = self.silence_after(what, act);
        assert!(silence < GAP + pause, "{silence:?}");
    }

    /// The same, and returns for how long nothing arrived, and for how long this process paused.
    pub fn silence_after(&self, what: &str, act: impl FnOnce()) -> (Duration, Duration) {
        self.watch.lock().expect("no thread has panicked").begin();
        act();
        thread::sleep(WATCHED);
        let then = Instant::now();
        for kind in [Kind::Steady, Kind::Upwards, Kind::Slow] {
            // a flow that has lost a packet twice still waits for its sender's RTO
            assert!(eventually(|| self.have_gone_on(kind, then)), "{kind:?}: not all resume within {PATIENCE:?}");
        }
        let watch = self.watch.lock().expect("no thread has panicked");
        println!("{what}: nothing arrived for {:?}; this process paused for {:?}", watch.silence, watch.pause);
        for kind in [Kind::Steady, Kind::Upwards, Kind::Slow] {
            let all = watch.silences(kind);
            let at = |share: usize| all[(all.len() - 1) * share / 1000];
            let over = all.iter().filter(|silence| **silence > GAP).count();
            println!(
                "  {kind:?}, {} flows: p50 {:?}, p99 {:?}, longest {:?}; {over} over {GAP:?}",
                all.len(),
                at(500),
                at(990),
                at(1000)
            );
        }
        (watch.silence, watch.pause)
    }

    fn all_has_arrived(&self) -> bool {
        let watch = self.watch.lock().expect("no thread has panicked");
        watch.flows.iter().zip(&self.sent).all(|(flow, sent)| flow.bytes as u64 == sent.load(Ordering::Relaxed))
    }
}

/// Ends the threads, also when the test fails.
struct End<'a>(&'a Flows);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.ending.store(true, Ordering::Relaxed);
        self.0.ended.store(true, Ordering::Relaxed);
    }
}

/// A thousand flows while `act` runs, with an enforcer in between that has all of them; then all that was sent must have arrived.
pub fn with_a_thousand_flows(world: &World, act: impl FnOnce(&Flows)) {
    with_flows(
        FLOWS,
        |port| world.connection_to(port),
        |flows| {
            let status = world.status();
            assert_eq!(status["flows"], FLOWS, "{status}");
            // at least ten packets of each slow flow, which a busy machine sends late
            let least = FLOWS as u64 / 20 * 14_480;
            let buffered = || world.status()["buffered_bytes"].as_u64();
            assert!(eventually(|| buffered() > Some(least)), "{}", world.status());
            flows.silences_after("nothing happens", || ());
            act(flows);
        },
    );
}

/// So many flows while `act` runs; `connect` makes a connection to a port of the server: the client's end, the server's. Then all that was sent
/// must have arrived.
pub fn with_flows(number: usize, connect: impl Fn(u16) -> (TcpStream, TcpStream), act: impl FnOnce(&Flows)) {
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for i in 0..number {
        let kind = Kind::of(i);
        let (client, server) = connect(if kind == Kind::Slow { SLOW_PORT } else { 0 });
        for end in [&client, &server] {
            end.set_nonblocking(true).expect("sockets can");
        }
        let (from, to) = if kind == Kind::Upwards { (client, server) } else { (server, client) };
        senders.push(from);
        receivers.push(to);
    }
    let flows = Flows {
        sent: (0..number).map(|_| AtomicU64::new(0)).collect(),
        watch: Mutex::new(Watch::new(number)),
        ending: AtomicBool::new(false),
        ended: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let _end = End(&flows);
        let sending = scope.spawn(|| flows.send(&mut senders));
        let receiving = scope.spawn(|| flows.receive(&mut receivers));
        thread::sleep(WATCHED / 2);
        act(&flows);
        flows.ending.store(true, Ordering::Relaxed);
        sending.join().expect("no connection has failed");
        assert!(
            eventually(|| receiving.is_finished() || flows.all_has_arrived()),
            "not all has arrived in {PATIENCE:?}"
        );
        assert!(!receiving.is_finished(), "no connection has failed");
    });
}

#[test]
fn a_thousand_flows_outlive_an_enforcer_that_is_killed_twice() {
    let Some(world) = World::new() else { return };
    std::fs::write(world.path("slow.c"), SLOW).expect("there is room");
    let enforcer = world.enforce(&SLOW_RULES);
    with_a_thousand_flows(&world, |flows| {
        flows.silences_after("killed", || enforcer.kill());
        let mut second = None;
        flows.silences_after("started again", || second = Some(world.enforce(&SLOW_RULES)));
        let status = world.status();
        assert!(status["flows"] == 0 && status["counters"]["passed_unknown"].as_u64() > Some(0), "{status}");
        let (client, server) = world.connection();
        (&server).write_all(b"new").expect("it lives");
        (&client).read_exact(&mut [0; 3]).expect("it lives");
        assert_eq!(world.status()["flows"], 1, "only flows whose beginning it saw");
        flows.silences_after("killed again", || second.take().expect("it was started").kill());
        assert!(world.has_xdp(), "the program stays, and passes everything");
    });
}
