//! Addresses and ports of the emulated hosts, and how a packet's show which flow it belongs to.

pub use plan::{RECEIVER_PORT, SENDER_PORT, SENDER_PORTS, address, host_of, sender_port};

use plan::FlowName;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The hosts' network is 10.0.0.0/8.
pub const PREFIX_LEN: u8 = 8;
/// Largest number of traffic entries.
pub const ENTRIES_MAX: usize = 10_000;

/// The flow that currently uses a port number. Written by the traffic, read by the ports.
#[derive(Debug)]
pub struct FlowPorts {
    entries: u16,
    /// By sender's port: number of the last flow that used it, plus one.
    flows: Vec<AtomicU32>,
    /// By sender's port: ECMP's hashes of that flow, forward in the upper half and backward in the lower.
    hashes: Vec<AtomicU64>,
}

impl FlowPorts {
    /// For traffic with this many entries; without any, no packet belongs to a flow.
    pub fn new(entries: usize) -> FlowPorts {
        let n = if entries == 0 { 0 } else { SENDER_PORTS };
        let flows = (0..n).map(|_| AtomicU32::new(0)).collect();
        FlowPorts { entries: entries as u16, flows, hashes: (0..n).map(|_| AtomicU64::new(0)).collect() }
    }

    /// `flow` is about to be opened.
    pub fn open(&self, flow: u32, name: FlowName) {
        let port = (flow % SENDER_PORTS) as usize;
        let [forward, backward] = [true, false].map(|forward| u64::from(name.path_hash(forward)));
        self.hashes[port].store(forward << 32 | backward, Ordering::Relaxed);
        self.flows[port].store(flow + 1, Ordering::Release);
    }

    /// ECMP's hash of a packet of `flow`, which is open: as in the simulator.
    pub fn path_hash(&self, flow: u32, forward: bool) -> u32 {
        let both = self.hashes[(flow % SENDER_PORTS) as usize].load(Ordering::Relaxed);
        (both >> if forward { 32 } else { 0 }) as u32
    }

    /// The flow of a packet between these ports, and whether it goes from the flow's sender to its receiver.
    pub fn of(&self, source: u16, destination: u16) -> Option<(u32, bool)> {
        let receiver = |port: u16| port.checked_sub(RECEIVER_PORT).is_some_and(|entry| entry < self.entries);
        let (sender, forward) = match (receiver(destination), receiver(source)) {
            (true, false) => (source, true),
            (false, true) => (destination, false),
            _ => return None,
        };
        self.flow_at(sender).map(|flow| (flow, forward))
    }

    /// The flow that is sent from `port`.
    pub fn flow_at(&self, port: u16) -> Option<u32> {
        let slot = self.flows.get(usize::from(port.checked_sub(SENDER_PORT)?))?;
        slot.load(Ordering::Acquire).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn hosts_are_found_by_their_addresses() {
        for host in [0, 1, 255, 256, 499] {
            assert_eq!(host_of(address(host), 500), Some(host));
        }
        assert_eq!(host_of(address(500), 500), None);
        assert_eq!(host_of(Ipv4Addr::new(10, 64, 0, 0), 500), None);
        assert_eq!(address(0), Ipv4Addr::new(10, 64, 0, 1));
    }

    #[test]
    fn a_packets_ports_tell_its_flow_and_direction() {
        let ports = FlowPorts::new(2);
        let (seventh, later) = (FlowName::new("bulk", 7), FlowName::new("bulk", 40_007));
        ports.open(7, seventh);
        assert_eq!(ports.of(20_007, 5001), Some((7, true)));
        assert_eq!(ports.of(5002, 20_007), Some((7, false)));
        assert_eq!(ports.of(20_007, 5003), None, "there are two entries");
        assert_eq!(ports.of(20_008, 5001), None, "no such flow was opened");
        assert_eq!(ports.of(22, 5001), None);
        assert_eq!([true, false].map(|f| ports.path_hash(7, f)), [true, false].map(|f| seventh.path_hash(f)));
        ports.open(40_007, later);
        assert_eq!(ports.of(20_007, 5001), Some((40_007, true)), "port numbers wrap around");
        assert_eq!(FlowPorts::new(0).of(20_007, 5001), None);
    }
}
