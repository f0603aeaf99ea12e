//! A moment of a run, in few bytes: what is zero is left out.

use crate::link_ids;
use results::CaState;
use serde::Serialize;
use sim::Simulation;
use units::Time;

/// Flows in a frame: the first that have not ended.
pub const FLOWS: usize = 12;
/// Numbers that a frame has for a link: see [`Frame::links`].
pub const LINK_FIELDS: usize = 5;

/// A moment of a run. Counts are since the frame before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Frame {
    /// Simulated time, ns.
    pub t: u64,
    /// Packet-hops since the start.
    pub hops: u64,
    /// Packets dropped or lost since the start.
    pub drops: u64,
    /// Packets marked since the start.
    pub marks: u64,
    /// Flows opened since the start.
    pub opened: usize,
    /// Five numbers for each link that is not idle: its number, packets in its queue, their bytes, how busy it was since the
    /// frame before (in thousandths), and how many packets it dropped or lost.
    pub links: Vec<u64>,
    /// Numbers of the links that are down.
    pub down: Vec<u32>,
    /// The first [`FLOWS`] flows that have not ended.
    pub flows: Vec<Flow>,
    /// The ends of those among them that no frame had before.
    pub new: Vec<Ends>,
}

/// How a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Its number.
    pub flow: usize,
    /// Window, segments.
    pub cwnd: u32,
    /// Segments in the network.
    pub in_flight: u32,
    /// Slow-start threshold, segments; none before the first loss.
    pub ssthresh: Option<u32>,
    /// Smoothed round-trip time, us.
    pub srtt_us: Option<u32>,
    /// Open, Disorder, CWR, Recovery, Loss: 0 to 4, as Linux numbers them.
    pub state: u8,
}

/// A flow's ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// Its number.
    pub flow: usize,
    /// The host that sends.
    pub src: String,
    /// The host that receives.
    pub dst: String,
    /// The sender's algorithm.
    pub algorithm: String,
    /// Its traffic entry.
    pub entry: String,
}

/// What frames so far have shown.
pub struct Seen {
    at: Time,
    /// By link: bytes sent, and drops.
    links: Vec<(u64, u64)>,
    /// Flows that are open, and how many had been opened.
    open: Vec<usize>,
    opened: usize,
    /// Numbers of flows whose ends have been shown.
    shown: Vec<usize>,
}

impl Seen {
    pub fn of(simulation: &Simulation) -> Seen {
        let links = vec![(0, 0); simulation.topology().links().len()];
        Seen { at: simulation.now(), links, open: Vec::new(), opened: 0, shown: Vec::new() }
    }

    /// The next frame.
    pub fn frame(&mut self, simulation: &Simulation) -> Frame {
        let totals = simulation.totals();
        let now = simulation.now();
        let links = self.links(simulation, now);
        self.at = now;
        let flows = self.flows(simulation);
        let new = flows.iter().map(|flow| flow.flow).filter(|flow| !self.shown.contains(flow)).collect::<Vec<_>>();
        self.shown.retain(|shown| flows.iter().any(|flow| flow.flow == *shown));
        self.shown.extend(&new);
        Frame {
            t: now.as_ns(),
            hops: totals.packet_hops,
            drops: totals.drops,
            marks: totals.marks,
            opened: simulation.flows(),
            links,
            down: link_ids(self.links.len()).filter(|id| !simulation.is_up(*id)).map(|id| id.0).collect(),
            flows,
            new: new.into_iter().map(|flow| ends(simulation, flow)).collect(),
        }
    }

    fn links(&mut self, simulation: &Simulation, now: Time) -> Vec<u64> {
        let topology = simulation.topology();
        let span = (now - self.at).as_secs_f64();
        let mut numbers = Vec::new();
        for (id, (sent_before, drops_before)) in link_ids(self.links.len()).zip(&mut self.links) {
            let counters = simulation.counters(id);
            let queue = simulation.queue_len(id);
            let sent = counters.accepted_bytes - queue.bytes;
            let drops = counters.dropped + counters.dropped_by_failure();
            let busy = busy(sent.saturating_sub(*sent_before), topology.link(id).rate.as_bps(), span);
            let dropped = drops - *drops_before;
            (*sent_before, *drops_before) = (sent, drops);
            if queue.packets > 0 || busy > 0 || dropped > 0 {
                numbers.extend([u64::from(id.0), u64::from(queue.packets), queue.bytes, busy, dropped]);
            }
        }
        numbers
    }

    fn flows(&mut self, simulation: &Simulation) -> Vec<Flow> {
        self.open.extend(self.opened..simulation.flows());
        self.opened = simulation.flows();
        self.open.retain(|flow| !simulation.flow(*flow).ended);
        let windows = self.open.iter().filter_map(|flow| simulation.window(*flow)).take(FLOWS);
        let flow = |window: results::CwndSample| Flow {
            flow: window.flow as usize,
            cwnd: window.cwnd,
            in_flight: window.in_flight,
            ssthresh: window.ssthresh,
            srtt_us: window.srtt_us,
            state: number(window.state),
        };
        windows.map(flow).collect()
    }
}

/// Thousandths of `span` seconds that sending `bytes` took.
fn busy(bytes: u64, rate_bps: u64, span: f64) -> u64 {
    if span == 0.0 { 0 } else { (bytes as f64 * 8000.0 / rate_bps as f64 / span).round().min(1000.0) as u64 }
}

fn number(state: CaState) -> u8 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}

fn ends(simulation: &Simulation, flow: usize) -> Ends {
    let ends = simulation.flow(flow);
    let topology = simulation.topology();
    let host = |number: u32| topology.node(topology.host(number as usize)).name.clone();
    Ends {
        flow,
        src: host(ends.src),
        dst: host(ends.dst),
        algorithm: ends.algorithm.to_string(),
        entry: ends.entry.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_busy_in_thousandths_of_the_span() {
        // 1250 bytes are 1 ms at 10 Mbit/s: half of 2 ms
        assert_eq!(busy(1250, 10_000_000, 0.002), 500);
        assert_eq!((busy(9999, 10_000_000, 0.001), busy(1, 1, 0.0)), (1000, 0), "never more than all of it");
    }
}
