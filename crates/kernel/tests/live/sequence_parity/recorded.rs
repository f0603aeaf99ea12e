//! The kernel's side: a socket of its own sends a script's data to a peer that this test implements, packet by packet.
//!
//! Two namespaces, a pair of interfaces between them. In the second no TCP runs: the peer sees every frame by a packet
//! socket and answers by a raw one, from an unused address. Everything happens on one thread, so that the kernel processes an ACK
//! as it is sent, and never waits for a socket that its application has locked.

use super::packet::{self, Ends};
use super::peer::{MSS, Peer};
use super::script::{Fault, Script};
use congestion::Hook;
use congestion::replay::Call;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Linger, TcpCongestion, TcpNoDelay};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, connect, recv, send, sendto, setsockopt,
    socket,
};
use nix::time::ClockId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tcp::{Ecn, Segment, flags};
use testkit::{End, Namespaces, cable, inside, ip, set_sysctl};
use units::{Rate, Time};

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 79, 9, 9);

/// Each way.
pub const ONE_WAY: Time = Time::from_ms(10);
/// Bytes that a frame adds to its IP packet, as the recorded scripts count: header, preamble, checksum, gap.
const FRAME_BYTES: u64 = 14 + 24;
/// Largest lateness of an ACK: beyond that the machine was busy with something else.
const STALL: Time = Time::from_us(800);
/// Upper bound of a script's length.
const PATIENCE: Time = Time::from_secs(10);

/// Events of a sender after its SYN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Happening {
    SynAck,
    /// The application wrote so many segments.
    Write(u32),
    /// The ACK of a segment's transmission (1: the first) arrived.
    Ack {
        number: u32,
        transmission: usize,
        ece: bool,
    },
}

/// A played script.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub happenings: Vec<(Time, Happening)>,
    /// When each data transmission left, and which segment it was.
    pub transmissions: Vec<(Time, u32)>,
    /// When the SYN left, µs of the kernel's own clock.
    start_us: u64,
    /// For each event, when its system call had returned.
    returned: Vec<Time>,
    /// An event was later than the path would have it.
    pub stalled: bool,
}

impl Recording {
    /// Corrects the times by the hooks' records: between a clock reading and its use, timers may expire
    /// and other processes run.
    pub fn correct(&mut self, calls: &[Call]) {
        for ((at, _), returned) in self.happenings.iter_mut().zip(&self.returned) {
            let (from, to) = (self.start_us + at.as_us(), self.start_us + returned.as_us());
            let clocks = calls.iter().filter(|call| of_ack(call)).map(|call| call.read.tcp_mstamp);
            if let Some(clock) = clocks.filter(|clock| (from..=to).contains(clock)).min() {
                *at = Time::from_us(clock - self.start_us);
            }
        }
        // every call records how many transmissions came before it
        for call in calls {
            let clock = Time::from_us(call.read.tcp_mstamp.saturating_sub(self.start_us));
            let before = (call.read.bytes_sent / u64::from(MSS)) as usize;
            for (i, (at, _)) in self.transmissions.iter_mut().enumerate() {
                *at = if i < before { (*at).min(clock) } else { (*at).max(clock + Time::from_us(1)) };
            }
        }
        // and the size of a burst is computed right before it leaves
        for call in calls.iter().filter(|call| call.hook == Hook::MinTsoSegs) {
            let clock = Time::from_us(call.read.tcp_mstamp.saturating_sub(self.start_us));
            if let Some((at, _)) = self.transmissions.get_mut((call.read.bytes_sent / u64::from(MSS)) as usize) {
                *at = clock + Time::from_us(1);
            }
        }
    }
}

/// Whether only ACKs cause it.
fn of_ack(call: &Call) -> bool {
    matches!(call.hook, Hook::PktsAcked | Hook::InAckEvent | Hook::CongControl | Hook::CongAvoid)
}

/// The clock that the kernel stamps hooks with, µs.
fn clock_us() -> u64 {
    let now = ClockId::CLOCK_MONOTONIC.now().expect("every Linux has this clock");
    now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1000
}

/// The two namespaces; removed when dropped. The thread has priority over ordinary ones as long as it lives: on a busy machine
/// the peer's delay would otherwise include other processes' turns.
pub struct Bench {
    /// Sender, peer.
    hosts: Namespaces<2>,
    frames: OwnedFd,
    packets: OwnedFd,
    port: u16,
}

impl Bench {
    pub fn new() -> Bench {
        let hosts = Namespaces::new(["sender", "peer"]);
        let [sender, peer] = &*hosts;
        let address = format!("{SENDER}/24");
        cable([
            End { host: sender, name: "host0", address: Some(&address) },
            End { host: peer, name: "peer0", address: Some("10.79.0.2/24") },
        ]);
        // every segment is a frame of its own
        ip(&format!("-n {sender} link set host0 gso_max_segs 1"));
        ip(&format!("-n {sender} route add {PEER} via 10.79.0.2"));
        inside(sender, || {
            set_sysctl("net/ipv4/tcp_no_metrics_save", "1");
            set_sysctl("net/ipv4/tcp_ecn", "1");
            // a script's writes fit in, so that they happen at once
            set_sysctl("net/ipv4/tcp_wmem", "4096 4194304 4194304");
        });
        let raw = |family, kind, protocol| {
            socket(family, kind, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, protocol).expect("root may open it")
        };
        let (frames, packets) = inside(peer, || {
            (
                raw(AddressFamily::Packet, SockType::Raw, SockProtocol::EthAll),
                raw(AddressFamily::Inet, SockType::Raw, SockProtocol::Raw),
            )
        });
        schedule("--fifo", 10);
        Bench { hosts, frames, packets, port: 5000 }
    }

    /// Runs a script with the algorithm of that (kernel's) name. Returns its events, and the socket: closing it resets the
    /// connection, which calls hooks too.
    pub fn run(&mut self, script: &Script, algorithm: &str) -> Result<(Recording, OwnedFd), String> {
        self.port += 1;
        let name = OsString::from(algorithm);
        let sender = inside(&self.hosts[0], || {
            let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_NONBLOCK, None).expect("a socket");
            setsockopt(&fd, TcpCongestion, &name).expect("the algorithm is loaded");
            setsockopt(&fd, TcpNoDelay, &true).expect("a TCP socket takes it");
            setsockopt(&fd, Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 }).expect("a socket takes it");
            fd
        });
        let address = SockaddrIn::from(SocketAddrV4::new(PEER, self.port));
        let run = Run {
            bench: self,
            script,
            sender,
            precise_echo: algorithm.ends_with("dctcp"),
            begin_us: clock_us(),
            ends: None,
            iss: 0,
            peer: Peer::new(script.sack, 0),
            scale: 0,
            due: BTreeMap::new(),
            idle_at: Time::ZERO,
            echo: false,
            established: None,
            written: 0,
            recording: Recording::default(),
        };
        match connect(run.sender.as_raw_fd(), &address) {
            Err(Errno::EINPROGRESS) => run.play(),
            other => Err(format!("connecting: {other:?}")),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        schedule("--other", 0);
    }
}

/// Gives this thread another policy; where that is refused, it keeps its own, and more scripts are repeated.
fn schedule(policy: &str, priority: u32) {
    let thread = fs::read_link("/proc/thread-self").expect("Linux has it");
    let id = thread.file_name().expect("it names the thread").to_string_lossy().into_owned();
    let _ = Command::new("chrt").args([policy, "--pid", &priority.to_string(), &id]).status();
}

/// The peer's timers.
enum Due {
    SynAck(Segment),
    Arrival { number: u32, transmission: usize, tsval: u32, ce: bool, cwr: bool },
}

/// A script while it runs.
struct Run<'a> {
    bench: &'a Bench,
    script: &'a Script,
    sender: OwnedFd,
    /// ECE echoes each segment's mark, as DCTCP's receiver does; else until a CWR arrives.
    precise_echo: bool,
    /// When the SYN left; before, when the script began.
    begin_us: u64,
    /// From the peer to the sender.
    ends: Option<Ends>,
    iss: u32,
    peer: Peer,
    scale: u8,
    due: BTreeMap<(Time, usize), Due>,
    /// When the bottleneck's queue is empty.
    idle_at: Time,
    echo: bool,
    established: Option<Time>,
    written: usize,
    recording: Recording,
}

impl Run<'_> {
    fn play(mut self) -> Result<(Recording, OwnedFd), String> {
        loop {
            self.receive()?;
            let now = self.now();
            if now > PATIENCE {
                return Err(format!("{} of {} segments arrive", self.peer.in_order(), self.script.segments()));
            }
            self.act(now)?;
            self.write(now)?;
            let done = self.written == self.script.writes.len() && self.peer.in_order() == self.script.segments();
            if done && self.due.is_empty() {
                return Ok((self.recording, self.sender));
            }
            let next = self.due.first_key_value().map_or(now + Time::from_ms(1), |(&(at, _), _)| at);
            if next > now + Time::from_us(300) {
                thread::sleep(Duration::from_micros(20));
            }
        }
    }

    fn now(&self) -> Time {
        Time::from_us(clock_us() - self.begin_us)
    }

    fn receive(&mut self) -> Result<(), String> {
        let mut frame = [0; 2048];
        loop {
            let length = match recv(self.bench.frames.as_raw_fd(), &mut frame, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => length,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(format!("receiving: {error}")),
            };
            if let Some((ends, segment)) = packet::parse(&frame[..length])
                && ends.to == (PEER, self.bench.port)
            {
                self.take(ends, &segment)?;
            }
        }
    }

    fn take(&mut self, ends: Ends, segment: &Segment) -> Result<(), String> {
        if segment.flags & flags::SYN != 0 {
            if self.ends.is_some() {
                return Err("the SYN is retransmitted".to_string());
            }
            self.begin_us = clock_us();
            self.recording.start_us = self.begin_us;
            self.ends = Some(Ends { from: ends.to, to: ends.from });
            self.iss = segment.seq;
            self.peer = Peer::new(self.script.sack, segment.seq.wrapping_add(1));
            self.put(ONE_WAY * 2, Due::SynAck(*segment));
        } else if segment.len > 0 {
            self.data(segment)?;
        }
        Ok(())
    }

    fn data(&mut self, segment: &Segment) -> Result<(), String> {
        if u32::from(segment.len) != MSS {
            return Err(format!("a segment of {} bytes leaves", segment.len));
        }
        let now = self.now();
        let number = segment.seq.wrapping_sub(self.iss.wrapping_add(1)) / MSS + 1;
        self.recording.transmissions.push((now, number));
        let sent = self.recording.transmissions.len() as u32;
        let transmission = self.recording.transmissions.iter().filter(|t| t.1 == number).count();
        let mut left = now;
        if self.script.bottleneck {
            let bytes = u64::from(segment.ip_bytes()) + FRAME_BYTES;
            self.idle_at = self.idle_at.max(now) + Rate::from_mbps(10).serialization(bytes);
            left = self.idle_at;
        }
        let mut at = left + ONE_WAY * 2;
        let mut ce = false;
        match (self.script.fault)(sent) {
            Some(Fault::Drop) => return Ok(()),
            Some(Fault::DelayMs(ms)) => at += Time::from_ms(ms),
            Some(Fault::Mark) => ce = segment.ecn != Ecn::NotEct,
            None => {}
        }
        let cwr = segment.flags & flags::CWR != 0;
        self.put(at, Due::Arrival { number, transmission, tsval: segment.tsval, ce, cwr });
        Ok(())
    }

    fn put(&mut self, at: Time, due: Due) {
        let order = self.recording.transmissions.len();
        self.due.insert((at, order), due);
    }

    /// Timers that are due.
    fn act(&mut self, now: Time) -> Result<(), String> {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let now = self.now();
            let ((at, _), due) = self.due.pop_first().expect("just seen");
            match due {
                Due::SynAck(syn) => {
                    let answer = self.peer.syn_ack(now, &syn);
                    self.scale = answer.window_scale.saturating_sub(1);
                    self.established = Some(now);
                    self.recording.happenings.push((now, Happening::SynAck));
                    self.send(&answer)?;
                }
                Due::Arrival { number, transmission, tsval, ce, cwr } => {
                    self.peer.arrive(number, tsval);
                    self.echo = ce || (self.echo && !cwr && !self.precise_echo);
                    let answer = self.peer.ack(now, self.echo);
                    let happening = Happening::Ack { number, transmission, ece: self.echo };
                    self.recording.happenings.push((now, happening));
                    self.send(&answer)?;
                }
            }
            let returned = self.now();
            self.recording.returned.push(returned);
            self.recording.stalled |= returned > at + STALL;
            // packets released by the ACK must be seen before the next ACK leaves
            self.receive()?;
        }
        Ok(())
    }

    fn send(&self, segment: &Segment) -> Result<(), String> {
        let ends = self.ends.expect("the SYN has named them");
        let packet = packet::build(&ends, segment, self.scale);
        let to = SockaddrIn::from(SocketAddrV4::new(ends.to.0, 0));
        let sent = sendto(self.bench.packets.as_raw_fd(), &packet, &to, MsgFlags::empty());
        sent.map(|_| ()).map_err(|error| format!("sending an ACK: {error}"))
    }

    /// The application.
    fn write(&mut self, now: Time) -> Result<(), String> {
        let Some(established) = self.established else { return Ok(()) };
        while let Some(&(ms, segments)) = self.script.writes.get(self.written)
            && now >= established + Time::from_ms(ms)
        {
            self.written += 1;
            self.recording.happenings.push((self.now(), Happening::Write(segments)));
            let data = vec![0; (segments * MSS) as usize];
            match send(self.sender.as_raw_fd(), &data, MsgFlags::MSG_NOSIGNAL) {
                Ok(length) if length == data.len() => {}
                other => return Err(format!("writing {} bytes: {other:?}", data.len())),
            }
            self.recording.returned.push(self.now());
            self.receive()?;
        }
        Ok(())
    }
}
