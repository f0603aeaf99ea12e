//! A host's Linux settings: sysctls of its namespace, and metrics of its route.

use crate::hosts::{Error, INTERFACE};
use netlink_packet_route::route::RouteMetric;
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// Settings of a host. `None` keeps the kernel's default for new namespaces.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of the address that all hosts share, 1 to 30.
    pub prefix_len: u8,
    /// Longest IP packet in bytes.
    pub mtu: u32,
    /// Hosts that it can reach; other addresses have no neighbour entry.
    pub neighbours: Vec<Ipv4Addr>,
    /// `tcp_ecn`: 0 off, 1 requested and accepted, 2 accepted only.
    pub ecn: Option<u8>,
    /// The congestion control of connections that choose none. Linux lets a namespace choose only some by its sysctl; any
    /// other is put into the route, and then wins over what a program chose before it connected.
    pub congestion_control: Option<String>,
    /// Minimum RTO. Linux takes whole milliseconds (it is rounded up) and counts in its own ticks, of
    /// 1 to 10 ms.
    pub rto_min: Option<Duration>,
    /// The initial congestion window in segments.
    pub initial_cwnd: Option<u32>,
    /// The initial receive window in segments.
    pub initial_rwnd: Option<u32>,
    /// Every segment is acknowledged at once, not every second one.
    pub quick_ack: bool,
    /// Largest number of segments in one super-segment.
    pub gso_max_segs: Option<u32>,
    /// `tcp_rmem`: minimum, default and largest receive buffer of a connection in bytes.
    pub rmem: Option<[u32; 3]>,
    /// `tcp_wmem`: minimum, default and largest send buffer of a connection in bytes.
    pub wmem: Option<[u32; 3]>,
    /// Connections do not start from metrics that earlier ones saved.
    pub no_metrics_save: bool,
    /// Further sysctls, such as `("net.ipv4.tcp_sack", "0")`; they are set last.
    pub sysctls: Vec<(String, String)>,
    /// The CPUs (a bit each) that run the host's receiving half. Without it the thread that writes to the TAP does.
    pub rps_cpus: Option<u64>,
    /// The interface's rate. Excess waits in the host, where TCP sees it and keeps the rest in the
    /// socket. `None`: everything leaves at once.
    pub card: Option<CardRate>,
    /// Frames, up to 64 KB each, that may wait for the TAP to be read; further ones are lost
    /// ([`Counters::tx_dropped`](crate::hosts::Counters)).
    pub tx_queue_frames: u32,
}

/// The rate of a host's network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardRate {
    /// Bytes of frames a second, Ethernet's header included.
    pub bytes_per_second: u32,
    /// Bytes that may leave at once after a pause.
    pub burst_bytes: u32,
}

impl HostSettings {
    /// A host on 10.0.0.0/8 with Ethernet's MTU, a long queue, and otherwise Linux's defaults, except that it saves no metrics.
    pub fn new(address: Ipv4Addr) -> HostSettings {
        HostSettings {
            address,
            prefix_len: 8,
            mtu: 1500,
            neighbours: Vec::new(),
            ecn: None,
            congestion_control: None,
            rto_min: None,
            initial_cwnd: None,
            initial_rwnd: None,
            quick_ack: false,
            gso_max_segs: None,
            rmem: None,
            wmem: None,
            no_metrics_save: true,
            sysctls: Vec::new(),
            rps_cpus: None,
            card: None,
            tx_queue_frames: 10_000,
        }
    }

    /// Checks the settings before the kernel sees them.
    pub(super) fn check(&self, host: &str) -> Result<(), Error> {
        let wrong = |problem: String| Err(Error::Setting { host: host.to_owned(), problem });
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        if host.is_empty() || host.len() > 63 || !host.chars().all(plain) {
            return wrong("a host's name has 1 to 63 letters, digits, '-', '_' or '.'".into());
        }
        if !(1..=30).contains(&self.prefix_len) {
            return wrong(format!("a subnet has 1 to 30 bits, not {}", self.prefix_len));
        }
        // The minimum of IPv4 (RFC 791), and the maximum of a TAP.
        if !(68..=65_521).contains(&self.mtu) {
            return wrong(format!("an MTU is 68 to 65521 bytes, not {}", self.mtu));
        }
        let subnet = |address: Ipv4Addr| address.to_bits() >> (32 - u32::from(self.prefix_len));
        if let Some(stranger) = self.neighbours.iter().find(|other| subnet(**other) != subnet(self.address)) {
            return wrong(format!("{stranger} is not in the subnet of {}/{}", self.address, self.prefix_len));
        }
        if self.card.is_some_and(|card| card.burst_bytes < self.mtu + 14 || card.bytes_per_second == 0) {
            return wrong(format!("a network card sends a whole packet of {} bytes at once", self.mtu));
        }
        for (name, _) in &self.sysctls {
            if !name.starts_with("net.") || name.contains('/') || name.contains("..") {
                return wrong(format!("'{name}' is not a sysctl of a network namespace; those begin with 'net.'"));
            }
        }
        Ok(())
    }

    /// The sysctls, in the order in which they are set; the algorithm is not among them.
    pub(super) fn sysctls(&self) -> Vec<(String, String)> {
        let mut list: Vec<(&str, String)> = Vec::new();
        let triple = |values: [u32; 3]| values.map(|value| value.to_string()).join(" ");
        if let Some(ecn) = self.ecn {
            list.push(("net.ipv4.tcp_ecn", ecn.to_string()));
        }
        if let Some(rmem) = self.rmem {
            list.push(("net.ipv4.tcp_rmem", triple(rmem)));
        }
        if let Some(wmem) = self.wmem {
            list.push(("net.ipv4.tcp_wmem", triple(wmem)));
        }
        list.push(("net.ipv4.tcp_no_metrics_save", u8::from(self.no_metrics_save).to_string()));
        let own = list.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.sysctls.iter().cloned()).collect()
    }

    /// The metrics that TCP is to read from the route.
    pub(super) fn route_metrics(&self) -> Vec<RouteMetric> {
        let mut metrics = Vec::new();
        if let Some(rto_min) = self.rto_min {
            // Linux reads this one only where the route locks it.
            metrics.push(RouteMetric::Lock(1 << RTAX_RTO_MIN));
            metrics.push(RouteMetric::RtoMin(rto_min.as_micros().div_ceil(1000).max(1) as u32));
        }
        metrics.extend(self.initial_cwnd.map(RouteMetric::InitCwnd));
        metrics.extend(self.initial_rwnd.map(RouteMetric::InitRwnd));
        if self.quick_ack {
            metrics.push(RouteMetric::QuickAck(1));
        }
        metrics
    }
}

/// Its number in linux/rtnetlink.h.
const RTAX_RTO_MIN: u32 = 13;

/// Bytes that may wait for a card. TCP queues far less there; more would be lost.
pub(super) const CARD_QUEUE_BYTES: u32 = 1 << 30;

/// Sets a sysctl of the calling thread's namespace.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    let path = Path::new("/proc/sys").join(name.replace('.', "/"));
    // It exists or not: never create a file.
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(value.as_bytes())
}

/// Lets the CPUs of `mask` run the receiving half of the calling thread's namespace.
pub(super) fn set_rps(mask: u64) -> io::Result<()> {
    // /sys shows the namespace of its mounter, so mount another, detached one, which vanishes with its descriptor.
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let sysfs = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let path = format!("class/net/{INTERFACE}/queues/rx-0/rps_cpus");
    let file = openat(&sysfs, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // Groups of 32 bits, the highest first. Linux refuses groups beyond its CPUs, even zero ones.
    let text = match mask >> 32 {
        0 => format!("{mask:x}"),
        high => format!("{high:x},{:08x}", mask & 0xffff_ffff),
    };
    File::from(file).write_all(text.as_bytes())
}
