//! A NATS server of a test's own.

use crate::network::inside;
use crate::wait::until;
use std::env;
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where set-up puts the server if it is not in PATH.
const PLACES: [&str; 2] = ["/usr/local/bin", concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin")];

/// The server's program; where there is none, says so, and the test is skipped.
pub fn nats_program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(PLACES.map(PathBuf::from));
    let found = places.map(|place| place.join("nats-server")).find(|program| program.is_file());
    if found.is_none() {
        println!("skipped: there is no nats-server; `tools/setup test` installs it where Go is");
    }
    found
}

/// A port of the loopback interface that nobody listens at.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

/// A server with a configuration of the caller's, killed when dropped.
pub struct NatsServer {
    program: PathBuf,
    configuration: PathBuf,
    address: SocketAddr,
    namespace: Option<String>,
    child: Option<Child>,
}

impl NatsServer {
    /// Starts it, and waits until it listens at `address`. What it says is appended to `nats.log` beside the configuration.
    pub fn start(program: &Path, configuration: &Path, address: SocketAddr, namespace: Option<&str>) -> NatsServer {
        let (program, configuration) = (program.to_path_buf(), configuration.to_path_buf());
        let namespace = namespace.map(str::to_string);
        let mut server = NatsServer { program, configuration, address, namespace, child: None };
        server.again();
        server
    }

    /// Starts it, after [`NatsServer::kill`].
    pub fn again(&mut self) {
        let log = self.configuration.with_file_name("nats.log");
        let log = File::options().append(true).create(true).open(log).expect("its folder can be written");
        let mut command = Command::new(&self.program);
        // paths of the configuration are relative to its folder
        command.current_dir(self.configuration.parent().expect("a file is in a folder"));
        command.arg("-c").arg(&self.configuration).stdout(Stdio::null()).stderr(log);
        let child = self.there(|| command.spawn().expect("it is a program"));
        self.child = Some(child);
        until("the server listens", || {
            let ended = self.child.as_mut().is_none_or(|child| child.try_wait().is_ok_and(|status| status.is_some()));
            assert!(!ended, "the server has ended: {}", self.said());
            self.there(|| TcpStream::connect(self.address).is_ok())
        });
    }

    fn there<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.namespace {
            Some(namespace) => inside(namespace, work),
            None => work(),
        }
    }

    /// What it has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.configuration.with_file_name("nats.log")).unwrap_or_default()
    }

    /// Its process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
