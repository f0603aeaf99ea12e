//! The enforcer's status, for whoever connects to its socket.
//!
//! Who connects writes a line, `status`, `flows` or `hand over`, and reads the answer. Earlier versions wrote nothing, and got the status: so does
//! who writes nothing until the next look at the socket.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer, bytes.
const STATUS_MAX: u64 = 1 << 20;
/// Connections that have not said yet what they ask for; one more and the oldest is answered.
const ASKING_MAX: usize = 16;
/// Longest question, bytes.
const QUESTION_MAX: usize = 64;

/// One of the two interfaces.
#[derive(Debug, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its name.
    pub interface: String,
    /// Frames received from the kernel.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames lost on sending.
    pub lost: u64,
    /// Frames that bypassed the enforcer through the bridge: those that are not TCP, and those redirected nowhere.
    pub bridged: u64,
    /// Frames dropped on reception: the enforcer was behind, or they were too long.
    pub missed: u64,
}

/// What an enforcer that takes CUEs knows of the Oracle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OracleStatus {
    /// Where they meet.
    pub at: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// Why there is none.
    #[serde(default)]
    pub why: Option<String>,
    /// How long ago a message of an Oracle came, in seconds; `None`: never.
    #[serde(default)]
    pub heard_seconds_ago: Option<f64>,
    /// Without a connection: when the next one is tried, in seconds.
    #[serde(default)]
    pub next_try_seconds: Option<f64>,
}

impl fmt::Display for OracleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.as_ref().map_or(String::new(), |why| format!(" ({why})"));
        write!(f, "Oracle at {}: {}{why}", self.at, if self.connected { "connected" } else { "not connected" })?;
        match self.heard_seconds_ago {
            Some(ago) => write!(f, ", last heard {ago:.0} s ago")?,
            None => write!(f, ", never heard")?,
        }
        self.next_try_seconds.map_or(Ok(()), |after| write!(f, ", next try in {after:.1} s"))
    }
}

/// The enforcer's status.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// Time since it started, in seconds.
    pub up_seconds: f64,
    /// The interface on the servers' side.
    pub servers: PortStatus,
    /// The interface on the clients' side.
    pub clients: PortStatus,
    /// Flows enforced now.
    pub flows: usize,
    /// The same by algorithm.
    pub flows_by_algorithm: BTreeMap<String, usize>,
    /// Flows whose marks are echoed now.
    #[serde(default)]
    pub echoes: usize,
    /// Memory of the packets buffered now.
    pub buffered_bytes: usize,
    /// Its maximum.
    pub buffered_bytes_max: usize,
    /// Its limit.
    #[serde(default)]
    pub buffered_bytes_limit: usize,
    /// The most flows that it enforces at a time.
    #[serde(default)]
    pub flows_limit: usize,
    /// The longest time between two looks at the interfaces, not counting sleep, in seconds. What the machine did in between counts.
    #[serde(default)]
    pub turn_max_seconds: f64,
    /// The longest part of that time that listing flows took, in seconds.
    #[serde(default)]
    pub listing_max_seconds: f64,
    /// Flows of another enforcer, whose standby this is.
    #[serde(default)]
    pub mirrored: usize,
    /// Reports of other enforcers that were not taken: forged, repeated, or of a clock that is far from this machine's.
    #[serde(default)]
    pub mirror_refused: u64,
    /// The Oracle, if it takes CUEs for servers.
    #[serde(default)]
    pub oracle: Option<OracleStatus>,
    /// The enforcer's counters since it started.
    pub counters: BTreeMap<String, u64>,
}

impl Status {
    /// Asks the enforcer that listens at `socket`.
    ///
    /// # Errors
    /// No enforcer answers, or the answer is not a status.
    pub fn ask(socket: &Path) -> io::Result<Status> {
        let stream = connect(socket, "status")?;
        let mut text = Vec::new();
        match stream.take(STATUS_MAX).read_to_end(&mut text) {
            // an enforcer of an earlier version closes without having read the question
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => return Err(error),
            _ => {}
        }
        serde_json::from_slice(&text).map_err(io::Error::from)
    }
}

/// A connection to the enforcer that listens at `socket`, which was asked `question`.
pub fn connect(socket: &Path, question: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    writeln!(stream, "{question}")?;
    Ok(stream)
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "enforcing for {:.0} s: {} flows now", self.up_seconds, self.flows)?;
        self.flows_by_algorithm.iter().try_for_each(|(name, flows)| writeln!(f, "  {flows} by {name}"))?;
        if self.echoes > 0 {
            writeln!(f, "  of {} more flows marks are echoed", self.echoes)?;
        }
        if self.mirrored > 0 || self.mirror_refused > 0 {
            let Status { mirrored, mirror_refused, .. } = self;
            writeln!(f, "standby of another enforcer: {mirrored} flows; {mirror_refused} reports were not taken")?;
        }
        self.oracle.iter().try_for_each(|oracle| writeln!(f, "{oracle}"))?;
        writeln!(f, "buffered: {} bytes now, {} at most", self.buffered_bytes, self.buffered_bytes_max)?;
        for (side, port) in [("servers", &self.servers), ("clients", &self.clients)] {
            let PortStatus { interface, received, sent, lost, bridged, missed } = port;
            writeln!(
                f,
                "{side} at {interface}: {received} received, {bridged} bridged, {missed} missed, {sent} sent, {lost} lost"
            )?;
        }
        let width = self.counters.keys().map(String::len).max().unwrap_or(0);
        self.counters.iter().try_for_each(|(name, value)| writeln!(f, "  {name:width$} {value:>12}"))
    }
}

/// The status socket. Its file is removed on drop.
pub struct Listener {
    socket: UnixListener,
    /// `None`: the file is another process's.
    path: Option<PathBuf>,
    /// Who has connected; the oldest first.
    asking: VecDeque<Asking>,
}

/// Somebody who has connected and not yet said what for.
struct Asking {
    stream: UnixStream,
    said: Vec<u8>,
    /// Looks since then.
    looks: u32,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The status.
    Status,
    /// The flows.
    Flows,
    /// The enforcer's place ([`crate::hand_over`]).
    HandOver,
}

/// What has come from somebody who asks.
enum Heard {
    /// Nothing, or half of a question: there may be more at the next look.
    Nothing,
    Question(Question),
    /// No question, or the connection is closed.
    Nonsense,
}

impl Asking {
    fn heard(&mut self) -> Heard {
        let mut buffer = [0; QUESTION_MAX];
        let is_first = self.looks == 0;
        self.looks += 1;
        match self.stream.read(&mut buffer[..QUESTION_MAX - self.said.len()]) {
            Ok(0) => return Heard::Nonsense,
            Ok(n) => self.said.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Heard::Nonsense,
        }
        match self.said.as_slice() {
            b"status\n" => Heard::Question(Question::Status),
            b"flows\n" => Heard::Question(Question::Flows),
            b"hand over\n" => Heard::Question(Question::HandOver),
            said if said.ends_with(b"\n") || said.len() == QUESTION_MAX => Heard::Nonsense,
            _ if is_first => Heard::Nothing,
            b"" => Heard::Question(Question::Status),
            _ => Heard::Nonsense,
        }
    }
}

impl Listener {
    fn of(socket: UnixListener, path: Option<PathBuf>) -> Listener {
        Listener { socket, path, asking: VecDeque::new() }
    }

    /// The socket of another process; its file is that one's until [`Listener::own`] is called.
    pub fn resume(socket: OwnedFd) -> Listener {
        Listener::of(UnixListener::from(socket), None)
    }

    /// From now on its file is this process's, or, without a path, another's.
    pub fn own(&mut self, path: Option<&Path>) {
        self.path = path.map(Path::to_path_buf);
    }

    /// The socket.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Listens, for root alone.
    ///
    /// # Errors
    /// Another enforcer listens there, or the file cannot be made.
    pub fn bind(path: &Path) -> Result<Listener, String> {
        if UnixStream::connect(path).is_ok() {
            return Err("an enforcer already listens there; give this one another --socket".to_string());
        }
        let bind = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            match fs::symlink_metadata(path) {
                // left by an enforcer that was killed
                Ok(there) if there.file_type().is_socket() => fs::remove_file(path)?,
                Ok(_) => return Err(io::Error::other("the file exists and is not a socket")),
                Err(_) => {}
            }
            let listener = UnixListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        bind()
            .map(|socket| Listener::of(socket, Some(path.to_path_buf())))
            .map_err(|error: io::Error| error.to_string())
    }

    /// Who has said what they ask for since the last call, which is made at each look at the socket.
    pub fn questions(&mut self) -> Vec<(Question, UnixStream)> {
        while self.asking.len() < ASKING_MAX
            && let Ok((stream, _)) = self.socket.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.asking.push_back(Asking { stream, said: Vec::new(), looks: 0 });
            }
        }
        let mut asked = Vec::new();
        for mut asking in std::mem::take(&mut self.asking) {
            match asking.heard() {
                Heard::Question(question) => asked.push((question, asking.stream)),
                Heard::Nothing => self.asking.push_back(asking),
                Heard::Nonsense => {}
            }
        }
        asked
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.path.as_ref().map(fs::remove_file);
    }
}
