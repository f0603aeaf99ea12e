//! The state of the enforced flows, some at a time, so that whoever asks does not stop the packets.

use crate::enforcer::Enforcer;
use crate::packet::{End, Packet};
use units::Time;

/// The state of an enforced flow at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowState {
    /// The enforced end.
    pub server: End,
    /// The other end.
    pub client: End,
    /// Its VLAN, 0 for none.
    pub vlan: u16,
    /// The algorithm.
    pub algorithm: &'static str,
    /// The state of its congestion control, as in Linux's `enum tcp_ca_state`.
    pub ca_state: CaState,
    /// Time since its handshake.
    pub age: Time,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; `None`: not set yet.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT between the enforcer and the client, microseconds; 0: not measured yet.
    pub srtt_us: u32,
    /// The shortest RTT there, microseconds; `None`: not measured yet.
    pub min_rtt_us: Option<u32>,
    /// Segments in flight to the client.
    pub in_flight: u32,
    /// Packets buffered.
    pub buffered_packets: u32,
    /// Their memory, bytes.
    pub buffered_bytes: usize,
    /// Bytes that the client acknowledged.
    pub bytes_acked: u64,
    /// Segments sent to the client.
    pub sent: u32,
    /// Of these, retransmitted.
    pub retransmitted: u32,
    /// Retransmissions of the server that were absorbed.
    pub absorbed: u32,
}

/// The state of a flow's congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaState {
    /// Nothing is amiss.
    Open,
    /// Duplicate ACKs or SACKs have come.
    Disorder,
    /// The window was reduced for an ECN mark.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

impl CaState {
    /// As in `ss -i` and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            CaState::Open => "open",
            CaState::Disorder => "disorder",
            CaState::Cwr => "cwr",
            CaState::Recovery => "recovery",
            CaState::Loss => "loss",
        }
    }

    /// Of Linux's number.
    fn of(number: u8) -> CaState {
        match number {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }
}

impl<P: Packet> Enforcer<P> {
    /// Adds the state of the flows in the next `most` places of the table to `flows`, and returns the place from which to continue;
    /// `None`: that was all. The first place is 0. A flow that is open during the whole listing is in it once.
    pub fn list(&self, now: Time, from: usize, most: usize, flows: &mut Vec<FlowState>) -> Option<usize> {
        let end = from.saturating_add(most).min(self.flows.len());
        let places = self.flows.get(from..end).unwrap_or_default();
        flows.extend(places.iter().flatten().map(|flow| {
            let (sock, stats) = (flow.relay.sock(), flow.relay.stats());
            let buffer = flow.buffer.as_ref();
            let age_ms = ((now.as_us() / 1000) as u32).wrapping_sub(flow.began_ms);
            FlowState {
                server: flow.key.server,
                client: flow.key.client,
                vlan: flow.key.vlan,
                algorithm: flow.relay.config().algorithm.name(),
                ca_state: CaState::of(sock.icsk_ca_state),
                age: Time::from_ms(age_ms.into()),
                cwnd: sock.snd_cwnd,
                // Linux's TCP_INFINITE_SSTHRESH
                ssthresh: (sock.snd_ssthresh < 0x7fff_ffff).then_some(sock.snd_ssthresh),
                srtt_us: sock.srtt_us >> 3,
                min_rtt_us: (sock.srtt_us > 0).then(|| sock.min_rtt_us()),
                in_flight: sock.packets_in_flight(),
                buffered_packets: buffer.map_or(0, |buffer| buffer.packets()),
                buffered_bytes: buffer.map_or(0, |buffer| buffer.bytes),
                bytes_acked: sock.bytes_acked,
                sent: stats.data_segments_sent,
                retransmitted: stats.retransmits,
                absorbed: flow.absorbed.into(),
            }
        }));
        (end < self.flows.len()).then_some(end)
    }
}
