//! What another enforcer needs to take over: flows, and connections in their handshake. It may run on another machine, by another
//! clock, and be another version: so times are durations, and layouts of memory are not in it.

use crate::buffer::Buffer;
use crate::echo::Echo;
use crate::enforcer::{Enforcer, tick};
use crate::flow::{Flow, bit};
use crate::index::Key;
use crate::packet::{Direction, End, Packet};
use crate::seq::after;
use bytes::Bytes;
use std::net::Ipv6Addr;
use std::sync::Arc;
use tcp::{Config, Relay};
use units::Time;

/// An enforced flow.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Checkpoint {
    /// The enforced end's address, as IPv6 writes it: 16 bytes.
    #[prost(bytes = "bytes", tag = "1")]
    pub server_address: Bytes,
    /// Its port.
    #[prost(uint32, tag = "2")]
    pub server_port: u32,
    /// The other end's address: 16 bytes.
    #[prost(bytes = "bytes", tag = "3")]
    pub client_address: Bytes,
    /// Its port.
    #[prost(uint32, tag = "4")]
    pub client_port: u32,
    /// Its VLAN, 0 for none.
    #[prost(uint32, tag = "5")]
    pub vlan: u32,
    /// The code point of its SYN.
    #[prost(uint32, tag = "6")]
    pub dscp: u32,
    /// Its sender.
    #[prost(message, optional, tag = "7")]
    pub relay: Option<tcp::Checkpoint>,
    /// What it buffers.
    #[prost(message, optional, tag = "8")]
    pub buffer: Option<Buffered>,
    /// The number after the last that the server may send by its advertised window.
    #[prost(uint32, tag = "9")]
    pub offered: u32,
    /// The number after the client's FIN, once seen.
    #[prost(uint32, tag = "10")]
    pub client_end: u32,
    /// RTT to the server, ticks of 16 µs.
    #[prost(uint32, tag = "11")]
    pub server_rtt_ticks: u32,
    /// The server's window scale.
    #[prost(uint32, tag = "12")]
    pub server_scale: u32,
    /// The client's.
    #[prost(uint32, tag = "13")]
    pub client_scale: u32,
    /// Both send timestamps.
    #[prost(bool, tag = "14")]
    pub timestamps: bool,
    /// The server has sent its FIN.
    #[prost(bool, tag = "15")]
    pub server_fin: bool,
    /// The client has sent its FIN.
    #[prost(bool, tag = "16")]
    pub client_fin: bool,
    /// The client's last packet was a RST, and may be the end.
    #[prost(bool, tag = "17")]
    pub aborted: bool,
    /// The server gets every ACK.
    #[prost(bool, tag = "18")]
    pub all_answers: bool,
    /// The client has acknowledged data that did not pass the enforcer.
    #[prost(bool, tag = "19")]
    pub astray: bool,
    /// ACKs hidden.
    #[prost(uint32, tag = "20")]
    pub hidden: u32,
    /// The server's retransmissions absorbed.
    #[prost(uint32, tag = "21")]
    pub absorbed: u32,
    /// Time since the handshake, ms.
    #[prost(uint32, tag = "22")]
    pub age_ms: u32,
    /// Time since the last packet, in ticks of four seconds.
    #[prost(uint32, tag = "23")]
    pub idle_ticks: u32,
    /// It has ended: nothing else of it but its ends is known.
    #[prost(bool, tag = "24")]
    pub over: bool,
    /// It was another enforcer's, and both ends may have advanced since this one heard of it.
    #[prost(bool, tag = "25")]
    pub catches_up: bool,
    /// The same, and something that was sent from here has arrived.
    #[prost(bool, tag = "26")]
    pub promoted: bool,
    /// The server knows no ECN: its data leaves as ECN-capable.
    #[prost(bool, tag = "27")]
    pub sets_ect: bool,
    /// Marks on its data are echoed in the client's place: nothing else of it but its ends and its idle time is known.
    #[prost(bool, tag = "28")]
    pub echoes: bool,
}

/// A server's data that its client has not acknowledged.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Buffered {
    /// The first piece's sequence number; without pieces, that after the last that the server has sent.
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// The pieces, one behind the other.
    #[prost(message, repeated, tag = "2")]
    pub pieces: Vec<Piece>,
    /// The server has retransmitted something: it lacks an ACK.
    #[prost(bool, tag = "3")]
    pub owes_ack: bool,
    /// Sequence numbers that came twice and are to be reported: the first of each block, and the number after its last.
    #[prost(uint32, repeated, tag = "4")]
    pub twice: Vec<u32>,
    /// How long ago the newest acknowledged data arrived from the server, µs.
    #[prost(uint32, tag = "5")]
    pub acked_age_us: u32,
    /// The highest acknowledgment number that was forwarded to the server.
    #[prost(uint32, tag = "6")]
    pub reported: u32,
    /// The last that was sent to the client.
    #[prost(uint32, tag = "7")]
    pub acked_to_client: u32,
    /// The server's newest timestamp echo.
    #[prost(uint32, tag = "8")]
    pub tsecr: u32,
    /// Its newest window as written.
    #[prost(uint32, tag = "9")]
    pub window: u32,
    /// Link addresses of its packets: 12 bytes.
    #[prost(bytes = "bytes", tag = "10")]
    pub link: Bytes,
    /// The client would refuse timestamps below this as old.
    #[prost(uint32, optional, tag = "11")]
    pub tsval_floor: Option<u32>,
    /// The server's newest timestamp.
    #[prost(uint32, tag = "12")]
    pub tsval_newest: u32,
    /// The right edge that the server was offered some time ago.
    #[prost(uint32, tag = "13")]
    pub offered_then: u32,
    /// How long ago, µs.
    #[prost(uint32, tag = "14")]
    pub offered_age_us: u32,
}

/// A piece of the stream.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Piece {
    /// How many sequence numbers it has.
    #[prost(uint32, tag = "1")]
    pub len: u32,
    /// Its timestamp.
    #[prost(uint32, tag = "2")]
    pub tsval: u32,
    /// How long ago it arrived, µs.
    #[prost(uint32, tag = "3")]
    pub age_us: u32,
    /// The packet, as its host writes it; `None`: there is no copy.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub packet: Option<Bytes>,
}

/// The connections in their handshake.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Handshakes {
    /// The seed of the hashes.
    #[prost(uint64, tag = "1")]
    pub seed: u64,
    /// Places of the table.
    #[prost(uint32, tag = "2")]
    pub places: u32,
    /// Those that are used.
    #[prost(message, repeated, tag = "3")]
    pub entries: Vec<Handshake>,
}

/// A connection in its handshake.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Handshake {
    /// Its place in the table.
    #[prost(uint32, tag = "1")]
    pub place: u32,
    /// The part of the hash that does not select its set.
    #[prost(fixed32, tag = "2")]
    pub tag: u32,
    /// Sequence number of the SYN.
    #[prost(fixed32, tag = "3")]
    pub syn_seq: u32,
    /// Sequence number of its answer.
    #[prost(fixed32, tag = "4")]
    pub answer_seq: u32,
    /// How long ago the last packet was, µs.
    #[prost(uint32, tag = "5")]
    pub age_us: u32,
    /// The smaller of the two announced MSS.
    #[prost(uint32, tag = "6")]
    pub mss: u32,
    /// What was seen and announced so far.
    #[prost(uint32, tag = "7")]
    pub bits: u32,
    /// Window scales: the server's in the low half.
    #[prost(uint32, tag = "8")]
    pub scales: u32,
    /// From SYN to its answer, ticks of 16 µs.
    #[prost(uint32, tag = "9")]
    pub rtt_ticks: u32,
    /// The code point of the SYN.
    #[prost(uint32, tag = "10")]
    pub dscp: u32,
}

impl Checkpoint {
    /// A flow that has ended.
    pub(crate) fn ended(key: Key) -> Checkpoint {
        Checkpoint { over: true, ..Checkpoint::of(key) }
    }

    fn of(key: Key) -> Checkpoint {
        Checkpoint {
            server_address: Bytes::copy_from_slice(&key.server.address.octets()),
            server_port: key.server.port.into(),
            client_address: Bytes::copy_from_slice(&key.client.address.octets()),
            client_port: key.client.port.into(),
            vlan: key.vlan.into(),
            ..Checkpoint::default()
        }
    }

    pub(crate) fn key(&self) -> Option<Key> {
        let end = |address: &[u8], port: u32| {
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?);
            Some(End { address, port: u16::try_from(port).ok()? })
        };
        Some(Key {
            server: end(&self.server_address, self.server_port)?,
            client: end(&self.client_address, self.client_port)?,
            vlan: u16::try_from(self.vlan).ok()?,
        })
    }
}

impl<P: Packet> Flow<P> {
    /// The state to [`Flow::restore`]. `write` makes bytes of a packet.
    fn checkpoint(&self, now: Time, write: &impl Fn(&P) -> Vec<u8>) -> Checkpoint {
        let buffer = self.buffer.as_ref().map(|buffer| buffer.checkpoint(now.as_us() as u32, write));
        Checkpoint { buffer, relay: Some(self.relay.checkpoint(now)), ..self.outline(now) }
    }

    /// The same as [`Flow::checkpoint`] once all is acknowledged that was sent: a standby does not know what is on its way.
    pub fn outline(&self, now: Time) -> Checkpoint {
        let relay = self.relay.checkpoint(now);
        let una = relay.una;
        Checkpoint {
            dscp: self.dscp.into(),
            relay: Some(tcp::Checkpoint { nxt: una, timeout_us: None, backoff: 0, ..relay }),
            offered: self.offered,
            client_end: self.client_end,
            server_rtt_ticks: self.server_rtt_ticks.into(),
            server_scale: (self.scales & 0xf).into(),
            client_scale: (self.scales >> 4).into(),
            timestamps: self.has(bit::TIMESTAMPS),
            server_fin: self.has(bit::SERVER_FIN),
            client_fin: self.has(bit::CLIENT_FIN),
            aborted: self.has(bit::ABORTED),
            all_answers: self.has(bit::ALL_ANSWERS),
            astray: self.has(bit::ASTRAY),
            catches_up: self.has(bit::CATCHES_UP),
            promoted: self.has(bit::PROMOTED),
            sets_ect: self.has(bit::SETS_ECT),
            hidden: self.hidden,
            absorbed: self.absorbed.into(),
            age_ms: ((now.as_us() / 1000) as u32).wrapping_sub(self.began_ms),
            idle_ticks: tick(now).wrapping_sub(self.seen).into(),
            ..Checkpoint::of(self.key)
        }
    }

    /// The flow of a checkpoint; `None`: none can be in that state.
    fn restore(now: Time, config: &Arc<Config>, from: &Checkpoint, mut buffer: Option<Buffer<P>>) -> Option<Flow<P>> {
        let (key, state) = (from.key()?, from.relay.as_ref()?);
        let nxt = buffer.as_ref().map_or(state.nxt, |buffer| buffer.nxt);
        if after(state.nxt, nxt) || from.server_scale > 14 || from.client_scale > 14 {
            return None;
        }
        let sent = buffer.iter_mut().flat_map(|buffer| buffer.lengths(state.una, state.nxt));
        let mut relay = Relay::restore(now, config, state, sent, state.una ^ state.rcv_nxt)?;
        if nxt != state.nxt {
            relay.write(now, nxt.wrapping_sub(state.nxt), false);
        }
        let bits = [
            (from.timestamps, bit::TIMESTAMPS),
            (state.ecn, bit::ECN),
            (from.server_fin, bit::SERVER_FIN),
            (from.client_fin, bit::CLIENT_FIN),
            (from.aborted, bit::ABORTED),
            (state.sack, bit::SACK),
            (from.all_answers, bit::ALL_ANSWERS),
            (from.astray, bit::ASTRAY),
            (from.catches_up, bit::CATCHES_UP),
            (from.promoted, bit::PROMOTED),
            (from.sets_ect, bit::SETS_ECT),
            // not known
            (from.sets_ect, bit::MARKED),
        ];
        Some(Flow {
            relay,
            buffer: buffer.map(Box::new),
            key,
            offered: from.offered,
            began_ms: ((now.as_us() / 1000) as u32).wrapping_sub(from.age_ms),
            client_end: from.client_end,
            hidden: from.hidden,
            absorbed: from.absorbed.try_into().unwrap_or(u16::MAX),
            seen: tick(now).wrapping_sub(from.idle_ticks as u16),
            server_rtt_ticks: from.server_rtt_ticks.try_into().unwrap_or(u16::MAX),
            scales: (from.server_scale | from.client_scale << 4) as u8,
            bits: bits.into_iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum(),
            dscp: from.dscp as u8,
        })
    }
}

impl Echo {
    /// The state to take over.
    pub fn checkpoint(&self, now: Time) -> Checkpoint {
        let idle_ticks = tick(now).wrapping_sub(self.seen).into();
        Checkpoint { echoes: true, dscp: self.dscp.into(), idle_ticks, ..Checkpoint::of(self.key) }
    }
}

impl<P: Packet> Enforcer<P> {
    /// The state of each flow, for [`Enforcer::restore`]. `write` makes bytes of a packet.
    pub fn checkpoints(&self, now: Time, write: impl Fn(&P) -> Vec<u8>) -> impl Iterator<Item = Checkpoint> {
        let echoes = self.echoes.iter().map(move |echo| echo.checkpoint(now));
        self.flows.iter().flatten().map(move |flow| flow.checkpoint(now, &write)).chain(echoes)
    }

    /// The connections in their handshake, for [`Enforcer::restore_handshakes`].
    pub fn handshakes(&self, now: Time) -> Handshakes {
        let now_us = now.as_us() as u32;
        Handshakes {
            seed: self.seed,
            places: self.half_opens.places() as u32,
            entries: self.half_opens.checkpoint(now_us),
        }
    }

    /// Allocates now the tables that would otherwise be allocated while so many flows are restored. Without effect on an enforcer that
    /// has flows.
    pub fn make_room(&mut self, flows: usize) {
        if self.flows.is_empty() {
            let flows = flows.min(self.limits.flows);
            self.half_opens.allocate();
            self.index.allocate(flows);
            // its pages are the process's once they are written to
            self.flows.resize_with(flows, || None);
            self.flows.clear();
        }
    }

    /// Takes over connections in their handshake, and the seed of their hashes. Without effect on an enforcer that has flows, or
    /// a table of another size.
    pub fn restore_handshakes(&mut self, now: Time, from: &Handshakes) {
        if self.flows() + self.echoes() == 0 && from.places as usize == self.half_opens.places() {
            self.seed = from.seed;
            self.half_opens.restore(now.as_us() as u32, &from.entries);
        }
    }

    /// Takes over a flow, by the rule that matches it here. `read` makes a packet of its bytes. False: it passes untouched from now
    /// on, with what was delayed, since no rule matches it, there is no room, or it cannot be in that state.
    pub fn restore(&mut self, now: Time, from: &Checkpoint, read: impl Fn(&[u8]) -> Option<P>) -> bool {
        if from.echoes {
            return self.restore_echo(now, from);
        }
        let buffer = from.buffer.as_ref().and_then(|buffer| Buffer::restore(now.as_us() as u32, buffer, &read));
        let Some(flow) = self.restored(now, from, buffer) else {
            let nxt = from.relay.as_ref().map_or(0, |relay| relay.nxt);
            let delayed = from.buffer.iter().flat_map(|buffer| buffer.behind(nxt));
            for packet in delayed.filter_map(read) {
                self.counters.sent += 1;
                self.out.push_back((Direction::Out, packet));
            }
            return false;
        };
        self.buffered += flow.buffer.as_ref().map_or(0, |buffer| buffer.bytes);
        self.buffered_max = self.buffered_max.max(self.buffered);
        let hash = flow.key.hash(self.seed);
        let slot = self.insert(hash, flow);
        let (flow, mut cx) = self.parts(now, slot);
        flow.drain(&mut cx);
        self.schedule(slot);
        true
    }

    /// Whatever the rules are now: the sender counts on the echoes.
    fn restore_echo(&mut self, now: Time, from: &Checkpoint) -> bool {
        let Some(key) = from.key().filter(|_| self.echoes.len() < self.limits.flows) else { return false };
        let seen = tick(now).wrapping_sub(from.idle_ticks as u16);
        self.echoes.insert(self.seed, Echo::new(key, from.dscp as u8, seen));
        true
    }

    fn restored(&self, now: Time, from: &Checkpoint, buffer: Option<Buffer<P>>) -> Option<Flow<P>> {
        let key = from.key()?;
        if from.buffer.is_some() != buffer.is_some() || self.flows() >= self.limits.flows {
            return None;
        }
        if self.find(key.hash(self.seed), key).is_some() {
            return None;
        }
        let config = self.rules.config(key.server, key.client, from.dscp as u8)?;
        Flow::restore(now, config, from, buffer)
    }
}

impl Buffered {
    /// Copies of the pieces from `nxt` on, which were not sent.
    fn behind(&self, nxt: u32) -> impl Iterator<Item = &[u8]> {
        let pieces = self.pieces.iter().scan(self.first, |at, piece| {
            *at = at.wrapping_add(piece.len);
            Some((*at, piece))
        });
        pieces.filter(move |(end, _)| after(*end, nxt)).filter_map(|(_, piece)| piece.packet.as_deref())
    }
}
