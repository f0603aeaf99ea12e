//! A row for each flow: the kernel's counters of its sender, and the network's of its packets.

use super::algorithms::Algorithms;
use crate::engine::Counted;
use crate::flowcount::Arrived;
use crate::linux::KERNEL_PREFIX;
use crate::sockets::FlowEnd;
use kernel::NAME_PREFIX;
use net::Topology;
use plan::{Ideal, Transfer};
use results::FlowRow;
use scenario::Scenario;
use std::sync::Arc;

/// The table `flows`.
pub fn flows(
    scenario: &Scenario,
    topology: &Topology,
    algorithms: &Algorithms,
    counted: &Counted,
    ends: &[FlowEnd],
) -> Vec<FlowRow> {
    let hosts: Vec<Arc<str>> = topology.nodes().iter().map(|node| node.name.as_str().into()).collect();
    let labels: Vec<Arc<str>> = scenario.traffic.iter().map(|entry| entry.label.as_str().into()).collect();
    let names: Vec<Arc<str>> = (0..labels.len() as u32).map(|entry| algorithms.label(entry).into()).collect();
    let mean = |arrived: &Arrived| {
        let wanted = scenario.measure.packet_delay && arrived.packets > 0;
        wanted.then(|| arrived.delay.as_ns() / arrived.packets)
    };
    let algorithm = |flow: &FlowEnd| match &flow.algorithm {
        Some(name) => match name.strip_prefix(NAME_PREFIX) {
            Some(ours) => ours.into(),
            None => format!("{KERNEL_PREFIX}{name}").into(),
        },
        None => names[flow.entry as usize].clone(),
    };
    let ideal = Ideal::of(scenario);
    let mut ideal = ideal.on(topology, ends.iter().map(|flow| flow.entry));
    let mut row = |(i, flow): (usize, &FlowEnd)| {
        let pair = (topology.host(flow.src as usize), topology.host(flow.dst as usize));
        let transfer = |bytes| Transfer { entry: flow.entry, flow: i as u32, hosts: pair, bytes };
        let (info, base) = (flow.info, flow.base);
        let count = counted.flows.of(i);
        FlowRow {
            flow: i as u64,
            src: hosts[flow.src as usize].clone(),
            dst: hosts[flow.dst as usize].clone(),
            algorithm: algorithm(flow),
            group: labels[flow.entry as usize].clone(),
            arm: flow.arm,
            start_ns: flow.start.as_ns(),
            end_ns: flow.end.map(units::Time::as_ns),
            ideal_fct_ns: flow.bytes.filter(|_| flow.whole).and_then(|bytes| ideal.fct_ns(transfer(bytes))),
            bytes: flow.bytes,
            delivered_bytes: flow.delivered,
            data_packets_sent: u64::from(info.data_segs_out.wrapping_sub(base.data_segs_out)),
            retransmits: u64::from(info.total_retrans.wrapping_sub(base.total_retrans)),
            rtos: u64::from(info.total_rto.wrapping_sub(base.total_rto)),
            // the kernel counts them for a whole host only
            tlp_probes: None,
            ce_marks: count.forward.signals,
            ece_acks: count.backward.signals,
            packets_received: count.forward.packets,
            ip_bytes_received: count.forward.ip_bytes,
            mean_packet_delay_ns: mean(&count.forward),
            acks_received: count.backward.packets,
            ack_ip_bytes_received: count.backward.ip_bytes,
            mean_ack_delay_ns: mean(&count.backward),
            min_rtt_us: (info.rtt_us > 0 && info.min_rtt_us != u32::MAX).then_some(u64::from(info.min_rtt_us)),
            srtt_us: (info.rtt_us > 0).then_some(u64::from(info.rtt_us)),
            final_cwnd: info.snd_cwnd,
        }
    };
    ends.iter().enumerate().map(&mut row).collect()
}
