//! Addresses and ports of a scenario's hosts: the same on every backend, so that a policy's prefixes and ports match the same.

#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

/// The first host is 10.64.0.1; the hosts' network is 10.0.0.0/8.
pub const FIRST_ADDRESS: u32 = 0x0a40_0001;

/// Receivers of traffic entry `i` listen at this port plus `i`.
pub const RECEIVER_PORT: u16 = 5001;

/// Flow `f` is sent from this port plus `f` modulo [`SENDER_PORTS`].
pub const SENDER_PORT: u16 = 20_000;
/// Ports that flows are sent from.
pub const SENDER_PORTS: u32 = 40_000;

/// The port that flow number `flow` is sent from.
pub fn sender_port(flow: u32) -> u16 {
    SENDER_PORT + (flow % SENDER_PORTS) as u16
}

/// The number of the host with this address, if there are that many hosts.
pub fn host_of(address: Ipv4Addr, hosts: u32) -> Option<u32> {
    u32::from(address).checked_sub(FIRST_ADDRESS).filter(|host| *host < hosts)
}

/// The address of host number `host`.
pub fn address(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_ADDRESS + host)
}
