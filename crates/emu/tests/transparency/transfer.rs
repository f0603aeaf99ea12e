//! One connection between two hosts' kernels, driven without waiting.

use crate::case::{Finish, TransferCase};
use emu::hosts::Host;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, listen, setsockopt, socket, sockopt,
};
use rustix::event::{PollFd, PollFlags};
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The port of transfer number 0; the next ones follow.
pub const FIRST_PORT: u16 = 10_000;
/// A connection without progress for so long hangs.
const QUIET: Duration = Duration::from_secs(60);
/// How often a lazy application reads, and how much of it then.
const LAZY: Duration = Duration::from_millis(40);
const CHUNK: usize = 16 * 1024;
/// A prime: data misplaced by less than that does not match.
const PERIOD: usize = 65_537;

/// The data of all streams; each end of each connection starts at another offset.
pub struct Pattern(Vec<u8>);

impl Pattern {
    pub fn new() -> Pattern {
        let mut random = testkit::Random(1);
        let mut bytes: Vec<u8> = (0..PERIOD).map(|_| random.below(256) as u8).collect();
        bytes.extend_from_within(..CHUNK);
        Pattern(bytes)
    }

    /// At most [`CHUNK`] bytes from number `at` on of the stream `key`.
    fn at(&self, key: usize, at: usize, len: usize) -> &[u8] {
        &self.0[(key * 7919 + at) % PERIOD..][..len]
    }
}

/// The address of host number `end`.
pub fn address(end: usize, is_v6: bool) -> IpAddr {
    let last = end as u8 + 1;
    if is_v6 {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).into()
    } else {
        Ipv4Addr::new(10, 0, 0, last).into()
    }
}

/// Its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every byte arrived, and both FINs.
    Done,
    /// It was reset on purpose; all data before was right.
    Reset,
    /// It stalled.
    Stalled(String),
    /// A host reset it.
    Failed(String),
    /// Wrong bytes arrived.
    Wrong(String),
}

#[derive(Debug, Default)]
struct End {
    stream: Option<TcpStream>,
    is_open: bool,
    sent: usize,
    received: usize,
    is_shut: bool,
    is_ended: bool,
}

pub struct Transfer {
    case: TransferCase,
    number: usize,
    listener: TcpListener,
    ends: [End; 2],
    began: Instant,
    progressed: Instant,
    read_at: Instant,
    pub outcome: Option<Outcome>,
}

impl Transfer {
    /// Opens it.
    pub fn begin(number: usize, case: &TransferCase, hosts: &[Host; 2]) -> Transfer {
        let (opener, passive) = (case.opener, 1 - case.opener);
        let target = SocketAddr::new(address(passive, case.is_v6), FIRST_PORT + number as u16);
        let target = SockaddrStorage::from(target);
        let [near, far] = [opener, passive].map(|end| {
            let case = case.clone();
            hosts[end].enter(move || open_socket(end, &case)).expect("the host is there")
        });
        bind(far.as_raw_fd(), &target).expect("the port is free");
        listen(&far, Backlog::new(4).expect("a small one")).expect("it is bound");
        match connect(near.as_raw_fd(), &target) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => panic!("connecting to {target}: {error}"),
        }
        let now = Instant::now();
        let mut ends = [End::default(), End::default()];
        ends[opener].stream = Some(TcpStream::from(near));
        let (case, listener) = (case.clone(), TcpListener::from(far));
        Transfer { case, number, listener, ends, began: now, progressed: now, read_at: now, outcome: None }
    }

    fn key(&self, end: usize) -> usize {
        self.number * 2 + end
    }

    fn may_read(&self, end: usize, now: Instant) -> bool {
        self.case.lazy != Some(end) || now >= self.read_at
    }

    /// The events that it waits for.
    pub fn wait_for<'a>(&'a self, now: Instant, fds: &mut Vec<PollFd<'a>>) {
        if self.outcome.is_some() {
            return;
        }
        for (number, end) in self.ends.iter().enumerate() {
            let Some(stream) = &end.stream else {
                fds.push(PollFd::new(&self.listener, PollFlags::IN));
                continue;
            };
            let writes = !end.is_open || end.sent < self.case.bytes[number];
            let reads = end.is_open && !end.is_ended && self.may_read(number, now);
            let flags = [(writes, PollFlags::OUT), (reads, PollFlags::IN)];
            let flags = flags.into_iter().filter(|(is, _)| *is).fold(PollFlags::empty(), |all, (_, flag)| all | flag);
            if !flags.is_empty() {
                fds.push(PollFd::new(stream, flags));
            }
        }
    }

    /// Does all that is possible without waiting.
    pub fn work(&mut self, now: Instant, pattern: &Pattern) {
        if self.outcome.is_some() {
            return;
        }
        let before = self.progress();
        self.accept();
        for end in 0..2 {
            if let Err(outcome) = self.read_and_write(end, now, pattern) {
                return self.end(outcome);
            }
        }
        if self.case.lazy.is_some_and(|end| self.may_read(end, now)) {
            self.read_at = now + LAZY;
        }
        self.finish(now);
        if self.progress() != before {
            self.progressed = now;
        } else if now.duration_since(self.progressed) > QUIET {
            self.end(Outcome::Stalled(format!("{:?}", self.ends)));
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.ends = [End::default(), End::default()];
        self.outcome = Some(outcome);
    }

    fn progress(&self) -> [(usize, bool, bool); 2] {
        self.ends.each_ref().map(|end| (end.sent + end.received, end.is_open, end.is_ended))
    }

    fn accept(&mut self) {
        let end = &mut self.ends[1 - self.case.opener];
        if end.stream.is_none()
            && let Ok((stream, _)) = self.listener.accept()
        {
            stream.set_nonblocking(true).expect("a socket takes it");
            end.stream = Some(stream);
        }
    }

    fn read_and_write(&mut self, number: usize, now: Instant, pattern: &Pattern) -> Result<(), Outcome> {
        let (own, other) = (self.key(number), self.key(1 - number));
        let may_read = self.may_read(number, now);
        let (to_send, to_receive) = (self.case.bytes[number], self.case.bytes[1 - number]);
        let failed = |error: std::io::Error| match self.case.finish {
            Finish::Reset { .. } => Outcome::Reset,
            _ => Outcome::Failed(error.to_string()),
        };
        let end = &mut self.ends[number];
        let Some(mut stream) = end.stream.as_ref() else { return Ok(()) };
        if !end.is_open {
            if let Some(error) = stream.take_error().expect("a socket tells") {
                return Err(failed(error));
            }
            end.is_open = stream.peer_addr().is_ok();
            if !end.is_open {
                return Ok(());
            }
        }
        while end.sent < to_send {
            let bytes = pattern.at(own, end.sent, CHUNK.min(to_send - end.sent));
            match stream.write(bytes) {
                Ok(sent) => end.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(failed(error)),
            }
        }
        let mut buffer = [0; CHUNK];
        while may_read && !end.is_ended {
            match stream.read(&mut buffer) {
                Ok(0) => end.is_ended = true,
                Ok(len) => {
                    if buffer[..len] != *pattern.at(other, end.received, len) {
                        return Err(Outcome::Wrong(format!("within {len} bytes from number {} on", end.received)));
                    }
                    end.received += len;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(failed(error)),
            }
        }
        let is_cut = end.is_ended && end.received < to_receive && !matches!(self.case.finish, Finish::Reset { .. });
        if is_cut || end.received > to_receive {
            return Err(Outcome::Wrong(format!("{} bytes arrived of {to_receive}", end.received)));
        }
        Ok(())
    }

    /// Closes the ends that are due.
    fn finish(&mut self, now: Instant) {
        let case = &self.case;
        let is_written = [0, 1].map(|end| self.ends[end].is_open && self.ends[end].sent == case.bytes[end]);
        let is_read = [0, 1].map(|end| self.ends[end].received == case.bytes[1 - end]);
        let shut = match case.finish {
            Finish::Each => [0, 1].map(|end| is_written[end] && is_read[end]),
            Finish::HalfClosed => is_written,
            Finish::Together => [is_written == [true; 2] && is_read == [true; 2]; 2],
            Finish::Reset { by, after } => {
                if self.ends[by].is_open && now.duration_since(self.began) >= after {
                    let stream = self.ends[by].stream.as_ref().expect("it is open");
                    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
                    setsockopt(stream, sockopt::Linger, &linger).expect("a socket takes it");
                    self.end(Outcome::Reset);
                    return;
                }
                [false; 2]
            }
        };
        for (end, shut) in self.ends.iter_mut().zip(shut) {
            if shut && !end.is_shut {
                end.is_shut = true;
                // the other end may have reset it meanwhile: reading shows it
                let _ = end.stream.as_ref().expect("it is open").shutdown(Shutdown::Write);
            }
        }
        if self.ends.iter().all(|end| end.is_shut && end.is_ended) {
            self.end(Outcome::Done);
        }
    }
}

/// A socket with the case's options, in the calling thread's namespace.
fn open_socket(end: usize, case: &TransferCase) -> OwnedFd {
    let family = if case.is_v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family, SockType::Stream, flags, None).expect("a socket");
    if let Some(mss) = case.mss[end] {
        setsockopt(&fd, sockopt::TcpMaxSeg, &mss).expect("a size that Linux takes");
    }
    if let Some(bytes) = case.receive_buffer[end] {
        setsockopt(&fd, sockopt::RcvBufForce, &bytes).expect("root may");
    }
    if let Some(bytes) = case.send_buffer[end] {
        setsockopt(&fd, sockopt::SndBufForce, &bytes).expect("root may");
    }
    setsockopt(&fd, sockopt::TcpCongestion, &OsString::from(case.algorithms[end])).expect("the kernel has it");
    fd
}
