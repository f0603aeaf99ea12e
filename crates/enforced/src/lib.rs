//! The enforcer's daemon: congestion control for hosts that nobody may change, on the way between two interfaces.
//!
//! [`run`] stands between them until it is stopped, by the operator's rules and by the CUEs that it takes for hosts without an agent.
//! Whatever ends it, the bridge that both interfaces are ports of carries on. It prints nothing: what it has to say is handed to
//! `say`, a line at a time, and how it is, [`Status::ask`] asks at its socket.
#![forbid(unsafe_code)]

mod cues;
mod daemon;
mod epoch;
mod port;
mod rule;
mod settings;
mod status;

pub use cues::{Behalf, Places};
pub use rule::rule;
pub use status::{PortStatus, Status};

use cues::Cues;
use daemon::Daemon;
use enforcer::{Limits, Rule};
use kernel::bpffs::{self, Lasts};
use kernel::steer::Steering;
use kernel::{Capability, Rights};
use packet_io::Tap;
use port::{Place, Port};
use status::Listener;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What it takes to stand between two interfaces.
const NEEDED: [Capability; 4] = [Capability::Bpf, Capability::NetAdmin, Capability::NetRaw, Capability::IpcLock];

/// What an enforcer is told when it begins.
#[derive(Debug)]
pub struct Config {
    /// The interface on the servers' side, that on the clients'.
    pub between: [String; 2],
    /// The operator's rules, of which the first that fits a flow counts; those of CUEs come before them.
    pub rules: Vec<Rule>,
    /// Hosts for which CUEs are taken; if there are none, [`places`](Config::places) is not looked at.
    pub hosts: Vec<Behalf>,
    /// Where the Oracle is, and what must not be forgotten.
    pub places: Places,
    /// How much it may keep.
    pub limits: Limits,
    /// The socket that tells its status.
    pub socket: PathBuf,
    /// The folder of what stays in the kernel, in a BPF file system.
    pub pins: PathBuf,
}

/// Why an enforcer did not begin, or has ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// What it was told cannot be done; the text says what to do instead.
    #[error("{0}")]
    Input(String),
    /// The kernel or the disk failed.
    #[error("{0}")]
    Failed(String),
}

impl EnforceError {
    /// Whether what was asked for is wrong.
    pub fn is_input(&self) -> bool {
        matches!(self, EnforceError::Input(_))
    }
}

/// Enforces until `stopped` says so. `say` gets a line at a time.
///
/// # Errors
/// Something of `config` cannot be done, or the kernel or the disk fails.
pub fn run(config: Config, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> Result<(), EnforceError> {
    have_rights()?;
    let cues = cues(&config)?;
    let [servers, clients] = &config.between;
    let place = Place::find(servers, clients).map_err(EnforceError::Input)?;
    let listener = Listener::bind(&config.socket)
        .map_err(|why| EnforceError::Input(format!("{}: {why}", config.socket.display())))?;
    if place.bridge.is_some() {
        keep_programs(&config.pins, say)?;
    }
    let ports = place.open(&config.pins).map_err(EnforceError::Failed)?;
    let daemon = Daemon::new(ports, config.limits, config.rules, cues, listener);
    daemon.take_over().map_err(EnforceError::Failed)?;
    let bridge = place.bridge.as_ref().map(|name| format!(" of the bridge {name}")).unwrap_or_default();
    say(&format!("enforcing between {servers} and {clients}{bridge}"));
    daemon.run(stopped, say).map_err(|error| failed(&error))
}

/// Enforces an algorithm on everything between the near ends of two TAPs, the servers' and the clients', until `stopped` says so. Its status
/// is told at `socket`.
///
/// # Errors
/// There is no such algorithm, or nothing can be told there; the kernel fails.
pub fn between_taps(
    [servers, clients]: [Tap; 2],
    algorithm: &str,
    socket: &Path,
    stopped: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), EnforceError> {
    let rules = vec![rule(algorithm, say).map_err(EnforceError::Input)?];
    let ports = [Port::of_tap("servers", servers), Port::of_tap("clients", clients)];
    let listener = Listener::bind(socket).map_err(EnforceError::Failed)?;
    Daemon::new(ports, Limits::default(), rules, None, listener).run(stopped, say).map_err(|error| failed(&error))
}

/// Takes out of the kernel what an enforcer that was killed has left there; whether there was something.
///
/// # Errors
/// One runs that answers at `socket`, or the kernel refuses.
pub fn reset(socket: &Path, pins: &Path) -> Result<bool, EnforceError> {
    if Status::ask(socket).is_ok() {
        let text = "an enforcer runs; stop it, and it takes its program out itself";
        return Err(EnforceError::Input(text.to_string()));
    }
    if let Some(hidden) = bpffs::hidden().filter(|_| !pins.exists()) {
        return Err(EnforceError::Input(hidden.to_string()));
    }
    Steering::remove(pins).map_err(|error| failed(&error))
}

fn have_rights() -> Result<(), EnforceError> {
    let lacking: Vec<&str> = Rights::effective().lacking(&NEEDED).into_iter().map(Capability::name).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(EnforceError::Input(format!("enforcing needs root; {} is missing: run it with `sudo`", lacking.join(", "))))
}

/// Sees that what the enforcer puts into the kernel can stay there beyond its process, or ends with it.
fn keep_programs(pins: &Path, say: &mut dyn FnMut(&str)) -> Result<(), EnforceError> {
    let lasts = bpffs::mount_for_process(pins).map_err(|error| EnforceError::Input(error.to_string()))?;
    if lasts == Lasts::WithProcess {
        say(
            "the machine's BPF file system cannot be seen here; the enforcer has one of its own, and its programs end with its process",
        );
    }
    Ok(())
}

/// The CUEs that are taken for hosts, if any are.
fn cues(config: &Config) -> Result<Option<Cues>, EnforceError> {
    if config.hosts.is_empty() {
        return Ok(None);
    }
    if let Some(folder) = config.places.epoch.parent() {
        fs::create_dir_all(folder).map_err(|error| EnforceError::Input(format!("{}: {error}", folder.display())))?;
    }
    let cues = Cues::new(&config.hosts, config.places.clone());
    cues.map(Some).map_err(|error| EnforceError::Input(error.to_string()))
}

fn failed(error: &dyn fmt::Display) -> EnforceError {
    EnforceError::Failed(error.to_string())
}
