//! From a scenario to the event set and the stacks.

use crate::SimError;
use crate::calendar::Calendar;
use crate::parts::Layout;
use crate::requests::REACTION_MAX;
use congestion::Algorithm;
use net::{Limit, LinkId, LinkSpec, LinkTable, Topology};
use scenario::{self as file, Scenario};
use std::sync::Arc;
use units::{Bytes, Time};

/// Of a full IP packet.
const FULL_BYTES: u64 = 1500;

/// The least time between a packet's acceptance by a link and its arrival: of a bare acknowledgment on the quickest link.
fn lookahead(topology: &Topology, framing_bytes: u32) -> Time {
    topology.links().iter().map(|link| least_time(link, framing_bytes)).min().unwrap_or(Time::from_us(1))
}

/// The least time between a packet's acceptance by `link` and its arrival.
pub fn least_time(link: &LinkSpec, framing_bytes: u32) -> Time {
    const BARE_ACK_BYTES: u64 = 40;
    link.delay + link.rate.serialization(BARE_ACK_BYTES + u64::from(framing_bytes))
}

/// Reaction time of applications: the shortest time of a packet over a link, but not longer than that of an application on a
/// fast host.
pub fn reaction(topology: &Topology, framing_bytes: u32) -> Time {
    lookahead(topology, framing_bytes).min(REACTION_MAX)
}

/// Packets per second: full ones, one way, on every link.
pub fn density(topology: &Topology) -> f64 {
    topology.links().iter().map(|link| link.rate.as_bps() as f64 / 8.0 / FULL_BYTES as f64).sum()
}

/// An event set that suits the network, or each part of it. `timed`: timers send into links between switches, an enforcer's or those of links
/// that hold their packets.
pub fn calendar(topology: &Topology, framing_bytes: u32, timed: bool, layout: Option<&Layout>) -> Calendar {
    let framing = u64::from(framing_bytes);
    let links = topology.links();
    let most = |link: &LinkSpec| match link.queue.limit {
        Limit::Packets(n) => link.delay + link.rate.serialization(u64::from(n.min(1000)) * (FULL_BYTES + framing)),
        Limit::Bytes(n) => link.delay + link.rate.serialization(n.get().min(1_500_000)),
        // what back-pressure lets a flow have in its host's own queue
        Limit::Unlimited => link.delay + Time::from_ms(1),
    };
    let (parts, window) = layout.map_or((1, Time::NEVER), |layout| (layout.parts, layout.window));
    // in a sorted bucket what is at switches comes before what any timer or any host sends there
    let lookahead = if timed || topology.servers_forward() { Time::ZERO } else { lookahead(topology, framing_bytes) };
    let horizon = links.iter().map(most).max().unwrap_or(Time::from_us(1));
    Calendar::new(lookahead.min(window), horizon, density(topology) / parts as f64)
}

/// Adds the delay of each server that forwards: the first of them, if there are.
pub fn forwarding(scenario: &Scenario, topology: &Topology, links: &mut LinkTable) -> Option<LinkId> {
    let delay = plan::forwarding_delay(scenario);
    let servers = if delay > Time::ZERO { topology.n_hosts() } else { 0 };
    (0..servers).map(|_| links.add_delay(delay)).collect::<Vec<_>>().first().copied()
}

/// Where packets are spread over several routes: the pause after which a route is chosen anew.
pub fn spread(scenario: &Scenario) -> Option<Time> {
    match scenario.network.balancing {
        file::Balancing::Flow => None,
        file::Balancing::Packet => Some(Time::ZERO),
        file::Balancing::Flowlet { gap } => Some(gap),
    }
}

/// The stack of each traffic entry, shared by those with the same algorithm.
///
/// # Errors
/// [`SimError::Algorithm`] for a file that does not compile or keep the contract.
pub fn stacks(scenario: &Scenario) -> Result<Vec<Arc<tcp::Config>>, SimError> {
    let mut made: Vec<(&file::Algorithm, Arc<tcp::Config>)> = Vec::new();
    let mut stacks = Vec::new();
    for entry in &scenario.traffic {
        let cc = entry.cc.as_ref().unwrap_or(&scenario.tcp.cc);
        let known = made.iter().find(|(made, _)| *made == cc).map(|(_, config)| config.clone());
        let config = match known {
            Some(config) => config,
            None => Arc::new(stack(&scenario.tcp, plan::algorithm(cc).map_err(SimError::Algorithm)?)),
        };
        made.push((cc, config.clone()));
        stacks.push(config);
    }
    Ok(stacks)
}

fn stack(tcp: &file::Tcp, algorithm: &'static Algorithm) -> tcp::Config {
    let bytes = |b: Bytes| u32::try_from(b.get()).unwrap_or(u32::MAX >> 1);
    tcp::Config {
        algorithm,
        mtu: tcp.mtu(),
        initial_cwnd: tcp.initial_cwnd,
        initial_ssthresh: match tcp.initial_ssthresh {
            Some(b) => u32::try_from(b.get() / u64::from(tcp.mss)).unwrap_or(u32::MAX >> 1).max(2),
            None => congestion::sock::TCP_INFINITE_SSTHRESH,
        },
        cwnd_clamp: u32::MAX,
        max_pacing_rate: u64::MAX,
        rto_min: tcp.rto_min,
        rto_max: tcp.rto_max,
        syn_rto: tcp.syn_rto,
        rto_initial: tcp.rto_initial,
        syn_retries: tcp.syn_retries,
        timer_tick: tcp.timer_tick.unwrap_or(Time::ZERO),
        sack: tcp.sack,
        timestamps: tcp.timestamps,
        window_scaling: tcp.window_scaling,
        delayed_ack: tcp::DelayedAck {
            segments: tcp.delayed_ack.segments,
            timeout: tcp.delayed_ack.timeout,
            timeout_max: tcp.delayed_ack.timeout_max,
            quickack: tcp.delayed_ack.quickack,
        },
        rack: tcp.rack,
        tlp: tcp.tlp,
        prr: tcp.prr,
        frto: tcp.frto,
        ecn: match tcp.ecn {
            file::Ecn::Auto => tcp::EcnMode::Auto,
            file::Ecn::Off => tcp::EcnMode::Off,
            file::Ecn::On => tcp::EcnMode::On,
            file::Ecn::Accurate => tcp::EcnMode::Accurate,
        },
        ect1: tcp.ect1,
        slow_start_after_idle: tcp.slow_start_after_idle,
        send_buffer: bytes(tcp.send_buffer),
        receive_buffer: bytes(tcp.receive_buffer),
        window_clamp: u32::MAX,
        pacing: match tcp.pacing {
            file::Pacing::Auto => tcp::PacingMode::Auto,
            file::Pacing::Off => tcp::PacingMode::Off,
            file::Pacing::On => tcp::PacingMode::On,
        },
        tso_segments: tcp.tso_segments,
        limit_output: tcp.limit_output == file::LimitOutput::Auto,
    }
}
