//! Real hosts whose TCP is retuned while the run goes on: what [`plan::Control`] sees of the emulated network, and does to it.
//!
//! All hosts' rules stand in one table of the kernel, each for the network namespaces of its hosts. Rules end by themselves when
//! their CUEs do, should this process not live to end them. What a namespace knows only as a whole, ECN, is its sysctl.

use crate::EmuError;
use crate::cgroup::Cgroup;
use crate::gauges::{Gauges, Readings};
use crate::hosts::set_sysctl;
use crate::port::{Clock, WallClock};
use crate::traffic::Sockets;
use kernel::NAME_PREFIX;
use kernel::retune::{Counts, Retuner, Rule, Sessions, Tuning, boot_time, netns_cookie};
use net::{LinkCounters, LinkId, QueueLength};
use nix::time::{ClockId, clock_getres};
use plan::{Completed, Control, FlowState, Managed, Segments};
use policy::{AgentRule, Policy, Settings};
use results::Arm;
use std::cell::OnceCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use units::Time;

/// How long the engine may take to say what links have counted. It looks every few microseconds, unless the machine has taken
/// its processor.
const PATIENCE: Duration = Duration::from_millis(100);
/// A pacing rate that is no limit, but paces: the most that Linux takes, bytes a second.
const PACE_UNLIMITED: u64 = u32::MAX as u64 - 1;
/// Whether connections negotiate ECN.
const ECN: &str = "net.ipv4.tcp_ecn";

/// The Oracle and the agents of a run, and what sets real hosts' TCP.
pub struct Retuning {
    control: Control,
    tuner: Tuner,
    /// The latest that something was done.
    late: Time,
}

/// What stands between the agents and the kernel.
struct Tuner {
    retuner: Retuner,
    policy: Policy,
    gauges: Arc<Gauges>,
    /// What links showed last.
    readings: Readings,
    hosts: Vec<Host>,
    /// `tcp_ecn` of hosts without a rule.
    ecn: String,
    /// The kernel's clock tick: what it takes for a shorter time-out it refuses.
    tick: Time,
    /// Flows that were open at the last look, in order, and the first that has not been looked at.
    open: Vec<u32>,
    next: u32,
    is_changed: bool,
    trouble: Option<EmuError>,
    // the last to go: what is attached to it goes before
    _cgroup: Cgroup,
}

struct Host {
    /// The cookie of its network namespace.
    netns: u64,
    rules: Vec<AgentRule>,
    ecn: Option<bool>,
    /// What its closed flows have sent.
    closed: Segments,
}

/// What has become of the policy.
pub struct Retuned {
    /// The Oracle and the agents, who know.
    pub control: Control,
    /// What the kernel has done.
    pub counts: Counts,
    /// How late the Oracle or an agent was at most.
    pub late: Time,
}

impl Retuning {
    /// Attaches to a cgroup that this process then is in. `ecn`: the hosts' own `tcp_ecn`.
    ///
    /// # Errors
    /// There are no such cgroups, or no right to them, or the kernel refuses the agent's program.
    pub fn attach(control: Control, policy: Policy, gauges: Arc<Gauges>, ecn: String) -> Result<Retuning, EmuError> {
        let cgroup = Cgroup::enter()?;
        let retuner = Retuner::attach(cgroup.path())?;
        let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(Duration::from_millis(10), Duration::from);
        let tuner = Tuner {
            retuner,
            policy,
            gauges,
            readings: Readings::default(),
            hosts: Vec::new(),
            ecn,
            tick: Time::from_ns(tick.as_nanos() as u64),
            open: Vec::new(),
            next: 0,
            is_changed: false,
            trouble: None,
            _cgroup: cgroup,
        };
        Ok(Retuning { control, tuner, late: Time::ZERO })
    }

    /// When [`Retuning::on_time`] is to be called next.
    pub fn next(&self) -> Time {
        self.control.next()
    }

    /// Does what is due at `now`, the time on `clock`, and sets what comes of it.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn on_time(&mut self, now: Time, clock: WallClock, sockets: &mut Sockets<'_>) -> Result<(), EmuError> {
        if self.tuner.hosts.is_empty() {
            self.tuner.hosts = hosts(sockets).map_err(|error| EmuError::Io("a namespace's cookie", error))?;
        }
        self.late = self.late.max(now.saturating_sub(self.control.next()));
        let readings = OnceCell::new();
        let mut seen = Seen { tuner: &mut self.tuner, sockets, readings };
        self.control.on_time(now, &mut seen);
        if let Some(readings) = seen.readings.into_inner() {
            self.tuner.readings = readings;
        }
        if std::mem::take(&mut self.tuner.is_changed) {
            self.tuner.set(clock)?;
        }
        self.tuner.trouble.take().map_or(Ok(()), Err)
    }

    /// The end: what was set is given back.
    ///
    /// # Errors
    /// The kernel does not say what it has done.
    pub fn finish(self) -> Result<Retuned, EmuError> {
        Ok(Retuned { counts: self.tuner.retuner.counts()?, control: self.control, late: self.late })
    }
}

fn hosts(sockets: &mut Sockets<'_>) -> io::Result<Vec<Host>> {
    let n = sockets.hosts() as u32;
    let host = |number| {
        sockets.enter(number)?;
        Ok(Host { netns: netns_cookie()?, rules: Vec::new(), ecn: None, closed: Segments::default() })
    };
    (0..n).map(host).collect()
}

impl Tuner {
    /// Puts all hosts' rules into the kernel, rule by rule, so that hosts with the same rule stand together.
    fn set(&mut self, clock: WallClock) -> Result<(), EmuError> {
        let (boot, now) = (boot_time(), clock.now());
        let mut rules = Vec::new();
        for (rank, known) in self.policy.rules.iter().enumerate() {
            for host in &self.hosts {
                let Some(rule) = host.rules.iter().find(|rule| rule.rule == known.name) else { continue };
                let tuning = self.tuning(&rule.set);
                // the hosts' programs are in no cgroup that a policy could name
                if tuning == Tuning::default() || rule.sessions.cgroup.is_some() {
                    continue;
                }
                let everybody = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
                let remote = rule.sessions.remote.map_or(everybody, |prefix| (prefix.address(), prefix.bits()));
                let sessions = Sessions { netns: Some(host.netns), remote, port: rule.sessions.port };
                let deadline = boot + Duration::from_nanos(rule.deadline.saturating_sub(now).as_ns());
                rules.push(Rule { number: rank as u32 + 1, sessions, tuning, deadline });
            }
        }
        Ok(self.retuner.set(&rules)?)
    }

    /// In the kernel's words; ECN aside.
    fn tuning(&self, set: &Settings) -> Tuning {
        let us = |time: Time| time.max(self.tick + Time::from_us(1)).as_us().min(u64::from(u32::MAX)) as u32;
        let rate = set.max_pacing_rate.map(|rate| rate.as_bps() / 8);
        Tuning {
            initial_cwnd: set.initial_cwnd,
            rto_min_us: set.rto_min.map(us),
            delack_max_us: set.delayed_ack_max.map(us),
            cwnd_clamp: set.cwnd_clamp,
            window_clamp: set.window_clamp.map(|bytes| bytes.get().min(u64::from(u32::MAX)) as u32),
            pacing_rate: rate.or_else(|| (set.pacing == Some(true)).then_some(PACE_UNLIMITED)),
            algorithm: set.cc.as_ref().map(|name| format!("{NAME_PREFIX}{name}")),
            needs_ecn: set.cc.as_ref().is_some_and(|name| self.policy.algorithm(name).is_some_and(|cc| cc.needs_ecn)),
        }
    }
}

/// The network at one instant.
struct Seen<'a, 'b> {
    tuner: &'a mut Tuner,
    sockets: &'a mut Sockets<'b>,
    /// What links show, if somebody has asked.
    readings: OnceCell<Readings>,
}

impl Seen<'_, '_> {
    /// Sees which flows are there now.
    fn refresh(&mut self) {
        let opened = self.sockets.flows().len() as u32;
        self.tuner.open.extend(self.tuner.next..opened);
        self.tuner.next = opened;
    }
}

impl Managed for Seen<'_, '_> {
    fn link(&self, link: LinkId) -> (LinkCounters, QueueLength) {
        // without an answer nothing has happened since the last one
        let ask = || self.tuner.gauges.read(PATIENCE).unwrap_or_else(|| self.tuner.readings.clone());
        self.readings.get_or_init(ask).get(link.index()).copied().unwrap_or_default()
    }

    fn flows(&mut self, take: &mut dyn FnMut(FlowState)) {
        self.refresh();
        let (hosts, flows) = (&mut self.tuner.hosts, self.sockets.flows());
        self.tuner.open.retain(|number| {
            let flow = &mut flows[*number as usize];
            flow.look();
            let (info, is_open) = (flow.info, flow.sender.is_some());
            let segments =
                Segments { sent: u64::from(info.data_segs_out), retransmitted: u64::from(info.total_retrans) };
            take(FlowState {
                flow: *number,
                entry: flow.entry,
                src: flow.src,
                dst: flow.dst,
                arm: flow.arm.unwrap_or(Arm::Control),
                bytes: info.bytes_acked,
                segments,
                srtt_us: (info.rtt_us > 0).then_some(info.rtt_us),
                open: is_open,
            });
            if !is_open {
                let closed = &mut hosts[flow.src as usize].closed;
                closed.sent += segments.sent;
                closed.retransmitted += segments.retransmitted;
            }
            is_open
        });
    }

    fn segments(&mut self, hosts: &mut [Segments]) {
        self.refresh();
        for (sum, host) in hosts.iter_mut().zip(&self.tuner.hosts) {
            sum.sent += host.closed.sent;
            sum.retransmitted += host.closed.retransmitted;
        }
        let flows = self.sockets.flows();
        for number in &self.tuner.open {
            let flow = &mut flows[*number as usize];
            flow.look();
            let sum = &mut hosts[flow.src as usize];
            sum.sent += u64::from(flow.info.data_segs_out);
            sum.retransmitted += u64::from(flow.info.total_retrans);
        }
    }

    fn completed(&mut self, take: &mut dyn FnMut(Completed)) {
        self.sockets.take_completed().into_iter().for_each(take);
    }

    fn retune(&mut self, number: u32, rules: &[AgentRule]) {
        let host = &mut self.tuner.hosts[number as usize];
        host.rules = rules.to_vec();
        self.tuner.is_changed = true;
        let ecn = rules.iter().filter(|rule| rule.sessions.cgroup.is_none()).find_map(|rule| rule.set.ecn);
        if std::mem::replace(&mut host.ecn, ecn) != ecn {
            let value = ecn.map_or(self.tuner.ecn.as_str(), |on| if on { "1" } else { "0" });
            let set = self.sockets.enter(number).map_err(io::Error::from).and_then(|()| set_sysctl(ECN, value));
            if let Err(error) = set {
                self.tuner.trouble = Some(EmuError::Io("tcp_ecn of a host", error));
            }
        }
    }

    fn assign(&mut self, host: u32, arm: Arm) {
        self.sockets.assign(host, arm);
    }
}
