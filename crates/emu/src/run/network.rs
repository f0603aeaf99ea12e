//! [`Network`]: the hosts, and the engine between them on a thread of its own.

use crate::EmuError;
use crate::address::{FlowPorts, address};
use crate::agenda::Agenda;
use crate::driver::drive;
use crate::engine::{Counted, Engine};
use crate::hosts::{Host, HostSettings};
use crate::limits::glues;
use crate::linux::Stack;
use crate::port::WallClock;
use crate::routes::Routes;
use crate::series::{Series, sampled};
use crate::taps::{TapPorts, Trouble};
use net::{LinkTable, Router, Topology};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use packet_io::{Pcap, PcapOptions, Tap};
use rustix::process::setpriority_process;
use scenario::Scenario;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use units::Time;

/// The niceness that goes before all others.
const HIGHEST_PRIORITY: i32 = -20;

/// What the engine's thread hands back.
pub type Ran = Result<(Counted, Trouble), EmuError>;

/// Hosts that are ready to talk, and nothing between them yet.
pub struct Network {
    hosts: Vec<Host>,
    topology: Topology,
    flows: Arc<FlowPorts>,
    taps: Mutex<Vec<Tap>>,
    pcap: Option<PathBuf>,
    mtu: u32,
    cpus: Cpus,
}

impl Network {
    /// Makes the hosts of `topology`. `entries`: for how many traffic entries packets are told apart by flow; 0 for none.
    ///
    /// # Errors
    /// [`EmuError`]: no right to make namespaces, or Linux refuses a setting.
    pub fn create(
        scenario: &Scenario,
        topology: &Topology,
        stack: &Stack,
        entries: usize,
        pcap: Option<PathBuf>,
    ) -> Result<Network, EmuError> {
        if let Some(folder) = &pcap {
            fs::create_dir_all(folder).map_err(|error| EmuError::Io("the folder of the captures", error))?;
        }
        let cpus = Cpus::of_this_process();
        let n = topology.n_hosts() as u32;
        let neighbours: Vec<_> = (0..n).map(address).collect();
        // joined packets make the receiving half cheap enough, and another processor's help costs more than it gives
        let rps_cpus = if glues(topology) { None } else { cpus.others_mask() };
        let (mut hosts, mut taps) = (Vec::new(), Vec::new());
        for i in 0..n {
            let settings = HostSettings {
                mtu: stack.mtu,
                neighbours: neighbours.clone(),
                initial_cwnd: Some(stack.initial_cwnd),
                quick_ack: stack.quick_ack,
                gso_max_segs: stack.gso_max_segs,
                sysctls: stack.sysctls.clone(),
                rps_cpus,
                ..HostSettings::new(address(i))
            };
            let mut host = Host::new(&topology.node(topology.host(i as usize)).name, &settings)?;
            taps.extend(host.take_tap());
            hosts.push(host);
        }
        let flows = Arc::new(FlowPorts::new(entries));
        let (topology, mtu) = (topology.clone(), scenario.tcp.mtu());
        Ok(Network { hosts, topology, flows, taps: Mutex::new(taps), pcap, mtu, cpus })
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

    /// Where the traffic says which ports are which flow's.
    pub(crate) fn flow_ports(&self) -> Arc<FlowPorts> {
        self.flows.clone()
    }

    /// Keeps the calling thread, and what it starts, off the engine's processor.
    pub fn leave_the_engine_alone(&self) {
        self.cpus.take_others();
    }

    /// Starts the engine on a thread of `scope`; once only. It ends at `end` or when `stop` is set.
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
        let links = LinkTable::new(topology, scenario.seed)?;
        let routes = Routes::new(Router::new(topology, plan::routing(scenario)));
        let (sampled, every) = sampled(scenario, topology);
        let agenda = Agenda::new(plan::failures(scenario, topology), every, scenario.measure.warmup);
        let series = Series::new(&sampled, topology);
        let engine = Engine::new(links, routes, plan::framing_bytes(scenario), agenda, series);
        let ports = self.ports().map_err(|error| EmuError::Io("the hosts' network cards", error))?;
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

    fn ports(&self) -> io::Result<TapPorts> {
        let taps = std::mem::take(&mut *self.taps.lock().unwrap_or_else(PoisonError::into_inner));
        let mut ports = TapPorts::new(taps, self.mtu, self.flows.clone(), glues(&self.topology))?;
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

/// The processors that this process may use: one for the engine, the others for hosts and traffic.
struct Cpus {
    engine: Option<usize>,
    others: Vec<usize>,
}

impl Cpus {
    fn of_this_process() -> Cpus {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let mut all: Vec<usize> = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect();
        let engine = if all.len() > 1 { all.pop() } else { None };
        Cpus { engine, others: all }
    }

    fn others_mask(&self) -> Option<u64> {
        self.engine?;
        Some(self.others.iter().filter(|cpu| **cpu < 64).fold(0, |mask, cpu| mask | 1 << cpu))
    }

    /// The calling thread gets the engine's processor, before every other program as far as Linux lets it. Not a real-time
    /// class: those are stopped for 50 ms of every second.
    fn take_engine(&self) {
        pin(self.engine.as_slice());
        let _ = setpriority_process(None, HIGHEST_PRIORITY);
    }

    fn take_others(&self) {
        if self.engine.is_some() {
            pin(&self.others);
        }
    }
}

/// Keeps the calling thread on these processors. Where that is not allowed, the self-check tells what it meant.
fn pin(cpus: &[usize]) {
    let mut set = CpuSet::new();
    let known = cpus.iter().all(|cpu| set.set(*cpu).is_ok());
    if known && !cpus.is_empty() {
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}
