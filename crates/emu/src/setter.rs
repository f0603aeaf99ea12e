//! Sets hosts' TCP as rules start and end, on a thread of its own: the engine and the applications continue meanwhile.
//!
//! Connections are set by one table of the kernel, each rule for the network namespaces of its hosts, and rules expire there by themselves
//! when their CUEs do. Open connections, idle ones too, follow at once: an iterator visits those of each host whose rules have changed. ECN
//! and the initial window after a pause are set per namespace, by its sysctl and its route.

use crate::cgroup::Cgroup;
use crate::error::EmuError;
use crate::hosts::{HostRoute, set_sysctl};
use crate::port::{Clock, WallClock};
use crate::scheduling::go_second;
use crate::slowdown::Slowdown;
use kernel::name_in_kernel;
use kernel::retune::{Counts, Retuner, Rule, Sessions, Tuning, boot_time, kept, netns_cookie};
use nix::sched::{CloneFlags, setns};
use policy::{AgentRule, Policy, Settings};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Time;

/// A pacing rate that limits nothing but turns pacing on: Linux's largest, bytes a second.
const PACE_UNLIMITED: u64 = u32::MAX as u64 - 1;
/// Whether connections negotiate ECN.
const ECN: &str = "net.ipv4.tcp_ecn";

/// A host to set.
pub struct Place {
    /// Its network namespace.
    pub namespace: File,
    /// Its route to the others.
    pub route: HostRoute,
}

/// By host: the rules that it follows from now on.
type Order = Vec<Vec<AgentRule>>;

/// The thread, and its queue of orders.
pub struct Setter {
    /// Until the start.
    worker: Option<Worker>,
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<Result<Counts, EmuError>>>,
    // dropped last: after the programs that are attached to it
    _cgroup: Cgroup,
}

impl Setter {
    /// Attaches to a cgroup that this process then enters. `ecn`: the hosts' own `tcp_ecn`. Timers and
    /// rates are as slow as the network.
    ///
    /// # Errors
    /// There are no cgroups of version 2, or no right to them, or the kernel refuses the agent's program.
    pub fn attach(policy: Policy, places: Vec<Place>, ecn: String, slowdown: Slowdown) -> Result<Setter, EmuError> {
        let cgroup = Cgroup::enter()?;
        let retuner = Retuner::attach(cgroup.path())?;
        let hosts = places.into_iter().map(Host::at).collect();
        let worker = Some(Worker { retuner, policy, ecn, slowdown, hosts });
        Ok(Setter { worker, orders: None, thread: None, _cgroup: cgroup })
    }

    /// Starts the thread, which runs on the calling one's CPUs. `clock`: of the rules' deadlines. Only once.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(&mut self, clock: WallClock) -> Result<(), EmuError> {
        let mut worker = self.worker.take().ok_or(EmuError::Broken)?;
        let (orders, queue) = mpsc::channel();
        let thread = thread::Builder::new().name("retuning".to_string()).spawn(move || worker.run(&queue, clock));
        self.thread = Some(thread.map_err(|error| EmuError::Io("a thread", error))?);
        self.orders = Some(orders);
        Ok(())
    }

    /// Replaces the rules of all hosts; only the last of several waiting orders is executed.
    ///
    /// # Errors
    /// The kernel has refused an earlier order.
    pub fn set(&mut self, rules: Order) -> Result<(), EmuError> {
        match self.orders.as_ref().map(|orders| orders.send(rules)) {
            Some(Ok(())) => Ok(()),
            _ => self.finish().map(|_| ()),
        }
    }

    /// Ends, and returns the kernel program's counters.
    ///
    /// # Errors
    /// The kernel has refused an order, or its counters cannot be read.
    pub fn finish(&mut self) -> Result<Counts, EmuError> {
        self.orders = None;
        let thread = self.thread.take().ok_or(EmuError::Broken)?;
        thread.join().map_err(|_| EmuError::Broken)?
    }
}

impl Drop for Setter {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // an error has been reported, or the receiver has ended
            let _ = self.finish();
        }
    }
}

struct Worker {
    retuner: Retuner,
    policy: Policy,
    /// `tcp_ecn` of hosts without a rule.
    ecn: String,
    slowdown: Slowdown,
    hosts: Vec<Host>,
}

struct Host {
    place: Place,
    /// The cookie of its network namespace; 0: not read yet.
    cookie: u64,
    rules: Vec<AgentRule>,
    /// The settings of the whole namespace.
    ecn: Option<bool>,
    initial_cwnd: Option<u32>,
}

impl Worker {
    fn run(&mut self, queue: &Receiver<Order>, clock: WallClock) -> Result<Counts, EmuError> {
        // the iterator takes a millisecond a host, and must not delay the applications
        go_second();
        for host in &mut self.hosts {
            host.enter().and_then(|()| netns_cookie()).map(|cookie| host.cookie = cookie).map_err(failed)?;
        }
        while let Ok(order) = queue.recv() {
            self.carry_out(queue.try_iter().last().unwrap_or(order), clock)?;
        }
        Ok(self.retuner.counts()?)
    }

    fn carry_out(&mut self, order: Order, clock: WallClock) -> Result<(), EmuError> {
        let mut changed = Vec::new();
        for (number, (host, rules)) in self.hosts.iter_mut().zip(order).enumerate() {
            if host.rules != rules {
                host.rules = rules;
                changed.push(number);
            }
        }
        // settings that new connections use come first
        for number in &changed {
            self.hosts[*number].set_as_a_whole(&self.ecn).map_err(failed)?;
        }
        self.retuner.set(&self.rules(clock))?;
        for number in changed {
            self.hosts[number].enter().map_err(failed)?;
            self.retuner.adopt()?;
        }
        Ok(())
    }

    /// All hosts' rules, rule by rule, so that hosts with the same rule are adjacent.
    fn rules(&self, clock: WallClock) -> Vec<Rule> {
        let (boot, now) = (boot_time(), clock.now());
        let mut rules = Vec::new();
        for (rank, known) in self.policy.rules.iter().enumerate() {
            for host in &self.hosts {
                let Some(rule) = host.rules.iter().find(|rule| rule.rule == known.name) else { continue };
                let tuning = self.tuning(&rule.set);
                // a policy's `cgroup` never matches a host's programs
                if tuning == Tuning::default() || rule.sessions.cgroup.is_some() {
                    continue;
                }
                let everybody = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
                let remote = rule.sessions.remote.map_or(everybody, |prefix| (prefix.address(), prefix.bits()));
                let sessions = Sessions { netns: Some(host.cookie), remote, port: rule.sessions.port };
                let deadline = boot + self.slowdown.duration(rule.deadline.saturating_sub(now));
                rules.push(Rule { number: rank as u32 + 1, sessions, tuning, deadline });
            }
        }
        rules
    }

    /// As kernel settings; without those of whole namespaces.
    fn tuning(&self, set: &Settings) -> Tuning {
        let us = |time: Time| in_effect(self.slowdown.real(time)).as_us().min(u64::from(u32::MAX)) as u32;
        let rate = set.max_pacing_rate.map(|rate| self.slowdown.real_rate(rate).as_bps() / 8);
        Tuning {
            initial_cwnd: set.initial_cwnd,
            rto_min_us: set.rto_min.map(us),
            delack_max_us: set.delayed_ack_max.map(us),
            cwnd_clamp: set.cwnd_clamp,
            window_clamp: set.window_clamp.map(|bytes| bytes.get().min(u64::from(u32::MAX)) as u32),
            window_total: set.window_total.map(|bytes| bytes.get().min(u64::from(u32::MAX)) as u32),
            pacing_rate: rate.or_else(|| (set.pacing == Some(true)).then_some(PACE_UNLIMITED)),
            algorithm: set.cc.as_deref().map(name_in_kernel),
            needs_ecn: set.cc.as_ref().is_some_and(|name| self.policy.algorithm(name).is_some_and(|cc| cc.needs_ecn)),
        }
    }
}

impl Host {
    fn at(place: Place) -> Host {
        Host { place, cookie: 0, rules: Vec::new(), ecn: None, initial_cwnd: None }
    }

    /// The calling thread enters its namespace.
    fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.place.namespace, CloneFlags::CLONE_NEWNET)?)
    }

    /// Sets the settings of the whole namespace, if they have changed.
    fn set_as_a_whole(&mut self, own_ecn: &str) -> io::Result<()> {
        let for_all = self.rules.iter().filter(|rule| rule.sessions == policy::Sessions::default());
        let ecn = for_all.clone().find_map(|rule| rule.set.ecn);
        let initial_cwnd = for_all.clone().find_map(|rule| rule.set.initial_cwnd);
        if (ecn, initial_cwnd) == (self.ecn, self.initial_cwnd) {
            return Ok(());
        }
        self.enter()?;
        if ecn != self.ecn {
            set_sysctl(ECN, ecn.map_or(own_ecn, |on| if on { "1" } else { "0" }))?;
            self.ecn = ecn;
        }
        if initial_cwnd != self.initial_cwnd {
            self.place.route.set_initial_cwnd(initial_cwnd)?;
            self.initial_cwnd = initial_cwnd;
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> EmuError {
    EmuError::Io("setting a host by its rules", error)
}

/// The kernel's value of a minimum RTO or ACK delay that a rule sets.
fn in_effect(time: Time) -> Time {
    Time::from_ns(kept(Duration::from_nanos(time.as_ns())).as_nanos() as u64)
}

/// A rule's settings, with the effective value on this kernel where it differs: `rto_min = 2 ms (in effect: rto_min = 8 ms)`.
/// In a slower network that is a smaller one.
pub fn with_effective(set: &Settings, slowdown: Slowdown) -> String {
    let rounded = |time: Option<Time>| time.map(|time| slowdown.of_real(in_effect(slowdown.real(time))));
    let effective = Settings {
        rto_min: rounded(set.rto_min),
        delayed_ack_max: rounded(set.delayed_ack_max),
        ..Settings::default()
    };
    let asked = Settings { rto_min: set.rto_min, delayed_ack_max: set.delayed_ack_max, ..Settings::default() };
    if effective == asked { set.to_string() } else { format!("{set} (in effect: {effective})") }
}
