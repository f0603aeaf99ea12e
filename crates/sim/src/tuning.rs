//! Hosts whose TCP is retuned while the run goes on: what [`plan::Control`] sees of the simulated network, and does to it.

use crate::core::Core;
use crate::flows::{Flow, receiver, sender};
use crate::traffic::Traffic;
use congestion::Algorithm;
use net::{LinkCounters, LinkId, QueueLength};
use plan::{Completed, FlowState, Managed, RECEIVER_PORT, Segments, address};
use policy::{AgentRule, Settings};
use results::Arm;
use std::net::IpAddr;
use std::sync::Arc;
use tcp::{Config, EcnMode, Endpoint, PacingMode};
use units::Time;

/// What agents have set, and who is treated.
#[derive(Default)]
pub struct Tuning {
    hosts: Vec<Host>,
    /// Stacks that were made of others by settings.
    made: Vec<(Arc<Config>, Settings, Arc<Config>)>,
    /// Flows that were open at the last look, in order, and the first that has not been looked at.
    open: Vec<u32>,
    next: u32,
    completed: Vec<Completed>,
}

struct Host {
    rules: Vec<AgentRule>,
    arm: Arm,
    /// What its closed flows have sent.
    closed: Segments,
}

impl Tuning {
    /// Hosts that nobody has told anything.
    pub fn new(hosts: usize) -> Tuning {
        let host = || Host { rules: Vec::new(), arm: Arm::Control, closed: Segments::default() };
        Tuning { hosts: (0..hosts).map(|_| host()).collect(), ..Tuning::default() }
    }

    /// The arm of flows that `host` opens now.
    pub fn arm(&self, host: u32) -> Arm {
        self.hosts[host as usize].arm
    }

    /// A flow or message has ended.
    pub fn complete(&mut self, completed: Completed) {
        self.completed.push(completed);
    }

    /// The stack of a new connection's end at `host`, whose entry has `base`.
    pub fn stack(&mut self, base: &Arc<Config>, host: u32, remote: u32, entry: u32) -> Arc<Config> {
        let settings = self.settings(host, remote, entry);
        self.made_of(base, &settings)
    }

    fn settings(&self, host: u32, remote: u32, entry: u32) -> Settings {
        let rules = &self.hosts[host as usize].rules;
        AgentRule::settings_of(rules, IpAddr::from(address(remote)), RECEIVER_PORT + entry as u16, "")
    }

    fn made_of(&mut self, base: &Arc<Config>, settings: &Settings) -> Arc<Config> {
        if settings.is_empty() {
            return base.clone();
        }
        let known = self.made.iter().find(|(of, by, _)| Arc::ptr_eq(of, base) && by == settings);
        if let Some((.., made)) = known {
            return made.clone();
        }
        let made = Arc::new(changed(base, settings));
        self.made.push((base.clone(), settings.clone(), made.clone()));
        made
    }

    /// Gives both ends of an open flow at `host` what the host's rules say.
    fn retune(&mut self, core: &mut Core, base: &Arc<Config>, flow: &Flow, (socket, host, remote): (u32, u32, u32)) {
        let mut settings = self.settings(host, remote, flow.entry);
        let now = core.now();
        let tcp = &mut core.sockets[socket as usize].tcp;
        let algorithm = settings.cc.as_ref().and_then(|name| Algorithm::named(name)).unwrap_or(base.algorithm);
        if algorithm.needs_ecn() && !tcp.has_ecn() {
            // it has what it has: an algorithm that waits for marks which cannot come would see no congestion at all
            settings.cc = Some(tcp.config().algorithm.name().to_string());
        }
        let config = self.made_of(base, &settings);
        tcp.retune(now, &config);
        core.pump(socket);
    }
}

/// A stack with settings.
fn changed(base: &Config, settings: &Settings) -> Config {
    let mut config = base.clone();
    let Settings { initial_cwnd, rto_min, cc, pacing, cwnd_clamp, max_pacing_rate, delayed_ack_max, window_clamp, ecn } =
        settings;
    config.initial_cwnd = initial_cwnd.unwrap_or(config.initial_cwnd);
    config.rto_min = rto_min.unwrap_or(config.rto_min);
    config.cwnd_clamp = cwnd_clamp.unwrap_or(config.cwnd_clamp);
    config.algorithm = cc.as_ref().and_then(|name| Algorithm::named(name)).unwrap_or(config.algorithm);
    config.max_pacing_rate = max_pacing_rate.map_or(config.max_pacing_rate, |rate| rate.as_bps() / 8);
    config.pacing = match pacing {
        Some(true) => PacingMode::On,
        Some(false) => PacingMode::Auto,
        None => config.pacing,
    };
    if let Some(most) = delayed_ack_max {
        config.delayed_ack.timeout_max = *most;
        config.delayed_ack.timeout = config.delayed_ack.timeout.min(*most);
    }
    if let Some(most) = window_clamp {
        config.receive_buffer = config.receive_buffer.min(u32::try_from(most.get()).unwrap_or(u32::MAX));
    }
    config.ecn = match ecn {
        Some(true) => EcnMode::On,
        Some(false) => EcnMode::Off,
        None => config.ecn,
    };
    config
}

/// The network while it stands still between two events.
pub struct Still<'a> {
    pub core: &'a mut Core,
    pub traffic: &'a mut Traffic,
}

impl Still<'_> {
    /// Sees which flows are there now.
    fn refresh(&mut self) -> &mut Tuning {
        let opened = self.traffic.flows.list.len() as u32;
        let tuning = self.traffic.flows.tuning.as_mut().expect("a controlled network has tuning");
        tuning.open.extend(tuning.next..opened);
        tuning.next = opened;
        tuning
    }
}

fn segments(tcp: &Endpoint) -> Segments {
    let stats = tcp.stats();
    Segments { sent: u64::from(stats.data_segments_sent), retransmitted: u64::from(stats.retransmits) }
}

impl Managed for Still<'_> {
    fn link(&self, link: LinkId) -> (LinkCounters, QueueLength) {
        let links = &self.core.fabric.links;
        (links.counters(link), links.queue_len(link, self.core.now()))
    }

    fn flows(&mut self, take: &mut dyn FnMut(FlowState)) {
        let mut open = std::mem::take(&mut self.refresh().open);
        let flows = &mut self.traffic.flows;
        let tuning = flows.tuning.as_mut().expect("a controlled network has tuning");
        open.retain(|flow| {
            let tcp = &self.core.sockets[sender(*flow) as usize].tcp;
            let known = &flows.list[*flow as usize];
            let (sock, segments, is_open) = (tcp.sock(), segments(tcp), !tcp.is_closed());
            take(FlowState {
                flow: *flow,
                entry: known.entry,
                src: known.src,
                dst: known.dst,
                bytes: tcp.acked(),
                segments,
                arm: known.arm.unwrap_or(Arm::Control),
                srtt_us: (sock.srtt_us > 0).then_some(sock.srtt_us >> 3),
                open: is_open,
            });
            if !is_open {
                let closed = &mut tuning.hosts[known.src as usize].closed;
                closed.sent += segments.sent;
                closed.retransmitted += segments.retransmitted;
            }
            is_open
        });
        tuning.open = open;
    }

    fn segments(&mut self, hosts: &mut [Segments]) {
        let open = std::mem::take(&mut self.refresh().open);
        let flows = &mut self.traffic.flows;
        let tuning = flows.tuning.as_mut().expect("a controlled network has tuning");
        for (sum, host) in hosts.iter_mut().zip(&tuning.hosts) {
            sum.sent += host.closed.sent;
            sum.retransmitted += host.closed.retransmitted;
        }
        for flow in &open {
            let sent = segments(&self.core.sockets[sender(*flow) as usize].tcp);
            let sum = &mut hosts[flows.list[*flow as usize].src as usize];
            sum.sent += sent.sent;
            sum.retransmitted += sent.retransmitted;
        }
        tuning.open = open;
    }

    fn completed(&mut self, take: &mut dyn FnMut(Completed)) {
        self.refresh().completed.drain(..).for_each(take);
    }

    fn retune(&mut self, host: u32, rules: &[AgentRule]) {
        let settings = |rules: &[AgentRule]| {
            rules.iter().map(|rule| (rule.sessions.clone(), rule.set.clone())).collect::<Vec<_>>()
        };
        let tuning = self.refresh();
        let before = std::mem::replace(&mut tuning.hosts[host as usize].rules, rules.to_vec());
        // deadlines are seen to by who calls this
        if settings(&before) == settings(rules) {
            return;
        }
        let open = std::mem::take(&mut tuning.open);
        let mut tuning = self.traffic.flows.tuning.take().expect("a controlled network has tuning");
        for &number in &open {
            let flow = &self.traffic.flows.list[number as usize];
            let base = self.traffic.stack(flow.entry);
            let ends = [(sender(number), flow.src, flow.dst), (receiver(number), flow.dst, flow.src)];
            for end in ends {
                if end.1 == host && !self.core.sockets[end.0 as usize].tcp.is_closed() {
                    tuning.retune(self.core, base, flow, end);
                }
            }
        }
        tuning.open = open;
        self.traffic.flows.tuning = Some(tuning);
    }

    fn assign(&mut self, host: u32, arm: Arm) {
        self.refresh().hosts[host as usize].arm = arm;
    }
}

/// How long a flow took.
pub fn completed(flow: &Flow, end: Time) -> Completed {
    let arm = flow.arm.unwrap_or(Arm::Control);
    Completed { src: flow.src, entry: flow.entry, bytes: flow.bytes, took: end - flow.start, arm }
}
