//! The connections of a run: opening them, and what is known of each when it ends.

use crate::core::Core;
use crate::ictcp::Ictcp;
pub use crate::requests::{Opened, Pair, flow_of, receiver, sender};
use crate::tuning::Tuning;
use net::{LinkId, NodeId, Router, SplitMix64, Topology};
use plan::{Arrived, Completed, FlowName, Message};
use results::Arm;
use std::collections::BTreeMap;
use std::sync::Arc;
use tcp::Endpoint;
use units::Time;

/// A connection: its sender is socket `2 * flow`, its receiver the next.
pub struct Flow {
    /// The traffic entry that opened it.
    pub entry: u32,
    /// Numbers of the hosts.
    pub src: u32,
    /// See `src`.
    pub dst: u32,
    /// Of a controlled network: that of the host to which it belongs, when it was opened.
    pub arm: Option<Arm>,
    pub start: Time,
    /// [`Time::NEVER`] until the last byte arrived.
    pub end: Time,
    /// Application bytes to send; [`plan::UNLIMITED`].
    pub bytes: u64,
}

// beside the two sockets of an idle connection
const _: () = assert!(size_of::<Flow>() == 40);

impl Flow {
    /// How long it took, having ended at `end`.
    fn completed(&self, end: Time) -> Completed {
        let arm = self.arm.unwrap_or(Arm::Control);
        Completed { src: self.src, entry: self.entry, bytes: self.bytes, took: end - self.start, arm }
    }
}

/// The most routes of a flow that is spread over several.
const WAYS_MAX: usize = 256;
/// Random streams of such flows.
const SPREAD_STREAMS: u64 = 1 << 48;

/// All connections, and what opening one takes.
pub struct Flows {
    /// Those that are open, or were.
    pub list: Vec<Flow>,
    /// Number of requested connections.
    asked: u32,
    /// The run's.
    seed: u64,
    pub topology: Topology,
    pub router: Router,
    /// Hosts of a pod or leaf, which are numbered in a row; one where there are none.
    pub hosts_per_pod: usize,
    /// Where servers forward: the first of their delays, which are links in the order of the hosts.
    pub forwarding: Option<LinkId>,
    /// Where packets are spread over several routes: the pause after which a route is chosen anew.
    pub spread: Option<Time>,
    /// Reused when a path is computed.
    path: Vec<LinkId>,
    /// Flows that could not be opened because no path was left.
    pub unreachable: u64,
    /// Of a controlled network.
    pub tuning: Option<Tuning>,
    /// Of hosts that control their windows by ICTCP.
    pub ictcp: Option<Ictcp>,
    /// Messages that have arrived, with their ends, if they are asked for.
    pub messages: Option<Vec<Arrived>>,
    /// Connections that are kept for messages: segments retransmitted up to the last message that arrived.
    kept: BTreeMap<u32, u64>,
}

impl Flows {
    pub fn new(topology: Topology, router: Router, pods: Option<usize>, seed: u64) -> Flows {
        let hosts_per_pod = pods.map_or(1, |pods| topology.n_hosts() / pods);
        Flows {
            list: Vec::new(),
            asked: 0,
            seed,
            topology,
            router,
            hosts_per_pod,
            forwarding: None,
            spread: None,
            path: Vec::new(),
            unreachable: 0,
            tuning: None,
            ictcp: None,
            messages: None,
            kept: BTreeMap::new(),
        }
    }

    /// Makes room for `n` more connections.
    pub fn reserve(&mut self, core: &mut Core, n: usize) {
        // the two hosts farthest apart by number are also farthest apart in every topology that has a formula
        let (first, last) = (self.topology.host(0), self.topology.host(self.topology.n_hosts() - 1));
        self.path.clear();
        let hops = self.router.path(first, last, 0, &mut self.path).map_or(0, |()| self.path.len());
        self.list.reserve_exact(n);
        core.reserve(n, hops);
    }

    /// Connections requested so far.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// The requested connection: its number, and its paths; `None` if failures have left none.
    pub fn ask(&mut self, pair: Pair, name: FlowName) -> Option<Opened> {
        let Some(routes) = self.routes(pair, name) else {
            self.unreachable += 1;
            return None;
        };
        let flow = self.asked;
        self.asked += 1;
        Some(Opened { flow, pair, name, routes })
    }

    /// The ways of data and of acknowledgments.
    pub fn routes(&mut self, Pair { src, dst, .. }: Pair, name: FlowName) -> Option<[Vec<LinkId>; 2]> {
        let mut routes = [Vec::new(), Vec::new()];
        for ((from, to, forward), route) in [(src, dst, true), (dst, src, false)].into_iter().zip(&mut routes) {
            self.path.clear();
            self.router.path(from, to, name.path_hash(forward), &mut self.path).ok()?;
            self.wait_in_servers();
            route.extend_from_slice(&self.path);
        }
        Some(routes)
    }

    /// Puts the delay of each server that forwards on the path.
    fn wait_in_servers(&mut self) {
        let Some(first) = self.forwarding else { return };
        let (mut at, hosts) = (1, self.topology.n_hosts() as u32);
        while at < self.path.len() {
            let server = self.topology.link(self.path[at]).from.0;
            if server < hosts {
                self.path.insert(at, LinkId(first.0 + server));
                at += 1;
            }
            at += 1;
        }
    }

    /// Spreads a direction of a flow whose socket has just been added.
    fn spread(&self, core: &mut Core, (from, to): (NodeId, NodeId), hash: u32) {
        if let Some(gap) = self.spread {
            let ways = self.router.ways(from, to, hash, WAYS_MAX);
            core.spread(&ways, gap, SplitMix64::new(self.seed, SPREAD_STREAMS + u64::from(hash)));
        }
    }

    /// Opens a requested connection, with nothing to send yet.
    pub fn open(&mut self, core: &mut Core, mut opened: Opened, config: &Arc<tcp::Config>) {
        let Pair { src, dst, entry } = opened.pair;
        let flow = self.list.len() as u32;
        assert_eq!(flow, opened.flow, "flows are opened in the order in which they are asked for");
        let fails = |route: &Vec<LinkId>| route.iter().any(|link| !core.fabric.links.is_up(*link));
        if opened.routes.iter().any(fails) {
            // since the request; without another path it keeps that one, as open flows do
            opened.routes = self.routes(opened.pair, opened.name).unwrap_or(opened.routes);
        }
        let limited = config.limit_output;
        let (arm, stacks) = if let Some(tuning) = &mut self.tuning {
            let sends = tuning.stack(config, src.0, dst.0, entry);
            let receives = tuning.incoming(core, config, (flow, dst.0, src.0, entry));
            (Some(tuning.arm(src.0, dst.0)), [sends, receives])
        } else {
            let accepted = (flow, dst.0, entry);
            let receives = self.ictcp.as_mut().map(|ictcp| ictcp.accept(core, config, accepted));
            (None, [config.clone(), receives.unwrap_or_else(|| config.clone())])
        };
        for gate in core.fabric.gates.iter_mut().flatten() {
            gate.stand_on(&self.topology, &mut opened);
        }
        let mut random = opened.name.random(self.seed);
        let (iss, seed) = (random.bits(), random.bits());
        let active = Endpoint::connect(&stacks[0], iss, seed);
        core.add_socket(active, &opened.routes[0], receiver(flow), limited);
        self.spread(core, (src, dst), opened.name.path_hash(true));
        let (iss, seed) = (random.bits(), random.bits());
        let passive = Endpoint::listen(&stacks[1], iss, seed);
        core.add_socket(passive, &opened.routes[1], sender(flow), limited);
        self.spread(core, (dst, src), opened.name.path_hash(false));
        let (src, dst) = (src.0, dst.0);
        self.list.push(Flow { entry, src, dst, arm, start: core.now(), end: Time::NEVER, bytes: 0 });
        core.pump(sender(flow));
    }

    /// Opens a requested flow of datagrams. Its sockets' TCP stays idle; no enforcer stands on its way, which is for TCP.
    pub fn open_udp(&mut self, core: &mut Core, opened: &Opened, config: &Arc<tcp::Config>) {
        let Pair { src, dst, entry } = opened.pair;
        let flow = self.list.len() as u32;
        assert_eq!(flow, opened.flow, "flows are opened in the order in which they are asked for");
        let ends = [(sender(flow), receiver(flow), (src, dst)), (receiver(flow), sender(flow), (dst, src))];
        for ((socket, peer, ends), route) in ends.into_iter().zip(&opened.routes) {
            core.add_socket(Endpoint::listen(config, 0, 0), route, peer, false);
            self.spread(core, ends, opened.name.path_hash(socket == sender(flow)));
        }
        core.datagrams.insert(sender(flow), 0);
        let arm = self.tuning.as_ref().map(|tuning| tuning.arm(src.0, dst.0));
        self.list.push(Flow { entry, src: src.0, dst: dst.0, arm, start: core.now(), end: Time::NEVER, bytes: 0 });
    }

    /// A datagram of `bytes` of payload leaves the sender of `flow`.
    pub fn send_datagram(&mut self, core: &mut Core, flow: u32, bytes: u64) {
        self.list[flow as usize].bytes += bytes;
        core.send_datagram(sender(flow), bytes);
    }

    /// The application of `flow` has `bytes` more to send, which block until taken.
    pub fn write(&mut self, core: &mut Core, flow: u32, bytes: u64) {
        self.list[flow as usize].bytes += bytes;
        core.write(sender(flow), bytes);
    }

    /// Writes what fits into the send buffer at once; the rest is lost to the application. False if there is no room for more:
    /// [`Hear::on_room`](crate::core::Hear::on_room) is called when there is.
    pub fn write_what_fits(&mut self, core: &mut Core, flow: u32, bytes: u64) -> bool {
        let (taken, room) = core.write_what_fits(sender(flow), bytes);
        self.list[flow as usize].bytes += taken;
        room
    }

    /// The applications of `entry` stop writing; one that was never to stop has asked for what it has written by now.
    pub fn stop_writing(&mut self, core: &mut Core, entry: u32) {
        for (i, flow) in self.list.iter_mut().enumerate().filter(|(_, flow)| flow.entry == entry) {
            flow.bytes = core.stop_writing(sender(i as u32), flow.bytes);
        }
    }

    /// The last byte of `flow` has arrived: the receiver closes too.
    pub fn finish(&mut self, core: &mut Core, flow: u32) {
        let ended = &self.list[flow as usize];
        if let Some(tuning) = self.tuning.as_mut().filter(|_| !self.kept.contains_key(&flow)) {
            tuning.complete(ended.completed(ended.end));
        }
        let dst = ended.dst;
        core.close(receiver(flow));
        if let Some(tuning) = &mut self.tuning {
            tuning.ended(core, dst);
        }
    }

    /// A message had arrived whole at `end`.
    pub fn on_message(&mut self, core: &Core, message: Message, end: Time) {
        let retransmits = u64::from(core.sockets[sender(message.flow) as usize].tcp.stats().retransmits);
        let before = self.kept.insert(message.flow, retransmits).unwrap_or(0);
        let flow = &self.list[message.flow as usize];
        if let Some(tuning) = &mut self.tuning {
            let (src, entry, arm) = (flow.src, flow.entry, flow.arm.unwrap_or(Arm::Control));
            tuning.complete(Completed { src, entry, bytes: message.bytes, took: end - message.begun, arm });
        }
        if let Some(messages) = &mut self.messages {
            messages.push(Arrived { message, end, retransmits: retransmits - before });
        }
    }

    /// Gives every open flow whose path has a link that is down a new path, if there is one. `entries` are their names.
    pub fn reroute(&mut self, core: &mut Core, entries: &[Arc<str>]) {
        let mut opened = vec![0; entries.len()];
        for flow in 0..self.list.len() as u32 {
            let Flow { entry, src, dst, .. } = self.list[flow as usize];
            let name = FlowName::new(&entries[entry as usize], opened[entry as usize]);
            opened[entry as usize] += 1;
            for (socket, from, to) in [(sender(flow), src, dst), (receiver(flow), dst, src)] {
                let forward = socket == sender(flow);
                if core.sockets[socket as usize].tcp.is_closed() {
                    continue;
                }
                if self.spread.is_some() {
                    // after a repair there are more routes; without any a socket keeps those that it has
                    let ways = self.router.ways(NodeId(from), NodeId(to), name.path_hash(forward), WAYS_MAX);
                    if !ways.is_empty() {
                        core.spread_again(socket, &ways);
                    }
                    continue;
                }
                if core.route(socket).all(|link| core.fabric.links.is_up(link)) {
                    continue;
                }
                self.path.clear();
                if self.router.path(NodeId(from), NodeId(to), name.path_hash(forward), &mut self.path).is_ok() {
                    self.wait_in_servers();
                    if !core.datagrams.contains_key(&sender(flow)) {
                        for gate in core.fabric.gates.iter().flatten() {
                            gate.stand_on_again(&self.topology, flow, (src, forward), &mut self.path);
                        }
                    }
                    core.reroute(socket, &self.path);
                }
            }
        }
    }
}
