//! A new enforcer takes the place of a running one: with its sockets and the packets that wait in them, its flows and the packets that
//! they buffer.
//!
//! The new one asks at the status socket, and gets a [`Start`] and the files of the status socket and of each interface
//! ([`Successor`]). It maps them and allocates its tables, while the running one goes on, and then says [`PAUSE`]. The running one stops
//! reading packets, which wait in the kernel's rings from then on, and writes a [`Pause`], the connections in their handshake, and each flow.
//!
//! Once it has restored them the new one says [`READY`]; the running one answers [`GO`], and ends. Until it has said that, it goes
//! on where it was if anything fails. It beats meanwhile, so that no packet bypasses the enforcer. All is written in tagged fields
//! (Protocol Buffers), so versions may differ in them; [`FORMAT`] changes when they differ in more.

#[cfg(test)]
mod tests;

use crate::cues::{Cues, Given};
use crate::port::{Port, PortState};
use bytes::{Buf as _, Bytes, BytesMut};
use enforcer::{Checkpoint, Enforcer, Handshakes};
use nix::time::{ClockId, clock_gettime};
use packet_io::{OwnedFrame, Urgent, VnetHeader};
use prost::Message;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg, sockopt::socket_peercred,
};
use std::hint::black_box;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use units::Time;

/// The format that both must know.
const FORMAT: u32 = 1;
/// How long either waits for the other's next bytes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval of heartbeats while the new enforcer restores flows, and how many there are at most.
const BEAT: Duration = Duration::from_millis(100);
const BEATS_MAX: u32 = 50;
/// So many bytes are written or read at a time.
const CHUNK: usize = 1 << 16;
/// A message's length comes first, in so many bytes.
const LEN_BYTES: usize = 4;
/// Memory of a flow beside its place in the table and its packets.
const FLOW_BYTES: u64 = 1024;
/// At most so much is allocated before there are any flows, bytes.
const ALLOCATED_MAX: u64 = 1 << 28;
/// In blocks below jemalloc's large ones, which it joins once they are free, and does not part for small needs.
const BLOCK_BYTES: usize = 12 << 10;
/// Flows between two heartbeats while they are written.
const FLOWS_PER_BEAT: usize = 256;
/// Files of one control message; the kernel takes 253.
const FILES_MAX: usize = 64;
/// How long a new enforcer may take to map the sockets.
const MAPPED_WITHIN: Time = Time::from_secs(10);
/// The new enforcer waits for the flows.
const PAUSE: u8 = b'p';
/// It has everything.
const READY: u8 = b'r';
/// It may begin.
const GO: u8 = b'g';

/// What there is.
#[derive(Clone, PartialEq, Eq, Message)]
struct Start {
    #[prost(uint32, tag = "1")]
    format: u32,
    /// The servers' side, the clients' side.
    #[prost(message, repeated, tag = "2")]
    ports: Vec<PortState>,
    /// How many flows there are, so that the new one can allocate memory for them before anything waits.
    #[prost(uint64, tag = "3")]
    flows: u64,
    /// How much memory they use for what they buffer, bytes.
    #[prost(uint64, tag = "4")]
    buffered: u64,
}

/// What precedes the flows.
#[derive(Clone, PartialEq, Eq, Message)]
struct Pause {
    /// When the running enforcer stopped reading packets, ns of CLOCK_MONOTONIC.
    #[prost(uint64, tag = "1")]
    began_ns: u64,
    /// The servers' side, the clients' side.
    #[prost(message, repeated, tag = "2")]
    ports: Vec<PortState>,
    #[prost(uint64, tag = "3")]
    flows: u64,
    /// If it takes CUEs.
    #[prost(message, optional, tag = "4")]
    cues: Option<Given>,
}

/// A new enforcer that has asked for a running one's place.
pub struct Successor {
    stream: UnixStream,
    until: Time,
}

impl Successor {
    /// Names, at `now`, what there is: the status socket, the interfaces, and how many flows.
    ///
    /// # Errors
    /// It does not read.
    pub fn begin(
        now: Time,
        stream: UnixStream,
        listener: BorrowedFd<'_>,
        ports: &[Port; 2],
        enforcer: &Enforcer<OwnedFrame>,
    ) -> io::Result<Successor> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(BEAT))?;
        let buffered = enforcer.buffered_bytes() as u64;
        let mut messages = Outgoing::to(&stream);
        messages.add(&Start { format: FORMAT, ports: states(ports), flows: flows(enforcer), buffered })?;
        messages.flush()?;
        let files: Vec<BorrowedFd<'_>> = [listener].into_iter().chain(ports.iter().flat_map(Port::files)).collect();
        files.chunks(FILES_MAX).try_for_each(|files| send_files(&stream, files))?;
        stream.set_nonblocking(true)?;
        Ok(Successor { stream, until: now + MAPPED_WITHIN })
    }

    /// Its process.
    ///
    /// # Errors
    /// The kernel does not know it.
    pub fn process(&self) -> io::Result<u32> {
        Ok(socket_peercred(&self.stream)?.pid.as_raw_pid().cast_unsigned())
    }

    /// Whether it waits for the flows.
    ///
    /// # Errors
    /// It has gone, or taken too long.
    pub fn waits(&mut self, now: Time) -> io::Result<bool> {
        let mut said = [0];
        match self.stream.read(&mut said) {
            Ok(1) if said == [PAUSE] => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < self.until => Ok(false),
            Err(error) => Err(error),
            Ok(_) => Err(gave_up()),
        }
    }
}

/// What a running enforcer gives.
pub struct Giving<'a> {
    /// The servers' side, the clients' side.
    pub ports: &'a [Port; 2],
    /// Its flows.
    pub enforcer: &'a Enforcer<OwnedFrame>,
    /// What it takes CUEs by, if it does.
    pub cues: Option<&'a Cues>,
    /// By its clock.
    pub now: Time,
}

impl Giving<'_> {
    /// Gives all to the new enforcer, which has it once this succeeds.
    ///
    /// # Errors
    /// That one failed, or was too slow: it has nothing, and does nothing.
    pub fn give(&self, Successor { stream, .. }: &Successor) -> io::Result<()> {
        let _urgent = Urgent::begin();
        let began_ns = monotonic_ns()?;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(BEAT))?;
        let mut messages = Outgoing::to(stream);
        let cues = self.cues.map(Cues::give);
        messages.add(&Pause { began_ns, ports: states(self.ports), flows: flows(self.enforcer), cues })?;
        messages.add(&self.enforcer.handshakes(self.now))?;
        // the new one begins with it meanwhile
        messages.flush()?;
        for (n, flow) in self.enforcer.checkpoints(self.now, bytes_of).enumerate() {
            if n % FLOWS_PER_BEAT == 0 {
                self.beat()?;
            }
            messages.add(&flow)?;
        }
        messages.flush()?;
        self.await_ready(stream)?;
        (&*stream).write_all(&[GO])
    }

    fn await_ready(&self, stream: &UnixStream) -> io::Result<()> {
        let mut answer = [0];
        for _ in 0..BEATS_MAX {
            self.beat()?;
            match (&*stream).read(&mut answer) {
                Ok(1) if answer == [READY] => return Ok(()),
                Ok(_) => return Err(gave_up()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn beat(&self) -> io::Result<()> {
        self.ports.iter().try_for_each(Port::heartbeat).map_err(io::Error::other)
    }
}

/// What a running enforcer has named, and will give.
pub struct Taking {
    stream: UnixStream,
    start: Start,
}

/// The files of a running enforcer.
pub struct Files {
    /// Its status socket.
    pub listener: OwnedFd,
    /// The servers' side, the clients' side: the state, and files.
    pub ports: [(PortState, Vec<OwnedFd>); 2],
}

impl Taking {
    /// Asks the enforcer that listens at `socket`, which goes on.
    ///
    /// # Errors
    /// None answers, or one of another format.
    pub fn begin(socket: &Path) -> io::Result<(Taking, Files)> {
        let stream = crate::status::connect(socket, "hand over")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // the bytes behind it bring files
        let mut start: Start = Incoming::of(&stream, 0).next()?;
        if start.format != FORMAT {
            return Err(invalid("it is of a version that hands over in another way"));
        }
        let [servers, clients] = both(std::mem::take(&mut start.ports))?;
        let asked = 1 + servers.files() + clients.files();
        let mut files = Vec::new();
        while files.len() < asked {
            receive_files(&stream, &mut files)?;
        }
        let mut files = files.into_iter();
        let listener = files.next().ok_or_else(|| invalid("a file is missing"))?;
        let of_servers = files.by_ref().take(servers.files()).collect();
        let ports = [(servers, of_servers), (clients, files.collect())];
        Ok((Taking { stream, start }, Files { listener, ports }))
    }

    /// Takes the running enforcer's place: restores its flows, by the clock that says `now`, and resumes its sockets. Returns how many flows
    /// there were, and the time in which no packet was read.
    ///
    /// # Errors
    /// The running enforcer failed, or had not the patience to wait for this: it goes on.
    pub fn finish(
        self,
        ports: &mut [Port; 2],
        enforcer: &mut Enforcer<OwnedFrame>,
        cues: Option<&mut Cues>,
        now: impl Fn() -> Time,
    ) -> io::Result<(u64, Duration)> {
        self.allocate(enforcer);
        let mut messages = Incoming::of(&self.stream, CHUNK);
        let _urgent = Urgent::begin();
        (&self.stream).write_all(&[PAUSE])?;
        let pause: Pause = messages.next()?;
        let now = now();
        let states = both(pause.ports)?;
        ports.iter_mut().zip(&states).try_for_each(|(port, state)| port.resume(state)).map_err(io::Error::other)?;
        if let (Some(cues), Some(given)) = (cues, &pause.cues) {
            cues.take(given).map_err(|why| invalid(&why))?;
        }
        let handshakes: Handshakes = messages.next()?;
        enforcer.restore_handshakes(now, &handshakes);
        for _ in 0..pause.flows {
            let flow: Checkpoint = messages.next()?;
            enforcer.restore(now, &flow, frame_of);
        }
        (&self.stream).write_all(&[READY])?;
        if messages.bytes(1)? != [GO][..] {
            return Err(invalid("it answers something else"));
        }
        Ok((pause.flows, Duration::from_nanos(monotonic_ns()?.saturating_sub(pause.began_ns))))
    }

    /// Takes memory from the kernel that the flows will use: each page costs a fault, which packets would wait for.
    fn allocate(&self, enforcer: &mut Enforcer<OwnedFrame>) {
        let amount = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        enforcer.make_room(amount(self.start.flows));
        let bytes = self.start.flows.saturating_mul(FLOW_BYTES).saturating_add(self.start.buffered).min(ALLOCATED_MAX);
        let block = |_| black_box(vec![1_u8; BLOCK_BYTES]);
        // the allocator keeps for seconds what is freed
        drop((0..amount(bytes) / BLOCK_BYTES).map(block).collect::<Vec<_>>());
    }
}

fn states(ports: &[Port; 2]) -> Vec<PortState> {
    ports.iter().map(Port::state).collect()
}

/// How many flows it gives.
fn flows(enforcer: &Enforcer<OwnedFrame>) -> u64 {
    (enforcer.flows() + enforcer.echoes()) as u64
}

fn both(ports: Vec<PortState>) -> io::Result<[PortState; 2]> {
    <[PortState; 2]>::try_from(ports).map_err(|_| invalid("an enforcer has two interfaces"))
}

fn gave_up() -> io::Error {
    io::Error::other("the new enforcer gave up")
}

/// A frame's bytes, behind the work that is left to do.
fn bytes_of(frame: &OwnedFrame) -> Vec<u8> {
    let [headers, payload] = frame.parts();
    [&frame.vnet_header().to_bytes(), headers, payload].concat()
}

fn frame_of(bytes: &[u8]) -> Option<OwnedFrame> {
    let (header, frame) = bytes.split_first_chunk()?;
    Some(OwnedFrame::new(VnetHeader::from_bytes(*header), frame))
}

/// Messages to a stream, each behind its length.
struct Outgoing<'a> {
    stream: &'a UnixStream,
    /// Not yet written.
    bytes: Vec<u8>,
}

impl Outgoing<'_> {
    fn to(stream: &UnixStream) -> Outgoing<'_> {
        Outgoing { stream, bytes: Vec::with_capacity(2 * CHUNK) }
    }

    fn add(&mut self, message: &impl Message) -> io::Result<()> {
        let len = u32::try_from(message.encoded_len())
            .map_err(|_| invalid("a flow has more buffered than a message takes"))?;
        self.bytes.extend(len.to_le_bytes());
        message.encode(&mut self.bytes).expect("a vector grows");
        if self.bytes.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// The same where they arrive. What messages hold is not copied from the bytes that were read.
struct Incoming<'a> {
    stream: &'a UnixStream,
    /// How many bytes at least it asks the kernel for: more than a message has are kept for the next.
    ahead: usize,
    /// Not yet handed out.
    read: BytesMut,
}

impl Incoming<'_> {
    fn of(stream: &UnixStream, ahead: usize) -> Incoming<'_> {
        Incoming { stream, ahead, read: BytesMut::with_capacity(2 * ahead) }
    }

    /// The next message.
    fn next<M: Message + Default>(&mut self) -> io::Result<M> {
        let len = self.bytes(LEN_BYTES)?.get_u32_le();
        M::decode(self.bytes(len as usize)?).map_err(|error| invalid(&error.to_string()))
    }

    /// So many bytes. Memory is taken for those that have come.
    fn bytes(&mut self, count: usize) -> io::Result<Bytes> {
        while self.read.len() < count {
            let had = self.read.len();
            self.read.resize(had + (count - had).min(CHUNK).max(self.ahead), 0);
            let more = self.stream.read(&mut self.read[had..])?;
            self.read.truncate(had + more);
            if more == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.read.split_to(count).freeze())
    }
}

/// Sends files, with a byte that stands for them.
fn send_files(stream: &UnixStream, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FILES_MAX))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(files));
    sendmsg(stream, &[IoSlice::new(&[0])], &mut rights, SendFlags::empty())?;
    Ok(())
}

fn receive_files(stream: &UnixStream, files: &mut Vec<OwnedFd>) -> io::Result<()> {
    let (mut byte, before) = ([0], files.len());
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(FILES_MAX))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    if files.len() == before { Err(invalid("a file is missing")) } else { Ok(()) }
}

fn monotonic_ns() -> io::Result<u64> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?).as_nanos() as u64)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}
