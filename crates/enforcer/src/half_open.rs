//! Connections in their handshake, in a table that does not grow.
//!
//! A flood of SYNs costs twenty bytes each, up to the table's size; then each SYN evicts the oldest of the few entries in its
//! set. A real handshake is lost, and its flow passes untouched, if that happens within its RTT: with the
//! default of 2^20 places, at a million spoofed SYNs a second and 200 ms, one in some thousand.

use crate::checkpoint::Handshake;
use crate::packet::Header;
use std::collections::VecDeque;
use tcp::{Ecn, Segment, flags};

/// Entries per set.
const WAYS: usize = 8;
/// The default MSS (RFC 9293 3.7.1).
const MSS_DEFAULT: u16 = 536;
/// Smallest MSS that is accepted: RFC 791's 68-byte datagrams hold no less; a smaller one would be an attack.
const MSS_MIN: u16 = 48;
/// A handshake without a packet for so long is not handed over: several SYN retransmissions (RFC 6298 2), µs.
const RECENT_US: u32 = 10_000_000;
/// The latest SYNs that are remembered: as many as come in ten seconds where nobody floods.
const RECENT_MAX: usize = 1 << 13;
/// Ticks of the server's round trip.
pub(crate) const RTT_TICK_US: u32 = 16;

/// Bits of [`HalfOpen::bits`].
mod bit {
    pub const USED: u16 = 1;
    /// The enforced host has sent the SYN.
    pub const BY_SERVER: u16 = 2;
    pub const ANSWERED: u16 = 4;
    pub const SACK: u16 = 8;
    pub const TIMESTAMPS: u16 = 0x10;
    pub const ECN: u16 = 0x20;
    /// SYN or SYN-ACK was retransmitted: times are ambiguous.
    pub const AGAIN: u16 = 0x40;
    pub const SCALED: u16 = 0x80;
    /// The SYN asks for ECN as DCTCP's hosts do.
    pub const DCTCP: u16 = 0x100;
    /// ECN was asked for, or accepted, here in a host's place.
    pub const PROXIED: u16 = 0x200;
}

/// A handshake.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct HalfOpen {
    /// The part of the hash that does not select its set.
    tag: u32,
    /// Sequence number of the SYN.
    syn_seq: u32,
    /// Sequence number of its answer.
    answer_seq: u32,
    /// Time of the last packet, µs.
    at_us: u32,
    /// The smaller of the two announced MSS.
    mss: u16,
    bits: u16,
    /// From SYN to its answer, ticks.
    rtt_ticks: u16,
    /// Window scales: the server's in the low half.
    scales: u8,
    /// The code point of the SYN.
    dscp: u8,
}

const _: () = assert!(size_of::<HalfOpen>() <= 24);

/// What a handshake has negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each option is negotiated by itself")]
pub(crate) struct Agreed {
    /// The first sequence number after the server's SYN.
    pub server_next: u32,
    pub client_next: u32,
    pub mss: u16,
    pub dscp: u8,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// ECN was agreed on here in a host's place, which does not know of it.
    pub proxied: bool,
    pub server_scale: u8,
    pub client_scale: u8,
    /// The enforced host opened the connection.
    pub by_server: bool,
    /// RTT between enforcer and server, ticks of 16 µs.
    pub server_rtt_ticks: u16,
    /// RTT between enforcer and client, µs.
    pub client_rtt_us: Option<u32>,
}

/// A SYN has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// Another handshake was evicted.
    pub evicted: bool,
    /// It is to ask for ECN.
    pub asks: bool,
}

/// A SYN or its answer has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answered {
    /// Its SYN has passed.
    pub is_answer: bool,
    /// Whether it is to ask for ECN or accept it; `None`: as it does.
    pub accepts: Option<bool>,
}

impl Answered {
    /// The flags with which a SYN, or its answer, is forwarded.
    pub fn flags_of(self, segment: &Segment) -> u8 {
        let others = segment.flags & !(flags::ECE | flags::CWR);
        match (self.accepts, segment.flags & flags::ACK != 0) {
            (None, _) => segment.flags,
            (Some(_), false) => others | flags::ECE | flags::CWR,
            (Some(true), true) => others | flags::ECE,
            (Some(false), true) => others,
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct HalfOpens {
    /// Sets of [`WAYS`], the newest first; allocated at the first SYN, or before any are restored.
    entries: Vec<HalfOpen>,
    sets: usize,
    /// The sets of the latest SYNs, and when these came, µs; the oldest first.
    recent: VecDeque<(u32, u32)>,
    /// When the last one was that this has no room for.
    recent_lost_us: Option<u32>,
}

impl HalfOpens {
    /// Room for `most` handshakes, rounded up to a power of two.
    pub fn new(most: usize) -> HalfOpens {
        let sets = most.div_ceil(WAYS).next_power_of_two();
        HalfOpens { entries: Vec::new(), sets, recent: VecDeque::new(), recent_lost_us: None }
    }

    /// How many handshakes there is room for.
    pub fn places(&self) -> usize {
        self.sets * WAYS
    }

    /// The handshakes of the last while, to [`HalfOpens::restore`].
    pub fn checkpoint(&self, now_us: u32) -> Vec<Handshake> {
        let is_recent = |at_us: u32| now_us.wrapping_sub(at_us) < RECENT_US;
        let mut sets: Vec<u32> = if self.recent_lost_us.is_some_and(is_recent) {
            (0..self.sets as u32).collect()
        } else {
            self.recent.iter().filter(|(_, at_us)| is_recent(*at_us)).map(|(set, _)| *set).collect()
        };
        sets.sort_unstable();
        sets.dedup();
        let places = sets.into_iter().flat_map(|set| set as usize * WAYS..(set as usize + 1) * WAYS);
        let handshake = |place: usize| {
            let entry = self.entries.get(place).filter(|entry| entry.bits & bit::USED != 0)?;
            Some(Handshake {
                place: place as u32,
                tag: entry.tag,
                syn_seq: entry.syn_seq,
                answer_seq: entry.answer_seq,
                age_us: now_us.wrapping_sub(entry.at_us),
                mss: entry.mss.into(),
                bits: entry.bits.into(),
                scales: entry.scales.into(),
                rtt_ticks: entry.rtt_ticks.into(),
                dscp: entry.dscp.into(),
            })
        };
        places.filter_map(handshake).filter(|one| one.age_us < RECENT_US).collect()
    }

    /// Notes that a SYN has come, so that a checkpoint need not search the whole table.
    fn note(&mut self, hash: u64, now_us: u32) {
        if self.recent.len() >= RECENT_MAX.min(self.places()) {
            self.recent_lost_us = self.recent.pop_front().map(|(_, at_us)| at_us);
        }
        self.recent.push_back(((hash as usize & (self.sets - 1)) as u32, now_us));
    }

    /// A table with these handshakes, which had the same number of places.
    pub fn restore(&mut self, now_us: u32, from: &[Handshake]) {
        if !from.is_empty() {
            self.allocate();
        }
        for one in from {
            let at_us = now_us.wrapping_sub(one.age_us);
            let Some(entry) = self.entries.get_mut(one.place as usize) else { continue };
            *entry = HalfOpen {
                tag: one.tag,
                syn_seq: one.syn_seq,
                answer_seq: one.answer_seq,
                at_us,
                mss: (one.mss as u16).max(MSS_MIN),
                bits: one.bits as u16,
                scales: one.scales as u8,
                rtt_ticks: one.rtt_ticks as u16,
                dscp: one.dscp as u8,
            };
            // a set's number is what selects it in a hash
            self.note(u64::from(one.place) / WAYS as u64, at_us);
        }
    }

    /// Allocates the table, which takes milliseconds, if it is not yet.
    pub fn allocate(&mut self) {
        if self.entries.is_empty() {
            self.entries = vec![HalfOpen::default(); self.places()];
        }
    }

    fn set(&mut self, hash: u64) -> (&mut [HalfOpen], u32) {
        self.allocate();
        let first = (hash as usize & (self.sets - 1)) * WAYS;
        (&mut self.entries[first..first + WAYS], (hash >> 32) as u32)
    }

    /// A SYN, new or repeated. `proxies`: its host is to have ECN without knowing of it. Only the first SYN asks for that, so that
    /// a path that drops such SYNs still works (RFC 3168 6.1.1.1).
    pub fn on_syn(&mut self, hash: u64, now_us: u32, by_server: bool, proxies: bool, header: &Header) -> Asked {
        let syn = &header.segment;
        self.note(hash, now_us);
        let (set, tag) = self.set(hash);
        let ecn = syn.flags & (flags::ECE | flags::CWR);
        // data in a SYN may be answered before it is known here what holds (RFC 7413)
        let asks = proxies && ecn == 0 && syn.len == 0;
        let mut entry = HalfOpen {
            tag,
            syn_seq: syn.seq,
            answer_seq: 0,
            at_us: now_us,
            mss: mss_of(syn),
            bits: bit::USED
                | if by_server { bit::BY_SERVER } else { 0 }
                | if syn.sack_permitted { bit::SACK } else { 0 }
                | if syn.has_timestamp { bit::TIMESTAMPS } else { 0 }
                | if syn.window_scale > 0 { bit::SCALED } else { 0 }
                | if ecn == flags::ECE | flags::CWR { bit::ECN | dctcp_of(syn) } else { 0 }
                | if asks { bit::ECN | bit::PROXIED } else { 0 },
            scales: nibble(scale_of(syn), by_server),
            rtt_ticks: 0,
            dscp: header.dscp,
        };
        let same = |old: &HalfOpen| old.bits & bit::USED != 0 && old.tag == tag;
        if let Some(other) = set.iter().position(|old| same(old) && (old.bits & bit::BY_SERVER != 0) != by_server) {
            // both have sent a SYN: which options hold is unknown here
            set[other] = HalfOpen::default();
            return Asked::default();
        }
        // a SYN with another number does not replace an earlier one: it may be spoofed
        let found = set.iter().position(|old| same(old) && old.syn_seq == syn.seq);
        if let Some(found) = found {
            // retransmitted; the answer to the first may be on its way
            entry = HalfOpen { bits: set[found].bits | bit::AGAIN, ..set[found] };
            if ecn == 0 && entry.bits & bit::DCTCP != 0 {
                // its host has given ECN up (RFC 3168 6.1.1.1), and would not echo
                entry.bits &= !(bit::ECN | bit::DCTCP | bit::PROXIED);
            }
            entry.at_us = if entry.bits & bit::ANSWERED == 0 { now_us } else { entry.at_us };
        }
        let to = found.unwrap_or(WAYS - 1);
        let evicted = found.is_none() && set[to].bits & bit::USED != 0;
        set.copy_within(..to, 1);
        set[0] = entry;
        Asked { evicted, asks: asks && found.is_none() }
    }

    /// The answer to a SYN. `proxies`: its host is to have ECN without knowing of it.
    pub fn on_answer(&mut self, hash: u64, now_us: u32, by_server: bool, proxies: bool, answer: &Segment) -> Answered {
        let (set, tag) = self.set(hash);
        // of what it acknowledges, how much is not the SYN itself (RFC 7413)
        let data = |entry: &HalfOpen| {
            let to_other = (entry.bits & bit::BY_SERVER != 0) != by_server;
            let is_its = entry.bits & bit::USED != 0 && entry.tag == tag && to_other;
            is_its.then(|| answer.ack.wrapping_sub(entry.syn_seq.wrapping_add(1)))
        };
        let Some(entry) = set.iter_mut().find(|entry| data(entry) == Some(0)) else {
            let is_answer = set.iter().any(|entry| data(entry).is_some_and(|bytes| bytes <= u32::from(entry.mss)));
            return Answered { is_answer, accepts: None };
        };
        if entry.bits & bit::ANSWERED != 0 {
            // of two different answers to one SYN, the first counts
            if answer.seq == entry.answer_seq || entry.bits & bit::AGAIN != 0 {
                entry.bits |= bit::AGAIN;
                entry.answer_seq = answer.seq;
                entry.at_us = now_us;
            }
            return entry.answered(proxies);
        }
        if !answer.sack_permitted {
            entry.bits &= !bit::SACK;
        }
        if !answer.has_timestamp {
            entry.bits &= !bit::TIMESTAMPS;
        }
        if answer.flags & (flags::ECE | flags::CWR) != flags::ECE {
            if proxies && entry.bits & bit::DCTCP != 0 {
                entry.bits |= bit::PROXIED;
            } else {
                entry.bits &= !(bit::ECN | bit::PROXIED);
            }
        }
        if answer.window_scale == 0 || entry.bits & bit::SCALED == 0 {
            entry.scales = 0;
        } else {
            entry.scales |= nibble(scale_of(answer), by_server);
        }
        entry.mss = entry.mss.min(mss_of(answer));
        entry.rtt_ticks = (now_us.wrapping_sub(entry.at_us) / RTT_TICK_US).min(u32::from(u16::MAX)) as u16;
        entry.answer_seq = answer.seq;
        entry.at_us = now_us;
        entry.bits |= bit::ANSWERED;
        entry.answered(proxies)
    }

    /// Data of the server has passed untouched: the flow can no longer be enforced.
    pub fn on_passed(&mut self, hash: u64) {
        if self.entries.is_empty() {
            return;
        }
        let (set, tag) = self.set(hash);
        set.iter_mut().filter(|entry| entry.tag == tag).for_each(|entry| *entry = HalfOpen::default());
    }

    /// The opener's first segment after the answer: the handshake is over; returns what it negotiated.
    pub fn on_open(&mut self, hash: u64, now_us: u32, by_server: bool, segment: &Segment) -> Option<Agreed> {
        if self.entries.is_empty() {
            return None;
        }
        let (set, tag) = self.set(hash);
        let ends_it = |entry: &&mut HalfOpen| {
            let in_turn = (entry.bits & bit::BY_SERVER != 0) == by_server && entry.bits & bit::ANSWERED != 0;
            let offset = segment.seq.wrapping_sub(entry.syn_seq.wrapping_add(1));
            let is_near = segment.ack == entry.answer_seq.wrapping_add(1) && u16::try_from(offset).is_ok();
            entry.tag == tag && in_turn && is_near
        };
        let entry = set.iter_mut().find(ends_it)?;
        let took_us = now_us.wrapping_sub(entry.at_us);
        let answer_rtt_us = (entry.bits & bit::AGAIN == 0).then_some(took_us);
        let syn_rtt_us = (entry.bits & bit::AGAIN == 0).then_some(u32::from(entry.rtt_ticks) * RTT_TICK_US);
        let ticks = (took_us / RTT_TICK_US).min(u32::from(u16::MAX)) as u16;
        let (opener, answerer) = (entry.syn_seq.wrapping_add(1), entry.answer_seq.wrapping_add(1));
        let agreed = Agreed {
            server_next: if by_server { opener } else { answerer },
            client_next: if by_server { answerer } else { opener },
            mss: entry.mss,
            dscp: entry.dscp,
            sack: entry.bits & bit::SACK != 0,
            timestamps: entry.bits & bit::TIMESTAMPS != 0,
            ecn: entry.bits & bit::ECN != 0,
            proxied: entry.bits & bit::PROXIED != 0,
            server_scale: entry.scales & 0xf,
            client_scale: entry.scales >> 4,
            by_server,
            server_rtt_ticks: if by_server { ticks } else { entry.rtt_ticks },
            client_rtt_us: if by_server { syn_rtt_us } else { answer_rtt_us },
        };
        *entry = HalfOpen::default();
        Some(agreed)
    }
}

impl HalfOpen {
    /// It has an answer, of a host that `proxies` says is to have ECN without knowing of it.
    fn answered(&self, proxies: bool) -> Answered {
        // whose place is taken here: that of the host that answers, or else of the one that asked, which must not see the answer
        Answered { is_answer: true, accepts: (self.bits & bit::PROXIED != 0).then_some(proxies) }
    }
}

/// A DCTCP host sends its SYN as ECT (RFC 8257 3.6). Linux without DCTCP refuses ECN then, so that whoever accepts it echoes
/// marks as DCTCP needs it, not until CWR.
fn dctcp_of(syn: &Segment) -> u16 {
    if syn.ecn == Ecn::NotEct { 0 } else { bit::DCTCP }
}

fn mss_of(syn: &Segment) -> u16 {
    if syn.mss == 0 { MSS_DEFAULT } else { syn.mss.max(MSS_MIN) }
}

/// RFC 7323 2.3: a shift above 14 counts as 14.
fn scale_of(syn: &Segment) -> u8 {
    syn.window_scale.saturating_sub(1).min(14)
}

fn nibble(scale: u8, by_server: bool) -> u8 {
    if by_server { scale } else { scale << 4 }
}
