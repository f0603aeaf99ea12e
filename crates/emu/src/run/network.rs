//! [`Network`]: the hosts, and the engine between them on a thread of its own.

use crate::address::{FlowPorts, address};
use crate::agenda::Agenda;
use crate::driver::drive;
use crate::engine::{Counted, Engine};
use crate::error::EmuError;
use crate::gate::Gate;
use crate::gauges::Gauges;
use crate::hosts::{CardRate, Host, HostSettings};
use crate::limits::glues;
use crate::linux::Stack;
use crate::port::WallClock;
use crate::routes::Routes;
use crate::scheduling::{Awake, Cpus, Precedence, go_first};
use crate::slowdown::Slowdown;
use crate::taps::{TapPorts, Trouble};
use net::{Router, Topology};
use packet_io::{Pcap, PcapOptions, Tap};
use plan::{Enforcement, Series, sampled};
use scenario::Scenario;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use units::Time;

/// Ethernet's header.
const ETHERNET_BYTES: u32 = 14;
/// A super-segment of 64 KB, with the headers of all its packets, as Linux counts it.
const SUPER_FRAME_BYTES: u64 = 70_000;

/// The result of the engine's thread.
pub type Ran = Result<(Counted, Trouble), EmuError>;

/// Hosts with their network configured, and no network between them yet.
pub struct Network {
    hosts: Vec<Host>,
    topology: Topology,
    flows: Arc<FlowPorts>,
    taps: Mutex<Vec<Tap>>,
    pcap: Option<PathBuf>,
    mtu: u32,
    cpus: Cpus,
    gauges: Arc<Gauges>,
    _precedence: Precedence,
    _awake: Awake,
}

impl Network {
    /// Makes the hosts of `topology`. `helped`: the other CPUs do the hosts' receiving half. `entries`: number of traffic
    /// entries whose packets are distinguished by flow. The hosts' cards are as slow as the network.
    ///
    /// # Errors
    /// [`EmuError`]: no right to make namespaces, or Linux refuses a setting.
    pub fn create(
        scenario: &Scenario,
        topology: &Topology,
        stack: &Stack,
        helped: bool,
        (entries, slowdown): (usize, Slowdown),
        pcap: Option<PathBuf>,
    ) -> Result<Network, EmuError> {
        if let Some(folder) = &pcap {
            fs::create_dir_all(folder).map_err(|error| EmuError::Io("the folder of the captures", error))?;
        }
        let cpus = Cpus::of_this_process();
        let n = topology.n_hosts() as u32;
        let neighbours: Vec<_> = (0..n).map(address).collect();
        let framing = plan::framing_bytes(scenario);
        let (mut hosts, mut taps) = (Vec::new(), Vec::new());
        for i in 0..n {
            let settings = HostSettings {
                mtu: stack.mtu,
                neighbours: neighbours.clone(),
                initial_cwnd: Some(stack.initial_cwnd),
                quick_ack: stack.quick_ack,
                rps_cpus: if helped { cpus.others_mask() } else { None },
                gso_max_segs: stack.gso_max_segs,
                sysctls: stack.sysctls.clone(),
                congestion_control: stack.congestion_control.clone(),
                card: stack.limit_output.then(|| card(slowdown, topology, i, framing, stack.mtu)).flatten(),
                ..HostSettings::new(address(i))
            };
            let mut host = Host::new(&topology.node(topology.host(i as usize)).name, &settings)?;
            taps.extend(host.take_tap());
            // programs started in the host stay off the engine's CPU
            let spared = cpus.clone();
            host.enter(move || spared.take_others()).map_err(|error| EmuError::Io("a host", error))?;
            hosts.push(host);
        }
        let flows = Arc::new(FlowPorts::new(entries));
        let (topology, mtu) = (topology.clone(), scenario.tcp.mtu());
        let (taps, gauges) = (Mutex::new(taps), Arc::default());
        Ok(Network {
            hosts,
            topology,
            flows,
            taps,
            pcap,
            mtu,
            cpus,
            gauges,
            _precedence: Precedence::take(),
            _awake: Awake::ask(),
        })
    }

    /// The hosts, by number.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The files by which a thread enters the hosts' namespaces.
    ///
    /// # Errors
    /// One cannot be opened.
    pub fn namespaces(&self) -> Result<Vec<File>, EmuError> {
        let open = |host: &Host| File::open(host.namespace());
        self.hosts.iter().map(open).collect::<io::Result<_>>().map_err(|error| EmuError::Io("a namespace", error))
    }

    /// The map of ports to flows, for the traffic to write.
    pub(crate) fn flow_ports(&self) -> Arc<FlowPorts> {
        self.flows.clone()
    }

    /// The links' counters for another thread, once the engine runs.
    pub(crate) fn gauges(&self) -> Arc<Gauges> {
        self.gauges.clone()
    }

    /// Keeps the calling thread, and threads that it starts, off the engine's CPU.
    pub(super) fn leave_the_engine_alone(&self) {
        self.cpus.take_others();
    }

    /// The same for the thread of the hosts' applications, which has priority over other programs: a receiver that reads late
    /// acknowledges late, as Linux delays an ACK that would shrink the window until the application has read.
    pub fn serve_the_hosts(&self) {
        self.cpus.take_others();
        go_first();
    }

    /// Starts the engine on a thread of `scope`; only once. It ends at `end` or when `stop` is set.
    ///
    /// # Errors
    /// The ports cannot be polled, or a capture cannot be begun.
    pub fn start<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        scenario: &'env Scenario,
        clock: WallClock,
        end: Time,
        stop: &'env AtomicBool,
    ) -> Result<ScopedJoinHandle<'scope, Ran>, EmuError> {
        let topology = &self.topology;
        let links = plan::links(scenario, topology)?;
        let routes = Routes::new(Router::new(topology, plan::routing(scenario)));
        let (sampled, every) = sampled(scenario, topology);
        let agenda = Agenda::new(plan::failures(scenario, topology), every, scenario.measure.warmup);
        let series = Series::new(&sampled, topology);
        let engine =
            Engine::new(links, routes, plan::framing_bytes(scenario), agenda, series).with_gauges(self.gauges());
        let enforcements = Enforcement::of(scenario, topology).map_err(EmuError::Algorithm)?;
        let engine = engine.with_gates(enforcements.into_iter().map(|one| Gate::new(one, topology.clone())).collect());
        let ports = self.ports(clock.slowdown()).map_err(|error| EmuError::Io("the hosts' network cards", error))?;
        Ok(scope.spawn(move || self.run(engine, ports, clock, end, stop)))
    }

    fn run(&self, mut engine: Engine<u32>, mut ports: TapPorts, clock: WallClock, end: Time, stop: &AtomicBool) -> Ran {
        self.cpus.take_engine();
        drive(&mut engine, &mut ports, &clock, end, stop);
        let counted = engine.finish(&mut ports);
        let (trouble, taps) = ports.finish().map_err(|error| EmuError::Io("a capture", error))?;
        let lost_in_hosts = self.lost_in_hosts()?;
        drop(taps);
        Ok((counted, Trouble { lost_in_hosts, ..trouble }))
    }

    fn ports(&self, slowdown: Slowdown) -> io::Result<TapPorts> {
        let taps = std::mem::take(&mut *self.taps.lock().unwrap_or_else(PoisonError::into_inner));
        let mut ports = TapPorts::new(taps, self.mtu, self.flows.clone(), glues(&self.topology, slowdown))?;
        if let Some(folder) = &self.pcap {
            for (i, host) in self.hosts.iter().enumerate() {
                let path = folder.join(format!("{}.pcap", host.name()));
                ports.capture(i, Pcap::create(path, PcapOptions::default())?);
            }
        }
        Ok(ports)
    }

    fn lost_in_hosts(&self) -> Result<u64, EmuError> {
        let mut lost = 0;
        for host in &self.hosts {
            let counters = host.counters()?;
            lost += counters.tx_dropped + counters.rx_dropped;
        }
        Ok(lost)
    }
}

/// The rate of host number `host`'s network card: that of its link, whose packets are `framing` bytes longer than IP's, and
/// which is modelled. Faster sending would queue in the model, where TCP would count it as sent.
fn card(slowdown: Slowdown, topology: &Topology, host: u32, framing: u32, mtu: u32) -> Option<CardRate> {
    let node = topology.host(host as usize);
    let rate = slowdown.real_rate(topology.links().iter().find(|link| link.from == node)?.rate);
    let (frame, on_wire) = (u64::from(mtu + ETHERNET_BYTES), u64::from(mtu + framing));
    let exact = rate.as_bps() / 8 * frame / on_wire;
    // a little slower than the model: else packets that the machine delayed stay queued in the model
    let bytes_per_second = exact - exact / 512;
    // Linux sends about a millisecond's worth at once, 64 KB at most; and lateness of its timers must not cost rate
    let at_once = (exact / 800).clamp(2 * frame, SUPER_FRAME_BYTES) + exact / 3000;
    Some(CardRate { bytes_per_second: bytes_per_second.try_into().ok()?, burst_bytes: at_once as u32 })
}
