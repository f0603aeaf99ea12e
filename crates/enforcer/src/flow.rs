//! One enforced flow: its sender towards the client, and what both ends have been sent.

use crate::buffer::{Buffer, Newest};
use crate::counters::{Counters, Ending};
use crate::dress::Dress;
use crate::ect::ecn_of;
use crate::half_open::{Agreed, RTT_TICK_US};
use crate::index::Key;
use crate::kept::Kept;
use crate::limits::Limits;
use crate::packet::{Action, Direction, Packet};
use crate::receivers::Receiver;
use crate::seq::{after, before, later};
use crate::standby::CATCH_UP_MAX;
use std::collections::VecDeque;
use std::sync::Arc;
use tcp::{Config, Opening, Relay, Segment, flags};
use units::Time;

/// Bytes of the timestamp option in every segment of a connection that has it.
const TIMESTAMP_BYTES: u32 = 12;
/// Largest window of a SYN's answer, which is not scaled; it covers the first data.
pub(crate) const SYN_WINDOW: u32 = 65_535;
/// Windows of fewer segments are rounded up, or else the server could have much more than the window.
const LARGE_SEGMENTS: u32 = 16;
/// A flow is offered no more than this part of the free packet memory, so that there is always some for others, but so
/// many segments even if none is free: they may pass untouched.
const SHARE: usize = 16;
const LEAST_SEGMENTS: u32 = 2;
/// So much is sent beyond a gap that the client waits for, whatever the window: enough duplicate ACKs to request it (RFC 5681
/// 3.2); otherwise the server would notice only by a timeout.
const BEHIND_GAP_SEGMENTS: u32 = 4;
/// After so many timeouts in a row a flow's packets are no longer buffered, if more than half of the packet memory is used.
const SILENT_TIMEOUTS: u8 = 3;
/// With so many packets in flight, of which every second is acknowledged at once, an RTT that exceeds the shortest by
/// an eighth, within these bounds (RFC 9406 4.2), means a queue.
const QUEUED_PACKETS: u32 = 10;
const QUEUED_US: (u32, u32) = (4_000, 16_000);
/// With so many packets in flight, enough ACKs follow this one.
const THINNED_PACKETS: u32 = 16;
/// After so long a silence, a server's data beyond its window means that others of its packets took another path: it would have
/// retransmitted lost ones, µs.
const ASTRAY_US: u64 = 1_000_000;
/// Time beyond two RTTs to the server after which it counts as having nothing to send, µs: hosts send in bursts.
const STARVED_US: u32 = 1_000;

/// Bits of [`Flow::bits`].
pub(crate) mod bit {
    pub const TIMESTAMPS: u16 = 1;
    pub const ECN: u16 = 2;
    pub const SERVER_FIN: u16 = 4;
    pub const CLIENT_FIN: u16 = 8;
    /// The client's last packet was a RST, and may be the end.
    pub const ABORTED: u16 = 0x10;
    pub const SACK: u16 = 0x20;
    /// The server gets every ACK: its window would not grow with fewer.
    pub const ALL_ANSWERS: u16 = 0x40;
    /// The client has acknowledged data that did not pass here.
    pub const ASTRAY: u16 = 0x80;
    /// It was another enforcer's, and both ends may have advanced since this one heard of it.
    pub const CATCHES_UP: u16 = 0x100;
    /// The same once something that was sent from here has arrived: but what the other enforcer had sent behind it may have arrived too.
    pub const PROMOTED: u16 = 0x200;
    /// Its state has changed since a standby heard of it.
    pub const CHANGED: u16 = 0x400;
    /// The server knows no ECN: its data leaves as ECN-capable.
    pub const SETS_ECT: u16 = 0x800;
    /// Marks were echoed since losses were last found.
    pub const MARKED: u16 = 0x1000;
    /// Losses were found, and are not repaired yet.
    pub const LOSING: u16 = 0x2000;
}

/// The environment of a flow.
pub(crate) struct Context<'a, P> {
    pub now: Time,
    pub out: &'a mut VecDeque<(Direction, P)>,
    pub counters: &'a mut Counters,
    /// Memory of all buffered packets, bytes.
    pub buffered: &'a mut usize,
    pub kept: &'a mut Kept,
    pub limits: &'a Limits,
    /// The client, if a total bounds its flows, and the flow's slot.
    pub receiver: Option<(&'a mut Receiver, u32)>,
    /// Set when the flow is over.
    pub ending: Option<Ending>,
}

impl<P> Context<'_, P> {
    fn now_us(&self) -> u32 {
        self.now.as_us() as u32
    }
}

/// An enforced flow.
#[derive(Debug)]
pub(crate) struct Flow<P> {
    pub relay: Relay,
    /// Present while data is in flight, and a little longer.
    pub buffer: Option<Box<Buffer<P>>>,
    pub key: Key,
    /// The number after the last that the server may send by its advertised window.
    pub offered: u32,
    /// Start, ms.
    pub began_ms: u32,
    /// The number after the client's FIN, once seen.
    pub client_end: u32,
    pub hidden: u32,
    /// Saturating counters.
    pub absorbed: u16,
    /// Time of the last packet, in the enforcer's ticks.
    pub seen: u16,
    /// RTT to the server, ticks.
    pub server_rtt_ticks: u16,
    /// Window scales: the server's in the low half.
    pub scales: u8,
    pub bits: u16,
    /// The code point of its SYN, which its rule matched.
    pub dscp: u8,
}

// with its place in the index, 512 bytes for an idle one
const _: () = assert!(size_of::<Option<Flow<()>>>() <= 496);

impl<P: Packet> Flow<P> {
    pub fn new(now: Time, config: &Arc<Config>, key: Key, agreed: &Agreed, window: u32) -> Flow<P> {
        let options = if agreed.timestamps { TIMESTAMP_BYTES } else { 0 };
        let opening = Opening {
            una: agreed.server_next,
            rcv_nxt: agreed.client_next,
            window,
            mss: u32::from(agreed.mss) - options,
            sack: agreed.sack,
            ecn: agreed.ecn,
            rtt_us: agreed.client_rtt_us,
            seed: agreed.server_next ^ agreed.client_next,
        };
        let mut relay = Relay::new(now, config, &opening);
        relay.note_receiver(agreed.client_next, SYN_WINDOW);
        Flow {
            relay,
            buffer: None,
            key,
            // until an ACK has passed, only the answer to its SYN has offered the server a window
            offered: agreed.server_next.wrapping_add(if agreed.by_server { SYN_WINDOW } else { 0 }),
            began_ms: (now.as_us() / 1000) as u32,
            client_end: 0,
            absorbed: 0,
            hidden: 0,
            seen: 0,
            server_rtt_ticks: agreed.server_rtt_ticks,
            scales: agreed.server_scale | agreed.client_scale << 4,
            bits: if agreed.timestamps { bit::TIMESTAMPS } else { 0 }
                | if agreed.ecn { bit::ECN } else { 0 }
                | if agreed.sack { bit::SACK } else { 0 }
                | if agreed.proxied { bit::SETS_ECT } else { 0 },
            dscp: agreed.dscp,
        }
    }

    pub fn has(&self, bits: u16) -> bool {
        self.bits & bits != 0
    }

    fn client_scale(&self) -> u8 {
        self.scales >> 4
    }

    fn server_scale(&self) -> u8 {
        self.scales & 0xf
    }

    /// Whether a handshake's answer is of a new connection: a retransmission would have this flow's initial number.
    pub fn is_another(&self, direction: Direction, answer: &Segment) -> bool {
        let server_next = if direction == Direction::Out { answer.seq.wrapping_add(1) } else { answer.ack };
        let sock = self.relay.sock();
        server_next != sock.snd_una.wrapping_sub(sock.bytes_acked as u32)
    }

    /// A packet from the client.
    pub fn inward(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        let segment = Segment { window: packet.window(self.client_scale()), ..*segment };
        if segment.flags & flags::RST != 0 {
            if segment.seq == self.relay.rcv_nxt() {
                cx.ending = Some(Ending::Reset);
            } else if self.relay.accepts(&Segment { ack: self.relay.sock().snd_una, ..segment }) {
                // a guess, which the server challenges (RFC 5961 3.2), or it follows data that the server has not acknowledged yet
                self.bits |= bit::ABORTED;
            }
            return Action::Forward(packet);
        }
        if segment.flags & flags::ACK == 0 {
            return Action::Forward(packet);
        }
        if self.has(bit::CATCHES_UP | bit::PROMOTED) && after(segment.ack, self.relay.sock().snd_nxt) {
            self.catch_up(cx, &segment);
        }
        let una = self.relay.sock().snd_una;
        if after(segment.ack, self.relay.sock().snd_nxt) {
            return self.unsent(cx, &segment, packet);
        }
        if !self.relay.accepts(&segment) {
            cx.counters.outside_window += 1;
            let window = self.offered_at(&segment);
            return self.rewritten(cx, &segment, window, packet);
        }
        if segment.flags & flags::FIN != 0 {
            self.bits |= bit::CLIENT_FIN;
            self.client_end = segment.end_seq();
        }
        self.bits &= !bit::ASTRAY;
        if after(segment.ack, una) {
            self.bits &= !bit::CATCHES_UP;
        }
        self.relay.on_ack(cx.now, &segment);
        self.note_ece(&segment);
        if let Some(buffer) = &mut self.buffer {
            buffer.note_tsecr(&segment);
            *cx.buffered -= buffer.acknowledge(self.relay.sock().snd_una);
        }
        self.drain(cx);
        let action = self.answer_server(cx, una, &segment, packet);
        self.tell_twice(cx, &segment, action)
    }

    /// The client acknowledges data that was not sent from here.
    fn unsent(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        if !after(segment.ack, self.nxt()) {
            // the server has sent that, but the client cannot have it
            cx.counters.optimistic_dropped += 1;
            return Action::Dropped;
        }
        // either it was never sent, and the server will reject it, or it took another path
        if self.relay.accepts(segment) {
            self.bits |= bit::ASTRAY;
        }
        cx.counters.acks_astray += 1;
        Action::Forward(packet)
    }

    /// The ACK that the server sees.
    fn answer_server(&mut self, cx: &mut Context<P>, una: u32, segment: &Segment, packet: P) -> Action<P> {
        let (prior, has_sack) = (self.offered, self.has(bit::SACK));
        let duplicate = segment.seq_len() == 0 && !after(segment.ack, una);
        let buffer = self.buffer.as_deref_mut().filter(|buffer| !buffer.is_empty());
        if let (true, Some(buffer)) = (duplicate, buffer) {
            if buffer.gaps > 0 && (has_sack || buffer.lacks_next()) {
                // the gap is before the enforcer: only the server can repair it; without SACK it takes our
                // retransmissions for reordering, and raises its duplicate threshold for good
                let window = self.offer(segment, 0);
                self.note_answer(cx, segment.ack);
                return self.rewritten(cx, segment, window, packet);
            }
            let owed = buffer.owes_ack && segment.ack == una || buffer.twice(una).is_some();
            let news = after(segment.ack, buffer.answers.reported);
            let owed = owed || news && !self.is_spare(cx);
            let window = self.window(cx, segment);
            if !owed && self.offered == prior {
                cx.counters.hidden += 1;
                self.hidden = self.hidden.saturating_add(1);
                return Action::Dropped;
            }
            self.note_answer(cx, segment.ack);
            return self.rewritten(cx, segment, window, packet);
        }
        if segment.seq_len() == 0 && self.is_spare(cx) {
            cx.counters.thinned += 1;
            return Action::Dropped;
        }
        self.note_answer(cx, segment.ack);
        let window = self.window(cx, segment);
        self.rewritten(cx, segment, window, packet)
    }

    /// Whether to drop a late ACK (`answers`): the server's data waits here, and more
    /// ACKs follow.
    fn is_spare(&mut self, cx: &Context<P>) -> bool {
        let sock = self.relay.sock();
        if self.has(bit::ALL_ANSWERS) || sock.packets_out < THINNED_PACKETS {
            return false;
        }
        let (is_late, min_rtt_us) = (self.is_late(cx), sock.min_rtt_us());
        let Some(buffer) = &mut self.buffer else { return false };
        let offered = room(self.offered, buffer.nxt) >= sock.mss_cache;
        let is_calm = buffer.gaps == 0 && !buffer.owes_ack && (offered || !buffer.holds_nothing_back());
        let now_us = cx.now_us();
        let rtt_us = now_us.wrapping_sub(buffer.acked_came_us);
        is_calm
            && (buffer.answers.is_in_pause(now_us, min_rtt_us) || is_late && buffer.answers.is_spare(now_us, rtt_us))
    }

    /// An ACK is forwarded to the server.
    fn note_answer(&mut self, cx: &Context<P>, ack: u32) {
        let Some(buffer) = &mut self.buffer else { return };
        // the window is rounded up by a segment
        let is_full = room(self.offered, buffer.nxt) < 2 * self.relay.sock().mss_cache;
        buffer.owes_ack = false;
        if !buffer.answers.note(cx.now_us(), ack, buffer.nxt, is_full) {
            self.bits |= bit::ALL_ANSWERS;
        }
    }

    /// Whether the newest RTT is longer than without a queue, here or on the path.
    fn is_late(&self, cx: &Context<P>) -> bool {
        let min_rtt_us = self.relay.sock().min_rtt_us();
        let short_us = min_rtt_us.saturating_add(queued_us(min_rtt_us) / 2);
        self.buffer.as_ref().is_some_and(|buffer| cx.now_us().wrapping_sub(buffer.acked_came_us) > short_us)
    }

    /// Adds a D-SACK (RFC 2883) for what the server has sent twice to a passing ACK: an unnecessary probe or timeout
    /// costs the server a part of its window until it knows (RFC 3708; RFC 8985 7.4.2).
    fn tell_twice(&mut self, cx: &mut Context<P>, segment: &Segment, mut action: Action<P>) -> Action<P> {
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.gaps == 0) else { return action };
        let Some(block) = buffer.twice(segment.ack) else { return action };
        let (Action::Forward(packet) | Action::Rewritten(packet)) = &mut action else { return action };
        if !packet.set_sack(block) {
            return action;
        }
        buffer.reported_twice(block);
        cx.counters.undos += 1;
        match action {
            Action::Forward(packet) => Action::Rewritten(packet),
            rewritten => rewritten,
        }
    }

    /// The window to advertise with this ACK, bytes: the rest of the algorithm's window, never less than before
    /// and never more than the client's.
    fn window(&mut self, cx: &Context<P>, segment: &Segment) -> u32 {
        if before(segment.ack, self.relay.sock().snd_una) {
            // reordered: its window does not count, but the server may not have seen the newer one
            return self.offer(segment, 0);
        }
        let mss = self.relay.sock().mss_cache;
        let share = cx.limits.buffer_bytes.saturating_sub(*cx.buffered) / SHARE;
        let share = u32::try_from(share).unwrap_or(u32::MAX).max(LEAST_SEGMENTS * mss);
        let share = cx.receiver.as_ref().map_or(share, |(receiver, _)| receiver.window(mss).min(share));
        let allowed = room(self.relay.window_edge(), segment.ack).min(share);
        let unit = 1_u32 << self.client_scale();
        // a server that fills its window to the last byte would make a tiny segment of each rounding; of nearly one segment
        // more it makes a nearly full one, which waits here
        let is_large = allowed >= LARGE_SEGMENTS * mss && unit <= mss;
        let allowed = if is_large { allowed.saturating_add(mss) & !(unit - 1) } else { allowed };
        self.offer(segment, allowed)
    }

    /// Advertises that many bytes from this ACK on, or the previous edge if that is further, rounded up; no more than the
    /// client does.
    fn offer(&mut self, segment: &Segment, bytes: u32) -> u32 {
        let unit = 1_u32 << self.client_scale();
        let window = bytes.max(room(self.offered, segment.ack)).saturating_add(unit - 1) & !(unit - 1);
        let window = window.min(segment.window);
        let una = self.relay.sock().snd_una;
        let reported = self.buffer.as_ref().map_or(una, |buffer| buffer.answers.reported);
        // rounded up in turn from the newest edge that the server was offered and from an older one, the edge would creep away
        if !before(segment.ack, reported) {
            // of two reordered ACKs, the server may use the one that allows it more
            self.offered = later(self.offered, segment.ack.wrapping_add(window));
        }
        window
    }

    /// The rest of the advertised window at this ACK, bytes; not rounded beyond the edge.
    fn offered_at(&self, segment: &Segment) -> u32 {
        let unit = 1_u32 << self.client_scale();
        (room(self.offered, segment.ack) & !(unit - 1)).min(segment.window)
    }

    fn rewritten(&self, cx: &mut Context<P>, segment: &Segment, window: u32, mut packet: P) -> Action<P> {
        let mut changed = false;
        if window != segment.window {
            packet.set_window((window >> self.client_scale()) as u16, self.client_scale());
            changed = true;
        }
        let gaps = self.buffer.as_ref().is_some_and(|buffer| buffer.gaps > 0);
        if segment.sack_count > 0 && !gaps {
            packet.strip_sack();
            changed = true;
        }
        if segment.flags & flags::ECE != 0 && self.has(bit::ECN) {
            packet.set_flags(segment.flags & !flags::ECE);
            cx.counters.ece_hidden += 1;
            changed = true;
        }
        if changed { Action::Rewritten(packet) } else { Action::Forward(packet) }
    }

    /// A packet from the server.
    pub fn outward(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        if !self.is_near(cx, segment) {
            return self.stray(cx, segment, packet);
        }
        let window = packet.window(self.server_scale());
        if segment.flags & flags::RST != 0 {
            return self.reset_by_server(cx, segment, packet);
        }
        if segment.flags & flags::ACK != 0 {
            if self.has(bit::CATCHES_UP) {
                self.relay.note_receiver_anew(segment.ack, window);
            }
            if !self.relay.may_acknowledge(segment.ack) {
                // the client refuses it, and must not get its data with another acknowledgment number
                cx.counters.others_forwarded += 1;
                return Action::Forward(packet);
            }
            self.relay.note_receiver(segment.ack, window);
        }
        // buffered packets leave with the server's newest header fields
        let window = (window >> self.server_scale()) as u16;
        let newest = Newest { tsecr: segment.tsecr, window, link: packet.link() };
        let is_newest = segment.ack == self.relay.rcv_nxt();
        if let Some(buffer) = self.buffer.as_mut() {
            buffer.tsval_newest = later(buffer.tsval_newest, segment.tsval);
            if is_newest {
                buffer.newest = newest;
            }
        }
        if segment.seq_len() == 0 {
            self.note_passed(segment);
            if let Some(buffer) = &mut self.buffer {
                buffer.acked_to_client = segment.ack;
            }
            cx.counters.others_forwarded += 1;
            return Action::Forward(packet);
        }
        let now_us = cx.now_us();
        let (snd_nxt, offered) = (self.relay.sock().snd_nxt, self.offered);
        let fresh = || Box::new(Buffer::new(snd_nxt, offered, now_us, segment, newest));
        let nxt = self.buffer.get_or_insert_with(fresh).nxt;
        if before(segment.seq, nxt) {
            return self.take_again(cx, segment, packet);
        }
        self.take_new(cx, segment, packet)
    }

    /// Whether the client may accept it: then its header fields count. Otherwise it is old, or from a guesser.
    fn is_near(&self, cx: &Context<P>, segment: &Segment) -> bool {
        let beyond = if self.has(bit::CATCHES_UP) { CATCH_UP_MAX } else { cx.limits.beyond_window_bytes };
        let furthest = later(self.offered, self.nxt()).wrapping_add(beyond);
        // a keep-alive is one before what was acknowledged
        let oldest = self.relay.sock().snd_una.wrapping_sub(1);
        !before(segment.end_seq(), oldest) && !after(segment.seq, furthest)
    }

    /// A packet of the server far from the window: data beyond the window is dropped, the rest passes for the client to judge.
    fn stray(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        let is_data = segment.flags & flags::RST == 0 && segment.seq_len() > 0;
        if is_data && after(segment.seq, self.relay.sock().snd_una) {
            return self.beyond(cx, packet);
        }
        if is_data && self.relay.sock().snd_una.wrapping_sub(segment.seq) <= cx.limits.beyond_window_bytes {
            self.owe_answer(segment);
        }
        cx.counters.others_forwarded += 1;
        Action::Forward(packet)
    }

    /// The server retransmits what the client has: it lacks an ACK. The client's next ACK passes, with a D-SACK.
    fn owe_answer(&mut self, segment: &Segment) {
        let has_sack = self.has(bit::SACK);
        let Some(buffer) = &mut self.buffer else { return };
        buffer.owes_ack = true;
        if has_sack {
            buffer.note_twice(segment.seq, segment.end_seq());
        }
    }

    /// Data of the server beyond its window, and not adjacent to the buffer: either it ignores the window, or packets
    /// have taken another path for a while, and both ends have advanced.
    fn beyond(&mut self, cx: &mut Context<P>, packet: P) -> Action<P> {
        if self.has(bit::ASTRAY) {
            cx.ending = Some(Ending::Astray);
            cx.counters.others_forwarded += 1;
            return Action::Forward(packet);
        }
        let silent_us = cx.now.as_us().saturating_sub(self.relay.sock().delivered_mstamp);
        if self.buffer.as_ref().is_none_or(|buffer| buffer.is_empty()) && silent_us > ASTRAY_US {
            // the client's answer to a keep-alive (RFC 9293 3.8.4) will show what it has
            cx.counters.beyond_window_asked += 1;
            let mut ask = packet.bare();
            ask.set_seq(self.relay.sock().snd_una.wrapping_sub(1));
            return Action::Rewritten(ask);
        }
        cx.counters.beyond_window_dropped += 1;
        Action::Dropped
    }

    /// The number after the last that the server has sent.
    fn nxt(&self) -> u32 {
        self.buffer.as_ref().map_or(self.relay.sock().snd_nxt, |buffer| buffer.nxt)
    }

    /// The server resets the connection: delayed data is sent first.
    fn reset_by_server(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        let una = self.relay.sock().snd_una;
        // it comes behind all data, or where the client's acknowledgment was; anything else is a guess
        if segment.seq != una && before(segment.seq, self.nxt()) {
            cx.counters.others_forwarded += 1;
            return Action::Forward(packet);
        }
        cx.ending = Some(Ending::Reset);
        if !self.release(cx) {
            cx.counters.others_forwarded += 1;
            return Action::Forward(packet);
        }
        cx.out.push_back((Direction::Out, packet));
        cx.counters.sent += 1;
        Action::Held
    }

    /// Sends delayed data unchanged. False: there is none.
    pub fn release(&self, cx: &mut Context<P>) -> bool {
        let snd_nxt = self.relay.sock().snd_nxt;
        let Some(buffer) = self.buffer.as_ref().filter(|buffer| !buffer.holds_nothing_back()) else { return false };
        let (out, sent) = (&mut *cx.out, &mut cx.counters.sent);
        buffer.copy(snd_nxt, buffer.nxt.wrapping_sub(snd_nxt), |held, _| {
            *sent += 1;
            out.push_back((Direction::Out, held));
        });
        true
    }

    /// A segment that the relay does not send has passed to the client, which may hold its timestamp as the newest, if it accepts
    /// it (RFC 7323 4.3).
    pub fn note_passed(&mut self, segment: &Segment) {
        let sock = self.relay.sock();
        if !before(segment.end_seq(), sock.snd_una) && before(segment.seq, sock.snd_nxt) {
            self.raise_floor(segment);
        }
    }

    /// Data after a segment in the stream must not have an older timestamp.
    fn raise_floor(&mut self, segment: &Segment) {
        if let (true, Some(buffer)) = (segment.has_timestamp, &mut self.buffer) {
            buffer.raise_floor(segment.tsval);
        }
    }

    /// The server retransmits data, perhaps with new data after it.
    fn take_again(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        let una = self.relay.sock().snd_una;
        let end = segment.end_seq();
        if !after(end, una) {
            self.note_passed(segment);
            self.owe_answer(segment);
            cx.counters.others_forwarded += 1;
            return Action::Forward(packet);
        }
        let nxt = self.nxt();
        let known_end = if before(end, nxt) { end } else { nxt };
        let full = is_full(cx, &packet);
        let has_sack = self.has(bit::SACK);
        let buffer = self.buffer.as_mut().expect("made before");
        if full && buffer.gaps > 0 {
            // there is no room for what may be missing
            if after(end, self.relay.sock().snd_nxt) {
                cx.counters.buffers_full_dropped += 1;
                return Action::Dropped;
            }
            self.note_passed(segment);
            cx.counters.passed_buffers_full += 1;
            return Action::Forward(packet);
        }
        let each = packet.each();
        if !full && buffer.has_larger((segment.seq, known_end), each, each == u32::from(segment.len)) {
            // a later hop has a smaller MTU, and the server has learnt it (RFC 1191; RFC 8201)
            let prior = buffer.bytes;
            buffer.forget((segment.seq, known_end));
            *cx.buffered = *cx.buffered - prior + buffer.bytes;
            cx.counters.replaced += 1;
        }
        let fills = self.fill_gaps(cx, segment, known_end, &packet);
        let buffer = self.buffer.as_mut().expect("made before");
        let is_oldest = !after(segment.seq, una);
        // A probe of the last segment gets no duplicate ACK, which would tell the server nothing. Where Linux has split a large segment to probe
        // with its end, and an ACK has covered some of it, RACK (RFC 8985) has taken the whole of it for delivered: at a duplicate ACK it takes
        // the part before the probe for lost.
        buffer.owes_ack |= fills || is_oldest;
        if !fills && has_sack {
            buffer.note_twice(segment.seq, known_end);
        }
        cx.counters.absorbed += 1;
        cx.counters.absorbed_oldest += u64::from(is_oldest);
        cx.counters.absorbed_last += u64::from(end == nxt);
        self.absorbed = self.absorbed.saturating_add(1);
        if !after(end, nxt) {
            self.drain(cx);
            return self.held_or_passed(cx, segment, packet);
        }
        let offset = nxt.wrapping_sub(segment.seq);
        let rest = packet.part(offset, end.wrapping_sub(nxt));
        let len = u32::from(segment.len).saturating_sub(offset) as u16;
        self.take_new(cx, &Segment { seq: nxt, len, ..*segment }, rest)
    }

    /// Gaps in `[segment.seq, end)` can be filled. True: one was.
    fn fill_gaps(&mut self, cx: &mut Context<P>, segment: &Segment, end: u32, packet: &P) -> bool {
        let snd_nxt = self.relay.sock().snd_nxt;
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.gaps > 0) else { return false };
        let out = &mut *cx.out;
        let mut awaited = 0;
        let prior = buffer.bytes;
        let fills = buffer.fill((segment.seq, end), (packet, segment.tsval), snd_nxt, |part| {
            awaited += 1;
            out.push_back((Direction::Out, part));
        });
        if !fills {
            return false;
        }
        *cx.buffered = *cx.buffered - prior + buffer.bytes;
        cx.counters.gaps_filled += awaited;
        cx.counters.sent += awaited;
        if awaited > 0 {
            self.relay.on_filled(cx.now, segment.seq, end);
        }
        // what the server had sent beyond the gap is older, forwarded or not
        self.raise_floor(segment);
        true
    }

    /// New data.
    fn take_new(&mut self, cx: &mut Context<P>, segment: &Segment, packet: P) -> Action<P> {
        let buffer = self.buffer.as_mut().expect("made before");
        let (len, end) = (segment.seq_len(), segment.end_seq());
        let gap = segment.seq.wrapping_sub(buffer.nxt);
        if self.bits & bit::CATCHES_UP != 0 {
            // another enforcer has offered that
            self.offered = later(self.offered, end);
        }
        if after(end, self.offered) {
            let beyond = end.wrapping_sub(self.offered);
            if gap > 0 {
                return self.beyond(cx, packet);
            }
            if beyond > cx.limits.beyond_window_bytes {
                cx.counters.beyond_window_dropped += 1;
                return Action::Dropped;
            }
            cx.counters.beyond_window_held += 1;
        }
        let full = is_full(cx, &packet);
        if full && !buffer.holds_nothing_back() {
            cx.counters.buffers_full_dropped += 1;
            return Action::Dropped;
        }
        let starved = self.is_starved(cx);
        let buffer = self.buffer.as_mut().expect("made before");
        if gap > 0 {
            cx.counters.gaps += 1;
            buffer.push(cx.now_us(), gap, (0, None));
            self.relay.write(cx.now, gap, false);
        }
        cx.counters.data_taken += 1;
        self.relay.write(cx.now, len, starved);
        if segment.flags & flags::FIN != 0 {
            self.bits |= bit::SERVER_FIN;
        }
        if full {
            buffer.push(cx.now_us(), len, (0, None));
            self.drain(cx);
            if before(self.relay.sock().snd_nxt, end) {
                cx.counters.buffers_full_dropped += 1;
                return Action::Dropped;
            }
            cx.counters.passed_buffers_full += 1;
            return Action::Forward(packet);
        }
        *cx.buffered += buffer.push(cx.now_us(), len, (segment.tsval, Some(packet)));
        cx.kept.record(buffer.packets());
        self.drain(cx);
        let buffer = self.buffer.as_mut().expect("it holds the packet");
        if !buffer.holds_nothing_back() {
            cx.counters.data_held += 1;
            if after(segment.ack, buffer.acked_to_client) {
                // the data waits, its acknowledgment need not
                buffer.acked_to_client = segment.ack;
                cx.counters.acks_ahead += 1;
                cx.out.extend(buffer.last().map(|packet| (Direction::Out, packet.bare())));
            }
        }
        Action::Held
    }

    /// Whether the server has failed to use an opportunity to send: it could have filled an older edge long ago. Where a queue has
    /// formed, the network delivers all that it can, and a server limited by its own window (as CUBIC after a slow start that
    /// ended at the first sign of that queue) has missed nothing.
    fn is_starved(&mut self, cx: &Context<P>) -> bool {
        let now_us = cx.now_us();
        let grace_us = 2 * RTT_TICK_US * u32::from(self.server_rtt_ticks) + STARVED_US;
        let sock = self.relay.sock();
        let (mss, packets_out) = (sock.mss_cache, sock.packets_out);
        let full_us = sock.min_rtt_us().saturating_add(queued_us(sock.min_rtt_us()));
        if packets_out >= QUEUED_PACKETS && self.relay.head_age_us(cx.now) > full_us {
            return false;
        }
        let silent_us = cx.now.as_us().saturating_sub(self.relay.sock().delivered_mstamp);
        let buffer = self.buffer.as_mut().expect("made before");
        if !buffer.holds_nothing_back() {
            return false;
        }
        if packets_out == 0 {
            return silent_us > u64::from(grace_us);
        }
        if now_us.wrapping_sub(buffer.offered_at_us) < grace_us {
            return false;
        }
        let starved = !after(buffer.nxt.wrapping_add(mss), buffer.offered_then);
        buffer.offered_then = self.offered;
        buffer.offered_at_us = now_us;
        starved
    }

    /// Sends what may leave now.
    pub fn drain(&mut self, cx: &mut Context<P>) {
        loop {
            let Some(buffer) = &mut self.buffer else { return };
            let mut next = buffer.next(self.relay.sock().snd_nxt, BEHIND_GAP_SEGMENTS * self.relay.sock().mss_cache);
            if let Some((receiver, slot)) = &mut cx.receiver {
                let allowed = receiver.admit(*slot, in_flight(&self.relay), next.len, self.relay.sock().mss_cache);
                next.len = if next.urgent { next.len } else { allowed };
            }
            let Some(leave) = self.relay.poll_transmit(cx.now, next) else { return };
            if leave.fresh {
                buffer.mark_sent(self.relay.sock().snd_nxt);
            } else {
                self.note_loss(cx.counters);
            }
            let Some(buffer) = &mut self.buffer else { return };
            let dress = Dress {
                leave,
                floor: buffer.tsval_floor,
                newest: buffer.newest,
                timestamps: self.bits & bit::TIMESTAMPS != 0,
                ecn: ecn_of(self.bits, &self.relay, leave),
                ack: self.relay.rcv_nxt(),
                scale: self.scales & 0xf,
            };
            let (out, counters) = (&mut *cx.out, &mut *cx.counters);
            buffer.copy(leave.seq, leave.len, |packet, tsval| {
                let count = if leave.fresh { &mut counters.sent } else { &mut counters.retransmitted };
                *count += 1;
                out.push_back((Direction::Out, dress.put_on(packet, tsval)));
            });
            buffer.acked_to_client = self.relay.rcv_nxt();
        }
    }

    /// The time of [`Relay::poll_timeout`] has come.
    pub fn on_timer(&mut self, cx: &mut Context<P>) {
        self.relay.on_timer(cx.now);
        self.drain(cx);
        if self.seeks_client() {
            self.seek_client(cx);
        }
        if self.relay.is_given_up() {
            cx.ending = Some(Ending::GivenUp);
        } else if self.relay.backoff() >= SILENT_TIMEOUTS && *cx.buffered > cx.limits.buffer_bytes / 2 {
            // its server has all buffered data
            cx.ending = Some(Ending::Silent);
        }
    }

    /// Whether both ends have sent FINs that were acknowledged.
    pub fn is_over(&self) -> bool {
        const BOTH: u16 = bit::SERVER_FIN | bit::CLIENT_FIN;
        self.bits & BOTH == BOTH
            && self.buffer.as_ref().is_none_or(|buffer| buffer.is_empty())
            && self.relay.rcv_nxt() == self.client_end
    }
}

/// Whether the buffers lack room for this packet.
fn is_full<P: Packet>(cx: &Context<P>, packet: &P) -> bool {
    *cx.buffered + packet.bytes() > cx.limits.buffer_bytes
}

/// By how much an RTT exceeds the shortest if there is a queue, µs.
fn queued_us(min_rtt_us: u32) -> u32 {
    (min_rtt_us / 8).clamp(QUEUED_US.0, QUEUED_US.1)
}

/// Bytes on their way to the client: neither acknowledged nor taken for lost.
pub(crate) fn in_flight(relay: &Relay) -> u32 {
    let sock = relay.sock();
    sock.snd_nxt.wrapping_sub(sock.snd_una).min(sock.packets_in_flight().saturating_mul(sock.mss_cache))
}

/// From an ACK to the right edge of a window, bytes.
fn room(edge: u32, ack: u32) -> u32 {
    if after(edge, ack) { edge.wrapping_sub(ack) } else { 0 }
}
