//! The enforcer's status, for whoever connects to its socket.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer, bytes.
const STATUS_MAX: u64 = 1 << 20;

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
    /// Memory of the packets buffered now.
    pub buffered_bytes: usize,
    /// Its maximum.
    pub buffered_bytes_max: usize,
    /// The enforcer's counters since it started.
    pub counters: BTreeMap<String, u64>,
}

impl Status {
    /// Asks the enforcer that listens at `socket`.
    ///
    /// # Errors
    /// No enforcer answers, or the answer is not a status.
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
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
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
            .map(|listener| Listener { listener, path: path.to_path_buf() })
            .map_err(|error: io::Error| error.to_string())
    }

    /// Answers waiting clients.
    pub fn answer(&self, status: impl Fn() -> Status) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let text = serde_json::to_string(&status()).unwrap_or_default();
            // the answer fits a socket's buffer, so a client that does not read cannot block this
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
