//! Hosts whose TCP is retuned during the run: how [`plan::Control`] observes and changes the simulated network.

use crate::core::Core;
use crate::flows::{receiver, sender};
use crate::traffic::Traffic;
use crate::tuning::Tuning;
use congestion::Algorithm;
use net::{LinkCounters, LinkId, QueueLength};
use plan::{Completed, FlowState, Managed, Segments};
use policy::AgentRule;
use results::Arm;
use std::sync::Arc;
use tcp::{Config, Endpoint};

/// The network between two events.
pub struct Still<'a> {
    pub core: &'a mut Core,
    pub traffic: &'a mut Traffic,
}

impl Still<'_> {
    /// Sees which flows are there now.
    fn refresh(&mut self) -> &mut Tuning {
        let opened = self.traffic.flows.list.len() as u32;
        let tuning = self.traffic.flows.tuning.as_mut().expect("a controlled network has tuning");
        // hosts report TCP
        let is_tcp = |flow: &u32| !self.core.datagrams.contains_key(&sender(*flow));
        tuning.open.extend((tuning.next..opened).filter(is_tcp));
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
        // the caller handles deadlines
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
                    retune(&mut tuning, self.core, base, flow.entry, end);
                }
            }
        }
        let flows = &self.traffic.flows.list;
        let incoming = open.iter().copied().filter(|flow| flows[*flow as usize].dst == host);
        let incoming = incoming.map(|flow| (flow, flows[flow as usize].src, flows[flow as usize].entry));
        tuning.follow(self.core, host, incoming);
        tuning.open = open;
        self.traffic.flows.tuning = Some(tuning);
    }

    fn assign(&mut self, host: u32, arm: Arm) {
        self.refresh().hosts[host as usize].arm = arm;
    }
}

/// Applies the rules of `host` to the end of an open flow.
fn retune(
    tuning: &mut Tuning,
    core: &mut Core,
    base: &Arc<Config>,
    entry: u32,
    (socket, host, remote): (u32, u32, u32),
) {
    let mut settings = tuning.settings(host, remote, entry);
    let now = core.now();
    let tcp = &mut core.sockets[socket as usize].tcp;
    let algorithm = settings.cc.as_ref().and_then(|name| Algorithm::named(name)).unwrap_or(base.algorithm);
    if algorithm.needs_ecn() && !tcp.has_ecn() {
        // ECN was decided at the handshake: an algorithm that waits for marks which cannot come would see no congestion
        settings.cc = Some(tcp.config().algorithm.name().to_string());
    }
    // a share of a total stays until the next turn
    let before = tcp.config().window_clamp;
    let receives = socket == receiver(socket / 2);
    let config = tuning.made_of(base, &settings, settings.window_total.filter(|_| receives).map(|_| before));
    tcp.retune(now, &config);
    // else nothing is sent for it, as in Linux: a rule that sets what is set already changes nothing
    if before == 0 && config.window_clamp > 0 {
        core.pump(socket);
    }
}
