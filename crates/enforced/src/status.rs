//! What the enforcer tells of itself, to whoever connects to its socket.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer, bytes.
const STATUS_MAX: u64 = 1 << 20;

/// One of its interfaces.
#[derive(Debug, Serialize, Deserialize)]
pub struct PortStatus {
    /// Its name.
    pub interface: String,
    /// Frames that were handed over.
    pub received: u64,
    /// Frames that left.
    pub sent: u64,
    /// Frames that could not leave.
    pub lost: u64,
    /// Frames that took their way through the bridge: what is not TCP's, and what the enforcer leaves to it.
    pub bridged: u64,
    /// Frames that were not handed over: the enforcer was behind, or they were too long.
    pub missed: u64,
}

/// How the enforcer is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// For how long it has run.
    pub up_seconds: f64,
    /// The interface on the servers' side.
    pub servers: PortStatus,
    /// The interface on the clients' side.
    pub clients: PortStatus,
    /// Flows that are enforced now.
    pub flows: usize,
    /// Of these by algorithm.
    pub flows_by_algorithm: BTreeMap<String, usize>,
    /// Memory of the packets that are buffered now.
    pub buffered_bytes: usize,
    /// The most that it was.
    pub buffered_bytes_max: usize,
    /// Everything that was done since it began.
    pub counters: BTreeMap<String, u64>,
}

impl Status {
    /// Asks the enforcer that listens there.
    ///
    /// # Errors
    /// Nobody does, or what is said is something else.
    pub fn ask(socket: &Path) -> io::Result<Status> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        stream.take(STATUS_MAX).read_to_string(&mut text)?;
        serde_json::from_str(&text).map_err(io::Error::from)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "enforcing for {:.0} s: {} flows now", self.up_seconds, self.flows)?;
        self.flows_by_algorithm.iter().try_for_each(|(name, flows)| writeln!(f, "  {flows} by {name}"))?;
        writeln!(f, "packets kept: {} bytes now, {} at most", self.buffered_bytes, self.buffered_bytes_max)?;
        for (side, port) in [("servers", &self.servers), ("clients", &self.clients)] {
            let PortStatus { interface, received, sent, lost, bridged, missed } = port;
            writeln!(
                f,
                "{side} at {interface}: {received} received, {bridged} bridged, {missed} missed, {sent} sent, {lost} lost here"
            )?;
        }
        let width = self.counters.keys().map(String::len).max().unwrap_or(0);
        self.counters.iter().try_for_each(|(name, value)| writeln!(f, "  {name:width$} {value:>12}"))
    }
}

/// Where the status is told. The socket's file is removed when this is dropped.
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens, for root alone.
    ///
    /// # Errors
    /// Another enforcer does, or the file cannot be made.
    pub fn bind(path: &Path) -> Result<Listener, String> {
        if UnixStream::connect(path).is_ok() {
            return Err("an enforcer listens there already; give the second one a --socket of its own".to_string());
        }
        let bind = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            match fs::symlink_metadata(path) {
                // of an enforcer that was killed
                Ok(there) if there.file_type().is_socket() => fs::remove_file(path)?,
                Ok(_) => return Err(io::Error::other("it is there, and no socket")),
                Err(_) => {}
            }
            let listener = UnixListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        bind()
            .map(|listener| Listener { listener, path: path.to_path_buf() })
            .map_err(|error: io::Error| error.to_string())
    }

    /// Tells those who wait.
    pub fn answer(&self, status: impl Fn() -> Status) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let text = serde_json::to_string(&status()).unwrap_or_default();
            // it fits a socket's buffer: whoever asks and does not read is not waited for
            let _ = stream.set_nonblocking(true);
            let _ = stream.write_all(text.as_bytes());
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn an_answer_that_never_ends_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("status");
        let listener = UnixListener::bind(&path).expect("a socket");
        let endless = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it is asked");
            while stream.write_all(&[b'['; 4096]).is_ok() {}
        });
        assert!(Status::ask(&path).is_err());
        endless.join().expect("it ends when nobody reads");
    }
}
