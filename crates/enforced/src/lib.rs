//! The enforcer's daemon: congestion control for hosts that must not be changed, on the path between two interfaces.
//!
//! [`run`] enforces by the operator's rules and by the CUEs that it takes for hosts without an agent, until it is stopped. When it ends,
//! the bridge that has both interfaces as ports carries the traffic. It prints nothing: messages go to `say`, a line at a time, and
//! [`Status::ask`] asks for the status at its socket.
#![forbid(unsafe_code)]

mod bypassed;
mod cues;
mod daemon;
mod flows;
mod hand_over;
mod keeper;
mod mirror;
mod port;
mod represented;
mod rule;
mod settings;
mod status;
mod watch;

pub use cues::{Cues, Ends, Places};
pub use flows::{FlowRow, SLICE, flows};
pub use keeper::Disk;
pub use mirror::Mirroring;
pub use represented::Behalf;
pub use rule::rule;
pub use status::{OracleStatus, PortStatus, Status};
pub use watch::METRICS;

use daemon::{Daemon, Shown};
use enforcer::{Limits, Rule};
use hand_over::Taking;
use kernel::bpffs::{self, Lasts};
use kernel::steer::Steering;
use kernel::{Capability, Rights};
use mirror::Mirror;
use packet_io::Tap;
use port::{Place, Port};
use status::Listener;
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;

/// The capabilities that an enforcer needs.
const NEEDED: [Capability; 4] = [Capability::Bpf, Capability::NetAdmin, Capability::NetRaw, Capability::IpcLock];

/// An enforcer's configuration.
#[derive(Debug)]
pub struct Config {
    /// The interface on the servers' side, then that on the clients' side.
    pub between: [String; 2],
    /// The operator's rules; the first that matches a flow applies. Those of CUEs come before them.
    pub rules: Vec<Rule>,
    /// Hosts whose CUEs it takes; without any, [`places`](Config::places) is not used.
    pub hosts: Vec<Behalf>,
    /// The Oracle's socket and key, and the folder of what must outlive a restart.
    pub places: Places,
    /// Limits of memory and flows.
    pub limits: Limits,
    /// The status socket.
    pub socket: PathBuf,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The folder of pinned BPF objects, in a BPF file system.
    pub pins: PathBuf,
    /// Enforcers on other machines: standbys of this one, or that whose standby this is.
    pub mirroring: Mirroring,
    /// Take the place of the enforcer that runs here, if one does, with its flows.
    pub replace: bool,
    /// Start although TCP passes by filters and queue disciplines of the bridge.
    pub bypass_filters: bool,
}

/// Why an enforcer did not start, or ended without being stopped.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// The configuration cannot be used; the text says what to do instead.
    #[error("{0}")]
    Input(String),
    /// The kernel or the disk failed.
    #[error("{0}")]
    Failed(String),
}

impl EnforceError {
    /// Whether the configuration is wrong.
    pub fn is_input(&self) -> bool {
        matches!(self, EnforceError::Input(_))
    }
}

/// Enforces until `stopped`. `say` gets messages, a line at a time.
///
/// # Errors
/// The configuration cannot be used, or the kernel or the disk fails.
pub fn run(config: Config, stopped: &dyn Fn() -> bool, say: &mut dyn FnMut(&str)) -> Result<(), EnforceError> {
    have_rights()?;
    let more = (cues(&config)?, mirror(&config)?);
    let [servers, clients] = &config.between;
    if config.replace && Status::ask(&config.socket).is_ok() {
        let place = Place::find_to_replace(servers, clients).map_err(EnforceError::Input)?;
        pass_by(&config, &place, say)?;
        return replace(config, &place, more, stopped, say);
    }
    let place = Place::find(servers, clients).map_err(EnforceError::Input)?;
    pass_by(&config, &place, say)?;
    let listener = Listener::bind(&config.socket)
        .map_err(|why| EnforceError::Input(format!("{}: {why}", config.socket.display())))?;
    let metrics = config.metrics.map(metrics::Server::bind).transpose();
    let metrics = metrics.map_err(|error| EnforceError::Input(error.to_string()))?;
    if let Some(server) = &metrics {
        say(&format!("metrics at http://{}/metrics", server.address()));
    }
    if place.bridge.is_some() {
        keep_programs(&config.pins, say)?;
    }
    let ports = place.open(&config.pins).map_err(EnforceError::Failed)?;
    let shown = Shown { listener, metrics, metrics_at: None };
    let daemon = Daemon::new(ports, config.limits, config.rules, more, shown);
    daemon.take_over().map_err(EnforceError::Failed)?;
    say(&format!("enforcing between {place}"));
    daemon.run(stopped, say).map_err(|error| failed(&error))
}

/// Refuses to start where TCP would pass by a filter or a queue discipline that somebody has put there, unless it is to.
fn pass_by(config: &Config, place: &Place, say: &mut dyn FnMut(&str)) -> Result<(), EnforceError> {
    if config.bypass_filters {
        if let Ok(found) = place.passed_by()
            && !found.is_empty()
        {
            say(&format!(
                "TCP passes by what filters or shapes other packets between {place}: {}",
                bypassed::list(&found)
            ));
        }
        return Ok(());
    }
    let found = place.passed_by().map_err(|why| {
        EnforceError::Failed(format!("{why}; so TCP may pass by filters: --bypass-filters starts nevertheless"))
    })?;
    if found.is_empty() {
        return Ok(());
    }
    Err(EnforceError::Input(format!(
        "TCP between {place} would pass by what filters or shapes it there ({}): remove it, or give --bypass-filters",
        bypassed::list(&found)
    )))
}

/// Takes the place of the enforcer that runs at these interfaces, then enforces until `stopped`.
fn replace(
    config: Config,
    place: &Place,
    more: (Option<Cues>, Option<Mirror>),
    stopped: &dyn Fn() -> bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), EnforceError> {
    let lost = |error: io::Error| {
        EnforceError::Failed(format!(
            "{}: the enforcer that runs does not hand over ({error}), and goes on; without --replace this one starts once that is stopped",
            config.socket.display()
        ))
    };
    let prepared = place.prepare(&config.pins).map_err(EnforceError::Input)?;
    let (taking, files) = Taking::begin(&config.socket).map_err(lost)?;
    let ports = prepared.into_iter().zip(files.ports).map(|(prepared, (state, files))| prepared.map(&state, files));
    let ports: Vec<Port> = ports.collect::<Result<_, _>>().map_err(EnforceError::Input)?;
    let Ok(ports) = <[Port; 2]>::try_from(ports) else { unreachable!("there are two") };
    let shown = Shown { listener: Listener::resume(files.listener), metrics: None, metrics_at: config.metrics };
    let mut daemon = Daemon::new(ports, config.limits, config.rules, more, shown);
    let (flows, pause) = daemon.replace(taking, &config.socket).map_err(lost)?;
    let ms = pause.as_secs_f64() * 1e3;
    say(&format!("took over with {flows} flows; packets waited for {ms:.1} ms; enforcing between {place}"));
    daemon.run(stopped, say).map_err(|error| failed(&error))
}

/// Enforces an algorithm on everything between the near ends of two TAPs, the servers' and the clients', until `stopped`. The status is
/// served at `socket`.
///
/// # Errors
/// There is no such algorithm, the socket cannot be made, or the kernel fails.
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
    Daemon::new(ports, Limits::default(), rules, (None, None), Shown { listener, metrics: None, metrics_at: None })
        .run(stopped, say)
        .map_err(|error| failed(&error))
}

/// Removes the program that a killed enforcer left in the kernel; returns whether there was one.
///
/// # Errors
/// An enforcer answers at `socket`, or the kernel refuses.
pub fn reset(socket: &Path, pins: &Path) -> Result<bool, EnforceError> {
    if Status::ask(socket).is_ok() {
        let text = "an enforcer runs; stop it instead, which removes its program";
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

/// Finds a BPF file system for the programs, or mounts one that ends with this process.
fn keep_programs(pins: &Path, say: &mut dyn FnMut(&str)) -> Result<(), EnforceError> {
    let lasts = bpffs::mount_for_process(pins).map_err(|error| EnforceError::Input(error.to_string()))?;
    if lasts == Lasts::WithProcess {
        say(
            "the machine's BPF file system cannot be seen here; the enforcer has one of its own, and its programs end with its process",
        );
    }
    Ok(())
}

/// The state for CUEs, if there are hosts to take them for.
fn cues(config: &Config) -> Result<Option<Cues>, EnforceError> {
    if config.hosts.is_empty() {
        return Ok(None);
    }
    let folder = &config.places.state;
    fs::create_dir_all(folder).map_err(|error| EnforceError::Input(format!("{}: {error}", folder.display())))?;
    let ends = Ends::of_machine(config.places.bus.clone()).map_err(|error| failed(&error))?;
    let begun = Cues::begin(&config.hosts, &config.places, ends);
    let (cues, disk) = begun.map_err(|error| EnforceError::Input(error.to_string()))?;
    thread::spawn(move || disk.work());
    Ok(Some(cues))
}

/// The exchange with enforcers on other machines, if there are any.
fn mirror(config: &Config) -> Result<Option<Mirror>, EnforceError> {
    let mirroring = &config.mirroring;
    if mirroring.to.is_empty() && mirroring.from.is_none() {
        return Ok(None);
    }
    Mirror::open(mirroring).map(Some).map_err(EnforceError::Input)
}

fn failed(error: &dyn fmt::Display) -> EnforceError {
    EnforceError::Failed(error.to_string())
}
