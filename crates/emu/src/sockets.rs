//! [`Sockets`]: the kernel's sockets, as the applications see them.
//!
//! A socket belongs to the namespace in which it was made, so the thread enters a host's namespace to make
//! one there, and then handles all sockets alike. Received bytes are discarded in the kernel (`MSG_TRUNC`): their
//! content is irrelevant, and copying them would take CPU time that the hosts need.

mod flow;

use crate::address::{FlowPorts, RECEIVER_PORT, address, sender_port};
use crate::info::MaxPacingRate;
use crate::lateness::Delays;
use crate::port::{Clock, WallClock};
use flow::Flow;
use net::{NodeId, Topology};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::sockopt::{ReuseAddr, TcpCongestion, TcpNoDelay};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrIn, bind, connect, listen, recv, send, setsockopt,
    socket,
};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plan::{Arrived, Completed, Message, Opening, Pairing, Stage, UNLIMITED};
use policy::End;
use results::{Arm, CwndSample};
use scenario::Measure;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use units::Time;

pub use flow::FlowEnd;

/// Largest write and read in one turn, bytes: others wait meanwhile.
const CHUNK: usize = 256 << 10;
/// Backlog of a listener.
const BACKLOG: i32 = 4095;
/// A rate that limits nothing but turns pacing on, bytes a second.
const PACE_UNLIMITED: u64 = 1 << 50;

/// The environment of the traffic.
pub struct Hosts<'a> {
    /// The network.
    pub topology: &'a Topology,
    /// Hosts of a pod or leaf; 1 where there are none.
    pub per_pod: usize,
    /// By host: its network namespace.
    pub namespaces: Vec<File>,
    /// By traffic entry.
    pub entries: Vec<EntryStack>,
    /// The map of ports to flows, for the engine.
    pub flows: Arc<FlowPorts>,
    /// All sockets pace.
    pub pace: bool,
    /// In a run with a policy: to which end connections belong in its verdict.
    pub counted_at: Option<End>,
}

/// How the sockets of one traffic entry are set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryStack {
    /// The value of `TCP_CONGESTION`.
    pub algorithm: String,
    /// Whether it sets a pacing rate.
    pub paces: bool,
}

/// A timer's event.
pub enum Due {
    /// An application's event.
    Application {
        /// When it was due.
        at: Time,
        /// Its entry.
        entry: u32,
        /// Its scheduled action.
        which: u32,
    },
    /// Sample the senders.
    Sample,
    /// Start counting.
    Counting,
}

/// The results of a run's sockets.
pub struct Report {
    /// The flows, by number.
    pub flows: Vec<FlowEnd>,
    /// Samples of senders, by time.
    pub cwnd: Vec<CwndSample>,
    /// Messages that have arrived, with their ends, if requested.
    pub messages: Vec<Arrived>,
    /// Number of flows that could not be opened, and the first error.
    pub failed: (u64, Option<String>),
    /// Samples in which the kernel showed a window that no algorithm can set.
    pub absurd: u64,
    /// Lateness of the applications' timers at the 99th percentile.
    pub late: Time,
}

/// The kind of an event, in the upper half of its number; the lower half is the index.
mod kind {
    pub const SENDER: u64 = 0;
    pub const RECEIVER: u64 = 1;
    pub const LISTENER: u64 = 2;
    pub const TIMER: u64 = 3;
}

/// All sockets and timers of a run.
pub struct Sockets<'a> {
    hosts: Hosts<'a>,
    clock: WallClock,
    /// When the application's current event was due; `None` while it responds to received data.
    due: Option<Time>,
    /// Lateness of the applications' timers.
    late: Delays,
    /// The host whose namespace the thread is in.
    inside: Option<u32>,
    epoll: Epoll,
    timer: TimerFd,
    flows: Vec<Flow>,
    /// By host and entry.
    listeners: BTreeMap<(u32, u32), usize>,
    listening: Vec<TcpListener>,
    timers: BinaryHeap<Reverse<(Time, u64, u32, u32)>>,
    /// Number of timers so far: of those due at one instant the first scheduled comes first.
    scheduled: u64,
    sample_every: Option<Time>,
    sample_at: Time,
    counting_at: Time,
    /// Flows on which as much has arrived as the application has requested.
    received: VecDeque<u32>,
    /// The data that is written, and the unused buffer for `MSG_TRUNC` reads.
    zeros: Vec<u8>,
    pit: Vec<u8>,
    cwnd: Vec<CwndSample>,
    failed: (u64, Option<String>),
    absurd: u64,
    /// Messages that have arrived, with their ends, if requested.
    messages: Option<Vec<Arrived>>,
    /// By host, in a run with a policy: the arm of flows that belong to it and are opened now.
    arms: Vec<Arm>,
    /// In a run with a policy: completions since the last request.
    completed: Vec<Completed>,
}

impl<'a> Sockets<'a> {
    pub fn new(hosts: Hosts<'a>, clock: WallClock) -> io::Result<Sockets<'a>> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, kind::TIMER << 32))?;
        let arms = if hosts.counted_at.is_some() { vec![Arm::Control; hosts.namespaces.len()] } else { Vec::new() };
        Ok(Sockets {
            hosts,
            clock,
            due: None,
            late: Delays::default(),
            inside: None,
            epoll,
            timer,
            flows: Vec::new(),
            listeners: BTreeMap::new(),
            listening: Vec::new(),
            timers: BinaryHeap::new(),
            scheduled: 0,
            sample_every: None,
            sample_at: Time::NEVER,
            counting_at: Time::NEVER,
            received: VecDeque::new(),
            zeros: vec![0; CHUNK],
            pit: vec![0; CHUNK],
            cwnd: Vec::new(),
            failed: (0, None),
            absurd: 0,
            messages: None,
            arms,
            completed: Vec::new(),
        })
    }

    /// All flows so far, by number.
    pub fn flows(&mut self) -> &mut [Flow] {
        &mut self.flows
    }

    /// Flows that belong to `host` and are opened from now on are of this arm.
    pub fn assign(&mut self, host: u32, arm: Arm) {
        self.arms[host as usize] = arm;
    }

    /// Completions since the last call.
    pub fn take_completed(&mut self) -> Vec<Completed> {
        std::mem::take(&mut self.completed)
    }

    pub fn schedule_measuring(&mut self, measure: &Measure) {
        self.sample_every = measure.cwnd;
        self.sample_at = measure.cwnd.unwrap_or(Time::NEVER);
        if measure.warmup > Time::ZERO {
            self.counting_at = measure.warmup;
        }
        self.messages = measure.messages.then(Vec::new);
    }

    pub fn entry_of(&self, flow: u32) -> u32 {
        self.flows[flow as usize].entry
    }

    /// Timers that are due, earliest first.
    pub fn next_due(&mut self) -> Option<Due> {
        let now = self.clock.now();
        let first = self.timers.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        if self.counting_at <= now.min(first).min(self.sample_at) {
            self.counting_at = Time::NEVER;
            return Some(Due::Counting);
        }
        if self.sample_at <= now.min(first) {
            let every = self.sample_every.unwrap_or(Time::NEVER);
            // missed samples are skipped
            self.sample_at = every * (now.as_ps() / every.as_ps() + 1);
            return Some(Due::Sample);
        }
        if first > now {
            return None;
        }
        let Reverse((at, _, entry, which)) = self.timers.pop()?;
        Some(Due::Application { at, entry, which })
    }

    /// An application starts the event that was due at `at`, and takes that for the current time, so that a rate is kept however late
    /// single writes are.
    pub fn begin(&mut self, at: Time) {
        self.due = Some(at);
        self.late.record(self.clock.now().saturating_sub(at));
    }

    /// The application has finished the event.
    pub fn end(&mut self) {
        self.due = None;
    }

    /// Waits until a socket is ready or a timer is due, `until` at the latest, and serves the sockets.
    pub fn wait(&mut self, until: Time) -> io::Result<()> {
        let first = self.timers.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        let until = until.min(first).min(self.sample_at).min(self.counting_at);
        let left = self.clock.slowdown().real(until.saturating_sub(self.clock.now())).as_ns();
        let mut events = [EpollEvent::empty(); 128];
        let timeout = if left == 0 { EpollTimeout::ZERO } else { EpollTimeout::NONE };
        if left > 0 {
            let span = TimeSpec::new((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64);
            self.timer.set(Expiration::OneShot(span), TimerSetTimeFlags::empty())?;
        }
        let ready = match self.epoll.wait(&mut events, timeout) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..ready] {
            let (kind, which) = (event.data() >> 32, event.data() as u32);
            match kind {
                kind::SENDER => self.on_sender(which, event.events()),
                kind::RECEIVER => self.on_receiver(which),
                kind::LISTENER => self.on_listener(which as usize),
                _ => drop(self.timer.wait()),
            }
        }
        Ok(())
    }

    /// A flow on which as much has arrived as the application requested.
    pub fn take_received(&mut self) -> Option<u32> {
        self.received.pop_front()
    }

    /// Samples every sender that is connected.
    pub fn sample(&mut self) {
        let time_ns = self.clock.now().as_ns();
        for (i, flow) in self.flows.iter_mut().enumerate() {
            if flow.sender.is_none() || !flow.connected {
                continue;
            }
            flow.look();
            let info = flow.info;
            if info.is_absurd() {
                self.absurd += 1;
            }
            let paces = self.hosts.pace || self.hosts.entries[flow.entry as usize].paces;
            self.cwnd.push(CwndSample {
                time_ns,
                flow: i as u64,
                cwnd: info.snd_cwnd,
                ssthresh: info.ssthresh(),
                srtt_us: (info.rtt_us > 0).then_some(info.rtt_us),
                in_flight: info.in_flight(),
                state: info.state(),
                pacing_rate_bps: paces.then(|| info.pacing_rate.saturating_mul(8)),
            });
        }
    }

    /// Starts counting.
    pub fn begin_counting(&mut self) {
        self.flows.iter_mut().for_each(Flow::begin_counting);
    }

    /// Ends the traffic, which was to end at `ended`: sockets close with their hosts.
    pub fn finish(self, ended: Time) -> Report {
        // an event still undone at the end is at least this late
        let overdue = self.timers.peek().map_or(Time::ZERO, |Reverse((at, ..))| ended.saturating_sub(*at));
        let late = self.late.percentile(99.0).max(overdue);
        let flows: Vec<_> = self.flows.into_iter().map(Flow::end).collect();
        let absurd = self.absurd + flows.iter().filter(|flow| flow.info.is_absurd()).count() as u64;
        let messages = self.messages.unwrap_or_default();
        let (failed, cwnd) = (self.failed, self.cwnd);
        Report { flows, cwnd, messages, failed, absurd, late }
    }

    /// The calling thread enters the namespace of `host`.
    fn enter(&mut self, host: u32) -> nix::Result<()> {
        if self.inside != Some(host) {
            setns(&self.hosts.namespaces[host as usize], CloneFlags::CLONE_NEWNET)?;
            self.inside = Some(host);
        }
        Ok(())
    }

    /// A socket on `host` with the settings of `entry`.
    fn make(&mut self, host: u32, entry: u32) -> nix::Result<OwnedFd> {
        self.enter(host)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
        setsockopt(&fd, ReuseAddr, &true)?;
        setsockopt(&fd, TcpNoDelay, &true)?;
        setsockopt(&fd, TcpCongestion, &OsString::from(&self.hosts.entries[entry as usize].algorithm))?;
        if self.hosts.pace {
            setsockopt(&fd, MaxPacingRate, &PACE_UNLIMITED)?;
        }
        Ok(fd)
    }

    /// Makes sure that `host` listens for the flows of `entry`.
    fn listen(&mut self, host: u32, entry: u32) -> nix::Result<()> {
        if self.listeners.contains_key(&(host, entry)) {
            return Ok(());
        }
        let fd = self.make(host, entry)?;
        let here = SockaddrIn::from(SocketAddrV4::new(address(host), RECEIVER_PORT + entry as u16));
        bind(fd.as_raw_fd(), &here)?;
        listen(&fd, Backlog::new(BACKLOG)?)?;
        let number = self.listening.len();
        self.epoll.add(&fd, EpollEvent::new(EpollFlags::EPOLLIN, kind::LISTENER << 32 | number as u64))?;
        self.listening.push(TcpListener::from(fd));
        self.listeners.insert((host, entry), number);
        Ok(())
    }

    fn connect(&mut self, src: u32, dst: u32, Opening { entry, name }: Opening) -> nix::Result<u32> {
        self.listen(dst, entry)?;
        let flow = self.flows.len() as u32;
        let fd = self.make(src, entry)?;
        let here = SockaddrIn::from(SocketAddrV4::new(address(src), sender_port(flow)));
        let there = SockaddrIn::from(SocketAddrV4::new(address(dst), RECEIVER_PORT + entry as u16));
        bind(fd.as_raw_fd(), &here)?;
        self.hosts.flows.open(flow, name);
        let start = self.clock.now();
        match connect(fd.as_raw_fd(), &there) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.epoll.add(&fd, EpollEvent::new(EpollFlags::EPOLLOUT, kind::SENDER << 32 | u64::from(flow)))?;
        let mut opening = Flow::opening(entry, (src, dst), (start, self.clock.slowdown()), TcpStream::from(fd));
        opening.arm = self.hosts.counted_at.map(|end| self.arms[end.of(src, dst) as usize]);
        self.flows.push(opening);
        Ok(flow)
    }

    fn on_listener(&mut self, number: usize) {
        while let Ok((stream, peer)) = self.listening[number].accept() {
            let SocketAddr::V4(peer) = peer else { continue };
            let Some(flow) = self.hosts.flows.flow_at(peer.port()) else { continue };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let event = EpollEvent::new(EpollFlags::EPOLLIN, kind::RECEIVER << 32 | u64::from(flow));
            if self.epoll.add(&stream, event).is_ok() {
                let flow = &mut self.flows[flow as usize];
                if flow.finished {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                flow.receiver = Some(stream);
            }
        }
    }

    fn on_sender(&mut self, number: u32, events: EpollFlags) {
        let flow = &mut self.flows[number as usize];
        if events.contains(EpollFlags::EPOLLOUT) {
            flow.connect();
        }
        let over = EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if events.intersects(over) || (events.contains(EpollFlags::EPOLLIN) && flow.closing && flow.unwritten == 0) {
            self.settle(number);
            return;
        }
        if events.contains(EpollFlags::EPOLLOUT) {
            self.push(number, 2);
        }
    }

    /// Both ends of a flow have closed, or it has failed. Its counters are final when the FIN, too, is acknowledged.
    fn settle(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        flow.look_last();
        if flow.info.is_closed() {
            flow.sender = None;
        } else if let Some(sender) = flow.sender.as_ref().filter(|_| !flow.over) {
            flow.over = true;
            // this event lasts, and the next one is of interest
            let mut next = EpollEvent::new(EpollFlags::EPOLLET, kind::SENDER << 32 | u64::from(number));
            let _ = self.epoll.modify(sender, &mut next);
        }
    }

    /// Writes pending data, at most `chunks`, and sets what the socket waits for.
    fn push(&mut self, number: u32, chunks: usize) {
        let flow = &mut self.flows[number as usize];
        let Some(sender) = &flow.sender else { return };
        if !flow.connected || flow.over {
            return;
        }
        for _ in 0..chunks {
            let length = flow.unwritten.min(CHUNK as u64) as usize;
            if length == 0 {
                break;
            }
            match send(sender.as_raw_fd(), &self.zeros[..length], MsgFlags::MSG_NOSIGNAL) {
                Ok(sent) => {
                    flow.written += sent as u64;
                    if flow.bytes < UNLIMITED {
                        flow.unwritten -= sent as u64;
                    }
                    if sent < length {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        if flow.closing && flow.unwritten == 0 {
            let _ = sender.shutdown(std::net::Shutdown::Write);
        }
        let wanted = match (flow.unwritten, flow.closing) {
            (1.., _) => EpollFlags::EPOLLOUT,
            (0, true) => EpollFlags::EPOLLIN,
            (0, false) => EpollFlags::empty(),
        };
        let _ = self.epoll.modify(sender, &mut EpollEvent::new(wanted, kind::SENDER << 32 | u64::from(number)));
    }

    fn on_receiver(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Some(receiver) = &flow.receiver else { return };
        let before = flow.received;
        // the same share of a turn as the others
        for _ in 0..2 {
            match recv(receiver.as_raw_fd(), &mut self.pit, MsgFlags::MSG_TRUNC) {
                Ok(0) | Err(Errno::ECONNRESET) => {
                    flow.receiver = None;
                    break;
                }
                Ok(length) => flow.received += length as u64,
                Err(_) => break,
            }
        }
        if before < flow.notify_at && flow.received >= flow.notify_at {
            self.received.push_back(number);
        }
    }
}

impl Stage for Sockets<'_> {
    fn now(&self) -> Time {
        self.due.unwrap_or_else(|| self.clock.now())
    }

    fn pairing(&self) -> Pairing<'_> {
        Pairing { topology: self.hosts.topology, hosts_per_pod: self.hosts.per_pod }
    }

    fn schedule(&mut self, at: Time, entry: u32, which: u32) {
        self.scheduled += 1;
        self.timers.push(Reverse((at, self.scheduled, entry, which)));
    }

    fn opened(&self) -> usize {
        self.flows.len()
    }

    fn reserve(&mut self, n: usize) {
        self.flows.reserve(n);
    }

    fn open(&mut self, src: NodeId, dst: NodeId, opening: Opening) -> Option<u32> {
        match self.connect(src.0, dst.0, opening) {
            Ok(flow) => Some(flow),
            Err(error) => {
                let name = |host: NodeId| self.hosts.topology.node(host).name.clone();
                let (from, to) = (name(src), name(dst));
                self.failed.0 += 1;
                self.failed.1.get_or_insert_with(|| format!("{from} to {to}: {error}"));
                None
            }
        }
    }

    fn write(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.flows[flow as usize];
        state.bytes = state.bytes.saturating_add(bytes).min(UNLIMITED);
        state.unwritten = state.unwritten.saturating_add(bytes).min(UNLIMITED);
        self.push(flow, 1);
    }

    /// Tries at any time: a write that fails costs about as much as a notification of free space.
    fn write_what_fits(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.flows[flow as usize];
        let Some(sender) = state.sender.as_ref().filter(|_| state.connected) else { return };
        let length = bytes.min(CHUNK as u64) as usize;
        if let Ok(sent) = send(sender.as_raw_fd(), &self.zeros[..length], MsgFlags::MSG_NOSIGNAL) {
            state.bytes += sent as u64;
            state.written += sent as u64;
        }
    }

    fn send_datagram(&mut self, _: u32, _: u64) {
        unreachable!("the emulator has no UDP, see `limits`")
    }

    fn stop_writing(&mut self, entry: u32) {
        for number in 0..self.flows.len() as u32 {
            let flow = &mut self.flows[number as usize];
            if flow.entry != entry {
                continue;
            }
            // an unlimited flow ends with what it has written by now
            flow.bytes = flow.written;
            flow.unwritten = 0;
            self.push(number, 1);
        }
    }

    fn notify_at(&mut self, flow: u32, bytes: u64) {
        let state = &mut self.flows[flow as usize];
        state.notify_at = bytes;
        if state.received >= bytes {
            self.received.push_back(flow);
        }
    }

    fn close(&mut self, flow: u32) {
        self.flows[flow as usize].closing = true;
        self.push(flow, 1);
    }

    fn finish(&mut self, flow: u32, end: Time) {
        let state = &mut self.flows[flow as usize];
        state.end = Some(end);
        state.finished = true;
        if let Some(arm) = state.arm.filter(|_| !state.has_messages) {
            let Flow { src, entry, bytes, start, .. } = *state;
            self.completed.push(Completed { src, entry, bytes, took: end - start, arm });
        }
        if let Some(receiver) = &state.receiver {
            let _ = receiver.shutdown(std::net::Shutdown::Write);
        }
    }

    fn on_message(&mut self, message: Message, end: Time) {
        let flow = &mut self.flows[message.flow as usize];
        flow.has_messages = true;
        if let Some(arm) = flow.arm {
            let (src, entry) = (flow.src, flow.entry);
            self.completed.push(Completed { src, entry, bytes: message.bytes, took: end - message.begun, arm });
        }
        if let Some(messages) = &mut self.messages {
            messages.push(Arrived { message, end, retransmits: flow.retransmits_of_message() });
        }
    }
}
