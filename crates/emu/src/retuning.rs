//! Retunes real hosts' TCP during a run: what [`plan::Control`] sees of the emulated network, and does to it.

use crate::error::EmuError;
use crate::gauges::{Gauges, Readings};
use crate::port::WallClock;
use crate::setter::{self, Place, Setter};
use crate::slowdown::Slowdown;
use crate::sockets::Sockets;
use kernel::retune::Counts;
use net::{LinkCounters, LinkId, QueueLength};
use plan::{Completed, Control, FlowState, Managed, Segments};
use policy::{AgentRule, Policy};
use results::{Arm, CueRow};
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;
use units::Time;

/// How long the engine may take to answer with the links' counters. It polls every few microseconds, unless the machine has taken
/// its CPU.
const PATIENCE: Duration = Duration::from_millis(100);

/// The Oracle and the agents of a run, and the setter of real hosts' TCP.
pub struct Retuning {
    control: Control,
    policy: Policy,
    slowdown: Slowdown,
    setter: Setter,
    network: Observed,
    /// The largest lateness of the policy.
    late: Time,
}

/// The state of the network between two readings.
struct Observed {
    gauges: Arc<Gauges>,
    /// The last readings of links.
    readings: Readings,
    hosts: Vec<Host>,
    /// Flows that were open at the last reading, in order, and the first one not yet seen.
    open: Vec<u32>,
    next: u32,
    is_changed: bool,
}

#[derive(Clone, Default)]
struct Host {
    rules: Vec<AgentRule>,
    /// Bytes that its closed flows have sent.
    closed: Segments,
}

/// The policy's results.
pub struct Retuned {
    /// The Oracle's and the agents' results.
    pub control: Control,
    policy: Policy,
    slowdown: Slowdown,
    /// The kernel program's counters.
    pub counts: Counts,
    /// The largest lateness of the Oracle or an agent.
    pub late: Time,
}

impl Retuned {
    /// The events of CUEs; settings are listed with their effective values on this kernel.
    pub fn into_rows(self) -> Vec<CueRow> {
        let mut rows = self.control.into_rows();
        for row in &mut rows {
            if let Some(rule) = self.policy.rules.iter().find(|rule| rule.name == *row.rule) {
                row.set = setter::with_effective(&rule.set, self.slowdown).into();
            }
        }
        rows
    }
}

impl Retuning {
    /// Attaches to a cgroup that this process then enters. `places`: the hosts, by number. `ecn`: their own `tcp_ecn`.
    ///
    /// # Errors
    /// As [`Setter::attach`].
    pub fn attach(
        control: Control,
        policy: Policy,
        gauges: Arc<Gauges>,
        places: Vec<Place>,
        ecn: String,
        slowdown: Slowdown,
    ) -> Result<Retuning, EmuError> {
        let network = Observed {
            gauges,
            readings: Readings::default(),
            hosts: vec![Host::default(); places.len()],
            open: Vec::new(),
            next: 0,
            is_changed: false,
        };
        let setter = Setter::attach(policy.clone(), places, ecn, slowdown)?;
        Ok(Retuning { control, policy, slowdown, setter, network, late: Time::ZERO })
    }

    /// Starts, on the thread of the applications. Nothing has happened yet, however long the set-up took.
    ///
    /// # Errors
    /// As [`Setter::begin`].
    pub fn begin(&mut self, clock: WallClock, sockets: &mut Sockets<'_>) -> Result<(), EmuError> {
        self.setter.begin(clock)?;
        self.on_time(Time::ZERO, sockets)
    }

    /// When [`Retuning::on_time`] is to be called next.
    pub fn next(&self) -> Time {
        self.control.next()
    }

    /// Does what is due at `now`, and sends the new settings to the setter.
    ///
    /// # Errors
    /// The kernel has refused an earlier setting.
    pub fn on_time(&mut self, now: Time, sockets: &mut Sockets<'_>) -> Result<(), EmuError> {
        self.late = self.late.max(now.saturating_sub(self.control.next()));
        let readings = OnceCell::new();
        let mut seen = Seen { network: &mut self.network, sockets, readings };
        self.control.on_time(now, &mut seen);
        if let Some(readings) = seen.readings.into_inner() {
            self.network.readings = readings;
        }
        if std::mem::take(&mut self.network.is_changed) {
            self.setter.set(self.network.hosts.iter().map(|host| host.rules.clone()).collect())?;
        }
        Ok(())
    }

    /// Ends: everything is restored.
    ///
    /// # Errors
    /// The kernel has refused a setting, or its counters cannot be read.
    pub fn finish(mut self) -> Result<Retuned, EmuError> {
        let counts = self.setter.finish()?;
        let Retuning { control, policy, slowdown, late, .. } = self;
        Ok(Retuned { control, policy, slowdown, counts, late })
    }
}

/// The network at one instant.
struct Seen<'a, 'b> {
    network: &'a mut Observed,
    sockets: &'a mut Sockets<'b>,
    /// The links' readings, if requested.
    readings: OnceCell<Readings>,
}

impl Seen<'_, '_> {
    /// Updates the list of open flows.
    fn refresh(&mut self) {
        let opened = self.sockets.flows().len() as u32;
        self.network.open.extend(self.network.next..opened);
        self.network.next = opened;
    }
}

impl Managed for Seen<'_, '_> {
    fn link(&self, link: LinkId) -> (LinkCounters, QueueLength) {
        // without an answer the last readings count
        let ask = || self.network.gauges.read(PATIENCE).unwrap_or_else(|| self.network.readings.clone());
        self.readings.get_or_init(ask).get(link.index()).copied().unwrap_or_default()
    }

    fn flows(&mut self, take: &mut dyn FnMut(FlowState)) {
        self.refresh();
        let (hosts, flows) = (&mut self.network.hosts, self.sockets.flows());
        self.network.open.retain(|number| {
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
        for (sum, host) in hosts.iter_mut().zip(&self.network.hosts) {
            sum.sent += host.closed.sent;
            sum.retransmitted += host.closed.retransmitted;
        }
        let flows = self.sockets.flows();
        for number in &self.network.open {
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
        self.network.hosts[number as usize].rules = rules.to_vec();
        self.network.is_changed = true;
    }

    fn assign(&mut self, host: u32, arm: Arm) {
        self.sockets.assign(host, arm);
    }
}
