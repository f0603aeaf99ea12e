//! A fleet in a temporary folder, and a server for it.
#![expect(clippy::disallowed_methods, reason = "the server is a program of its own, on the wall clock")]

use async_nats::{Client, ConnectOptions, Event};
use fleet::{Identity, Init, OracleIdentity, Server, UnixTime};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long a message that must not come is waited for.
pub const SILENCE: Duration = Duration::from_millis(300);

/// The real time: the server compares expiries with it.
pub fn now() -> UnixTime {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// A fleet.
pub struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    pub fn new() -> Made {
        Made::with(2)
    }

    pub fn with(oracles: usize) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let servers: Vec<Server> = vec!["127.0.0.1:4222".parse().unwrap(), "localhost".parse().unwrap()];
        let init = Init { servers, oracles, certificate_days: 30, now: now() };
        fleet::init(&folder.path().join("fleet"), &init).unwrap();
        Made { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("fleet")
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn oracle(&self) -> OracleIdentity {
        OracleIdentity::load(&self.join("oracle-0")).unwrap()
    }
}

/// A running nats-server.
pub struct Nats {
    child: Child,
    port: u16,
    ca: PathBuf,
}

impl Nats {
    /// `None`, with the reason, if there is no server on this machine.
    pub fn start(made: &Made) -> Option<Nats> {
        let version = Command::new("nats-server").arg("--version").output();
        if version.is_err() {
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let folder = made.join("nats");
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut child = Command::new("nats-server")
            .args(["-c", "nats-server.conf", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", "."])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let ports = folder.join(format!("nats-server_{}.ports", child.id()));
        let begin = Instant::now();
        let port = loop {
            if let Some(port) = fs::read_to_string(&ports).ok().and_then(|text| port(&text)) {
                break port;
            }
            let ended = child.try_wait().unwrap();
            let log = || fs::read_to_string(folder.join("log")).unwrap();
            assert!(ended.is_none() && begin.elapsed() < PATIENCE, "the server did not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        };
        Some(Nats { child, port, ca: made.join("nats/ca.pem") })
    }

    /// The same server, for a client that trusts another fleet's authority.
    pub fn trusting(&self, made: &Made) -> Door {
        Door { port: self.port, ca: made.join("nats/ca.pem") }
    }

    pub async fn connect(&self, creds: &str, inbox: &str) -> Result<Guest, String> {
        Door { port: self.port, ca: self.ca.clone() }.connect(creds, inbox).await
    }

    pub async fn join(&self, identity: &Identity) -> Guest {
        let inbox = fleet::rights::inbox(identity.seed.public());
        self.connect(&identity.creds(), &inbox).await.unwrap()
    }
}

/// A server's address, and the authority that is trusted to name it.
pub struct Door {
    port: u16,
    ca: PathBuf,
}

impl Door {
    pub async fn connect(&self, creds: &str, inbox: &str) -> Result<Guest, String> {
        let (events, heard) = channel();
        let options = ConnectOptions::with_credentials(creds)
            .map_err(|error| error.to_string())?
            .add_root_certificates(self.ca.clone())
            .require_tls(true)
            .custom_inbox_prefix(inbox)
            .request_timeout(Some(PATIENCE))
            .max_reconnects(1)
            .event_callback(move |event| {
                let _ = events.send(event);
                async {}
            });
        let client = options.connect(format!("tls://127.0.0.1:{}", self.port)).await;
        client.map(|client| Guest { client, heard }).map_err(|error| format!("{error:?}"))
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connected user.
pub struct Guest {
    pub client: Client,
    heard: Receiver<Event>,
}

impl Guest {
    /// What the server has refused up to now.
    pub async fn refusals(&self) -> Vec<String> {
        // it fails where the server has disconnected this user
        let _ = self.client.flush().await;
        tokio::time::sleep(SILENCE).await;
        self.heard
            .try_iter()
            .filter(|event| !matches!(event, Event::Connected))
            .map(|event| event.to_string())
            .collect()
    }

    /// The same, once these are enough, and what comes soon after them.
    pub async fn refusals_until(&self, enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begin = Instant::now();
        let mut all = self.refusals().await;
        while !enough(&all) && begin.elapsed() < PATIENCE {
            all.extend(self.refusals().await);
        }
        all
    }
}

fn port(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("127.0.0.1:")?;
    rest.split('"').next()?.parse().ok()
}

pub fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = vec![(folder.to_path_buf(), fs::metadata(folder).unwrap().permissions().mode() & 0o777)];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(modes(&path));
        } else {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            found.push((path, mode));
        }
    }
    found
}
