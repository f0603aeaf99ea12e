//! The bus between processes of one machine: a Unix socket that keeps messages whole (SOCK_SEQPACKET, unix(7)).
//!
//! Both ends check the owner of the other process (SO_PEERCRED): root or the same user, others are refused. Only its owner may use the
//! socket's file. Messages wait for a reader in the kernel, in a buffer of bounded size; none wait in this process.

use crate::channel::fits;
use crate::files::{advice, lock_file};
use crate::{AGENTS_MAX, Bus, BusCounts, BusError, Hub, MESSAGE_MAX, Peer, Received, ReplyTo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_peercred};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    recv, send, socket_with,
};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What may wait for a reader, bytes; the kernel may allow less.
const BUFFER_BYTES: usize = 1 << 20;
/// Files that a process has open beside those of its agents, at most.
const OTHER_FILES: usize = 64;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The Oracle's end. Its file is removed when it is dropped.
#[derive(Debug)]
pub struct UnixOracle {
    listener: OwnedFd,
    path: PathBuf,
    /// The socket's inode: another Oracle may have put its own in the place.
    inode: u64,
    /// Held as long as this lives: a second Oracle finds it locked. `None`: an Oracle that was stopped has it.
    lock: Option<File>,
    agents: Vec<(u64, OwnedFd)>,
    /// How many agents there have been: the next one's number.
    numbers: u64,
    /// Most agents: as many as this process may open files for.
    room: usize,
    /// The agent that is read first next time.
    next: usize,
    counts: BusCounts,
}

/// An agent's end.
#[derive(Debug)]
pub struct UnixAgent {
    socket: OwnedFd,
}

impl UnixOracle {
    /// Listens at `path`, in a folder that is made if it is missing. A socket that an earlier Oracle left is replaced.
    ///
    /// # Errors
    /// Another Oracle listens there, or the file cannot be made.
    pub fn listen(path: &Path) -> Result<UnixOracle, BusError> {
        match lock_beside(path)? {
            None => {
                Err(BusError::Socket { path: path.to_path_buf(), reason: "another Oracle listens there".to_string() })
            }
            lock => UnixOracle::bind(path, lock),
        }
    }

    /// The same where another Oracle may still listen, which gets no new agents from then on.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn take_over(path: &Path) -> Result<UnixOracle, BusError> {
        UnixOracle::bind(path, lock_beside(path)?)
    }

    fn bind(path: &Path, lock: Option<File>) -> Result<UnixOracle, BusError> {
        let failed = |reason: String| BusError::Socket { path: path.to_path_buf(), reason };
        let io = |error: io::Error| failed(format!("{error}{}", advice(&error)));
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(failed("there is a file of this name that is not a socket".to_string()));
            }
            Ok(_) => fs::remove_file(path).map_err(io)?,
            Err(_) => {}
        }
        let listener = new_socket(SocketFlags::NONBLOCK).map_err(|error| io(error.into()))?;
        let address = SocketAddrUnix::new(path).map_err(|error| io(error.into()))?;
        bind(&listener, &address).map_err(|error| io(error.into()))?;
        rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR).map_err(|error| io(error.into()))?;
        listen(&listener, BACKLOG).map_err(|error| io(error.into()))?;
        let inode = fs::symlink_metadata(path).map_err(io)?.ino();
        let (path, agents, counts) = (path.to_path_buf(), Vec::new(), BusCounts::default());
        Ok(UnixOracle { listener, path, inode, lock, agents, numbers: 0, room: room(), next: 0, counts })
    }

    /// Accepts connections that wait.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            let agent = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(agent) => agent,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => return Err(error.into()),
            };
            if self.agents.len() >= self.room || !is_trusted(&agent) {
                self.counts.refused += 1;
                continue;
            }
            set_socket_send_buffer_size(&agent, BUFFER_BYTES)?;
            self.agents.push((self.numbers, agent));
            self.numbers += 1;
        }
    }

    /// A message of agent `i`; it is removed if it is gone or its message is too long.
    fn read(&mut self, i: usize) -> Option<Received> {
        let (number, agent) = &self.agents[i];
        match read(agent) {
            Ok(bytes) => {
                self.next = i + 1;
                return Some(Received { from: Peer::Local, bytes, reply: ReplyTo::Connection(*number) });
            }
            Err(BusError::Long(_)) => self.counts.long += 1,
            Err(_) => {}
        }
        self.agents.remove(i);
        None
    }
}

impl Drop for UnixOracle {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
            if self.lock.is_some() {
                let _ = fs::remove_file(self.path.with_extension("lock"));
            }
        }
    }
}

/// The lock beside a socket, whose folder is made if it is missing; `None`: another process has it.
fn lock_beside(path: &Path) -> Result<Option<File>, BusError> {
    let io =
        |error: io::Error| BusError::Socket { path: path.to_path_buf(), reason: format!("{error}{}", advice(&error)) };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(io)?;
    }
    let lock = lock_file(&path.with_extension("lock")).map_err(io)?;
    let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(is_locked.then_some(lock))
}

impl Hub for UnixOracle {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        self.accept()?;
        let counts = &mut self.counts;
        self.agents.retain(|(_, agent)| is_written(agent, message, counts));
        Ok(())
    }

    fn answer(&mut self, to: &ReplyTo, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        let ReplyTo::Connection(to) = to else { return Ok(()) };
        let counts = &mut self.counts;
        self.agents.retain(|(number, agent)| number != to || is_written(agent, message, counts));
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Received>, BusError> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let first = self.next.min(self.agents.len());
            let order: Vec<usize> = (first..self.agents.len()).chain(0..first).collect();
            let watched = order.iter().map(|i| PollFd::new(&self.agents[*i].1, PollFlags::IN));
            let mut fds: Vec<PollFd<'_>> = watched.chain([PollFd::new(&self.listener, PollFlags::IN)]).collect();
            let ready = wait_for(&mut fds, left)?;
            let newcomers = !fds.last().is_none_or(|fd| fd.revents().is_empty());
            let speaks = fds[..order.len()].iter().position(|fd| !fd.revents().is_empty()).map(|at| order[at]);
            drop(fds);
            if newcomers {
                self.accept()?;
            }
            if let Some(message) = speaks.and_then(|i| self.read(i)) {
                return Ok(Some(message));
            }
            if ready == 0 && until <= Instant::now() {
                return Ok(None);
            }
        }
    }

    fn counts(&self) -> BusCounts {
        BusCounts { peers: self.agents.len(), ..self.counts }
    }
}

impl UnixAgent {
    /// Reaches the Oracle that listens at `path`.
    ///
    /// # Errors
    /// No process listens there, or one of another user than root and this one.
    pub fn connect(path: &Path) -> Result<UnixAgent, BusError> {
        let failed = |reason: String| BusError::Socket { path: path.to_path_buf(), reason };
        let errno = |error: Errno| failed(io::Error::from(error).to_string());
        let socket = new_socket(SocketFlags::empty()).map_err(errno)?;
        let address = SocketAddrUnix::new(path).map_err(errno)?;
        connect(&socket, &address).map_err(errno)?;
        if !is_trusted(&socket) {
            return Err(failed("the process that listens there belongs to another user".to_string()));
        }
        set_socket_send_buffer_size(&socket, BUFFER_BYTES).map_err(errno)?;
        Ok(UnixAgent { socket })
    }
}

impl Bus for UnixAgent {
    fn send(&mut self, message: &[u8]) -> Result<(), BusError> {
        fits(message)?;
        write(&self.socket, message)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        let ready = wait_for(&mut [PollFd::new(&self.socket, PollFlags::IN)], wait)?;
        if ready == 0 { Ok(None) } else { read(&self.socket).map(Some) }
    }
}

/// Writes; whether the agent is to be kept.
fn is_written(agent: &OwnedFd, message: &[u8], counts: &mut BusCounts) -> bool {
    let written = write(agent, message);
    counts.slow += u64::from(matches!(written, Err(BusError::Full)));
    written.is_ok()
}

/// How many agents there is room for: one that comes when no file can be opened could not even be turned away.
fn room() -> usize {
    let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
    files.saturating_sub(OTHER_FILES).clamp(1, AGENTS_MAX)
}

fn new_socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | flags, None)
}

/// Whether the process at the other end is root's or this user's.
fn is_trusted(socket: &OwnedFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

/// Polls; 0 if nothing came in time, or a signal did.
fn wait_for(fds: &mut [PollFd<'_>], wait: Duration) -> io::Result<usize> {
    // rounded up by the kernel, so that a wait of less than its unit is no busy loop
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    match poll(fds, Some(&wait)) {
        Ok(ready) => Ok(ready),
        Err(Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn write(socket: impl AsFd, message: &[u8]) -> Result<(), BusError> {
    match send(socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(_) => Ok(()),
        Err(Errno::AGAIN | Errno::NOBUFS) => Err(BusError::Full),
        Err(_) => Err(BusError::Gone),
    }
}

/// A message that waits. The kernel returns its full length, so one that was cut is noticed.
fn read(socket: impl AsFd) -> Result<Vec<u8>, BusError> {
    let mut bytes = vec![0; MESSAGE_MAX];
    match recv(socket, &mut bytes[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
        // a message without bytes is the end of the connection
        Ok((_, 0)) => Err(BusError::Gone),
        Ok((_, length)) if length > MESSAGE_MAX => Err(BusError::Long(length)),
        Ok((_, length)) => {
            bytes.truncate(length);
            Ok(bytes)
        }
        Err(error) => Err(BusError::Io(error.into())),
    }
}
