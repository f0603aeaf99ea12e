//! A host's lifetime.

use crate::hosts::found::{Mark, end_processes_in};
use crate::hosts::namespace::Namespace;
use crate::hosts::netlink::{LOOPBACK, Network};
use crate::hosts::settings::{CARD_QUEUE_BYTES, set_rps, set_sysctl};
use crate::hosts::{Error, HostSettings, INTERFACE};
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::RouteMetric;
use nix::net::if_::if_nametoindex;
use packet_io::{Mac, Tap, die_with_this_thread};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The Ethernet address of the host with an IP address: 02:00 (locally administered) and the address's four bytes.
pub fn mac_of(address: Ipv4Addr) -> Mac {
    let [a, b, c, d] = address.octets();
    [2, 0, a, b, c, d]
}

/// Counters of a host's interface; "tx" is what the host sends, and so what its TAP returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent; a super-segment is one.
    pub tx_packets: u64,
    /// Frames lost because the TAP was not read in time.
    pub tx_dropped: u64,
    /// Frames received.
    pub rx_packets: u64,
    /// Frames for which the host had no room.
    pub rx_dropped: u64,
}

/// A host's route to the others, which can change while the host runs.
#[derive(Clone, Debug)]
pub struct HostRoute {
    index: u32,
    address: Ipv4Addr,
    prefix_len: u8,
    /// The metrics that TCP reads from it.
    metrics: Vec<RouteMetric>,
    /// The metrics that it has read since the first change.
    kept: Vec<Vec<RouteMetric>>,
}

/// An unused address (RFC 5737).
const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 0);

impl HostRoute {
    /// Sets the initial window that TCP reads from it, segments; `None`: the host's original one. For a thread in the host's namespace.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set_initial_cwnd(&mut self, segments: Option<u32>) -> io::Result<()> {
        let mut metrics = self.metrics.clone();
        if let Some(segments) = segments {
            metrics.retain(|metric| !matches!(metric, RouteMetric::InitCwnd(_)));
            metrics.push(RouteMetric::InitCwnd(segments));
        }
        let mut netlink = Network::open()?;
        // A connection notices a change when it next sends. Until then it uses the old route, and if nothing references that any more, its
        // interface has an MTU of 68 and segments 36 bytes. So a route to an unused address keeps the old metrics, which Linux shares.
        for was in [&self.metrics, &metrics] {
            if !self.kept.contains(was) {
                let nowhere = Ipv4Addr::from_bits(NOWHERE.to_bits() + self.kept.len() as u32);
                self.kept.push(was.clone());
                netlink.set_route(self.index, (nowhere, 32), self.address, was)?;
            }
        }
        netlink.set_route(self.index, (self.address, self.prefix_len), self.address, &metrics)
    }
}

/// A network namespace with a loopback interface, and a TAP named [`INTERFACE`].
///
/// Dropping it kills its programs. The namespace vanishes when the TAP, the threads and the sockets made inside
/// have ended as well.
#[derive(Debug)]
pub struct Host {
    name: String,
    route: HostRoute,
    namespace: Namespace,
    tap: Option<Tap>,
    has_run_programs: AtomicBool,
}

impl Host {
    /// Creates a host with its network configured.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind then.
    pub fn new(name: &str, settings: &HostSettings) -> Result<Host, Error> {
        settings.check(name)?;
        let namespace = Namespace::create(&format!("opentcp-{name}"))?;
        let (host, settings) = (name.to_owned(), settings.clone());
        let made = namespace.enter(move || furnish(&host, &settings)).map_err(Error::Namespace)?;
        let (tap, route) = made?;
        let has_run_programs = AtomicBool::new(false);
        Ok(Host { name: name.to_owned(), route, namespace, tap: Some(tap), has_run_programs })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its IP address.
    pub fn address(&self) -> Ipv4Addr {
        self.route.address
    }

    /// Its route to the others.
    pub fn route(&self) -> HostRoute {
        self.route.clone()
    }

    /// Its Ethernet address.
    pub fn mac(&self) -> Mac {
        mac_of(self.route.address)
    }

    /// The other end of its network cable; only once. The interface vanishes when it is dropped.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.tap.take()
    }

    /// Runs `job` on the host's own thread, and waits for it; jobs run one after the other. Sockets that it makes are the
    /// host's, wherever they are used.
    ///
    /// # Errors
    /// The host's thread has ended.
    pub fn enter<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        self.namespace.enter(job)
    }

    /// Runs `job` on a new thread inside the host.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn spawn<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
        // A thread inherits the namespace of its creator.
        let name = format!("{}-job", self.name);
        self.namespace.enter(move || thread::Builder::new().name(name).spawn(job))?
    }

    /// Starts the program `argv[0]` with its arguments inside the host, on this process's terminal. It is killed when the host
    /// is dropped, or this process ends.
    ///
    /// # Errors
    /// `argv` is empty, or the program cannot be started.
    pub fn command(&self, argv: &[impl AsRef<OsStr>]) -> io::Result<Child> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments);
        self.start(command)
    }

    /// The same for a prepared command, with its own files, folder or environment.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, mut command: Command) -> io::Result<Child> {
        self.has_run_programs.store(true, Ordering::Relaxed);
        self.namespace.enter(move || {
            die_with_this_thread(&mut command);
            command.spawn()
        })?
    }

    /// The counters of its interface.
    ///
    /// # Errors
    /// The kernel has none, for example when the TAP is gone.
    pub fn counters(&self) -> Result<Counters, Error> {
        let index = self.route.index;
        let answer = self.namespace.enter(move || Network::open()?.link(index)).and_then(|answer| answer);
        let attributes = answer.map_err(|source| self.error(source))?;
        let stats = attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        });
        let stats = stats.ok_or_else(|| self.error(io::ErrorKind::InvalidData.into()))?;
        Ok(Counters {
            tx_packets: stats.tx_packets,
            tx_dropped: stats.tx_dropped,
            rx_packets: stats.rx_packets,
            rx_dropped: stats.rx_dropped,
        })
    }

    /// The file by which other programs can enter while this process lives: `nsenter --net=FILE PROGRAM`.
    pub fn namespace(&self) -> PathBuf {
        self.namespace.path()
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Io { host: self.name.clone(), source }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Programs that it has started itself die with its thread. Their descendants must be searched for, which takes time.
        if self.has_run_programs.load(Ordering::Relaxed)
            && let Ok(file) = fs::metadata(self.namespace.path())
        {
            end_processes_in(file.ino());
        }
    }
}

/// Makes the calling thread's fresh namespace a host.
fn furnish(host: &str, settings: &HostSettings) -> Result<(Tap, HostRoute), Error> {
    let refused = |what: &str| {
        let (host, what) = (host.to_owned(), what.to_owned());
        move |source| Error::Network { host, what, source }
    };
    // Before there is an interface that could announce itself. A kernel without IPv6 lacks the sysctl.
    let _ = set_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
    let mut netlink = Network::open().map_err(refused("netlink"))?;
    let mark = Mark::of_this_process(host).map_err(refused("reading /proc"))?;
    netlink
        .set_link_up(LOOPBACK, vec![LinkAttribute::IfAlias(mark.to_string())])
        .map_err(refused("the loopback interface"))?;

    let tap = Tap::open(INTERFACE).map_err(|source| Error::Tap { host: host.to_owned(), source })?;
    let index = if_nametoindex(INTERFACE).map_err(|errno| refused("the network card")(errno.into()))?;
    let mut card = vec![
        LinkAttribute::Address(mac_of(settings.address).to_vec()),
        LinkAttribute::Mtu(settings.mtu),
        LinkAttribute::TxQueueLen(settings.tx_queue_frames),
    ];
    card.extend(settings.gso_max_segs.map(LinkAttribute::GsoMaxSegs));
    netlink.set_link_up(index, card).map_err(refused("the network card's settings"))?;
    if let Some(card) = settings.card {
        netlink
            .set_card_rate(index, card.bytes_per_second, card.burst_bytes, CARD_QUEUE_BYTES)
            .map_err(refused("the network card's rate"))?;
    }
    netlink.add_address(index, settings.address, settings.prefix_len).map_err(refused("the address"))?;
    let (address, prefix_len) = (settings.address, settings.prefix_len);
    let mut route = HostRoute { index, address, prefix_len, metrics: settings.route_metrics(), kept: Vec::new() };
    netlink.set_route(index, (address, prefix_len), address, &route.metrics).map_err(refused("the route"))?;
    for neighbour in settings.neighbours.iter().filter(|neighbour| **neighbour != settings.address) {
        netlink.add_neighbour(index, *neighbour, mac_of(*neighbour)).map_err(refused("a neighbour"))?;
    }

    for (name, value) in settings.sysctls() {
        set_sysctl(&name, &value).map_err(|source| Error::Sysctl { host: host.to_owned(), name, value, source })?;
    }
    if let Some(algorithm) = &settings.congestion_control {
        choose(algorithm, &mut netlink, &mut route)
            .map_err(|_| Error::Algorithm { host: host.to_owned(), name: algorithm.clone() })?;
    }
    if let Some(cpus) = settings.rps_cpus {
        set_rps(cpus).map_err(refused("rps_cpus"))?;
    }
    Ok((tap, route))
}

/// Makes `algorithm` the host's default.
fn choose(algorithm: &str, netlink: &mut Network, route: &mut HostRoute) -> io::Result<()> {
    if set_sysctl("net.ipv4.tcp_congestion_control", algorithm).is_ok() {
        return Ok(());
    }
    // A namespace's default must be one that the machine allows every user. A route may name any.
    route.metrics.push(RouteMetric::CcAlgo(algorithm.to_owned()));
    netlink.set_route(route.index, (route.address, route.prefix_len), route.address, &route.metrics)
}
