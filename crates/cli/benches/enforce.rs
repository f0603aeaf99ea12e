//! The enforcer's packet I/O: `opentcp enforce` between two interfaces on one CPU, servers and clients of its flows on the other.
//! `cargo bench --profile dist -p cli --bench enforce`, as root, on a machine with two idle CPUs.
//!
//! Both ends of each flow are in this program, which makes their frames itself: full segments up to the window, and a client's ACK for
//! every two. Frames pass between namespaces through the kernel, whose work to deliver them to the enforcer and to send them from it
//! is done on the enforcer's CPU. So the packets that arrive at the enforcer per second of its CPU time are what one core does,
//! even if the ends are slower.
//!
//! Real ends are other machines, and waking them costs an enforcer nothing. So here the kernel's threads at the ends' interfaces do not
//! preempt the ends (`SCHED_BATCH`), and no CPU enters a sleep state (`/dev/cpu_dma_latency`).

#[path = "../tests/agent/lossy.rs"]
mod lossy;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/enforce/world.rs"]
mod world;

use kernel::steer::{Attachment, Steering};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use packet_io::{VnetHeader, XdpSocket};
use rustix::net::sockopt::set_tcp_congestion;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use testkit::{PATIENCE, inside};
use world::World;

/// The enforcer's CPU, and the CPU of servers and clients.
const ENFORCER: usize = 0;
const ENDS: usize = 1;
/// Limit of a flow's segments in flight; that of all flows is less than an interface's queue holds.
const UNDER_WAY: u32 = 16;
const MSS: u32 = 1448;
const BATCH: u32 = 64;
/// Segments that servers send at once: fewer than the queue of the enforcer's interface (256, of a veth).
const BURST: u32 = 96;
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(4);
/// A flow without progress for this long has lost a packet before the enforcer.
const STALLED: Duration = Duration::from_millis(300);
/// First sequence numbers of servers and clients.
const ISS: [u32; 2] = [90_000, 7_000];
const SERVER_PORT: u16 = 80;
const FIRST_PORT: u16 = 40_000;

/// Offsets in a frame: Ethernet, IPv4, TCP with timestamps.
const IP: usize = 14;
const TCP: usize = 34;
const OPTIONS: usize = TCP + 20;
const HEADERS: usize = OPTIONS + 12;

mod flag {
    pub const SYN: u8 = 2;
    pub const ACK: u8 = 16;
}

/// Both ends of a flow.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// The server's lowest unacknowledged and next sequence numbers, and the end of its window.
    una: u32,
    nxt: u32,
    edge: u32,
    /// The client's next expected sequence number, and the last that it acknowledged.
    received: u32,
    acked: u32,
    moved: Option<Instant>,
}

/// An end's interface.
struct End {
    socket: XdpSocket,
    steering: Steering,
    /// Its last heartbeat.
    said: Instant,
}

impl End {
    fn open(host: &str, name: &str) -> End {
        let pins = World::pins().join(name);
        inside(host, || {
            let index = nix::net::if_::if_nametoindex("eth0").expect("it is there");
            let socket = XdpSocket::open(index, 0, HEADERS + MSS as usize).expect("the kernel has AF_XDP");
            let steering = Steering::attach(Attachment { interface: index, own: &[], folder: &pins, fragments: false })
                .expect("the kernel takes the program");
            steering.beat().expect("the kernel has the time");
            steering.hand_to(0, socket.as_fd()).expect("it is its queue");
            End { socket, steering, said: Instant::now() }
        })
    }
}

impl End {
    /// Receives frames; returns how many.
    fn receive(&mut self, take: impl FnMut(&[u8])) -> u32 {
        if self.said.elapsed() > kernel::steer::PATIENCE / 10 {
            self.steering.beat().expect("the kernel has the time");
            self.said = Instant::now();
        }
        self.socket.receive(BATCH, take)
    }

    /// Receives this many frames and ignores them.
    fn await_frames(&mut self, frames: usize) {
        let (mut seen, begin) = (0, Instant::now());
        while seen < frames {
            assert!(begin.elapsed() < PATIENCE, "{seen} of {frames} frames have come");
            seen += self.receive(|_| {}) as usize;
        }
    }
}

struct Bench {
    server: End,
    client: End,
    flows: Vec<Flow>,
    frame: Vec<u8>,
    /// The flow that sends next.
    next: usize,
    /// Segments that arrived at the clients.
    delivered: u64,
    /// Servers' timeouts.
    again: u64,
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn checksum(mut sum: u32) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// Writes a frame of flow `n`: headers, and `payload` zeros.
fn write(frame: &mut Vec<u8>, n: usize, by_server: bool, (seq, ack, flags): (u32, u32, u8), payload: usize) {
    let options: &[u8] = if flags & flag::SYN != 0 {
        &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 8]
    } else {
        &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]
    };
    let headers = OPTIONS + options.len();
    frame.clear();
    frame.resize(headers + payload, 0);
    let (server, client) = ([10, 97, 1, 1], [10, 97, 2, 1 + (n >> 14) as u8]);
    let port = FIRST_PORT + (n & 0x3fff) as u16;
    let ((from, from_port), (to, to_port)) =
        if by_server { ((server, SERVER_PORT), (client, port)) } else { ((client, port), (server, SERVER_PORT)) };
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 9, 1 + u8::from(by_server)]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 9, 2 - u8::from(by_server)]);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[IP..TCP];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((headers - IP + payload) as u16).to_be_bytes());
    ip[6] = 0x40;
    (ip[8], ip[9]) = (64, 6);
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let whole = checksum(sum(ip));
    ip[10..12].copy_from_slice(&whole);
    let pseudo = sum(&ip[12..20]) + 6 + (headers - TCP + payload) as u32;
    let tcp = &mut frame[TCP..headers];
    tcp[..2].copy_from_slice(&from_port.to_be_bytes());
    tcp[2..4].copy_from_slice(&to_port.to_be_bytes());
    tcp[4..8].copy_from_slice(&seq.to_be_bytes());
    tcp[8..12].copy_from_slice(&ack.to_be_bytes());
    tcp[12] = ((headers - TCP) as u8 / 4) << 4;
    tcp[13] = flags;
    tcp[14..16].copy_from_slice(&4096_u16.to_be_bytes());
    tcp[20..].copy_from_slice(options);
    // the payload's zeros add nothing
    let whole = checksum(pseudo + sum(tcp));
    tcp[16..18].copy_from_slice(&whole);
}

/// The flow's number, by the client's port and address.
fn number(frame: &[u8], client_address: usize, client_port: usize) -> usize {
    usize::from(frame[client_address + 3] - 1) << 14 | usize::from(word(frame, client_port) - FIRST_PORT)
}

impl Bench {
    fn new(world: &World, flows: usize) -> Bench {
        let [server, _, client] = world.hosts();
        Bench {
            server: End::open(server, "server"),
            client: End::open(client, "client"),
            flows: vec![Flow::default(); flows],
            frame: Vec::new(),
            next: 0,
            delivered: 0,
            again: 0,
        }
    }

    /// Handshakes, a few at a time.
    fn connect(&mut self) {
        for first in (0..self.flows.len()).step_by(32) {
            let some = first..(first + 32).min(self.flows.len());
            for n in some.clone() {
                write(&mut self.frame, n, false, (ISS[1], 0, flag::SYN), 0);
                self.client.socket.send(&VnetHeader::default(), [&self.frame, &[]]);
            }
            self.client.socket.flush();
            self.server.await_frames(some.len());
            for n in some.clone() {
                write(&mut self.frame, n, true, (ISS[0], ISS[1] + 1, flag::SYN | flag::ACK), 0);
                self.server.socket.send(&VnetHeader::default(), [&self.frame, &[]]);
            }
            self.server.socket.flush();
            self.client.await_frames(some.len());
            for n in some.clone() {
                self.flows[n] = Flow {
                    una: ISS[0] + 1,
                    nxt: ISS[0] + 1,
                    edge: ISS[0] + 1,
                    received: ISS[0] + 1,
                    acked: ISS[0] + 1,
                    moved: None,
                };
                self.acknowledge(n);
            }
            self.client.socket.flush();
            self.server.await_frames(some.len());
        }
        // by the windows received
        for n in 0..self.flows.len() {
            self.flows[n].edge = ISS[0] + 1 + 10 * MSS;
        }
    }

    fn acknowledge(&mut self, n: usize) {
        let flow = &mut self.flows[n];
        flow.acked = flow.received;
        write(&mut self.frame, n, false, (ISS[1] + 1, flow.received, flag::ACK), 0);
        self.client.socket.send(&VnetHeader::default(), [&self.frame, &[]]);
    }

    /// Receives at both ends, and sends what the windows allow.
    fn turn(&mut self, now: Instant, under_way: u32) {
        let flows = &mut self.flows;
        self.server.receive(|frame| {
            if frame.len() < HEADERS {
                return;
            }
            let flow = &mut flows[number(frame, IP + 12, TCP)];
            let ack = double_word(frame, TCP + 8);
            if !after(flow.una, ack) {
                flow.edge = ack.wrapping_add(u32::from(word(frame, TCP + 14)) << 8);
                flow.moved = Some(now);
                flow.una = ack;
            }
        });
        let mut answers = Vec::new();
        let delivered = &mut self.delivered;
        self.client.receive(|frame| {
            if frame.len() <= HEADERS {
                return;
            }
            let n = number(frame, IP + 16, TCP + 2);
            let flow = &mut flows[n];
            if double_word(frame, TCP + 4) == flow.received {
                flow.received = flow.received.wrapping_add((frame.len() - HEADERS) as u32);
                *delivered += 1;
                if flow.received.wrapping_sub(flow.acked) >= 2 * MSS {
                    flow.acked = flow.received;
                    answers.push(n);
                }
            } else {
                answers.push(n);
            }
        });
        for n in answers {
            self.acknowledge(n);
        }
        let mut burst = BURST;
        let all = self.flows.len();
        let first = self.next;
        for n in (first..first + all).map(|n| n % all) {
            self.next = n;
            if burst == 0 {
                break;
            }
            let flow = &mut self.flows[n];
            if flow.moved.is_some_and(|moved| now - moved > STALLED) && flow.nxt != flow.una {
                (flow.nxt, flow.moved) = (flow.una, Some(now));
                self.again += 1;
            }
            let flow = self.flows[n];
            let end = flow.una.wrapping_add(under_way * MSS);
            let end = if after(end, flow.edge) { flow.edge } else { end };
            let mut nxt = flow.nxt;
            while !after(nxt.wrapping_add(MSS), end) {
                write(&mut self.frame, n, true, (nxt, ISS[1] + 1, flag::ACK), MSS as usize);
                if burst == 0 || !self.server.socket.send(&VnetHeader::default(), [&self.frame, &[]]) {
                    break;
                }
                burst -= 1;
                nxt = nxt.wrapping_add(MSS);
            }
            self.flows[n].nxt = nxt;
        }
        self.client.socket.flush();
        self.server.socket.flush();
        // lets the kernel's threads of the interfaces run
        thread::yield_now();
    }

    fn run(&mut self, length: Duration, under_way: u32) {
        let begin = Instant::now();
        let mut now = begin;
        while now - begin < length {
            self.turn(now, under_way);
            now = Instant::now();
        }
    }
}

/// CPU time of tasks in seconds, by the scheduler; that of the daemon's own code and of its system calls, and of a whole CPU, by clock
/// ticks.
#[derive(Clone, Copy, Debug)]
struct Used {
    daemon: f64,
    daemon_user: f64,
    daemon_kernel: f64,
    /// The kernel's threads that receive packets from its interfaces.
    reception: f64,
    /// The whole CPU.
    busy: f64,
}

const TICK: f64 = 0.01;

impl Used {
    fn until_now(daemon: u32, reception: &[u32]) -> Used {
        let ran = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it runs");
            text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") * 1e-9
        };
        let stat = fs::read_to_string(format!("/proc/{daemon}/stat")).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("a number") * TICK;
        let all = fs::read_to_string("/proc/stat").expect("it is there");
        let line = all.lines().find(|line| line.starts_with(&format!("cpu{ENFORCER} "))).expect("it has a line");
        let times: Vec<f64> = line.split_whitespace().skip(1).map(|n| n.parse().expect("a number")).collect();
        // user, nice, system, both kinds of interrupts; neither idle, waiting for disks, nor stolen
        let busy = (times[0] + times[1] + times[2] + times[5] + times[6]) * TICK;
        Used {
            daemon: ran(daemon),
            daemon_user: ticks(11),
            daemon_kernel: ticks(12),
            reception: reception.iter().map(|pid| ran(*pid)).sum(),
            busy,
        }
    }
}

fn pin(pid: u32, cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).expect("it is a CPU");
    sched_setaffinity(Pid::from_raw(pid as i32), &set).expect("root may");
}

/// Lets the kernel's own threads receive an interface's packets, rather than whichever task is on the CPU.
fn threaded_reception(host: &str, interface: &str) {
    let write = format!("echo 1 > /sys/class/net/{interface}/threaded");
    let status = Command::new("ip").args(["netns", "exec", host, "sh", "-c", &write]).status();
    assert!(status.is_ok_and(|status| status.success()), "{interface}");
}

/// The kernel's threads that receive packets of interfaces with these names.
fn reception(names: &[&str]) -> Vec<u32> {
    let of = |pid: &str| fs::read_to_string(Path::new("/proc").join(pid).join("comm")).unwrap_or_default();
    let processes = fs::read_dir("/proc").expect("it is there").flatten();
    let names: Vec<String> = names.iter().map(|name| format!("napi/{name}-")).collect();
    let pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| names.iter().any(|name| of(pid).starts_with(name))).filter_map(|pid| pid.parse().ok()).collect()
}

fn measure(algorithm: &str, flows: usize) {
    pin(0, ENFORCER);
    let Some(world) = World::new() else { return };
    let enforcer = world.enforce(&["--rule", algorithm]);
    pin(0, ENDS);
    let mut bench = Bench::new(&world, flows);
    let [server, between, client] = world.hosts();
    for (host, interface) in [(server, "eth0"), (client, "eth0"), (between, "s"), (between, "c")] {
        threaded_reception(host, interface);
    }
    let ours = reception(&["s", "c"]);
    for pid in &ours {
        pin(*pid, ENFORCER);
    }
    for pid in reception(&["eth0"]) {
        pin(pid, ENDS);
        let status = Command::new("chrt").args(["-b", "-p", "0", &pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "chrt is util-linux's");
    }
    bench.connect();
    // an even number, so that no ACK is delayed
    let under_way = (2048 / flows as u32).clamp(2, UNDER_WAY) & !1;
    bench.run(WARM_UP, under_way);
    let status = |side: &str, what: &str| world.status()[side][what].as_u64().expect("it is counted");
    let received = || status("servers", "received") + status("clients", "received");
    let (before, begin, packets) = (Used::until_now(enforcer.id(), &ours), Instant::now(), received());
    let (delivered, again) = (bench.delivered, bench.again);
    bench.run(MEASURED, under_way);
    let (after, took, packets) =
        (Used::until_now(enforcer.id(), &ours), begin.elapsed().as_secs_f64(), received() - packets);
    let status = world.status();
    let counter = |name: &str| status["counters"][name].as_u64().expect("it is counted");
    assert_eq!(counter("flows_opened"), flows as u64, "all are enforced: {status}");
    let each = |time: f64| time * 1e9 / packets as f64;
    let busy = after.busy - before.busy;
    let used = after.daemon + after.reception - before.daemon - before.reception;
    println!(
        "{algorithm}, {flows} flows: {:.0} packets/s ({:.2} Gbit/s), CPU {:.0} % busy: {:.0} packets per second of the enforcer's CPU time",
        packets as f64 / took,
        (bench.delivered - delivered) as f64 * f64::from(MSS) * 8e-9 / took,
        busy / took * 100.0,
        packets as f64 / used,
    );
    println!(
        "    ns per packet: {:.0} own code, {:.0} system calls, {:.0} kernel reception; {} retransmitted, {} stalls",
        each(after.daemon_user - before.daemon_user),
        each(after.daemon_kernel - before.daemon_kernel),
        each(after.reception - before.reception),
        counter("retransmitted"),
        bench.again - again,
    );
}

/// One flow between two TAPs, whose ends are the kernel's own TCP.
fn measure_taps(algorithm: &str) {
    let Some(world) = World::new() else { return };
    let enforcer = world.enforce_between_taps(&["--rule", algorithm]);
    let (mut client, mut server) = world.connection_at([10, 99, 0, 1].into());
    // the machine's default may be an algorithm that paces
    set_tcp_congestion(&server, "cubic").expect("it is in most kernels");
    let warm = Instant::now() + WARM_UP;
    let end = warm + MEASURED;
    let sender = thread::spawn(move || {
        let piece = vec![0; 1 << 18];
        while Instant::now() < end {
            server.write_all(&piece).expect("the connection lives");
        }
    });
    let mut piece = vec![0; 1 << 18];
    let mut bytes_until = |end: Instant| {
        let mut bytes = 0;
        while Instant::now() < end {
            bytes += client.read(&mut piece).expect("the connection lives");
        }
        bytes
    };
    bytes_until(warm);
    let (before, begin) = (Used::until_now(enforcer.id(), &[]), Instant::now());
    let bytes = bytes_until(end);
    let (after, took) = (Used::until_now(enforcer.id(), &[]), begin.elapsed().as_secs_f64());
    let used = after.daemon - before.daemon;
    let taken = world.status()["counters"]["data_taken"].as_u64().expect("it is counted");
    println!(
        "{algorithm}, TAPs: {:.2} Gbit/s, the enforcer busy {:.0} % of the time; {taken} super-segments",
        bytes as f64 * 8e-9 / took,
        used / took * 100.0
    );
    // the sender may still wait for buffer space
    bytes_until(Instant::now() + WARM_UP);
    sender.join().expect("it has sent");
}

/// Until this file is closed, idle CPUs poll: in a virtual machine, waking one that sleeps costs the waker more than a packet does.
fn keep_cpus_awake() -> File {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").expect("root may");
    file.write_all(&0_i32.to_ne_bytes()).expect("it takes microseconds");
    file
}

fn main() {
    let _awake = keep_cpus_awake();
    // an argument selects measurements: `cargo bench --profile dist -p cli --bench enforce -- bbr`
    let only = env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for (algorithm, flows) in [("cubic", 100), ("bbr", 100), ("cubic", 1000)] {
        if format!("{algorithm}, {flows} flows").contains(&only) {
            measure(algorithm, flows);
        }
    }
    for algorithm in ["cubic", "bbr"] {
        if format!("{algorithm}, TAPs").contains(&only) {
            measure_taps(algorithm);
        }
    }
}
